/* SPDX-License-Identifier: MIT */
#include "record_options.h"
#include <stdlib.h>
#include <string.h>

enum {
	OPT_FINISH = CLI_OPT_OWN,
	OPT_FORCE,
	OPT_GUEST,
	OPT_NO_KALLSYMS,
	OPT_PID,
	OPT_SIZE,
	OPT_TIME
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{ "output", required_argument, NULL, 'o' },
	{ "event", required_argument, NULL, 'e' },
	{ "filter", required_argument, NULL, 'f' },
	{ "clock", required_argument, NULL, 'C' },
	{ "buffer-kib", required_argument, NULL, 'b' },
	{ "follow", no_argument, NULL, 'c' },
	{ "finish", required_argument, NULL, OPT_FINISH },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "guest", required_argument, NULL, OPT_GUEST },
	{ "no-kallsyms", no_argument, NULL, OPT_NO_KALLSYMS },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "size-mib", required_argument, NULL, OPT_SIZE },
	{ "time", required_argument, NULL, OPT_TIME },
	{ NULL, 0, NULL, 0 },
};

static bool add_event(struct record_options *options, const char *pattern)
{
	struct tdm_tap_event *events =
		realloc(options->events, (options->event_count + 1) * sizeof(*events));

	if (!events) {
		return false;
	}
	options->events = events;
	events[options->event_count++] = (struct tdm_tap_event){ .pattern = pattern };
	return true;
}

static bool add_pid(struct record_options *options, int32_t pid)
{
	int32_t *pids = realloc(options->pids, (options->pid_count + 1) * sizeof(*pids));

	if (!pids) {
		return false;
	}
	options->pids = pids;
	pids[options->pid_count++] = pid;
	return true;
}

/* A whole number from least to most. */
static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	return cli_parse_uint(text, number) && *number >= least && *number <= most;
}

static int parse_own(struct record_options *options, struct cli_command *command, int value)
{
	uint64_t number = 0;

	switch (value) {
	case 'o':
		options->dir = optarg;
		return -1;
	case 'e':
		return add_event(options, optarg) ? -1 : TDM_EXIT_FAILED;
	case 'f':
		if (!options->event_count) {
			return cli_usage_fault(command, "-f \"%s\" stands before any -e", optarg);
		}
		options->events[options->event_count - 1].filter = optarg;
		return -1;
	case 'C':
		options->clock = optarg;
		return -1;
	case 'b':
		if (!parse_number(optarg, 8, 1 << 22, &number)) {
			return cli_usage_fault(
				command, "-b \"%s\": wanted 8 to 4194304 KiB", optarg);
		}
		options->buffer_kib = (uint32_t)number;
		return -1;
	case 'c':
		options->follow_children = true;
		return -1;
	case OPT_FINISH:
		options->finish_dir = optarg;
		return -1;
	case OPT_FORCE:
		options->force = true;
		return -1;
	case OPT_GUEST:
		return cli_named_add(&options->guests, optarg) ? -1 : TDM_EXIT_FAILED;
	case OPT_NO_KALLSYMS:
		options->kallsyms = false;
		return -1;
	case OPT_PID:
		if (!parse_number(optarg, 1, 1 << 22, &number)) {
			return cli_usage_fault(command, "--pid \"%s\" is no process id", optarg);
		}
		return add_pid(options, (int32_t)number) ? -1 : TDM_EXIT_FAILED;
	case OPT_SIZE:
		if (!parse_number(optarg, 1, 1 << 24, &options->size_limit_mib)) {
			return cli_usage_fault(
				command, "--size-mib \"%s\": wanted 1 to 16777216", optarg);
		}
		return -1;
	case OPT_TIME:
		if (!parse_number(optarg, 1, 1 << 24, &options->time_limit_s)) {
			return cli_usage_fault(command, "--time \"%s\": wanted seconds", optarg);
		}
		return -1;
	default:
		return cli_common_option(command, value);
	}
}

static int check_guests(struct record_options *options, struct cli_command *command)
{
	for (size_t i = 0; i < options->guests.count; i++) {
		const char *name = options->guests.items[i].name;

		if (!*name || strcmp(name, "host") == 0) {
			return cli_usage_fault(command,
				"--guest \"%s\": wanted NAME=ADDR, NAME not \"host\"",
				options->guests.items[i].text);
		}
		for (size_t j = 0; j < i; j++) {
			if (strcmp(name, options->guests.items[j].name) == 0) {
				return cli_usage_fault(
					command, "guest \"%s\" is named twice", name);
			}
		}
	}
	return -1;
}

int record_options_parse(
	struct record_options *options, struct cli_command *command, int argc, char **argv)
{
	*options = (struct record_options){ .kallsyms = true };
	for (int value; (value = getopt_long(argc, argv, "+" CLI_COMMON_LETTERS "o:e:f:C:b:c",
				 long_options, NULL)) != -1;) {
		const int status = parse_own(options, command, value);

		if (status != -1) {
			return status;
		}
	}
	if (optind < argc) {
		options->command = argv + optind;
	}
	if (!options->event_count && !options->finish_dir && !add_event(options, "sched")) {
		return TDM_EXIT_FAILED;
	}
	return check_guests(options, command);
}

void record_options_release(struct record_options *options)
{
	free(options->events);
	free(options->pids);
	cli_named_release(&options->guests);
}
