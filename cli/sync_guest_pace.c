/* SPDX-License-Identifier: MIT */
/* When bursts happen in a session, and what each of them is like. */
#include "sync_guest_priv.h"
#include <time.h>

enum {
	PERIOD_MS = 1000,
	STEERED_PERIOD_MS = 250,
	GATE_MS = 200, /* then a burst runs among others: late is worse than noisy */
	/* A session of any length stays within what a log holds: bursts become smaller, then rarer. */
	SMALL_AFTER = 1 << 18,
	RARE_AFTER = 1 << 19,
	SMALL_COUNT = 8
};

/* +-10 %, so that load of the same period does not always hit, or always miss, the bursts. Kernel stamps: once a second at most. */
uint64_t sync_guest_next_burst_ns(struct sync_guest *guest, uint64_t began_ns)
{
	uint64_t period_ms = guest->is_steered ? STEERED_PERIOD_MS : PERIOD_MS;
	const uint64_t now_ns = tdm_now_ns();

	guest->random = guest->random * 1664525 + 1013904223;
	if (sync_log_count(guest->log) > RARE_AFTER) {
		const uint64_t rare_ms = (now_ns - began_ns) / 1000000 / 4096;

		period_ms = rare_ms > period_ms ? rare_ms : period_ms;
	}

	const uint64_t jitter_ms = (uint64_t)(guest->random >> 16) % (period_ms / 5 + 1);
	const bool may_be_early = !guest->options.kernel_stamps || guest->is_steered;

	return now_ns + (period_ms - (may_be_early ? period_ms / 10 : 0) + jitter_ms) * 1000000;
}

/* Every fourth burst is pipelined, every fourth in coded pairs. */
struct tdm_burst_plan sync_guest_plan_burst(const struct sync_guest *guest, bool is_edge)
{
	struct tdm_burst_plan plan = { .count = TDM_BURST_START_COUNT,
		.stamps = guest->options.kernel_stamps,
		.target_bound = guest->options.target_bound_ns };

	if (is_edge) {
		return plan;
	}
	plan.count = sync_log_count(guest->log) > SMALL_AFTER ? (uint32_t)SMALL_COUNT
		     : guest->is_steered                      ? (uint32_t)TDM_BURST_STEERED_COUNT
							      : (uint32_t)TDM_BURST_SESSION_COUNT;
	plan.target_bound = 0;
	/* Stamps want one message under way; so few exchanges are all wanted for the estimate. */
	if (!plan.stamps && !guest->is_steered && guest->burst_number % 4 == 1) {
		plan.pipeline = 4;
	} else if (guest->burst_number % 4 == 3) {
		plan.pairs = true;
	}
	return plan;
}

bool sync_guest_enter_gate(struct sync_guest *guest)
{
	struct timespec until;

	if (!guest->options.gate) {
		return false;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)GATE_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_timedwait(guest->options.gate, &until) == 0;
}
