/* SPDX-License-Identifier: MIT */
/*
 * burst_priv.h - how both ends behave while exchanges run: on one CPU, ahead of others where allowed, and awake for a while.
 */
#ifndef TANDEM_BURST_PRIV_H
#define TANDEM_BURST_PRIV_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* Awake at most so long for each exchange, all together; asleep, waking an idle CPU can take ten times as long. */
	TDM_SPIN_EACH_NS = 15000,
	/* One wait that takes longer is for a peer that does not get to run: maybe because we keep its CPU. */
	TDM_SPIN_WAIT_NS = 250000,
	TDM_BURST_LONG_NS =
		5000000, /* a burst that takes longer is on a busy machine: no spinning */
	TDM_BURST_MAX_NS = 500000000, /* no burst of a session is longer */
	TDM_LOST_AFTER_NS = 250000000
};

struct tdm_burst_mode {
	cpu_set_t before; /* where the thread may run outside bursts */
	bool is_pinned;
	bool is_ahead; /* of all that has no real-time priority */
	bool may_spin; /* there is another CPU for the other end */
	uint64_t began_ns;
	uint64_t spin_left_ns;
	uint64_t waited_ns; /* awake, in this wait */
};

/**
 * Pins the thread to the CPU that it is on, and runs it under SCHED_FIFO at the lowest priority where that is permitted
 * (CAP_SYS_NICE, or an RLIMIT_RTPRIO).
 * @param exchanges  That are expected: what it may stay awake for.
 */
void tdm_burst_enter(struct tdm_burst_mode *mode, uint32_t exchanges);
void tdm_burst_leave(struct tdm_burst_mode *mode);

/** Books time spent awake; 0 begins a wait. @return False: sleep from now on. */
bool tdm_burst_spin(struct tdm_burst_mode *mode, uint64_t spun_ns, uint64_t now_ns);

#endif
