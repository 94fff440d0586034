/* SPDX-License-Identifier: MIT */
/*
 * options.h - what the command lines of all subcommands have in common.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli.h"
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <tandem/log.h>
#include <tandem/machines.h>
#include <tandem/status.h>

/* Values of long options without a letter: the common ones, then a command's own from CLI_OPT_OWN on. */
enum cli_opt {
	CLI_OPT_HELP = 256,
	CLI_OPT_VERSION,
	CLI_OPT_QUIET,
	CLI_OPT_OWN
};

/* The rows that every command's option table begins with; "h" and "q" belong into its letters. */
#define CLI_COMMON_OPTIONS                                         \
	{ "help", no_argument, NULL, CLI_OPT_HELP },               \
		{ "version", no_argument, NULL, CLI_OPT_VERSION }, \
	{                                                          \
		"quiet", no_argument, NULL, CLI_OPT_QUIET          \
	}
#define CLI_COMMON_LETTERS "hq"

/* What a command says of itself and how it speaks. */
struct cli_command {
	const char *name; /* e.g. "info" */
	const char *help; /* the text of --help, an example included */
	bool quiet;       /* --quiet was given */
	struct tdm_log
		log; /* lines to stderr: "tandem NAME: warning: ..."; errors only when quiet */
};

/** Fills @p command. The strings are kept; @p command must not move afterwards (its log points at it). */
void cli_command_init(struct cli_command *command, const char *name, const char *help);

/** getopt_long(), and for a long option that there is none of, which one may be meant. */
int cli_next_option(const struct cli_command *command, int argc, char **argv, const char *letters,
	const struct option *options);

/**
 * Handles an option value of getopt_long() that is not the command's own.
 *
 * @return -1: handled, go on. Else the exit status to return: help and version were printed, or a usage fault was told.
 */
int cli_common_option(struct cli_command *command, int value);

/** Says a usage fault and how to get help, also with --quiet. @return TDM_EXIT_USAGE. */
int cli_usage_fault(const struct cli_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Says an error, also with --quiet. @return TDM_EXIT_FAILED. */
int cli_failed(const struct cli_command *command, const struct tdm_error *err);

/** Prints a name or text of a file so that it stays in its line and does nothing to a terminal. */
void cli_put_visible(FILE *out, const char *text);

/** Ends the results: says it where they could not be written. @return @p exit_status, or TDM_EXIT_FAILED. */
int cli_end_output(const struct cli_command *command, int exit_status);

/**
 * Splits NAME=PATH. What stands before the first "=" is a name only where it is an allowed one ("./a=b.dat" is a path).
 * @param input  Receives it; name is NULL for a plain path. The strings point into @p argument and @p name_room.
 */
void cli_parse_input(const char *argument, char name_room[TDM_MACHINE_NAME_MAX + 1],
	struct tdm_machine_input *input);

/* A growing list of NAME=TEXT arguments: inputs, --corrections, --offset, --guest. */
struct cli_named {
	char name[TDM_MACHINE_NAME_MAX + 1]; /* "" = without a name */
	const char *text;                    /* borrowed from argv */
	char *owned_text;                    /* text, where it is not borrowed; else NULL */
	char kept_path[32]; /* of an input that came through a pipe: where text points then */
};

struct cli_named_list {
	struct cli_named *items; /* owned */
	size_t count;
};

/** Appends one argument, split as cli_parse_input() does. @return False without memory. */
bool cli_named_add(struct cli_named_list *list, const char *argument);

/**
 * The same for an argument that ends in a path: what stands before "=" must be a name then, unless the whole argument is
 * a path itself.
 * @return -1: go on; else the exit status, and the fault was told.
 */
int cli_named_path_add(
	const struct cli_command *command, struct cli_named_list *list, const char *argument);
void cli_named_release(struct cli_named_list *list);

/**
 * A whole number, decimal or hexadecimal ("0x"), that of the first with an optional sign.
 * @return False where the text is anything else or out of range.
 */
bool cli_parse_int(const char *text, int64_t *number);
bool cli_parse_uint(const char *text, uint64_t *number);

#endif
