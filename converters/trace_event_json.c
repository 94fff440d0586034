/* SPDX-License-Identifier: MIT */
/*
 * trace_event_json.c - machines as one file in the trace-event format that Perfetto and chrome://tracing open.
 *
 * A machine is a process, a CPU of it a thread with a slice for each task that ran; a task has a thread of its own for
 * its system calls. Everything else is an instant event on its CPU. Readers sort, so CPUs are written one after another.
 */
#include "convert_priv.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/utf8.h>
#include <unistd.h>

/* Tracks of tasks stand behind those of CPUs. */
#define TASK_TRACK UINT64_C(1000000)

struct json {
	FILE *file;
	bool has_event;
	struct tdm_buffer scratch;
	uint64_t written;
};

/* One CPU while it is written. */
struct cpu {
	const struct tdm_convert_machine *conversion;
	struct json *json;
	struct tdm_task_names *names;
	struct tdm_task_census *census; /* tasks that need a track */
	uint32_t cpu;
	uint64_t last_time;
	bool is_running; /* a switch told who runs */
	uint64_t since;
	int32_t tid;
	char comm[TDM_TASK_NAME_MAX + 1];
};

static void put_text(struct json *json, const char *text, size_t length)
{
	json->scratch.size = 0;
	(void)tdm_utf8_append_shown(&json->scratch, (const uint8_t *)text, length);
	fputc('"', json->file);
	for (size_t i = 0; i < json->scratch.size; i++) {
		const uint8_t byte = json->scratch.bytes[i];

		if (byte == '"' || byte == '\\') {
			fputc('\\', json->file);
			fputc(byte, json->file);
		} else if (byte < 0x20) {
			fprintf(json->file, "\\u%04x", byte);
		} else {
			fputc(byte, json->file);
		}
	}
	fputc('"', json->file);
}

static void put_string(struct json *json, const char *text)
{
	put_text(json, text, strlen(text));
}

/* Begins an event on a track; the caller goes on with ", ..." and closes it. */
static void begin_event(struct json *json, const char *phase, size_t machine, uint64_t track)
{
	fprintf(json->file, "%s{\"ph\":\"%s\",\"pid\":%zu,\"tid\":%" PRIu64,
		json->has_event ? ",\n" : "", phase, machine + 1, track);
	json->has_event = true;
	json->written++;
}

/* Microseconds with all nanoseconds behind the point, as the output shows time. */
static void put_time(struct json *json, const struct tdm_convert_machine *conversion,
	const char *key, uint64_t time)
{
	const int64_t shown = (int64_t)(time - conversion->bias_ns) + conversion->epoch_offset_ns;
	const uint64_t size = shown < 0 ? 0 - (uint64_t)shown : (uint64_t)shown;

	fprintf(json->file, ",\"%s\":%s%" PRIu64 ".%03u", key, shown < 0 ? "-" : "", size / 1000,
		(unsigned int)(size % 1000));
}

static void name_track(struct json *json, size_t machine, uint64_t track, const char *name)
{
	begin_event(json, "M", machine, track);
	fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", json->file);
	put_string(json, name);
	fputs("}}", json->file);
}

static void put_element(struct json *json, const struct tdm_field *field, const uint8_t *at,
	uint32_t size_bytes, bool big_endian)
{
	if (field->kind == TDM_FIELD_SIGNED) {
		fprintf(json->file, "%" PRId64, tdm_load_int(at, size_bytes, big_endian));
	} else if (field->kind == TDM_FIELD_POINTER) {
		fprintf(json->file, "\"0x%" PRIx64 "\"", tdm_load_uint(at, size_bytes, big_endian));
	} else if (size_bytes == 8 && tdm_load_uint(at, 8, big_endian) >> 53) {
		/* A JSON number is a double to most readers. */
		fprintf(json->file, "\"%" PRIu64 "\"", tdm_load_uint(at, 8, big_endian));
	} else {
		fprintf(json->file, "%" PRIu64, tdm_load_uint(at, size_bytes, big_endian));
	}
}

static void put_value(struct cpu *cpu, const struct tdm_shown_class *shown_class,
	const struct tdm_shown_field *shown, const struct tdm_slot *slot)
{
	struct json *const json = cpu->json;
	const struct tdm_field *const field = &shown->field;
	const bool big_endian = cpu->conversion->layout.big_endian;
	const bool wide = field->kind == TDM_FIELD_WIDE;
	const uint32_t element_bytes = wide ? 8 : field->element_bytes;
	struct tdm_span span = { 0 };

	if (!tdm_field_span(field, slot->payload, slot->payload_bytes, big_endian, &span)) {
		span = (struct tdm_span){ 0 };
	}
	if (shown->conversion == TDM_CONVERT_RWBS) {
		fprintf(json->file, "%" PRIu32, tdm_names_rwbs(span.bytes, span.size_bytes));
	} else if (shown->conversion == TDM_CONVERT_PRIO) {
		fprintf(json->file, "%" PRId64,
			span.size_bytes
				? tdm_load_int(span.bytes, span.size_bytes, big_endian) - 100
				: 0);
	} else if (field->kind == TDM_FIELD_TEXT) {
		put_text(json, (const char *)span.bytes,
			span.size_bytes ? tdm_text_length(span.bytes, span.size_bytes) : 0);
	} else if (tdm_copy_is_printk(shown_class, shown) && span.size_bytes) {
		const char *const format = tdm_trace_printk_format(cpu->conversion->trace,
			tdm_load_uint(span.bytes, span.size_bytes, big_endian));

		put_string(json, format ? format : "");
	} else if (field->is_array || field->place != TDM_PLACE_FIXED || wide) {
		fputc('[', json->file);
		for (uint32_t at = 0; element_bytes && at + element_bytes <= span.size_bytes;
			at += element_bytes) {
			const uint32_t from = wide && big_endian ? at ^ 8u : at;

			fputs(at ? "," : "", json->file);
			put_element(json, field, span.bytes + from, element_bytes, big_endian);
		}
		fputc(']', json->file);
	} else if (span.size_bytes >= element_bytes && element_bytes) {
		put_element(json, field, span.bytes, element_bytes, big_endian);
	} else {
		fputs("null", json->file);
	}
}

static void put_args(struct cpu *cpu, const struct tdm_shown_class *shown,
	const struct tdm_slot *slot, int32_t tid)
{
	struct json *const json = cpu->json;
	size_t length = 0;
	const char *const comm = tdm_task_names_find(cpu->names, tid, &length);

	fprintf(json->file, ",\"args\":{\"tid\":%" PRId32 ",\"procname\":", tid);
	put_text(json, comm, length);
	for (uint32_t i = 0; i < shown->field_count; i++) {
		fputc(',', json->file);
		put_string(json, shown->fields[i].field.unique_name);
		fputc(':', json->file);
		put_value(cpu, shown, &shown->fields[i], slot);
	}
	fputs("}}", json->file);
}

/* The slice of the task that ran until now. */
static void close_slice(struct cpu *cpu, uint64_t time)
{
	struct json *const json = cpu->json;

	if (!cpu->is_running || cpu->tid == 0) {
		return;
	}
	begin_event(json, "X", cpu->conversion->index, cpu->cpu);
	put_time(json, cpu->conversion, "ts", cpu->since);
	fprintf(json->file,
		",\"dur\":%" PRIu64 ".%03u,\"cat\":\"sched\",\"name\":", (time - cpu->since) / 1000,
		(unsigned int)((time - cpu->since) % 1000));
	put_string(json, cpu->comm);
	fprintf(json->file, ",\"args\":{\"tid\":%" PRId32 "}}", cpu->tid);
}

static bool load_next(const struct cpu *cpu, const struct tdm_id_plan *plan,
	const struct tdm_slot *slot, int32_t *tid)
{
	const struct tdm_field *const next = tdm_event_class_field(plan->event_class, "next_pid");

	if (!next || next->place != TDM_PLACE_FIXED || next->size_bytes != 4 ||
		slot->payload_bytes < next->offset_bytes + 4u) {
		return false;
	}
	*tid = (int32_t)tdm_load_u32(
		slot->payload + next->offset_bytes, cpu->conversion->layout.big_endian);
	return true;
}

static void put_switch(
	struct cpu *cpu, const struct tdm_id_plan *plan, const struct tdm_slot *slot, uint64_t time)
{
	int32_t next = 0;
	size_t length = 0;
	const char *comm = NULL;

	if (!load_next(cpu, plan, slot, &next)) {
		return;
	}
	close_slice(cpu, time);
	comm = tdm_task_names_find(cpu->names, next, &length);
	cpu->is_running = true;
	cpu->since = time;
	cpu->tid = next;
	snprintf(cpu->comm, sizeof(cpu->comm), "%.*s", (int)length, comm);
}

/* "read" of "syscall_entry_read" and "sys_enter_read"; NULL where the name is another. */
static const char *call_of(const char *name, bool *is_entry)
{
	static const struct {
		const char *prefix;
		bool is_entry;
	} prefixes[] = { { "syscall_entry_", true }, { "syscall_exit_", false },
		{ "sys_enter_", true }, { "sys_exit_", false }, { "compat_syscall_entry_", true },
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

static void put_record(struct cpu *cpu, const struct tdm_id_plan *plan,
	const struct tdm_class_plan *class_plan, const struct tdm_slot *slot, uint64_t time)
{
	const struct tdm_shown_class *const shown = class_plan->copy.shown;
	struct json *const json = cpu->json;
	const size_t machine = cpu->conversion->index;
	bool is_entry = false;
	const char *const call = call_of(shown->name, &is_entry);
	int32_t tid = -1;

	if (plan->tid_offset != UINT32_MAX) {
		tid = (int32_t)tdm_load_u32(
			slot->payload + plan->tid_offset, cpu->conversion->layout.big_endian);
	}
	if (strcmp(shown->name, "sched_switch") == 0) {
		put_switch(cpu, plan, slot, time);
	}
	if (call && tid >= 0) {
		size_t length = 0;
		const char *const comm = tdm_task_names_find(cpu->names, tid, &length);

		(void)tdm_task_census_see(
			cpu->census, tid, TDM_FIRST_RUNNING, cpu->cpu, time, comm, length);
		begin_event(json, is_entry ? "B" : "E", machine, TASK_TRACK + (uint64_t)tid);
	} else {
		begin_event(json, "i", machine, cpu->cpu);
		fputs(",\"s\":\"t\"", json->file);
	}
	put_time(json, cpu->conversion, "ts", time);
	fputs(",\"cat\":", json->file);
	put_string(json, shown->source->system);
	fputs(",\"name\":", json->file);
	put_string(json, call && tid >= 0 ? call : shown->name);
	put_args(cpu, shown, slot, tid);
}

static const struct tdm_class_plan *plan_of(const struct tdm_convert_machine *conversion,
	const struct tdm_slot *slot, const struct tdm_id_plan **plan)
{
	const struct tdm_shown_class *shown = NULL;

	*plan = slot->event_id < conversion->id_count ? &conversion->by_id[slot->event_id] : NULL;
	if (!*plan || !(*plan)->event_class) {
		return NULL;
	}
	shown = tdm_names_class(
		conversion->names, (*plan)->event_class, slot->payload, slot->payload_bytes);
	return shown ? &conversion->plans[shown->index] : NULL;
}

static enum tdm_status write_cpu(struct json *json, struct tdm_convert_machine *conversion,
	uint32_t number, struct tdm_task_census *census)
{
	const struct tdm_convert_options *const options = conversion->options;
	struct tdm_convert_report *const report = conversion->report;
	struct tdm_cpu_scan *const scan = tdm_cpu_scan_create(conversion, number);
	struct cpu cpu = { .conversion = conversion,
		.json = json,
		.names = tdm_task_names_create(conversion->trace),
		.census = census,
		.cpu = number };
	struct tdm_scanned scanned;
	enum tdm_status status = scan && cpu.names ? TDM_OK : TDM_ERR_NOMEM;
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", number);
	name_track(json, conversion->index, number, name);
	while (status == TDM_OK && tdm_cpu_scan_next(scan, &scanned)) {
		const struct tdm_id_plan *plan = NULL;
		const struct tdm_class_plan *const class_plan =
			plan_of(conversion, scanned.slot, &plan);
		uint64_t time = scanned.time;

		report->records++;
		if (!class_plan || scanned.slot->payload_bytes < class_plan->copy.least_bytes) {
			report->unconverted++;
			continue;
		}
		if (time > conversion->limit_ns) {
			time = cpu.last_time;
			report->out_of_range++;
		}
		tdm_task_names_learn(cpu.names, plan->event_class, scanned.slot->payload,
			scanned.slot->payload_bytes);
		if (!class_plan->is_wanted || time < conversion->begin_ns ||
			time > conversion->end_ns) {
			report->left_out++;
			continue;
		}
		if (time < cpu.last_time) {
			time = cpu.last_time;
			report->clamped++;
		}
		cpu.last_time = time;
		put_record(&cpu, plan, class_plan, scanned.slot, time);
		report->events++;
		if ((report->records & 4095) == 0 && options->stop && *options->stop) {
			status = TDM_END;
		}
	}
	close_slice(&cpu, cpu.last_time);
	if (scan) {
		tdm_cpu_scan_add_counts(scan, report);
	}
	tdm_cpu_scan_destroy(scan);
	tdm_task_names_destroy(cpu.names);
	return status;
}

static void name_machine(struct json *json, const struct tdm_convert_machine *conversion)
{
	begin_event(json, "M", conversion->index, 0);
	fputs(",\"name\":\"process_name\",\"args\":{\"name\":", json->file);
	put_string(json, conversion->machine->name);
	fputs("}}", json->file);
	begin_event(json, "M", conversion->index, 0);
	fprintf(json->file, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%zu}}",
		conversion->machine->is_host ? 0 : conversion->index + 1);
}

static void name_tasks(struct json *json, const struct tdm_convert_machine *conversion,
	const struct tdm_task_census *census)
{
	for (size_t i = 0; i < census->room; i++) {
		const struct tdm_seen_task *const task = &census->tasks[i];
		char name[64];

		if (task->used) {
			snprintf(name, sizeof(name), "%s (%" PRId32 ")", task->comm, task->tid);
			name_track(json, conversion->index, TASK_TRACK + (uint64_t)task->tid, name);
		}
	}
}

static enum tdm_status write_machine(struct json *json, struct tdm_convert_machine *conversion)
{
	const struct tdm_trace_info *const info = conversion->info;
	struct tdm_task_census census = { 0 };
	enum tdm_status status = TDM_OK;

	name_machine(json, conversion);
	for (size_t i = 0; i < info->stream_count && status == TDM_OK; i++) {
		bool is_first =
			tdm_cpu_is_wanted(&conversion->options->selection, info->streams[i].cpu);

		for (size_t j = 0; j < i; j++) {
			is_first &= info->streams[j].cpu != info->streams[i].cpu;
		}
		if (is_first) {
			status = write_cpu(json, conversion, info->streams[i].cpu, &census);
			conversion->report->cpu_count++;
		}
	}
	name_tasks(json, conversion, &census);
	tdm_task_census_release(&census);
	return status;
}

static enum tdm_status write_file(struct json *json, struct tdm_convert_machine *conversions,
	size_t count, const char *path, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	json->file = fopen(path, "wxe");
	if (!json->file) {
		return tdm_fail_errno(err, errno, "%s: cannot create", path);
	}
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", json->file);
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		status = write_machine(json, &conversions[i]);
	}
	fputs("\n]}\n", json->file);
	if (ferror(json->file)) {
		status = tdm_fail_errno(err, errno ? errno : EIO, "%s: cannot write", path);
	}
	if (fclose(json->file) != 0 && status == TDM_OK) {
		status = tdm_fail_errno(err, errno, "%s: cannot write", path);
	}
	tdm_buffer_release(&json->scratch);
	if (status == TDM_ERR_NOMEM) {
		tdm_fail(err, status, "no memory for %s", path);
	}
	return status;
}

enum tdm_status tdm_convert_run_json(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_convert_report *reports, struct tdm_error *err)
{
	const size_t count = tdm_machines_count(machines);
	struct tdm_convert_machine *const conversions = calloc(count + 1, sizeof(*conversions));
	struct json json = { 0 };
	char *path = NULL;
	char *work = NULL;
	enum tdm_status status;

	memset(reports, 0, count * sizeof(*reports));
	if (!conversions || asprintf(&path, "%s/trace.json", options->out_dir) < 0 ||
		asprintf(&work, "%s.partial", path) < 0) {
		free(conversions);
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", count);
	}
	status = tdm_plan_machines(machines, options, log, reports, conversions, err);
	if (status == TDM_OK && !options->force && access(path, F_OK) == 0) {
		status = tdm_fail(err, TDM_ERR_RANGE,
			"%s exists: choose another directory with -o, or replace it with --force",
			path);
	}
	if (status == TDM_OK) {
		(void)unlink(work); /* what a killed converter left */
		status = write_file(&json, conversions, count, work, err);
	}
	if (status == TDM_OK && rename(work, path) != 0) {
		status = tdm_fail_errno(err, errno, "%s: cannot be renamed to %s", work, path);
	}
	if (status != TDM_OK) {
		(void)unlink(work);
	}
	for (size_t i = 0; i < count; i++) {
		if (status == TDM_OK) {
			reports[i].path = strdup(path);
		}
		tdm_convert_machine_release(&conversions[i]);
	}
	free(conversions);
	free(path);
	free(work);
	return status;
}
