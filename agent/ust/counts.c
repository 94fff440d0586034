/* SPDX-License-Identifier: MIT */
#include "hook_priv.h"
#include <string.h>

/* More threads than this share the last slot, whose counts are then approximate; none has been seen. */
#define SLOTS 4096

static struct tdm_count_slot slots[SLOTS];
static _Atomic(uint32_t) used;

struct tdm_count_slot *tdm_counts_take(void)
{
	/* Ended threads' slots first, so that the table only grows with threads alive at once. */
	const uint32_t known = atomic_load(&used);

	for (uint32_t i = 0; i < known && i < SLOTS; i++) {
		uint32_t free_slot = 0;

		if (atomic_load_explicit(&slots[i].taken, memory_order_relaxed) == 0 &&
			atomic_compare_exchange_strong(&slots[i].taken, &free_slot, 1)) {
			return &slots[i];
		}
	}

	const uint32_t next = atomic_fetch_add(&used, 1);
	struct tdm_count_slot *slot = &slots[next < SLOTS ? next : SLOTS - 1];

	atomic_store(&slot->taken, 1);
	return slot;
}

void tdm_counts_release(struct tdm_count_slot *slot)
{
	atomic_store(&slot->taken, 0);
}

void tdm_counts_sum(struct tdm_call_counts *sum)
{
	const uint32_t known = atomic_load(&used);

	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < known && i < SLOTS; i++) {
		const volatile struct tdm_call_counts *counts = &slots[i].counts;

		sum->calls += counts->calls;
		sum->entries += counts->entries;
		sum->exits += counts->exits;
		sum->no_exit += counts->no_exit;
		sum->missed += counts->missed;
		sum->not_chosen += counts->not_chosen;
		sum->notes += counts->notes;
	}
}

/* A forked child: its counts begin with it, and only the calling thread is left. */
void tdm_counts_restart(struct tdm_count_slot *keep)
{
	const uint32_t known = atomic_load(&used);

	for (uint32_t i = 0; i < known && i < SLOTS; i++) {
		memset(&slots[i].counts, 0, sizeof(slots[i].counts));
		atomic_store(&slots[i].taken, &slots[i] == keep);
	}
}
