/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

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

static size_t gather(
	const struct estimate *est, const struct stretch *stretch, struct statement *statements)
{
	size_t count = 0;
	bool sorted = true;

	for (size_t i = 0; i < stretch->sure_count; i++) {
		const struct window *window = &est->windows[stretch->sure_first + i];

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

/* Carries all statements to the right: a rate is never above or below the stretch's limits. */
static void carry_right(struct estimate *est, const struct stretch *stretch,
	const struct statement *statements, size_t count)
{
	double low = -INFINITY;
	double high = INFINITY;
	double x = statements[0].x;
	size_t next = 0;

	for (size_t i = 0; i < stretch->count; i++) {
		struct window *window = &est->windows[stretch->first + i];

		for (; next < count && statements[next].x <= window->x; next++) {
			const struct statement *statement = &statements[next];

			low += stretch->rate_low * (statement->x - x);
			high += stretch->rate_high * (statement->x - x);
			x = statement->x;
			if (statement->upper) {
				high = fmin(high, statement->y);
			} else {
				low = fmax(low, statement->y);
			}
		}
		window->low = low + stretch->rate_low * (window->x - x);
		window->high = high + stretch->rate_high * (window->x - x);
	}
}

static void carry_left(struct estimate *est, const struct stretch *stretch,
	const struct statement *statements, size_t count)
{
	double low = -INFINITY;
	double high = INFINITY;
	double x = statements[count - 1].x;
	size_t next = count;

	for (size_t i = stretch->count; i > 0; i--) {
		struct window *window = &est->windows[stretch->first + i - 1];

		for (; next > 0 && statements[next - 1].x >= window->x; next--) {
			const struct statement *statement = &statements[next - 1];

			low -= stretch->rate_high * (x - statement->x);
			high -= stretch->rate_low * (x - statement->x);
			x = statement->x;
			if (statement->upper) {
				high = fmin(high, statement->y);
			} else {
				low = fmax(low, statement->y);
			}
		}
		window->low = fmax(window->low, low - stretch->rate_high * (x - window->x));
		window->high = fmin(window->high, high - stretch->rate_low * (x - window->x));
	}
}

bool bound_stretch(struct estimate *est, struct stretch *stretch)
{
	size_t room = 0;

	for (size_t i = 0; i < stretch->sure_count; i++) {
		room += est->windows[stretch->sure_first + i].count;
	}

	struct statement *statements = malloc((2 * room + 1) * sizeof(*statements));

	if (!statements) {
		return false;
	}

	const size_t count = gather(est, stretch, statements);

	segment_rates(est, stretch);
	carry_right(est, stretch, statements, count);
	carry_left(est, stretch, statements, count);
	free(statements);
	for (size_t i = 0; i < stretch->count; i++) {
		struct window *window = &est->windows[stretch->first + i];

		/* The assumption is broken unseen: rather wide than wrong, its own statements both ways. */
		if (window->low > window->high) {
			const double low = window->low;
			const double width = window->upper - window->lower;

			window->low = fmin(window->high, window->lower) - width / 2;
			window->high = fmax(low, window->upper) + width / 2;
		}
	}
	return true;
}

void bound_at(const struct estimate *est, const struct stretch *stretch, double x, double *low,
	double *high)
{
	const struct window *first = &est->windows[stretch->sure_first];
	const struct window *last = first + stretch->sure_count - 1;

	if (x >= last->x) {
		*low = last->low + stretch->rate_low * (x - last->x);
		*high = last->high + stretch->rate_high * (x - last->x);
	} else if (x <= first->x) {
		*low = first->low - stretch->rate_high * (first->x - x);
		*high = first->high - stretch->rate_low * (first->x - x);
	} else {
		const struct window *a = first;

		while (a[1].x < x) {
			a++;
		}

		const double part = (x - a->x) / (a[1].x - a->x);
		const double bulge = est->rho * (a[1].x - a->x) / 2;

		*low = a->low + (a[1].low - a->low) * part - bulge;
		*high = a->high + (a[1].high - a->high) * part + bulge;
	}
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

/* Where the last statement is that the stretch behind the break contradicts: the break comes later. */
static double last_against(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, double none)
{
	double x = none;

	for (size_t i = left->count; i > 0; i--) {
		const struct window *window = &est->windows[left->first + i - 1];
		bool found = false;

		for (size_t j = 0; j < window->count; j++) {
			const struct sample *sample = &est->samples[window->first + j];
			double low;
			double high;

			if (!sample->believed) {
				continue;
			}
			bound_at(est, right, sample->x_lower, &low, &high);
			if (sample->lower > high) {
				x = fmax(x, sample->x_lower);
				found = true;
			}
			bound_at(est, right, sample->x_upper, &low, &high);
			if (sample->upper < low) {
				x = fmax(x, sample->x_upper);
				found = true;
			}
		}
		if (found) {
			break;
		}
	}
	return x;
}

/* Where the first statement is that the stretch before the break contradicts: the break came earlier. */
static double first_against(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, double none)
{
	double x = none;

	for (size_t i = 0; i < right->count; i++) {
		const struct window *window = &est->windows[right->first + i];
		bool found = false;

		for (size_t j = 0; j < window->count; j++) {
			const struct sample *sample = &est->samples[window->first + j];
			double low;
			double high;

			if (!sample->believed) {
				continue;
			}
			bound_at(est, left, sample->x_lower, &low, &high);
			if (sample->lower > high) {
				x = fmin(x, sample->x_lower);
				found = true;
			}
			bound_at(est, left, sample->x_upper, &low, &high);
			if (sample->upper < low) {
				x = fmin(x, sample->x_upper);
				found = true;
			}
		}
		if (found) {
			break;
		}
	}
	return x;
}

/* A window where the break may be before or behind it: what either side says, and what it says itself. */
static void widen(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, struct window *window)
{
	double low[2];
	double high[2];
	double own_low = -INFINITY;
	double own_high = INFINITY;
	/* Inside the window the rate is one of the two. */
	const double slow = fmin(left->rate_low, right->rate_low);
	const double fast = fmax(left->rate_high, right->rate_high);

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed) {
			const double to_lower = window->x - sample->x_lower;
			const double to_upper = window->x - sample->x_upper;

			own_low = fmax(
				own_low, sample->lower + fmin(slow * to_lower, fast * to_lower));
			own_high = fmin(
				own_high, sample->upper + fmax(slow * to_upper, fast * to_upper));
		}
	}
	bound_at(est, left, window->x, &low[0], &high[0]);
	bound_at(est, right, window->x, &low[1], &high[1]);
	window->low = fmax(own_low, fmin(low[0], low[1]));
	window->high = fmin(own_high, fmax(high[0], high[1]));
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
		right->doubt_from = last_against(
			est, left, right, est->windows[left->sure_first + left->sure_count - 1].x);
		right->doubt_to = first_against(est, left, right, behind);
		if (right->doubt_to < right->doubt_from) {
			right->doubt_from = before;
			right->doubt_to = behind;
		}
	}
}

void bound_widen(struct estimate *est)
{
	for (size_t s = 1; s < est->stretch_count; s++) {
		const struct stretch *left = &est->stretches[s - 1];
		const struct stretch *right = &est->stretches[s];

		if (right->is_overlap) {
			continue;
		}
		for (size_t i = left->sure_first + left->sure_count; i < right->sure_first; i++) {
			widen(est, left, right, &est->windows[i]);
		}
	}
}
