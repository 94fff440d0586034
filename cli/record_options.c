/* SPDX-License-Identifier: MIT */
#include "record_options.h"
#include "guest_address.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_ATTACH = CLI_OPT_OWN,
	OPT_CLOCKS_ONLY,
	OPT_FINISH,
	OPT_FORCE,
	OPT_GUEST_PID,
	OPT_NO_KALLSYMS,
	OPT_PID,
	OPT_PLAIN_DATA,
	OPT_SECRET_FILE,
	OPT_SERVE,
	OPT_SIZE,
	OPT_STAMPS,
	OPT_TARGET_BOUND,
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
	{ "attach", required_argument, NULL, OPT_ATTACH },
	{ "clocks-only", no_argument, NULL, OPT_CLOCKS_ONLY },
	{ "finish", required_argument, NULL, OPT_FINISH },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "guest", required_argument, NULL, 'g' },
	{ "guest-pid", required_argument, NULL, OPT_GUEST_PID },
	{ "no-kallsyms", no_argument, NULL, OPT_NO_KALLSYMS },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "plain-data", no_argument, NULL, OPT_PLAIN_DATA },
	{ "secret-file", required_argument, NULL, OPT_SECRET_FILE },
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "stamps", required_argument, NULL, OPT_STAMPS },
	{ "target-bound", required_argument, NULL, OPT_TARGET_BOUND },
	{ "size-mib", required_argument, NULL, OPT_SIZE },
	{ "time", required_argument, NULL, OPT_TIME },
	{ NULL, 0, NULL, 0 },
};

/* The list that -e and -f go to: the last guest's, or the host's before any --guest. */
static struct record_events *current_events(struct record_options *options)
{
	return options->guest_count ? &options->guests[options->guest_count - 1].events
				    : &options->events;
}

static bool add_event(struct record_events *events, const char *pattern)
{
	struct tdm_tap_event *items = realloc(events->items, (events->count + 1) * sizeof(*items));

	if (!items) {
		return false;
	}
	events->items = items;
	items[events->count++] = (struct tdm_tap_event){ .pattern = pattern };
	return true;
}

static bool add_guest(struct record_options *options, const char *argument)
{
	struct record_guest_spec *guests =
		realloc(options->guests, (options->guest_count + 1) * sizeof(*guests));

	if (!guests) {
		return false;
	}
	options->guests = guests;
	guests[options->guest_count] = (struct record_guest_spec){ 0 };
	if (!cli_named_add(&options->guest_names, argument)) {
		return false;
	}
	options->guest_count++;
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

/* -f is of the -e before it. */
static int set_filter(struct record_options *options, struct cli_command *command)
{
	struct record_events *events = current_events(options);

	if (!events->count) {
		return cli_usage_fault(command, "-f \"%s\" stands before any -e", optarg);
	}
	events->items[events->count - 1].filter = optarg;
	return -1;
}

static int parse_own(struct record_options *options, struct cli_command *command, int value)
{
	uint64_t number = 0;

	switch (value) {
	case 'o':
		options->dir = optarg;
		return -1;
	case 'e':
		return add_event(current_events(options), optarg) ? -1 : TDM_EXIT_FAILED;
	case 'f':
		return set_filter(options, command);
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
	case OPT_ATTACH:
		options->attach = optarg;
		return -1;
	case OPT_CLOCKS_ONLY:
		options->clocks_only = true;
		return -1;
	case OPT_FINISH:
		options->finish_dir = optarg;
		return -1;
	case OPT_FORCE:
		options->force = true;
		return -1;
	case 'g':
		return add_guest(options, optarg) ? -1 : TDM_EXIT_FAILED;
	case OPT_GUEST_PID:
		if (!options->guest_count || !parse_number(optarg, 1, 1 << 22, &number)) {
			return cli_usage_fault(command,
				"--guest-pid \"%s\": wanted a process id, behind its --guest",
				optarg);
		}
		options->guests[options->guest_count - 1].vmm_pid = (int)number;
		return -1;
	case OPT_NO_KALLSYMS:
		options->kallsyms = false;
		return -1;
	case OPT_PID:
		if (!parse_number(optarg, 1, 1 << 22, &number)) {
			return cli_usage_fault(command, "--pid \"%s\" is no process id", optarg);
		}
		/* It would record nothing, until somebody wonders. */
		if (kill((pid_t)number, 0) != 0 && errno == ESRCH) {
			return cli_usage_fault(command, "--pid %s: no such process", optarg);
		}
		return add_pid(options, (int32_t)number) ? -1 : TDM_EXIT_FAILED;
	case OPT_PLAIN_DATA:
		options->plain_data = true;
		return -1;
	case OPT_SERVE:
		options->serve = optarg;
		return -1;
	case OPT_SECRET_FILE:
		options->secret_file = optarg;
		return -1;
	case OPT_STAMPS:
		options->kernel_stamps = strcmp(optarg, "kernel") == 0;
		return options->kernel_stamps || strcmp(optarg, "user") == 0
			       ? -1
			       : cli_usage_fault(
					 command, "--stamps \"%s\": wanted user or kernel", optarg);
	case OPT_TARGET_BOUND:
		return parse_number(optarg, 1, UINT64_C(1) << 40, &options->target_bound_ns)
			       ? -1
			       : cli_usage_fault(
					 command, "--target-bound \"%s\": wanted ns", optarg);
	case OPT_SIZE:
		if (!parse_number(optarg, 1, 1 << 24, &options->size_limit_mib)) {
			return cli_usage_fault(
				command, "--size-mib \"%s\": wanted 1 to 16777216", optarg);
		}
		return -1;
	case OPT_TIME:
		if (!parse_number(optarg, 1, 1 << 24, &options->time_limit_s)) {
			return cli_usage_fault(command,
				"--time \"%s\": wanted whole seconds, 1 to 16777216", optarg);
		}
		return -1;
	default:
		return cli_common_option(command, value);
	}
}

static int check_guests(struct record_options *options, struct cli_command *command)
{
	for (size_t i = 0; i < options->guest_count; i++) {
		struct cli_named *item = &options->guest_names.items[i];

		guest_name_alone(item);

		if (!*item->name || strcmp(item->name, "host") == 0) {
			return cli_usage_fault(command,
				"--guest \"%s\": wanted NAME or NAME=ADDR, NAME not \"host\"",
				item->text);
		}
		for (size_t j = 0; j < i; j++) {
			if (strcmp(item->name, options->guest_names.items[j].name) == 0) {
				return cli_usage_fault(
					command, "guest \"%s\" is named twice", item->name);
			}
		}
		options->guests[i].name = item->name;
		options->guests[i].address = item->text;
	}
	return -1;
}

int record_options_parse(
	struct record_options *options, struct cli_command *command, int argc, char **argv)
{
	*options = (struct record_options){ .kallsyms = true };
	for (int value; (value = cli_next_option(command, argc, argv,
				 "+" CLI_COMMON_LETTERS "o:e:f:C:g:b:c", long_options)) != -1;) {
		const int status = parse_own(options, command, value);

		if (status != -1) {
			return status;
		}
	}
	if (optind < argc) {
		options->command = argv + optind;
	}
	if (!options->events.count && !options->finish_dir &&
		!add_event(&options->events, "sched")) {
		return TDM_EXIT_FAILED;
	}
	return check_guests(options, command);
}

void record_options_release(struct record_options *options)
{
	for (size_t i = 0; i < options->guest_count; i++) {
		free(options->guests[i].events.items);
	}
	free(options->guests);
	free(options->events.items);
	free(options->pids);
	cli_named_release(&options->guest_names);
}
