/* SPDX-License-Identifier: MIT */
/*
 * clocks.h - the clocks that traces are stamped with, read from user space.
 */
#ifndef TANDEM_CLOCKS_H
#define TANDEM_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <tandem/status.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* As exchange messages number them. */
enum tdm_clock {
	TDM_CLOCK_NONE = 0,
	TDM_CLOCK_MONO = 1,
	TDM_CLOCK_RAW = 2,
	TDM_CLOCK_REAL = 3,
	TDM_CLOCK_BOOT = 4,
	TDM_CLOCK_TAI = 5,
	TDM_CLOCK_TSC = 6,
	TDM_CLOCK_MARKER = 7, /* only the kernel reads it: local, global, perf, uptime */
};

/**
 * A clock by the name that ftrace has for it: mono, mono_raw, boot, tai, x86-tsc, local, global, perf, uptime; also
 * "real" for CLOCK_REALTIME.
 *
 * @retval TDM_ERR_UNSUPPORTED  Not a clock ("counter"), not known, or not on this kind of machine.
 */
enum tdm_status tdm_clock_by_name(const char *name, enum tdm_clock *clock, struct tdm_error *err);

/** The clock that is read beside a trace clock because nobody steers it. A clock nobody steers is its own. */
enum tdm_clock tdm_clock_raw_of(enum tdm_clock clock);

/** Its name; "marker" for those that only the kernel reads. Never NULL. */
const char *tdm_clock_name(enum tdm_clock clock);

static inline uint64_t tdm_clock_posix_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/** Its reading, in ns or ticks; 0 for TDM_CLOCK_NONE and TDM_CLOCK_MARKER. */
static inline uint64_t tdm_clock_read(enum tdm_clock clock)
{
	switch (clock) {
	case TDM_CLOCK_MONO:
		return tdm_clock_posix_ns(CLOCK_MONOTONIC);
	case TDM_CLOCK_RAW:
		return tdm_clock_posix_ns(CLOCK_MONOTONIC_RAW);
	case TDM_CLOCK_REAL:
		return tdm_clock_posix_ns(CLOCK_REALTIME);
	case TDM_CLOCK_BOOT:
		return tdm_clock_posix_ns(CLOCK_BOOTTIME);
	case TDM_CLOCK_TAI:
		return tdm_clock_posix_ns(CLOCK_TAI);
	case TDM_CLOCK_TSC:
#if defined(__x86_64__)
	{
		unsigned int cpu;

		/* rdtscp waits for what stands before it, the fence keeps what follows behind it. */
		const uint64_t ticks = __rdtscp(&cpu);

		_mm_lfence();
		return ticks;
	}
#else
		return 0;
#endif
	case TDM_CLOCK_NONE:
	case TDM_CLOCK_MARKER:
		break;
	}
	return 0;
}

/* One clock read between two readings of another. */
struct tdm_sandwich {
	uint64_t outer; /* middle of the two readings of the outer clock */
	uint64_t inner; /* reading of the inner one */
	uint64_t width; /* between the two outer readings: inner lies within +- half of it */
};

/** Reads @p inner between two readings of @p outer, eight times; the narrowest. */
struct tdm_sandwich tdm_clock_sandwich(enum tdm_clock outer, enum tdm_clock inner);

/** Frequency of the TSC in Hz as the kernel knows it, else measured for 50 ms; 0 where there is none. */
uint64_t tdm_clock_tsc_hz(void);

/**
 * What drives a raw clock: "tsc" for the TSC itself, and for mono_raw where the kernel makes it of the TSC alone (its
 * clocksource "tsc"); "" where that is another counter, or not known.
 */
const char *tdm_clock_source(enum tdm_clock raw);

/** How far the system steers its clocks, 2^-16 ppm (adjtimex). */
int32_t tdm_clock_steering(void);

/** This boot's identity (/proc/sys/kernel/random/boot_id), 36 characters; "unknown" where it cannot be read. */
void tdm_clock_boot_id(char id[37]);

#endif
