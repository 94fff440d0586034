/* SPDX-License-Identifier: MIT */
#include "causality.h"
#include "causality_read.h"
#include "clock/flt_host_clock.h"
#include "json_writer.h"
#include "plugin_find.h"
#include "view_plan.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One machine to read: an input of its own, or a trace among those of source.tandem.tracedat. */
struct machine {
	char name[TDM_MACHINE_NAME_MAX + 1];
	const struct view_input *input; /* NULL: a trace.dat, found by its trace's name */
	bool is_host;
	char tie[PATH_MAX + 32]; /* what puts it on the host's clock */
};

struct run {
	const struct cli_command *command;
	const struct view_options *options;
	struct view_inputs inputs;
	struct machine *machines;
	size_t count;
	struct causality *model;
	char folder[PATH_MAX];
	bool json;
	bool complete;
	bool was_read; /* a machine was */
	struct json_writer writer;
};

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory");
}

/* ---- which machines ---- */

static enum tdm_status open_tracedat(
	struct run *run, struct tdm_machines **machines, struct tdm_error *err)
{
	const struct view_options *options = run->options;
	struct tdm_machine_input *inputs = calloc(options->inputs.count + 1, sizeof(*inputs));
	struct tdm_correction_input *corrections =
		calloc(options->corrections.count + 1, sizeof(*corrections));
	struct tdm_offset_input *offsets = calloc(options->offsets.count + 1, sizeof(*offsets));
	enum tdm_status status = TDM_ERR_NOMEM;

	if (inputs && corrections && offsets) {
		for (size_t i = 0; i < options->inputs.count; i++) {
			const struct cli_named *item = &options->inputs.items[i];

			inputs[i].name = *item->name ? item->name : NULL;
			inputs[i].path = item->text;
		}
		for (size_t i = 0; i < options->corrections.count; i++) {
			const struct cli_named *item = &options->corrections.items[i];

			corrections[i].guest = *item->name ? item->name : NULL;
			corrections[i].path = item->text;
		}
		for (size_t i = 0; i < options->offsets.count; i++) {
			const struct cli_named *item = &options->offsets.items[i];

			offsets[i].machine = *item->name ? item->name : NULL;
			if (!cli_parse_int(item->text, &offsets[i].offset)) {
				status = tdm_fail(err, TDM_ERR_RANGE,
					"--offset: \"%s\" is no number of ns", item->text);
				goto out;
			}
		}

		const struct tdm_machines_options how = {
			.corrections = corrections,
			.correction_count = options->corrections.count,
			.offsets = offsets,
			.offset_count = options->offsets.count,
		};

		status =
			tdm_machines_open(inputs, options->inputs.count, &how, NULL, machines, err);
	} else {
		status = no_memory(err);
	}
out:
	free(inputs);
	free(corrections);
	free(offsets);
	return status;
}

static enum tdm_status list_tracedat(struct run *run, struct tdm_error *err)
{
	struct tdm_machines *machines = NULL;
	const enum tdm_status status = open_tracedat(run, &machines, err);

	if (status != TDM_OK) {
		return status;
	}
	run->count = tdm_machines_count(machines);
	run->machines = calloc(run->count + 1, sizeof(*run->machines));
	for (size_t i = 0; run->machines && i < run->count; i++) {
		const struct tdm_machine *machine = tdm_machines_at(machines, i);

		memcpy(run->machines[i].name, machine->name, sizeof(machine->name));
		run->machines[i].is_host = machine->is_host;
		/* Of corrections the path, as for CTF: or the words for an offset given by hand. */
		snprintf(run->machines[i].tie, sizeof(run->machines[i].tie), "%s",
			machine->corrections_path ? machine->corrections_path
						  : tdm_tie_words(machine->tie));
	}
	tdm_machines_close(machines);
	return run->machines ? TDM_OK : no_memory(err);
}

static enum tdm_status list_machines(struct run *run, struct tdm_error *err)
{
	const enum tdm_status status =
		view_inputs_read(run->options, &run->inputs, &run->command->log, err);

	if (status != TDM_OK) {
		return status;
	}
	if (run->inputs.only_tracedat) {
		return list_tracedat(run, err);
	}
	run->count = run->inputs.count;
	run->machines = calloc(run->count + 1, sizeof(*run->machines));
	if (!run->machines) {
		return no_memory(err);
	}
	for (size_t i = 0; i < run->count; i++) {
		const struct view_input *input = &run->inputs.items[i];
		struct machine *machine = &run->machines[i];

		machine->input = input;
		machine->is_host = input->is_host;
		memcpy(machine->name, input->name, sizeof(machine->name));
		snprintf(machine->tie, sizeof(machine->tie), "%s",
			*input->corrections ? input->corrections : "nothing");
	}
	return TDM_OK;
}

/* ---- reading ---- */

static enum tdm_status read_machine(struct run *run, size_t index, struct tdm_error *err)
{
	const struct machine *machine = &run->machines[index];
	struct view_graph graph = { 0 };
	struct causality_reader reader = {
		.model = run->model,
		.is_host = machine->is_host,
		.machine = machine->input ? NULL : machine->name,
	};
	size_t muxer = VIEW_NONE;
	/* trace.dat files are read together for each machine: their warnings are said at the first time. */
	const bool was_said = run->inputs.only_tracedat && run->was_read;
	enum tdm_status status = view_plan_merge(&graph, run->options, &run->inputs, machine->input,
		&run->command->log, &muxer, err);

	if (status == TDM_OK) {
		const enum view_end end = view_graph_feed(&graph, run->folder, "tandem info",
			was_said              ? BT_LOGGING_LEVEL_NONE
			: run->command->quiet ? BT_LOGGING_LEVEL_ERROR
					      : BT_LOGGING_LEVEL_WARNING,
			muxer, causality_read, &reader);

		run->was_read = true;
		run->complete = run->complete && end == VIEW_DONE;
		if (end == VIEW_FAILED) {
			status = tdm_fail(
				err, TDM_ERR_FORMAT, "%s: nothing could be read", machine->name);
		}
	}
	causality_reader_release(&reader);
	view_graph_release(&graph);
	return status;
}

/* ---- the report ---- */

/* Without this a count of 0 would be no praise: nothing was held against anything. */
static bool is_known(const struct causality_report *report)
{
	return report->judged || report->to_guest.pairs || report->to_host.pairs;
}

/* Another guest's events, or wrong corrections: most lie where this host's guest did not run, or never ran. */
static bool is_doubtful(const struct causality_report *report)
{
	uint64_t beyond = 0, with_windows = 0;

	for (size_t i = 0; i < report->vcpu_count; i++) {
		const struct causality_vcpu *vcpu = &report->vcpus[i];

		if (vcpu->windows) {
			beyond += vcpu->beyond;
			with_windows += vcpu->judged + vcpu->beyond;
		}
	}
	return with_windows && report->outside + beyond > with_windows / 2;
}

/*
 * What TCP packets in both directions tell of the clocks: none is received before it was sent, so what is to be added to the
 * guest's times lies between two bounds. @return False where they tell nothing.
 */
static bool find_shift(const struct causality_report *report, int64_t *least_ns, int64_t *most_ns)
{
	*least_ns = -report->to_guest.least_ns;
	*most_ns = report->to_host.least_ns;
	return report->to_guest.pairs && report->to_host.pairs;
}

/*
 * The offset by hand (--offset: of readings) that adds a shift to a guest's times as they are now. @return False where it
 * is not known: only LTTng's packets have headers, so only CTF is asked.
 */
static bool find_offset(
	const struct run *run, const struct machine *machine, int64_t shift_ns, int64_t *offset_ns)
{
	const struct view_input *const guest = machine->input;
	struct flt_host_clock own, hosts;
	struct tdm_error fault;

	if (guest && strncmp(guest->corrections, "offset:", 7) == 0) {
		return cli_parse_int(guest->corrections + 7, offset_ns) &&
		       !__builtin_add_overflow(*offset_ns, shift_ns, offset_ns);
	}
	for (size_t i = 0; guest && !*guest->corrections && i < run->count; i++) {
		const struct view_input *const host = run->machines[i].input;

		if (run->machines[i].is_host && host && host->kind == VIEW_CTF &&
			guest->kind == VIEW_CTF &&
			flt_host_clock_epoch(guest->path, NULL, &own, &fault) == TDM_OK &&
			flt_host_clock_epoch(host->path, NULL, &hosts, &fault) == TDM_OK) {
			return !__builtin_sub_overflow(own.epoch_ns, hosts.epoch_ns, offset_ns) &&
			       !__builtin_add_overflow(*offset_ns, shift_ns, offset_ns);
		}
	}
	return false;
}

static void print_shift(
	const struct run *run, const struct machine *machine, const struct causality_report *report)
{
	int64_t least_ns, most_ns, offset_ns;

	if (!find_shift(report, &least_ns, &most_ns)) {
		return;
	}
	if (least_ns > most_ns) {
		puts("  no one offset puts all packets in order: the clocks run apart or one stepped; tandem sync measures that while one "
		     "records");
		return;
	}

	const int64_t middle_ns = least_ns + (most_ns - least_ns) / 2;

	printf("  packets bound what is to be added to its times: %" PRId64 " to %" PRId64 " ns\n",
		least_ns, most_ns);
	if ((least_ns > 0 || most_ns < 0) && find_offset(run, machine, middle_ns, &offset_ns)) {
		printf("  so --offset %s=%" PRId64 " puts it on the host's clock, to +-%" PRId64
		       " ns\n",
			machine->name, offset_ns, most_ns - middle_ns);
	}
}

static void print_text(
	const struct run *run, const struct machine *machine, const struct causality_report *report)
{
	printf("%s, put on the host's clock by: %s\n", machine->name, machine->tie);
	for (size_t i = 0; i < report->vcpu_count; i++) {
		const struct causality_vcpu *vcpu = &report->vcpus[i];

		if (!vcpu->windows) {
			printf("  CPU %" PRIu32
			       ": the host's trace has no kvm_entry and kvm_exit of this vCPU, %" PRIu64
			       " events not judged\n",
				vcpu->vcpu, vcpu->beyond);
			continue;
		}
		printf("  CPU %" PRIu32, vcpu->vcpu);
		if (vcpu->tid >= 0) {
			printf(" (host thread %" PRId32 ")", vcpu->tid);
		}
		printf(": %" PRIu64 " events, %" PRIu64 " outside the %" PRIu64
		       " windows in which it ran",
			vcpu->judged, vcpu->outside, vcpu->windows);
		if (vcpu->outside) {
			printf(", %" PRId64 " ns away at the median, %" PRId64 " ns at most",
				vcpu->outside_median_ns, vcpu->outside_most_ns);
		}
		printf("; %" PRIu64 " beyond the first and last window\n", vcpu->beyond);
	}
	printf("  TCP packets host to guest: %" PRIu64 ", received before sent: %" PRIu64 "\n",
		report->to_guest.pairs, report->to_guest.violations);
	printf("  TCP packets guest to host: %" PRIu64 ", received before sent: %" PRIu64 "\n",
		report->to_host.pairs, report->to_host.violations);
	print_shift(run, machine, report);
	if (report->has_room && !report->outside) {
		printf("  an error of the clocks would show from %" PRId64
		       " ns (guest too early) or %" PRId64 " ns (guest too late) on\n",
			1 - report->room_back_ns, 1 + report->room_ahead_ns);
	}
	if (is_doubtful(report)) {
		puts("  doubt: most of its events lie outside every window of this host's guests: a guest of another host, another "
		     "time, or a wrong correction");
	}
	if (!is_known(report)) {
		puts("  nothing could be judged: record kvm_entry, kvm_exit and sched_switch on the host (LTTng: kvm_x86_entry, "
		     "kvm_x86_exit), or net events with headers on both");
		puts("  contradictions: not known");
		return;
	}
	printf("  contradictions: %" PRIu64 "\n", report->contradictions);
}

static void print_packets(
	struct json_writer *json, const char *name, const struct causality_packets *packets)
{
	json_object_begin(json, name);
	json_uint(json, "pairs", packets->pairs);
	json_uint(json, "violations", packets->violations);
	json_int(json, "least_ns", packets->least_ns);
	json_int(json, "median_ns", packets->median_ns);
	json_object_end(json);
}

static void print_json(
	struct run *run, const struct machine *machine, const struct causality_report *report)
{
	struct json_writer *const json = &run->writer;
	int64_t least_ns, most_ns, offset_ns;

	json_object_begin(json, NULL);
	json_text(json, "guest", machine->name);
	json_text(json, "correction", machine->tie);
	json_array_begin(json, "vcpus");
	for (size_t i = 0; i < report->vcpu_count; i++) {
		const struct causality_vcpu *vcpu = &report->vcpus[i];

		json_object_begin(json, NULL);
		json_uint(json, "vcpu", vcpu->vcpu);
		json_int(json, "host_tid", vcpu->tid);
		json_uint(json, "windows", vcpu->windows);
		json_uint(json, "judged", vcpu->judged);
		json_uint(json, "outside", vcpu->outside);
		json_uint(json, "beyond", vcpu->beyond);
		json_int(json, "outside_median_ns", vcpu->outside_median_ns);
		json_int(json, "outside_most_ns", vcpu->outside_most_ns);
		json_object_end(json);
	}
	json_array_end(json);
	print_packets(json, "tcp_host_to_guest", &report->to_guest);
	print_packets(json, "tcp_guest_to_host", &report->to_host);
	if (report->has_room) {
		json_int(json, "room_back_ns", report->room_back_ns);
		json_int(json, "room_ahead_ns", report->room_ahead_ns);
	}
	if (find_shift(report, &least_ns, &most_ns)) {
		json_int(json, "shift_least_ns", least_ns);
		json_int(json, "shift_most_ns", most_ns);
		if (least_ns <= most_ns &&
			find_offset(
				run, machine, least_ns + (most_ns - least_ns) / 2, &offset_ns)) {
			json_int(json, "offset_ns", offset_ns);
		}
	}
	json_bool(json, "doubt", is_doubtful(report));
	if (is_known(report)) {
		json_uint(json, "contradictions", report->contradictions);
	} else {
		json_null(json, "contradictions");
	}
	json_object_end(json);
}

static enum tdm_status judge_guests(struct run *run, struct tdm_error *err)
{
	uint64_t contradictions = 0;
	size_t guests = 0, judged = 0;

	run->writer = (struct json_writer){ .out = stdout };
	if (run->json) {
		json_object_begin(&run->writer, NULL);
		json_array_begin(&run->writer, "causality");
	}
	for (size_t i = 0; i < run->count; i++) {
		struct causality_report report;

		if (run->machines[i].is_host) {
			continue;
		}
		causality_forget_guest(run->model);

		const enum tdm_status status = read_machine(run, i, err);

		if (status != TDM_OK) {
			return status;
		}
		if (!causality_judge(run->model, &report)) {
			return no_memory(err);
		}
		if (run->json) {
			print_json(run, &run->machines[i], &report);
		} else {
			print_text(run, &run->machines[i], &report);
		}
		contradictions += report.contradictions;
		judged += is_known(&report);
		guests++;
	}
	if (run->json) {
		json_array_end(&run->writer);
		if (judged) {
			json_uint(&run->writer, "contradictions", contradictions);
		} else {
			json_null(&run->writer, "contradictions");
		}
		json_object_end(&run->writer);
	} else if (guests > 1 && judged) {
		printf("contradictions in all: %" PRIu64 " (%zu of %zu guests could be judged)\n",
			contradictions, judged, guests);
	} else if (guests > 1) {
		puts("contradictions in all: not known");
	}
	return guests ? TDM_OK
		      : tdm_fail(err, TDM_ERR_RANGE,
				"causality wants a host's trace and a guest's: name them host=PATH and NAME=PATH");
}

int causality_run(const struct cli_command *command, const struct view_options *options, bool json)
{
	struct run run = { .command = command, .options = options, .json = json, .complete = true };
	struct tdm_error err = { .status = TDM_OK };
	enum tdm_status status;

	plugin_find_folder(run.folder);
	run.model = causality_create();
	status = run.model ? list_machines(&run, &err) : no_memory(&err);
	for (size_t i = 0; status == TDM_OK && i < run.count; i++) {
		if (run.machines[i].is_host) {
			status = read_machine(&run, i, &err);
		}
	}
	if (status == TDM_OK) {
		status = judge_guests(&run, &err);
	}
	causality_destroy(run.model);
	free(run.machines);
	view_inputs_release(&run.inputs);
	if (status != TDM_OK) {
		return cli_failed(command, &err);
	}
	return run.complete ? TDM_EXIT_DONE : TDM_EXIT_INCOMPLETE;
}
