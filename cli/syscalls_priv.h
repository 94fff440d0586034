/* SPDX-License-Identifier: MIT */
/*
 * syscalls_priv.h - what the files of "tandem syscalls" share.
 */
#ifndef CLI_SYSCALLS_PRIV_H
#define CLI_SYSCALLS_PRIV_H

#include "options.h"
#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

/* Where the parts of the provider lie. */
struct syscalls_parts {
	char preload[PATH_MAX];  /* libtandem-syscall.so, or the wrappers */
	char sessions[PATH_MAX]; /* the folder of session files */
};

/* One profile, as its session file says. */
struct syscalls_profile {
	char *text; /* the session file; owned */
	char name[256];
	uint64_t subbuf_bytes;
	uint64_t subbuf_count;
	bool is_snapshot;
};

/* Which calls to record: one bit for each number. */
struct syscalls_choice {
	bool all;
	uint64_t numbers[8];
};

/* Runs in one daemon are told apart by the log level of their programs' events, of which LTTng has so many. */
#define SYSCALLS_LEVELS          15u
#define SYSCALLS_LEVEL_OF_OTHERS 13u /* of programs that are preloaded without us */

/* A session of ours and the daemon it lives in. */
struct syscalls_session {
	char name[256];
	unsigned int level;
	char home[PATH_MAX]; /* LTTNG_HOME of our own daemon; "": root's, or one that was there */
	pid_t keeper_pid;    /* of the process that keeps our own daemon; 0: not ours */
	int keeper_fd;       /* open as long as we want the daemon; -1: not ours */
	bool created;
	bool is_snapshot;
};

/* What the trace itself tells of one process; several images (execs) of one number add up. */
struct syscalls_process {
	int64_t vpid;
	char name[64];
	uint64_t events;                                          /* in the trace */
	uint64_t entries, exits;                                  /* of them */
	uint64_t calls, sent, no_exit, missed, not_chosen, notes; /* by its own counts */
	uint32_t images, reports;
};

struct syscalls_report {
	struct syscalls_process *processes; /* owned */
	size_t process_count;
	size_t trace_count;
	uint64_t entries, exits, notes; /* in the trace */
	uint64_t discarded_events;
	uint64_t discarded_packets;
	bool all_chosen; /* by the caller: calls that were not chosen are calls that LTTng did not take */
	bool discarded_unknown; /* the tracer lost some and does not know how many */
};

/** Finds the parts beside the program (build tree, any prefix), else where they were configured. */
enum tdm_status syscalls_find_parts(bool wrap, struct syscalls_parts *parts, struct tdm_error *err);

/**
 * Reads a profile: NAME of the shipped ones ("tandem-" may be left out), or a path to a session file.
 */
enum tdm_status syscalls_profile_read(const struct syscalls_parts *parts, const char *wanted,
	struct syscalls_profile *profile, struct tdm_error *err);
void syscalls_profile_release(struct syscalls_profile *profile);

/** Bytes of shared memory that the rings take: for possible CPUs, not online ones. */
uint64_t syscalls_profile_shm_bytes(const struct syscalls_profile *profile, unsigned int cpus);
unsigned int syscalls_possible_cpus(void);

/**
 * Is there room in /dev/shm?
 *
 * @retval TDM_ERR_RANGE  No; the message names figures and remedies. A warning on @p log from a quarter on.
 */
enum tdm_status syscalls_check_shm(
	const struct syscalls_profile *profile, const struct tdm_log *log, struct tdm_error *err);

/**
 * Writes the session file that is loaded: the profile with the chosen events, contexts and live timer.
 *
 * @param level  Of our events only those of programs with this log level are recorded.
 */
enum tdm_status syscalls_profile_write(const struct syscalls_profile *profile,
	const struct syscalls_choice *choice, unsigned int level, bool procname, bool live,
	FILE *out, struct tdm_error *err);

/**
 * Reads a choice of calls: names separated by commas, "%file", "%network", "%process", "%memory",
 * "%signal" and "%desc" for groups, "!" before the list for all others.
 */
enum tdm_status syscalls_choice_parse(
	const char *text, struct syscalls_choice *choice, struct tdm_error *err);

static inline bool syscalls_choice_has(const struct syscalls_choice *choice, unsigned int nr)
{
	return choice->all || (nr < 512 && (choice->numbers[nr / 64] >> (nr % 64) & 1));
}

/* LTTng's name of a number that has typed events, else NULL. */
const char *syscalls_typed_name(unsigned int nr);

/** Warns when the command itself cannot be recorded: statically linked, set-user-ID and the like. */
void syscalls_tell_unfollowed(const char *command, const struct tdm_log *log);

/** Starts a daemon of our own where none answers. @p scratch is a folder of ours for its files. */
enum tdm_status syscalls_daemon_need(struct syscalls_session *session, const char *scratch,
	const struct tdm_log *log, struct tdm_error *err);
/** Has anybody but us a session in the daemon? Runs that were killed do not count. */
bool syscalls_others_use_daemon(const char *own_name);
/** Chooses a level that no other run in the daemon has, or the one that fewest have, and the session's name by it. */
void syscalls_session_choose_level(struct syscalls_session *session);
/** Has another run the level that was chosen? Two that begin at once may choose the same. */
bool syscalls_session_shares_level(const struct syscalls_session *session);
/** Loads the session; nothing is recorded yet. @param output_url  file:///... or net://... */
enum tdm_status syscalls_session_load(struct syscalls_session *session, const char *session_file,
	const struct syscalls_profile *profile, const char *output_url, struct tdm_error *err);
enum tdm_status syscalls_session_start(
	const struct syscalls_session *session, struct tdm_error *err);
/** Forgets a session that was not started. */
void syscalls_session_discard(struct syscalls_session *session);
/** Stops it (what was recorded is on disk afterwards) and forgets it. */
enum tdm_status syscalls_session_stop(struct syscalls_session *session, struct tdm_error *err);
/** Is there a session of this name that records our events? */
enum tdm_status syscalls_session_check(const char *name, struct tdm_error *err);
/** Lets go of the daemon, which ends unless others use it; waits for that. */
void syscalls_daemon_stop(struct syscalls_session *session);

/**
 * Reads a trace directory and adds up what it has and what it lacks.
 *
 * @param log_path  The provider's log, which has each process's counts also where their events were discarded;
 *                  NULL: there is none any more.
 */
enum tdm_status syscalls_report_read(const char *dir, const char *log_path,
	struct syscalls_report *report, struct tdm_error *err);
void syscalls_report_print(const struct syscalls_report *report, bool each_process, FILE *out);
/** Did anything get lost, or can it not be told? */
bool syscalls_report_is_complete(const struct syscalls_report *report);
void syscalls_report_release(struct syscalls_report *report);

#endif
