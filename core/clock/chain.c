/* SPDX-License-Identifier: MIT */
#include "chain.h"
#include <math.h>
#include <stdlib.h>

static double turn(const struct vertex *a, const struct vertex *b, const struct vertex *c)
{
	return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

static void push_point(struct vertex *points, size_t *count, struct vertex point, double sign)
{
	while (*count >= 2 && sign * turn(&points[*count - 2], &points[*count - 1], &point) <= 0) {
		(*count)--;
	}
	points[(*count)++] = point;
}

/* Greatest (sign 1) or least (sign -1) slope from a point of the chain to one on its right. */
static double tangent(const struct vertex *points, size_t count, struct vertex to, double sign)
{
	size_t low = 0;
	size_t high = count - 1;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		/* Seen from the point, does the chain go on turning outwards? */
		if (sign * turn(&points[middle], &points[middle + 1], &to) > 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return (to.y - points[low].y) / (to.x - points[low].x);
}

struct view view_of(const struct window *window, bool mirrored, bool narrowed)
{
	const double shrink = narrowed ? window->shrink : 0;
	const double sign = mirrored ? -1 : 1;
	const struct view view = {
		.lower = { sign * window->x_lower, window->lower + shrink },
		.upper = { sign * window->x_upper, window->upper - shrink },
	};

	return view;
}

bool chain_init(struct chain *chain, const struct estimate *est, size_t room, bool mirrored)
{
	const double center = mirrored ? -est->rate_center : est->rate_center;

	*chain = (struct chain){ .uppers = malloc((room + 1) * sizeof(*chain->uppers)),
		.lowers = malloc((room + 1) * sizeof(*chain->lowers)),
		.slope_low = center - RATE_CAP,
		.slope_high = center + RATE_CAP,
		.rho = est->rho };
	return chain->uppers && chain->lowers;
}

void chain_reset(struct chain *chain, double center)
{
	chain->upper_count = 0;
	chain->lower_count = 0;
	chain->slope_low = center - RATE_CAP;
	chain->slope_high = center + RATE_CAP;
}

void chain_release(struct chain *chain)
{
	free(chain->uppers);
	free(chain->lowers);
}

static bool overlaps(const struct chain *chain, const struct view *view)
{
	return view->lower.x <= chain->x || view->upper.x <= chain->x;
}

bool chain_try(
	const struct chain *chain, const struct view *view, double *slope_low, double *slope_high)
{
	*slope_low = chain->slope_low;
	*slope_high = chain->slope_high;
	/* A burst that overlaps the one before says nothing of the slope. */
	if (chain->upper_count && !overlaps(chain, view)) {
		const double least = tangent(chain->uppers, chain->upper_count, view->lower, 1);
		const double most = tangent(chain->lowers, chain->lower_count, view->upper, -1);

		*slope_low = least > *slope_low ? least : *slope_low;
		*slope_high = most < *slope_high ? most : *slope_high;
	}
	return *slope_low <= *slope_high + 2 * chain->rho;
}

void chain_push(struct chain *chain, const struct view *view)
{
	double low;
	double high;

	if (chain->upper_count && overlaps(chain, view)) {
		return;
	}
	(void)chain_try(chain, view, &low, &high);
	chain->x = fmax(view->lower.x, view->upper.x);
	chain->slope_low = low;
	chain->slope_high = high;
	push_point(chain->uppers, &chain->upper_count, view->upper, 1);
	push_point(chain->lowers, &chain->lower_count, view->lower, -1);
}
