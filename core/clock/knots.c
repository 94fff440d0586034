/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include "repeat.h"
#include <math.h>
#include <stdlib.h>

enum {
	GAP_PLACES = 24,
	MAX_TOLD = TDM_TIMELINE_MAX_SEGMENTS / 4 /* dissents that get a doubt range of their own */
};

#define LONE_REACH_NS 10e9 /* how far from a lone burst the bound is said */

/* The pause between two bursts in which a break lies, and what may be so in it. */
struct gap {
	const struct stretch *left, *right;
	const struct window *a, *b; /* the windows on both sides */
	double slow, fast;          /* limits of the rates on both sides */
	bool is_bent;               /* rates alone can explain it, without a jump */
	size_t first_dissent, dissent_count;
};

static struct gap gap_before(const struct estimate *est, const struct stretch *right)
{
	const struct stretch *left = right - 1;
	struct gap gap = { .left = left,
		.right = right,
		.a = &est->windows[left->first + left->count - 1],
		.b = &est->windows[right->first],
		.slow = fmin(left->rate_low, right->rate_low),
		.fast = fmax(left->rate_high, right->rate_high) };
	const double run = gap.b->x - gap.a->x;

	gap.is_bent = gap.a->own_low + gap.slow * run <= gap.b->own_high &&
		      gap.a->own_high + gap.fast * run >= gap.b->own_low;
	gap.dissent_count =
		dissent_between(est, gap.a->run, gap.a->x, gap.b->x, &gap.first_dissent);
	return gap;
}

/* One place in a gap: the estimate of a side, and the bound that holds there. */
static void add_beside(struct points *points, const struct estimate *est, const struct gap *gap,
	bool is_left, uint64_t guest)
{
	const struct stretch *right = gap->right;
	const double x = place_x(est, guest);
	double y = bound_estimate_at(est, is_left ? gap->left : right, x);
	double low = INFINITY;
	double high = -INFINITY;
	double side_low;
	double side_high;

	if (!isnan(right->ceiling)) {
		y = is_left ? fmin(y, right->ceiling - x) : fmax(y, right->ceiling - x);
	}
	if (x < right->doubt_to) {
		bound_at(est, gap->left, x, &low, &high);
	}
	if (x > right->doubt_from) {
		bound_at(est, right, x, &side_low, &side_high);
		low = fmin(low, side_low);
		high = fmax(high, side_high);
	}
	if (gap->is_bent) {
		/* The rate may have changed more than once: any way from one window to the other. */
		const double from = x - gap->a->x;
		const double to = gap->b->x - x;

		low = fmin(low,
			fmax(gap->a->own_low + gap->slow * from, gap->b->own_low - gap->fast * to));
		high = fmax(high, fmin(gap->a->own_high + gap->fast * from,
					  gap->b->own_high - gap->slow * to));
	}
	dissent_cover(est, x, gap->first_dissent, gap->dissent_count, &low, &high);
	points_add(points, est, guest, y, low, high);
}

/* Readings inside a gap at which estimate or bound bend, in order. */
static size_t gap_places(const struct estimate *est, const struct gap *gap, uint64_t change,
	uint64_t places[GAP_PLACES])
{
	const double run = gap->b->x - gap->a->x;
	const uint64_t begin = place_guest(est, gap->a->x);
	const uint64_t end = place_guest(est, gap->b->x);
	const uint64_t from = place_guest(est, gap->right->doubt_from);
	const uint64_t to = place_guest(est, gap->right->doubt_to);
	uint64_t all[GAP_PLACES] = { begin + 1, from, from + 1, to - 1, to, end - 1, change };
	size_t count = 7;
	size_t kept = 0;

	if (gap->is_bent && gap->fast > gap->slow) {
		const double at_low = (gap->a->own_low - gap->b->own_low + gap->fast * run) /
				      (gap->fast - gap->slow);
		const double at_high = (gap->b->own_high - gap->a->own_high - gap->slow * run) /
				       (gap->fast - gap->slow);

		all[count++] = place_guest(est, gap->a->x + at_low);
		all[count++] = place_guest(est, gap->a->x + at_high);
	}
	if (!isnan(gap->right->ceiling)) {
		/* Where the estimate begins to stand still. */
		double x = place_x(est, change);

		for (int i = 0; i < 8; i++) {
			x += gap->right->ceiling - x - bound_estimate_at(est, gap->left, x);
		}
		all[count++] = place_guest(est, x);
	}
	for (size_t i = 0; i < gap->dissent_count && count < GAP_PLACES; i++) {
		all[count++] = place_guest(est, est->dissents[gap->first_dissent + i].x);
	}
	for (size_t i = 0; i < count; i++) {
		if (all[i] > begin && all[i] < end) {
			places[kept++] = all[i];
		}
	}
	qsort(places, kept, sizeof(*places), compare_u64);
	return kept;
}

/* Places between the last window of a stretch and the change. */
static void add_left_of_change(struct points *points, const struct estimate *est,
	const struct stretch *right, uint64_t change)
{
	const struct gap gap = gap_before(est, right);
	uint64_t places[GAP_PLACES];
	const size_t count = gap_places(est, &gap, change, places);

	for (size_t i = 0; i < count && places[i] < change; i++) {
		add_beside(points, est, &gap, true, places[i]);
	}
	add_beside(points, est, &gap, true, change);
}

static void add_right_of_change(struct points *points, const struct estimate *est,
	const struct stretch *right, uint64_t change)
{
	const struct gap gap = gap_before(est, right);
	uint64_t places[GAP_PLACES];
	const size_t count = gap_places(est, &gap, change, places);

	for (size_t i = 0; i < count; i++) {
		if (places[i] >= change) {
			add_beside(points, est, &gap, false, places[i]);
		}
	}
}

/* A place where a dissent may hold. */
static void add_heard(struct points *points, const struct estimate *est,
	const struct stretch *stretch, uint64_t guest, size_t first, size_t count)
{
	const double x = place_x(est, guest);
	double low;
	double high;

	bound_at(est, stretch, x, &low, &high);
	dissent_cover(est, x, first, count, &low, &high);
	points_add(points, est, guest, bound_estimate_at(est, stretch, x), low, high);
}

/* All that was said against the estimate between two places. */
static void add_dissents(struct points *points, const struct estimate *est,
	const struct stretch *stretch, double from, double to)
{
	size_t first;
	const size_t count =
		dissent_between(est, est->windows[stretch->first].run, from, to, &first);

	if (!count) {
		return;
	}

	const struct dissent *dissents = &est->dissents[first];
	const uint64_t begin = place_guest(est, dissents[0].from);
	const uint64_t end = place_guest(est, dissents[count - 1].to);

	add_heard(points, est, stretch, begin + (begin < TDM_READING_MAX), first, count);
	for (size_t i = 0; i < count; i++) {
		add_heard(points, est, stretch, place_guest(est, dissents[i].x), first, count);
	}
	add_heard(points, est, stretch, end - (end > 0), first, count);
}

/*
 * Between two windows that tell no rate: any way from one to the other that a clock could have gone, and what was said
 * against the estimate.
 */
static void add_kink(struct points *points, const struct estimate *est,
	const struct stretch *stretch, const struct window *left)
{
	const struct window *right = left + 1;
	const double run = right->x - left->x;
	const double slow = stretch->rate_low;
	const double fast = stretch->rate_high;
	/* Where the lowest way and the highest turn. */
	const double turn_low = (left->low - right->low + fast * run) / (fast - slow);
	const double turn_high = (right->high - left->high - slow * run) / (fast - slow);
	const uint64_t begin = place_guest(est, left->x);
	const uint64_t end = place_guest(est, right->x);
	uint64_t places[GAP_PLACES] = { begin + 1, place_guest(est, left->x + turn_low),
		place_guest(est, left->x + turn_high), end - 1 };
	size_t place_count = 4;
	size_t first;
	const size_t count = dissent_between(est, left->run, left->x, right->x, &first);

	for (size_t i = 0; i < count && place_count < GAP_PLACES; i++) {
		places[place_count++] = place_guest(est, est->dissents[first + i].x);
	}
	qsort(places, place_count, sizeof(*places), compare_u64);
	for (size_t i = 0; i < place_count; i++) {
		const double x = place_x(est, places[i]);
		const double from = x - left->x;
		const double to = run - from;
		const double part = from / run;
		/* The straight way is one of them, also where it takes a jump too small to be seen. */
		double low = fmin(left->low + (right->low - left->low) * part,
			fmax(left->low + slow * from, right->low - fast * to));
		double high = fmax(left->high + (right->high - left->high) * part,
			fmin(left->high + fast * from, right->high - slow * to));

		if (places[i] <= begin || places[i] >= end) {
			continue;
		}
		dissent_cover(est, x, first, count, &low, &high);
		points_add(
			points, est, places[i], left->y + (right->y - left->y) * part, low, high);
	}
}

static void add_windows(
	struct points *points, const struct estimate *est, const struct stretch *stretch)
{
	const size_t end = stretch->first + stretch->count;

	for (size_t i = stretch->first; i < end; i++) {
		const struct window *window = &est->windows[i];
		double run = i > stretch->first ? window->x - window[-1].x : 0;

		/* Of the time between two windows a rate within the limits can make this much on either side. */
		run = i + 1 < end ? fmax(run, window[1].x - window->x) : run;
		points_add(points, est, place_guest(est, window->x), window->y,
			window->low - est->rho * run / 2, window->high + est->rho * run / 2);
		if (i + 1 < end && !stretch->is_rated && window[1].x - window->x > BURST_REACH_NS) {
			add_kink(points, est, stretch, window);
		} else if (i + 1 < end) {
			add_dissents(points, est, stretch, window->x, window[1].x);
		}
	}
}

/* Too short to say more of the rate than that no clock is further off; a reader would take it for worse. */
static bool is_short(const struct estimate *est, const struct stretch *stretch)
{
	const struct window *first = &est->windows[stretch->first];
	const struct window *last = first + stretch->count - 1;

	return last->high - last->low > RATE_CAP * (last->x - first->x);
}

/* A place beyond an end of a run, with the bound that holds there; to the left where ns is negative. */
static void add_reach(
	struct points *points, const struct estimate *est, const struct stretch *stretch, double ns)
{
	const size_t end = ns < 0 ? stretch->first : stretch->first + stretch->count - 1;
	const uint64_t guest = place_guest(est, est->windows[end].x + ns);
	const double x = place_x(est, guest);
	double low;
	double high;

	if (guest == TDM_READING_MAX) {
		return;
	}
	bound_at(est, stretch, x, &low, &high);
	points_add(points, est, guest, bound_estimate_at(est, stretch, x), low, high);
}

/* Stretches [first, end): between them the guest's clock did not go back. */
struct span {
	size_t first, end;
};

/* How long a run may have gone on behind its last burst, in ns. */
static double reach_behind(const struct estimate *est, struct span span)
{
	const struct stretch *last = &est->stretches[span.end - 1];
	const struct window *window = &est->windows[last->first + last->count - 1];

	if (span.end == est->stretch_count) {
		return LONE_REACH_NS;
	}

	const struct window *next = &est->windows[last[1].first];

	return fmax(next->x + next->y - window->x - window->y, 0);
}

static enum tdm_status put_stretches(const struct estimate *est, struct span span, bool thin,
	struct tdm_timeline *timeline, struct tdm_error *err)
{
	struct points points = { 0 };
	enum tdm_status status = TDM_OK;
	uint64_t change = 0;

	for (size_t s = span.first; status == TDM_OK && s < span.end; s++) {
		const struct stretch *stretch = &est->stretches[s];
		const bool opens = s == span.first;
		const bool closes = s + 1 == span.end;
		const struct window *first = &est->windows[stretch->first];
		const struct window *last = first + stretch->count - 1;

		points.count = 0;
		/* A lone burst says nothing of the rate: its bound opens to both sides. So does the first one of a session that
		   goes on. */
		if (opens && (!thin || is_short(est, stretch))) {
			add_reach(&points, est, stretch, -LONE_REACH_NS);
		}
		if (!opens) {
			add_right_of_change(&points, est, stretch, change);
		} else {
			add_dissents(&points, est, stretch, -INFINITY, first->x);
		}
		add_windows(&points, est, stretch);
		if (!closes) {
			change = place_guest(est, stretch[1].change);
			add_left_of_change(&points, est, stretch + 1, change);
		} else {
			add_dissents(&points, est, stretch, last->x, INFINITY);
		}
		/* Nothing is said of what lies behind the last burst of a session that goes on: it is still to come. */
		if (closes && (thin ? is_short(est, stretch)
				    : !est->is_live || span.end < est->stretch_count)) {
			add_reach(&points, est, stretch, reach_behind(est, span));
		}
		if (points.failed) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for the knots");
			break;
		}

		const uint64_t from =
			s == 0 ? points.at[0].guest : place_guest(est, stretch->change);

		if (thin) {
			points_thin(&points);
		}
		status = points_put(est, stretch->kind, from, &points, timeline, err);
	}
	free(points.at);
	return status;
}

static enum tdm_status put_doubts(const struct estimate *est, struct span span,
	struct tdm_timeline *timeline, struct tdm_error *err)
{
	const struct window *window = &est->windows[est->stretches[span.first].first];
	enum tdm_status status = TDM_OK;
	size_t first;
	const size_t count = dissent_between(est, window->run, -INFINITY, INFINITY, &first);

	for (size_t s = span.first + 1; status == TDM_OK && s < span.end; s++) {
		const struct stretch *stretch = &est->stretches[s];

		status = tdm_timeline_add_doubt(timeline, place_guest(est, stretch->told_from),
			place_guest(est, stretch->told_to), err);
	}
	for (size_t i = first; status == TDM_OK && i < first + count && i < MAX_TOLD; i++) {
		if (!est->dissents[i].is_told) {
			continue;
		}
		status = tdm_timeline_add_doubt(timeline, place_guest(est, est->dissents[i].from),
			place_guest(est, est->dissents[i].to), err);
	}
	return status;
}

static enum tdm_status put_span(const struct estimate *est, struct span span, bool thin,
	struct tdm_timeline *timeline, struct tdm_error *err)
{
	const enum tdm_status status = put_stretches(est, span, thin, timeline, err);

	return status == TDM_OK ? put_doubts(est, span, timeline, err) : status;
}

static struct span span_from(const struct estimate *est, size_t first)
{
	struct span span = { first, first + 1 };

	while (span.end < est->stretch_count && !est->stretches[span.end].is_overlap) {
		span.end++;
	}
	return span;
}

/* The readings that a run may have shown: it began and ended at some time in the pauses around it. */
static void find_range(const struct estimate *est, struct span span, struct repeat_run *run)
{
	const struct stretch *last = &est->stretches[span.end - 1];
	const struct window *window = &est->windows[last->first + last->count - 1];
	const struct window *begin = &est->windows[est->stretches[span.first].first];

	run->from = span.first ? place_guest(est, est->stretches[span.first].change)
			       : place_guest(est, begin->x - LONE_REACH_NS);
	run->until = place_guest(est, window->x + reach_behind(est, span)) + 1;
}

/* Did an earlier run show a reading of this one, as far as exchanges tell? */
static bool is_repeated(const struct estimate *est, struct span span)
{
	const struct stretch *last = &est->stretches[span.end - 1];
	const double from = est->windows[est->stretches[span.first].first].x;
	const double to = est->windows[last->first + last->count - 1].x;

	for (size_t s = 0; s < span.first; s++) {
		const struct stretch *stretch = &est->stretches[s];

		if (est->windows[stretch->first].x <= to &&
			est->windows[stretch->first + stretch->count - 1].x >= from) {
			return true;
		}
	}
	return false;
}

static enum tdm_status put_runs(
	struct estimate *est, struct tdm_timeline *timeline, struct tdm_error *err)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	struct repeat_run *runs = calloc(REPEAT_MAX_RUNS, sizeof(*runs));
	enum tdm_status status = runs ? TDM_OK : TDM_ERR_NOMEM;
	struct span span = { 0 };
	size_t count = 0;

	while (status == TDM_OK && span.end < est->stretch_count) {
		span = span_from(est, span.end);
		if (count == REPEAT_MAX_RUNS) {
			status = TDM_ERR_RANGE;
			break;
		}
		est->quality.ambiguous |= is_repeated(est, span);
		find_range(est, span, &runs[count]);
		runs[count].kind = TDM_SEGMENT_EPOCH;
		runs[count].timeline = tdm_timeline_create();
		status = runs[count].timeline
				 ? tdm_timeline_set_info(runs[count].timeline, &info, err)
				 : TDM_ERR_NOMEM;
		if (status == TDM_OK) {
			/* Without its doubts: the knots' own bounds are merged. */
			status = put_stretches(est, span, true, runs[count].timeline, err);
		}
		count++;
	}
	if (status == TDM_OK) {
		status = repeat_merge(runs, count, timeline, err);
	} else if (status == TDM_ERR_RANGE && count == REPEAT_MAX_RUNS) {
		tdm_fail(err, TDM_ERR_RANGE, "the guest's clock went back more than %d times",
			REPEAT_MAX_RUNS - 1);
	}
	for (span.end = 0; status == TDM_OK && span.end < est->stretch_count;) {
		span = span_from(est, span.end);
		status = put_doubts(est, span, timeline, err);
	}
	for (size_t r = 0; r < count; r++) {
		tdm_timeline_destroy(runs[r].timeline);
	}
	free(runs);
	return status;
}

/* Not thinned is live: all runs in the order of time. */
enum tdm_status knots_emit(
	struct estimate *est, bool thin, struct tdm_timeline *timeline, struct tdm_error *err)
{
	struct span span = span_from(est, 0);
	enum tdm_status status;

	if (thin && span.end < est->stretch_count) {
		return put_runs(est, timeline, err);
	}
	status = put_span(est, span, thin, timeline, err);
	while (status == TDM_OK && span.end < est->stretch_count) {
		span = span_from(est, span.end);
		est->quality.ambiguous |= is_repeated(est, span);
		status = put_span(est, span, thin, timeline, err);
	}
	return status;
}
