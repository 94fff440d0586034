/* SPDX-License-Identifier: MIT */
#include "local.h"
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL_NS 20e6 /* reads within that are of one moment */
#define STILL_RATE \
	1e-6 /* within a moment no steering is faster than this against its surroundings */
#define JUMP_RATE   600e-6 /* a slope further from the usual one was a step, no steering */
#define COARSE_NS   100.0  /* a clock with longer steps is off its own reading by as much */
#define BEYOND_RATE 100e-6 /* what may happen before the first and behind the last read */

enum {
	REACH = 2 /* intervals to either side that tell how much the rate moves here */
};

/* One read of both: own lies at own, the other's reading between low and high. */
struct reading {
	double own, low, high;
};

static double relative(uint64_t reading, uint64_t origin, double unit_ns)
{
	return (double)((tdm_i128)reading - (tdm_i128)origin) * unit_ns;
}

double local_own_ns(const struct local_table *table, uint64_t reading)
{
	return relative(reading, table->own_origin, table->own_unit_ns);
}

tdm_i128 local_own_reading(const struct local_table *table, double own)
{
	return (tdm_i128)table->own_origin + (tdm_i128)llround(own / table->own_unit_ns);
}

tdm_i128 local_other_reading(const struct local_table *table, double other)
{
	const double units = other / table->other_unit_ns;

	return (tdm_i128)table->other_origin +
	       (tdm_i128)(table->other_tick_ns > 0 ? floor(units) : (double)llround(units));
}

/* Clocks that only the kernel reads: what an exchange carries of them is told from the last marker, not read. */
static bool is_marker(const char *clock)
{
	static const char *const names[] = { "local", "global", "perf", "uptime" };

	for (size_t i = 0; clock && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], clock) == 0) {
			return true;
		}
	}
	return false;
}

static void set_units(
	struct local_table *table, const struct tdm_exchange_log_info *info, enum tdm_side side)
{
	const double trace_ns =
		1e9 / (double)(side == TDM_SIDE_HOST ? info->host_unit_hz : info->guest_unit_hz);
	const double tick_ns = trace_ns > COARSE_NS ? trace_ns : 0;

	/* Of the guest from trace to raw, of the host from raw to trace; raw is in ns. */
	table->own_unit_ns = side == TDM_SIDE_HOST ? 1 : trace_ns;
	table->other_unit_ns = side == TDM_SIDE_HOST ? trace_ns : 1;
	table->own_tick_ns = side == TDM_SIDE_HOST ? 0 : tick_ns;
	table->other_tick_ns = side == TDM_SIDE_HOST ? tick_ns : 0;
}

static int compare_readings(const void *a, const void *b)
{
	const struct reading *left = a;
	const struct reading *right = b;

	if (left->own != right->own) {
		return left->own < right->own ? -1 : 1;
	}
	if (left->low != right->low) {
		return left->low < right->low ? -1 : 1;
	}
	return (left->high > right->high) - (left->high < right->high);
}

/*
 * The agent reads raw outermost on receipt and sending, the host trace first when it sends and raw first when it has
 * received: one side of each pair is a bound. Both ends of an exchange make one reading when they lie near.
 */
static void add_exchange(const struct local_table *table, enum tdm_side side,
	const struct tdm_exchange_record *record, struct reading *readings, size_t *count)
{
	const struct tdm_exchange *trace = &record->trace;
	const struct tdm_exchange *raw = &record->raw;
	const bool is_host = side == TDM_SIDE_HOST;
	const uint64_t own[2] = { is_host ? raw->host_sent : trace->guest_got,
		is_host ? raw->host_got : trace->guest_sent };
	const uint64_t other[2] = { is_host ? trace->host_sent : raw->guest_got,
		is_host ? trace->host_got : raw->guest_sent };

	for (size_t i = 0; i < 2; i++) {
		const double at = local_own_ns(table, own[i]);
		const double gap =
			relative(other[i], table->other_origin, table->other_unit_ns) - at;
		/* First the one that was read earlier: its reading is passed when the other one is made. */
		const struct reading reading = { .own = at,
			.low = i == 0 ? gap - table->own_tick_ns : -INFINITY,
			.high = i == 0 ? INFINITY : gap + table->other_tick_ns };

		readings[(*count)++] = reading;
	}
}

static void add_local(const struct local_table *table, enum tdm_side side,
	const struct tdm_local_record *record, struct reading *readings, size_t *count)
{
	const uint64_t own = side == TDM_SIDE_HOST ? record->raw : record->trace;
	const uint64_t other = side == TDM_SIDE_HOST ? record->trace : record->raw;
	const double at = local_own_ns(table, own);
	const double gap = relative(other, table->other_origin, table->other_unit_ns) - at;
	/* The whole width to either side: whether raw is the middle or the first read, it holds. */
	const double width = (double)record->width + 1;

	/* A clock that counts in steps is somewhere behind the last one. */
	readings[(*count)++] = (struct reading){ .own = at,
		.low = gap - width - table->own_tick_ns,
		.high = gap + width + table->other_tick_ns };
}

static bool add_cell(struct local_table *table, const struct local_cell *cell)
{
	if (table->count == table->room) {
		const size_t room = table->room ? table->room * 2 : 64;
		struct local_cell *bigger = realloc(table->cells, room * sizeof(*bigger));

		if (!bigger) {
			return false;
		}
		table->cells = bigger;
		table->room = room;
	}
	table->cells[table->count++] = *cell;
	return true;
}

/* Readings of one moment are one cell: all of them hold. Contradictions (a step in between) drop it. */
static bool make_cells(struct local_table *table, const struct reading *readings, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct local_cell cell = { .low = -INFINITY, .high = INFINITY };
		size_t end = i;

		while (end < count && readings[end].own - readings[i].own <= CELL_NS) {
			end++;
		}
		cell.own = (readings[i].own + readings[end - 1].own) / 2;
		for (size_t j = i; j < end; j++) {
			const double more = fabs(readings[j].own - cell.own) * STILL_RATE;

			cell.low = fmax(cell.low, readings[j].low - more);
			cell.high = fmin(cell.high, readings[j].high + more);
		}
		i = end;
		if (cell.low <= cell.high && isfinite(cell.low) && isfinite(cell.high) &&
			!add_cell(table, &cell)) {
			return false;
		}
	}
	return true;
}

static double middle(const struct local_cell *cell)
{
	return (cell->low + cell->high) / 2;
}

static double slope(const struct local_table *table, size_t interval)
{
	const struct local_cell *a = &table->cells[interval];

	return (middle(a + 1) - middle(a)) / (a[1].own - a->own);
}

/*
 * Between two samples the rate is taken to stay among what was measured in this interval and its neighbours, each as well
 * as the samples tell it. A steering daemon changes its mind at its own pace, and not there and back between two reads.
 */
static bool find_bends(struct local_table *table)
{
	const size_t count = table->count - 1;
	double *slopes = malloc((count + 1) * sizeof(*slopes));

	table->bends = calloc(count + 1, sizeof(*table->bends));
	table->jumps = calloc(count + 1, sizeof(*table->jumps));
	if (!slopes || !table->bends || !table->jumps) {
		free(slopes);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		slopes[i] = slope(table, i);
	}

	const double usual = count ? order_nth(slopes, count, count / 2) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct local_cell *a = &table->cells[i];
		const double open =
			(a[1].high - a[1].low + a->high - a->low) / 2 / (a[1].own - a->own);

		table->jumps[i] = fabs(slope(table, i) - usual) > JUMP_RATE + 2 * open;
		table->jump_count += table->jumps[i];
	}
	for (size_t i = 0; i < count; i++) {
		const struct local_cell *a = &table->cells[i];
		/* What the samples leave open, and what was measured on either side. */
		const double open = (a[1].high - a[1].low + a->high - a->low) / (a[1].own - a->own);
		double least = slope(table, i);
		double most = least;

		/* At an end one side is missing: all that was seen of the daemon stands in for it. */
		const bool at_end = i == 0 || i + 1 == count;
		const size_t from = at_end || i < REACH ? 0 : i - REACH;
		const size_t to = at_end ? count - 1 : i + REACH;

		for (size_t j = from; j < count && j <= to; j++) {
			if (!table->jumps[j]) {
				least = fmin(least, slope(table, j));
				most = fmax(most, slope(table, j));
			}
		}
		table->bends[i] = most - least + open;
	}
	free(slopes);
	return true;
}

bool local_build(struct local_table *table, const struct tdm_exchange_log *log, enum tdm_side side,
	bool *usable)
{
	size_t record_count;
	size_t local_count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &record_count);
	const struct tdm_local_record *locals = tdm_exchange_log_locals(log, &local_count);
	struct reading *readings = malloc((2 * record_count + local_count + 1) * sizeof(*readings));
	size_t count = 0;
	bool good = readings != NULL;
	bool has_origin = false;

	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	const bool has_readings =
		!is_marker(side == TDM_SIDE_HOST ? info.host_clock : info.guest_clock);

	*table = (struct local_table){ 0 };
	*usable = false;
	set_units(table, &info, side);
	for (size_t i = 0; good && i < record_count; i++) {
		const struct tdm_exchange_record *record = &records[i];

		if (!record->has_raw || (record->marks & TDM_MARK_INVALID)) {
			continue;
		}
		if (!has_origin) {
			has_origin = true;
			table->own_origin = side == TDM_SIDE_HOST ? record->raw.host_sent
								  : record->trace.guest_got;
			table->other_origin = side == TDM_SIDE_HOST ? record->trace.host_sent
								    : record->raw.guest_got;
		}
		if (has_readings) {
			add_exchange(table, side, record, readings, &count);
		}
	}
	for (size_t i = 0; good && has_origin && i < local_count; i++) {
		if (locals[i].side == side) {
			add_local(table, side, &locals[i], readings, &count);
		}
	}
	if (good && count) {
		qsort(readings, count, sizeof(*readings), compare_readings);
		good = make_cells(table, readings, count);
	}
	if (good && table->count) {
		good = find_bends(table);
		*usable = good;
	}
	free(readings);
	if (!good) {
		local_release(table);
	}
	return good;
}

void local_release(struct local_table *table)
{
	free(table->cells);
	free(table->bends);
	free(table->jumps);
	*table = (struct local_table){ 0 };
}

/* The interval that own lies in or, outside, nearest to. */
static size_t find_interval(const struct local_table *table, double own)
{
	size_t low = 0;
	size_t high = table->count - 1;

	while (high - low > 1) {
		const size_t half = low + (high - low) / 2;

		if (table->cells[half].own <= own) {
			low = half;
		} else {
			high = half;
		}
	}
	return low;
}

static double place(const struct local_table *table, double own, double *minus, double *plus)
{
	const struct local_cell *first = &table->cells[0];
	const struct local_cell *last = &table->cells[table->count - 1];

	if (table->count == 1 || own <= first->own || own >= last->own) {
		const struct local_cell *end = own <= first->own ? first : last;
		const double beyond = fabs(own - end->own);
		const size_t interval = end == first || table->count == 1 ? 0 : table->count - 2;
		const double rate =
			table->count > 1 && !table->jumps[interval] ? slope(table, interval) : 0;
		const double bend = table->count > 1 && !table->jumps[interval]
					    ? table->bends[interval]
					    : 5 * BEYOND_RATE;

		*minus = (end->high - end->low) / 2 + beyond * (bend + BEYOND_RATE);
		*plus = *minus;
		return own + middle(end) + rate * (own - end->own);
	}

	const size_t interval = find_interval(table, own);
	const struct local_cell *a = &table->cells[interval];
	const struct local_cell *b = a + 1;
	const double part = (own - a->own) / (b->own - a->own);
	const double gap = middle(a) + (middle(b) - middle(a)) * part;

	if (table->jumps[interval]) {
		/* Set somewhere in here: either end's reading, both are covered. */
		const double low = fmin(a->low, b->low);
		const double high = fmax(a->high, b->high);
		const double drift = (b->own - a->own) * JUMP_RATE;

		*minus = gap - low + drift;
		*plus = high - gap + drift;
	} else {
		const double half =
			((a->high - a->low) * (1 - part) + (b->high - b->low) * part) / 2;
		/* The furthest that slopes so far apart can carry it from the chord; a sixteenth more for lines through quarters. */
		const double most =
			table->bends[interval] * (b->own - a->own) * part * (1 - part) * 17 / 16;

		*minus = half + most;
		*plus = half + most;
	}
	return own + gap;
}

double local_at(const struct local_table *table, double own, double *minus, double *plus)
{
	*minus = 0;
	*plus = 0;
	if (table->is_identity) {
		return own;
	}

	/* A stamp of a clock that counts in steps is of any time within its step: its middle stands for it. */
	const double half = table->own_tick_ns / 2;
	const double other = place(table, own, minus, plus) + half;

	*minus += half + table->other_tick_ns;
	*plus += half + table->other_tick_ns;
	return other;
}
