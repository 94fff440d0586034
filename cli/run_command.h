/* SPDX-License-Identifier: MIT */
/*
 * run_command.h - "until COMMAND ends or Ctrl-C": the child of a command line, and waiting for it.
 */
#ifndef CLI_RUN_COMMAND_H
#define CLI_RUN_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <tandem/status.h>

struct run_command {
	int signal_fd; /* SIGINT, SIGTERM, SIGHUP, SIGCHLD */
	int interrupt_fd; /* the same without SIGCHLD: readable while one waits to be taken; never read */
	int gate_fd;   /* the child waits for a byte here; -1 once released */
	int report_fd; /* the child writes errno here when exec failed */
	pid_t pid;     /* 0 = no command */
	bool ended;
	int asked_by; /* the last signal that asked for an end: the command gets the same */
	bool asked_by_terminal; /* which signals its whole foreground group, the command too */
	int wait_status;
	struct rlimit file_limit; /* of descriptors, as it was before ours was raised */
	bool has_file_limit;
};

/* For one that may be released before it was made. */
#define RUN_COMMAND_NONE                                                            \
	{                                                                           \
		.signal_fd = -1, .interrupt_fd = -1, .gate_fd = -1, .report_fd = -1 \
	}

/**
 * Blocks the signals that end a run and makes a descriptor for them. Before any thread is started: they inherit the mask.
 * Raises the limit of descriptors; the command gets the old one.
 */
enum tdm_status run_command_init(struct run_command *run, struct tdm_error *err);

/** Forks; the child stands still before its exec until run_command_release(), so that its pid can be set up first. */
enum tdm_status run_command_fork(struct run_command *run, char **argv, struct tdm_error *err);

/**
 * Lets the child exec.
 * @retval TDM_ERR_IO  It could not: no such program, no permission.
 */
enum tdm_status run_command_release(
	struct run_command *run, const char *name, struct tdm_error *err);

enum run_end {
	RUN_END_COMMAND, /* the command ended */
	RUN_END_SIGNAL,  /* Ctrl-C and its kin; the command was asked to end too and has */
	RUN_END_TIME,    /* the deadline passed */
	RUN_END_CHECK,   /* check() said so */
};

/**
 * Waits for what ends a run.
 *
 * A second signal kills the command. A command that is left running (time, check) is sent SIGTERM, then SIGKILL.
 *
 * @param deadline_ns  CLOCK_MONOTONIC; UINT64_MAX = none.
 * @param check        Called at least every 100 ms; true ends the run. May be NULL.
 */
enum run_end run_command_wait(
	struct run_command *run, uint64_t deadline_ns, bool (*check)(void *user), void *user);

/** True where a signal that ends the run waits for run_command_wait(). */
bool run_command_is_interrupted(const struct run_command *run);

/** Does a signal wait to be taken? @p interrupt_fd as in struct run_command; 0 = none. */
bool run_command_interrupt_waits(int interrupt_fd);

/** What a shell would give as the command's status: its exit status, or 128 + signal. 0 without a command. */
int run_command_exit_status(const struct run_command *run);

/** Ends a child that is still there and closes the descriptors. */
void run_command_release_all(struct run_command *run);

#endif
