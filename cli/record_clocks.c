/* SPDX-License-Identifier: MIT */
#include "record_clocks.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A command line that grows; items are borrowed. */
struct arguments {
	char **items;
	int count;
};

static void add(struct arguments *arguments, const char *option, const char *value)
{
	arguments->items[arguments->count++] = (char *)option;
	if (value) {
		arguments->items[arguments->count++] = (char *)value;
	}
}

static size_t count_command(char **command)
{
	size_t count = 0;

	while (command && command[count]) {
		count++;
	}
	return count;
}

/* "NAME=ADDR", or the name alone; NULL without memory. */
static char *guest_argument(const struct record_guest_spec *guest)
{
	char *text = NULL;

	return asprintf(&text, "%s%s%s", guest->name, *guest->address ? "=" : "", guest->address) <
			       0
		       ? NULL
		       : text;
}

int record_clocks_only(const struct record_options *options, bool quiet)
{
	enum {
		FIXED_ARGUMENTS = 32
	};

	struct arguments arguments = { calloc(FIXED_ARGUMENTS + 2 * options->guest_count +
						       count_command(options->command),
					       sizeof(char *)),
		0 };
	char **guests = calloc(options->guest_count + 1, sizeof(char *));
	char bound[24], seconds[24];
	int status = TDM_EXIT_FAILED;

	for (size_t i = 0; guests && i < options->guest_count; i++) {
		guests[i] = guest_argument(&options->guests[i]);
		if (!guests[i]) {
			goto out;
		}
	}
	if (!guests || !arguments.items) {
		goto out;
	}
	add(&arguments, "sync", NULL);
	for (size_t i = 0; i < options->guest_count; i++) {
		add(&arguments, "--guest", guests[i]);
	}
	if (options->dir) {
		add(&arguments, "--output", options->dir);
	}
	if (options->clock) {
		add(&arguments, "--clock", options->clock);
	}
	if (options->attach) {
		add(&arguments, "--attach", options->attach);
	}
	if (options->serve) {
		add(&arguments, "--serve", options->serve);
	}
	if (options->secret_file) {
		add(&arguments, "--secret-file", options->secret_file);
	}
	if (options->kernel_stamps) {
		add(&arguments, "--stamps", "kernel");
	}
	if (options->target_bound_ns) {
		snprintf(bound, sizeof(bound), "%" PRIu64, options->target_bound_ns);
		add(&arguments, "--target-bound", bound);
	}
	if (options->force) {
		add(&arguments, "--force", NULL);
	}
	if (quiet) {
		add(&arguments, "--quiet", NULL);
	}
	add(&arguments, "--", NULL);
	for (size_t i = 0; i < count_command(options->command); i++) {
		add(&arguments, options->command[i], NULL);
	}
	if (options->time_limit_s && !options->command) {
		snprintf(seconds, sizeof(seconds), "%" PRIu64, options->time_limit_s);
		add(&arguments, "sleep", seconds);
	}
	/* Another parser begins from the start. */
	optind = 0;
	status = tdm_sync_main(arguments.count, arguments.items);
out:
	for (size_t i = 0; guests && i < options->guest_count; i++) {
		free(guests[i]);
	}
	free(guests);
	free(arguments.items);
	return status;
}
