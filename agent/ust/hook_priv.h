/* SPDX-License-Identifier: MIT */
/*
 * hook_priv.h - what the files of libtandem-syscall.so share: the state of threads and of the process.
 */
#ifndef TDM_HOOK_PRIV_H
#define TDM_HOOK_PRIV_H

#include "patch.h"
#include "syscall_event.h"
#include <stdatomic.h>
#include <stddef.h>

enum tdm_thread_state {
	TDM_THREAD_NEW = 0,  /* not seen yet */
	TDM_THREAD_READY,    /* recorded */
	TDM_THREAD_EXCLUDED, /* lttng-ust's, or it shares another thread's local storage */
	TDM_THREAD_FORKED    /* of a forked child that LTTng does not know yet: its calls wait */
};

/* The counts of one thread; those of ended threads stay in the slot and the next owner adds. */
struct tdm_count_slot {
	struct tdm_call_counts counts;
	_Atomic(uint32_t) taken;
} __attribute__((aligned(128)));

struct tdm_thread {
	uint8_t state;            /* enum tdm_thread_state */
	uint8_t in_fork_handlers; /* glibc's fork() runs: lttng-ust is told by its handlers */
	uint8_t vfork_child;      /* a child borrows this thread until it execs or exits */
	uint8_t excluded_depth;   /* the thread is in lttng-ust by our own doing */
	uint32_t post_nr;         /* the number of a call made without a frame */
	/* The stack pointer of the hook that is recording now, 0 outside. */
	uint64_t inside_sp;
	struct tdm_count_slot *slot;
	sigset_t fork_signals;
	uint8_t selector; /* of Syscall User Dispatch: SYSCALL_DISPATCH_FILTER_* */
	uint8_t dispatching;
	uint8_t is_loading; /* the thread loads lttng-ust: all its calls are lttng-ust's until it is done */
	void *lttng_value; /* what lttng-ust frees when the thread ends, kept until its very last call */
};

/* initial-exec: no allocation inside a hook, and a handler may use it at any time. */
extern __thread struct tdm_thread tdm_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

struct tdm_process {
	const struct tdm_provider *provider;
	_Atomic(int32_t) fork_in_flight; /* a fork-like call is being made, or we are its child */
	_Atomic(int32_t) excluded_starting; /* threads of lttng-ust that do not know it yet */
	int32_t pid;
	uint64_t image_id;    /* tells the images of one pid apart */
	uint8_t complete;     /* Syscall User Dispatch is on */
	uint8_t probes_off;   /* a strict sandbox forbids our own system calls */
	uint8_t is_sandboxed; /* a filter of the program's own decides about system calls, ours too */
	uint64_t restorer;    /* where signal handlers return to: libc's */
	uint32_t
		cancel_word_at; /* offset of glibc's cancellation word in the thread, 0: not known */
};

extern struct tdm_process tdm_process __attribute__((visibility("hidden")));

/* Of Linux 5.11; the headers may be older. */
#define TDM_NR_EPOLL_PWAIT2 441

#define TDM_HIDDEN __attribute__((visibility("hidden")))

/* What the first hook leaves in the frame's scratch for the second. */
enum tdm_frame_scratch {
	TDM_SCRATCH_LOOK = 0, /* look at everything */
	TDM_SCRATCH_QUICK /* a recorded thread, a call without ways of its own; its row is in the frame */
};

/* hook_plan.c: general registers only. */
TDM_HIDDEN unsigned int tdm_hook_plan(struct tdm_frame *frame);
/* Numbers whose hooks do more than record: 1 bit each. */
extern TDM_HIDDEN uint64_t tdm_special_calls[8];
/* In the complete mode calls that wait under a mask of their own are such; in the others they are recorded like any. */
TDM_HIDDEN void tdm_special_add_waiting(void);

/* hook.c */
TDM_HIDDEN unsigned int tdm_hook_entry(struct tdm_frame *frame);
TDM_HIDDEN void tdm_hook_exit(struct tdm_frame *frame);
TDM_HIDDEN void tdm_hook_post(struct tdm_frame *frame);

/* counts.c */
TDM_HIDDEN struct tdm_count_slot *tdm_counts_take(void);
TDM_HIDDEN void tdm_counts_release(struct tdm_count_slot *slot);
TDM_HIDDEN void tdm_counts_sum(struct tdm_call_counts *sum);
TDM_HIDDEN void tdm_counts_restart(struct tdm_count_slot *keep);
/* One instruction: a signal handler of the thread sees it done or not begun. */
#ifdef __x86_64__
#define TDM_COUNT(field) __asm__ volatile("incq %0" : "+m"(tdm_thread.slot->counts.field))
#else
#define TDM_COUNT(field) __atomic_fetch_add(&tdm_thread.slot->counts.field, 1, __ATOMIC_RELAXED)
#endif

/* user_string.c */
/**
 * Makes a path name of the program safe to read.
 *
 * @param address  The program's pointer; may be anything.
 * @return The string where it lies, "" where memory cannot be read, a note where it has no end within
 *         the length of a path: the kernel refuses those too.
 */
TDM_HIDDEN const char *tdm_user_string(uint64_t address);
TDM_HIDDEN bool tdm_user_readable(uint64_t address);

/* fds.c: the descriptors of lttng-ust in this process. */
TDM_HIDDEN void tdm_fds_own_call(struct tdm_frame *frame, bool may_move);
TDM_HIDDEN bool tdm_fds_is_own(uint64_t fd);
TDM_HIDDEN bool tdm_fds_close_range(struct tdm_frame *frame);

/* own_sends.c: what lttng-ust writes to the session daemon, put together. */
/* Looks at a call of lttng-ust's in a thread whose every call is its own. True: kept, ret is set, do not call. */
TDM_HIDDEN bool tdm_sends_own_call(struct tdm_thread *thread, struct tdm_frame *frame);
/* The thread's calls are the program's again, or it ends. */
TDM_HIDDEN void tdm_sends_end(struct tdm_thread *thread);
/* In a forked child: the other threads and what they kept are the parent's. */
TDM_HIDDEN void tdm_sends_forget(void);

/* process.c: fork, exec, threads. */
TDM_HIDDEN void tdm_process_fork_before(void);
TDM_HIDDEN void tdm_process_fork_parent(void);
TDM_HIDDEN void tdm_process_fork_child(void);
TDM_HIDDEN void tdm_process_begin(const char *mode);
TDM_HIDDEN void tdm_process_end(const char *why);
TDM_HIDDEN void tdm_process_install(void);
TDM_HIDDEN void tdm_process_thread_end(void);
TDM_HIDDEN void tdm_process_vtid_find(void);
TDM_HIDDEN void tdm_process_vtid_forget(void);
TDM_HIDDEN bool tdm_process_is_lttng(uint64_t address);
/* After a call of one of lttng-ust's threads: one that glibc makes in every thread must give the same in all. */
TDM_HIDDEN void tdm_process_own_identity(struct tdm_frame *frame);

/*
 * waiting.c: calls made before LTTng knows the process (constructors of other objects, the first calls
 * of a forked child). They are kept and recorded later: in order, with later stamps.
 */
TDM_HIDDEN void tdm_waiting_add(const struct tdm_frame *frame);
TDM_HIDDEN void tdm_waiting_replay(void);

/* provider_load.c: NULL when the program has to run unrecorded, which is said. */
TDM_HIDDEN const struct tdm_provider *tdm_provider_load(void);

/* exec_check.c */
/* Says on the log and in the trace when a program that is about to be run cannot be followed. */
TDM_HIDDEN void tdm_exec_check(uint64_t path_address);

/* dispatch.c: the complete mode. */
TDM_HIDDEN int tdm_dispatch_start(void);
TDM_HIDDEN void tdm_dispatch_arm_thread(void);
/* Around a call without a frame, whose child may run where the mode is not armed. */
TDM_HIDDEN void tdm_dispatch_pause(void);
TDM_HIDDEN void tdm_dispatch_resume(void);
/* Looks at calls that would take the mode away from us. True: ret is set, do not call. */
TDM_HIDDEN bool tdm_dispatch_guard(struct tdm_frame *frame);
/* After the call: the program gets its registers as they were. */
TDM_HIDDEN void tdm_dispatch_give_back(struct tdm_frame *frame);

/* say.c */
TDM_HIDDEN void tdm_say(const char *what, const char *about, const char *why);
TDM_HIDDEN void tdm_say_setup(char **environment);
/* For the front end alone: what the events of the same name say, where they cannot be discarded. */
TDM_HIDDEN void tdm_say_start(int32_t pid, uint64_t image_id, const char *name);
TDM_HIDDEN void tdm_say_end(int32_t pid, uint64_t image_id, const struct tdm_call_counts *counts);

static inline long tdm_raw(long nr, long a, long b, long c, long d, long e, long f)
{
	return tdm_patch_syscall(nr, a, b, c, d, e, f);
}

static inline bool tdm_is_special(uint64_t nr)
{
	return nr < 512 && (tdm_special_calls[nr >> 6] >> (nr & 63) & 1);
}

static inline const struct tdm_call_row *tdm_row(uint64_t nr)
{
	const struct tdm_provider *provider = tdm_process.provider;

	return nr < TDM_SYSCALL_NR_MAX ? &provider->rows[nr] : provider->generic;
}

#endif
