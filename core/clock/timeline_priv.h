/* SPDX-License-Identifier: MIT */
/*
 * timeline_priv.h - how a timeline is kept: as the file tells it, and flattened for lookup.
 */
#ifndef TANDEM_TIMELINE_PRIV_H
#define TANDEM_TIMELINE_PRIV_H

#include <tandem/timeline.h>
#include <tandem/wide.h>

struct segment {
	enum tdm_segment_kind kind;
	uint64_t from;
	uint32_t run; /* how often the guest's clock went back before it */
	size_t first_knot, knot_count;
};

/*
 * One line of the flattened timeline: the readings from "from" to "until" lie on it.
 *
 *     host + floor((g - guest) * rise / run)
 *
 * rise = whole * run + rest. The high half of distance * near, near being rest * 2^64 / run rounded up, is exact as long
 * as what the rounding adds stays below one part in run: up to "near_reach", seconds for clocks in ns. With part, the same
 * rounded down, it is that quotient or one less, and a look at the remainder makes it exact. No division is left.
 */
struct piece {
	uint64_t from, until;
	uint64_t guest, host;
	uint64_t near_reach, near;
	uint64_t run, whole, rest, part;
	uint64_t reach; /* distances above take the plain form */
	uint32_t segment;
};

static inline uint64_t piece_rise(const struct piece *piece)
{
	return piece->whole * piece->run + piece->rest;
}

struct doubt {
	uint64_t from, to;
};

struct cpu_offset {
	bool is_set;
	int64_t ticks;
	uint64_t bound;
};

enum info_text {
	HOST_UUID,
	HOST_CLOCK,
	GUEST_UUID,
	GUEST_CLOCK,
	MADE,
	METHOD,
	STAMPS,
	INFO_TEXTS
};

struct tdm_timeline {
	struct tdm_timeline_info info; /* its pointers and counts are filled in on request */
	char *texts[INFO_TEXTS];
	struct segment *segments;
	size_t segment_count, segment_room;
	struct tdm_knot *knots;
	size_t knot_count, knot_room;
	struct piece *pieces;
	size_t piece_count, piece_room;
	size_t moved; /* pieces, to make room for those of a clock that went back */
	struct doubt *doubts;
	size_t doubt_count, doubt_room;
	struct cpu_offset *cpus; /* by number */
	size_t cpu_room, cpu_count;
	uint64_t last_guest; /* the greatest reading with a knot */
	/* The parser's place. */
	bool headed;
	uint64_t knots_due; /* of the open segment, where its count was said */
	bool counted;
};

/** Adds a knot without looking at the limit on readings. */
enum tdm_status timeline_append_knot(
	struct tdm_timeline *timeline, const struct tdm_knot *knot, struct tdm_error *err);

/** Keeps a copy of @p text (NULL: nothing) in one of the slots. */
enum tdm_status timeline_keep_text(struct tdm_timeline *timeline, enum info_text slot,
	const char *text, struct tdm_error *err);

/** The lines of a corrections file that come before its segments; the counts of samples only where they are final. */
enum tdm_status timeline_write_header(
	const struct tdm_timeline_info *info, bool with_counts, struct tdm_buffer *out);

/** The reading of @p cpu with its own offset, held inside 64 bits. */
static inline uint64_t timeline_cpu_reading(
	const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu)
{
	if (cpu >= timeline->cpu_room) {
		return guest;
	}

	const int64_t ticks = timeline->cpus[cpu].ticks;
	const uint64_t moved = guest + (uint64_t)ticks;

	if (ticks < 0) {
		return moved > guest ? 0 : moved;
	}
	return moved < guest ? UINT64_MAX : moved;
}

/** Index of the piece that @p guest lies on; there is at least one. */
size_t timeline_find_piece(
	const struct tdm_timeline *timeline, uint64_t guest, struct tdm_timeline_hint *hint);

/** Exact reading on one piece, held inside 64 bits. */
uint64_t timeline_on_piece(const struct piece *piece, uint64_t guest);

#endif
