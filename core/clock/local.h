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
#include <tandem/wide.h>

/* What one moment says: other - own lies in [low, high] at own. All in ns; own is relative to the table's origin. */
struct local_cell {
	double own;
	double low, high;
};

struct local_table {
	bool is_identity;
	uint64_t own_origin, other_origin; /* readings */
	double own_unit_ns, other_unit_ns; /* of readings */
	double own_tick_ns,
		other_tick_ns; /* a clock that counts in steps shows the last one; 0 = too fine to matter */
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

/** A reading of the own clock on the table's axis, and back. */
double local_own_ns(const struct local_table *table, uint64_t reading);
tdm_i128 local_own_reading(const struct local_table *table, double own);

/** What the other clock shows where it stands at @p other of its axis. */
tdm_i128 local_other_reading(const struct local_table *table, double other);

/** The other clock's place on its axis, and how far its reading may be off it; ns. */
double local_at(const struct local_table *table, double own, double *minus, double *plus);

#endif
