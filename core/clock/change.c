/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>

/* How long after a break the guest may notice it, in ns. */
#define MARK_LAG_NS 10e6

/* How badly a line explains a window, in squared standard deviations; a bad window counts little. */
static double misfit(
	const struct estimate *est, const struct stretch *stretch, const struct window *window)
{
	if (!window->has_z) {
		return 0;
	}

	const double off = window->z - bound_estimate_at(est, stretch, window->x);

	return log1p(off * off / window->variance);
}

/* Of the windows that the bound allows on either side, where does the change explain them best? */
static size_t best_split(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, size_t begin, size_t end)
{
	double cost = 0;
	size_t best = begin;

	for (size_t i = begin; i < end; i++) {
		cost += misfit(est, right, &est->windows[i]);
	}

	double least = cost;

	for (size_t i = begin; i < end; i++) {
		cost += misfit(est, left, &est->windows[i]) - misfit(est, right, &est->windows[i]);
		if (cost < least) {
			least = cost;
			best = i + 1;
		}
	}
	return best;
}

/* Does a dissent allow a stretch's line? */
static bool is_with(
	const struct estimate *est, const struct stretch *stretch, const struct dissent *dissent)
{
	const double y = bound_estimate_at(est, stretch, dissent->x);

	return dissent->low <= y && y <= dissent->high;
}

/*
 * Few exchanges that one line contradicts and the next one does not came behind the break: what was passed over, for nothing
 * around it agreed, is heard after all. @return The first window that is certainly behind the break.
 */
static size_t hear_dissents(struct estimate *est, const struct stretch *left, struct stretch *right,
	size_t begin, size_t end)
{
	const struct window *const windows = est->windows;
	size_t first;
	const size_t count = dissent_between(
		est, windows[begin - 1].run, windows[begin - 1].x, windows[end].x, &first);
	size_t last = end;
	size_t kept = first;
	bool is_behind = false;

	for (size_t i = first; i < first + count; i++) {
		const struct dissent dissent = est->dissents[i];
		const bool fits = windows[end].run == dissent.run && is_with(est, right, &dissent);

		if (!is_behind && fits && !is_with(est, left, &dissent)) {
			is_behind = true;
			right->doubt_to = fmin(right->doubt_to, dissent.end);
			while (last > begin && windows[last - 1].x > dissent.x) {
				last--;
			}
		}
		if (!is_behind || !fits) {
			est->dissents[kept++] = dissent;
		}
	}
	for (size_t i = first + count; i < est->dissent_count && kept < i; i++) {
		est->dissents[kept + i - first - count] = est->dissents[i];
	}
	est->dissent_count -= first + count - kept;
	return last;
}

/*
 * Called with stretches that were fitted on their sure windows alone: windows between are given to the side that
 * explains them.
 */
void change_place(struct estimate *est)
{
	for (size_t s = 1; s < est->stretch_count; s++) {
		struct stretch *left = &est->stretches[s - 1];
		struct stretch *right = &est->stretches[s];
		const size_t begin = left->first + left->count;
		const size_t end = right->first;

		if (begin < end) {
			const size_t last = hear_dissents(est, left, right, begin, end);
			const size_t best = best_split(est, left, right, begin, end);
			const size_t split = best < last ? best : last;

			left->count += split - begin;
			right->count += end - split;
			right->first = split;
		}
	}
}

/* Where the two lines meet; outside the range they are held to its ends. */
static bool lines_meet(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, double from, double to, double *x)
{
	double low = from;
	double high = to;
	const double at_low =
		bound_estimate_at(est, right, low) - bound_estimate_at(est, left, low);
	const double at_high =
		bound_estimate_at(est, right, high) - bound_estimate_at(est, left, high);

	if (at_low * at_high > 0) {
		return false;
	}
	*x = at_low == at_high ? (low + high) / 2
			       : low + (high - low) * at_low / (at_low - at_high);
	return true;
}

static double clamp(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Called with the final estimates: where one gives way to the next. */
void change_meet(struct estimate *est)
{
	for (size_t s = 1; s < est->stretch_count; s++) {
		const struct stretch *left = &est->stretches[s - 1];
		struct stretch *right = &est->stretches[s];
		const double before = est->windows[left->first + left->count - 1].x;
		const double behind = est->windows[right->first].x;

		right->ceiling = NAN;
		if (right->is_overlap) {
			/* The guest cannot have counted more since than the host has. */
			const struct window *a = &est->windows[left->first + left->count - 1];
			const struct window *b = &est->windows[right->first];
			const double elapsed = b->x + b->y - a->x - a->y;

			right->change = right->has_mark && right->mark <= behind
						? right->mark
						: behind - fmax(elapsed, 0);
			right->told_from = right->told_to = right->change;
			continue;
		}

		/* The break by the bound, less what the windows' sides say. */
		const double from = fmax(before, right->doubt_from);
		const double to = fmin(behind, right->doubt_to);
		const double begin = from < to ? from : before;
		const double end = from < to ? to : behind;

		right->told_from = begin;
		right->told_to = end;
		if (right->has_mark && right->mark > begin && right->mark <= behind) {
			right->change = right->mark;
			right->told_from = clamp(right->mark - MARK_LAG_NS, begin, right->mark);
			right->told_to = right->mark;
		} else if (lines_meet(est, left, right, before, behind, &right->change)) {
			right->is_bend = right->kind == TDM_SEGMENT_STEP;
			right->told_from = before;
			right->told_to = behind;
		} else {
			right->change = (begin + end) / 2;
		}
		if (right->is_bend) {
			right->kind = TDM_SEGMENT_RATE;
			continue;
		}

		const double old = bound_estimate_at(est, left, right->change);
		const double new = bound_estimate_at(est, right, right->change);

		if (new >= old) {
			continue;
		}

		/*
		 * The guest's clock went ahead of the host's: time stands still at a height that both lines have inside
		 * the range where the break is, so that the output does not go back.
		 */
		const double least =
			right->told_from + bound_estimate_at(est, left, right->told_from);
		const double most = right->told_to + bound_estimate_at(est, right, right->told_to);

		if (least <= most) {
			right->ceiling = (least + most) / 2;
			/* x + y rises at nearly 1: two steps find the place. */
			double x = right->told_to - (most - right->ceiling);

			for (int i = 0; i < 4; i++) {
				x += right->ceiling - x - bound_estimate_at(est, right, x);
			}
			right->change = clamp(x, right->told_from, right->told_to);
		}
	}
}
