/* SPDX-License-Identifier: MIT */
/*
 * record_spool.h - one machine's pages and texts on disk while it is recorded, and their way into NAME.dat.
 *
 * DIR/NAME.recording holds a file of pages for each CPU, the kernel's texts and a small "session" file, so that what a
 * killed recorder left can be completed later ("tandem record --finish DIR").
 */
#ifndef TANDEM_CLI_RECORD_SPOOL_H
#define TANDEM_CLI_RECORD_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>
#include <tandem/trace.h>
#include <tandem/trace_meta.h>

struct record_spool;

/* What ties a machine's file to the others of its session. */
struct record_ties {
	uint64_t trace_id;
	uint64_t host_trace_id; /* of the host's file; equal to trace_id in the host's own */
	bool has_tsc2nsec;      /* of the host; for clock x86-tsc */
	uint32_t tsc_mult, tsc_shift;
};

/**
 * Makes DIR/NAME.recording, which nobody else can open or make until the spool is closed.
 *
 * @param force  Replaces one that a killed recorder left; never one that is being recorded.
 * @return A spool that the caller owns, or NULL with @p err filled.
 */
struct record_spool *record_spool_create(const char *dir, const char *name,
	const struct record_ties *ties, bool force, struct tdm_error *err);

/** Opens what a killed recorder left, pages and texts. @return As above; NULL also while it is being recorded. */
struct record_spool *record_spool_open(const char *dir, const char *name, struct tdm_error *err);

/** Closes it; what is on disk stays. NULL is fine. */
void record_spool_close(struct record_spool *spool);

/** Removes it from the disk. */
void record_spool_remove(struct record_spool *spool);

/** Makes room for the pages of @p cpu_count CPUs. Once, before any page. */
enum tdm_status record_spool_set_cpus(
	struct record_spool *spool, uint32_t cpu_count, struct tdm_error *err);

/** Descriptor to append a CPU's pages to; for one thread a CPU. */
int record_spool_fd(const struct record_spool *spool, uint32_t cpu);

/** Saves the texts, over those saved before. @p meta is borrowed. */
enum tdm_status record_spool_save_meta(
	struct record_spool *spool, const struct tdm_trace_meta *meta, struct tdm_error *err);

/** Saves the beginning of a file that another program made, in place of texts. @p prefix is borrowed. */
enum tdm_status record_spool_save_prefix(
	struct record_spool *spool, const struct tdm_buffer *prefix, struct tdm_error *err);

/** Bytes of pages of all CPUs that are on disk. */
uint64_t record_spool_bytes(const struct record_spool *spool);

/** Bytes of one CPU's pages that are on disk; the last page may be a part. Thread-safe. */
uint64_t record_spool_cpu_bytes(const struct record_spool *spool, uint32_t cpu);

/* What the pages say of events that their rings had no room for. */
struct record_losses {
	uint64_t events;
	uint64_t uncounted; /* places where the kernel does not say how many */
};

/** Adds up what all pages on disk say; events lost behind the last page are said by none. */
struct record_losses record_spool_losses(const struct record_spool *spool);

/** The texts as last saved; of a prefix only its numbers. */
const struct tdm_trace_meta *record_spool_meta(const struct record_spool *spool);

uint32_t record_spool_cpus(const struct record_spool *spool);
const char *record_spool_name(const struct record_spool *spool);
const struct record_ties *record_spool_ties(const struct record_spool *spool);

/**
 * Writes DIR/NAME.dat and removes the spool.
 *
 * @param guests       GUEST options, for a host's file. Borrowed.
 * @param corrections  Corrections of this guest, become its TIME_SHIFT; NULL = none. Borrowed.
 */
enum tdm_status record_spool_finish(struct record_spool *spool, const struct tdm_guest_info *guests,
	size_t guest_count, const struct tdm_timeline *corrections, const struct tdm_log *log,
	struct tdm_error *err);

#endif
