/* SPDX-License-Identifier: MIT */
/*
 * timeline_live.h - a timeline that grows while it is applied: what was given out once never changes.
 *
 * Knots arrive after the readings that they are about. Whoever cannot wait applies the last interval beyond its end;
 * the knot that comes then disagrees a little. The live timeline keeps the answers up to the last reading asked, and
 * slews from there to the line that is known now, at most at SLEW_PPM, so that it stays pure and non-decreasing. Only
 * a new segment, a real jump of a clock, is taken at once.
 */
#ifndef TANDEM_TIMELINE_LIVE_H
#define TANDEM_TIMELINE_LIVE_H

#include <tandem/timeline.h>

enum {
	TDM_LIVE_SLEW_PPM = 500 /* as fast as a steered clock may run in the kernel */
};

struct tdm_live; /* opaque; one thread */

/** @return Owned by the caller; NULL without memory. */
struct tdm_live *tdm_live_create(void);
void tdm_live_destroy(struct tdm_live *live);

/** Takes one line of a corrections service, as tdm_timeline_feed_line() does, with its results. */
enum tdm_status tdm_live_feed(struct tdm_live *live, const char *line, struct tdm_error *err);

/**
 * Says that what is fed next comes from a new connection, which tells everything from the beginning. What is known is
 * passed over; where it differs from what is known (a service of a new session) only what lies behind it counts.
 */
void tdm_live_begin_again(struct tdm_live *live);

/** True once there is a knot. */
bool tdm_live_is_ready(const struct tdm_live *live);

/** The greatest reading with a knot at or behind it; UINT64_MAX once the service has said that no more come. */
uint64_t tdm_live_known_until(const struct tdm_live *live);

/** Host reading for a guest reading. The answer for it, and for all before it, is settled from here on. */
uint64_t tdm_live_apply(struct tdm_live *live, uint64_t guest, uint32_t cpu);

/** What was fed, for reports. Borrowed. */
const struct tdm_timeline *tdm_live_timeline(const struct tdm_live *live);

#endif
