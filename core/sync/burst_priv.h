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
	/* And in a whole burst: ahead of all others and awake, nobody else has the CPU. */
	TDM_SPIN_BURST_NS = 15000000,
	/* One wait is awake for so long. Where so many in a row were longer, the peer is far, or does not get to run: maybe
	 * because we keep its CPU. */
	TDM_SPIN_WAIT_NS = 250000,
	TDM_SPIN_IN_VAIN_MAX = 4,
	/* A burst of no more exchanges is one of many: where the one before it was awake in vain it is spent asleep; so many. */
	TDM_SPIN_FEW_EXCHANGES = 100,
	TDM_SPIN_REST_BURSTS = 15,
	TDM_BURST_MAX_NS = 500000000, /* no burst of a session is longer */
	TDM_LOST_AFTER_NS = 250000000
};

/* Zero before the first burst. */
struct tdm_burst_mode {
	cpu_set_t before; /* where the thread may run outside bursts */
	bool is_pinned;
	bool is_ahead; /* of all that has no real-time priority */
	bool may_spin; /* not known to be in vain */
	uint64_t began_ns;
	uint64_t spin_left_ns;
	uint64_t waited_ns; /* awake, in this wait */
	uint32_t in_vain;   /* waits one after the other that were too long to be awake for */
	uint32_t
		rest; /* bursts of few exchanges that are spent asleep; stays from burst to burst, 0 at first */
};

/**
 * Pins the thread to the CPU that it is on, and runs it under SCHED_FIFO at the lowest priority where that is permitted
 * (CAP_SYS_NICE, or an RLIMIT_RTPRIO).
 * @param exchanges  That are expected: what it may stay awake for.
 */
void tdm_burst_enter(struct tdm_burst_mode *mode, uint32_t exchanges);
void tdm_burst_leave(struct tdm_burst_mode *mode);

/** @return False: this wait is spent asleep. */
bool tdm_burst_wait_begins(struct tdm_burst_mode *mode);
/** Books time spent awake in this wait. @return False: sleep for the rest of it. */
bool tdm_burst_spin(struct tdm_burst_mode *mode, uint64_t spun_ns);

#endif
