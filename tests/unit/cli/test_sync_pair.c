/* SPDX-License-Identifier: MIT */
#include "sync_pair.h"
#include "tdm_cmocka.h"
#include <stdio.h>

#define HOST_HZ  2400000000ULL
#define GUEST_HZ 2400000000ULL
#define MS       1000000ULL

/* A host whose wall clock is steered by ppm against its TSC, and a guest whose TSC is 5 s behind. Time is the host's, ns. */
struct world {
	double steered;
	uint64_t bend_at_ns; /* from here on steered the other way */
};

static uint64_t real_ns(const struct world *world, uint64_t at_ns)
{
	const double before = (double)(at_ns < world->bend_at_ns ? at_ns : world->bend_at_ns);
	const double behind = at_ns > world->bend_at_ns ? (double)(at_ns - world->bend_at_ns) : 0;

	return 1700000000000000000ULL + at_ns +
	       (uint64_t)(int64_t)(before * world->steered - behind * world->steered);
}

static uint64_t host_ticks(uint64_t at_ns)
{
	return at_ns * 24 / 10 + 777;
}

static uint64_t guest_ticks(uint64_t at_ns)
{
	return host_ticks(at_ns) - 5 * HOST_HZ / 1000;
}

static struct tdm_sandwich read_both(const struct world *world, uint64_t at_ns)
{
	return (struct tdm_sandwich){
		.outer = host_ticks(at_ns), .inner = real_ns(world, at_ns + 10), .width = 120
	};
}

static bool place(const struct world *world, uint64_t asked_ns, uint64_t read_ns, uint64_t got_ns,
	struct tdm_exchange_sample *sample)
{
	const struct tdm_requester_answer answer = { .before = read_both(world, asked_ns),
		.after = read_both(world, got_ns) };
	const struct sync_pair pair = { .before = { guest_ticks(read_ns - 300),
						guest_ticks(read_ns - 300) },
		.host_ns = real_ns(world, read_ns),
		.after = { guest_ticks(read_ns + 500), guest_ticks(read_ns + 500) } };

	return sync_pair_place(&pair, &answer, HOST_HZ, GUEST_HZ, true, sample);
}

static void a_pair_never_contradicts_the_truth_and_is_as_narrow_as_its_reading(void **state)
{
	(void)state;
	for (int ppm = -500; ppm <= 500; ppm += 100) {
		for (uint64_t into_ns = 1000; into_ns < 200000; into_ns += 7919) {
			const struct world world = { .steered = ppm * 1e-6,
				.bend_at_ns = 1000 * MS + into_ns / 2 };
			struct tdm_exchange_sample sample;

			assert_true(place(&world, 1000 * MS, 1000 * MS + into_ns,
				1000 * MS + 200000, &sample));
			/* guest + 5 ms of ticks is the host's reading */
			assert_true(sample.h1_raw <= sample.g2_raw + 5 * HOST_HZ / 1000);
			assert_true(sample.h4_raw >= sample.g3_raw + 5 * HOST_HZ / 1000);
			assert_true(sample.h4_raw - sample.h1_raw <
				    2 * (800 + 200) * 24 / 10 + 2 * 600);
			assert_int_equal(sample.h1, sample.h1_raw);
			assert_int_equal(sample.flags, 0);
		}
	}
}

static void a_reading_of_another_clock_is_left_out(void **state)
{
	const struct world world = { .bend_at_ns = UINT64_MAX };
	struct tdm_exchange_sample sample;

	(void)state;
	/* Another machine's, or a lie: not made between the asking and the answer. */
	assert_false(place(&world, 1000 * MS, 999 * MS, 1001 * MS, &sample));
	assert_false(place(&world, 1000 * MS, 1002 * MS, 1001 * MS, &sample));

	/* Our wall clock was set meanwhile. */
	struct tdm_requester_answer answer = { .before = read_both(&world, 1000 * MS),
		.after = read_both(&world, 1001 * MS) };
	const struct sync_pair pair = {
		.before = { 5, 5 }, .host_ns = answer.before.inner + 1000, .after = { 6, 6 }
	};

	assert_true(sync_pair_place(&pair, &answer, HOST_HZ, GUEST_HZ, true, &sample));
	answer.after.inner += 10000;
	assert_false(sync_pair_place(&pair, &answer, HOST_HZ, GUEST_HZ, true, &sample));
	answer.after.inner = answer.before.inner - 1;
	assert_false(sync_pair_place(&pair, &answer, HOST_HZ, GUEST_HZ, true, &sample));
}

/* On this machine, where both are one: the truth is that they do not differ, for raw and trace clocks alike. */
static void a_real_pair_is_placed_around_its_own_time(void **state)
{
	struct tdm_local_clock clock = { .trace = TDM_CLOCK_BOOT, .raw = TDM_CLOCK_RAW };

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct tdm_requester_answer answer = { .before = tdm_clock_sandwich(
							       clock.raw, TDM_CLOCK_REAL) };
		struct tdm_exchange_sample sample;
		struct sync_pair pair;

		answer.sent = tdm_local_clock_departure(&clock);
		pair.before = tdm_local_clock_arrival(&clock);
		pair.host_ns = tdm_clock_read(TDM_CLOCK_REAL);
		pair.after = tdm_local_clock_departure(&clock);
		answer.got = tdm_local_clock_arrival(&clock);
		answer.after = tdm_clock_sandwich(clock.raw, TDM_CLOCK_REAL);
		assert_true(
			sync_pair_place(&pair, &answer, 1000000000, 1000000000, false, &sample));
		assert_int_equal(sample.flags, TDM_SAMPLE_HAS_RAW);
		assert_true(sample.h1_raw <= sample.g2_raw && sample.h4_raw >= sample.g3_raw);
		assert_true(sample.h1 <= sample.g2 && sample.h4 >= sample.g3);
	}
}

static void what_is_no_pair_is_not_read_as_one(void **state)
{
	static const char *const wrong[] = { "", "p", "p 1 2 3 4", "p 1 2 3 4 x", "l 1 2 3 4 5",
		"p 0 2 3 4 5", "p 9 2 3 4 5", "p 1 9 3 4 5", "p 1 2 3 4 99999999999999999999",
		"p 1 2 4611686018427387904 4 5" };
	struct sync_pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(sync_pair_parse(wrong[i], &pair));
	}
	assert_true(sync_pair_parse("p 1 2 3 4 5", &pair));
	assert_int_equal(pair.before.raw, 1);
	assert_int_equal(pair.before.trace, 2);
	assert_int_equal(pair.host_ns, 3);
	assert_int_equal(pair.after.trace, 4);
	assert_int_equal(pair.after.raw, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_pair_never_contradicts_the_truth_and_is_as_narrow_as_its_reading),
		cmocka_unit_test(a_reading_of_another_clock_is_left_out),
		cmocka_unit_test(a_real_pair_is_placed_around_its_own_time),
		cmocka_unit_test(what_is_no_pair_is_not_read_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
