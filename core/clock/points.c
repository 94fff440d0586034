/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>
#include <stdlib.h>

#define THIN_NS   20.0 /* what a knot that is left out may be off the line */
#define THIN_PART 20   /* ... nor more than this part of the bound */

void points_add(struct points *points, const struct estimate *est, uint64_t guest, double y,
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
	/* The knots' own rounding, which a line through coarse ones must not follow. */
	points->ripple = est->host_unit_ns > THIN_NS ? 1.5 * est->host_unit_ns : 0;
	points->at[points->count++] = (struct point){ .guest = guest,
		.x = place_x(est, guest),
		.y = y,
		.minus = fmax(y - low, 0),
		.plus = fmax(high - y, 0) };
}

/* May the points between a and b go, and by how much must the bounds at a and b grow for it? */
static bool may_skip(const struct point *a, const struct point *b, double ripple, double *raise)
{
	double needed = 0;

	for (const struct point *p = a + 1; p < b; p++) {
		const double part = (p->x - a->x) / (b->x - a->x);
		const double y = a->y + (b->y - a->y) * part;
		const double minus = a->minus + (b->minus - a->minus) * part;
		const double plus = a->plus + (b->plus - a->plus) * part;
		const double bound = (p->minus + p->plus) / 2;
		const double most = fmax(fmin(THIN_NS, bound / THIN_PART), ripple);

		if (fabs(y - p->y) > most) {
			return false;
		}
		needed = fmax(
			needed, y - minus < p->y - p->minus ? 0 : y - minus - (p->y - p->minus));
		needed = fmax(needed, p->y + p->plus - (y + plus));
		/* Nor may a wide neighbour make it wide. */
		if (needed > bound / THIN_PART + 1 + 2 * ripple ||
			minus + plus >
				(p->minus + p->plus) * (1 + 1.0 / THIN_PART) + 2 + 4 * ripple) {
			return false;
		}
	}
	*raise = needed;
	return true;
}

/* Leaves out points that the line through their neighbours tells as well. */
void points_thin(struct points *points)
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
				if (!may_skip(&at[i], &at[i + reach], points->ripple, &raise)) {
					bad = reach;
					break;
				}
				good = reach;
			}
			if (bad == points->count - i && good < bad - 1 &&
				may_skip(&at[i], &at[i + bad - 1], points->ripple, &raise)) {
				good = bad - 1;
			}
			while (bad - good > 1) {
				const size_t middle = good + (bad - good) / 2;

				if (may_skip(&at[i], &at[i + middle], points->ripple, &raise)) {
					good = middle;
				} else {
					bad = middle;
				}
			}
			next = i + good;
			raise = 0;
			(void)may_skip(&at[i], &at[next], points->ripple, &raise);
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

enum tdm_status points_put(const struct estimate *est, enum tdm_segment_kind kind, uint64_t from,
	const struct points *points, struct tdm_timeline *timeline, struct tdm_error *err)
{
	enum tdm_status status = tdm_timeline_add_segment(timeline, kind, from, err);
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
