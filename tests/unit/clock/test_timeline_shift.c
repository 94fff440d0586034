/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdlib.h>
#include <tandem/timeline.h>

enum {
	ROOM = 4096
};

static const uint64_t hour_ns = UINT64_C(3600000000000);

/* How trace-cmd applies interpolated samples: all signed 64 bits, division towards zero. */
static int64_t as_trace_cmd(const struct tdm_shift_sample *samples, size_t count, int64_t time)
{
	size_t a = 0;

	if (count == 1) {
		return time + samples[0].offset;
	}
	while (a + 2 < count && samples[a + 1].time <= time) {
		a++;
	}

	const int64_t run = samples[a + 1].time - samples[a].time;
	const int64_t change = samples[a + 1].offset - samples[a].offset;
	int64_t product;

	assert_false(__builtin_mul_overflow(time - samples[a].time, change, &product));
	return time + samples[a].offset + (product + run / 2) / run;
}

static void check(const struct tdm_timeline *timeline, uint64_t first, uint64_t last)
{
	struct tdm_shift_sample *samples = calloc(ROOM, sizeof(*samples));
	size_t count;
	struct tdm_error err = { 0 };

	assert_non_null(samples);
	if (tdm_timeline_to_shift(timeline, UINT32_MAX, first, last, samples, ROOM, &count, &err) !=
		TDM_OK) {
		fail_msg("%s", err.text);
	}
	for (size_t i = 0; i < count; i++) {
		assert_int_not_equal(samples[i].offset, 0);
		assert_int_not_equal(samples[i].time, 0);
		assert_true(i == 0 || samples[i].time > samples[i - 1].time);
	}
	for (uint64_t i = 0; i <= 20000; i++) {
		const uint64_t time = first + (last - first) / 20000 * i;
		const int64_t wanted =
			(int64_t)tdm_timeline_apply(timeline, time, UINT32_MAX, NULL);

		assert_true(llabs(as_trace_cmd(samples, count, (int64_t)time) - wanted) <= 2);
	}
	free(samples);
}

static struct tdm_timeline *drifting(int64_t offset, int64_t drift_ns_per_ms)
{
	struct tdm_timeline *timeline = tdm_timeline_create();
	const int64_t end = (int64_t)hour_ns * 5 + offset + drift_ns_per_ms * 14400000;
	const struct tdm_knot knots[2] = {
		{ hour_ns, (uint64_t)((int64_t)hour_ns + offset), 9, 9 },
		{ hour_ns * 5, (uint64_t)end, 9, 9 },
	};

	assert_int_equal(
		tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, hour_ns, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &knots[0], NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &knots[1], NULL), TDM_OK);
	return timeline;
}

static void hours_of_drift_stay_inside_64_bits(void **state)
{
	(void)state;
	for (int64_t drift = -500; drift <= 500; drift += 100) {
		struct tdm_timeline *timeline = drifting(-123456789012, drift);

		check(timeline, hour_ns, hour_ns * 6);
		tdm_timeline_destroy(timeline);
	}
}

static void an_offset_of_0_is_never_written(void **state)
{
	struct tdm_timeline *timeline = drifting(0, 0);

	(void)state;
	check(timeline, 0, hour_ns * 2);
	tdm_timeline_destroy(timeline);
}

static void a_jump_has_a_sample_on_each_side(void **state)
{
	struct tdm_timeline *timeline = drifting(1000, 3);
	const uint64_t from = hour_ns * 3;
	const struct tdm_knot knot = { from, from * 2, 1, 1 };
	struct tdm_shift_sample samples[64];
	size_t count;

	(void)state;
	assert_int_equal(tdm_timeline_add_segment(timeline, TDM_SEGMENT_STEP, from, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &knot, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_to_shift(timeline, UINT32_MAX, from - 1000, from + 1000,
				 samples, 64, &count, NULL),
		TDM_OK);
	for (uint64_t time = from - 1000; time <= from + 1000; time++) {
		const int64_t off = as_trace_cmd(samples, count, (int64_t)time) -
				    (int64_t)tdm_timeline_apply(timeline, time, UINT32_MAX, NULL);

		assert_true(llabs(off) <= 2);
	}
	tdm_timeline_destroy(timeline);
}

static void too_little_room_is_said(void **state)
{
	struct tdm_timeline *timeline = drifting(1000, 400);
	struct tdm_shift_sample samples[2];
	size_t count;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_timeline_to_shift(
				 timeline, UINT32_MAX, 1, hour_ns * 10, samples, 2, &count, &err),
		TDM_ERR_RANGE);
	assert_int_equal(count, 0);
	tdm_timeline_destroy(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hours_of_drift_stay_inside_64_bits),
		cmocka_unit_test(an_offset_of_0_is_never_written),
		cmocka_unit_test(a_jump_has_a_sample_on_each_side),
		cmocka_unit_test(too_little_room_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
