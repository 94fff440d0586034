/* SPDX-License-Identifier: MIT */
#include "burst_priv.h"
#include <tandem/socket.h>

/* Real time is for threads that have none: whoever has chosen a policy for this one keeps it. */
static bool get_ahead(void)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };

	return sched_getscheduler(0) == SCHED_OTHER &&
	       sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
}

void tdm_burst_enter(struct tdm_burst_mode *mode, uint32_t exchanges)
{
	const int cpu = sched_getcpu();

	mode->began_ns = tdm_now_ns();
	mode->spin_left_ns = (uint64_t)exchanges * TDM_SPIN_EACH_NS;
	if (mode->spin_left_ns > TDM_SPIN_BURST_NS) {
		mode->spin_left_ns = TDM_SPIN_BURST_NS;
	}
	mode->waited_ns = 0;
	mode->in_vain = 0;
	mode->is_pinned = false;
	mode->may_spin = exchanges > TDM_SPIN_FEW_EXCHANGES || mode->rest == 0;
	mode->rest -= mode->rest > 0;
	/* Fails on machines with more CPUs than the set holds: then the burst goes unpinned. */
	if (cpu >= 0 && cpu < CPU_SETSIZE &&
		sched_getaffinity(0, sizeof(mode->before), &mode->before) == 0) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		mode->is_pinned = sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	mode->is_ahead = get_ahead();
}

static void end_wait(struct tdm_burst_mode *mode)
{
	mode->in_vain = mode->waited_ns > TDM_SPIN_WAIT_NS ? mode->in_vain + 1 : 0;
	mode->waited_ns = 0;
	/* One may have been the other end's way to its CPU; the second one uses up what few exchanges have. */
	if (mode->in_vain > 1) {
		mode->rest = TDM_SPIN_REST_BURSTS;
	}
}

void tdm_burst_leave(struct tdm_burst_mode *mode)
{
	const struct sched_param none = { .sched_priority = 0 };

	end_wait(mode);
	if (mode->is_ahead) {
		sched_setscheduler(0, SCHED_OTHER, &none);
		mode->is_ahead = false;
	}
	if (mode->is_pinned) {
		sched_setaffinity(0, sizeof(mode->before), &mode->before);
		mode->is_pinned = false;
	}
}

static bool may_be_awake(const struct tdm_burst_mode *mode)
{
	return mode->may_spin && mode->spin_left_ns > 0 && mode->waited_ns <= TDM_SPIN_WAIT_NS;
}

bool tdm_burst_wait_begins(struct tdm_burst_mode *mode)
{
	end_wait(mode);
	if (mode->in_vain == TDM_SPIN_IN_VAIN_MAX) {
		mode->may_spin = false;
	}
	return may_be_awake(mode);
}

bool tdm_burst_spin(struct tdm_burst_mode *mode, uint64_t spun_ns)
{
	mode->spin_left_ns -= spun_ns < mode->spin_left_ns ? spun_ns : mode->spin_left_ns;
	mode->waited_ns += spun_ns;
	return may_be_awake(mode);
}
