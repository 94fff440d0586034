/* SPDX-License-Identifier: MIT */
#include "timeline_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_RATE_PPB = 100,
	MAX_MOVED =
		1
		<< 27, /* pieces, until what older runs told is let go: no file may take minutes */
};

#define NS_HZ        UINT64_C(1000000000)
#define MAX_RATE_PPB NS_HZ

struct tdm_timeline *tdm_timeline_create(void)
{
	struct tdm_timeline *timeline = calloc(1, sizeof(*timeline));

	if (timeline) {
		timeline->info.host_unit_hz = NS_HZ;
		timeline->info.guest_unit_hz = NS_HZ;
		timeline->info.rate_ppb = DEFAULT_RATE_PPB;
	}
	return timeline;
}

void tdm_timeline_destroy(struct tdm_timeline *timeline)
{
	if (!timeline) {
		return;
	}
	for (size_t i = 0; i < INFO_TEXTS; i++) {
		free(timeline->texts[i]);
	}
	free(timeline->segments);
	free(timeline->knots);
	free(timeline->pieces);
	free(timeline->doubts);
	free(timeline->cpus);
	free(timeline);
}

struct tdm_timeline_info tdm_timeline_get_info(const struct tdm_timeline *timeline)
{
	struct tdm_timeline_info info = timeline->info;

	info.host_uuid = timeline->texts[HOST_UUID];
	info.host_clock = timeline->texts[HOST_CLOCK];
	info.guest_uuid = timeline->texts[GUEST_UUID];
	info.guest_clock = timeline->texts[GUEST_CLOCK];
	info.made = timeline->texts[MADE];
	info.method = timeline->texts[METHOD];
	info.stamps = timeline->texts[STAMPS];
	info.segment_count = timeline->segment_count;
	info.knot_count = timeline->knot_count;
	info.doubt_count = timeline->doubt_count;
	info.cpu_count = timeline->cpu_count;
	return info;
}

enum tdm_status timeline_keep_text(
	struct tdm_timeline *timeline, enum info_text slot, const char *text, struct tdm_error *err)
{
	char *copy = NULL;

	if (text) {
		for (const char *at = text; *at; at++) {
			if ((unsigned char)*at <= ' ' || *at == 0x7f) {
				return tdm_fail(err, TDM_ERR_RANGE,
					"a name in a corrections file may not hold blanks: \"%s\"",
					text);
			}
		}
		copy = strdup(text);
		if (!copy) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");
		}
	}
	free(timeline->texts[slot]);
	timeline->texts[slot] = copy;
	return TDM_OK;
}

enum tdm_status tdm_timeline_set_info(
	struct tdm_timeline *timeline, const struct tdm_timeline_info *info, struct tdm_error *err)
{
	const char *const texts[INFO_TEXTS] = {
		[HOST_UUID] = info->host_uuid,
		[HOST_CLOCK] = info->host_clock,
		[GUEST_UUID] = info->guest_uuid,
		[GUEST_CLOCK] = info->guest_clock,
		[MADE] = info->made,
		[METHOD] = info->method,
		[STAMPS] = info->stamps,
	};

	if (timeline->segment_count) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "a timeline's clocks are said before its segments");
	}
	if (!info->host_unit_hz || info->host_unit_hz > TDM_READING_MAX || !info->guest_unit_hz ||
		info->guest_unit_hz > TDM_READING_MAX || info->rate_ppb > MAX_RATE_PPB) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"unit-hz must be above 0 and rate-ppb at most %" PRIu64, MAX_RATE_PPB);
	}
	for (size_t i = 0; i < INFO_TEXTS; i++) {
		const enum tdm_status status =
			timeline_keep_text(timeline, (enum info_text)i, texts[i], err);

		if (status != TDM_OK) {
			return status;
		}
	}
	timeline->info = *info;
	return TDM_OK;
}

/* Room for one more element. */
static void *grown(void *array, size_t count, size_t *room, size_t element_bytes)
{
	if (count < *room) {
		return array;
	}

	const size_t wanted = *room ? *room * 2 : 8;
	void *bigger = realloc(array, wanted * element_bytes);

	if (bigger) {
		*room = wanted;
	}
	return bigger;
}

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");
}

enum tdm_status tdm_timeline_add_segment(struct tdm_timeline *timeline, enum tdm_segment_kind kind,
	uint64_t from, struct tdm_error *err)
{
	if (timeline->segment_count == TDM_TIMELINE_MAX_SEGMENTS) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "more than %d segments", TDM_TIMELINE_MAX_SEGMENTS);
	}
	if (from > TDM_READING_MAX) {
		return tdm_fail(err, TDM_ERR_RANGE, "segment from %" PRIu64 ": above 2^62", from);
	}
	if (timeline->segment_count) {
		const struct segment *last = &timeline->segments[timeline->segment_count - 1];

		if (!last->knot_count) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"the segment from %" PRIu64 " has no knots", last->from);
		}
		if (kind != TDM_SEGMENT_EPOCH && from <= last->from) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"segment from %" PRIu64
				" does not lie behind the one from %" PRIu64,
				from, last->from);
		}
	}

	struct segment *segments = grown(timeline->segments, timeline->segment_count,
		&timeline->segment_room, sizeof(*segments));

	if (!segments) {
		return no_memory(err);
	}
	timeline->segments = segments;

	struct segment made = { .kind = kind, .from = from, .first_knot = timeline->knot_count };

	if (timeline->segment_count) {
		const struct segment *last = &segments[timeline->segment_count - 1];

		made.run = last->run +
			   (kind == TDM_SEGMENT_EPOCH &&
				   from <= timeline->knots[timeline->knot_count - 1].guest);
	}
	segments[timeline->segment_count++] = made;
	return TDM_OK;
}

static void set_line(struct piece *piece, const struct tdm_knot *at, uint64_t run, uint64_t rise)
{
	piece->guest = at->guest;
	piece->host = at->host;
	piece->run = run;
	piece->whole = rise / run;
	piece->rest = rise % run;

	const tdm_u128 scaled = (tdm_u128)piece->rest << 64;
	const uint64_t left = (uint64_t)(scaled % run);

	piece->part = (uint64_t)(scaled / run);
	piece->reach = UINT64_MAX / (piece->whole + 1);
	/* Rounded up it is too great by added / run / 2^64; times a distance that must stay below 1 / run. */
	const uint64_t added = left ? run - left : 0;

	piece->near = piece->part + (added != 0);
	piece->near_reach = added ? UINT64_MAX / added : UINT64_MAX;
	if (piece->near_reach > piece->reach) {
		piece->near_reach = piece->reach;
	}
}

static uint32_t run_of(const struct tdm_timeline *timeline, const struct piece *piece)
{
	return timeline->segments[piece->segment].run;
}

/* Index of the first piece that begins at a reading or behind. */
static size_t pieces_before(const struct tdm_timeline *timeline, uint64_t from)
{
	size_t low = 0;
	size_t high = timeline->piece_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (timeline->pieces[middle].from < from) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* The greatest reading with a knot in the run that a piece belongs to, as far as it lies to the right. */
static uint64_t last_known(const struct tdm_timeline *timeline, size_t at)
{
	const uint32_t run = run_of(timeline, &timeline->pieces[at]);

	while (at + 1 < timeline->piece_count &&
		run_of(timeline, &timeline->pieces[at + 1]) == run) {
		at++;
	}

	const struct segment *segment = &timeline->segments[timeline->pieces[at].segment];

	return timeline->knots[segment->first_knot + segment->knot_count - 1].guest;
}

/*
 * Puts a piece in its place. Of an older run of the clock all that lies to its right goes as soon as the new run shows its
 * readings again; a run whose readings lie beyond stays as it is.
 */
static void place_piece(struct tdm_timeline *timeline, struct piece piece, uint64_t reach)
{
	struct piece *pieces = timeline->pieces;
	const uint32_t own = run_of(timeline, &piece);
	const size_t at = pieces_before(timeline, piece.from);
	size_t end = at;
	uint32_t met = own;

	if (at && run_of(timeline, &pieces[at - 1]) != own &&
		piece.from <= last_known(timeline, at - 1)) {
		met = run_of(timeline, &pieces[at - 1]);
	}
	while (end < timeline->piece_count) {
		const uint32_t run = run_of(timeline, &pieces[end]);

		if (run != own && run != met && pieces[end].from > reach &&
			timeline->moved < MAX_MOVED) {
			break;
		}
		met = run != own ? run : met;
		end++;
	}
	timeline->info.ambiguous |= met != own;
	if (at) {
		pieces[at - 1].until = piece.from - 1;
	}
	piece.until = end < timeline->piece_count ? pieces[end].from - 1 : UINT64_MAX;
	timeline->moved += timeline->piece_count - end;
	memmove(&pieces[at + 1], &pieces[end], (timeline->piece_count - end) * sizeof(*pieces));
	timeline->piece_count += at + 1 - end;
	pieces[at] = piece;
}

/* Takes up the line that ends (or, for a segment's first knot, begins) in the knot added last. */
static enum tdm_status add_piece(struct tdm_timeline *timeline, const struct tdm_knot *knot)
{
	const uint32_t number = (uint32_t)(timeline->segment_count - 1);
	const struct segment *segment = &timeline->segments[number];
	struct piece *pieces = grown(
		timeline->pieces, timeline->piece_count, &timeline->piece_room, sizeof(*pieces));

	if (!pieces) {
		return TDM_ERR_NOMEM;
	}
	timeline->pieces = pieces;

	struct piece piece = { .segment = number };
	const bool is_first = segment->knot_count <= 1;

	if (!segment->knot_count) {
		set_line(&piece, knot, timeline->info.guest_unit_hz, timeline->info.host_unit_hz);
		piece.from = segment->from;
	} else {
		const struct tdm_knot *before = &timeline->knots[timeline->knot_count - 1];

		set_line(&piece, before, knot->guest - before->guest, knot->host - before->host);
		piece.from = before->guest;
		/* The segment's first line also goes on to the left. */
		if (is_first || piece.from < segment->from) {
			piece.from = segment->from;
		}
	}
	/* What is below all segments belongs to the lowest. */
	if (is_first && timeline->piece_count) {
		struct piece *lowest = &pieces[0];
		const uint64_t lowest_from = timeline->segments[lowest->segment].from;

		if (segment->from < lowest_from) {
			lowest->from = lowest_from;
		}
		if (segment->from <= lowest_from) {
			piece.from = 0;
		}
	} else if (is_first) {
		piece.from = 0;
	}
	place_piece(timeline, piece, knot->guest);
	return TDM_OK;
}

enum tdm_status timeline_append_knot(
	struct tdm_timeline *timeline, const struct tdm_knot *knot, struct tdm_error *err)
{
	if (!timeline->segment_count) {
		return tdm_fail(err, TDM_ERR_RANGE, "a knot before the first segment");
	}

	struct segment *segment = &timeline->segments[timeline->segment_count - 1];

	if (timeline->knot_count == TDM_TIMELINE_MAX_KNOTS) {
		return tdm_fail(err, TDM_ERR_RANGE, "more than %d knots", TDM_TIMELINE_MAX_KNOTS);
	}
	if (segment->knot_count) {
		const struct tdm_knot *before = &timeline->knots[timeline->knot_count - 1];

		if (knot->guest <= before->guest || knot->host < before->host) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"knot at %" PRIu64 " -> %" PRIu64
				" goes back behind the one at %" PRIu64 " -> %" PRIu64,
				knot->guest, knot->host, before->guest, before->host);
		}
	}

	struct tdm_knot *knots =
		grown(timeline->knots, timeline->knot_count, &timeline->knot_room, sizeof(*knots));

	if (!knots) {
		return no_memory(err);
	}
	timeline->knots = knots;
	if (add_piece(timeline, knot) != TDM_OK) {
		return no_memory(err);
	}
	knots[timeline->knot_count++] = *knot;
	segment->knot_count++;
	if (knot->guest > timeline->last_guest) {
		timeline->last_guest = knot->guest;
	}
	return TDM_OK;
}

enum tdm_status tdm_timeline_add_knot(
	struct tdm_timeline *timeline, const struct tdm_knot *knot, struct tdm_error *err)
{
	if (knot->guest > TDM_READING_MAX || knot->host > TDM_READING_MAX ||
		knot->minus > TDM_READING_MAX || knot->plus > TDM_READING_MAX) {
		return tdm_fail(err, TDM_ERR_RANGE, "knot at %" PRIu64 ": a number above 2^62",
			knot->guest);
	}
	return timeline_append_knot(timeline, knot, err);
}

static bool begins_epoch(const struct tdm_timeline *timeline, uint64_t from)
{
	size_t low = 0;
	size_t high = timeline->segment_count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (timeline->segments[middle].from <= from) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return high && timeline->segments[low].from == from && timeline->segments[low].knot_count &&
	       (low == 0 || timeline->segments[low].kind == TDM_SEGMENT_EPOCH);
}

enum tdm_status tdm_timeline_add_doubt(
	struct tdm_timeline *timeline, uint64_t from, uint64_t to, struct tdm_error *err)
{
	if (timeline->doubt_count == TDM_TIMELINE_MAX_SEGMENTS) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "more than %d doubt ranges", TDM_TIMELINE_MAX_SEGMENTS);
	}
	if (to < from) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"doubt range from %" PRIu64 " ends before it, at %" PRIu64, from, to);
	}

	struct doubt *doubts = grown(
		timeline->doubts, timeline->doubt_count, &timeline->doubt_room, sizeof(*doubts));

	if (!doubts) {
		return no_memory(err);
	}
	timeline->doubts = doubts;
	doubts[timeline->doubt_count++] = (struct doubt){ from, to };
	/* Doubt that begins with an epoch: not the place of a break, but readings that were shown more than once. */
	timeline->info.ambiguous |= from < to && begins_epoch(timeline, from);
	return TDM_OK;
}

enum tdm_status tdm_timeline_add_cpu(struct tdm_timeline *timeline, uint32_t cpu, int64_t ticks,
	uint64_t bound, struct tdm_error *err)
{
	if (cpu >= TDM_TIMELINE_MAX_CPUS) {
		return tdm_fail(err, TDM_ERR_RANGE, "CPU %" PRIu32 ": numbers end at %d", cpu,
			TDM_TIMELINE_MAX_CPUS - 1);
	}
	if (bound > TDM_READING_MAX || ticks > (int64_t)TDM_READING_MAX ||
		ticks < -(int64_t)TDM_READING_MAX) {
		return tdm_fail(err, TDM_ERR_RANGE, "CPU %" PRIu32 ": a number above 2^62", cpu);
	}
	if (cpu >= timeline->cpu_room) {
		struct cpu_offset *cpus = realloc(timeline->cpus, (cpu + 1) * sizeof(*cpus));

		if (!cpus) {
			return no_memory(err);
		}
		memset(cpus + timeline->cpu_room, 0,
			(cpu + 1 - timeline->cpu_room) * sizeof(*cpus));
		timeline->cpus = cpus;
		timeline->cpu_room = cpu + 1;
	}
	timeline->cpu_count += !timeline->cpus[cpu].is_set;
	timeline->cpus[cpu] = (struct cpu_offset){ .is_set = true, .ticks = ticks, .bound = bound };
	return TDM_OK;
}

struct tdm_timeline *tdm_timeline_from_offset(int64_t offset, uint64_t bound)
{
	struct tdm_timeline *timeline = tdm_timeline_create();
	/* Anywhere on the line will do; this point has no negative reading. */
	const struct tdm_knot knot = { .guest = offset < 0 ? -(uint64_t)offset : 0,
		.host = offset < 0 ? 0 : (uint64_t)offset,
		.minus = bound,
		.plus = bound };

	if (!timeline) {
		return NULL;
	}
	timeline->info.rate_ppb = 0;
	timeline->info.complete = true;
	if (tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, 0, NULL) != TDM_OK ||
		timeline_append_knot(timeline, &knot, NULL) != TDM_OK) {
		tdm_timeline_destroy(timeline);
		return NULL;
	}
	return timeline;
}
