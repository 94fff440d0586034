/* SPDX-License-Identifier: MIT */
#include "ctf_check_priv.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/input_file.h>
#include <tandem/trace.h>

enum {
	FINDINGS_MAX = 1000
};

/* Fields whose values the lint needs. */
static const char *const wanted_fields[] = { "magic", "stream_id", "packet_size", "content_size",
	"timestamp_begin", "timestamp_end", "events_discarded", "cpu_id", "id", "next_tid", "tid",
	"vm_uid", "cnt", NULL };

enum tdm_status tdm_ctf_finding_add(
	struct tdm_ctf_checked *checked, bool is_error, const char *format, ...)
{
	struct tdm_ctf_finding *grown = NULL;
	char *text = NULL;
	va_list args;
	int length;

	checked->error_count += is_error;
	if (checked->finding_count == FINDINGS_MAX) {
		return TDM_OK; /* nobody reads more; the count of errors goes on */
	}
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	grown = realloc(checked->findings, (checked->finding_count + 1) * sizeof(*grown));
	if (length < 0 || !grown) {
		checked->findings = grown ? grown : checked->findings;
		free(length < 0 ? NULL : text);
		return TDM_ERR_NOMEM;
	}
	checked->findings = grown;
	grown[checked->finding_count++] = (struct tdm_ctf_finding){ is_error, text };
	return TDM_OK;
}

static enum tdm_status read_metadata(struct ctf_trace_check *trace, struct tdm_error *err)
{
	struct tdm_input_file *file = NULL;
	uint8_t *bytes = NULL;
	char path[4096];
	size_t got = 0;
	const enum tdm_trace_format format = tdm_trace_probe(trace->checked->path);
	struct stat about;
	enum tdm_status status;

	if (format == TDM_FORMAT_TRACEDAT || format == TDM_FORMAT_PERF) {
		return tdm_fail(err, TDM_ERR_FORMAT, "this is a %s: tandem convert makes CTF of it",
			format == TDM_FORMAT_PERF ? "perf.data" : "trace.dat");
	}
	if (snprintf(path, sizeof(path), "%s/metadata", trace->checked->path) >=
		(int)sizeof(path)) {
		return tdm_fail(err, TDM_ERR_RANGE, "the path is too long");
	}
	if (stat(trace->checked->path, &about) == 0 && S_ISDIR(about.st_mode) &&
		stat(path, &about) != 0 && errno == ENOENT) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"this is %s; tandem convert makes CTF of trace.dat and perf.data",
			tdm_trace_foreign(trace->checked->path));
	}
	status = tdm_input_file_open(path, &file, err);
	if (status != TDM_OK) {
		return status;
	}
	if (file->size_bytes > (uint64_t)64 << 20) {
		status = tdm_fail(err, TDM_ERR_FORMAT, "%s: %" PRIu64 " bytes of metadata", path,
			file->size_bytes);
	} else {
		bytes = malloc(file->size_bytes + 1);
		status = bytes ? tdm_input_file_read(file, 0, bytes, file->size_bytes, &got, err)
			       : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	tdm_input_file_close(file);
	if (status == TDM_OK) {
		status = tsdl_parse("metadata", bytes, got, wanted_fields, &trace->metadata, err);
	}
	free(bytes);
	return status;
}

static bool is_stream_name(const char *dir, const char *name)
{
	char path[4096];
	struct stat st;

	return name[0] != '.' && strcmp(name, "metadata") != 0 &&
	       snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static enum tdm_status check_streams(struct ctf_trace_check *trace)
{
	struct tdm_ctf_checked *const checked = trace->checked;
	struct dirent **entries = NULL;
	const int count = scandir(checked->path, &entries, NULL, alphasort);
	enum tdm_status status = TDM_OK;

	for (int i = 0; i < count; i++) {
		if (status == TDM_OK && is_stream_name(checked->path, entries[i]->d_name)) {
			status = ctf_check_stream(trace, entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

enum tdm_status tdm_ctf_check(const char *path, struct tdm_ctf_checked *checked)
{
	struct ctf_trace_check trace = { .checked = checked };
	struct tdm_error err = { 0 };
	enum tdm_status status;

	*checked = (struct tdm_ctf_checked){ .path = strdup(path) };
	if (!checked->path) {
		return TDM_ERR_NOMEM;
	}
	status = read_metadata(&trace, &err);
	if (status == TDM_OK) {
		checked->is_readable = true;
		status = ctf_check_metadata(&trace);
		if (status == TDM_OK) {
			status = check_streams(&trace);
		}
		if (status == TDM_OK && checked->is_kernel && !checked->has_state_dump &&
			checked->event_count) {
			status = tdm_ctf_finding_add(checked, false,
				"no lttng_statedump_process_state: threads have no process and no name before they run");
		}
	} else if (status != TDM_ERR_NOMEM) {
		status = tdm_ctf_finding_add(checked, true, "%s", err.text);
	}
	for (size_t i = 0; trace.streams && i < trace.metadata.stream_count; i++) {
		free(trace.streams[i].by_id);
		free(trace.streams[i].was_met);
	}
	free(trace.streams);
	tsdl_release(&trace.metadata);
	return status;
}

static bool is_dumped(const struct tdm_ctf_checked *checked, int32_t tid)
{
	for (size_t i = 0; i < checked->dumped_count; i++) {
		if (checked->dumped[i] == tid) {
			return true;
		}
	}
	return false;
}

/* The other end of a guest's sync event, in another trace; NULL if there is none. */
static const struct tdm_ctf_sync *find_host_end(struct tdm_ctf_checked *checked, size_t count,
	size_t guest, const struct tdm_ctf_sync *sync, size_t *host)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; i != guest && j < checked[i].sync_count; j++) {
			const struct tdm_ctf_sync *const other = &checked[i].syncs[j];

			if (!other->is_guest && other->vm_uid == sync->vm_uid &&
				other->count == sync->count) {
				*host = i;
				return other;
			}
		}
	}
	return NULL;
}

static enum tdm_status check_pair(struct tdm_ctf_checked *checked, size_t count, size_t guest,
	const struct tdm_ctf_sync *sync)
{
	size_t host = 0;
	const struct tdm_ctf_sync *const other = find_host_end(checked, count, guest, sync, &host);
	enum tdm_status status = TDM_OK;

	if (!other) {
		return tdm_ctf_finding_add(&checked[guest], false,
			"vmsync_gh_guest of vm_uid %" PRIu64 ": no trace here has the host's end",
			sync->vm_uid);
	}
	if (other->time_ns <= sync->time_ns) {
		status = tdm_ctf_finding_add(&checked[host], true,
			"vmsync_gh_host of vm_uid %" PRIu64
			" is not later than the guest's vmsync_gh_guest (%" PRId64 " ns)",
			sync->vm_uid, other->time_ns - sync->time_ns);
	}
	if (status == TDM_OK &&
		(!checked[host].has_kvm || other->time_ns < checked[host].first_kvm_ns)) {
		status = tdm_ctf_finding_add(&checked[host], true,
			"vmsync_gh_host of vm_uid %" PRIu64
			": no KVM entry or exit before it: the fused view stays empty",
			sync->vm_uid);
	}
	if (status == TDM_OK && checked[host].has_sched_switch && !other->has_thread) {
		status = tdm_ctf_finding_add(&checked[host], true,
			"vmsync_gh_host of vm_uid %" PRIu64
			": no sched_switch before it on its CPU tells which thread runs",
			sync->vm_uid);
	}
	if (status == TDM_OK && other->has_thread && !is_dumped(&checked[host], other->tid)) {
		status = tdm_ctf_finding_add(&checked[host], false,
			"vmsync_gh_host of vm_uid %" PRIu64 ": its thread %" PRId32
			" is in no state dump: only this thread is found",
			sync->vm_uid, other->tid);
	}
	return status;
}

static enum tdm_status check_identities(struct tdm_ctf_checked *checked, size_t count)
{
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i && status == TDM_OK; j++) {
			const struct tdm_ctf_checked *const a = &checked[j];
			struct tdm_ctf_checked *const b = &checked[i];

			if (!a->clock_uuid || !b->clock_uuid ||
				strcmp(a->clock_uuid, b->clock_uuid) != 0) {
				continue;
			}
			if (a->hostname && b->hostname && strcmp(a->hostname, b->hostname) != 0) {
				status = tdm_ctf_finding_add(b, true,
					"its clock uuid is that of %s, another machine (\"%s\", \"%s\"): both count as one",
					a->path, a->hostname, b->hostname);
			} else if (a->clock_offset_ns != b->clock_offset_ns) {
				status = tdm_ctf_finding_add(b, true,
					"its clock is that of %s, but the offsets differ by %" PRId64
					" ns: Trace Compass shifts both to the average",
					a->path, b->clock_offset_ns - a->clock_offset_ns);
			}
		}
	}
	return status;
}

enum tdm_status tdm_ctf_check_together(struct tdm_ctf_checked *checked, size_t count)
{
	enum tdm_status status = check_identities(checked, count);
	size_t kernels = 0;
	size_t syncs = 0;
	size_t with_kvm = count;

	for (size_t i = 0; i < count; i++) {
		kernels += checked[i].is_kernel;
		with_kvm = checked[i].has_kvm ? i : with_kvm;
		for (size_t j = 0; j < checked[i].sync_count && status == TDM_OK; j++) {
			if (checked[i].syncs[j].is_guest) {
				syncs++;
				status = check_pair(checked, count, i, &checked[i].syncs[j]);
			}
		}
	}
	if (status == TDM_OK && kernels > 1 && with_kvm < count && syncs == 0) {
		status = tdm_ctf_finding_add(&checked[with_kvm], false,
			"KVM events, but no vmsync events in the guests: the virtual machine views stay empty");
	}
	return status;
}

void tdm_ctf_checked_release(struct tdm_ctf_checked *checked)
{
	for (size_t i = 0; i < checked->finding_count; i++) {
		free(checked->findings[i].text);
	}
	free(checked->findings);
	free(checked->path);
	free(checked->hostname);
	free(checked->clock_uuid);
	free(checked->syncs);
	free(checked->dumped);
	*checked = (struct tdm_ctf_checked){ 0 };
}
