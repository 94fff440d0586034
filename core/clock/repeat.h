/* SPDX-License-Identifier: MIT */
/*
 * repeat.h - readings that a guest's clock showed in more than one run, because it went back in between.
 */
#ifndef TANDEM_REPEAT_H
#define TANDEM_REPEAT_H

#include <tandem/timeline.h>
#include <tandem/wide.h>

enum {
	REPEAT_MAX_RUNS = 512
};

/* One run of the guest's clock: its own timeline, and the readings [from, until) that it may have shown. */
struct repeat_run {
	struct tdm_timeline *timeline;
	uint64_t from, until;
	enum tdm_segment_kind kind; /* of the break before it */
};

/** Puts runs, in the order of time, into an empty timeline whose info is set. */
enum tdm_status repeat_merge(const struct repeat_run *runs, size_t count,
	struct tdm_timeline *timeline, struct tdm_error *err);

/** Widens a knot's bound until it covers what a timeline says of a reading. */
void repeat_cover(const struct tdm_timeline *timeline, uint64_t guest, struct tdm_knot *knot);

#endif
