/* SPDX-License-Identifier: MIT */
/*
 * view.c - tandem view: host and guests on one corrected timeline, as text.
 */
#include "plugin_find.h"
#include "view_beside.h"
#include "view_inputs.h"
#include "view_live.h"
#include "view_plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: tandem view [OPTION]... [NAME=]INPUT...\n"
	"Prints the events of a host and its guests in one order, the guests' clocks corrected.\n"
	"INPUT: trace.dat, perf.data, a directory of tandem record or with CTF (LTTng), net://HOST/... (LTTng live),\n"
	"tandem://HOST/NAME.\n"
	"\n"
	"  --corrections [NAME=]FILE  put machine NAME on its host's clock by a corrections file, or by a service\n"
	"                             (tcp:HOST:PORT, unix:PATH); else NAME.corrections beside its input or the host's is\n"
	"                             used, if it is of these clocks (of an input alone: where it has a NAME)\n"
	"  --offset NAME=NS           put it there by hand: host reading = guest reading + NS\n"
	"  --secret-file FILE         the secret of the service\n"
	"  --names lttng|ftrace       names of events and fields (default ftrace: what trace-cmd prints)\n"
	"  --buffer NAME              only this buffer (repeatable; the unnamed one is \"top\")\n"
	"  --clock-hz N               frequency of a clock that does not count ns\n"
	"  --begin TIME, --end TIME   only events from, up to this time (seconds, as printed)\n"
	"  --no-print                 leave out the text that trace-cmd prints for an event\n"
	"  --no-symbols               leave values as numbers where the kernel names them\n"
	"  --run-args                 print the babeltrace2 command line that does the same, and end\n"
	"  -q, --quiet                no warnings on stderr\n"
	"  -h, --help                 this text\n"
	"  --version                  the version\n"
	"\n"
	"Exit status: 0 done (a trace without events prints nothing), 1 nothing could be read, or no input has the buffers,\n"
	"2 usage, 3 some could not be read, or some buffer is in no input.\n"
	"\n"
	"Examples: tandem view trace.dat trace-guest.dat | less\n"
	"          tandem view host=lttng-host web1=lttng-web1 --corrections web1=web1.corrections\n";

#define INSERTED BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK
#define APPENDED BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK

/* @param named  What the machines are called where the inputs are of several kinds; NULL: as the user named them. */
static bool add_inputs(bt_value *params, const struct view_options *options,
	const struct view_inputs *named, const bool *chosen)
{
	bt_value *inputs = NULL;
	bt_value *machines = NULL;
	bool any_name = named;
	bool done = bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) == INSERTED;

	for (size_t i = 0; done && i < options->inputs.count; i++) {
		if (chosen && !chosen[i]) {
			continue;
		}
		any_name = any_name || *options->inputs.items[i].name;
		done = bt_value_array_append_string_element(
			       inputs, options->inputs.items[i].text) == APPENDED;
	}
	if (!done || !any_name) {
		return done;
	}
	done = bt_value_map_insert_empty_array_entry(params, "machines", &machines) == INSERTED;
	for (size_t i = 0; done && i < options->inputs.count; i++) {
		if (chosen && !chosen[i]) {
			continue;
		}
		done = bt_value_array_append_string_element(machines,
			       named ? named->items[i].name : options->inputs.items[i].name) ==
		       APPENDED;
	}
	return done;
}

/* One of a file or, as "offset:NS", of a number given by hand. */
static bool add_correction(
	bt_value *params, bt_value *map, const struct cli_named *item, bool is_offset)
{
	char text[64];

	/* A file's name may be long, a number is not. */
	if (is_offset &&
		snprintf(text, sizeof(text), "offset:%s", item->text) >= (int)sizeof(text)) {
		return false;
	}

	const char *const value = is_offset ? text : item->text;

	return map ? bt_value_map_insert_string_entry(map, item->name, value) == INSERTED
		   : bt_value_map_insert_string_entry(params, "corrections", value) == INSERTED;
}

/* Where the inputs are of several kinds each has its own already. */
static bool add_named_corrections(
	bt_value *params, const struct view_inputs *named, const bool *chosen)
{
	bt_value *map = NULL;

	for (size_t i = 0; i < named->count; i++) {
		const struct view_input *const input = &named->items[i];

		if (!chosen[i] || input->is_host || !*input->corrections) {
			continue;
		}
		if ((!map && bt_value_map_insert_empty_map_entry(params, "corrections", &map) !=
				     INSERTED) ||
			bt_value_map_insert_string_entry(map, input->name, input->corrections) !=
				INSERTED) {
			return false;
		}
	}
	return true;
}

static bool add_corrections(bt_value *params, const struct view_options *options)
{
	const struct cli_named_list *const lists[] = { &options->corrections, &options->offsets };
	const size_t count = lists[0]->count + lists[1]->count;
	bt_value *map = NULL;

	if (count == 0) {
		return true;
	}
	if (count == 1) {
		const bool is_offset = lists[0]->count == 0;

		if (!*lists[is_offset]->items[0].name) {
			return add_correction(params, NULL, &lists[is_offset]->items[0], is_offset);
		}
	}
	if (bt_value_map_insert_empty_map_entry(params, "corrections", &map) != INSERTED) {
		return false;
	}
	for (size_t list = 0; list < 2; list++) {
		for (size_t i = 0; i < lists[list]->count; i++) {
			if (!add_correction(params, map, &lists[list]->items[i], list == 1)) {
				return false;
			}
		}
	}
	return true;
}

static bool add_buffers(bt_value *params, const struct view_options *options)
{
	bt_value *buffers = NULL;

	if (options->buffer_count == 0) {
		return true;
	}
	if (bt_value_map_insert_empty_array_entry(params, "buffers", &buffers) != INSERTED) {
		return false;
	}
	for (size_t i = 0; i < options->buffer_count; i++) {
		if (bt_value_array_append_string_element(buffers, options->buffers[i]) !=
			APPENDED) {
			return false;
		}
	}
	return true;
}

bt_value *view_tracedat_params(const struct view_options *options, const struct view_inputs *named,
	const bool *chosen, int64_t clock_offset_ns)
{
	bt_value *const params = bt_value_map_create();
	const bool done =
		params && add_inputs(params, options, named, chosen) &&
		(named ? add_named_corrections(params, named, chosen)
		       : add_corrections(params, options)) &&
		add_buffers(params, options) &&
		bt_value_map_insert_string_entry(params, "names", options->names) == INSERTED &&
		(options->no_print ||
			bt_value_map_insert_bool_entry(params, "print", BT_TRUE) == INSERTED) &&
		(options->no_symbols ||
			bt_value_map_insert_bool_entry(params, "symbols", BT_TRUE) == INSERTED) &&
		(options->clock_hz == 0 ||
			bt_value_map_insert_signed_integer_entry(
				params, "clock-hz", (int64_t)options->clock_hz) == INSERTED) &&
		(clock_offset_ns == 0 || bt_value_map_insert_signed_integer_entry(params,
						 "clock-offset-ns", clock_offset_ns) == INSERTED);

	if (!done) {
		bt_value_put_ref(params);
		return NULL;
	}
	return params;
}

static bt_value *trimmer_params(const struct view_options *options)
{
	bt_value *const params = bt_value_map_create();

	if (params && ((options->begin && bt_value_map_insert_string_entry(
						  params, "begin", options->begin) != INSERTED) ||
			      (options->end && bt_value_map_insert_string_entry(
						       params, "end", options->end) != INSERTED))) {
		bt_value_put_ref(params);
		return NULL;
	}
	return params;
}

static enum tdm_status describe(struct view_graph *graph, const struct view_options *options,
	const struct tdm_log *log, bool *is_part, struct tdm_error *err)
{
	struct view_inputs inputs = { NULL, 0, false };
	size_t last = VIEW_NONE;
	enum tdm_status status = view_inputs_read(options, &inputs, log, err);

	if (status == TDM_OK) {
		status = view_plan_merge(graph, options, &inputs, NULL, log, &last, err);
	}
	for (size_t i = 0; status == TDM_OK && i < inputs.count; i++) {
		*is_part = *is_part || inputs.items[i].is_unreadable;
	}
	view_inputs_release(&inputs);
	if (status != TDM_OK) {
		return status;
	}
	if (options->begin || options->end) {
		const size_t trimmer = view_graph_add(
			graph, VIEW_FILTER, "trimmer", "utils", "trimmer", trimmer_params(options));

		if (trimmer == VIEW_NONE || !view_graph_connect(graph, last, trimmer)) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a graph");
		}
		last = trimmer;
	}

	const size_t text = view_graph_add(graph, VIEW_SINK, "text", "tandem", "text", NULL);

	return text != VIEW_NONE && view_graph_connect(graph, last, text)
		       ? TDM_OK
		       : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a graph");
}

static void mark_buffers(
	const struct tdm_trace_info *info, const struct view_options *options, bool *found)
{
	for (size_t i = 0; i < options->buffer_count; i++) {
		for (size_t buffer = 0; buffer < info->buffer_count && !found[i]; buffer++) {
			char label[256];

			tdm_buffer_label(info, buffer, label, sizeof(label));
			found[i] = strcmp(label, options->buffers[i]) == 0;
		}
	}
}

/*
 * What a graph does not know that ran to its end: files of which nothing is left that could give events, and buffers that
 * no file has. Both were told by the source. @return An exit status.
 */
static int judge_files(const struct view_options *options)
{
	const struct tdm_stamp_options how = { .raw = false };
	bool *const found = calloc(options->buffer_count + 1, sizeof(*found));
	size_t empty = 0;
	size_t others = 0;
	size_t known = 0;

	for (size_t i = 0; found && i < options->inputs.count; i++) {
		const char *const path = options->inputs.items[i].text;
		struct tdm_trace *trace = NULL;
		struct tdm_error fault;

		if (tdm_trace_probe(path) != TDM_FORMAT_TRACEDAT ||
			tdm_trace_open(path, &how, NULL, &trace, &fault) != TDM_OK) {
			others++;
			continue;
		}

		const struct tdm_trace_info *const info = tdm_trace_get_info(trace);

		empty += info->stream_count == 0 && tdm_trace_fault_count(trace) > 0;
		mark_buffers(info, options, found);
		tdm_trace_close(trace);
	}
	for (size_t i = 0; found && i < options->buffer_count; i++) {
		known += found[i];
	}
	free(found);
	if (empty == options->inputs.count ||
		(options->buffer_count > 0 && known == 0 && others == 0)) {
		return TDM_EXIT_FAILED;
	}
	return empty > 0 || (known < options->buffer_count && others == 0) ? TDM_EXIT_INCOMPLETE
									   : TDM_EXIT_DONE;
}

static int show(const struct cli_command *command, const struct view_options *options)
{
	struct view_graph graph = { 0 };
	char folder[PATH_MAX];
	int exit_status = TDM_EXIT_FAILED;
	bool is_part = false;
	struct tdm_error err = { .status = TDM_OK };

	plugin_find_folder(folder);
	if (describe(&graph, options, &command->log, &is_part, &err) != TDM_OK) {
		exit_status = cli_failed(command, &err);
	} else if (options->run_args) {
		view_graph_print(&graph, folder);
		exit_status = TDM_EXIT_DONE;
	} else {
		static const int statuses[] = {
			[VIEW_DONE] = TDM_EXIT_DONE,
			[VIEW_FAILED] = TDM_EXIT_FAILED,
			[VIEW_CUT] = TDM_EXIT_INCOMPLETE,
			[VIEW_INTERRUPTED] = TDM_EXIT_INCOMPLETE,
		};

		exit_status = statuses[view_graph_run(&graph, folder, "tandem view",
			command->quiet ? BT_LOGGING_LEVEL_ERROR : BT_LOGGING_LEVEL_WARNING)];
		if (exit_status == TDM_EXIT_DONE && is_part) {
			exit_status = TDM_EXIT_INCOMPLETE;
		} else if (exit_status == TDM_EXIT_DONE) {
			exit_status = judge_files(options);
		}
	}
	view_graph_release(&graph);
	return exit_status;
}

enum {
	OPT_CORRECTIONS = CLI_OPT_OWN,
	OPT_NAMES,
	OPT_BUFFER,
	OPT_CLOCK_HZ,
	OPT_BEGIN,
	OPT_END,
	OPT_OFFSET,
	OPT_SECRET_FILE,
	OPT_NO_PRINT,
	OPT_NO_SYMBOLS,
	OPT_RUN_ARGS
};

static bool add_buffer(struct view_options *options, const char *name)
{
	const char **const buffers =
		realloc(options->buffers, (options->buffer_count + 1) * sizeof(*buffers));

	if (!buffers) {
		return false;
	}
	options->buffers = buffers;
	buffers[options->buffer_count++] = name;
	return true;
}

static int add_offset(
	struct cli_command *command, struct view_options *options, const char *argument)
{
	int64_t ns;

	if (!cli_named_add(&options->offsets, argument)) {
		return TDM_EXIT_FAILED;
	}
	if (!cli_parse_int(options->offsets.items[options->offsets.count - 1].text, &ns)) {
		return cli_usage_fault(command, "--offset: \"%s\" is no number of ns", argument);
	}
	return -1;
}

/* Seconds as the lines have them: [-]digits[.up to nine digits]. @return False where a text is anything else. */
static bool parse_seconds(const char *text, int64_t *ns)
{
	const bool negative = *text == '-';
	int64_t value = 0;
	int decimals = -1;

	text += negative;
	if (*text < '0' || *text > '9') {
		return false;
	}
	for (; *text; text++) {
		if (*text == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (*text < '0' || *text > '9' || decimals == 9 ||
			__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, *text - '0', &value)) {
			return false;
		}
		decimals += decimals >= 0;
	}
	for (int left = 9 - (decimals < 0 ? 0 : decimals); left > 0; left--) {
		if (__builtin_mul_overflow(value, 10, &value)) {
			return false;
		}
	}
	*ns = negative ? -value : value;
	return true;
}

/* babeltrace2's trimmer says it in its own words, with lines of its log. @return -1 to go on, else an exit status. */
static int check_times(const struct cli_command *command, const struct view_options *options)
{
	int64_t begin = INT64_MIN;
	int64_t end = INT64_MAX;

	if (options->begin && !parse_seconds(options->begin, &begin)) {
		return cli_usage_fault(command,
			"--begin: \"%s\" is no time in seconds, as printed (360.330211512)",
			options->begin);
	}
	if (options->end && !parse_seconds(options->end, &end)) {
		return cli_usage_fault(command,
			"--end: \"%s\" is no time in seconds, as printed (360.330211512)",
			options->end);
	}
	return begin <= end ? -1
			    : cli_usage_fault(command,
				      "--begin is later than --end: %s and %s, seconds, as printed",
				      options->begin, options->end);
}

/* @return -1 to go on, else an exit status. */
static int take_option(struct cli_command *command, struct view_options *options, int value)
{
	switch (value) {
	case OPT_CORRECTIONS:
		return cli_named_path_add(command, &options->corrections, optarg);
	case OPT_NAMES:
		if (strcmp(optarg, "lttng") != 0 && strcmp(optarg, "ftrace") != 0) {
			return cli_usage_fault(
				command, "--names is lttng or ftrace, not \"%s\"", optarg);
		}
		options->names = optarg;
		return -1;
	case OPT_BUFFER:
		return add_buffer(options, optarg) ? -1 : TDM_EXIT_FAILED;
	case OPT_CLOCK_HZ:
		if (!cli_parse_uint(optarg, &options->clock_hz) || options->clock_hz == 0 ||
			options->clock_hz > UINT64_C(1000000000000)) {
			return cli_usage_fault(
				command, "--clock-hz: \"%s\" is no frequency in Hz", optarg);
		}
		return -1;
	case OPT_BEGIN:
		options->begin = optarg;
		return -1;
	case OPT_END:
		options->end = optarg;
		return -1;
	case OPT_OFFSET:
		return add_offset(command, options, optarg);
	case OPT_SECRET_FILE:
		options->secret_file = optarg;
		return -1;
	case OPT_NO_PRINT:
		options->no_print = true;
		return -1;
	case OPT_NO_SYMBOLS:
		options->no_symbols = true;
		return -1;
	case OPT_RUN_ARGS:
		options->run_args = true;
		return -1;
	default:
		return cli_common_option(command, value);
	}
}

int tdm_view_main(int argc, char **argv)
{
	static const struct option long_options[] = {
		CLI_COMMON_OPTIONS,
		{ "corrections", required_argument, NULL, OPT_CORRECTIONS },
		{ "names", required_argument, NULL, OPT_NAMES },
		{ "buffer", required_argument, NULL, OPT_BUFFER },
		{ "clock-hz", required_argument, NULL, OPT_CLOCK_HZ },
		{ "begin", required_argument, NULL, OPT_BEGIN },
		{ "end", required_argument, NULL, OPT_END },
		{ "offset", required_argument, NULL, OPT_OFFSET },
		{ "secret-file", required_argument, NULL, OPT_SECRET_FILE },
		{ "no-print", no_argument, NULL, OPT_NO_PRINT },
		{ "no-symbols", no_argument, NULL, OPT_NO_SYMBOLS },
		{ "run-args", no_argument, NULL, OPT_RUN_ARGS },
		{ NULL, 0, NULL, 0 },
	};
	struct cli_command command;
	struct view_options options = { .names = "ftrace" };
	struct view_live_urls urls = { 0 };
	struct tdm_error err = { 0 };
	int exit_status = -1;
	int value;

	cli_command_init(&command, "view", help);
	while (exit_status < 0 && (value = cli_next_option(&command, argc, argv, CLI_COMMON_LETTERS,
					   long_options)) != -1) {
		exit_status = take_option(&command, &options, value);
	}
	for (; exit_status < 0 && optind < argc; optind++) {
		exit_status = cli_named_path_add(&command, &options.inputs, argv[optind]);
	}
	if (exit_status < 0 && options.inputs.count == 0) {
		exit_status = cli_usage_fault(&command, "no inputs");
	}
	if (exit_status < 0) {
		exit_status = check_times(&command, &options);
	}
	if (exit_status < 0 && view_live_expand(&options, &urls, &err) != TDM_OK) {
		exit_status = cli_failed(&command, &err);
	}
	if (exit_status < 0 && view_beside_expand(&options.inputs, &err) != TDM_OK) {
		exit_status = cli_failed(&command, &err);
	}
	if (exit_status < 0 && !options.run_args &&
		view_inputs_keep_pipes(&options.inputs, &err) != TDM_OK) {
		exit_status = cli_failed(&command, &err);
	}
	if (exit_status < 0 && view_beside_find_all(&options.inputs, false, &options.corrections,
				       &options.offsets, &command.log, &err) != TDM_OK) {
		exit_status = cli_failed(&command, &err);
	}
	if (exit_status < 0) {
		exit_status = show(&command, &options);
	}
	view_live_release(&urls);
	cli_named_release(&options.inputs);
	cli_named_release(&options.corrections);
	cli_named_release(&options.offsets);
	free(options.buffers);
	return exit_status;
}
