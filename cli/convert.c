/* SPDX-License-Identifier: MIT */
/*
 * convert.c - tandem convert: host and guest traces become CTF for Trace Compass, or JSON for the browser.
 */
#include "convert_ctf.h"
#include "convert_options.h"
#include "out_dir.h"
#include <convert_trace.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/trace.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

static void watch_signals(void)
{
	struct sigaction action = { .sa_handler = ask_to_stop };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

struct progress {
	struct timespec start;
	bool was_shown;
};

static void show_progress(void *user, uint64_t event_count, size_t cpus_done, size_t cpu_count)
{
	struct progress *const progress = user;
	const unsigned int width = 30;
	const unsigned int filled = cpu_count ? (unsigned int)(width * cpus_done / cpu_count) : 0;
	struct timespec now;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = (double)(now.tv_sec - progress->start.tv_sec) +
		  (double)(now.tv_nsec - progress->start.tv_nsec) / 1e9;
	if (seconds < 1) {
		return; /* short work needs no bar */
	}
	fprintf(stderr, "\r[%.*s%*s] %zu of %zu CPUs, %.1f M events, %.1f M/s ", (int)filled,
		"##############################", (int)(width - filled), "", cpus_done, cpu_count,
		(double)event_count / 1e6, (double)event_count / 1e6 / seconds);
	progress->was_shown = true;
}

static void clear_progress(const struct progress *progress)
{
	if (progress->was_shown) {
		fprintf(stderr, "\r%78s\r", "");
	}
}

/* Whether its relation is one that the user gave as a number: "corrections_path" is then the words for it. */
static bool is_by_hand(const struct tdm_machine *machine)
{
	return machine->corrections_path &&
	       strcmp(machine->corrections_path, "offset given by hand") == 0;
}

static void print_report(const struct tdm_convert_report *report)
{
	printf("%s: %" PRIu64 " records of %s -> %" PRIu64 " events on %zu CPU%s in %s",
		report->machine->name, report->records, report->machine->path, report->events,
		report->cpu_count, report->cpu_count == 1 ? "" : "s", report->path);
	if (report->synthetic) {
		printf(", %" PRIu64 " made up", report->synthetic);
	}
	if (report->left_out) {
		printf(", %" PRIu64 " not selected", report->left_out);
	}
	if (report->lost || report->lost_unknown) {
		printf(", %" PRIu64 " lost by the tracer", report->lost);
		if (report->lost_unknown) {
			printf(" and %" PRIu64 " losses that it did not count",
				report->lost_unknown);
		}
	}
	if (report->unconverted) {
		printf(", %" PRIu64 " not convertible", report->unconverted);
	}
	if (report->unreadable_pages || report->unreadable_bytes) {
		printf(", %" PRIu64 " pages (%" PRIu64 " bytes) unreadable",
			report->unreadable_pages, report->unreadable_bytes);
	}
	if (report->machine->tie == TDM_TIE_CORRECTIONS && is_by_hand(report->machine)) {
		printf("\n    clock: %s", report->machine->corrections_path);
	} else {
		printf("\n    clock: %s", tdm_tie_words(report->machine->tie));
		if (report->machine->corrections_path) {
			printf(", %s", report->machine->corrections_path);
		}
	}
	if (report->machine->corrections) {
		printf(", known to %" PRId64 " ns", report->bound_ns);
	}
	if (report->clamped) {
		printf("; %" PRIu64 " times went back and were raised", report->clamped);
	}
	printf("\n");
}

/* Says each reason why the result is incomplete. @return Whether there is one. */
static bool say_faults(const struct cli_command *command, const struct convert_options *options,
	const struct tdm_convert_report *report)
{
	const struct tdm_trace *const trace = report->machine->trace;
	const size_t fault_count = tdm_trace_fault_count(trace);
	bool incomplete = fault_count > 0;

	for (size_t i = 0; i < fault_count; i++) {
		const struct tdm_fault fault = tdm_trace_fault_at(trace, i);

		if (fault.count > 1) {
			TDM_ERROR(&command->log, "%s (%" PRIu64 " times)", fault.text, fault.count);
		} else {
			TDM_ERROR(&command->log, "%s", fault.text);
		}
	}
	if (report->unconverted) {
		TDM_ERROR(&command->log, "%s: %" PRIu64 " records could not be converted",
			report->machine->path, report->unconverted);
		incomplete = true;
	}
	if (report->out_of_range) {
		TDM_ERROR(&command->log,
			"%s: %" PRIu64
			" times are out of what the output's clock can show, and stand at the time of the event before",
			report->machine->path, report->out_of_range);
		incomplete = true;
	}
	if (report->bad_fields) {
		TDM_ERROR(&command->log, "%s: %" PRIu64 " fields lie outside their records",
			report->machine->path, report->bad_fields);
		incomplete = true;
	}
	if (options->has_target && !report->machine->is_host &&
		(report->bound_ns < 0 || (uint64_t)report->bound_ns > options->target_bound_ns)) {
		if (report->bound_ns < 0) {
			TDM_ERROR(&command->log,
				"%s: how well its clock is known is not told, the target is %" PRIu64
				" ns",
				report->machine->name, options->target_bound_ns);
		} else {
			TDM_ERROR(&command->log,
				"%s: its clock is known to %" PRId64 " ns, the target is %" PRIu64
				" ns",
				report->machine->name, report->bound_ns, options->target_bound_ns);
		}
		incomplete = true;
	}
	return incomplete;
}

static int report_all(const struct cli_command *command, const struct convert_options *options,
	const struct tdm_convert_report *reports, size_t count)
{
	bool incomplete = false;

	for (size_t i = 0; i < count; i++) {
		if (!command->quiet) {
			print_report(&reports[i]);
		}
		incomplete |= say_faults(command, options, &reports[i]);
	}
	/* The traces are there: what is missing is the summary. */
	if (cli_end_output(command, TDM_EXIT_DONE) != TDM_EXIT_DONE) {
		incomplete = true;
	}
	return incomplete ? TDM_EXIT_INCOMPLETE : TDM_EXIT_DONE;
}

static int convert_machines(const struct cli_command *command,
	const struct convert_options *options, struct tdm_machines *machines)
{
	const size_t count = tdm_machines_count(machines);
	struct tdm_convert_report *const reports = calloc(count + 1, sizeof(*reports));
	struct tdm_error err = { 0 };
	struct progress progress = { 0 };
	struct tdm_convert_options convert = options->convert;
	char *const dir = out_dir_create(options->out_dir, &err);
	enum tdm_status status = reports && dir ? TDM_OK : TDM_ERR_NOMEM;
	int result;

	if (!dir) {
		free(reports);
		return cli_failed(command, &err);
	}
	convert.out_dir = dir;
	convert.stop = &stop_asked;
	clock_gettime(CLOCK_MONOTONIC, &progress.start);
	if (!command->quiet && isatty(STDERR_FILENO)) {
		convert.progress = show_progress;
		convert.user = &progress;
	}
	if (status == TDM_OK) {
		status = options->to_json ? tdm_convert_run_json(machines, &convert, &command->log,
						    reports, &err)
					  : tdm_convert_run(machines, &convert, &command->log,
						    reports, &err);
	}
	clear_progress(&progress);
	if (status == TDM_OK) {
		result = report_all(command, options, reports, count);
	} else {
		/* A directory that was made for this and stayed empty goes; any other stays. */
		(void)rmdir(dir);
		if (status == TDM_END) {
			tdm_fail(&err, TDM_END, "stopped; nothing was written");
		}
		result = cli_failed(command, &err);
	}
	for (size_t i = 0; reports && i < count; i++) {
		tdm_convert_report_release(&reports[i]);
	}
	free(reports);
	free(dir);
	return result;
}

/* trace.dat and perf.data. */
static int convert_records(const struct cli_command *command, const struct convert_options *options)
{
	struct tdm_machines *machines = NULL;
	struct tdm_error err = { 0 };
	int result;

	if (tdm_machines_open(options->inputs, options->input_count, &options->machines,
		    &command->log, &machines, &err) != TDM_OK) {
		result = cli_failed(command, &err);
	} else {
		result = convert_machines(command, options, machines);
	}
	tdm_machines_close(machines);
	return result;
}

/* CTF, and the inputs that are none beside it, each in its way into one directory. */
static int convert_ctf(const struct cli_command *command, struct convert_options *options)
{
	struct tdm_machine_input *const all = options->inputs;
	const size_t count = options->input_count;
	struct tdm_machine_input *const others = calloc(count, sizeof(*others));
	struct tdm_error err = { 0 };
	char *const dir = out_dir_create(options->out_dir, &err);
	const struct tdm_convert_selection *const selection = &options->convert.selection;
	size_t other_count = 0;
	int result = TDM_EXIT_DONE;

	if (!others || !dir) {
		result = cli_failed(
			command, dir ? &(struct tdm_error){ .text = "no memory" } : &err);
		free(others);
		free(dir);
		return result;
	}
	if (selection->has_begin || selection->has_end || selection->glob_count ||
		selection->cpu_range_count) {
		TDM_WARNING(&command->log,
			"--begin, --end, --events and --cpus do not apply to CTF inputs: all of them is converted");
	}
	for (size_t i = 0; i < count; i++) {
		if (!convert_ctf_is_input(all[i].path)) {
			others[other_count++] = all[i];
		}
	}
	if (other_count) {
		options->inputs = others;
		options->input_count = other_count;
		options->out_dir = dir;
		result = convert_records(command, options);
		options->inputs = all;
		options->input_count = count;
	}
	if (result == TDM_EXIT_DONE || result == TDM_EXIT_INCOMPLETE) {
		const int ctf = convert_ctf_run(command, options, dir);

		/* What came before is there and stays. */
		if (ctf == TDM_EXIT_FAILED && other_count) {
			result = TDM_EXIT_INCOMPLETE;
		} else if (ctf != TDM_EXIT_DONE) {
			result = ctf;
		}
	}
	(void)rmdir(dir); /* goes where nothing is in it */
	free(others);
	free(dir);
	return result;
}

static bool has_ctf(const struct convert_options *options)
{
	for (size_t i = 0; i < options->input_count; i++) {
		if (convert_ctf_is_input(options->inputs[i].path)) {
			return true;
		}
	}
	return false;
}

int tdm_convert_main(int argc, char **argv)
{
	struct cli_command command;
	struct convert_options options;
	int result = convert_options_parse(&options, &command, argc, argv);

	if (result == -1) {
		watch_signals();
		if (has_ctf(&options) && options.to_json) {
			result = cli_failed(&command,
				&(struct tdm_error){
					.text = "--to json is for trace.dat and perf.data, not for CTF" });
		} else if (has_ctf(&options)) {
			result = convert_ctf(&command, &options);
		} else {
			result = convert_records(&command, &options);
		}
	}
	convert_options_release(&options);
	return result;
}
