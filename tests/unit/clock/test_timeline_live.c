/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/timeline_live.h>

static void feed(struct tdm_live *live, const char *line)
{
	struct tdm_error err = { .status = TDM_OK };
	const enum tdm_status status = tdm_live_feed(live, line, &err);

	if (status != TDM_OK && status != TDM_END) {
		fail_msg("\"%s\": %s", line, err.text);
	}
}

static struct tdm_live *begun(void)
{
	struct tdm_live *live = tdm_live_create();

	feed(live, "tandem-corrections 1");
	feed(live, "segment start 0 0");
	return live;
}

static void knot(struct tdm_live *live, uint64_t guest, uint64_t host)
{
	char line[96];

	snprintf(line, sizeof(line), "k %" PRIu64 " %" PRIu64 " 5 5", guest, host);
	feed(live, line);
}

static void it_is_not_ready_before_its_first_knot(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	assert_false(tdm_live_is_ready(live));
	knot(live, 1000, 2000);
	assert_true(tdm_live_is_ready(live));
	assert_int_equal(tdm_live_known_until(live), 1000);
	assert_int_equal(tdm_live_apply(live, 1500, UINT32_MAX), 2500);
	feed(live, "end");
	assert_true(tdm_live_known_until(live) == UINT64_MAX);
	tdm_live_destroy(live);
}

static void readings_up_to_the_last_knot_are_those_of_the_file(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 1000, 2000);
	knot(live, 3000, 4400);
	assert_int_equal(tdm_live_apply(live, 2000, UINT32_MAX), 3200);
	knot(live, 5000, 6000);
	assert_int_equal(tdm_live_apply(live, 2000, UINT32_MAX), 3200);
	assert_int_equal(tdm_live_apply(live, 4000, UINT32_MAX), 5200);
	tdm_live_destroy(live);
}

/* The service disagrees with what was extrapolated: nothing given out changes, and nothing jumps. */
static void what_was_given_out_never_changes(void **state)
{
	enum {
		READINGS = 4000
	};
	struct tdm_live *live = begun();
	uint64_t *given = calloc(READINGS, sizeof(*given));
	const uint64_t step = 1000000; /* 1 ms */

	(void)state;
	knot(live, 0, 1000000);
	for (uint64_t i = 0; i < READINGS; i++) {
		given[i] = tdm_live_apply(live, i * step, UINT32_MAX);
		if (i) {
			const uint64_t rise = given[i] - given[i - 1];

			/* 500 ppm around the rates that the knots below say, which are within 60 ppm of 1. */
			assert_true(given[i] >= given[i - 1]);
			assert_in_range(rise, step - step / 1700, step + step / 1700);
		}
		/* Each knot is late by 150 ms and off by up to 10 us, to and fro. */
		if (i % 200 == 150) {
			const uint64_t at = (i - 150) * step + 1;

			knot(live, at, at + 1000000 + (i / 200 % 2 ? 10000 : 0));
		}
		for (uint64_t k = 0; k <= i; k += 97) {
			assert_int_equal(tdm_live_apply(live, k * step, UINT32_MAX), given[k]);
		}
	}
	free(given);
	tdm_live_destroy(live);
}

static void it_comes_back_to_the_measured_line(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 0, 0);
	(void)tdm_live_apply(live, 1000000000, UINT32_MAX);
	knot(live, 2000000000,
		2000050000); /* 25 us more than was assumed at 1 s: met after 50 ms */
	knot(live, 3000000000, 3000075000);
	assert_int_equal(tdm_live_apply(live, 1000000000, UINT32_MAX), 1000000000);
	assert_int_equal(tdm_live_apply(live, 1500000000, UINT32_MAX), 1500037500);
	assert_int_equal(tdm_live_apply(live, 3000000000, UINT32_MAX), 3000075000);
	tdm_live_destroy(live);
}

static void a_jump_ahead_in_the_past_is_taken_at_once(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 0, 0);
	assert_int_equal(tdm_live_apply(live, 5000, UINT32_MAX), 5000);
	feed(live, "segment step 4000 0");
	knot(live, 4000, 1000004000);
	assert_int_equal(tdm_live_apply(live, 5000, UINT32_MAX), 5000);
	assert_int_equal(tdm_live_apply(live, 5001, UINT32_MAX), 1000005001);
	tdm_live_destroy(live);
}

static void a_jump_back_in_the_past_stands_still(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 0, 10000);
	assert_int_equal(tdm_live_apply(live, 5000, UINT32_MAX), 15000);
	feed(live, "segment step 4000 0");
	knot(live, 4000, 4000); /* the host's clock is 10 us less now */
	assert_int_equal(tdm_live_apply(live, 5001, UINT32_MAX), 15000);
	assert_int_equal(tdm_live_apply(live, 14999, UINT32_MAX), 15000);
	assert_int_equal(tdm_live_apply(live, 15001, UINT32_MAX), 15001);
	tdm_live_destroy(live);
}

static void a_jump_ahead_of_the_readings_changes_nothing_before_it(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 0, 0);
	assert_int_equal(tdm_live_apply(live, 100, UINT32_MAX), 100);
	feed(live, "segment step 5000 0");
	knot(live, 6000, 106000);
	assert_int_equal(tdm_live_apply(live, 4999, UINT32_MAX), 4999);
	assert_int_equal(tdm_live_apply(live, 5000, UINT32_MAX), 105000);
	tdm_live_destroy(live);
}

static void a_second_connection_tells_nothing_twice(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 1000, 2000);
	knot(live, 2000, 3000);
	tdm_live_begin_again(live);
	feed(live, "tandem-corrections 1");
	feed(live, "segment start 0 0");
	knot(live, 1000, 2000);
	knot(live, 2000, 3000);
	knot(live, 3000, 4000);
	assert_int_equal(tdm_timeline_get_info(tdm_live_timeline(live)).knot_count, 3);
	assert_int_equal(tdm_live_known_until(live), 3000);
	tdm_live_destroy(live);
}

static void a_service_of_a_new_session_goes_on_behind_what_is_known(void **state)
{
	struct tdm_live *live = begun();

	(void)state;
	knot(live, 1000, 2000);
	knot(live, 2000, 3000);
	tdm_live_begin_again(live);
	feed(live, "tandem-corrections 1");
	feed(live, "segment start 1500 0");
	knot(live, 1600, 2700);
	knot(live, 9000, 10100);
	knot(live, 10000, 11100);
	assert_int_equal(tdm_live_apply(live, 2000, UINT32_MAX), 3000);
	assert_int_equal(tdm_live_apply(live, 9500, UINT32_MAX), 10600);
	tdm_live_destroy(live);
}

static void a_second_connection_after_a_bare_head_begins_anew(void **state)
{
	struct tdm_live *live = tdm_live_create();

	(void)state;
	feed(live, "tandem-corrections 1");
	tdm_live_begin_again(live);
	feed(live, "tandem-corrections 1");
	feed(live, "segment start 0 0");
	knot(live, 7, 8);
	assert_int_equal(tdm_live_apply(live, 7, UINT32_MAX), 8);
	tdm_live_destroy(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_not_ready_before_its_first_knot),
		cmocka_unit_test(readings_up_to_the_last_knot_are_those_of_the_file),
		cmocka_unit_test(what_was_given_out_never_changes),
		cmocka_unit_test(it_comes_back_to_the_measured_line),
		cmocka_unit_test(a_jump_ahead_in_the_past_is_taken_at_once),
		cmocka_unit_test(a_jump_back_in_the_past_stands_still),
		cmocka_unit_test(a_jump_ahead_of_the_readings_changes_nothing_before_it),
		cmocka_unit_test(a_second_connection_tells_nothing_twice),
		cmocka_unit_test(a_service_of_a_new_session_goes_on_behind_what_is_known),
		cmocka_unit_test(a_second_connection_after_a_bare_head_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
