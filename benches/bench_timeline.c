/* SPDX-License-Identifier: MIT */
/*
 * bench_timeline - ns an event to put guest stamps on the host's clock, beside the plain 128-bit division.
 *
 * CPU time, medians. Usage: bench_timeline
 */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/timeline.h>
#include <tandem/wide.h>
#include <time.h>

enum {
	KNOTS = 3600,
	EVENTS = 4000000,
	ROUNDS = 9
};

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;

	return (left > right) - (left < right);
}

static struct tdm_timeline *make(struct tdm_knot *knots)
{
	struct tdm_timeline *timeline = tdm_timeline_create();

	if (!timeline ||
		tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, 1000000000, NULL) != TDM_OK) {
		exit(1);
	}
	for (uint64_t i = 0; i < KNOTS; i++) {
		knots[i] = (struct tdm_knot){ .guest = (i + 1) * 1000000000,
			.host = UINT64_C(77000000000) + i * 1000009000 + i % 7 * 13 };
		if (tdm_timeline_add_knot(timeline, &knots[i], NULL) != TDM_OK) {
			exit(1);
		}
	}
	return timeline;
}

/* What the format's text says, word for word. */
static uint64_t divided(const struct tdm_knot *knots, uint64_t guest, size_t *at)
{
	while (*at + 2 < KNOTS && knots[*at + 1].guest <= guest) {
		(*at)++;
	}

	const struct tdm_knot *a = &knots[*at];

	return a->host + (uint64_t)((tdm_u128)(guest - a->guest) * (a[1].host - a->host) /
				    (a[1].guest - a->guest));
}

int main(void)
{
	struct tdm_knot *knots = calloc(KNOTS, sizeof(*knots));
	double ours[ROUNDS];
	double theirs[ROUNDS];
	uint64_t sum[2] = { 0, 0 };

	if (!knots) {
		return 1;
	}

	struct tdm_timeline *timeline = make(knots);
	const uint64_t step = UINT64_C(1000000000) * (KNOTS - 1) / EVENTS;

	for (int round = 0; round < ROUNDS; round++) {
		struct tdm_timeline_hint hint = { 0 };
		size_t at = 0;
		double start = cpu_ns();

		for (uint64_t i = 0; i < EVENTS; i++) {
			sum[0] += tdm_timeline_apply(
				timeline, 1000000000 + i * step, (uint32_t)i & 3, &hint);
		}
		ours[round] = (cpu_ns() - start) / EVENTS;
		start = cpu_ns();
		for (uint64_t i = 0; i < EVENTS; i++) {
			sum[1] += divided(knots, 1000000000 + i * step, &at);
		}
		theirs[round] = (cpu_ns() - start) / EVENTS;
	}
	if (sum[0] != sum[1]) {
		fprintf(stderr, "the two forms disagree\n");
		return 1;
	}
	qsort(ours, ROUNDS, sizeof(*ours), compare);
	qsort(theirs, ROUNDS, sizeof(*theirs), compare);
	printf("apply: %.2f ns/event, 128-bit division %.2f ns/event, ratio %.2f (goal: below 5 ns)\n",
		ours[ROUNDS / 2], theirs[ROUNDS / 2], ours[ROUNDS / 2] / theirs[ROUNDS / 2]);
	tdm_timeline_destroy(timeline);
	free(knots);
	return 0;
}
