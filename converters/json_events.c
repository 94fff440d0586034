/* SPDX-License-Identifier: MIT */
#include "json_events.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/utf8.h>
#include <unistd.h>

enum tdm_status tdm_json_begin(
	struct tdm_json_file *file, const char *dir, bool force, struct tdm_error *err)
{
	*file = (struct tdm_json_file){ 0 };
	if (asprintf(&file->path, "%s/trace.json", dir) < 0) {
		file->path = NULL;
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a path");
	}
	if (!force && access(file->path, F_OK) == 0) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s exists: choose another directory with -o, or replace it with --force",
			file->path);
	}
	if (asprintf(&file->work_path, "%s.partial", file->path) < 0) {
		file->work_path = NULL;
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a path");
	}
	(void)unlink(file->work_path); /* what a killed converter left */
	file->file = fopen(file->work_path, "wxe");
	if (!file->file) {
		return tdm_fail_errno(err, errno, "%s: cannot create", file->work_path);
	}
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file->file);
	return TDM_OK;
}

enum tdm_status tdm_json_commit(struct tdm_json_file *file, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	fputs("\n]}\n", file->file);
	if (ferror(file->file)) {
		status = tdm_fail_errno(
			err, errno ? errno : EIO, "%s: cannot write", file->work_path);
	}
	if (fclose(file->file) != 0 && status == TDM_OK) {
		status = tdm_fail_errno(err, errno, "%s: cannot write", file->work_path);
	}
	file->file = NULL;
	if (status == TDM_OK && rename(file->work_path, file->path) != 0) {
		status = tdm_fail_errno(
			err, errno, "%s: cannot be renamed to %s", file->work_path, file->path);
	}
	if (status == TDM_OK) {
		free(file->work_path);
		file->work_path = NULL;
	}
	return status;
}

void tdm_json_release(struct tdm_json_file *file)
{
	if (file->file) {
		fclose(file->file);
	}
	if (file->work_path) {
		(void)unlink(file->work_path);
	}
	free(file->work_path);
	free(file->path);
	tdm_buffer_release(&file->scratch);
	*file = (struct tdm_json_file){ 0 };
}

void tdm_json_put_text(struct tdm_json_file *file, const char *text, size_t length)
{
	file->scratch.size = 0;
	(void)tdm_utf8_append_shown(&file->scratch, (const uint8_t *)text, length);
	fputc('"', file->file);
	for (size_t i = 0; i < file->scratch.size; i++) {
		const uint8_t byte = file->scratch.bytes[i];

		if (byte == '"' || byte == '\\') {
			fputc('\\', file->file);
			fputc(byte, file->file);
		} else if (byte < 0x20) {
			fprintf(file->file, "\\u%04x", byte);
		} else {
			fputc(byte, file->file);
		}
	}
	fputc('"', file->file);
}

void tdm_json_put_string(struct tdm_json_file *file, const char *text)
{
	tdm_json_put_text(file, text, strlen(text));
}

void tdm_json_put_unsigned(struct tdm_json_file *file, uint64_t number)
{
	fprintf(file->file, number >> 53 ? "\"%" PRIu64 "\"" : "%" PRIu64, number);
}

void tdm_json_put_signed(struct tdm_json_file *file, int64_t number)
{
	const uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	fprintf(file->file, size >> 53 ? "\"%" PRId64 "\"" : "%" PRId64, number);
}

void tdm_json_begin_event(
	struct tdm_json_file *file, const char *phase, size_t machine, uint64_t track)
{
	fprintf(file->file, "%s{\"ph\":\"%s\",\"pid\":%zu,\"tid\":%" PRIu64,
		file->has_event ? ",\n" : "", phase, machine + 1, track);
	file->has_event = true;
}

void tdm_json_put_time(struct tdm_json_file *file, const char *key, int64_t time_ns)
{
	const uint64_t size = time_ns < 0 ? 0 - (uint64_t)time_ns : (uint64_t)time_ns;

	fprintf(file->file, ",\"%s\":%s%" PRIu64 ".%03u", key, time_ns < 0 ? "-" : "", size / 1000,
		(unsigned int)(size % 1000));
}

void tdm_json_name_track(
	struct tdm_json_file *file, size_t machine, uint64_t track, const char *name)
{
	tdm_json_begin_event(file, "M", machine, track);
	fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", file->file);
	tdm_json_put_string(file, name);
	fputs("}}", file->file);
}

size_t tdm_json_add_machine(struct tdm_json_file *file, const char *name, bool is_host)
{
	const size_t machine = file->machine_count++;

	tdm_json_begin_event(file, "M", machine, 0);
	fputs(",\"name\":\"process_name\",\"args\":{\"name\":", file->file);
	tdm_json_put_string(file, name);
	fputs("}}", file->file);
	tdm_json_begin_event(file, "M", machine, 0);
	fprintf(file->file, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%zu}}",
		is_host ? 0 : machine + 1);
	return machine;
}

void tdm_json_put_slice(struct tdm_json_file *file, size_t machine, uint32_t cpu, int64_t from_ns,
	int64_t to_ns, int32_t tid, const char *comm)
{
	if (tid == 0) {
		return;
	}
	tdm_json_begin_event(file, "X", machine, cpu);
	tdm_json_put_time(file, "ts", from_ns);
	tdm_json_put_time(file, "dur", to_ns - from_ns);
	fputs(",\"cat\":\"sched\",\"name\":", file->file);
	tdm_json_put_string(file, comm);
	fprintf(file->file, ",\"args\":{\"tid\":%" PRId32 "}}", tid);
}

const char *tdm_json_call_of(const char *name, bool *is_entry)
{
	static const struct {
		const char *prefix;
		bool is_entry;
	} prefixes[] = { { "tandem:syscall_entry_", true }, { "tandem:syscall_exit_", false },
		{ "syscall_entry_", true }, { "syscall_exit_", false }, { "sys_enter_", true },
		{ "sys_exit_", false }, { "compat_syscall_entry_", true },
		{ "compat_syscall_exit_", false }, { "sys_enter", true }, { "sys_exit", false } };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const size_t length = strlen(prefixes[i].prefix);

		if (strncmp(name, prefixes[i].prefix, length) == 0) {
			*is_entry = prefixes[i].is_entry;
			return name[length] ? name + length : "system call";
		}
	}
	return NULL;
}
