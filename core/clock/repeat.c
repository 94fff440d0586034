/* SPDX-License-Identifier: MIT */
/*
 * repeat.c - one timeline of several, where the guest's clock went back between them.
 *
 * The file's segments are chosen by the reading alone. So each reading gets the latest run of the clock that may have shown
 * it; where others may have shown it too, the bound covers what they say, and the range is in doubt.
 */
#include "repeat.h"
#include "order.h"
#include <stdlib.h>

struct merge {
	const struct repeat_run *runs;
	size_t count;
	struct tdm_timeline *timeline;
	struct tdm_error *err;
	/* What was put last. */
	bool has_open;
	size_t run, segment;
};

static bool covers(const struct repeat_run *run, uint64_t from, uint64_t until)
{
	return run->from <= from && until <= run->until;
}

/* Readings in [from, until) at which any run that covers them bends; sorted, may repeat. NULL without memory. */
static uint64_t *places_in(const struct merge *merge, uint64_t from, uint64_t until, size_t *count)
{
	size_t room = 2;
	uint64_t *places;

	for (size_t r = 0; r < merge->count; r++) {
		const struct tdm_timeline_info info =
			tdm_timeline_get_info(merge->runs[r].timeline);

		room += covers(&merge->runs[r], from, until)
				? info.knot_count + 2 * info.segment_count
				: 0;
	}
	places = malloc(room * sizeof(*places));
	if (!places) {
		return NULL;
	}
	places[0] = from;
	places[1] = until - 1;
	*count = 2;
	for (size_t r = 0; r < merge->count; r++) {
		const struct tdm_timeline *timeline = merge->runs[r].timeline;
		const size_t segments = tdm_timeline_get_info(timeline).segment_count;

		for (size_t s = 0; s < segments && covers(&merge->runs[r], from, until); s++) {
			const struct tdm_segment_info segment = tdm_timeline_segment(timeline, s);

			/* Both sides of its edge, and its knots. */
			for (size_t i = 0; i < segment.knot_count + 2; i++) {
				const uint64_t place =
					i < segment.knot_count ? segment.knots[i].guest
					: i == segment.knot_count || segment.from == 0
						? segment.from
						: segment.from - 1;

				if (place >= from && place < until) {
					places[(*count)++] = place;
				}
			}
		}
	}
	qsort(places, *count, sizeof(*places), compare_u64);
	return places;
}

/* The segment of a run that holds a reading. */
static size_t segment_of(const struct tdm_timeline *timeline, uint64_t guest)
{
	size_t low = 0;
	size_t high = tdm_timeline_get_info(timeline).segment_count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (tdm_timeline_segment(timeline, middle).from <= guest) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return low;
}

void repeat_cover(const struct tdm_timeline *timeline, uint64_t guest, struct tdm_knot *knot)
{
	const uint64_t host = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);
	uint64_t minus;
	uint64_t plus;

	tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);

	const tdm_i128 low = (tdm_i128)host - (tdm_i128)minus;
	const tdm_i128 high = (tdm_i128)host + (tdm_i128)plus;

	if (low < (tdm_i128)knot->host - (tdm_i128)knot->minus) {
		knot->minus = (uint64_t)((tdm_i128)knot->host - low);
	}
	if (high > (tdm_i128)knot->host + (tdm_i128)knot->plus) {
		knot->plus = (uint64_t)(high - (tdm_i128)knot->host);
	}
	knot->minus = knot->minus < TDM_READING_MAX ? knot->minus : TDM_READING_MAX;
	knot->plus = knot->plus < TDM_READING_MAX ? knot->plus : TDM_READING_MAX;
}

static enum tdm_status put_place(
	struct merge *merge, size_t chosen, uint64_t from, uint64_t until, uint64_t guest)
{
	const struct tdm_timeline *own = merge->runs[chosen].timeline;
	struct tdm_knot knot = { .guest = guest,
		.host = tdm_timeline_apply(own, guest, UINT32_MAX, NULL) };
	const size_t segment = segment_of(own, guest);
	enum tdm_status status = TDM_OK;

	for (size_t r = 0; r <= chosen; r++) {
		if (r == chosen || covers(&merge->runs[r], from, until)) {
			repeat_cover(merge->runs[r].timeline, guest, &knot);
		}
	}
	if (!merge->has_open || merge->run != chosen || merge->segment != segment) {
		const struct tdm_segment_info info = tdm_timeline_segment(own, segment);
		const enum tdm_segment_kind kind = !merge->has_open       ? TDM_SEGMENT_START
						   : merge->run != chosen ? merge->runs[chosen].kind
									  : info.kind;

		status = tdm_timeline_add_segment(merge->timeline, kind, guest, merge->err);
		merge->has_open = true;
		merge->run = chosen;
		merge->segment = segment;
	}
	if (knot.host > TDM_READING_MAX) {
		knot.host = TDM_READING_MAX;
	}
	return status == TDM_OK ? tdm_timeline_add_knot(merge->timeline, &knot, merge->err)
				: status;
}

/* All readings in [from, until) may have been shown by the same runs. */
static enum tdm_status put_cell(struct merge *merge, uint64_t from, uint64_t until)
{
	size_t chosen = merge->count;
	size_t others = 0;
	size_t count = 0;
	enum tdm_status status = TDM_OK;

	for (size_t r = 0; r < merge->count; r++) {
		if (covers(&merge->runs[r], from, until)) {
			others += chosen < merge->count;
			chosen = r;
		}
	}
	if (chosen == merge->count) {
		return TDM_OK;
	}

	uint64_t *places = places_in(merge, from, until, &count);

	if (!places) {
		return tdm_fail(merge->err, TDM_ERR_NOMEM, "no memory for the knots");
	}
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		if (i == 0 || places[i] != places[i - 1]) {
			status = put_place(merge, chosen, from, until, places[i]);
		}
	}
	free(places);
	if (status == TDM_OK && others) {
		status = tdm_timeline_add_doubt(merge->timeline, from, until - 1, merge->err);
	}
	return status;
}

enum tdm_status repeat_merge(const struct repeat_run *runs, size_t count,
	struct tdm_timeline *timeline, struct tdm_error *err)
{
	struct merge merge = { .runs = runs, .count = count, .timeline = timeline, .err = err };
	uint64_t *edges = malloc(2 * count * sizeof(*edges));
	enum tdm_status status = TDM_OK;

	if (!edges) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the knots");
	}
	for (size_t r = 0; r < count; r++) {
		edges[2 * r] = runs[r].from;
		edges[2 * r + 1] = runs[r].until;
	}
	qsort(edges, 2 * count, sizeof(*edges), compare_u64);
	for (size_t i = 0; i + 1 < 2 * count && status == TDM_OK; i++) {
		if (edges[i] < edges[i + 1]) {
			status = put_cell(&merge, edges[i], edges[i + 1]);
		}
	}
	free(edges);
	return status;
}
