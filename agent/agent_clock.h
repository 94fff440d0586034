/* SPDX-License-Identifier: MIT */
/*
 * agent_clock.h - what happens to this machine's clocks: suspends and steps, counted for all sessions.
 */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

#include "host_clock.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tandem/clocks.h>

/* Thread-safe once made. */
struct agent_clock {
	pthread_mutex_t lock;
	int step_fd; /* readable after a step of the wall clock; without one, nothing wakes us */
	uint64_t boot_less_mono, boot_width;
	uint64_t real_less_mono, real_width;
	uint32_t suspends, steps;
	struct vm_clock vm;
	uint64_t vm_marker;
	bool has_vm_marker;
	uint32_t disruptions;
	uint64_t stamps_last_ns; /* when kernel stamps were turned on last */
};

void agent_clock_init(struct agent_clock *clock);
void agent_clock_release(struct agent_clock *clock);

/** Arms the notice of steps anew, after step_fd became readable, and looks. */
void agent_clock_rearm(struct agent_clock *clock);

/** Looks at the clocks and counts what happened since the last look. */
void agent_clock_look(struct agent_clock *clock, uint32_t *suspends, uint32_t *steps);

/** Live migrations and restored snapshots so far, where the hypervisor tells of them. */
uint32_t agent_clock_disruptions(struct agent_clock *clock);

/** What a session's replies carry as epoch: grows with every jump that @p trace shows against raw clocks. */
uint32_t agent_clock_epoch(
	enum tdm_clock trace, uint32_t suspends, uint32_t steps, uint32_t disruptions);

/** True, and counted, where kernel stamps may be turned on: once a second in the whole program. */
bool agent_clock_may_stamp(struct agent_clock *clock);

#endif
