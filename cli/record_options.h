/* SPDX-License-Identifier: MIT */
/*
 * record_options.h - the command line of tandem record.
 */
#ifndef CLI_RECORD_OPTIONS_H
#define CLI_RECORD_OPTIONS_H

#include "options.h"
#include <tandem/tap.h>

/* The -e and -f of one machine. */
struct record_events {
	struct tdm_tap_event *items; /* owned */
	size_t count;
};

/* One --guest, and the -e behind it. */
struct record_guest_spec {
	const char *name;            /* of the list's item */
	const char *address;         /* "" = that of the guest that is called so */
	int vmm_pid;                 /* --guest-pid: the process that runs it; 0 = look for it */
	struct record_events events; /* none = the host's, as far as the guest has them */
};

struct record_options {
	const char *dir;             /* -o; NULL = by time */
	struct record_events events; /* the host's; never empty after parsing */
	const char *clock;           /* -C; NULL = the best common one */
	uint32_t buffer_kib;
	struct cli_named_list guest_names; /* NAME=ADDR as given */
	struct record_guest_spec *guests;  /* owned */
	size_t guest_count;
	const char *serve; /* address of the service; NULL = none */
	const char *secret_file;
	bool plain_data;
	bool kernel_stamps;
	uint64_t target_bound_ns; /* 0 = none */
	int32_t *pids;            /* owned */
	size_t pid_count;
	bool follow_children;
	uint64_t time_limit_s; /* 0 = none */
	uint64_t size_limit_mib;
	bool kallsyms;
	bool force;
	const char *attach; /* session to begin and end with; NULL = none */
	bool clocks_only;
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
