/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

#define DISSENT_REACH_NS 10e9 /* how far from the ends of a run one is told */

static bool add(struct estimate *est, const struct dissent *dissent)
{
	if (est->dissent_count == est->dissent_room) {
		const size_t room = est->dissent_room ? est->dissent_room * 2 : 16;
		struct dissent *bigger = realloc(est->dissents, room * sizeof(*bigger));

		if (!bigger) {
			return false;
		}
		est->dissents = bigger;
		est->dissent_room = room;
	}
	est->dissents[est->dissent_count++] = *dissent;
	return true;
}

bool dissent_add(struct estimate *est, const struct window *window)
{
	const double lower = window->lower - est->slope * (window->x_lower - window->x);
	const double upper = window->upper - est->slope * (window->x_upper - window->x);
	struct dissent dissent = { .run = window->run,
		.is_told = true,
		.x = window->x,
		.end = est->samples[window->first + window->count - 1].x_upper,
		.low = fmin(lower, upper),
		.high = fmax(lower, upper),
		.least = INFINITY,
		.most = -INFINITY };

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed) {
			dissent.least = fmin(dissent.least,
				sample->lower - est->slope * (sample->x_lower - window->x));
			dissent.most = fmax(dissent.most,
				sample->upper - est->slope * (sample->x_upper - window->x));
		}
	}
	return add(est, &dissent);
}

bool dissent_add_sample(struct estimate *est, const struct window *window,
	const struct sample *sample, bool is_told)
{
	const struct dissent dissent = { .run = window->run,
		.is_told = is_told,
		.x = (sample->x_lower + sample->x_upper) / 2,
		.end = sample->x_upper,
		.low = fmin(sample->lower, sample->upper),
		.high = fmax(sample->lower, sample->upper),
		.least = fmin(sample->lower, sample->upper),
		.most = fmax(sample->lower, sample->upper) };

	return add(est, &dissent);
}

static int compare_dissents(const void *a, const void *b)
{
	const struct dissent *left = a;
	const struct dissent *right = b;

	if (left->run != right->run) {
		return left->run < right->run ? -1 : 1;
	}
	return compare_doubles(&left->x, &right->x);
}

/* The first window that lies behind a dissent, windows being in the order of runs and readings. */
static size_t first_behind(const struct estimate *est, const struct dissent *dissent)
{
	size_t low = 0;
	size_t high = est->window_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct window *window = &est->windows[middle];

		if (window->run < dissent->run ||
			(window->run == dissent->run && window->x <= dissent->x)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

void dissent_place(struct estimate *est)
{
	if (est->dissent_count) {
		qsort(est->dissents, est->dissent_count, sizeof(*est->dissents), compare_dissents);
	}
	for (size_t i = 0; i < est->dissent_count; i++) {
		struct dissent *dissent = &est->dissents[i];
		const size_t next = first_behind(est, dissent);
		const struct window *window = &est->windows[next];

		dissent->from = dissent->x - DISSENT_REACH_NS;
		dissent->to = dissent->x + DISSENT_REACH_NS;
		if (next && window[-1].run == dissent->run) {
			dissent->from = window[-1].x;
		}
		if (next < est->window_count && window->run == dissent->run) {
			dissent->to = window->x;
		}
	}
}

size_t dissent_between(
	const struct estimate *est, uint32_t run, double from, double to, size_t *first)
{
	size_t low = 0;
	size_t high = est->dissent_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct dissent *dissent = &est->dissents[middle];

		if (dissent->run < run || (dissent->run == run && dissent->x < from)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	*first = low;
	while (high < est->dissent_count && est->dissents[high].run == run &&
		est->dissents[high].x <= to) {
		high++;
	}
	return high - low;
}

void dissent_cover(
	const struct estimate *est, double x, size_t first, size_t count, double *low, double *high)
{
	const double slow = est->rate_center - RATE_CAP;
	const double fast = est->rate_center + RATE_CAP;

	for (size_t i = first; i < first + count; i++) {
		const struct dissent *dissent = &est->dissents[i];
		const double by = x - dissent->x;

		*low = fmin(*low, dissent->least + by * (by > 0 ? slow : fast));
		*high = fmax(*high, dissent->most + by * (by > 0 ? fast : slow));
	}
}
