/* SPDX-License-Identifier: MIT */
/*
 * local_clock.h - one machine's trace clock beside its raw clock, also where only the kernel reads the trace clock.
 */
#ifndef TANDEM_LOCAL_CLOCK_H
#define TANDEM_LOCAL_CLOCK_H

#include <tandem/clocks.h>
#include <tandem/log.h>

struct tdm_marker; /* opaque: numbered markers in a trace instance of its own */

struct tdm_local_clock {
	enum tdm_clock trace;
	enum tdm_clock raw;
	struct tdm_marker *marker;         /* only for TDM_CLOCK_MARKER; owned */
	uint64_t tick_ns;                  /* of a marker clock: 1, or what "uptime" counts in */
	uint64_t marker_raw, marker_trace; /* at the last marker */
};

/** The trace clock's units in a second. */
uint64_t tdm_local_clock_hz(const struct tdm_local_clock *clock);

/**
 * Prepares a clock by its ftrace name. A marker clock makes a trace instance, so it needs tracefs and its permission.
 *
 * @param log  Kept; may be NULL.
 * @retval TDM_ERR_UNSUPPORTED  No such clock here; @p err says which there are.
 * @retval TDM_ERR_IO           No tracefs, or no permission.
 */
enum tdm_status tdm_local_clock_init(struct tdm_local_clock *clock, const char *name,
	const struct tdm_log *log, struct tdm_error *err);
void tdm_local_clock_release(struct tdm_local_clock *clock);

/**
 * Relates the two clocks: outer is raw, inner is the trace clock. The narrowest of eight readings; of eight markers for
 * a marker clock, which takes some 100 us.
 *
 * @retval TDM_AGAIN  Nothing to relate: the trace clock is raw itself.
 */
enum tdm_status tdm_local_clock_sample(
	struct tdm_local_clock *clock, struct tdm_sandwich *sandwich, struct tdm_error *err);

/* Both clocks at one point: what lies between the two readings is a few ns. */
struct tdm_reading {
	uint64_t raw, trace;
};

/** The trace clock at a raw reading: another clock's reading, or (marker) what follows from the last sample. */
static inline uint64_t tdm_local_clock_trace(const struct tdm_local_clock *clock, uint64_t raw)
{
	if (clock->trace == clock->raw) {
		return raw;
	}
	if (clock->trace != TDM_CLOCK_MARKER) {
		return tdm_clock_read(clock->trace);
	}

	const uint64_t since_ns = raw - clock->marker_raw;

	return clock->marker_trace + (clock->tick_ns > 1 ? since_ns / clock->tick_ns : since_ns);
}

/** After an arrival: raw first, so that it is the outermost. */
static inline struct tdm_reading tdm_local_clock_arrival(const struct tdm_local_clock *clock)
{
	struct tdm_reading reading;

	reading.raw = tdm_clock_read(clock->raw);
	reading.trace = tdm_local_clock_trace(clock, reading.raw);
	return reading;
}

/** Before a departure: raw last. */
static inline struct tdm_reading tdm_local_clock_departure(const struct tdm_local_clock *clock)
{
	struct tdm_reading reading;

	if (clock->trace == clock->raw || clock->trace == TDM_CLOCK_MARKER) {
		return tdm_local_clock_arrival(clock);
	}
	reading.trace = tdm_clock_read(clock->trace);
	reading.raw = tdm_clock_read(clock->raw);
	return reading;
}

#endif
