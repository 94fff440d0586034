/* SPDX-License-Identifier: MIT */
#include "decode/stamp_priv.h"
#include "tdm_cmocka.h"
#include <stdlib.h>

/* The reference reader's arithmetic, written down apart from ours. Source: trace-cmd 3.1.6, read for facts. */
static uint64_t reference_shift(
	const struct tdm_recorded_sample *s, uint32_t n, bool interpolate, uint64_t t)
{
	uint32_t a = 0;

	if (n == 1) {
		return t + (uint64_t)s[0].offset;
	}
	if (n > 2) {
		if (t >= (uint64_t)s[n - 1].time) {
			a = n - 2;
		} else {
			while (a + 2 < n && (uint64_t)s[a + 1].time <= t) {
				a++;
			}
		}
	}

	int64_t correction = s[a].offset;

	if (interpolate) {
		const int64_t d = s[a + 1].time - s[a].time;
		const int64_t o = ((int64_t)t - s[a].time) * (s[a + 1].offset - s[a].offset);

		correction = s[a].offset + (o + d / 2) / d;
	}
	return ((t * (uint64_t)s[a].scaling) >> s[a].fraction) + (uint64_t)correction;
}

static const struct tdm_recorded_sample samples[] = {
	{ 1000, 500, 1, 0 },
	{ 2000, 620, 1, 0 },
	{ 5000, -40, 1, 0 },
	{ 9000, 70, 1, 0 },
};

static struct stamp_plan plan_of(const struct tdm_recorded_shift *shift, bool interpolate)
{
	return (struct stamp_plan){
		.shift = STAMP_SHIFT_SAMPLES, .samples = shift, .interpolate = interpolate
	};
}

static void shifts_are_those_of_the_reference_for_every_count_and_place(void **state)
{
	(void)state;
	for (uint32_t count = 1; count <= 4; count++) {
		const struct tdm_recorded_shift shift = { samples, count };

		for (int interpolate = 0; interpolate < 2; interpolate++) {
			struct stamp_plan plan = plan_of(&shift, interpolate);

			for (uint64_t t = 0; t < 12000; t += 37) {
				assert_true(stamp_one(&plan, t) ==
					    reference_shift(samples, count, interpolate, t));
			}
			for (size_t i = 0; i < 4; i++) {
				const uint64_t t = (uint64_t)samples[i].time;

				assert_true(stamp_one(&plan, t) ==
					    reference_shift(samples, count, interpolate, t));
			}
		}
	}
}

static void numbers_by_hand_agree(void **state)
{
	const struct tdm_recorded_shift two = { samples, 2 };
	struct stamp_plan plan = plan_of(&two, true);

	(void)state;
	/* Half way from 500 to 620, and extrapolated on both sides. */
	assert_int_equal(stamp_one(&plan, 1500), 1500 + 560);
	assert_int_equal(stamp_one(&plan, 3000), 3000 + 740);
	assert_int_equal(stamp_one(&plan, 500), 500 + 440 + 1);
	plan.interpolate = false;
	/* A step: the second sample's offset is never used. */
	assert_int_equal(stamp_one(&plan, 2500), 2500 + 500);
}

static void scaling_counts_with_two_samples_and_not_with_one(void **state)
{
	const struct tdm_recorded_sample scaled[] = { { 10, 100, 3, 1 }, { 20, 100, 5, 2 } };
	const struct tdm_recorded_shift one = { scaled, 1 }, two = { scaled, 2 };
	struct stamp_plan plan = plan_of(&one, false);

	(void)state;
	assert_int_equal(stamp_one(&plan, 50), 150);
	plan.samples = &two;
	assert_int_equal(stamp_one(&plan, 50), 75 + 100);
}

static void hostile_samples_never_trap(void **state)
{
	const int64_t odd[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	const size_t n = sizeof(odd) / sizeof(odd[0]);

	(void)state;
	for (size_t i = 0; i < n * n * n; i++) {
		const struct tdm_recorded_sample pair[] = {
			{ odd[i % n], odd[i / n % n], odd[i / n / n], odd[i % n] },
			{ odd[i / n % n], odd[i / n / n], odd[i % n], odd[i / n % n] },
		};
		const struct tdm_recorded_shift shift = { pair, 2 };
		struct stamp_plan plan = plan_of(&shift, true);

		(void)stamp_one(&plan, 0);
		(void)stamp_one(&plan, UINT64_MAX);
		(void)stamp_one(&plan, 1ull << 63);
	}
}

/* The reference computes the product in two halves. */
static uint64_t reference_tsc(uint64_t t, uint32_t mult, uint32_t shift)
{
	uint64_t ns = ((t & UINT32_MAX) * mult) >> shift;

	if (t >> 32) {
		ns += ((t >> 32) * mult) << (32 - shift);
	}
	return ns;
}

static void ticks_become_ns_as_the_reference_does_it(void **state)
{
	struct stamp_plan plan = { .unit = STAMP_UNIT_TSC };
	uint64_t t = 1;

	(void)state;
	for (plan.tsc_shift = 0; plan.tsc_shift <= 32; plan.tsc_shift++) {
		for (int i = 0; i < 1000; i++) {
			t = t * 6364136223846793005ull + 1442695040888963407ull;
			plan.tsc_mult = (uint32_t)(t >> 20);
			assert_true(stamp_one(&plan, t) ==
				    reference_tsc(t, plan.tsc_mult, plan.tsc_shift));
		}
	}
}

static void the_order_is_shift_then_ns_then_offset(void **state)
{
	const struct tdm_recorded_sample one = { 1, 1000, 1, 0 };
	const struct tdm_recorded_shift shift = { &one, 1 };
	struct stamp_plan plan = plan_of(&shift, false);

	(void)state;
	plan.unit = STAMP_UNIT_TSC;
	plan.tsc_mult = 2;
	plan.tsc_shift = 0;
	plan.offset_ns = (uint64_t)-7;
	assert_int_equal(stamp_one(&plan, 50), (50 + 1000) * 2 - 7);
}

static struct tdm_trace_info info_of(const struct tdm_stream_info *stream,
	const struct tdm_buffer_info *buffer, const struct tdm_recorded_shift *shift)
{
	return (struct tdm_trace_info){
		.streams = stream,
		.stream_count = 1,
		.buffers = buffer,
		.buffer_count = 1,
		.shift_cpus = shift,
		.shift_cpu_count = 1,
		.has_peer = true,
		.clock = "x86-tsc",
		.has_tsc2nsec = true,
		.tsc_mult = 3,
		.date_offset_ns = 11,
	};
}

static void raw_takes_nothing_of_it_and_other_clocks_are_left_alone(void **state)
{
	const struct tdm_recorded_sample one = { 1, 1000, 1, 0 };
	const struct tdm_recorded_shift shift = { &one, 1 };
	const struct tdm_stream_info stream = { .cpu = 0 };
	const struct tdm_stream_info other_cpu = { .cpu = 1 };
	const struct tdm_buffer_info top = { .name = "", .clock = "x86-tsc", .shifted = true };
	const struct tdm_buffer_info mono = { .name = "m", .clock = "mono", .shifted = false };
	struct tdm_stamp_options options = { .offset_ns = 5 };
	struct tdm_trace_info info = info_of(&stream, &top, &shift);
	struct stamp_plan plan = stamp_plan_make(&info, &options, 0);

	(void)state;
	assert_int_equal(stamp_one(&plan, 50), 1050 * 3 + 16);
	info = info_of(&stream, &mono, &shift);
	plan = stamp_plan_make(&info, &options, 0);
	assert_int_equal(stamp_one(&plan, 50), 50 + 16);
	/* A CPU for which nobody measured. */
	info = info_of(&other_cpu, &top, &shift);
	plan = stamp_plan_make(&info, &options, 0);
	assert_int_equal(stamp_one(&plan, 50), 50 * 3 + 16);
	options.raw = true;
	info = info_of(&stream, &top, &shift);
	plan = stamp_plan_make(&info, &options, 0);
	assert_int_equal(stamp_one(&plan, 50), 50);
}

static void a_frequency_by_hand_takes_the_place_of_tsc2nsec(void **state)
{
	const struct tdm_stream_info stream = { .cpu = 0 };
	const struct tdm_buffer_info top = { .name = "", .clock = "x86-tsc" };
	const struct tdm_stamp_options options = { .clock_hz = 2500000000 };
	struct tdm_trace_info info = info_of(&stream, &top, NULL);

	(void)state;
	info.shift_cpu_count = 0;

	struct stamp_plan plan = stamp_plan_make(&info, &options, 0);

	assert_int_equal(stamp_one(&plan, 5000), 2000 + 11);
}

static void a_corrections_file_takes_the_place_of_the_shift(void **state)
{
	const struct tdm_recorded_sample one = { 1, 1000, 1, 0 };
	const struct tdm_recorded_shift shift = { &one, 1 };
	const struct tdm_stream_info stream = { .cpu = 0 };
	const struct tdm_buffer_info top = { .name = "", .clock = "mono", .shifted = true };
	struct tdm_timeline *timeline = tdm_timeline_from_offset(-300, 0);
	const struct tdm_stamp_options options = { .corrections = timeline };
	struct tdm_trace_info info = info_of(&stream, &top, &shift);

	(void)state;
	info.clock = "mono";
	info.has_tsc2nsec = false;

	struct stamp_plan plan = stamp_plan_make(&info, &options, 0);

	assert_int_equal(stamp_one(&plan, 5000), 4700 + 11);
	tdm_timeline_destroy(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shifts_are_those_of_the_reference_for_every_count_and_place),
		cmocka_unit_test(numbers_by_hand_agree),
		cmocka_unit_test(scaling_counts_with_two_samples_and_not_with_one),
		cmocka_unit_test(hostile_samples_never_trap),
		cmocka_unit_test(ticks_become_ns_as_the_reference_does_it),
		cmocka_unit_test(the_order_is_shift_then_ns_then_offset),
		cmocka_unit_test(raw_takes_nothing_of_it_and_other_clocks_are_left_alone),
		cmocka_unit_test(a_frequency_by_hand_takes_the_place_of_tsc2nsec),
		cmocka_unit_test(a_corrections_file_takes_the_place_of_the_shift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
