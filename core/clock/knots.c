/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

#define LONE_REACH_S 10.0 /* how far from a lone burst the bound is said */

/* One place beside a break: the estimate of a side, and the bound that holds there. */
static void add_beside(struct points *points, const struct estimate *est, size_t index,
	bool is_left, uint64_t guest)
{
	const struct stretch *right = &est->stretches[index];
	const struct stretch *left = right - 1;
	const double x = place_x(est, guest);
	double y = bound_estimate_at(est, is_left ? left : right, x);
	double low;
	double high;
	double other_low;
	double other_high;

	if (!isnan(right->ceiling)) {
		y = is_left ? fmin(y, right->ceiling - x) : fmax(y, right->ceiling - x);
	}
	if (x <= right->doubt_from) {
		bound_at(est, left, x, &low, &high);
	} else if (x >= right->doubt_to) {
		bound_at(est, right, x, &low, &high);
	} else {
		bound_at(est, left, x, &low, &high);
		bound_at(est, right, x, &other_low, &other_high);
		low = fmin(low, other_low);
		high = fmax(high, other_high);
	}
	points_add(points, est, guest, y, low, high);
}

/* Places between the last window of a stretch and the change. */
static void add_left_of_change(
	struct points *points, const struct estimate *est, size_t index, uint64_t change)
{
	const struct stretch *right = &est->stretches[index];
	const struct stretch *left = right - 1;
	const uint64_t window = place_guest(est, est->windows[left->first + left->count - 1].x);
	const uint64_t doubt = place_guest(est, right->doubt_from);

	if (doubt > window && doubt < change) {
		add_beside(points, est, index, true, doubt);
		add_beside(points, est, index, true, doubt + 1);
	} else if (window + 1 < change) {
		add_beside(points, est, index, true, window + 1);
	}
	if (!isnan(right->ceiling)) {
		/* Where the estimate begins to stand still. */
		double x = place_x(est, change);

		for (int i = 0; i < 8; i++) {
			x += right->ceiling - x - bound_estimate_at(est, left, x);
		}

		const uint64_t still = place_guest(est, x);

		if (still > window && still < change) {
			add_beside(points, est, index, true, still);
		}
	}
	add_beside(points, est, index, true, change);
}

static void add_right_of_change(
	struct points *points, const struct estimate *est, size_t index, uint64_t change)
{
	const struct stretch *right = &est->stretches[index];
	const uint64_t window = place_guest(est, est->windows[right->first].x);
	const uint64_t doubt = place_guest(est, right->doubt_to);

	if (change < window) {
		add_beside(points, est, index, false, change);
	}
	if (doubt > change + 1 && doubt < window) {
		add_beside(points, est, index, false, doubt - 1);
		add_beside(points, est, index, false, doubt);
	} else if (change + 1 < window && doubt >= window) {
		add_beside(points, est, index, false, window - 1);
	}
}

/* Of the time between two windows a rate within the limits can make this much; half of it on either side. */
static double bulge(const struct estimate *est, const struct stretch *stretch, size_t i, size_t j)
{
	const double run = est->windows[j].x - est->windows[i].x;
	const size_t sure_end = stretch->sure_first + stretch->sure_count;
	double most = est->rho * run / 2;

	/* With a break somewhere between, both rates may occur. */
	if (i < stretch->sure_first || j >= sure_end) {
		double slow = stretch->rate_low;
		double fast = stretch->rate_high;

		if (stretch > est->stretches && i < stretch->sure_first) {
			slow = fmin(slow, stretch[-1].rate_low);
			fast = fmax(fast, stretch[-1].rate_high);
		}
		if (stretch + 1 < est->stretches + est->stretch_count && j >= sure_end) {
			slow = fmin(slow, stretch[1].rate_low);
			fast = fmax(fast, stretch[1].rate_high);
		}
		most += (fast - slow) * run / 4;
	}
	return most;
}

/* Right beside the last window that is sure of its side the break may be already: what either side says holds. */
static void add_unsure(struct points *points, const struct estimate *est,
	const struct stretch *stretch, const struct stretch *other, uint64_t guest, double more)
{
	const double x = place_x(est, guest);
	double low;
	double high;
	double other_low;
	double other_high;

	bound_at(est, stretch, x, &low, &high);
	bound_at(est, other, x, &other_low, &other_high);
	points_add(points, est, guest, bound_estimate_at(est, stretch, x),
		fmin(low, other_low) - more, fmax(high, other_high) + more);
}

static void add_windows(
	struct points *points, const struct estimate *est, const struct stretch *stretch)
{
	const size_t end = stretch->first + stretch->count;
	const size_t sure_end = stretch->sure_first + stretch->sure_count;

	for (size_t i = stretch->first; i < end; i++) {
		const struct window *window = &est->windows[i];
		double more = 0;

		if (i > stretch->first) {
			more = bulge(est, stretch, i - 1, i);
		}
		if (i + 1 < end) {
			more = fmax(more, bulge(est, stretch, i, i + 1));
		}

		const uint64_t guest = place_guest(est, window->x);

		if (i > stretch->first && i == stretch->sure_first) {
			add_unsure(points, est, stretch, stretch - 1, guest - 1, more);
		}
		points_add(points, est, guest, window->y, window->low - more, window->high + more);
		if (i + 1 < end && i + 1 == sure_end) {
			add_unsure(points, est, stretch, stretch + 1, guest + 1, more);
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

/* A lone burst says nothing of the rate: its bound opens to both sides. */
static void add_reach(struct points *points, const struct estimate *est,
	const struct stretch *stretch, double sign)
{
	const size_t end = sign < 0 ? stretch->first : stretch->first + stretch->count - 1;
	const double x = est->windows[end].x + sign * LONE_REACH_S * 1e9;
	const uint64_t guest = place_guest(est, x);
	double low;
	double high;

	if (guest == 0 || guest == TDM_READING_MAX) {
		return;
	}
	bound_at(est, stretch, x, &low, &high);
	points_add(points, est, guest, bound_estimate_at(est, stretch, x), low, high);
}

/* Not thinned is live: nothing is said of readings beyond the last burst, they are still to come. */
enum tdm_status knots_emit(
	const struct estimate *est, bool thin, struct tdm_timeline *timeline, struct tdm_error *err)
{
	struct points points = { 0 };
	enum tdm_status status = TDM_OK;
	uint64_t change = 0;

	for (size_t s = 0; status == TDM_OK && s < est->stretch_count; s++) {
		const struct stretch *stretch = &est->stretches[s];
		const bool opens = s == 0 || stretch->is_overlap;
		const bool closes = s + 1 == est->stretch_count || stretch[1].is_overlap;

		points.count = 0;
		if (thin && opens && is_short(est, stretch)) {
			add_reach(&points, est, stretch, -1);
		}
		if (!opens) {
			add_right_of_change(&points, est, s, change);
		}
		add_windows(&points, est, stretch);
		if (!closes) {
			change = place_guest(est, stretch[1].change);
			add_left_of_change(&points, est, s + 1, change);
		} else if (thin && is_short(est, stretch)) {
			add_reach(&points, est, stretch, 1);
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
	for (size_t s = 1; status == TDM_OK && s < est->stretch_count; s++) {
		const struct stretch *stretch = &est->stretches[s];

		if (!stretch->is_overlap) {
			status = tdm_timeline_add_doubt(timeline,
				place_guest(est, stretch->told_from),
				place_guest(est, stretch->told_to), err);
		}
	}
	free(points.at);
	return status;
}
