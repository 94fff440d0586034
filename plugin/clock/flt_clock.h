/* SPDX-License-Identifier: MIT */
/*
 * flt_clock.h - from a clock value of the guest to the value of the corrected clock.
 *
 * A correction maps raw readings to raw readings. The corrected clock counts the host's nanoseconds and has the host's
 * offset from the Unix epoch, so that it agrees with the host's own trace to the nanosecond.
 */
#ifndef TANDEM_FLT_CLOCK_H
#define TANDEM_FLT_CLOCK_H

#include "compat.h"
#include "report.h"
#include <tandem/timeline.h>
#include <tandem/timeline_live.h>

enum flt_extrapolate {
	FLT_EXTRAPOLATE_YES,  /* the first and the last interval go on */
	FLT_EXTRAPOLATE_WARN, /* the same, said once */
	FLT_EXTRAPOLATE_NO,   /* readings outside the knots end the graph */
};

/* How readings become stamps: one a component. Of timeline and live one is there, or neither: no correction. */
struct flt_mapping {
	struct tdm_timeline *timeline; /* of a file; owned by the component */
	struct tdm_live *live;         /* of a service; owned by the component */
	bool is_fixed_epoch;           /* epoch_ns is what the user or the host's trace says */
	int64_t epoch_ns;              /* host trace clock + this = Unix time */
	bool is_unix;                  /* the corrected clock counts from the Unix epoch */
	enum flt_extrapolate extrapolate;
	bool said_epoch, said_unit, said_outside, said_misfit;
	bool was_covered; /* a reading was inside, or one outside was looked at */
	uint64_t first_reading, last_reading; /* with knots around them; of a file */
};

/* What is known of one input clock. */
struct flt_clock {
	uint64_t hz;                /* of the input clock */
	uint64_t guest_hz, host_hz; /* units of the correction's readings */
	int64_t bias_ns;            /* added to host ns so that a value is never negative */
	int64_t epoch_ns;           /* of the corrected clock's origin, bias not included */
	bool direct; /* input values are readings, host readings are ns: nothing to scale */
};

/** True once the mapping can map anything: at once for a file, after the first knot for a service. */
bool flt_mapping_is_ready(const struct flt_mapping *mapping);

/** The worst bound that the correction admits at its knots, in ns; 0 without a correction. */
uint64_t flt_mapping_bound_ns(const struct flt_mapping *mapping);

/**
 * Sets frequency, offset, origin, precision and accuracy of @p out, the corrected clock for @p in, and fills @p clock.
 * @return False with a cause appended to @p self.
 */
bool flt_clock_make(struct flt_mapping *mapping, const struct report *report,
	bt_self_component *self, uint64_t mip, const bt_clock_class *in, bt_clock_class *out,
	struct flt_clock *clock);

/** A value of the input clock as a reading in the correction's unit. */
uint64_t flt_clock_reading(const struct flt_clock *clock, uint64_t value);

/** False where the reading lies outside the knots and extrapolate=no forbids it; says it once for "warn". */
bool flt_mapping_covers(struct flt_mapping *mapping, const struct report *report, uint64_t reading);

/**
 * The corrected value for a reading.
 *
 * @param value  Receives it.
 * @return False where the time does not fit what babeltrace2 can carry.
 */
bool flt_clock_apply(const struct flt_mapping *mapping, const struct flt_clock *clock,
	uint64_t reading, uint32_t cpu, struct tdm_timeline_hint *hint, uint64_t *value);

#endif
