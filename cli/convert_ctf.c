/* SPDX-License-Identifier: MIT */
#include "convert_ctf_priv.h"
#include "ctf_state_dump.h"
#include "tandem_version.h"
#include <ctf_clone.h>
#include <ctf_metadata.h>
#include <ctf_rewrite.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENV_COUNT 8

/* ---- one trace ---- */

/* One relation of slope 1 over all: the readings stay, and the clock's offset tells. */
static bool is_shift(
	const struct ctf_machine *machine, const struct tsdl_metadata *metadata, int64_t *offset)
{
	const struct tsdl_clock *const clock = metadata->clock_count ? &metadata->clocks[0] : NULL;

	return metadata->clock_count == 1 && clock->freq_hz == (uint64_t)NS_PER_S &&
	       tdm_timeline_is_constant(machine->timeline, offset);
}

struct convert_ctf_filter convert_ctf_filter_of(const struct convert_ctf *ctf,
	const struct ctf_machine *machine, const struct tsdl_metadata *metadata)
{
	struct convert_ctf_filter filter = { .guest = machine->name,
		.selection = &ctf->options->convert.selection };
	const struct tsdl_clock *const clock = metadata->clock_count ? &metadata->clocks[0] : NULL;
	int64_t offset = 0;

	if (!machine->timeline) {
		return filter;
	}
	filter.epoch_ns = convert_ctf_epoch(ctf, machine);
	if (!tdm_timeline_is_constant(machine->timeline, &offset)) {
		filter.corrections = machine->corrections;
		return filter;
	}
	/* What the source adds takes the trace's own offset off and puts the host's on. */
	filter.shift_ns = (int64_t)((uint64_t)offset + (uint64_t)filter.epoch_ns);
	if (clock) {
		filter.shift_ns = (int64_t)((uint64_t)filter.shift_ns -
					    (uint64_t)convert_ctf_clock_epoch(clock));
	}
	return filter;
}

/* @p threads  Whose state dump is to be added; NULL: none. */
static enum tdm_status write_metadata(struct convert_ctf *ctf, struct ctf_machine *machine,
	const char *dir, const struct tdm_buffer *text, struct tdm_ctf_changes *changes,
	const struct ctf_threads *threads, struct tdm_error *err)
{
	const bool is_kernel = ctf->options->as_kernel;
	const struct tdm_ctf_env env[ENV_COUNT] = {
		{ "tandem_version", TDM_VERSION, 0 },
		{ "tandem_input", machine->path, 0 },
		{ "tandem_machine", machine->name, 0 },
		{ "tandem_role", machine->is_host ? "host" : "guest", 0 },
		{ "tandem_corrections",
			!machine->timeline     ? "none"
			: machine->corrections ? machine->corrections
					       : "offset given by hand",
			0 },
		{ "tandem_bound_ns", NULL, (int64_t)machine->bound_ns },
		{ "tandem_source_tracer", is_kernel ? "lttng-ust" : NULL, 0 },
	};
	struct tdm_buffer out = { 0 };
	char path[PATH_MAX];
	enum tdm_status status;

	changes->env = env;
	changes->env_count = is_kernel ? 7 : 6;
	changes->as_kernel = is_kernel;
	changes->makes_absolute = ctf->count > 1 || ctf->is_mixed;
	changes->clock_uuid = *machine->new_uuid ? machine->new_uuid : NULL;
	convert_ctf_join(path, dir, "metadata");
	status = tdm_ctf_rewrite(path, text, changes, &out, err);
	if (status == TDM_OK && threads) {
		uint64_t bytes = 0;

		status = ctf_state_dump_put(threads, dir, &out, &bytes, err);
		machine->report.stream_count += bytes > 0;
		machine->report.bytes += bytes;
	}
	if (status == TDM_OK) {
		FILE *const file = fopen(path, "wbe");

		if (!file || fwrite(out.bytes, 1, out.size, file) != out.size) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
		if (file && fclose(file) != 0 && status == TDM_OK) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
	}
	tdm_buffer_release(&out);
	return status;
}

/* Every event through a graph, into @p to; what was written is then rewritten too. */
static enum tdm_status through_graph(struct convert_ctf *ctf, struct ctf_machine *machine,
	const char *from, const char *to, const struct tsdl_metadata *metadata,
	struct ctf_threads *threads, struct tdm_buffer *text, struct tdm_error *err)
{
	struct convert_ctf_filter filter = convert_ctf_filter_of(ctf, machine, metadata);
	struct tsdl_metadata written;
	enum tdm_status status;

	filter.threads = threads;
	machine->through_graph = true;
	status = convert_ctf_graph(
		ctf->command, from, to, &filter, &machine->report, &machine->counts, metadata, err);
	text->size = 0;
	if (status == TDM_OK) {
		status = convert_ctf_metadata(to, text, &written, err);
		tsdl_release(&written);
	}
	return status;
}

/* Into @p to, which exists. */
static enum tdm_status convert_trace(struct convert_ctf *ctf, struct ctf_machine *machine,
	const char *from, const char *to, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	struct tsdl_metadata metadata;
	struct tdm_ctf_changes changes = { 0 };
	int64_t offset = 0;
	enum tdm_status status = convert_ctf_metadata(from, &text, &metadata, err);
	const bool is_all = tdm_selection_is_all(&ctf->options->convert.selection);
	struct ctf_threads threads = { 0 };
	const bool has_own = status == TDM_OK && tsdl_has_event(&metadata, "tandem:syscall_");
	const bool is_own = has_own && ctf->options->as_kernel;

	machine->has_user_calls |= has_own && !is_own;
	if (status != TDM_OK) {
		/* The machine's other traces still come. */
		TDM_ERROR(&ctf->command->log, "%s: this trace is left out", err->text);
		machine->unread_traces++;
		status = TDM_OK;
	} else if (!is_all || is_own ||
		   (machine->timeline && !is_shift(machine, &metadata, &offset))) {
		status = through_graph(
			ctf, machine, from, to, &metadata, is_own ? &threads : NULL, &text, err);
		changes.plain_cpu_id = true;
		changes.one_clock = true;
		if (status == TDM_OK) {
			status = write_metadata(ctf, machine, to, &text, &changes,
				is_own && ctf->options->convert.synthetic ? &threads : NULL, err);
		}
	} else {
		status = tdm_ctf_clone(
			from, to, &metadata, &ctf->command->log, &machine->report, err);
		changes.sets_offset = machine->timeline != NULL;
		if (machine->timeline) {
			changes.clock_offset_ns =
				(int64_t)((uint64_t)offset +
					  (uint64_t)convert_ctf_epoch(ctf, machine));
		}
		if (status == TDM_OK) {
			status = write_metadata(ctf, machine, to, &text, &changes, NULL, err);
		}
	}
	ctf_threads_release(&threads);
	tsdl_release(&metadata);
	tdm_buffer_release(&text);
	return status;
}

/* The folder of a trace below its machine's: none where the machine has one trace only. */
static void trace_folder(const struct ctf_machine *machine, size_t index, char *name, size_t room)
{
	const char *below = machine->traces.paths[index] + strlen(machine->path);

	name[0] = '\0';
	if (machine->traces.count == 1) {
		return;
	}
	while (*below == '/') {
		below++;
	}
	snprintf(name, room, "%s", *below ? below : "trace");
	for (char *at = name; *at; at++) {
		*at = *at == '/' ? '-' : *at;
	}
}

static enum tdm_status convert_machine(struct convert_ctf *ctf, struct ctf_machine *machine,
	const char *dir, struct tdm_error *err)
{
	enum tdm_status status = tdm_ctf_dir_begin(
		&machine->dir, dir, machine->name, ctf->options->convert.force, err);

	for (size_t i = 0; i < machine->traces.count && status == TDM_OK; i++) {
		char folder[NAME_MAX + 2], to[PATH_MAX];

		trace_folder(machine, i, folder, sizeof(folder));
		convert_ctf_join(to, machine->dir.work_path, folder);
		if (*folder && mkdir(to, 0777) != 0) {
			return tdm_fail_errno(err, errno, "%s", to);
		}

		const uint64_t before = machine->report.stream_count;

		status = convert_trace(ctf, machine, machine->traces.paths[i], to, err);
		if (status == TDM_OK && *folder && machine->report.stream_count == before) {
			/* A trace that nobody wrote to: a metadata file alone is nothing to open. */
			char metadata[PATH_MAX];

			convert_ctf_join(metadata, to, "metadata");
			unlink(metadata);
			rmdir(to);
		}
	}
	return status;
}

static void print_machine(const struct convert_ctf *ctf, const struct ctf_machine *machine)
{
	const struct tdm_ctf_clone_report *const report = &machine->report;

	printf("%s: %zu CTF trace%s of %s, %" PRIu64 " stream%s of %" PRIu64
	       " bytes written to %s (%s)",
		machine->name, machine->traces.count, machine->traces.count == 1 ? "" : "s",
		machine->path, report->stream_count, report->stream_count == 1 ? "" : "s",
		report->bytes, machine->dir.final_path,
		!machine->through_graph ? "streams copied"
		: machine->timeline     ? "every stamp corrected"
					: "a part chosen");
	if (machine->counts.in) {
		printf(", %" PRIu64 " of %" PRIu64 " events", machine->counts.out,
			machine->counts.in);
	}
	if (report->idle_streams) {
		printf(", %" PRIu64 " without events left out", report->idle_streams);
	}
	if (report->empty_packets) {
		printf(", %" PRIu64 " empty packets left out", report->empty_packets);
	}
	if (machine->timeline) {
		printf("\n    clock: put on the host's by %s%s",
			machine->corrections ? "the corrections file " : "",
			machine->corrections ? machine->corrections : "offset given by hand");
		if (machine->corrections) {
			printf(", known to +-%" PRIu64 " ns", machine->bound_ns);
		}
		putchar('\n');
	} else {
		printf("\n    clock: %s\n", machine->is_host ? "its own, the reference"
					    : ctf->count > 1
						    ? "its own, nothing relates it to the host's"
						    : "its own");
	}
	if (machine->has_user_calls) {
		printf("    a user-space trace of system calls: --as-kernel makes it a kernel trace for Trace Compass\n");
	}
}

bool convert_ctf_say_faults(const struct convert_ctf *ctf, const struct ctf_machine *machine)
{
	const struct tdm_log *const log = &ctf->command->log;
	const struct tdm_ctf_clone_report *const report = &machine->report;
	const struct convert_options *const options = ctf->options;
	bool incomplete = machine->unread_traces > 0;

	if (report->damaged_packets) {
		TDM_ERROR(log,
			"%s: %" PRIu64 " packets of its streams are damaged: %" PRIu64
			" bytes make no sense and are left out",
			machine->path, report->damaged_packets, report->damaged_bytes);
		incomplete = true;
	}
	if (report->unread_files) {
		TDM_ERROR(log, "%s: %" PRIu64 " of its stream files could not be read",
			machine->path, report->unread_files);
		incomplete = true;
	}
	for (size_t i = 0; i < machine->traces.orphan_count; i++) {
		TDM_ERROR(log,
			"%s is a stream of a CTF trace, but the \"metadata\" beside it is missing: left out",
			machine->traces.orphans[i]);
		incomplete = true;
	}
	if (options->has_target && machine->timeline &&
		machine->bound_ns > options->target_bound_ns) {
		TDM_ERROR(log,
			"%s: its clock is known to %" PRIu64 " ns, the target is %" PRIu64 " ns",
			machine->name, machine->bound_ns, options->target_bound_ns);
		incomplete = true;
	}
	return incomplete;
}

int convert_ctf_run(struct convert_ctf *ctf, const char *dir)
{
	struct tdm_error err = { 0 };
	enum tdm_status status = TDM_OK;
	bool incomplete = ctf->unread_count > 0;

	for (size_t i = 0; i < ctf->count && status == TDM_OK; i++) {
		status = convert_machine(ctf, &ctf->machines[i], dir, &err);
	}
	for (size_t i = 0; i < ctf->count && status == TDM_OK; i++) {
		status = tdm_ctf_dir_commit(&ctf->machines[i].dir, &err);
	}
	if (status != TDM_OK) {
		return cli_failed(ctf->command, &err);
	}
	for (size_t i = 0; i < ctf->count; i++) {
		if (!ctf->command->quiet) {
			print_machine(ctf, &ctf->machines[i]);
		}
		incomplete |= convert_ctf_say_faults(ctf, &ctf->machines[i]);
	}
	return incomplete ? TDM_EXIT_INCOMPLETE : TDM_EXIT_DONE;
}
