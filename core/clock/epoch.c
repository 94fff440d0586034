/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_AHEAD = 6
};

static int compare_epochs(const void *a, const void *b)
{
	const struct tdm_epoch_record *left = a;
	const struct tdm_epoch_record *right = b;

	if (left->epoch != right->epoch) {
		return left->epoch < right->epoch ? -1 : 1;
	}
	if (left->guest != right->guest) {
		return left->guest < right->guest ? -1 : 1;
	}
	return strcmp(left->reason, right->reason);
}

/* By host time, which goes on whatever the guest's clock does. */
static int compare_host(const void *a, const void *b)
{
	const struct window *left = a;
	const struct window *right = b;
	const double left_host = left->x_lower + left->lower + left->x_upper + left->upper;
	const double right_host = right->x_lower + right->lower + right->x_upper + right->upper;

	if (left_host != right_host) {
		return left_host < right_host ? -1 : 1;
	}
	return (left->first > right->first) - (left->first < right->first);
}

static int compare_guest(const void *a, const void *b)
{
	const struct window *left = a;
	const struct window *right = b;

	if (left->run != right->run) {
		return left->run < right->run ? -1 : 1;
	}
	if (left->x != right->x) {
		return left->x < right->x ? -1 : 1;
	}
	return (left->first > right->first) - (left->first < right->first);
}

static bool copy_epochs(struct estimate *est)
{
	const struct tdm_epoch_record *epochs =
		tdm_exchange_log_epochs(est->log, &est->epoch_count);

	if (est->epochs) {
		return true;
	}
	est->epochs = malloc((est->epoch_count + 1) * sizeof(*est->epochs));
	if (est->epochs && est->epoch_count) {
		memcpy(est->epochs, epochs, est->epoch_count * sizeof(*epochs));
		qsort(est->epochs, est->epoch_count, sizeof(*est->epochs), compare_epochs);
	}
	return est->epochs != NULL;
}

/*
 * Where readings went back, and could have begun at the mark: the guest has not counted longer since than the host has.
 */
static bool is_reset(const struct window *before, const struct window *window, double mark)
{
	const double elapsed = window->x_upper + window->upper - before->x_lower - before->lower;

	return window->x < before->x && window->x >= mark && window->x - mark <= elapsed;
}

/* The first window behind a mark; window_count where there is none. */
static size_t first_behind(const struct estimate *est, double mark, size_t from)
{
	const struct window *windows = est->windows;

	for (size_t i = from; i < est->window_count; i++) {
		if (is_reset(&windows[i - 1], &windows[i], mark)) {
			return i;
		}
	}
	for (size_t i = from; i < est->window_count; i++) {
		if (windows[i].x >= mark && windows[i - 1].x < mark) {
			return i;
		}
	}
	return est->window_count;
}

/* Which windows lie behind which of the guest's own marks of a break. */
static void number_epochs(struct estimate *est)
{
	size_t next = 1;

	for (size_t i = 0; i < est->window_count; i++) {
		est->windows[i].epoch = 0;
	}
	for (size_t i = 0; i < est->epoch_count && next < est->window_count; i++) {
		const size_t at = first_behind(est, place_x(est, est->epochs[i].guest), next);

		for (size_t j = at; j < est->window_count; j++) {
			est->windows[j].epoch = (uint32_t)i + 1;
		}
		if (at < est->window_count) {
			next = at + 1;
		}
	}
}

/* Has more time passed for the host than for the guest, and not for being answered late: no common line fits both. */
static bool fell_behind(const struct window *before, const struct window *window)
{
	return window->lower - before->upper > RATE_CAP * fabs(before->x - window->x);
}

/* Later by the host, earlier by the guest; exchanges of one burst may be answered in another order. */
static bool went_back(const struct window *before, const struct window *window)
{
	return before->x - window->x > BURST_REACH_NS && fell_behind(before, window);
}

/* One bogus window is no step of the clock: most of the windows behind it must have fallen behind as well. */
static bool stays_back(const struct estimate *est, size_t at)
{
	const struct window *before = &est->windows[at - 1];
	unsigned int back = 0;
	unsigned int on = 0;

	for (size_t i = at; i < est->window_count && i <= at + LOOK_AHEAD; i++) {
		if (fell_behind(before, &est->windows[i])) {
			back += est->windows[i].believed;
		} else {
			on += est->windows[i].believed;
		}
	}
	return back > on;
}

bool epoch_order(struct estimate *est)
{
	uint32_t run = 0;

	if (!copy_epochs(est)) {
		return false;
	}
	qsort(est->windows, est->window_count, sizeof(*est->windows), compare_host);
	number_epochs(est);
	for (size_t i = 0; i < est->window_count; i++) {
		struct window *window = &est->windows[i];

		if (i && (window->epoch != window[-1].epoch ||
				 (went_back(window - 1, window) && stays_back(est, i)))) {
			run++;
		}
		window->run = run;
	}
	qsort(est->windows, est->window_count, sizeof(*est->windows), compare_guest);
	return true;
}
