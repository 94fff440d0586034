/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The smoother works in ns and in ns/s (ppb): numbers of like size.
 */

enum {
	BLOCK_WINDOWS = 30,
	GUARD_DIVISOR = 4,
};

#define PRIOR_OFFSET_NS 1e9
#define PRIOR_RATE_PPB \
	30e3 /* oscillators are within some ten ppm of their name, and of themselves */

/* Random walk of the rate, per square root of a second. */
static const double wander_ppb[] = { 0.01, 0.1, 0.5, 2, 10, 50, 200, 1000, 5000 };

enum {
	WANDERS = sizeof(wander_ppb) / sizeof(wander_ppb[0])
};

static const double quantiles[] = { 0, .005, .01, .02, .05, .10, .20, .35, .50 };

enum {
	QUANTILES = sizeof(quantiles) / sizeof(quantiles[0]),
	LEAST_RUN = 3, /* one or two quantiles agree by chance */
};

struct state {
	double y, rate;
	double yy, yr, rr; /* covariance */
};

/* One step of the filter, forth: predicted and then updated state of each window. */
struct step {
	struct state before, after;
	double seconds; /* from the window before */
};

static struct state predicted(const struct state *from, double seconds, double wander)
{
	const double q = wander * wander;
	const double s = seconds;
	struct state to = { .y = from->y + from->rate * s, .rate = from->rate };

	to.yy = from->yy + 2 * s * from->yr + s * s * from->rr + q * s * s * s / 3;
	to.yr = from->yr + s * from->rr + q * s * s / 2;
	to.rr = from->rr + q * s;
	return to;
}

/* @return How well the measurement was foretold, with heavy tails: the higher the better. */
static double update(struct state *state, double z, double variance)
{
	if (!(variance < INFINITY)) {
		return 0;
	}

	const double spread = state->yy + variance;
	const double error = z - state->y;
	const double gain_y = state->yy / spread;
	const double gain_rate = state->yr / spread;

	state->y += gain_y * error;
	state->rate += gain_rate * error;
	state->rr -= gain_rate * state->yr;
	state->yr -= gain_y * state->yr;
	state->yy -= gain_y * state->yy;
	return -log(spread) / 2 - 2 * log(1 + error * error / (3 * spread));
}

static double filter(const struct estimate *est, const struct stretch *stretch, double wander,
	struct step *steps)
{
	const struct window *windows = est->windows + stretch->first;
	struct state state = { .y = windows[0].z,
		.rate = est->rate_guess * 1e9,
		.yy = PRIOR_OFFSET_NS * PRIOR_OFFSET_NS,
		.rr = PRIOR_RATE_PPB * PRIOR_RATE_PPB };
	double score = 0;

	for (size_t i = 0; i < stretch->count; i++) {
		const double seconds = i ? (windows[i].x - windows[i - 1].x) / 1e9 : 0;

		if (i) {
			state = predicted(&state, seconds, wander);
		}
		steps[i].before = state;
		steps[i].seconds = seconds;
		/* The first two say what the state is, not how it moves. */
		const double foretold = update(&state, windows[i].z, windows[i].variance);

		score += i > 1 ? foretold : 0;
		steps[i].after = state;
	}
	return score;
}

/* Back: what the windows behind each say of it. */
static void smooth_back(struct estimate *est, struct stretch *stretch, const struct step *steps)
{
	struct window *windows = est->windows + stretch->first;
	double y = steps[stretch->count - 1].after.y;
	double rate = steps[stretch->count - 1].after.rate;

	windows[stretch->count - 1].y = y;
	stretch->slope_last = rate / 1e9;
	for (size_t i = stretch->count - 1; i > 0; i--) {
		const struct state *here = &steps[i - 1].after;
		const struct state *next = &steps[i].before;
		const double s = steps[i].seconds;
		const double det = next->yy * next->rr - next->yr * next->yr;
		/* Covariance of this state with the next one's offset and rate. */
		const double y_y = here->yy + s * here->yr;
		const double y_r = here->yr;
		const double r_y = here->yr + s * here->rr;
		const double r_r = here->rr;
		const double off_y = y - next->y;
		const double off_r = rate - next->rate;

		if (det > 0) {
			const double by_y = (next->rr * off_y - next->yr * off_r) / det;
			const double by_r = (next->yy * off_r - next->yr * off_y) / det;

			y = here->y + y_y * by_y + y_r * by_r;
			rate = here->rate + r_y * by_y + r_r * by_r;
		} else {
			y = here->y;
			rate = here->rate;
		}
		windows[i - 1].y = y;
	}
	stretch->slope_first = rate / 1e9;
}

static void smooth(struct estimate *est, struct stretch *stretch, struct step *steps)
{
	const double limit = est->rho * 1e9 / 2;
	double best_score = -INFINITY;
	double best = wander_ppb[0];

	for (size_t i = 0; i < WANDERS && stretch->count >= 4; i++) {
		if (i && wander_ppb[i] > limit) {
			break;
		}

		const double score = filter(est, stretch, wander_ppb[i], steps);

		if (score > best_score) {
			best_score = score;
			best = wander_ppb[i];
		}
	}
	filter(est, stretch, best, steps);
	smooth_back(est, stretch, steps);
}

/* The estimate at any x between and around a stretch's windows; at is the window on its left, kept up to date. */
static double line_at(
	const struct estimate *est, const struct stretch *stretch, double x, size_t *at)
{
	const struct window *windows = est->windows + stretch->first;

	if (stretch->count == 1) {
		return windows[0].y + stretch->slope_first * (x - windows[0].x);
	}
	while (*at + 2 < stretch->count && windows[*at + 1].x <= x) {
		(*at)++;
	}
	while (*at > 0 && windows[*at].x > x) {
		(*at)--;
	}

	const struct window *a = &windows[*at];

	return a->y + (a[1].y - a->y) * (x - a->x) / (a[1].x - a->x);
}

/* One-way times of a window's samples against the estimate. */
struct times {
	double *forward, *backward;
	size_t count;
};

static void add_times(const struct estimate *est, const struct stretch *stretch, size_t index,
	struct times *times)
{
	const struct window *window = &est->windows[stretch->first + index];
	size_t at = index;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed && !sample->bound_only) {
			times->forward[times->count] =
				line_at(est, stretch, sample->x_lower, &at) - sample->lower;
			times->backward[times->count] =
				sample->upper - line_at(est, stretch, sample->x_upper, &at);
			times->count++;
		}
	}
}

/*
 * By how much the estimate is too high in a range of windows. The fastest samples mislead where a CPU wakes in two ways
 * and the median where the load is on one side: the run of neighbouring quantiles that agree best is taken.
 */
static double plateau(const struct times *times)
{
	double differences[QUANTILES];
	double best = INFINITY;
	double value = 0;

	/* From the greatest down: each leaves the lesser ones before it. */
	size_t count = times->count;

	for (size_t i = QUANTILES; i > 0; i--) {
		const size_t at = (size_t)(quantiles[i - 1] * (double)(times->count - 1));

		differences[i - 1] = (order_nth(times->forward, count, at) -
					     order_nth(times->backward, count, at)) /
				     2;
		count = at + 1;
	}
	for (size_t first = 0; first < QUANTILES; first++) {
		double run[QUANTILES];

		for (size_t length = 1; first + length <= QUANTILES; length++) {
			size_t at = length - 1;
			const double next = differences[first + length - 1];

			while (at && run[at - 1] > next) {
				run[at] = run[at - 1];
				at--;
			}
			run[at] = next;

			const double spread = run[length - 1] - run[0];
			const double cost = (spread + 1) / pow((double)length, 1.5);

			if (length >= LEAST_RUN && cost < best) {
				best = cost;
				value = (run[(length - 1) / 2] + run[length / 2]) / 2;
			}
		}
	}
	return value;
}

/* By how much the measurements lie below the estimate in a range of windows, each as much as it is worth. */
static double below(
	const struct estimate *est, const struct stretch *stretch, size_t begin, size_t end)
{
	double sum = 0;
	double weights = 0;

	for (size_t i = begin; i < end; i++) {
		const struct window *window = &est->windows[stretch->first + i];

		if (window->variance < INFINITY) {
			sum += (window->y - window->z) / window->variance;
			weights += 1 / window->variance;
		}
	}
	return weights > 0 ? sum / weights : 0;
}

/* Moves the windows' measurements to the plateau of the block that they lie in. */
static bool correct(struct estimate *est, struct stretch *stretch)
{
	const size_t blocks = (stretch->count + BLOCK_WINDOWS - 1) / BLOCK_WINDOWS;
	const size_t room = (size_t)2 * BLOCK_WINDOWS * WINDOW_SAMPLES;
	double *shifts = malloc(blocks * sizeof(*shifts));
	struct times times = { .forward = malloc(room * sizeof(double)),
		.backward = malloc(room * sizeof(double)) };
	const bool good = shifts && times.forward && times.backward;

	for (size_t b = 0; good && b < blocks; b++) {
		const size_t half = BLOCK_WINDOWS / 2;
		const size_t begin = b * BLOCK_WINDOWS > half ? b * BLOCK_WINDOWS - half : 0;
		size_t end = (b + 1) * BLOCK_WINDOWS + half;

		end = end < stretch->count ? end : stretch->count;
		times.count = 0;
		for (size_t i = begin; i < end; i++) {
			add_times(est, stretch, i, &times);
		}
		shifts[b] = times.count ? plateau(&times) - below(est, stretch, begin, end) : 0;
	}
	for (size_t i = 0; good && i < stretch->count; i++) {
		/* Between the middles of two blocks, a bit of each. */
		const double place = ((double)i + 0.5) / BLOCK_WINDOWS - 0.5;
		const double held = place < 0                      ? 0
				    : place > (double)(blocks - 1) ? (double)(blocks - 1)
								   : place;
		const size_t left = (size_t)held;
		const size_t right = left + 1 < blocks ? left + 1 : left;
		const double part = held - (double)left;

		est->windows[stretch->first + i].z -=
			shifts[left] * (1 - part) + shifts[right] * part;
	}
	free(shifts);
	free(times.forward);
	free(times.backward);
	return good;
}

bool fit_stretch(struct estimate *est, struct stretch *stretch)
{
	struct step *steps = malloc(stretch->count * sizeof(*steps));
	bool good = steps != NULL;

	if (good) {
		smooth(est, stretch, steps);
		good = correct(est, stretch);
	}
	if (good) {
		smooth(est, stretch, steps);
	}
	free(steps);
	return good;
}

/* Least one-way times of each window, sorted. */
static size_t least_times(struct estimate *est, struct stretch *stretch, double *least_forward,
	double *least_backward)
{
	double forward[WINDOW_SAMPLES];
	double backward[WINDOW_SAMPLES];
	size_t used = 0;

	for (size_t i = 0; i < stretch->count; i++) {
		struct times times = { .forward = forward, .backward = backward };

		add_times(est, stretch, i, &times);
		if (!times.count) {
			continue;
		}
		least_forward[used] = INFINITY;
		least_backward[used] = INFINITY;
		for (size_t j = 0; j < times.count; j++) {
			least_forward[used] = fmin(least_forward[used], forward[j]);
			least_backward[used] = fmin(least_backward[used], backward[j]);
		}
		used++;
	}
	qsort(least_forward, used, sizeof(double), compare_doubles);
	qsort(least_backward, used, sizeof(double), compare_doubles);
	return used;
}

/* Marks a window's samples that travelled faster than the limits. */
static uint32_t find_impossible(const struct estimate *est, const struct stretch *stretch,
	size_t index, const double limits[2], bool *out)
{
	const struct window *window = &est->windows[stretch->first + index];
	uint32_t count = 0;
	size_t at = index;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];
		const double forward = line_at(est, stretch, sample->x_lower, &at) - sample->lower;
		const double backward = sample->upper - line_at(est, stretch, sample->x_upper, &at);

		out[i] = sample->believed && (forward < limits[0] || backward < limits[1]);
		count += out[i];
	}
	return count;
}

static void take_out(struct estimate *est, struct stretch *stretch, const double limits[2])
{
	uint64_t all = 0;
	uint64_t impossible = 0;
	bool out[WINDOW_SAMPLES];

	for (size_t i = 0; i < stretch->count; i++) {
		all += est->windows[stretch->first + i].believed;
		impossible += find_impossible(est, stretch, i, limits, out);
	}
	/* More than that: the line is at fault, not they. */
	if (impossible * GUARD_DIVISOR > all) {
		return;
	}
	for (size_t i = 0; impossible && i < stretch->count; i++) {
		struct window *window = &est->windows[stretch->first + i];
		const uint32_t count = find_impossible(est, stretch, i, limits, out);

		if (window->believed >= GUARD_DIVISOR && count * GUARD_DIVISOR > window->believed) {
			continue;
		}
		for (size_t j = 0; j < window->count; j++) {
			if (out[j]) {
				est->samples[window->first + j].believed = false;
			}
		}
		est->quality.unbelievable += count;
		window->believed -= count;
	}
}

bool fit_disbelieve(struct estimate *est, struct stretch *stretch)
{
	struct step *steps = malloc(stretch->count * sizeof(*steps));
	double *least_forward = malloc(stretch->count * sizeof(double));
	double *least_backward = malloc(stretch->count * sizeof(double));
	const bool good = steps && least_forward && least_backward;

	if (good) {
		smooth(est, stretch, steps);

		const size_t used = least_times(est, stretch, least_forward, least_backward);

		/* Nothing travels at twice the usual best. */
		if (used >= 3) {
			const double limits[2] = { least_forward[used / 2] / 2,
				least_backward[used / 2] / 2 };

			take_out(est, stretch, limits);
		}
	}
	free(steps);
	free(least_forward);
	free(least_backward);
	return good;
}
