/* SPDX-License-Identifier: MIT */
/*
 * burst_priv.h - how both ends behave while exchanges run: on one CPU, and awake for a while.
 */
#ifndef TANDEM_BURST_PRIV_H
#define TANDEM_BURST_PRIV_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TDM_SPIN_BURST_NS = 2000000, /* awake at most so long a burst */
	TDM_BURST_LONG_NS =
		5000000, /* a burst that takes longer is on a busy machine: no spinning */
	TDM_BURST_MAX_NS = 500000000, /* no burst is longer */
	TDM_LOST_AFTER_NS = 250000000
};

struct tdm_burst_mode {
	cpu_set_t before; /* where the thread may run outside bursts */
	bool is_pinned;
	bool may_spin; /* there is another CPU for the other end */
	uint64_t began_ns;
	uint64_t spin_left_ns;
};

/** Pins the thread to the CPU that it is on. */
void tdm_burst_enter(struct tdm_burst_mode *mode, uint64_t spin_ns);
void tdm_burst_leave(struct tdm_burst_mode *mode);

/** Books time spent awake; false = sleep from now on. */
bool tdm_burst_spin(struct tdm_burst_mode *mode, uint64_t spun_ns, uint64_t now_ns);

#endif
