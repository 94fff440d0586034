/* SPDX-License-Identifier: MIT */
#include "convert_options.h"
#include "view_beside.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: tandem convert [OPTION]... [NAME=]INPUT...\n"
	"Converts traces of a host and its guests to CTF that Trace Compass analyses: one directory for each machine,\n"
	"their times on the host's clock.\n"
	"\n"
	"INPUT is a trace.dat of trace-cmd (version 6 or 7), a perf.data, a directory of tandem record or with CTF (LTTng).\n"
	"The host is called \"host\"; NAME= names a machine.\n"
	"\n"
	"Output:\n"
	"  -o, --output DIR     where the directories go; default \"tandem-\" and the time\n"
	"      --to ctf|json    CTF directories, or DIR/trace.json for the browser (Perfetto, chrome://tracing)\n"
	"      --names lttng|ftrace\n"
	"                       names of events and fields; default lttng, which Trace Compass needs\n"
	"      --no-synthetic   do not add the state dump and the vmsync events that viewers need\n"
	"      --as-kernel      show system calls that tandem recorded in user space as the kernel's\n"
	"      --force          replace traces that are there\n"
	"      --threads N      at a time; default one a core\n"
	"\n"
	"Time:\n"
	"      --corrections [NAME=]FILE   corrections for a guest's clock, instead of the file's own time shift; else\n"
	"                                  NAME.corrections beside its input or the host's, if it is of these clocks\n"
	"      --offset NAME=NS            host minus guest, by hand, in ns\n"
	"      --tsc-offset NAME=TICKS     KVM's TSC offset of the guest, by hand\n"
	"      --clock-hz N                frequency of a clock that is not in ns\n"
	"      --target-bound NS           exit 3 where a guest's clock is known less well\n"
	"\n"
	"Selection:\n"
	"      --begin S, --end S   times in seconds, as the output shows them (1234.5)\n"
	"      --events GLOB        events whose name fits (sched_*, or with system: irq:*); may be repeated\n"
	"      --cpus LIST          e.g. 0,2-5\n"
	"\n"
	"  -q, --quiet          no summary, no progress\n"
	"  -h, --help           this text\n"
	"      --version        the version\n"
	"\n"
	"Example: tandem convert -o out trace.dat trace-guest.dat && tandem check-ctf out/*\n";

enum {
	OPT_AS_KERNEL = CLI_OPT_OWN,
	OPT_BEGIN,
	OPT_CLOCK_HZ,
	OPT_CORRECTIONS,
	OPT_CPUS,
	OPT_END,
	OPT_EVENTS,
	OPT_FORCE,
	OPT_NAMES,
	OPT_NO_SYNTHETIC,
	OPT_OFFSET,
	OPT_TARGET,
	OPT_THREADS,
	OPT_TO,
	OPT_TSC_OFFSET
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{ "as-kernel", no_argument, NULL, OPT_AS_KERNEL },
	{ "begin", required_argument, NULL, OPT_BEGIN },
	{ "clock-hz", required_argument, NULL, OPT_CLOCK_HZ },
	{ "corrections", required_argument, NULL, OPT_CORRECTIONS },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "end", required_argument, NULL, OPT_END },
	{ "events", required_argument, NULL, OPT_EVENTS },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "names", required_argument, NULL, OPT_NAMES },
	{ "no-synthetic", no_argument, NULL, OPT_NO_SYNTHETIC },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "output", required_argument, NULL, 'o' },
	{ "target-bound", required_argument, NULL, OPT_TARGET },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "to", required_argument, NULL, OPT_TO },
	{ "tsc-offset", required_argument, NULL, OPT_TSC_OFFSET },
	{ NULL, 0, NULL, 0 },
};

/* Room for one more element at the end of an array. */
static void *grow(void *array, size_t count, size_t size_bytes)
{
	return realloc(array, (count + 1) * size_bytes);
}

/* Seconds with up to nine decimals, as ns. */
static bool parse_seconds(const char *text, int64_t *ns)
{
	const bool negative = *text == '-';
	int64_t seconds = 0;
	int64_t fraction = 0;
	int64_t unit = 100000000;

	text += negative;
	if (*text < '0' || *text > '9') {
		return false;
	}
	for (; *text >= '0' && *text <= '9'; text++) {
		if (seconds > 900000000) {
			return false; /* beyond what 64-bit nanoseconds hold: 9223372036 s */
		}
		seconds = seconds * 10 + (*text - '0');
	}
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++) {
			fraction += (*text - '0') * unit;
			unit /= 10;
		}
	}
	*ns = seconds * 1000000000 + fraction;
	*ns = negative ? -*ns : *ns;
	return *text == '\0';
}

/* The offset of KVM is printed as an unsigned number, and people give it signed: both are the same 64 bits. */
static bool parse_offset(const char *text, bool is_tsc, int64_t *offset)
{
	uint64_t number = 0;

	if (cli_parse_int(text, offset)) {
		*offset = is_tsc ? (int64_t)(0u - (uint64_t)*offset) : *offset;
		return true;
	}
	if (is_tsc && cli_parse_uint(text, &number)) {
		*offset = (int64_t)(0u - number);
		return true;
	}
	return false;
}

static int add_offset(struct convert_options *options, struct cli_command *command, bool is_tsc)
{
	const size_t count = options->machines.offset_count;
	struct tdm_offset_input *const offsets =
		grow(options->offsets, count, sizeof(*options->offsets));
	char(*const names)[TDM_MACHINE_NAME_MAX + 1] =
		grow(options->offset_names, count, sizeof(*names));
	struct tdm_machine_input input;
	char name[TDM_MACHINE_NAME_MAX + 1];

	options->offsets = offsets ? offsets : options->offsets;
	options->offset_names = names ? names : options->offset_names;
	if (!offsets || !names) {
		return TDM_EXIT_FAILED;
	}
	cli_parse_input(optarg, name, &input);
	offsets[count] = (struct tdm_offset_input){ .is_raw = is_tsc };
	if (!parse_offset(input.path, is_tsc, &offsets[count].offset)) {
		return cli_usage_fault(command, "\"%s\": wanted [NAME=]NUMBER", optarg);
	}
	/* Pointers to the names follow when the list no longer moves. */
	snprintf(names[count], sizeof(names[count]), "%s", input.name ? input.name : "");
	options->machines.offset_count++;
	return -1;
}

static int add_glob(struct convert_options *options)
{
	const size_t count = options->convert.selection.glob_count;
	const char **const globs = grow(options->globs, count, sizeof(*globs));

	if (!globs) {
		return TDM_EXIT_FAILED;
	}
	options->globs = globs;
	globs[count] = optarg;
	options->convert.selection.glob_count++;
	return -1;
}

/* "0,2-5" */
static int add_cpus(struct convert_options *options, struct cli_command *command)
{
	const char *at = optarg;

	do {
		const size_t count = options->convert.selection.cpu_range_count;
		uint32_t *const ranges = grow(options->cpu_ranges, 2 * count + 1, sizeof(*ranges));
		char *end = NULL;
		unsigned long first;
		unsigned long last;

		if (!ranges) {
			return TDM_EXIT_FAILED;
		}
		options->cpu_ranges = ranges;
		errno = 0;
		first = strtoul(at, &end, 10);
		last = first;
		if (end == at || *at < '0' || *at > '9') {
			break;
		}
		at = end;
		if (*at == '-') {
			last = strtoul(at + 1, &end, 10);
			if (end == at + 1 || at[1] < '0' || at[1] > '9') {
				break;
			}
			at = end;
		}
		if (errno || last < first || last > UINT32_MAX) {
			break;
		}
		ranges[2 * count] = (uint32_t)first;
		ranges[2 * count + 1] = (uint32_t)last;
		options->convert.selection.cpu_range_count++;
		if (*at == '\0') {
			return -1;
		}
	} while (*at++ == ',');
	return cli_usage_fault(
		command, "--cpus \"%s\": wanted numbers and ranges, as 0,2-5", optarg);
}

static int parse_time_option(
	struct convert_options *options, struct cli_command *command, int value)
{
	struct tdm_convert_selection *const selection = &options->convert.selection;
	uint64_t number = 0;

	switch (value) {
	case OPT_BEGIN:
		selection->has_begin = true;
		return parse_seconds(optarg, &selection->begin_ns)
			       ? -1
			       : cli_usage_fault(command, "--begin \"%s\": wanted seconds", optarg);
	case OPT_END:
		selection->has_end = true;
		return parse_seconds(optarg, &selection->end_ns)
			       ? -1
			       : cli_usage_fault(command, "--end \"%s\": wanted seconds", optarg);
	case OPT_CLOCK_HZ:
		return cli_parse_uint(optarg, &options->machines.clock_hz) &&
				       options->machines.clock_hz > 0
			       ? -1
			       : cli_usage_fault(command,
					 "--clock-hz \"%s\": wanted a number above 0", optarg);
	case OPT_TARGET:
		options->has_target = true;
		return cli_parse_uint(optarg, &options->target_bound_ns)
			       ? -1
			       : cli_usage_fault(
					 command, "--target-bound \"%s\": wanted ns", optarg);
	case OPT_THREADS:
		if (!cli_parse_uint(optarg, &number) || number < 1 || number > 1024) {
			return cli_usage_fault(
				command, "--threads \"%s\": wanted 1 to 1024", optarg);
		}
		options->convert.thread_count = (unsigned int)number;
		return -1;
	case OPT_OFFSET:
	case OPT_TSC_OFFSET:
		return add_offset(options, command, value == OPT_TSC_OFFSET);
	default:
		return cli_common_option(command, value);
	}
}

static int parse_own(struct convert_options *options, struct cli_command *command, int value)
{
	switch (value) {
	case 'o':
		options->out_dir = optarg;
		return -1;
	case OPT_AS_KERNEL:
		options->as_kernel = true;
		return -1;
	case OPT_CORRECTIONS:
		return cli_named_path_add(command, &options->correction_list, optarg);
	case OPT_CPUS:
		return add_cpus(options, command);
	case OPT_EVENTS:
		return add_glob(options);
	case OPT_FORCE:
		options->convert.force = true;
		return -1;
	case OPT_NAMES:
		options->convert.style =
			strcmp(optarg, "ftrace") == 0 ? TDM_NAMES_FTRACE : TDM_NAMES_LTTNG;
		return strcmp(optarg, "ftrace") == 0 || strcmp(optarg, "lttng") == 0
			       ? -1
			       : cli_usage_fault(
					 command, "--names \"%s\": wanted lttng or ftrace", optarg);
	case OPT_NO_SYNTHETIC:
		options->convert.synthetic = false;
		return -1;
	case OPT_TO:
		options->to_json = strcmp(optarg, "json") == 0;
		return options->to_json || strcmp(optarg, "ctf") == 0
			       ? -1
			       : cli_usage_fault(
					 command, "--to \"%s\": wanted ctf or json", optarg);
	default:
		return parse_time_option(options, command, value);
	}
}

/* Points the options at the lists, which no longer move. */
static bool settle(struct convert_options *options)
{
	const size_t input_count = options->input_list.count;
	const size_t correction_count = options->correction_list.count;

	options->inputs = calloc(input_count + 1, sizeof(*options->inputs));
	options->kinds = calloc(input_count + 1, sizeof(*options->kinds));
	options->corrections = calloc(correction_count + 1, sizeof(*options->corrections));
	options->glob_fits = calloc(options->convert.selection.glob_count + 1, sizeof(bool));
	options->glob_nearest =
		calloc(options->convert.selection.glob_count + 1, sizeof(*options->glob_nearest));
	options->cpu_range_fits =
		calloc(options->convert.selection.cpu_range_count + 1, sizeof(bool));
	if (!options->inputs || !options->kinds || !options->corrections || !options->glob_fits ||
		!options->cpu_range_fits || !options->glob_nearest) {
		return false;
	}
	for (size_t i = 0; i < options->convert.selection.glob_count; i++) {
		tdm_nearest_begin(
			&options->glob_nearest[i], options->globs[i], strlen(options->globs[i]));
	}
	for (size_t i = 0; i < input_count; i++) {
		const struct cli_named *const item = &options->input_list.items[i];

		options->inputs[i] =
			(struct tdm_machine_input){ .name = item->name[0] ? item->name : NULL,
				.path = item->text };
	}
	options->input_count = input_count;
	for (size_t i = 0; i < correction_count; i++) {
		const struct cli_named *const item = &options->correction_list.items[i];

		options->corrections[i] =
			(struct tdm_correction_input){ .guest = item->name[0] ? item->name : NULL,
				.path = item->text };
	}
	for (size_t i = 0; i < options->machines.offset_count; i++) {
		options->offsets[i].machine =
			options->offset_names[i][0] ? options->offset_names[i] : NULL;
	}
	options->machines.corrections = options->corrections;
	options->machines.correction_count = correction_count;
	options->machines.offsets = options->offsets;
	options->convert.selection.globs = options->globs;
	options->convert.selection.cpu_ranges = options->cpu_ranges;
	options->convert.selection.glob_fits = options->glob_fits;
	options->convert.selection.glob_nearest = options->glob_nearest;
	options->convert.selection.cpu_range_fits = options->cpu_range_fits;
	return true;
}

int convert_options_parse(
	struct convert_options *options, struct cli_command *command, int argc, char **argv)
{
	struct tdm_error err = { 0 };

	*options = (struct convert_options){ .convert = { .synthetic = true } };
	cli_command_init(command, "convert", help);
	for (int value; (value = cli_next_option(command, argc, argv,
				 CLI_COMMON_LETTERS "o:", long_options)) != -1;) {
		const int status = parse_own(options, command, value);

		if (status != -1) {
			return status;
		}
	}
	for (int i = optind; i < argc; i++) {
		const int status = cli_named_path_add(command, &options->input_list, argv[i]);

		if (status != -1) {
			return status;
		}
	}
	if (options->input_list.count == 0) {
		return cli_usage_fault(command, "no input");
	}
	if (view_beside_expand(&options->input_list, &err) != TDM_OK) {
		return cli_failed(command, &err);
	}
	if (options->convert.selection.has_begin && options->convert.selection.has_end &&
		options->convert.selection.begin_ns > options->convert.selection.end_ns) {
		return cli_usage_fault(command, "--begin is later than --end");
	}
	return settle(options) ? -1 : TDM_EXIT_FAILED;
}

void convert_options_release(struct convert_options *options)
{
	cli_named_release(&options->input_list);
	cli_named_release(&options->correction_list);
	free(options->inputs);
	free(options->kinds);
	free(options->corrections);
	free(options->offsets);
	free(options->offset_names);
	free(options->globs);
	free(options->cpu_ranges);
	free(options->glob_fits);
	free(options->glob_nearest);
	free(options->cpu_range_fits);
}
