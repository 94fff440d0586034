/* SPDX-License-Identifier: MIT */
/*
 * stamp_priv.h - the tracer's own stamps become those that are shown.
 */
#ifndef TANDEM_STAMP_PRIV_H
#define TANDEM_STAMP_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/trace.h>

/* How the stamps of one stream are made; the order is fixed: shift, then to ns, then offset. */
struct stamp_plan {
	enum {
		STAMP_SHIFT_NONE,
		STAMP_SHIFT_SAMPLES,     /* the file's TIME_SHIFT */
		STAMP_SHIFT_CORRECTIONS, /* a corrections file in its place */
	} shift;
	const struct tdm_recorded_shift *samples;
	bool interpolate;
	const struct tdm_timeline *corrections;
	struct tdm_timeline_hint hint;
	uint32_t cpu;

	enum {
		STAMP_UNIT_KEEP,
		STAMP_UNIT_TSC,    /* (t * mult) >> shift */
		STAMP_UNIT_HZ,     /* as trace-cmd's --ts2secs: by a double */
		STAMP_UNIT_HZ_INT, /* host readings of a corrections file: exact */
	} unit;

	uint32_t tsc_mult, tsc_shift;
	uint64_t hz;
	uint64_t offset_ns; /* modulo 2^64 */
};

/** The plan of one stream. Everything is borrowed from @p trace, which must have its info and options. */
struct stamp_plan stamp_plan_make(
	const struct tdm_trace_info *info, const struct tdm_stamp_options *options, size_t stream);

/** What the stamp @p raw becomes. */
uint64_t stamp_one(struct stamp_plan *plan, uint64_t raw);

/** Fills time_ns from raw_time. */
void stamp_slots(struct stamp_plan *plan, struct tdm_slot *slots, size_t count);

/** True where two clock names mean the same clock: x86-tsc and tsc2nsec are one. NULL is any. */
bool stamp_clocks_equal(const char *a, const char *b);

#endif
