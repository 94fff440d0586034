/* SPDX-License-Identifier: MIT */
/*
 * info.c - tandem info: what is in the inputs, and how well their clocks are known.
 */
#include "causality.h"
#include "info_clock.h"
#include "info_ctf.h"
#include "info_report.h"
#include "options.h"
#include "view_beside.h"
#include "view_inputs.h"
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: tandem info [OPTION]... [NAME=]INPUT...\n"
	"Tells what is in traces: machines, clocks, buffers, events of each CPU, losses, how the clocks are tied; and of exchange\n"
	"logs and corrections files, how well two clocks are known.\n"
	"\n"
	"  --corrections [NAME=]FILE  put machine NAME on its host's clock by a corrections file; else NAME.corrections beside\n"
	"                             the inputs is used\n"
	"  --causality                contradictions between a host and its guests instead: guest events while the guest\n"
	"                             did not run, packets received before they were sent; also for LTTng's traces\n"
	"  --offset NAME=NS           with --causality: put NAME on its host's clock by hand\n"
	"  --plot FILE.svg            draw an exchange log or a corrections file, or the one with the other's estimate: offset,\n"
	"                             bound, doubt ranges and steps\n"
	"  --json                     the same as JSON\n"
	"  -q, --quiet                no warnings on stderr\n"
	"  -h, --help                 this text\n"
	"  --version                  the version\n"
	"\n"
	"Exit status: 0 all could be read, 1 nothing could, 2 usage, 3 some could not.\n"
	"\n"
	"Examples: tandem info trace.dat trace-guest.dat\n"
	"          tandem info --plot web.svg web.exchanges\n";

struct info_options {
	struct cli_named_list inputs;
	struct cli_named_list corrections;
	struct cli_named_list offsets;
	struct cli_named_list clocks; /* inputs that are exchange logs or corrections files */
	struct cli_named_list dirs;   /* inputs that are directories with CTF */
	const char *plot;
	bool json, causality;
};

/* The whole report. */
struct info {
	struct tdm_machines *machines;
	struct info_machine *scanned;
	size_t count;
};

static enum tdm_status open_machines(const struct info_options *options, const struct tdm_log *log,
	struct tdm_machines **machines, struct tdm_error *err)
{
	struct tdm_machine_input *const inputs = calloc(options->inputs.count + 1, sizeof(*inputs));
	struct tdm_correction_input *const corrections =
		calloc(options->corrections.count + 1, sizeof(*corrections));
	enum tdm_status status = TDM_ERR_NOMEM;

	if (inputs && corrections) {
		for (size_t i = 0; i < options->inputs.count; i++) {
			const struct cli_named *const item = &options->inputs.items[i];

			inputs[i].name = *item->name ? item->name : NULL;
			inputs[i].path = item->text;
		}
		for (size_t i = 0; i < options->corrections.count; i++) {
			const struct cli_named *const item = &options->corrections.items[i];

			corrections[i].guest = *item->name ? item->name : NULL;
			corrections[i].path = item->text;
		}

		const struct tdm_machines_options how = {
			.corrections = corrections,
			.correction_count = options->corrections.count,
			.keep_going = true,
		};

		status = tdm_machines_open(inputs, options->inputs.count, &how, log, machines, err);
	}
	free(inputs);
	free(corrections);
	return status;
}

static enum tdm_status scan_all(struct info *info, struct tdm_error *err)
{
	const size_t count = tdm_machines_count(info->machines);

	info->scanned = calloc(count, sizeof(*info->scanned));
	if (!info->scanned) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", count);
	}
	for (; info->count < count; info->count++) {
		const enum tdm_status status =
			info_scan(tdm_machines_at(info->machines, info->count),
				&info->scanned[info->count], err);

		if (status != TDM_OK) {
			return status;
		}
	}
	info_scan_compare(info->scanned, info->count, info->machines);
	return TDM_OK;
}

/* 1 where nothing could be opened, 3 where something is missing; each reason has a line on stderr. */
static int tell_end(const struct cli_command *command, const struct info *info)
{
	size_t opened = 0;
	bool complete = true;

	for (size_t i = 0; i < info->count; i++) {
		const struct info_machine *const scanned = &info->scanned[i];

		opened += scanned->info != NULL;
		if (!scanned->info) {
			TDM_ERROR(&command->log, "%s", scanned->machine->error.text);
		} else if (!scanned->complete) {
			TDM_ERROR(&command->log, "%s: parts of it could not be read",
				scanned->machine->path);
		}
		complete = complete && scanned->complete;
	}
	if (opened == 0) {
		return TDM_EXIT_FAILED;
	}
	return complete ? TDM_EXIT_DONE : TDM_EXIT_INCOMPLETE;
}

/* Reports the clock files where they stand in the output: behind the machines, if there are any. */
static int report_clocks(
	const struct cli_command *command, const struct info_options *options, bool is_alone)
{
	if (!options->json) {
		if (!is_alone) {
			fputc('\n', stdout);
		}
		return info_clock_report(command, &options->clocks, false, options->plot);
	}
	fputs(is_alone ? "{\n  \"clocks\": [\n" : ",\n  \"clocks\": [\n", stdout);

	const int status = info_clock_report(command, &options->clocks, true, options->plot);

	fputs(is_alone ? "\n  ]\n}\n" : "\n  ]", stdout);
	return status;
}

/* Of two parts: failed only where both are. */
static int worse_of(int one, int other)
{
	return one == other ? one : TDM_EXIT_INCOMPLETE;
}

/* What is not of the machines; @p json NULL: as text. @return Its exit status, or @p without where there is nothing. */
static int write_others(const struct cli_command *command, const struct info_options *options,
	bool is_first, struct json_writer *json, int without)
{
	int status = without;

	if (options->clocks.count) {
		status = report_clocks(command, options, false);
	}
	if (!options->dirs.count) {
		return status;
	}
	if (json) {
		json_array_begin(json, "traces");
	} else if (!is_first || options->clocks.count) {
		fputc('\n', stdout);
	}

	const int traces = info_ctf_report(command, &options->dirs, json);

	if (json) {
		json_array_end(json);
	}
	return options->clocks.count ? worse_of(status, traces) : traces;
}

/* @return The exit status of what was reported besides the machines. */
static int write_report(const struct cli_command *command, const struct info_options *options,
	const struct info *info)
{
	if (!options->json) {
		for (size_t i = 0; i < info->count; i++) {
			if (i > 0) {
				fputc('\n', stdout);
			}
			info_text_machine(stdout, &info->scanned[i], info->machines);
		}
		return write_others(command, options, info->count == 0, NULL, TDM_EXIT_DONE);
	}

	struct json_writer json = { .out = stdout };

	json_object_begin(&json, NULL);
	json_array_begin(&json, "machines");
	for (size_t i = 0; i < info->count; i++) {
		info_json_machine(&json, &info->scanned[i], info->machines);
	}
	json_array_end(&json);

	const int status = write_others(command, options, false, &json, TDM_EXIT_DONE);

	json_object_end(&json);
	return status;
}

static int report(const struct cli_command *command, const struct info_options *options)
{
	struct info info = { 0 };
	struct tdm_error err = { TDM_OK, "" };
	int exit_status;

	if (options->inputs.count == 0 && options->dirs.count == 0) {
		return report_clocks(command, options, true);
	}
	if (options->inputs.count == 0) {
		return cli_end_output(command, write_report(command, options, &info));
	}
	if (open_machines(options, &command->log, &info.machines, &err) == TDM_OK &&
		scan_all(&info, &err) == TDM_OK) {
		const int others = write_report(command, options, &info);

		exit_status = tell_end(command, &info);
		if (options->clocks.count || options->dirs.count) {
			exit_status = worse_of(exit_status, others);
		}
		exit_status = cli_end_output(command, exit_status);
	} else {
		exit_status = cli_failed(command, &err);
	}
	for (size_t i = 0; i < info.count; i++) {
		info_scan_release(&info.scanned[i]);
	}
	free(info.scanned);
	tdm_machines_close(info.machines);
	return exit_status;
}

/* Takes the clock files and the directories with CTF out of the inputs. @return False without memory. */
static bool part_inputs(struct info_options *options)
{
	const size_t count = options->inputs.count;
	size_t kept = 0;

	options->clocks.items = calloc(count + 1, sizeof(*options->clocks.items));
	options->dirs.items = calloc(count + 1, sizeof(*options->dirs.items));
	if (!options->clocks.items || !options->dirs.items) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		const struct cli_named input = options->inputs.items[i];

		if (info_ctf_is_one(input.text)) {
			options->dirs.items[options->dirs.count++] = input;
		} else if (info_clock_is_one(input.text)) {
			options->clocks.items[options->clocks.count++] = input;
		} else {
			options->inputs.items[kept++] = input;
		}
	}
	options->inputs.count = kept;
	return true;
}

int tdm_info_main(int argc, char **argv)
{
	enum {
		OPT_JSON = CLI_OPT_OWN,
		OPT_CORRECTIONS,
		OPT_CAUSALITY,
		OPT_OFFSET,
		OPT_PLOT
	};
	static const struct option long_options[] = {
		CLI_COMMON_OPTIONS,
		{ "json", no_argument, NULL, OPT_JSON },
		{ "corrections", required_argument, NULL, OPT_CORRECTIONS },
		{ "causality", no_argument, NULL, OPT_CAUSALITY },
		{ "offset", required_argument, NULL, OPT_OFFSET },
		{ "plot", required_argument, NULL, OPT_PLOT },
		{ NULL, 0, NULL, 0 },
	};
	struct cli_command command;
	struct info_options options = { 0 };
	int exit_status = -1;
	int value;

	cli_command_init(&command, "info", help);
	while (exit_status < 0 && (value = cli_next_option(&command, argc, argv, CLI_COMMON_LETTERS,
					   long_options)) != -1) {
		if (value == OPT_JSON) {
			options.json = true;
		} else if (value == OPT_CAUSALITY) {
			options.causality = true;
		} else if (value == OPT_PLOT) {
			options.plot = optarg;
		} else if (value == OPT_OFFSET) {
			if (!cli_named_add(&options.offsets, optarg)) {
				exit_status = TDM_EXIT_FAILED;
			}
		} else if (value == OPT_CORRECTIONS) {
			exit_status = cli_named_path_add(&command, &options.corrections, optarg);
		} else {
			exit_status = cli_common_option(&command, value);
		}
	}
	for (; exit_status < 0 && optind < argc; optind++) {
		exit_status = cli_named_path_add(&command, &options.inputs, argv[optind]);
	}
	if (exit_status < 0 && options.inputs.count == 0) {
		exit_status = cli_usage_fault(&command, "no inputs");
	}
	if (exit_status < 0) {
		struct tdm_error err = { 0 };

		if (view_beside_expand(&options.inputs, &err) != TDM_OK ||
			view_inputs_keep_pipes(&options.inputs, &err) != TDM_OK) {
			exit_status = cli_failed(&command, &err);
		}
	}
	if (exit_status < 0 && !options.causality && !part_inputs(&options)) {
		exit_status = TDM_EXIT_FAILED;
	}
	if (exit_status < 0) {
		struct tdm_error err = { 0 };

		if (view_beside_find_all(&options.inputs, !options.causality, &options.corrections,
			    &options.offsets, &command.log, &err) != TDM_OK) {
			exit_status = cli_failed(&command, &err);
		}
	}
	if (exit_status < 0 && options.plot && options.clocks.count == 0) {
		exit_status = cli_usage_fault(&command,
			"--plot draws an exchange log or a corrections file: none is among the inputs");
	}
	if (exit_status < 0 && options.causality) {
		const struct view_options view = {
			.inputs = options.inputs,
			.corrections = options.corrections,
			.offsets = options.offsets,
			.names = "lttng",
			.no_print = true,
			.no_symbols = true,
		};

		exit_status = causality_run(&command, &view, options.json);
	} else if (exit_status < 0) {
		exit_status = report(&command, &options);
	}
	cli_named_release(&options.inputs);
	cli_named_release(&options.corrections);
	cli_named_release(&options.offsets);
	cli_named_release(&options.clocks);
	cli_named_release(&options.dirs);
	return exit_status;
}
