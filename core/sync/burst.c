/* SPDX-License-Identifier: MIT */
#include "burst_priv.h"
#include <tandem/socket.h>

void tdm_burst_enter(struct tdm_burst_mode *mode, uint64_t spin_ns)
{
	const int cpu = sched_getcpu();

	mode->began_ns = tdm_now_ns();
	mode->spin_left_ns = spin_ns;
	mode->is_pinned = false;
	mode->may_spin = false;
	/* Fails on machines with more CPUs than the set holds: then the burst goes unpinned and asleep. */
	if (cpu >= 0 && cpu < CPU_SETSIZE &&
		sched_getaffinity(0, sizeof(mode->before), &mode->before) == 0) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		mode->may_spin = CPU_COUNT(&mode->before) > 1;
		mode->is_pinned = sched_setaffinity(0, sizeof(one), &one) == 0;
	}
}

void tdm_burst_leave(struct tdm_burst_mode *mode)
{
	if (mode->is_pinned) {
		sched_setaffinity(0, sizeof(mode->before), &mode->before);
		mode->is_pinned = false;
	}
}

bool tdm_burst_spin(struct tdm_burst_mode *mode, uint64_t spun_ns, uint64_t now_ns)
{
	mode->spin_left_ns -= spun_ns < mode->spin_left_ns ? spun_ns : mode->spin_left_ns;
	if (now_ns - mode->began_ns > TDM_BURST_LONG_NS) {
		mode->may_spin = false;
	}
	return mode->may_spin && mode->spin_left_ns > 0;
}
