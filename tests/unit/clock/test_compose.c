/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <tandem/estimate.h>

#define SECOND 1000000000ULL

/*
 * Two machines made up: raw clocks in ns, the guest's 12.3 ppm off; trace clocks stand a constant away from them and are
 * shown in ticks, floored. Time is the host's raw clock.
 */
struct world {
	uint64_t tick_ns;  /* of both trace clocks */
	const char *clock; /* its name */
	uint64_t
		marker_error_ns; /* by which exchanges tell a trace clock wrongly: a marker's stamp lies anywhere in its bracket */
	uint32_t random;
};

static uint64_t guest_raw(uint64_t at)
{
	return at / 1000000 * 1000012 + at % 1000000 + 77 * SECOND;
}

static uint64_t host_trace(const struct world *world, uint64_t at)
{
	return (at + 5 * SECOND + 3456789) / world->tick_ns;
}

static uint64_t guest_trace(const struct world *world, uint64_t at)
{
	return (guest_raw(at) + 40 * SECOND + 7654321) / world->tick_ns;
}

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random = world->random * 1664525 + 1013904223;
	return (world->random >> 8) % below;
}

static void add_burst(
	struct world *world, struct tdm_exchange_log *log, uint64_t *at, unsigned int count)
{
	static uint64_t sequence;
	struct tdm_local_record local = { .width = 1000 };
	/* Told from the last marker, whose stamp may have been made early or late. */
	const uint64_t error_ns[2] = { draw(world, world->marker_error_ns + 1),
		draw(world, world->marker_error_ns + 1) };

	for (unsigned int i = 0; i < count; i++) {
		const uint64_t sent = *at;
		const uint64_t got = sent + 8000 + draw(world, 4000);
		const uint64_t answered = got + 700;
		const uint64_t back = answered + 8000 + draw(world, 4000);
		const struct tdm_exchange_record record = { .seq = sequence++,
			.has_raw = true,
			.raw = { sent, guest_raw(got), guest_raw(answered), back },
			.trace = { host_trace(world, sent + error_ns[0]),
				guest_trace(world, got - error_ns[1]),
				guest_trace(world, answered - error_ns[1]),
				host_trace(world, back + error_ns[0]) } };

		assert_int_equal(tdm_exchange_log_add(log, &record), TDM_OK);
		*at = back + 2000;
	}
	local.side = TDM_SIDE_HOST;
	local.raw = *at;
	local.trace = host_trace(world, *at - 400 + draw(world, 800));
	assert_int_equal(tdm_exchange_log_add_local(log, &local), TDM_OK);
	local.side = TDM_SIDE_GUEST;
	local.raw = guest_raw(*at);
	local.trace = guest_trace(world, *at - 400 + draw(world, 800));
	assert_int_equal(tdm_exchange_log_add_local(log, &local), TDM_OK);
}

/* @return The widest bound at the events looked at, in units of the trace clock. */
static uint64_t check(struct world *world)
{
	const struct tdm_exchange_log_info info = { .host_clock = world->clock,
		.guest_clock = world->clock,
		.host_unit_hz = SECOND / world->tick_ns,
		.guest_unit_hz = SECOND / world->tick_ns,
		.rate_ppb = 100 };
	struct tdm_exchange_log *log = tdm_exchange_log_create();
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	struct tdm_error err;
	uint64_t at = 1000 * SECOND, widest = 0, last = 0;

	assert_int_equal(tdm_exchange_log_set_info(log, &info, &err), TDM_OK);
	add_burst(world, log, &at, 64);
	for (int i = 0; i < 20; i++) {
		at += SECOND + draw(world, 50000000);
		add_burst(world, log, &at, 32);
	}
	if (tdm_estimate(log, &timeline, &quality, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	assert_true(quality.composed);
	assert_int_equal(tdm_timeline_get_info(timeline).doubt_count, 0);
	/* Also where nobody looked: half a second to either side of the session. */
	for (uint64_t event = 999 * SECOND + SECOND / 2; event < at + SECOND / 2;
		event += 1234567) {
		uint64_t minus, plus;
		const uint64_t told =
			tdm_timeline_apply(timeline, guest_trace(world, event), UINT32_MAX, NULL);
		const uint64_t truth = host_trace(world, event);

		tdm_timeline_bound(timeline, guest_trace(world, event), UINT32_MAX, &minus, &plus);
		if (truth + minus < told || truth > told + plus) {
			fail_msg("at %llu: told %llu -%llu +%llu, true %llu",
				(unsigned long long)event, (unsigned long long)told,
				(unsigned long long)minus, (unsigned long long)plus,
				(unsigned long long)truth);
		}
		assert_true(told >= last);
		last = told;
		if (event > 1000 * SECOND && event < at) {
			widest = minus + plus > widest ? minus + plus : widest;
		}
	}
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	return widest;
}

static void a_clock_that_counts_in_ticks_is_known_to_some_of_them(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct world world = { .tick_ns = 10000000, .clock = "uptime", .random = seed };

		assert_true(check(&world) < 20);
		/* And one that reads no marker: its exchanges tell the ticks. */
		world.clock = "sundial";
		assert_true(check(&world) < 20);
	}
}

static void a_marker_may_have_been_stamped_anywhere_in_its_bracket(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct world world = {
			.tick_ns = 1, .clock = "local", .marker_error_ns = 800, .random = seed
		};

		assert_true(check(&world) < 40000);
	}
}

static void a_clock_that_is_read_is_known_as_well_as_the_path(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct world world = { .tick_ns = 1, .clock = "boot", .random = seed };

		assert_true(check(&world) < 24000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_counts_in_ticks_is_known_to_some_of_them),
		cmocka_unit_test(a_marker_may_have_been_stamped_anywhere_in_its_bracket),
		cmocka_unit_test(a_clock_that_is_read_is_known_as_well_as_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
