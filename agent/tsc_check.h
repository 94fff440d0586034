/* SPDX-License-Identifier: MIT */
/*
 * tsc_check.h - do the CPUs of this machine agree about the TSC? Measured by passing a cache line to and fro.
 */
#ifndef AGENT_TSC_CHECK_H
#define AGENT_TSC_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What has to be added to a stamp of a CPU to get CPU 0's (or the first one's): ticks +- bound. */
struct tsc_check_result {
	uint32_t cpu;
	int64_t ticks;
	uint64_t bound;
	bool is_off; /* the interval excludes 0 */
};

/**
 * Measures other CPUs that the calling thread may run on against the first one. About 1 ms for each; a pair that does not get to
 * run within 50 ms is left out.
 *
 * @param results    Receives them.
 * @param room       Of @p results.
 * @param from       Where to go on: 0 at first; receives where the next call goes on, or UINT32_MAX where all are done.
 * @param budget_ms  No new pair is begun after so long.
 * @return How many were measured; 0 where there is one CPU, or no TSC.
 */
size_t tsc_check_some(
	struct tsc_check_result *results, size_t room, uint32_t *from, uint32_t budget_ms);

#endif
