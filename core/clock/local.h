/* SPDX-License-Identifier: MIT */
/*
 * local.h - how two clocks of one machine relate, by reads that lie within some ten ns of each other.
 *
 * No network is involved: the relation is known almost wherever it was sampled; between samples it may bend.
 */
#ifndef TANDEM_LOCAL_H
#define TANDEM_LOCAL_H

#include <stdbool.h>
#include <tandem/exchange.h>

/* What one moment says: other - own lies in [low, high] at reading own. ns; own is relative to the table's origin. */
struct local_cell {
	double own;
	double low, high;
};

struct local_table {
	bool is_identity;
	uint64_t own_origin, other_origin;
	struct local_cell *cells;
	size_t count, room;
	double *bends; /* for each interval: how far apart the slopes inside it may be */
	bool *jumps;   /* for each interval: the clock was set in it */
	size_t jump_count;
};

/**
 * The relation from one clock of a side to its other one: of the guest from trace to raw, of the host from raw to trace.
 * @return False without memory, or (@p usable false) where the log does not say enough of it.
 */
bool local_build(struct local_table *table, const struct tdm_exchange_log *log, enum tdm_side side,
	bool *usable);
void local_release(struct local_table *table);

/** The other clock's reading, and how far it may be off; ns. */
double local_at(const struct local_table *table, double own, double *minus, double *plus);

#endif
