/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/estimate.h>

#define SECOND UINT64_C(1000000000)

enum {
	OFFSET = 777000,
	PER_BURST = 16
};

/* A burst at a host time: the guest is OFFSET behind, plus what jumps added; delays grow from a least one each way. */
static void add_burst(
	struct tdm_estimator *estimator, uint64_t *seq, uint64_t host, uint64_t guest_ahead)
{
	for (unsigned int i = 0; i < PER_BURST; i++) {
		const uint64_t delay = 5000 + (i * 7919 + *seq * 104729) % 3000;
		const struct tdm_exchange_record record = {
			.seq = *seq,
			.trace = {
				.host_sent = host,
				.guest_got = host + delay - OFFSET + guest_ahead,
				.guest_sent = host + delay + 500 - OFFSET + guest_ahead,
				.host_got = host + 2 * delay + 500,
			},
		};

		assert_int_equal(tdm_estimator_add(estimator, &record), TDM_OK);
		(*seq)++;
		host += 30000;
	}
}

/* Feeds the lines to a timeline, as a reader of the service would. */
static void feed(struct tdm_timeline *timeline, struct tdm_buffer *lines)
{
	assert_int_equal(tdm_buffer_append(lines, "", 1), TDM_OK);
	for (char *line = strtok((char *)lines->bytes, "\n"); line; line = strtok(NULL, "\n")) {
		struct tdm_error err = { 0 };

		if (tdm_timeline_feed_line(timeline, line, &err) != TDM_OK) {
			fail_msg("%s: %s", line, err.text);
		}
	}
	lines->size = 0;
}

static void what_goes_out_is_a_growing_timeline_that_holds_the_truth(void **state)
{
	const struct tdm_exchange_log_info info = { .host_unit_hz = SECOND,
		.guest_unit_hz = SECOND };
	struct tdm_estimator *estimator = tdm_estimator_create(&info);
	struct tdm_timeline *timeline = tdm_timeline_create();
	struct tdm_buffer lines = { 0 };
	uint64_t seq = 0;

	(void)state;
	for (unsigned int second = 100; second < 160; second++) {
		add_burst(estimator, &seq, second * SECOND, 0);
		assert_int_equal(tdm_estimator_update(estimator, &lines, NULL), TDM_OK);
		feed(timeline, &lines);
	}
	assert_int_equal(tdm_timeline_get_info(timeline).segment_count, 1);
	assert_true(tdm_timeline_get_info(timeline).knot_count > 30);
	for (uint64_t host = 101 * SECOND; host < 159 * SECOND; host += SECOND / 3) {
		uint64_t minus, plus;
		const uint64_t guest = host - OFFSET;
		const uint64_t told = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);

		tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
		assert_true(host + minus >= told && host <= told + plus);
	}
	tdm_timeline_destroy(timeline);
	tdm_estimator_destroy(estimator);
	tdm_buffer_release(&lines);
}

static void a_jump_of_the_guest_opens_a_segment(void **state)
{
	const struct tdm_exchange_log_info info = { .host_unit_hz = SECOND,
		.guest_unit_hz = SECOND };
	struct tdm_estimator *estimator = tdm_estimator_create(&info);
	struct tdm_timeline *timeline = tdm_timeline_create();
	struct tdm_buffer lines = { 0 };
	uint64_t seq = 0;

	(void)state;
	for (unsigned int second = 100; second < 130; second++) {
		add_burst(estimator, &seq, second * SECOND, second < 115 ? 0 : 3 * SECOND);
		assert_int_equal(tdm_estimator_update(estimator, &lines, NULL), TDM_OK);
		feed(timeline, &lines);
	}
	assert_int_equal(tdm_timeline_get_info(timeline).segment_count, 2);

	const uint64_t guest = 125 * SECOND - OFFSET + 3 * SECOND;
	const uint64_t told = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);

	assert_true(told > 125 * SECOND - 10000 && told < 125 * SECOND + 10000);
	tdm_timeline_destroy(timeline);
	tdm_estimator_destroy(estimator);
	tdm_buffer_release(&lines);
}

static void nothing_usable_yet_is_no_fault(void **state)
{
	const struct tdm_exchange_log_info info = { .host_unit_hz = SECOND,
		.guest_unit_hz = SECOND };
	struct tdm_estimator *estimator = tdm_estimator_create(&info);
	struct tdm_buffer lines = { 0 };

	(void)state;
	assert_int_equal(tdm_estimator_update(estimator, &lines, NULL), TDM_OK);
	assert_int_equal(lines.size, 0);
	tdm_estimator_destroy(estimator);
	tdm_buffer_release(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_out_is_a_growing_timeline_that_holds_the_truth),
		cmocka_unit_test(a_jump_of_the_guest_opens_a_segment),
		cmocka_unit_test(nothing_usable_yet_is_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
