/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <tandem/timeline.h>
#include <tandem/wide.h>

/* A fixed generator: the same readings on every machine. */
static uint64_t random_bits(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * UINT64_C(2685821657736338717);
}

static struct tdm_timeline *from_knots(const struct tdm_knot *knots, size_t count)
{
	struct tdm_timeline *timeline = tdm_timeline_create();

	assert_non_null(timeline);
	assert_int_equal(
		tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, knots[0].guest, NULL),
		TDM_OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(tdm_timeline_add_knot(timeline, &knots[i], NULL), TDM_OK);
	}
	return timeline;
}

/* The text of the format, in 128 bits: h_a + floor((g - g_a) * (h_b - h_a) / (g_b - g_a)). */
static uint64_t reference(const struct tdm_knot *knots, size_t count, uint64_t guest)
{
	size_t a = 0;

	while (a + 2 < count && knots[a + 1].guest <= guest) {
		a++;
	}

	const tdm_i128 run = (tdm_i128)(knots[a + 1].guest - knots[a].guest);
	const tdm_i128 rise = (tdm_i128)(knots[a + 1].host - knots[a].host);
	const tdm_i128 product = ((tdm_i128)guest - (tdm_i128)knots[a].guest) * rise;
	tdm_i128 quotient = product / run;

	if (product % run < 0) {
		quotient--;
	}
	quotient += (tdm_i128)knots[a].host;
	if (quotient < 0) {
		return 0;
	}
	return quotient > (tdm_i128)UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

static void check_against_reference(
	const struct tdm_knot *knots, size_t count, uint64_t *seed, size_t rounds)
{
	struct tdm_timeline *timeline = from_knots(knots, count);
	struct tdm_timeline_hint hint = { 0 };
	const uint64_t span = knots[count - 1].guest - knots[0].guest;

	for (size_t i = 0; i < rounds; i++) {
		uint64_t guest = knots[0].guest + random_bits(seed) % (span + 1);

		if (i % 7 == 0) {
			guest = knots[random_bits(seed) % count].guest + random_bits(seed) % 3 - 1;
		}
		if (i % 11 == 0) {
			guest = random_bits(seed) >> (random_bits(seed) % 64);
		}
		assert_int_equal(tdm_timeline_apply(timeline, guest, UINT32_MAX, &hint),
			reference(knots, count, guest));
		assert_int_equal(tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL),
			reference(knots, count, guest));
	}
	tdm_timeline_destroy(timeline);
}

static void application_is_exact_on_random_knots(void **state)
{
	uint64_t seed = 88172645463325252;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct tdm_knot knots[20];
		const unsigned int size = 1 + (unsigned int)(random_bits(&seed) % 56);
		const uint64_t mask = (UINT64_C(1) << size) - 1;
		const size_t count = 2 + random_bits(&seed) % 19;
		const bool alike = round % 2 == 0;
		uint64_t guest = random_bits(&seed) >> 3;
		uint64_t host = random_bits(&seed) >> 3;

		for (size_t i = 0; i < count; i++) {
			const uint64_t step = 1 + (random_bits(&seed) & mask);

			knots[i] = (struct tdm_knot){ guest, host, 5, 5 };
			guest += step;
			host += alike ? step + random_bits(&seed) % 100 - (step > 50 ? 50 : 0)
				      : random_bits(&seed) & mask;
		}
		check_against_reference(knots, count, &seed, 500);
	}
}

static void tsc_ratios_of_32_and_48_bits_are_exact_over_ten_years(void **state)
{
	/* guest = (host * ratio) >> frac, so host = (guest << frac) / ratio. */
	static const struct {
		unsigned int frac;
		uint64_t ratio;
	} cases[] = {
		{ 32, UINT64_C(1) << 32 },
		{ 32, UINT64_C(4011499520) },
		{ 48, UINT64_C(1) << 48 },
		{ 48, UINT64_C(262710230425600) },
		{ 48, UINT64_C(300000000000001) },
	};

	uint64_t seed = 20240229;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Two points of the line: ratio guest ticks are 2^frac host ticks. */
		const struct tdm_knot knots[2] = { { 0, 0, 1, 1 },
			{ cases[i].ratio, UINT64_C(1) << cases[i].frac, 1, 1 } };
		struct tdm_timeline *timeline = from_knots(knots, 2);

		for (int round = 0; round < 20000; round++) {
			/* Ten years of a 4 GHz counter. */
			const uint64_t host = random_bits(&seed) % UINT64_C(1261440000000000000);
			const uint64_t guest =
				(uint64_t)(((tdm_u128)host * cases[i].ratio) >> cases[i].frac);
			const uint64_t back = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);

			assert_int_equal(back,
				(uint64_t)(((tdm_u128)guest << cases[i].frac) / cases[i].ratio));
			assert_true(back <= host && host - back <= 2);
		}
		tdm_timeline_destroy(timeline);
	}
}

static void output_never_goes_back_within_a_segment(void **state)
{
	const struct tdm_knot knots[] = { { 1000, 5000, 1, 1 }, { 1003, 5000, 1, 1 },
		{ 1010, 5001, 1, 1 }, { 1011, 9000, 1, 1 }, { 5000, 12000, 1, 1 } };
	struct tdm_timeline *timeline = from_knots(knots, 5);
	struct tdm_timeline_hint hint = { 0 };
	uint64_t last = 0;

	(void)state;
	for (uint64_t guest = 0; guest < 8000; guest++) {
		const uint64_t host = tdm_timeline_apply(timeline, guest, UINT32_MAX, &hint);

		assert_true(host >= last);
		last = host;
	}
	tdm_timeline_destroy(timeline);
}

static void the_inverse_is_the_least_reading_that_reaches_the_host_time(void **state)
{
	const struct tdm_knot knots[] = { { 1000, 5000, 1, 1 }, { 1003, 5000, 1, 1 },
		{ 1010, 5101, 1, 1 }, { 1511, 5200, 1, 1 }, { 2000, 6500, 1, 1 } };
	struct tdm_timeline *timeline = from_knots(knots, 5);

	(void)state;
	for (uint64_t host = 4900; host < 8000; host++) {
		uint64_t guest;

		/* The line before the first knots is flat: it never comes from below 5000. */
		if (tdm_timeline_invert(timeline, host, &guest) != TDM_OK) {
			assert_true(host < 5000);
			continue;
		}
		assert_true(tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL) >= host);
		assert_true(guest == 0 ||
			    tdm_timeline_apply(timeline, guest - 1, UINT32_MAX, NULL) < host);
	}
	tdm_timeline_destroy(timeline);
}

static void random_readings_survive_the_round_trip(void **state)
{
	uint64_t seed = 7;
	const uint64_t guest0 = UINT64_C(3) << 50;
	const uint64_t host0 = UINT64_C(1) << 52;
	const struct tdm_knot knots[] = { { guest0, host0, 1, 1 },
		{ guest0 + 1000000007, host0 + 1000010007, 1, 1 },
		{ guest0 + 5000000007, host0 + 5000090007, 1, 1 } };
	struct tdm_timeline *timeline = from_knots(knots, 3);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const uint64_t guest = guest0 - 1000000000 + random_bits(&seed) % 8000000000;
		const uint64_t host = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);
		uint64_t back;

		assert_int_equal(tdm_timeline_invert(timeline, host, &back), TDM_OK);
		/* Slope above 1: no two guest readings share a host reading. */
		assert_int_equal(back, guest);
	}
	tdm_timeline_destroy(timeline);
}

/* A pause: guest time goes on at 2000 where the host shows 9000 instead of 2100. */
static struct tdm_timeline *paused(void)
{
	const struct tdm_knot first[] = { { 1000, 1100, 10, 20 }, { 2000, 2100, 10, 20 } };
	const struct tdm_knot second[] = { { 2000, 9000, 10, 20 }, { 3000, 10000, 10, 20 } };
	struct tdm_timeline *timeline = from_knots(first, 2);

	assert_int_equal(tdm_timeline_add_segment(timeline, TDM_SEGMENT_STEP, 2000, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &second[0], NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &second[1], NULL), TDM_OK);
	return timeline;
}

static void a_host_time_inside_a_pause_gives_the_edge_and_says_so(void **state)
{
	struct tdm_timeline *timeline = paused();
	uint64_t guest = 0;

	(void)state;
	assert_int_equal(tdm_timeline_invert(timeline, 5000, &guest), TDM_ERR_RANGE);
	assert_int_equal(guest, 2000);
	assert_int_equal(tdm_timeline_invert(timeline, 2099, &guest), TDM_OK);
	assert_int_equal(guest, 1999);
	assert_int_equal(tdm_timeline_invert(timeline, 9000, &guest), TDM_OK);
	assert_int_equal(guest, 2000);
	assert_int_equal(tdm_timeline_apply(timeline, 1999, UINT32_MAX, NULL), 2099);
	assert_int_equal(tdm_timeline_apply(timeline, 2000, UINT32_MAX, NULL), 9000);
	tdm_timeline_destroy(timeline);
}

static void the_bound_in_a_doubt_range_covers_both_sides(void **state)
{
	struct tdm_timeline *timeline = paused();
	uint64_t minus;
	uint64_t plus;

	(void)state;
	tdm_timeline_bound(timeline, 1990, UINT32_MAX, &minus, &plus);
	assert_in_range(minus, 10, 11);
	assert_in_range(plus, 20, 21);
	assert_int_equal(tdm_timeline_add_doubt(timeline, 1980, 2000, NULL), TDM_OK);
	tdm_timeline_bound(timeline, 1990, UINT32_MAX, &minus, &plus);
	/* The other side says 8990, 20 above at most and its growth outside. */
	assert_in_range(plus, 8990 + 20 - 2090, 8990 + 24 - 2090);
	tdm_timeline_bound(timeline, 2000, UINT32_MAX, &minus, &plus);
	assert_in_range(minus, 9000 - 2100 + 10, 9000 - 2100 + 12);
	tdm_timeline_destroy(timeline);
}

static void outside_the_knots_the_bound_grows_and_the_line_goes_on(void **state)
{
	const struct tdm_knot knots[] = { { 1000000000, 2000000000, 100, 200 },
		{ 2000000000, 3000010000, 100, 200 } };
	struct tdm_timeline *timeline = from_knots(knots, 2);
	uint64_t minus;
	uint64_t plus;

	(void)state;
	assert_int_equal(tdm_timeline_apply(timeline, 3000000000, UINT32_MAX, NULL), 4000020000);
	/* 1 s outside: 2 * 100 ppb of it, and 300 units over the span of 1 s. */
	tdm_timeline_bound(timeline, 3000000000, UINT32_MAX, &minus, &plus);
	assert_int_equal(minus, 100 + 200 + 300);
	assert_int_equal(plus, 200 + 200 + 300);
	tdm_timeline_bound(timeline, 1000000000, UINT32_MAX, &minus, &plus);
	assert_int_equal(minus, 100);
	assert_int_equal(plus, 200);
	tdm_timeline_destroy(timeline);
}

static void readings_that_would_lie_before_the_origin_are_held_at_0(void **state)
{
	struct tdm_timeline *timeline = tdm_timeline_from_offset(-5000, 3);
	int64_t offset;
	uint64_t guest;
	uint64_t minus;
	uint64_t plus;

	(void)state;
	assert_int_equal(tdm_timeline_apply(timeline, 4999, UINT32_MAX, NULL), 0);
	assert_int_equal(tdm_timeline_apply(timeline, 5001, UINT32_MAX, NULL), 1);
	assert_int_equal(
		tdm_timeline_apply(timeline, UINT64_MAX, UINT32_MAX, NULL), UINT64_MAX - 5000);
	assert_true(tdm_timeline_is_constant(timeline, &offset));
	assert_int_equal(offset, -5000);
	assert_int_equal(tdm_timeline_invert(timeline, 7, &guest), TDM_OK);
	assert_int_equal(guest, 5007);
	tdm_timeline_bound(timeline, 123456789, UINT32_MAX, &minus, &plus);
	assert_int_equal(minus, 3);
	assert_int_equal(plus, 3);
	tdm_timeline_destroy(timeline);

	timeline = tdm_timeline_from_offset(5000, 0);
	assert_int_equal(
		tdm_timeline_apply(timeline, UINT64_MAX - 1, UINT32_MAX, NULL), UINT64_MAX);
	assert_int_equal(tdm_timeline_apply(timeline, 0, UINT32_MAX, NULL), 5000);
	tdm_timeline_destroy(timeline);
}

static void an_empty_timeline_changes_nothing(void **state)
{
	struct tdm_timeline *timeline = tdm_timeline_create();
	uint64_t low;
	uint64_t high;

	(void)state;
	assert_int_equal(tdm_timeline_apply(timeline, 77, 3, NULL), 77);
	tdm_timeline_bound(timeline, 77, 3, &low, &high);
	assert_int_equal(low, UINT64_MAX);
	assert_false(tdm_timeline_range(timeline, &low, &high));
	assert_int_equal(tdm_timeline_invert(timeline, 5, &low), TDM_ERR_RANGE);
	tdm_timeline_destroy(timeline);
}

static void a_lone_knot_goes_on_at_the_nominal_rate(void **state)
{
	struct tdm_timeline *timeline = tdm_timeline_create();
	struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	const struct tdm_knot knot = { 1000, 50000, 0, 0 };

	(void)state;
	info.guest_unit_hz = 2000000000;
	info.host_unit_hz = 3000000000;
	assert_int_equal(tdm_timeline_set_info(timeline, &info, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, 1000, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &knot, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 3000, UINT32_MAX, NULL), 53000);
	assert_int_equal(tdm_timeline_apply(timeline, 999, UINT32_MAX, NULL), 49998);
	assert_int_equal(tdm_timeline_host_ns(timeline, 53000), 17666);
	tdm_timeline_destroy(timeline);
}

static void a_cpu_offset_comes_before_everything_else(void **state)
{
	struct tdm_timeline *timeline = paused();
	uint64_t minus;
	uint64_t plus;
	int64_t offset;

	(void)state;
	assert_int_equal(tdm_timeline_add_cpu(timeline, 3, -7, 4, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 1507, 3, NULL), 1600);
	assert_int_equal(tdm_timeline_apply(timeline, 1507, 2, NULL), 1607);
	assert_int_equal(tdm_timeline_apply(timeline, 1507, UINT32_MAX, NULL), 1607);
	assert_int_equal(tdm_timeline_apply(timeline, 1507, 8000, NULL), 1607);
	/* The segment is picked by the corrected reading: 2003 - 7 lies before the pause. */
	assert_int_equal(tdm_timeline_apply(timeline, 2003, 3, NULL), 2096);
	assert_int_equal(tdm_timeline_apply(timeline, 3, 3, NULL), 100);
	tdm_timeline_bound(timeline, 1007, 3, &minus, &plus);
	assert_int_equal(minus, 14);
	assert_int_equal(plus, 24);
	assert_false(tdm_timeline_is_constant(timeline, &offset));
	assert_int_equal(tdm_timeline_add_cpu(timeline, 1 << 20, 1, 1, NULL), TDM_ERR_RANGE);
	tdm_timeline_destroy(timeline);
}

static void a_later_epoch_wins_where_readings_repeat(void **state)
{
	struct tdm_timeline *timeline = paused();
	const struct tdm_knot again[] = { { 1500, 20000, 1, 1 }, { 4000, 22500, 1, 1 } };
	uint64_t first;
	uint64_t last;

	(void)state;
	assert_false(tdm_timeline_get_info(timeline).ambiguous);
	assert_int_equal(
		tdm_timeline_add_segment(timeline, TDM_SEGMENT_STEP, 1500, NULL), TDM_ERR_RANGE);
	assert_int_equal(tdm_timeline_add_segment(timeline, TDM_SEGMENT_EPOCH, 1500, NULL), TDM_OK);
	/* Until its first knot is there the old relation holds. */
	assert_int_equal(tdm_timeline_apply(timeline, 1600, UINT32_MAX, NULL), 1700);
	assert_int_equal(tdm_timeline_add_knot(timeline, &again[0], NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &again[1], NULL), TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 1499, UINT32_MAX, NULL), 1599);
	assert_int_equal(tdm_timeline_apply(timeline, 1500, UINT32_MAX, NULL), 20000);
	assert_int_equal(tdm_timeline_apply(timeline, 2500, UINT32_MAX, NULL), 21000);
	assert_true(tdm_timeline_get_info(timeline).ambiguous);
	assert_true(tdm_timeline_range(timeline, &first, &last));
	assert_int_equal(first, 1000);
	assert_int_equal(last, 4000);
	tdm_timeline_destroy(timeline);
}

static void a_clock_that_began_anew_leaves_what_was_before(void **state)
{
	struct tdm_timeline *timeline = paused();
	const struct tdm_knot anew[] = { { 100, 30000, 1, 1 }, { 400, 30300, 1, 1 },
		{ 1200, 31100, 1, 1 } };
	uint64_t guest;

	(void)state;
	assert_int_equal(tdm_timeline_add_segment(timeline, TDM_SEGMENT_EPOCH, 90, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &anew[0], NULL), TDM_OK);
	assert_int_equal(tdm_timeline_add_knot(timeline, &anew[1], NULL), TDM_OK);
	/* Each reading by the run that showed it; below all of them by the lowest. */
	assert_int_equal(tdm_timeline_apply(timeline, 50, UINT32_MAX, NULL), 29950);
	assert_int_equal(tdm_timeline_apply(timeline, 300, UINT32_MAX, NULL), 30200);
	assert_int_equal(tdm_timeline_apply(timeline, 900, UINT32_MAX, NULL), 30800);
	assert_int_equal(tdm_timeline_apply(timeline, 1500, UINT32_MAX, NULL), 1600);
	assert_int_equal(tdm_timeline_apply(timeline, 2500, UINT32_MAX, NULL), 9500);
	assert_false(tdm_timeline_get_info(timeline).ambiguous);
	/* The later time has the lower readings. */
	assert_int_equal(tdm_timeline_invert(timeline, 1600, &guest), TDM_OK);
	assert_int_equal(guest, 1500);
	assert_int_equal(tdm_timeline_invert(timeline, 30200, &guest), TDM_OK);
	assert_int_equal(guest, 300);
	/* It goes on until it shows readings of the run before again: then that one is gone. */
	assert_int_equal(tdm_timeline_add_knot(timeline, &anew[2], NULL), TDM_OK);
	assert_true(tdm_timeline_get_info(timeline).ambiguous);
	assert_int_equal(tdm_timeline_apply(timeline, 1500, UINT32_MAX, NULL), 31400);
	tdm_timeline_destroy(timeline);
}

static void a_hint_from_elsewhere_does_no_harm(void **state)
{
	struct tdm_timeline *timeline = paused();
	struct tdm_timeline_hint hint = { UINT32_MAX };

	(void)state;
	assert_int_equal(tdm_timeline_apply(timeline, 2500, UINT32_MAX, &hint), 9500);
	assert_int_equal(tdm_timeline_apply(timeline, 1500, UINT32_MAX, &hint), 1600);
	hint.piece = 1;
	assert_int_equal(tdm_timeline_apply(timeline, 1500, UINT32_MAX, &hint), 1600);
	tdm_timeline_destroy(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(application_is_exact_on_random_knots),
		cmocka_unit_test(tsc_ratios_of_32_and_48_bits_are_exact_over_ten_years),
		cmocka_unit_test(output_never_goes_back_within_a_segment),
		cmocka_unit_test(the_inverse_is_the_least_reading_that_reaches_the_host_time),
		cmocka_unit_test(random_readings_survive_the_round_trip),
		cmocka_unit_test(a_host_time_inside_a_pause_gives_the_edge_and_says_so),
		cmocka_unit_test(the_bound_in_a_doubt_range_covers_both_sides),
		cmocka_unit_test(outside_the_knots_the_bound_grows_and_the_line_goes_on),
		cmocka_unit_test(readings_that_would_lie_before_the_origin_are_held_at_0),
		cmocka_unit_test(an_empty_timeline_changes_nothing),
		cmocka_unit_test(a_lone_knot_goes_on_at_the_nominal_rate),
		cmocka_unit_test(a_cpu_offset_comes_before_everything_else),
		cmocka_unit_test(a_later_epoch_wins_where_readings_repeat),
		cmocka_unit_test(a_clock_that_began_anew_leaves_what_was_before),
		cmocka_unit_test(a_hint_from_elsewhere_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
