/* SPDX-License-Identifier: MIT */
/* What the made-up sessions of tests/sim cannot say in one line each: edges, and what must not matter. */
#include "tdm_cmocka.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/estimate.h>

#define S UINT64_C(1000000000)

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % limit;
}

/* One exchange that begins at a host time; the guest counts 5 ppm faster and shows guest0 at host0. */
static struct tdm_exchange_record exchange(
	uint64_t seq, uint64_t host, uint64_t host0, uint64_t guest0)
{
	const uint64_t got = host + 9000 + random_below(3000);
	const uint64_t sent = got + 700;
	const struct tdm_exchange_record record = { .seq = seq,
		.trace = { host, guest0 + (got - host0) + (got - host0) / 200000,
			guest0 + (sent - host0) + (sent - host0) / 200000,
			sent + 9000 + random_below(3000) } };

	return record;
}

/* Bursts of 16, a second apart. */
static void add_session(struct tdm_exchange_log *log, uint64_t bursts, uint64_t host0,
	uint64_t guest0, uint64_t first_seq)
{
	for (uint64_t b = 0; b < bursts; b++) {
		for (uint64_t i = 0; i < 16; i++) {
			const struct tdm_exchange_record record = exchange(
				first_seq + b * 16 + i, host0 + b * S + i * 50000, host0, guest0);

			assert_int_equal(tdm_exchange_log_add(log, &record), TDM_OK);
		}
	}
}

static struct tdm_exchange_log *new_log(void)
{
	struct tdm_exchange_log *log = tdm_exchange_log_create();

	assert_non_null(log);
	seed = 12345;
	return log;
}

static struct tdm_timeline *estimate(
	const struct tdm_exchange_log *log, struct tdm_quality *quality)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err = { 0 };

	if (tdm_estimate(log, &timeline, quality, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	return timeline;
}

/* The truth lies in the bound, and the estimate is near it. */
static void check_at(const struct tdm_timeline *timeline, uint64_t host, uint64_t host0,
	uint64_t guest0, uint64_t near_ns)
{
	const uint64_t guest = guest0 + (host - host0) + (host - host0) / 200000;
	const uint64_t said = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);
	uint64_t minus;
	uint64_t plus;

	tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
	assert_in_range(host, said - minus, said + plus);
	assert_in_range(said, host - near_ns, host + near_ns);
}

static void readings_of_any_size_and_order_are_met(void **state)
{
	static const struct {
		uint64_t host0, guest0;
	} cases[] = {
		{ 100 * S, 5000 * S },
		{ 5000 * S, 2 },
		{ 315360000 * S, 7 * S },
		{ 3 * S, UINT64_C(1700000000) * S },
		{ UINT64_C(4000000000) * S, UINT64_C(4000000000) * S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdm_exchange_log *log = new_log();
		struct tdm_quality quality;

		add_session(log, 60, cases[i].host0, cases[i].guest0, 0);

		struct tdm_timeline *timeline = estimate(log, &quality);

		assert_int_equal(quality.grade, TDM_GRADE_BOUNDED);
		assert_int_equal(quality.used, 960);
		assert_in_range(quality.rate_ppb + 5100, 0, 200);
		for (uint64_t s = 0; s < 60; s++) {
			check_at(timeline, cases[i].host0 + s * S, cases[i].host0, cases[i].guest0,
				100);
		}
		tdm_timeline_destroy(timeline);
		tdm_exchange_log_destroy(log);
	}
}

static void no_sample_is_unsynced_one_is_weak_two_bursts_are_bounded(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_estimate(log, &timeline, &quality, &err), TDM_ERR_RANGE);
	assert_int_equal(quality.grade, TDM_GRADE_UNSYNCED);
	assert_null(timeline);

	const struct tdm_exchange_record one = exchange(0, 100 * S, 100 * S, 500 * S);
	const struct tdm_exchange_record two = exchange(1, 160 * S, 100 * S, 500 * S);

	tdm_exchange_log_add(log, &one);
	timeline = estimate(log, &quality);
	assert_int_equal(quality.grade, TDM_GRADE_WEAK);
	assert_string_equal(tdm_timeline_get_info(timeline).method, "offset-only");
	check_at(timeline, 100 * S, 100 * S, 500 * S, 3000);
	/* A minute away nothing is known of the rate but that no clock is off by 500 ppm. */
	check_at(timeline, 160 * S, 100 * S, 500 * S, 31000000);
	tdm_timeline_destroy(timeline);

	tdm_exchange_log_add(log, &two);
	timeline = estimate(log, &quality);
	assert_int_equal(quality.grade, TDM_GRADE_BOUNDED);
	check_at(timeline, 130 * S, 100 * S, 500 * S, 5000);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

static void all_bogus_is_unsynced_and_said_so(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	struct tdm_error err;

	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		const struct tdm_exchange_record record = { .seq = i,
			.trace = { 100 + i, 300, 200, 400 + i } };

		tdm_exchange_log_add(log, &record);
	}
	assert_int_equal(tdm_estimate(log, &timeline, &quality, &err), TDM_ERR_RANGE);
	assert_int_equal(quality.bad_stamps, 50);
	assert_non_null(strstr(err.text, "50 exchanges"));
	tdm_exchange_log_destroy(log);
}

static void marked_samples_serve_the_bound_and_never_the_estimate(void **state)
{
	struct tdm_exchange_log *plain = new_log();
	struct tdm_exchange_log *marked;
	struct tdm_quality quality;

	(void)state;
	add_session(plain, 30, 100 * S, 500 * S, 0);
	marked = new_log();
	add_session(marked, 30, 100 * S, 500 * S, 0);
	/* Pipelined: much faster there, slow on the way back. */
	for (uint64_t b = 0; b < 30; b++) {
		struct tdm_exchange_record fast =
			exchange(1000 + b, 100 * S + b * S + 900000, 100 * S, 500 * S);

		fast.marks = b % 2 ? TDM_MARK_PIPELINED : TDM_MARK_CODED;
		fast.trace.host_sent += 6000;
		fast.trace.host_got += 40000;
		tdm_exchange_log_add(marked, &fast);
	}

	struct tdm_timeline *a = estimate(plain, &quality);
	struct tdm_timeline *b = estimate(marked, &quality);
	uint64_t minus[2];
	uint64_t plus[2];
	const uint64_t guest = 515 * S;
	const uint64_t said[2] = { tdm_timeline_apply(a, guest, UINT32_MAX, NULL),
		tdm_timeline_apply(b, guest, UINT32_MAX, NULL) };

	tdm_timeline_bound(a, guest, UINT32_MAX, &minus[0], &plus[0]);
	tdm_timeline_bound(b, guest, UINT32_MAX, &minus[1], &plus[1]);
	assert_in_range(said[1], said[0] - 20, said[0] + 20);
	assert_true(minus[1] + 3000 < minus[0]);
	tdm_timeline_destroy(a);
	tdm_timeline_destroy(b);
	tdm_exchange_log_destroy(plain);
	tdm_exchange_log_destroy(marked);
}

static struct tdm_buffer text_of(const struct tdm_exchange_log *log)
{
	struct tdm_buffer text = { 0 };
	struct tdm_quality quality;
	struct tdm_timeline *timeline = estimate(log, &quality);

	assert_int_equal(tdm_timeline_write(timeline, &text), TDM_OK);
	tdm_timeline_destroy(timeline);
	return text;
}

static void the_order_of_records_does_not_matter(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_exchange_log *shuffled = tdm_exchange_log_create();
	size_t count;

	(void)state;
	add_session(log, 40, 100 * S, 500 * S, 0);
	add_session(log, 40, 150 * S, 550 * S, 2000);

	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);
	size_t *order = calloc(count, sizeof(*order));

	assert_non_null(order);
	for (size_t i = 0; i < count; i++) {
		const size_t j = (size_t)random_below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < count; i++) {
		tdm_exchange_log_add(shuffled, &records[order[i]]);
	}

	struct tdm_buffer a = text_of(log);
	struct tdm_buffer b = text_of(shuffled);

	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.bytes, b.bytes, a.size);
	tdm_buffer_release(&a);
	tdm_buffer_release(&b);
	free(order);
	tdm_exchange_log_destroy(log);
	tdm_exchange_log_destroy(shuffled);
}

static void a_restored_snapshot_begins_an_epoch_and_is_ambiguous(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;

	(void)state;
	add_session(log, 60, 100 * S, 500 * S, 0);
	/* 70 s later the guest shows what it showed 40 s into the session. */
	add_session(log, 60, 170 * S, 540 * S, 5000);

	struct tdm_timeline *timeline = estimate(log, &quality);

	assert_true(quality.ambiguous);
	assert_true(tdm_timeline_get_info(timeline).ambiguous);
	assert_int_equal(tdm_timeline_get_info(timeline).segment_count, 2);
	assert_int_equal(tdm_timeline_segment(timeline, 1).kind, TDM_SEGMENT_EPOCH);
	check_at(timeline, 110 * S, 100 * S, 500 * S, 100);
	check_at(timeline, 200 * S, 170 * S, 540 * S, 100);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

/* Is the truth inside the bound at readings of a session as add_session() makes them? */
static void check_covered(
	const struct tdm_timeline *timeline, uint64_t host, uint64_t host0, uint64_t guest0)
{
	const uint64_t guest = guest0 + (host - host0) + (host - host0) / 200000;
	const uint64_t said = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);
	uint64_t minus;
	uint64_t plus;

	tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
	assert_in_range(host, said - minus, said + plus);
}

static void where_readings_repeat_the_bound_covers_all_that_showed_them(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;
	struct tdm_error err;

	(void)state;
	add_session(log, 60, 100 * S, 500 * S, 0);
	add_session(log, 60, 170 * S, 540 * S, 5000);

	struct tdm_timeline *timeline = estimate(log, &quality);
	struct tdm_buffer text = { 0 };
	struct tdm_timeline *read = NULL;

	for (uint64_t i = 0; i < 60; i++) {
		check_covered(timeline, (100 + i) * S, 100 * S, 500 * S);
		check_covered(timeline, (170 + i) * S, 170 * S, 540 * S);
	}
	/* The file tells it as well. */
	assert_int_equal(tdm_timeline_write(timeline, &text), TDM_OK);
	assert_int_equal(
		tdm_timeline_parse("it", (const char *)text.bytes, text.size, &read, &err), TDM_OK);
	assert_true(tdm_timeline_get_info(read).ambiguous);
	tdm_timeline_destroy(read);
	tdm_buffer_release(&text);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

static void a_restarted_guest_has_a_segment_for_each_run_in_the_order_of_readings(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;

	(void)state;
	add_session(log, 60, 100 * S, 5000 * S, 0);
	add_session(log, 60, 180 * S, 3 * S, 5000);

	struct tdm_timeline *timeline = estimate(log, &quality);

	assert_false(quality.ambiguous);
	assert_false(tdm_timeline_get_info(timeline).ambiguous);
	assert_int_equal(tdm_timeline_get_info(timeline).segment_count, 2);
	assert_int_equal(tdm_timeline_segment(timeline, 0).kind, TDM_SEGMENT_START);
	assert_in_range(tdm_timeline_segment(timeline, 0).from, 0, 3 * S);
	assert_int_equal(tdm_timeline_segment(timeline, 1).kind, TDM_SEGMENT_EPOCH);
	for (uint64_t i = 0; i < 59; i++) {
		check_at(timeline, (100 + i) * S, 100 * S, 5000 * S, 100);
		check_at(timeline, (180 + i) * S, 180 * S, 3 * S, 100);
	}
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

static void the_guest_s_own_mark_says_where_an_epoch_begins(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;
	const struct tdm_epoch_record mark = { 1, 540 * S + 123, "snapshot" };

	(void)state;
	add_session(log, 60, 100 * S, 500 * S, 0);
	add_session(log, 60, 171 * S, 541 * S, 5000);
	tdm_exchange_log_add_epoch(log, &mark);

	struct tdm_timeline *timeline = estimate(log, &quality);

	assert_int_equal(tdm_timeline_get_info(timeline).segment_count, 2);
	assert_in_range(tdm_timeline_segment(timeline, 1).from, mark.guest - 1, mark.guest + 1);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

static void what_the_log_says_of_itself_is_passed_on(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	struct tdm_quality quality;

	(void)state;
	info.host_uuid = "aa";
	info.guest_clock = "mono";
	info.made = "2026-01-02T03:04:05Z";
	info.epoch[TDM_SIDE_HOST] = (struct tdm_epoch_offset){ true, 17, 3 };
	assert_int_equal(tdm_exchange_log_set_info(log, &info, NULL), TDM_OK);
	add_session(log, 3, 100 * S, 500 * S, 10);

	struct tdm_timeline *timeline = estimate(log, &quality);
	const struct tdm_timeline_info said = tdm_timeline_get_info(timeline);

	assert_string_equal(said.host_uuid, "aa");
	assert_string_equal(said.guest_clock, "mono");
	assert_string_equal(said.made, "2026-01-02T03:04:05Z");
	assert_int_equal(said.epoch_offset_ns, 17);
	assert_int_equal(said.samples, 48);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

/* A session of 60 s, and another one behind it that is ahead by so much; what the estimate assumed. */
static uint64_t assumed(uint64_t rate_ppb, uint64_t ahead_ns, uint64_t *beyond)
{
	const struct tdm_exchange_log_info info = {
		.host_unit_hz = S, .guest_unit_hz = S, .rate_ppb = rate_ppb
	};
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;
	struct tdm_error err = { 0 };
	uint64_t minus;

	assert_int_equal(tdm_exchange_log_set_info(log, &info, &err), TDM_OK);
	add_session(log, 60, 1000 * S, 5000 * S, 0);
	add_session(log, 60, 1060 * S, 5060 * S + 300000 + ahead_ns, 60 * 16);

	struct tdm_timeline *timeline = estimate(log, &quality);

	tdm_timeline_bound(timeline, 5220 * S, UINT32_MAX, &minus, beyond);
	assert_int_equal(tdm_timeline_get_info(timeline).rate_ppb, quality.assumed_ppb);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	return quality.assumed_ppb;
}

static void an_allowance_of_one_oscillator_holds_until_the_exchanges_contradict_it(void **state)
{
	uint64_t close, apart, jumped;

	(void)state;
	assert_int_equal(assumed(10, 0, &close), 10);
	assert_int_equal(assumed(100, 0, &apart), 100);
	/* 100 s behind the last exchange: 2 * rho * dt, and what the knots are wider. */
	assert_in_range(apart - close, 17900, 19000);
	assert_int_equal(assumed(10, 1000000, &jumped), 100);
	assert_true(jumped >= apart);
	/* What is said to be known less well, or exactly, stays as it is said. */
	assert_int_equal(assumed(1000, 1000000, &jumped), 1000);
	assert_int_equal(assumed(0, 1000000, &jumped), 0);
}

static void a_peer_with_delayed_acknowledgements_is_recognised(void **state)
{
	struct tdm_exchange_log *log = new_log();
	struct tdm_quality quality;

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		struct tdm_exchange_record record =
			exchange(i, 100 * S + i * 90000000, 100 * S, 500 * S);

		record.trace.host_got += 44000000;
		tdm_exchange_log_add(log, &record);
	}
	tdm_timeline_destroy(estimate(log, &quality));
	assert_true(quality.stalled);
	tdm_exchange_log_destroy(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_of_any_size_and_order_are_met),
		cmocka_unit_test(no_sample_is_unsynced_one_is_weak_two_bursts_are_bounded),
		cmocka_unit_test(all_bogus_is_unsynced_and_said_so),
		cmocka_unit_test(marked_samples_serve_the_bound_and_never_the_estimate),
		cmocka_unit_test(the_order_of_records_does_not_matter),
		cmocka_unit_test(a_restored_snapshot_begins_an_epoch_and_is_ambiguous),
		cmocka_unit_test(where_readings_repeat_the_bound_covers_all_that_showed_them),
		cmocka_unit_test(
			a_restarted_guest_has_a_segment_for_each_run_in_the_order_of_readings),
		cmocka_unit_test(the_guest_s_own_mark_says_where_an_epoch_begins),
		cmocka_unit_test(what_the_log_says_of_itself_is_passed_on),
		cmocka_unit_test(
			an_allowance_of_one_oscillator_holds_until_the_exchanges_contradict_it),
		cmocka_unit_test(a_peer_with_delayed_acknowledgements_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
