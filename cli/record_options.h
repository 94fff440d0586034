/* SPDX-License-Identifier: MIT */
/*
 * record_options.h - the command line of tandem record.
 */
#ifndef CLI_RECORD_OPTIONS_H
#define CLI_RECORD_OPTIONS_H

#include "options.h"
#include <tandem/tap.h>

struct record_options {
	const char *dir;              /* -o; NULL = by time */
	struct tdm_tap_event *events; /* owned; never empty after parsing */
	size_t event_count;
	const char *clock; /* -C; NULL = the best common one */
	uint32_t buffer_kib;
	struct cli_named_list guests; /* NAME=ADDR */
	int32_t *pids;                /* owned */
	size_t pid_count;
	bool follow_children;
	uint64_t time_limit_s; /* 0 = none */
	uint64_t size_limit_mib;
	bool kallsyms;
	bool force;
	const char *finish_dir; /* --finish: nothing is recorded */
	char **command;         /* NULL = until Ctrl-C */
};

/**
 * Parses argv.
 *
 * @return -1: go on. Else the exit status to return.
 */
int record_options_parse(
	struct record_options *options, struct cli_command *command, int argc, char **argv);

void record_options_release(struct record_options *options);

#endif
