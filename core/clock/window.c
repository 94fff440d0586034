/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

enum {
	GUARD_DIVISOR = 4, /* never is more than this part of a window disbelieved for its speed */
	FEW = 4,           /* in smaller windows the spread says nothing */
	WAIT_DIVISOR = 8,  /* waiting that shows is off by this part of it */
	STALLED = 50,      /* times the usual round trip: not slow, but stopped */
};

/* The value that most of a window's samples allow; those that do not are out. */
static size_t vote(struct estimate *est, struct window *window)
{
	struct {
		double value;
		int step;
	} ends[2 * WINDOW_SAMPLES];

	double starts[WINDOW_SAMPLES];
	double stops[WINDOW_SAMPLES];
	const double middle = est->samples[window->first + window->count / 2].x_lower;
	size_t agree = 0;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		starts[i] = sample->lower - est->slope * (sample->x_lower - middle);
		stops[i] = sample->upper - est->slope * (sample->x_upper - middle);
		ends[2 * i].value = starts[i];
		ends[2 * i].step = 1;
		ends[2 * i + 1].value = stops[i];
		ends[2 * i + 1].step = -1;
	}
	/* Few and nearly sorted pairs: insertion beats a call of qsort(). Starts come before stops of the same value. */
	for (size_t i = 1; i < 2 * window->count; i++) {
		const double value = ends[i].value;
		const int step = ends[i].step;
		size_t at = i;

		while (at && (ends[at - 1].value > value ||
				     (ends[at - 1].value == value && ends[at - 1].step < step))) {
			ends[at] = ends[at - 1];
			at--;
		}
		ends[at].value = value;
		ends[at].step = step;
	}

	int depth = 0;
	int deepest = 0;
	double value = 0;

	for (size_t i = 0; i + 1 < 2 * window->count; i++) {
		depth += ends[i].step;
		if (depth > deepest) {
			deepest = depth;
			value = (ends[i].value + ends[i + 1].value) / 2;
		}
	}
	for (size_t i = 0; i < window->count; i++) {
		struct sample *sample = &est->samples[window->first + i];

		sample->believed = starts[i] <= value && value <= stops[i];
		agree += sample->believed;
	}
	return agree;
}

/* Times of one direction, or statements, of a window's believed samples; sorted. */
static size_t sorted_values(const struct estimate *est, const struct window *window, bool upper,
	bool for_bound, double *values)
{
	size_t count = 0;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (!sample->believed || (sample->bound_only && !for_bound)) {
			continue;
		}

		const double value =
			upper ? sample->upper - est->slope * (sample->x_upper - window->x)
			      : -(sample->lower - est->slope * (sample->x_lower - window->x));
		size_t at = count++;

		while (at && values[at - 1] > value) {
			values[at] = values[at - 1];
			at--;
		}
		values[at] = value;
	}
	return count;
}

/* Takes out samples that travelled much faster than the window's usual fast ones. */
static void drop_impossible(struct estimate *est, struct window *window)
{
	double below[WINDOW_SAMPLES];
	double above[WINDOW_SAMPLES];
	const size_t count = sorted_values(est, window, false, true, below);

	sorted_values(est, window, true, true, above);
	if (count < 2 * FEW) {
		return;
	}

	const size_t tenth = (count - 1) / 10 ? (count - 1) / 10 : 1;
	const double middle = (above[tenth] - below[tenth]) / 2;
	const double half = (above[tenth] + below[tenth]) / 2;
	size_t out = 0;

	for (size_t i = 0; i < count; i++) {
		out += below[i] + middle < half / 2;
		out += above[i] - middle < half / 2;
	}
	if (!out || out > count / GUARD_DIVISOR) {
		return;
	}
	for (size_t i = 0; i < window->count; i++) {
		struct sample *sample = &est->samples[window->first + i];
		const double up = sample->upper - est->slope * (sample->x_upper - window->x);
		const double down = sample->lower - est->slope * (sample->x_lower - window->x);

		if (sample->believed && (up - middle < half / 2 || middle - down < half / 2)) {
			sample->believed = false;
			est->quality.unbelievable++;
		}
	}
}

static void find_tightest(const struct estimate *est, struct window *window)
{
	double best_lower = -INFINITY;
	double best_upper = INFINITY;

	window->believed = 0;
	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (!sample->believed) {
			continue;
		}
		window->believed++;

		const double lower = sample->lower - est->slope * (sample->x_lower - window->x);
		const double upper = sample->upper - est->slope * (sample->x_upper - window->x);

		if (lower > best_lower) {
			best_lower = lower;
			window->lower = sample->lower;
			window->x_lower = sample->x_lower;
		}
		if (upper < best_upper) {
			best_upper = upper;
			window->upper = sample->upper;
			window->x_upper = sample->x_upper;
		}
	}
}

static void find_middle(const struct estimate *est, struct window *window)
{
	double first = INFINITY;
	double last = -INFINITY;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed) {
			first = sample->x_lower < first ? sample->x_lower : first;
			last = sample->x_upper > last ? sample->x_upper : last;
		}
	}
	window->x = (first + last) / 2;
}

static void measure(const struct estimate *est, struct window *window)
{
	double below[WINDOW_SAMPLES];
	double above[WINDOW_SAMPLES];

	find_middle(est, window);
	find_tightest(est, window);

	const size_t count = sorted_values(est, window, false, false, below);

	sorted_values(est, window, true, false, above);
	window->has_z = count > 0;
	window->variance = INFINITY;
	if (!count) {
		return;
	}

	const size_t tenth = (count - 1) / 10;
	const double width = above[0] + below[0];
	double sigma;

	window->z = (above[tenth] - below[tenth]) / 2;
	if (count >= FEW) {
		const size_t near = tenth ? tenth : 1;

		sigma = (above[near] - above[0] + below[near] - below[0]) / 2;
	} else {
		/* What it waited above the session's best may all be on one side. */
		const double excess = width - est->round_trip_low;

		sigma = (est->round_trip_middle - est->round_trip_low) / 2 +
			(excess > 0 ? excess / 2 : 0);
	}
	window->variance = sigma * sigma + (width / 200) * (width / 200) + 8.0 * 8.0;
}

/*
 * Whoever stood still while it was under way (a pause, a migration) may stand on either side of a jump: what it says of
 * one side may have been seen on the other. Where most of a window were slow it was no pause but load.
 */
static void drop_stalled(struct estimate *est, const struct window *window)
{
	double trips[WINDOW_SAMPLES];
	size_t count = 0;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed) {
			trips[count++] = sample->upper - sample->lower;
		}
	}
	/* One alone is held against the session. */
	const double own = count > 1 ? order_nth(trips, count, count / 2) : 0;
	const double most = STALLED * fmax(est->round_trip_middle, own);

	for (size_t i = 0; i < window->count; i++) {
		struct sample *sample = &est->samples[window->first + i];

		if (sample->believed && sample->upper - sample->lower > most) {
			sample->believed = false;
			est->quality.stray++;
		}
	}
}

/* Session-wide figures that single windows are held against. */
static bool find_usual(struct estimate *est)
{
	double *values = malloc((est->sample_count + est->window_count + 1) * sizeof(*values));
	size_t count = 0;

	if (!values) {
		return false;
	}
	for (size_t i = 0; i < est->sample_count; i++) {
		if (est->samples[i].believed) {
			values[count++] = est->samples[i].upper - est->samples[i].lower;
		}
	}
	if (count) {
		est->round_trip_middle = order_nth(values, count, count / 2);
		est->round_trip_low = order_nth(values, count / 2 + 1, count / 10);
	}
	for (size_t i = 0; i < est->window_count; i++) {
		drop_stalled(est, &est->windows[i]);
	}
	free(values);
	return true;
}

static bool find_shrink(struct estimate *est)
{
	double *widths = malloc((est->window_count + 1) * sizeof(*widths));

	if (!widths) {
		return false;
	}
	for (size_t i = 0; i < est->window_count; i++) {
		const struct window *window = &est->windows[i];

		widths[i] = window->upper - window->lower -
			    est->slope * (window->x_upper - window->x_lower);
	}
	for (size_t i = 0; i < est->window_count; i++) {
		est->windows[i].shrink = widths[i];
	}
	est->usual_width = order_nth(widths, est->window_count, est->window_count / 10);
	for (size_t i = 0; i < est->window_count; i++) {
		struct window *window = &est->windows[i];
		const double width =
			window->shrink < est->usual_width ? window->shrink : est->usual_width;

		/*
		 * Where even the fastest exchanges waited, all of them may have waited on the same side, and alike: then they
		 * agree with each other and are wrong together.
		 */
		const double waited = window->shrink - est->usual_width;

		if (waited > 0) {
			window->variance += waited * waited / (WAIT_DIVISOR * WAIT_DIVISOR);
		}
		window->shrink = width > 0 ? width / 4 : 0;
	}
	free(widths);
	return true;
}

bool window_measure(struct estimate *est)
{
	size_t kept = 0;

	if (!find_usual(est)) {
		return false;
	}
	for (size_t i = 0; i < est->window_count; i++) {
		struct window window = est->windows[i];

		measure(est, &window);
		if (window.believed) {
			est->windows[kept++] = window;
		}
	}
	est->window_count = kept;
	return find_shrink(est);
}

bool window_vote(struct estimate *est)
{
	size_t kept = 0;

	for (size_t i = 0; i < est->window_count; i++) {
		struct window window = est->windows[i];
		const size_t agree = vote(est, &window);

		/* Fewer than half: nobody to believe. */
		if (agree * 2 < window.count) {
			for (size_t j = 0; j < window.count; j++) {
				est->samples[window.first + j].believed = false;
			}
			est->quality.outvoted += window.count;
			continue;
		}
		est->quality.outvoted += window.count - agree;
		find_middle(est, &window);
		drop_impossible(est, &window);
		est->windows[kept++] = window;
	}
	est->window_count = kept;
	return kept > 0;
}
