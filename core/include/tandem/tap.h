/* SPDX-License-Identifier: MIT */
/*
 * tap.h - the kernel's tracer as a source of pages: an instance of our own in tracefs, its settings, metadata and rings.
 *
 * Uses the files of tracefs directly, so that the agent stays small and static. Everything happens in an instance: to
 * restore the machine's settings is to remove it, which the next start does for one that was killed.
 */
#ifndef TANDEM_TAP_H
#define TANDEM_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/log.h>
#include <tandem/status.h>
#include <tandem/trace_meta.h>

/* One event or glob to record: "sched", "sched:*", "sched:sched_switch", "kvm_*", and its filter. */
struct tdm_tap_event {
	const char *pattern;
	const char *filter; /* in the kernel's syntax; NULL = none */
	bool exclude;       /* not these, of what stands before */
};

/* A file of the instance and what is written to it. */
struct tdm_tap_setting {
	const char *file; /* e.g. "options/stacktrace"; the caller's to have checked */
	const char *value;
	bool append; /* to a list */
};

struct tdm_tap_options {
	const char *label; /* goes into the instance's name; letters, digits, '-' */
	const struct tdm_tap_event *events;
	size_t event_count;
	const char *clock;                      /* ftrace's name, e.g. "mono" */
	uint32_t buffer_kib;                    /* of each CPU; 0 = 4096 */
	const struct tdm_tap_setting *settings; /* written in order, before events are enabled */
	size_t setting_count;
	const int32_t *pids; /* only these tasks; NULL = all */
	size_t pid_count;
	bool follow_children; /* with pids: also what they fork */
	bool may_miss; /* a pattern may match nothing that is allowed, as long as one matches something */
	/* What may be recorded at all; NULL = everything. Events that are matched but not allowed are left out. */
	bool (*allow)(void *user, const char *system, const char *event);
	void *allow_user;
};

struct tdm_tap; /* opaque; one instance */

/**
 * Where tracefs is mounted, mounting it at its usual place where that is allowed and needed.
 *
 * @return A path that lives as long as the process, or NULL with @p err filled.
 */
const char *tdm_tap_find_tracefs(struct tdm_error *err);

/**
 * Makes an instance with tracing off, and sets clock, buffer, events and filters.
 *
 * @param options  Borrowed for the call.
 * @param log      Kept; may be NULL.
 * @param tap      Receives it, owned by the caller.
 * @retval TDM_ERR_RANGE  A pattern matches no event, the clock is unknown or a filter is refused: @p err says which.
 * @retval TDM_ERR_IO     No tracefs, or no permission.
 */
enum tdm_status tdm_tap_create(const struct tdm_tap_options *options, const struct tdm_log *log,
	struct tdm_tap **tap, struct tdm_error *err);

/** Stops tracing and removes the instance. NULL is fine. */
void tdm_tap_destroy(struct tdm_tap *tap);

/** Removes instances that a killed process of ours left behind. @return How many. */
unsigned int tdm_tap_remove_stale(const struct tdm_log *log);

enum tdm_status tdm_tap_start(struct tdm_tap *tap, struct tdm_error *err);
enum tdm_status tdm_tap_stop(struct tdm_tap *tap, struct tdm_error *err);

/** Adds tasks to the ones that are recorded, after creation. */
enum tdm_status tdm_tap_add_pid(struct tdm_tap *tap, int32_t pid, struct tdm_error *err);

/** True once every task that is recorded, and what it forked where children are followed, has ended. */
bool tdm_tap_tasks_ended(const struct tdm_tap *tap);

/** CPUs that have a ring: ids below this, some may be offline. */
uint32_t tdm_tap_cpu_count(const struct tdm_tap *tap);

/** Bytes of a ring-buffer sub-buffer ("page"). */
uint32_t tdm_tap_page_bytes(const struct tdm_tap *tap);

/* Keys of the lines of tdm_tap_left_out(). */
#define TDM_TAP_NOT_ALLOWED    "not-allowed"    /* no event of the pattern is */
#define TDM_TAP_PARTLY_ALLOWED "partly-allowed" /* some events of it are not */
#define TDM_TAP_NO_MATCH       "no-match"       /* there is no such event */

/**
 * Which patterns are not recorded, or not wholly: lines "KEY PATTERN" for tdm_record_find().
 *
 * @return Owned by the tap; empty where all are recorded.
 */
const struct tdm_buffer *tdm_tap_left_out(const struct tdm_tap *tap);

/** Path of the instance, for messages. */
const char *tdm_tap_path(const struct tdm_tap *tap);

/**
 * Collects the texts of the kernel: formats of the enabled events' systems and of ftrace, header, clock, uname.
 *
 * @param kallsyms  Also /proc/kallsyms (5 to 12 MB).
 */
enum tdm_status tdm_tap_collect(
	struct tdm_tap *tap, bool kallsyms, struct tdm_trace_meta *meta, struct tdm_error *err);

/** Adds saved command lines and printk formats as they are by now. */
enum tdm_status tdm_tap_collect_names(struct tdm_trace_meta *meta, struct tdm_error *err);

/** Adds what is only complete after recording: saved command lines, printk formats and per-CPU statistics. */
enum tdm_status tdm_tap_collect_end(
	struct tdm_tap *tap, struct tdm_trace_meta *meta, struct tdm_error *err);

/* What the kernel says of one ring. */
struct tdm_tap_stats {
	uint64_t entries, overrun_events, dropped_events;
};

enum tdm_status tdm_tap_get_stats(
	struct tdm_tap *tap, uint32_t cpu, struct tdm_tap_stats *stats, struct tdm_error *err);

/**
 * How this kernel turns TSC ticks into ns: (ticks * mult) >> shift.
 *
 * @return False where it does not say (no TSC, unstable TSC, no perf).
 */
bool tdm_tap_tsc_scale(uint32_t *mult, uint32_t *shift);

/* One CPU's ring, opened for reading; used by one thread at a time. */
struct tdm_ring;

/** @return A ring of @p cpu that the caller owns, or NULL with @p err filled (an offline CPU has none). */
struct tdm_ring *tdm_ring_open(struct tdm_tap *tap, uint32_t cpu, struct tdm_error *err);
void tdm_ring_close(struct tdm_ring *ring);

/** Descriptor to poll for "the buffer is filled to its percentage". */
int tdm_ring_poll_fd(const struct tdm_ring *ring);

/**
 * Moves the full pages that are there into @p out_fd without copying where the kernel lets us, else by copying.
 *
 * @param out_fd       A file, pipe or socket. Writes are whole: blocks until it took them, or took nothing for @p timeout_ms.
 * @param moved_bytes  Receives what went out; always whole pages.
 * @retval TDM_OK     Moved what was there (may be 0).
 * @retval TDM_ERR_IO The target refused it; the pages taken from the ring are lost and counted in moved_bytes' absence.
 */
enum tdm_status tdm_ring_move(struct tdm_ring *ring, int out_fd, unsigned int timeout_ms,
	uint64_t *moved_bytes, struct tdm_error *err);

/**
 * Takes the full pages that are there into memory.
 *
 * @param room       At least one page; more is better.
 * @param got_bytes  Receives how much, whole pages; 0 where none is full.
 */
enum tdm_status tdm_ring_take(
	struct tdm_ring *ring, void *pages, size_t room, size_t *got_bytes, struct tdm_error *err);

/**
 * Reads one page by copying, also one that is not full yet.
 *
 * @param page  Room for tdm_tap_page_bytes().
 * @retval TDM_OK     A page; what lies behind its commit is zero.
 * @retval TDM_AGAIN  The ring is empty.
 */
enum tdm_status tdm_ring_read(struct tdm_ring *ring, void *page, struct tdm_error *err);

/**
 * Makes a page without records: it says that the CPU's records up to @p time have all been moved.
 *
 * @param page  Room for tdm_tap_page_bytes().
 * @param time  Reading of the trace clock, taken before the ring was found empty.
 */
void tdm_ring_empty_page(const struct tdm_ring *ring, void *page, uint64_t time);

#endif
