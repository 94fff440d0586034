/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

#define THIN_NS      20.0 /* what a knot that is left out may be off the line */
#define THIN_PART    20   /* ... nor more than this part of the bound */
#define LONE_REACH_S 10.0 /* how far from a lone burst the bound is said */

struct point {
	uint64_t guest;
	double x, y;
	double minus, plus; /* ns */
};

struct points {
	struct point *at;
	size_t count, room;
	bool failed;
};

static void add(struct points *points, const struct estimate *est, uint64_t guest, double y,
	double low, double high)
{
	if (points->failed || (points->count && guest <= points->at[points->count - 1].guest)) {
		return;
	}
	if (points->count == points->room) {
		const size_t room = points->room ? points->room * 2 : 64;
		struct point *bigger = realloc(points->at, room * sizeof(*bigger));

		if (!bigger) {
			points->failed = true;
			return;
		}
		points->at = bigger;
		points->room = room;
	}
	points->at[points->count++] = (struct point){ .guest = guest,
		.x = place_x(est, guest),
		.y = y,
		.minus = fmax(y - low, 0),
		.plus = fmax(high - y, 0) };
}

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
	add(points, est, guest, y, low, high);
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
	add(points, est, guest, bound_estimate_at(est, stretch, x), fmin(low, other_low) - more,
		fmax(high, other_high) + more);
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
		add(points, est, guest, window->y, window->low - more, window->high + more);
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
	add(points, est, guest, bound_estimate_at(est, stretch, x), low, high);
}

/* May the points between a and b go, and by how much must the bounds at a and b grow for it? */
static bool may_skip(const struct point *a, const struct point *b, double *raise)
{
	double needed = 0;

	for (const struct point *p = a + 1; p < b; p++) {
		const double part = (p->x - a->x) / (b->x - a->x);
		const double y = a->y + (b->y - a->y) * part;
		const double minus = a->minus + (b->minus - a->minus) * part;
		const double plus = a->plus + (b->plus - a->plus) * part;
		const double bound = (p->minus + p->plus) / 2;
		const double most = fmin(THIN_NS, bound / THIN_PART);

		if (fabs(y - p->y) > most) {
			return false;
		}
		needed = fmax(
			needed, y - minus < p->y - p->minus ? 0 : y - minus - (p->y - p->minus));
		needed = fmax(needed, p->y + p->plus - (y + plus));
		/* Nor may a wide neighbour make it wide. */
		if (needed > bound / THIN_PART + 1 ||
			minus + plus > (p->minus + p->plus) * (1 + 1.0 / THIN_PART) + 2) {
			return false;
		}
	}
	*raise = needed;
	return true;
}

/* Leaves out points that the line through their neighbours tells as well. */
static void thin_out(struct points *points)
{
	struct point *at = points->at;
	size_t kept = 0;
	size_t i = 0;
	double raised = 0;

	while (i < points->count) {
		struct point here = at[i];
		size_t next = i + 1;
		double raise = 0;

		/* As far as it goes, by doubling and then bisection: monotone enough, and never wrong. */
		if (i + 1 < points->count) {
			size_t good = 1;
			size_t bad = points->count - i;

			for (size_t reach = 2; i + reach < points->count; reach *= 2) {
				if (!may_skip(&at[i], &at[i + reach], &raise)) {
					bad = reach;
					break;
				}
				good = reach;
			}
			if (bad == points->count - i && good < bad - 1 &&
				may_skip(&at[i], &at[i + bad - 1], &raise)) {
				good = bad - 1;
			}
			while (bad - good > 1) {
				const size_t middle = good + (bad - good) / 2;

				if (may_skip(&at[i], &at[i + middle], &raise)) {
					good = middle;
				} else {
					bad = middle;
				}
			}
			next = i + good;
			raise = 0;
			(void)may_skip(&at[i], &at[next], &raise);
		}

		const double more = fmax(raised, raise);

		here.minus += more;
		here.plus += more;
		at[kept++] = here;
		raised = raise;
		i = next;
	}
	points->count = kept;
}

static enum tdm_status put_segment(const struct estimate *est, const struct stretch *stretch,
	uint64_t from, const struct points *points, struct tdm_timeline *timeline,
	struct tdm_error *err)
{
	enum tdm_status status = tdm_timeline_add_segment(timeline, stretch->kind, from, err);
	tdm_i128 before = 0;

	for (size_t i = 0; status == TDM_OK && i < points->count; i++) {
		const struct point *point = &points->at[i];
		tdm_i128 host = place_host(est, point->guest, point->y);

		if (host < before) {
			host = before;
		}
		if (host > (tdm_i128)TDM_READING_MAX) {
			host = (tdm_i128)TDM_READING_MAX;
		}
		before = host;

		/* Rounded outwards, and one for the rounding of the reading itself. */
		const double limit = (double)(TDM_READING_MAX >> 1);
		const double minus = ceil(point->minus / est->host_unit_ns) + 1;
		const double plus = ceil(point->plus / est->host_unit_ns) + 1;
		const struct tdm_knot knot = { .guest = point->guest,
			.host = (uint64_t)host,
			.minus = (uint64_t)fmin(minus, limit),
			.plus = (uint64_t)fmin(plus, limit) };

		status = tdm_timeline_add_knot(timeline, &knot, err);
	}
	return status;
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
			thin_out(&points);
		}
		status = put_segment(est, stretch, from, &points, timeline, err);
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
