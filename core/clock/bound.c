/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* More than that is not carried together, however dense the exchanges are. */
#define BURST_SPAN_NS 200e6

/* One statement of one sample. */
struct statement {
	double x, y;
	bool upper;
};

static int compare_statements(const void *a, const void *b)
{
	const struct statement *left = a;
	const struct statement *right = b;
	const int order = compare_doubles(&left->x, &right->x);

	return order ? order : compare_doubles(&left->y, &right->y);
}

static size_t gather(const struct estimate *est, size_t first, size_t count_windows,
	struct statement *statements)
{
	size_t count = 0;
	bool sorted = true;

	for (size_t i = first; i < first + count_windows; i++) {
		const struct window *window = &est->windows[i];

		for (size_t j = 0; j < window->count; j++) {
			const struct sample *sample = &est->samples[window->first + j];

			if (!sample->believed) {
				continue;
			}
			statements[count++] =
				(struct statement){ .x = sample->x_lower, .y = sample->lower };
			statements[count++] = (struct statement){
				.x = sample->x_upper, .y = sample->upper, .upper = true
			};
			sorted =
				sorted && (count < 3 || statements[count - 3].x <= sample->x_lower);
		}
	}
	if (!sorted) {
		qsort(statements, count, sizeof(*statements), compare_statements);
	}
	return count;
}

/* A range of y that holds at x. */
struct range {
	double x, low, high;
};

/* Carries a range to another x: no rate is below slow or above fast. */
static void carry(struct range *range, double x, double slow, double fast)
{
	const double by = x - range->x;

	range->low += (by > 0 ? slow : fast) * by;
	range->high += (by > 0 ? fast : slow) * by;
	range->x = x;
}

static void narrow(struct range *range, const struct statement *statement)
{
	if (statement->upper) {
		range->high = fmin(range->high, statement->y);
	} else {
		range->low = fmax(range->low, statement->y);
	}
}

/* Carries all statements of a burst to each of its windows, from the left and from the right. */
static void bound_burst(struct estimate *est, const struct stretch *stretch, size_t first,
	size_t window_count, const struct statement *statements, size_t count)
{
	struct range range = { statements[0].x, -INFINITY, INFINITY };
	size_t next = 0;

	for (size_t i = first; i < first + window_count; i++) {
		struct window *window = &est->windows[i];

		for (; next < count && statements[next].x <= window->x; next++) {
			carry(&range, statements[next].x, stretch->rate_low, stretch->rate_high);
			narrow(&range, &statements[next]);
		}
		carry(&range, window->x, stretch->rate_low, stretch->rate_high);
		window->own_low = range.low;
		window->own_high = range.high;
	}
	range = (struct range){ statements[count - 1].x, -INFINITY, INFINITY };
	next = count;
	for (size_t i = first + window_count; i > first; i--) {
		struct window *window = &est->windows[i - 1];

		for (; next > 0 && statements[next - 1].x >= window->x; next--) {
			carry(&range, statements[next - 1].x, stretch->rate_low,
				stretch->rate_high);
			narrow(&range, &statements[next - 1]);
		}
		carry(&range, window->x, stretch->rate_low, stretch->rate_high);
		window->own_low = fmax(window->own_low, range.low);
		window->own_high = fmin(window->own_high, range.high);

		/* Narrower than can be: something jumped or lied inside it. Rather wide than wrong. */
		const double lack = est->usual_width / 2 - (window->own_high - window->own_low);

		if (lack > 0) {
			const double low = fmin(window->own_low, window->own_high);
			const double high = fmax(window->own_low, window->own_high);

			window->own_low = fmin(low, window->lower) - lack;
			window->own_high = fmax(high, window->upper) + lack;
		}
		window->low = window->own_low;
		window->high = window->own_high;
	}
}

bool bound_bursts(struct estimate *est)
{
	struct statement *statements = malloc((2 * est->sample_count + 1) * sizeof(*statements));

	if (!statements) {
		return false;
	}
	for (size_t s = 0; s < est->stretch_count; s++) {
		const struct stretch *stretch = &est->stretches[s];
		const size_t end =
			s + 1 < est->stretch_count ? stretch[1].first : est->window_count;

		for (size_t first = stretch->first, next; first < end; first = next) {
			next = first + 1;
			while (next < end &&
				est->windows[next].x - est->windows[next - 1].x < BURST_REACH_NS &&
				est->windows[next].x - est->windows[first].x < BURST_SPAN_NS) {
				next++;
			}

			const size_t count = gather(est, first, next - first, statements);

			bound_burst(est, stretch, first, next - first, statements, count);
		}
	}
	free(statements);
	return true;
}

/* Slopes of y that a clock may have had. */
struct slopes {
	double low, high;
	bool known;
};

/* Limits of the slope by the averages from a window to those farther and farther away. */
static void limit_slopes(const struct estimate *est, const struct window *window, ptrdiff_t step,
	size_t room, double run, struct slopes *slopes)
{
	for (size_t count = 1; count <= room; count *= 2, step *= 2) {
		const struct window *far = window + step;
		const double by = window->x - far->x;

		if (fabs(by) < run / 2 || by == 0) {
			continue;
		}

		const double one = (window->own_low - far->own_high) / by;
		const double other = (window->own_high - far->own_low) / by;
		const double low = fmax(slopes->low, fmin(one, other) - 2 * est->rho);
		const double high = fmin(slopes->high, fmax(one, other) + 2 * est->rho);

		slopes->low = fmin(low, high);
		slopes->high = fmax(low, high);
		slopes->known = true;
	}
}

/*
 * Slopes on the side of a window that turns away from a pause of length run: of the windows of its stretch, or of the
 * stretch behind them. It is the estimate's slope, which rests on the bursts of both sides; in a session that goes on
 * what comes behind is not known, and every slope is taken that the bursts allow.
 */
static struct slopes slopes_away(const struct estimate *est, const struct stretch *stretch,
	size_t at, bool is_left, double run)
{
	const struct window *window = &est->windows[at];
	const ptrdiff_t step = is_left ? -1 : 1;
	const size_t room =
		is_left ? at - stretch->first : stretch->first + stretch->count - 1 - at;
	struct slopes slopes = { est->rate_center - RATE_CAP, est->rate_center + RATE_CAP, false };
	const struct window *far = window;
	size_t count = 0;

	if (est->is_live) {
		limit_slopes(est, window, step, room, run, &slopes);
	}
	while (!slopes.known && count < room && fabs(window->x - far->x) < run / 2) {
		far += step;
		count++;
	}
	if (!slopes.known && count && fabs(window->x - far->x) >= run / 2) {
		slopes.low = slopes.high = (window->y - far->y) / (window->x - far->x);
		slopes.known = true;
	}
	if (slopes.known) {
		return slopes;
	}
	if (is_left && stretch > est->stretches && !stretch->is_overlap) {
		slopes = (struct slopes){ stretch[-1].slope_last, stretch[-1].slope_last, true };
	} else if (!is_left && stretch + 1 < est->stretches + est->stretch_count &&
		   !stretch[1].is_overlap) {
		slopes = (struct slopes){ stretch[1].slope_first, stretch[1].slope_first, true };
	}
	return slopes;
}

/* What was so at one window, had it gone on to the other at one of these slopes. */
static void cover(const struct window *from, struct window *to, const struct slopes *slopes)
{
	const double by = to->x - from->x;

	to->low = fmin(to->low, from->own_low + fmin(slopes->low * by, slopes->high * by));
	to->high = fmax(to->high, from->own_high + fmax(slopes->low * by, slopes->high * by));
}

void bound_beside(struct estimate *est)
{
	for (size_t s = 0; s < est->stretch_count; s++) {
		const struct stretch *stretch = &est->stretches[s];

		for (size_t i = stretch->first; i < stretch->first + stretch->count; i++) {
			est->windows[i].low = est->windows[i].own_low;
			est->windows[i].high = est->windows[i].own_high;
		}
		for (size_t i = stretch->first; i + 1 < stretch->first + stretch->count; i++) {
			struct window *a = &est->windows[i];
			struct window *b = a + 1;
			const double run = b->x - a->x;
			const double chord = run > 0 ? (b->y - a->y) / run : 0;
			const struct slopes line = { chord, chord, true };
			const struct slopes before = slopes_away(est, stretch, i, true, run);
			const struct slopes behind = slopes_away(est, stretch, i + 1, false, run);

			cover(a, b, before.known ? &before : behind.known ? &behind : &line);
			cover(b, a, behind.known ? &behind : before.known ? &before : &line);
		}
	}
}

void bound_at(const struct estimate *est, const struct stretch *stretch, double x, double *low,
	double *high)
{
	const struct window *first = &est->windows[stretch->first];
	const struct window *last = first + stretch->count - 1;

	if (x >= last->x || x <= first->x) {
		const struct window *end = x >= last->x ? last : first;
		struct range range = { end->x, end->own_low, end->own_high };

		carry(&range, x, stretch->rate_low, stretch->rate_high);
		*low = range.low;
		*high = range.high;
		return;
	}

	const struct window *a = first;

	while (a[1].x < x) {
		a++;
	}

	const double part = (x - a->x) / (a[1].x - a->x);
	const double bulge = est->rho * (a[1].x - a->x) / 2;

	*low = a->low + (a[1].low - a->low) * part - bulge;
	*high = a->high + (a[1].high - a->high) * part + bulge;
}

double bound_estimate_at(const struct estimate *est, const struct stretch *stretch, double x)
{
	const struct window *first = &est->windows[stretch->first];
	const struct window *last = first + stretch->count - 1;

	if (x >= last->x) {
		return last->y + stretch->slope_last * (x - last->x);
	}
	if (x <= first->x) {
		return first->y + stretch->slope_first * (x - first->x);
	}

	const struct window *a = first;

	while (a[1].x < x) {
		a++;
	}
	return a->y + (a[1].y - a->y) * (x - a->x) / (a[1].x - a->x);
}

/* Does a stretch contradict a statement? */
static bool is_against(const struct estimate *est, const struct stretch *stretch, double x,
	double lower, double upper)
{
	double low;
	double high;

	bound_at(est, stretch, x, &low, &high);
	return lower > high || upper < low;
}

/*
 * Of a window's statements that the stretch across the break contradicts, the one nearest to the break: it lies on this
 * side of it. False where there is none.
 */
static bool find_against(const struct estimate *est, const struct window *window,
	const struct stretch *across, bool is_left, double *x)
{
	bool found = false;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];
		const double at[2] = { sample->x_lower, sample->x_upper };

		for (int side = 0; sample->believed && side < 2; side++) {
			if (!is_against(est, across, at[side], side ? -INFINITY : sample->lower,
				    side ? sample->upper : INFINITY)) {
				continue;
			}
			if (!found || (is_left ? at[side] > *x : at[side] < *x)) {
				*x = at[side];
			}
			found = true;
		}
	}
	return found;
}

void bound_breaks(struct estimate *est)
{
	for (size_t s = 1; s < est->stretch_count; s++) {
		const struct stretch *left = &est->stretches[s - 1];
		struct stretch *right = &est->stretches[s];
		const double before = est->windows[left->first + left->count - 1].x;
		const double behind = est->windows[right->first].x;

		right->is_overlap = behind <= before;
		if (right->is_overlap) {
			continue;
		}
		right->doubt_from = before;
		right->doubt_to = behind;
		for (size_t i = left->first + left->count; i > left->first; i--) {
			double x = before;

			if (find_against(est, &est->windows[i - 1], right, true, &x)) {
				right->doubt_from = fmax(right->doubt_from, x);
				break;
			}
		}
		for (size_t i = right->first; i < right->first + right->count; i++) {
			double x = behind;

			if (find_against(est, &est->windows[i], left, false, &x)) {
				right->doubt_to = fmin(right->doubt_to, x);
				break;
			}
		}
		if (right->doubt_to < right->doubt_from) {
			right->doubt_from = before;
			right->doubt_to = behind;
		}
	}
}
