/* SPDX-License-Identifier: MIT */
#include "timeline_priv.h"

enum {
	LONE_RATE_PPB = 500000
};

/* The plain form, for distances that the fast one does not reach. */
static uint64_t slow_quotient(uint64_t distance, const struct piece *piece, uint64_t *remainder)
{
	const tdm_u128 product = (tdm_u128)distance * piece_rise(piece);
	const tdm_u128 quotient = product / piece->run;

	*remainder = (uint64_t)(product % piece->run);
	return quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

/* floor(distance * rise / run): whole parts, and the high half of distance * part, which is at most one too small. */
static inline uint64_t quotient(uint64_t distance, const struct piece *piece, uint64_t *remainder)
{
	if (__builtin_expect(distance > piece->reach, 0)) {
		return slow_quotient(distance, piece, remainder);
	}

	const uint64_t high = tdm_mul_shift(distance, piece->part, 64);
	/* Below 2 * run <= 2^63, although its terms wrapped. */
	const uint64_t left = distance * piece->rest - high * piece->run;
	const uint64_t more = left >= piece->run;

	*remainder = left - (more ? piece->run : 0);
	return distance * piece->whole + high + more;
}

static inline uint64_t on_piece(const struct piece *piece, uint64_t guest)
{
	uint64_t remainder;

	const uint64_t distance = guest - piece->guest;

	if (__builtin_expect(distance <= piece->near_reach && guest >= piece->guest, 1)) {
		const uint64_t rise =
			distance * piece->whole + tdm_mul_shift(distance, piece->near, 64);
		const uint64_t host = piece->host + rise;

		return host < rise ? UINT64_MAX : host;
	}
	if (guest >= piece->guest) {
		const uint64_t rise = quotient(guest - piece->guest, piece, &remainder);
		const uint64_t host = piece->host + rise;

		return host < rise ? UINT64_MAX : host;
	}

	uint64_t fall = quotient(piece->guest - guest, piece, &remainder);

	/* Floor, also to the left of the origin. */
	if (remainder && fall < UINT64_MAX) {
		fall++;
	}
	return fall > piece->host ? 0 : piece->host - fall;
}

uint64_t timeline_on_piece(const struct piece *piece, uint64_t guest)
{
	return on_piece(piece, guest);
}

static size_t search_piece(
	const struct tdm_timeline *timeline, uint64_t guest, struct tdm_timeline_hint *hint)
{
	const struct piece *pieces = timeline->pieces;
	size_t low = 0;
	size_t high = timeline->piece_count;
	const size_t next = hint ? (size_t)hint->piece + 1 : high;

	/* Streams are in order: mostly it is the next one. */
	if (next < high && pieces[next].from <= guest && guest <= pieces[next].until) {
		hint->piece = (uint32_t)next;
		return next;
	}
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (pieces[middle].from <= guest) {
			low = middle;
		} else {
			high = middle;
		}
	}
	if (hint) {
		hint->piece = (uint32_t)low;
	}
	return low;
}

static inline size_t find_piece(
	const struct tdm_timeline *timeline, uint64_t guest, struct tdm_timeline_hint *hint)
{
	const size_t at = hint ? hint->piece : 0;

	if (__builtin_expect(at < timeline->piece_count && timeline->pieces[at].from <= guest &&
				     guest <= timeline->pieces[at].until,
		    1)) {
		return at;
	}
	return search_piece(timeline, guest, hint);
}

size_t timeline_find_piece(
	const struct tdm_timeline *timeline, uint64_t guest, struct tdm_timeline_hint *hint)
{
	return find_piece(timeline, guest, hint);
}

uint64_t tdm_timeline_apply(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	struct tdm_timeline_hint *hint)
{
	guest = timeline_cpu_reading(timeline, guest, cpu);
	if (!timeline->piece_count) {
		return guest;
	}
	return on_piece(&timeline->pieces[find_piece(timeline, guest, hint)], guest);
}

uint64_t tdm_timeline_host_ns(const struct tdm_timeline *timeline, uint64_t host)
{
	const uint64_t hz = timeline->info.host_unit_hz;

	if (hz == 1000000000) {
		return host;
	}

	const tdm_u128 ns = (tdm_u128)host * 1000000000 / hz;

	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* What one segment says of a reading, wherever it lies. */
struct opinion {
	tdm_i128 host;
	tdm_u128 minus, plus;
};

static tdm_u128 outside_growth(const struct tdm_timeline *timeline, const struct segment *segment,
	const struct tdm_knot *end, uint64_t distance)
{
	const struct tdm_knot *knots = timeline->knots + segment->first_knot;
	const uint64_t span = knots[segment->knot_count - 1].guest - knots[0].guest;
	const tdm_u128 host_distance =
		(tdm_u128)distance * timeline->info.host_unit_hz / timeline->info.guest_unit_hz;
	/* Saturated: beyond 2^96 nothing is known anyway, and the product below must fit. */
	const tdm_u128 far = (tdm_u128)1 << 96;
	const tdm_u128 held = host_distance < far ? host_distance : far;
	/* One knot says nothing of the rate; only that no clock is further off than this. */
	const uint64_t rate_ppb =
		span || !timeline->info.rate_ppb || timeline->info.rate_ppb > LONE_RATE_PPB / 2
			? timeline->info.rate_ppb
			: LONE_RATE_PPB / 2;
	const tdm_u128 drift = held * 2 * rate_ppb / 1000000000;

	const tdm_u128 growth =
		drift + (span ? (tdm_u128)distance * (end->minus + end->plus) / span : 0);

	return growth < far ? growth : far;
}

static struct opinion segment_opinion(const struct tdm_timeline *timeline,
	const struct segment *segment, size_t left, uint64_t guest)
{
	const struct tdm_knot *knots = timeline->knots + segment->first_knot;
	const size_t count = segment->knot_count;
	const struct tdm_knot *a = &knots[left];
	const struct tdm_knot *b = left + 1 < count ? a + 1 : a;
	const tdm_u128 rise = count > 1 ? b->host - a->host : timeline->info.host_unit_hz;
	const tdm_u128 run = count > 1 ? b->guest - a->guest : timeline->info.guest_unit_hz;
	struct opinion opinion;

	if (guest >= a->guest) {
		opinion.host = (tdm_i128)a->host + (tdm_i128)((guest - a->guest) * rise / run);
	} else {
		opinion.host =
			(tdm_i128)a->host - (tdm_i128)(((a->guest - guest) * rise + run - 1) / run);
	}

	const struct tdm_knot *end = guest < knots[0].guest ? &knots[0] : &knots[count - 1];

	if (guest < knots[0].guest || guest > knots[count - 1].guest) {
		const uint64_t distance =
			guest < end->guest ? end->guest - guest : guest - end->guest;
		const tdm_u128 growth = outside_growth(timeline, segment, end, distance);

		opinion.minus = end->minus + growth;
		opinion.plus = end->plus + growth;
	} else if (guest == a->guest || guest == b->guest) {
		const struct tdm_knot *on = guest == a->guest ? a : b;

		opinion.minus = on->minus;
		opinion.plus = on->plus;
	} else {
		/* Interpolated and rounded up; one more for the floor of the reading itself. */
		const tdm_u128 to_a = guest - a->guest;
		const tdm_u128 to_b = b->guest - guest;

		opinion.minus = (a->minus * to_b + b->minus * to_a) / run + 1;
		opinion.plus = (a->plus * to_b + b->plus * to_a) / run + 1;
	}
	return opinion;
}

/* The knot at the left end of the interval that a segment uses for a reading. */
static size_t left_knot(
	const struct tdm_timeline *timeline, const struct segment *segment, uint64_t guest)
{
	const struct tdm_knot *knots = timeline->knots + segment->first_knot;
	size_t low = 0;
	size_t high = segment->knot_count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (knots[middle].guest <= guest) {
			low = middle;
		} else {
			high = middle;
		}
	}
	if (low && low + 1 == segment->knot_count) {
		low--;
	}
	return low;
}

static uint64_t held_to_64(tdm_i128 value)
{
	if (value < 0) {
		return 0;
	}
	return value > (tdm_i128)UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

void tdm_timeline_bound(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	uint64_t *minus, uint64_t *plus)
{
	*minus = UINT64_MAX;
	*plus = UINT64_MAX;
	if (!timeline->piece_count) {
		return;
	}

	const uint64_t own = cpu < timeline->cpu_room ? timeline->cpus[cpu].bound : 0;

	guest = timeline_cpu_reading(timeline, guest, cpu);

	const size_t at = timeline_find_piece(timeline, guest, NULL);
	const size_t chosen = timeline->pieces[at].segment;
	const struct segment *segment = &timeline->segments[chosen];
	const struct opinion here =
		segment_opinion(timeline, segment, left_knot(timeline, segment, guest), guest);
	/* The reading that is given out, held inside 64 bits, is what the bound is about. */
	const tdm_i128 host = (tdm_i128)timeline_on_piece(&timeline->pieces[at], guest);
	tdm_i128 low = here.host - (tdm_i128)here.minus;
	tdm_i128 high = here.host + (tdm_i128)here.plus;

	for (size_t i = 0; i < timeline->doubt_count; i++) {
		if (guest < timeline->doubts[i].from || guest > timeline->doubts[i].to) {
			continue;
		}
		for (size_t side = chosen ? chosen - 1 : 0;
			side < timeline->segment_count && side <= chosen + 1; side++) {
			const struct segment *other = &timeline->segments[side];

			if (side == chosen || !other->knot_count ||
				(side > chosen && other->from > timeline->doubts[i].to)) {
				continue;
			}
			if (side < chosen && segment->from < timeline->doubts[i].from) {
				continue;
			}

			const struct opinion there = segment_opinion(
				timeline, other, left_knot(timeline, other, guest), guest);

			if (there.host - (tdm_i128)there.minus < low) {
				low = there.host - (tdm_i128)there.minus;
			}
			if (there.host + (tdm_i128)there.plus > high) {
				high = there.host + (tdm_i128)there.plus;
			}
		}
	}
	*minus = held_to_64(host - low + own);
	*plus = held_to_64(high - host + own);
}

/* ceil(a * b / d), held inside 64 bits. */
static uint64_t mul_div_ceil(uint64_t a, uint64_t b, uint64_t d)
{
	const tdm_u128 q = ((tdm_u128)a * b + d - 1) / d;

	return q > UINT64_MAX ? UINT64_MAX : (uint64_t)q;
}

/* The least reading in [first, last] of a piece that maps to at least host; its last one does. */
static uint64_t invert_piece(
	const struct piece *piece, uint64_t host, uint64_t first, uint64_t last)
{
	uint64_t guest;

	if (timeline_on_piece(piece, first) >= host) {
		return first;
	}
	/* The value rises between first and last, so rise is not 0. */
	if (host >= piece->host) {
		const uint64_t distance =
			mul_div_ceil(host - piece->host, piece->run, piece_rise(piece));

		guest = distance > UINT64_MAX - piece->guest ? UINT64_MAX : piece->guest + distance;
	} else {
		const tdm_u128 distance =
			(tdm_u128)(piece->host - host) * piece->run / piece_rise(piece);

		guest = distance > piece->guest ? 0 : piece->guest - (uint64_t)distance;
	}
	if (guest < first) {
		guest = first;
	}
	return guest > last ? last : guest;
}

/* Index behind the last piece of the run of pieces that belongs to one segment. */
static size_t run_end(const struct tdm_timeline *timeline, size_t first)
{
	/* Pieces of a segment are neighbours, and numbered by their knots: jump as far as the segment has knots. */
	const struct segment *segment = &timeline->segments[timeline->pieces[first].segment];
	size_t low = first + 1;
	size_t high = first + segment->knot_count + 1;

	if (high > timeline->piece_count) {
		high = timeline->piece_count;
	}
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (timeline->pieces[middle].segment == timeline->pieces[first].segment) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static uint64_t piece_last(const struct tdm_timeline *timeline, size_t at)
{
	return at + 1 < timeline->piece_count ? timeline->pieces[at + 1].from - 1 : UINT64_MAX;
}

enum tdm_status tdm_timeline_invert(
	const struct tdm_timeline *timeline, uint64_t host, uint64_t *guest)
{
	size_t end;
	uint64_t edge_host = UINT64_MAX;

	*guest = 0;
	if (!timeline->piece_count) {
		return TDM_ERR_RANGE;
	}
	*guest = UINT64_MAX;
	for (size_t first = 0; first < timeline->piece_count; first = end) {
		end = run_end(timeline, first);

		const struct piece *pieces = timeline->pieces;

		if (timeline_on_piece(&pieces[end - 1], piece_last(timeline, end - 1)) < host) {
			continue;
		}
		const uint64_t begin = timeline_on_piece(&pieces[first], pieces[first].from);

		/* Where the guest's clock went back, a run of lower readings may be the later one. */
		if (begin > host) {
			if (begin < edge_host) {
				edge_host = begin;
				*guest = pieces[first].from;
			}
			continue;
		}

		size_t low = first;
		size_t high = end - 1;

		while (low < high) {
			const size_t middle = low + (high - low) / 2;

			if (timeline_on_piece(&pieces[middle], piece_last(timeline, middle)) <
				host) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		*guest = invert_piece(
			&pieces[low], host, pieces[low].from, piece_last(timeline, low));
		return TDM_OK;
	}
	return TDM_ERR_RANGE;
}

bool tdm_timeline_range(
	const struct tdm_timeline *timeline, uint64_t *first_guest, uint64_t *last_guest)
{
	if (!timeline->knot_count) {
		return false;
	}
	*first_guest = UINT64_MAX;
	for (size_t i = 0; i < timeline->segment_count; i++) {
		const struct segment *segment = &timeline->segments[i];

		if (segment->knot_count &&
			timeline->knots[segment->first_knot].guest < *first_guest) {
			*first_guest = timeline->knots[segment->first_knot].guest;
		}
	}
	*last_guest = timeline->last_guest;
	return true;
}

bool tdm_timeline_is_constant(const struct tdm_timeline *timeline, int64_t *offset)
{
	if (timeline->segment_count != 1 || !timeline->piece_count) {
		return false;
	}
	for (size_t i = 0; i < timeline->piece_count; i++) {
		if (piece_rise(&timeline->pieces[i]) != timeline->pieces[i].run) {
			return false;
		}
	}
	for (size_t i = 0; i < timeline->cpu_room; i++) {
		if (timeline->cpus[i].ticks) {
			return false;
		}
	}
	*offset = (int64_t)(timeline->knots[0].host - timeline->knots[0].guest);
	return true;
}

struct tdm_segment_info tdm_timeline_segment(const struct tdm_timeline *timeline, size_t index)
{
	const struct segment *segment = &timeline->segments[index];
	const struct tdm_segment_info info = { .kind = segment->kind,
		.from = segment->from,
		.knots = timeline->knots + segment->first_knot,
		.knot_count = segment->knot_count };

	return info;
}

void tdm_timeline_doubt(
	const struct tdm_timeline *timeline, size_t index, uint64_t *from, uint64_t *to)
{
	*from = timeline->doubts[index].from;
	*to = timeline->doubts[index].to;
}

bool tdm_timeline_is_in_doubt(const struct tdm_timeline *timeline, uint64_t guest)
{
	for (size_t i = 0; i < timeline->doubt_count; i++) {
		if (guest >= timeline->doubts[i].from && guest <= timeline->doubts[i].to) {
			return true;
		}
	}
	return false;
}

bool tdm_timeline_cpu(
	const struct tdm_timeline *timeline, uint32_t cpu, int64_t *ticks, uint64_t *bound)
{
	if (cpu >= timeline->cpu_room || !timeline->cpus[cpu].is_set) {
		return false;
	}
	*ticks = timeline->cpus[cpu].ticks;
	*bound = timeline->cpus[cpu].bound;
	return true;
}
