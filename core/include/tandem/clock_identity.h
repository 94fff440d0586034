/* SPDX-License-Identifier: MIT */
/*
 * clock_identity.h - is a timeline of the clock that stamped a trace?
 */
#ifndef TANDEM_CLOCK_IDENTITY_H
#define TANDEM_CLOCK_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/exchange.h>
#include <tandem/timeline.h>

enum {
	TDM_MISFIT_BYTES = 400
};

/**
 * Holds what a timeline says of one of its clocks against what a trace says of its own: the boot's identity (LTTng gives it
 * to its clock as UUID) and the clock's name. What either does not say fits; so does a UUID of version 8, which tandem gives
 * to clocks of traces that tell none.
 *
 * @param uuid   36 characters, NULL or "": not known.
 * @param clock  As ftrace calls it, or LTTng ("monotonic"); NULL or a name that is neither's: not known.
 * @param why    Receives what differs, for a message: "" where nothing does.
 * @return Whether they may be one clock.
 */
bool tdm_clock_identity_fits(const struct tdm_timeline *timeline, enum tdm_side side,
	const char *uuid, const char *clock, char why[TDM_MISFIT_BYTES]);

/**
 * Holds the first reading of a trace against the range that was measured: one behind the last exchange, or long before the
 * first, is told. An exact relation is not measured and goes on for ever.
 *
 * @param why  Receives a sentence about it, "" where it is inside.
 */
bool tdm_clock_range_fits(
	const struct tdm_timeline *timeline, uint64_t first_reading, char why[TDM_MISFIT_BYTES]);

#endif
