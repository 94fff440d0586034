/* SPDX-License-Identifier: MIT */
/*
 * convert.c - tandem convert: host and guest traces become CTF for Trace Compass, or JSON for the browser.
 */
#include "convert_ctf.h"
#include "convert_options.h"
#include "out_dir.h"
#include "view_beside.h"
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

/* What put the machine's stamps where they are. */
static void print_clock(const struct tdm_convert_report *report)
{
	const struct tdm_machine *const machine = report->machine;
	const bool is_shifted =
		machine->tie == TDM_TIE_SHIFT ||
		(machine->tie == TDM_TIE_SELF && tdm_trace_get_info(machine->trace)->has_peer);

	fputs("\n    clock: ", stdout);
	if (machine->corrections && is_by_hand(machine)) {
		printf("put on the host's by %s", machine->corrections_path);
	} else if (machine->corrections) {
		printf("put on the host's by the corrections file %s, known to +-%" PRId64 " ns",
			machine->corrections_path, report->bound_ns);
	} else if (is_shifted) {
		fputs("put on the host's by the time shift in the file; how well is not known",
			stdout);
	} else if (machine->tie == TDM_TIE_SELF) {
		fputs("its own, the reference", stdout);
	} else if (machine->tie == TDM_TIE_SAME) {
		fputs("the reference, it is the same machine", stdout);
	} else {
		fputs("its own, nothing relates it to the host's", stdout);
	}
	if (report->clamped) {
		printf("; %" PRIu64 " times went back and were raised", report->clamped);
	}
	printf("\n");
}

static void print_report(const struct tdm_convert_report *report)
{
	printf("%s: %" PRIu64 " records read from %s, %" PRIu64
	       " events of %zu CPU%s written to %s",
		report->machine->name, report->records, report->machine->path, report->events,
		report->cpu_count, report->cpu_count == 1 ? "" : "s", report->path);
	if (report->synthetic) {
		printf(", and %" PRIu64 " made up for the views", report->synthetic);
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
	print_clock(report);
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

/* What a conversion is made of. */
struct conversion {
	const struct cli_command *command;
	struct convert_options *options;
	char *dir;
	struct convert_ctf *ctf;       /* NULL: none of the inputs is CTF */
	struct tdm_machines *machines; /* NULL: all are */
	struct tdm_json_file json;     /* with --to json */
	bool incomplete;               /* an input could not be read: told */
};

/* Says that an input cannot be read, as long as others can. */
static void leave_out(struct conversion *conversion, const char *text)
{
	TDM_ERROR(&conversion->command->log, "%s", text);
	conversion->incomplete = true;
}

/* ---- inputs ---- */

static size_t count_kind(const struct convert_options *options, enum convert_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < options->input_count; i++) {
		count += options->kinds[i] == kind;
	}
	return count;
}

/* Folders with nothing in them are left out. */
static enum tdm_status sort_inputs(struct conversion *conversion, struct tdm_error *err)
{
	struct convert_options *const options = conversion->options;
	bool any = false;

	for (size_t i = 0; i < options->input_count; i++) {
		struct tdm_error fault = { 0 };

		options->kinds[i] = convert_kind_of(options->inputs[i].path, &fault);
		if (options->kinds[i] != CONVERT_FOLDER) {
			any = true;
		} else if (options->input_count == 1) {
			*err = fault;
		} else {
			leave_out(conversion, fault.text);
		}
	}
	if (!any && options->input_count > 1) {
		tdm_fail(err, TDM_ERR_FORMAT, "nothing among the inputs can be converted");
	}
	return any ? TDM_OK : TDM_ERR_FORMAT;
}

static bool add_named(struct cli_named_list *list, const char *name, const char *text)
{
	if (!cli_named_add(list, "")) {
		return false;
	}

	struct cli_named *const item = &list->items[list->count - 1];

	snprintf(item->name, sizeof(item->name), "%s", name ? name : "");
	item->text = text;
	return true;
}

/* Where the host is, if it is CTF. */
static const char *ctf_host_path(const struct convert_options *options)
{
	bool named_host = false;

	for (size_t i = 0; i < options->input_count; i++) {
		const char *const name = options->inputs[i].name;

		if (name && strcmp(name, TDM_HOST_NAME) == 0) {
			named_host = true;
			if (options->kinds[i] == CONVERT_CTF) {
				return options->inputs[i].path;
			}
		}
	}
	return !named_host && !options->inputs[0].name && options->kinds[0] == CONVERT_CTF
		       ? options->inputs[0].path
		       : NULL;
}

/* Corrections that lie beside files, as tandem view takes them; what the user gave is in the list already. */
static enum tdm_status find_beside(const struct conversion *conversion,
	const struct tdm_machine_input *inputs, size_t count,
	const struct tdm_machines_options *how, struct cli_named_list *corrections,
	struct tdm_error *err)
{
	const struct view_beside_files files = { .items = inputs,
		.count = count,
		.host_is_elsewhere = how->host_is_elsewhere,
		.host_path = ctf_host_path(conversion->options) };
	struct cli_named_list offsets = { NULL, 0 };
	enum tdm_status status = TDM_OK;
	bool done = true;

	for (size_t i = 0; done && i < how->correction_count; i++) {
		done = add_named(corrections, how->corrections[i].guest, how->corrections[i].path);
	}
	for (size_t i = 0; done && i < how->offset_count; i++) {
		done = add_named(&offsets, how->offsets[i].machine, "");
	}
	status = done ? view_beside_find(
				&files, corrections, &offsets, &conversion->command->log, err)
		      : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	cli_named_release(&offsets);
	return status;
}

/* Those that are no CTF. */
static enum tdm_status open_records(struct conversion *conversion, struct tdm_error *err)
{
	const struct convert_options *const options = conversion->options;
	struct tdm_machine_input *const inputs = calloc(options->input_count + 1, sizeof(*inputs));
	struct tdm_correction_input *given = NULL;
	struct cli_named_list corrections = { NULL, 0 };
	struct tdm_machines_options how = options->machines;
	size_t count = 0;
	size_t unopened = 0;
	enum tdm_status status;

	if (!inputs) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	for (size_t i = 0; i < options->input_count; i++) {
		if (options->kinds[i] == CONVERT_RECORDS) {
			inputs[count++] = options->inputs[i];
		}
	}
	how.keep_going = true;
	if (conversion->ctf) {
		convert_ctf_fill(conversion->ctf, &how, options->corrections, options->offsets);
	}
	status = find_beside(conversion, inputs, count, &how, &corrections, err);
	given = calloc(corrections.count + 1, sizeof(*given));
	if (status == TDM_OK && !given) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	for (size_t i = 0; status == TDM_OK && i < corrections.count; i++) {
		const struct cli_named *const item = &corrections.items[i];

		given[i].guest = *item->name ? item->name : NULL;
		given[i].path = item->text;
	}
	how.corrections = given;
	how.correction_count = corrections.count;
	if (status == TDM_OK) {
		status = tdm_machines_open(
			inputs, count, &how, &conversion->command->log, &conversion->machines, err);
	}
	if (status == TDM_OK) {
		status = tdm_machines_put_aside_unopened(conversion->machines, &unopened, err);
		conversion->incomplete |= unopened > 0;
	}
	if (status != TDM_OK) {
		tdm_machines_close(conversion->machines);
		conversion->machines = NULL;
	}
	cli_named_release(&corrections);
	free(given);
	free(inputs);
	return status;
}

/* All inputs. What cannot be opened is told, and an error only where nothing else is there. */
static enum tdm_status open_inputs(struct conversion *conversion, struct tdm_error *err)
{
	const struct convert_options *const options = conversion->options;
	struct tdm_error fault = { 0 };
	enum tdm_status status = sort_inputs(conversion, err);

	if (status == TDM_OK && count_kind(options, CONVERT_CTF)) {
		status = convert_ctf_open(conversion->command, options, &conversion->ctf, err);
		if (status == TDM_ERR_FORMAT && count_kind(options, CONVERT_RECORDS)) {
			leave_out(conversion, err->text);
			status = TDM_OK;
		}
	}
	if (status != TDM_OK || !count_kind(options, CONVERT_RECORDS)) {
		return status;
	}
	status = open_records(conversion, conversion->ctf ? &fault : err);
	if (status != TDM_OK && status != TDM_ERR_NOMEM && status != TDM_ERR_RANGE &&
		conversion->ctf) {
		leave_out(conversion, fault.text);
		return TDM_OK;
	}
	if (status != TDM_OK && conversion->ctf) {
		*err = fault;
	}
	for (size_t i = 0;
		status == TDM_OK && conversion->ctf && i < tdm_machines_count(conversion->machines);
		i++) {
		convert_ctf_note_machine(conversion->ctf, tdm_machines_at(conversion->machines, i));
	}
	return status;
}

/* ---- outputs ---- */

/* trace.dat and perf.data. @return An exit status. */
static int convert_machines(struct conversion *conversion)
{
	const struct cli_command *const command = conversion->command;
	const struct convert_options *const options = conversion->options;
	const size_t count = tdm_machines_count(conversion->machines);
	struct tdm_convert_report *const reports = calloc(count + 1, sizeof(*reports));
	struct tdm_error err = { 0 };
	struct progress progress = { 0 };
	struct tdm_convert_options convert = options->convert;
	enum tdm_status status = TDM_ERR_NOMEM;
	int result;

	convert.out_dir = conversion->dir;
	convert.stop = &stop_asked;
	clock_gettime(CLOCK_MONOTONIC, &progress.start);
	if (!command->quiet && isatty(STDERR_FILENO)) {
		convert.progress = show_progress;
		convert.user = &progress;
	}
	if (!reports) {
		tdm_fail(&err, status, "no memory");
	} else if (options->to_json) {
		status = tdm_convert_put_json(conversion->machines, &convert, &command->log,
			&conversion->json, reports, &err);
	} else {
		status = tdm_convert_run(
			conversion->machines, &convert, &command->log, reports, &err);
	}
	clear_progress(&progress);
	if (status == TDM_OK) {
		result = report_all(command, options, reports, count);
	} else {
		if (status == TDM_END) {
			tdm_fail(&err, TDM_END, "stopped; nothing was written");
		}
		result = cli_failed(command, &err);
	}
	for (size_t i = 0; reports && i < count; i++) {
		tdm_convert_report_release(&reports[i]);
	}
	free(reports);
	return result;
}

/* Whatever was opened, each in its way into one directory. */
static int convert_all(struct conversion *conversion)
{
	int result = TDM_EXIT_DONE;

	if (conversion->machines) {
		result = convert_machines(conversion);
	}
	if (conversion->ctf && (result == TDM_EXIT_DONE || result == TDM_EXIT_INCOMPLETE)) {
		const int ctf = conversion->options->to_json
					? convert_ctf_put_json(conversion->ctf, &conversion->json)
					: convert_ctf_run(conversion->ctf, conversion->dir);

		/* What came before is there and stays. */
		if (ctf == TDM_EXIT_FAILED && conversion->machines &&
			!conversion->options->to_json) {
			result = TDM_EXIT_INCOMPLETE;
		} else if (ctf != TDM_EXIT_DONE) {
			result = ctf;
		}
	}
	return result == TDM_EXIT_DONE && conversion->incomplete ? TDM_EXIT_INCOMPLETE : result;
}

static int convert_to_json(struct conversion *conversion)
{
	struct tdm_error err = { 0 };
	int result;

	if (tdm_json_begin(&conversion->json, conversion->dir, conversion->options->convert.force,
		    &err) != TDM_OK) {
		result = cli_failed(conversion->command, &err);
	} else {
		result = convert_all(conversion);
		if ((result == TDM_EXIT_DONE || result == TDM_EXIT_INCOMPLETE) &&
			tdm_json_commit(&conversion->json, &err) != TDM_OK) {
			result = cli_failed(conversion->command, &err);
		}
	}
	tdm_json_release(&conversion->json);
	return result;
}

static int convert(const struct cli_command *command, struct convert_options *options)
{
	struct conversion conversion = { .command = command, .options = options };
	struct tdm_error err = { 0 };
	int result;

	if (open_inputs(&conversion, &err) != TDM_OK) {
		result = cli_failed(command, &err);
	} else if (!(conversion.dir = out_dir_create(options->out_dir, &err))) {
		result = cli_failed(command, &err);
	} else {
		result = options->to_json ? convert_to_json(&conversion) : convert_all(&conversion);
		/* A directory that was made for this and stayed empty goes; any other stays. */
		(void)rmdir(conversion.dir);
	}
	if (result == TDM_EXIT_DONE || result == TDM_EXIT_INCOMPLETE) {
		tdm_selection_tell_unused(&options->convert.selection, &command->log);
	}
	convert_ctf_close(conversion.ctf);
	tdm_machines_close(conversion.machines);
	free(conversion.dir);
	return result;
}

int tdm_convert_main(int argc, char **argv)
{
	struct cli_command command;
	struct convert_options options;
	int result = convert_options_parse(&options, &command, argc, argv);

	if (result == -1) {
		watch_signals();
		result = convert(&command, &options);
	}
	convert_options_release(&options);
	return result;
}
