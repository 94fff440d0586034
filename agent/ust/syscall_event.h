/* SPDX-License-Identifier: MIT */
/*
 * syscall_event.h - what the hooks hand to the tracepoint provider, and what it offers them.
 *
 * The provider (libtandem-syscall-ust.so) is loaded by the hooks (libtandem-syscall.so) with
 * dlopen(), so that a machine without lttng-ust runs the program untraced instead of not at all.
 */
#ifndef TDM_SYSCALL_EVENT_H
#define TDM_SYSCALL_EVENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define TDM_SYSCALL_NR_MAX 512 /* numbers from here on have the generic pair; none is known today */
#define TDM_SYSCALL_PATHS  2   /* renames have two */

/* One system call as the tracepoints see it. Borrowed for the length of one emit. */
struct tdm_call {
	int32_t nr;
	const uint64_t *args; /* 6 of them */
	int64_t ret;          /* exit only */
	/* Entry: the path arguments in the order of the table, never NULL. Exit: not read. */
	const char *path[TDM_SYSCALL_PATHS];
	uint8_t path_at; /* the argument that path[0] is of */
	int32_t fds
		[2]; /* exit, for calls that return two descriptors: -1 where they cannot be read */
};

/* The provider's own counts of one process, cumulative since its start or its fork. */
struct tdm_call_counts {
	uint64_t calls;   /* intercepted, the ones below included */
	uint64_t entries; /* entry events handed to LTTng: in the trace or in its discarded count */
	uint64_t exits;   /* exit events handed to LTTng */
	uint64_t
		no_exit; /* entries whose call by nature never came back: exit, exec, a killed sleep */
	uint64_t missed;     /* calls made while the thread was inside the recording: no event */
	uint64_t not_chosen; /* calls whose events no session has enabled */
	uint64_t notes; /* the provider's own events handed to LTTng: process_start and the like */
};

enum tdm_call_fields {
	TDM_CALL_PATHS = 63,   /* one bit for each argument that is a path name, two at most */
	TDM_CALL_FDS_SHIFT = 8 /* index + 1 of a pointer to two descriptors */
};

/* How to record one system call; the table has one row a number. */
struct tdm_call_row {
	const char *name;       /* LTTng's name; "unknown" for the generic pair */
	const int *entry_state; /* LTTng's own switch of the tracepoint: 0 = nobody listens */
	const int *exit_state;
	void (*entry)(const struct tdm_call *call);
	void (*exit)(const struct tdm_call *call);
	uint32_t fields; /* enum tdm_call_fields */
};

/* What the provider offers; found by dlsym("tdm_provider"). */
struct tdm_provider {
	uint32_t version;                /* TDM_PROVIDER_VERSION of its build */
	const struct tdm_call_row *rows; /* TDM_SYSCALL_NR_MAX of them */
	const struct tdm_call_row *generic;
	void (*before_fork)(sigset_t *saved);
	void (*after_fork_parent)(sigset_t *saved);
	void (*after_fork_child)(sigset_t *saved);
	void (*init_thread)(void);
	/* Leaves out all numbers but these: one bit each. */
	void (*choose)(const uint64_t numbers[TDM_SYSCALL_NR_MAX / 64]);
	/* LTTng caches credentials, names and name spaces: to be called after the call changed them. */
	void (*identity_changed)(int32_t nr);
	/* Events of the provider itself; true: somebody listens, it was handed over. */
	bool (*process_start)(
		const char *mode, uint64_t image_id, uint32_t sites, uint32_t unpatched);
	bool (*process_end)(
		const char *why, uint64_t image_id, const struct tdm_call_counts *counts);
	bool (*declined)(const char *path, const char *why);
};

#define TDM_PROVIDER_VERSION 2u

#endif
