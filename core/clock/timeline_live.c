/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/timeline_live.h>
#include <tandem/wide.h>

/*
 * The answers, left to right. A piece either follows the timeline where that is final, or is a line of its own:
 * beyond the last knot, and while it slews.
 */
struct piece {
	uint64_t from;
	bool follow;
	uint64_t guest, host; /* the line's origin, at or before from */
	uint64_t rise, run;
};

struct tdm_live {
	struct tdm_timeline *timeline;
	struct piece *pieces;
	size_t piece_count, piece_room;
	uint64_t known; /* the greatest reading with a knot */
	bool has_applied;
	uint64_t applied; /* the greatest reading that was answered */
	size_t segments;  /* with knots, when pieces were made last */
	struct tdm_timeline_hint hint;
	/* A service that is connected to again tells all from the beginning. */
	bool replaying;
	size_t replayed; /* segments told again so far */
	bool strange;    /* what it tells is not what we have: only what is new counts */
	bool opened;     /* a segment of ours was opened for it */
};

struct tdm_live *tdm_live_create(void)
{
	struct tdm_live *live = calloc(1, sizeof(*live));

	if (live) {
		live->timeline = tdm_timeline_create();
		if (!live->timeline) {
			free(live);
			live = NULL;
		}
	}
	return live;
}

void tdm_live_destroy(struct tdm_live *live)
{
	if (live) {
		tdm_timeline_destroy(live->timeline);
		free(live->pieces);
		free(live);
	}
}

static uint64_t held(tdm_u128 value)
{
	return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

static uint64_t final_at(struct tdm_live *live, uint64_t guest)
{
	return tdm_timeline_apply(live->timeline, guest, UINT32_MAX, &live->hint);
}

static const struct piece *find_piece(const struct tdm_live *live, uint64_t guest)
{
	size_t low = 0;
	size_t high = live->piece_count;

	/* Readings come almost in order and the newest pieces are the last ones. */
	if (live->pieces[high - 1].from <= guest) {
		return &live->pieces[high - 1];
	}
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (live->pieces[middle].from <= guest) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return &live->pieces[low];
}

static uint64_t answer(struct tdm_live *live, uint64_t guest)
{
	const struct piece *piece = find_piece(live, guest);

	if (piece->follow) {
		return final_at(live, guest);
	}
	return held((tdm_u128)(guest - piece->guest) * piece->rise / piece->run + piece->host);
}

static bool push(struct tdm_live *live, const struct piece *piece)
{
	if (live->piece_count == live->piece_room) {
		const size_t room = live->piece_room ? live->piece_room * 2 : 16;
		struct piece *bigger = realloc(live->pieces, room * sizeof(*bigger));

		if (!bigger) {
			return false;
		}
		live->pieces = bigger;
		live->piece_room = room;
	}
	live->pieces[live->piece_count++] = *piece;
	return true;
}

/* The last segment that has knots. */
static struct tdm_segment_info last_segment(const struct tdm_live *live)
{
	size_t at = tdm_timeline_get_info(live->timeline).segment_count;
	struct tdm_segment_info segment = { .knot_count = 0 };

	while (at && !segment.knot_count) {
		segment = tdm_timeline_segment(live->timeline, --at);
	}
	return segment;
}

/* From "from" on, the last interval goes on through (guest, host). */
static struct piece tail_piece(
	const struct tdm_live *live, uint64_t from, uint64_t guest, uint64_t host)
{
	const struct tdm_segment_info segment = last_segment(live);
	const struct tdm_timeline_info info = tdm_timeline_get_info(live->timeline);
	struct piece tail = { .from = from,
		.guest = guest,
		.host = host,
		.rise = info.host_unit_hz,
		.run = info.guest_unit_hz };

	if (segment.knot_count > 1) {
		const struct tdm_knot *b = &segment.knots[segment.knot_count - 1];

		tail.rise = b->host - b[-1].host;
		tail.run = b->guest - b[-1].guest;
	}
	return tail;
}

/* Follows the timeline from "from" to its last knot, then goes on. */
static bool push_final(struct tdm_live *live, uint64_t from)
{
	const struct piece follow = { .from = from, .follow = true };
	uint64_t tail_from = live->known + 1;

	if (from <= live->known && !push(live, &follow)) {
		return false;
	}
	if (tail_from < from) {
		tail_from = from;
	}
	const struct piece tail =
		tail_piece(live, tail_from, live->known, final_at(live, live->known));

	return push(live, &tail);
}

/* Time must not go back: stands still until the timeline has come up to @p host. */
static bool push_wait(struct tdm_live *live, uint64_t from, uint64_t host)
{
	const struct piece still = {
		.from = from, .guest = from, .host = host, .rise = 0, .run = 1
	};
	uint64_t span = 1;
	uint64_t low = from;

	while (span < TDM_READING_MAX && final_at(live, from + span) < host) {
		span *= 2;
	}
	uint64_t high = from + span;

	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		if (final_at(live, middle) < host) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return push(live, &still) && push_final(live, high);
}

/* Runs from (t, host) to where the timeline is, at a rate that differs by TDM_LIVE_SLEW_PPM at most. */
static bool push_slew(struct tdm_live *live, uint64_t t, uint64_t host, uint64_t distance)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(live->timeline);
	const uint64_t span = held((tdm_u128)distance * (1000000 / TDM_LIVE_SLEW_PPM) *
					   info.guest_unit_hz / info.host_unit_hz +
				   1);
	const uint64_t meet = held((tdm_u128)t + span);
	const uint64_t there = final_at(live, meet);
	const struct piece slew = { .from = t + 1,
		.guest = t,
		.host = host,
		.rise = there > host ? there - host : 0,
		.run = meet - t };

	if (!push(live, &slew)) {
		return false;
	}
	if (meet <= live->known) {
		return push_final(live, meet);
	}
	const struct piece tail = tail_piece(live, meet, meet, there > host ? there : host);

	return push(live, &tail);
}

/* True where a segment that is newer than the pieces begins at or before what was answered already. */
static bool jumped_before(const struct tdm_live *live, size_t segments)
{
	for (size_t i = live->segments; i < segments; i++) {
		if (tdm_timeline_segment(live->timeline, i).from <= live->applied) {
			return true;
		}
	}
	return false;
}

/* Makes the pieces behind the last answer anew, after the timeline has grown. */
static bool renew(struct tdm_live *live)
{
	const size_t segments = tdm_timeline_get_info(live->timeline).segment_count;
	const uint64_t t = live->applied;
	bool good;

	if (!live->has_applied || !live->piece_count) {
		live->piece_count = 0;
		good = push_final(live, 0);
		live->segments = segments;
		return good;
	}
	const struct piece *current = find_piece(live, t);
	const bool on_time = current->follow;
	const uint64_t ours = answer(live, t);
	const bool jumped = jumped_before(live, segments);

	/* What lies behind the last answer was never given out. */
	while (live->piece_count && live->pieces[live->piece_count - 1].from > t) {
		live->piece_count--;
	}
	const uint64_t theirs = final_at(live, t);

	live->segments = segments;
	if (on_time && !jumped) {
		live->piece_count--;
		return push_final(live, current->from);
	}
	if (ours == theirs || (jumped && theirs > ours)) {
		return push_final(live, t + 1);
	}
	if (jumped) {
		return push_wait(live, t + 1, ours);
	}
	return push_slew(live, t, ours, ours > theirs ? ours - theirs : theirs - ours);
}

static enum tdm_status feed(struct tdm_live *live, const char *line, struct tdm_error *err)
{
	const size_t knots = tdm_timeline_get_info(live->timeline).knot_count;
	const enum tdm_status status = tdm_timeline_feed_line(live->timeline, line, err);
	uint64_t first;

	if (status != TDM_OK || tdm_timeline_get_info(live->timeline).knot_count == knots) {
		return status;
	}
	(void)tdm_timeline_range(live->timeline, &first, &live->known);
	return renew(live) ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a live timeline");
}

static bool begins_with(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

/* A knot of a service that was connected to again. */
static enum tdm_status replay_knot(struct tdm_live *live, const char *line, struct tdm_error *err)
{
	uint64_t guest = 0;
	char step[64];

	if (sscanf(line, "k %" SCNu64, &guest) != 1) {
		return tdm_fail(err, TDM_ERR_FORMAT, "a knot without a reading");
	}
	if (guest <= live->known) {
		return TDM_OK;
	}
	if (live->strange && !live->opened) {
		/* A service of a new session: same machines, other segments. Its first new knot opens one. */
		snprintf(step, sizeof(step), "segment step %" PRIu64 " 0", guest);

		const enum tdm_status status = feed(live, step, err);

		if (status != TDM_OK) {
			return status;
		}
		live->opened = true;
	}
	return feed(live, line, err);
}

static enum tdm_status replay_segment(
	struct tdm_live *live, const char *line, struct tdm_error *err)
{
	const size_t ours = tdm_timeline_get_info(live->timeline).segment_count;
	uint64_t from = 0;

	if (sscanf(line, "segment %*s %" SCNu64, &from) != 1) {
		return tdm_fail(err, TDM_ERR_FORMAT, "a segment without a reading");
	}
	if (!live->strange && live->replayed < ours) {
		live->strange = tdm_timeline_segment(live->timeline, live->replayed).from != from;
		live->replayed++;
		return TDM_OK;
	}
	if (live->strange && from <= live->known) {
		return TDM_OK;
	}
	live->replayed++;
	live->opened = true;
	return feed(live, line, err);
}

enum tdm_status tdm_live_feed(struct tdm_live *live, const char *line, struct tdm_error *err)
{
	if (!live->replaying) {
		return feed(live, line, err);
	}
	if (begins_with(line, "k ")) {
		return replay_knot(live, line, err);
	}
	if (begins_with(line, "segment ")) {
		return replay_segment(live, line, err);
	}
	if (strcmp(line, "end") == 0 || begins_with(line, "cpu ")) {
		return feed(live, line, err);
	}
	/* Its head is known, its doubts are behind us. */
	return TDM_OK;
}

void tdm_live_begin_again(struct tdm_live *live)
{
	live->replaying = tdm_timeline_get_info(live->timeline).segment_count != 0;
	live->replayed = 0;
	live->strange = false;
	live->opened = false;
	if (!live->replaying) {
		/* Nothing but a head has come so far: take the new one. */
		struct tdm_timeline *fresh = tdm_timeline_create();

		if (fresh) {
			tdm_timeline_destroy(live->timeline);
			live->timeline = fresh;
		}
	}
}

bool tdm_live_is_ready(const struct tdm_live *live)
{
	return live->piece_count != 0;
}

uint64_t tdm_live_known_until(const struct tdm_live *live)
{
	return tdm_timeline_get_info(live->timeline).complete ? UINT64_MAX : live->known;
}

uint64_t tdm_live_apply(struct tdm_live *live, uint64_t guest, uint32_t cpu)
{
	int64_t ticks;
	uint64_t bound;

	if (tdm_timeline_cpu(live->timeline, cpu, &ticks, &bound)) {
		const uint64_t moved = guest + (uint64_t)ticks;

		if (ticks < 0) {
			guest = moved > guest ? 0 : moved;
		} else {
			guest = moved < guest ? UINT64_MAX : moved;
		}
	}
	if (!live->piece_count) {
		return guest;
	}
	if (!live->has_applied || guest > live->applied) {
		live->applied = guest;
		live->has_applied = true;
	}
	return answer(live, guest);
}

const struct tdm_timeline *tdm_live_timeline(const struct tdm_live *live)
{
	return live->timeline;
}
