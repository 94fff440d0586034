/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <string.h>
#include <tandem/estimate.h>
#include <tandem/wide.h>

static const struct tdm_timeline_info no_info = { 0 };

static uint64_t guest_reading(const struct tdm_tsc_relation *vcpu, uint64_t host)
{
	const uint64_t scaled =
		vcpu->ratio ? (uint64_t)(((tdm_u128)host * vcpu->ratio) >> vcpu->frac_bits) : host;

	return scaled + (uint64_t)vcpu->offset;
}

/* Applies the exact timeline to what a guest would read at host readings all over a decade. */
static void check_within_a_tick(const struct tdm_tsc_relation *vcpu)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err = { 0 };

	if (tdm_timeline_from_tsc(&no_info, vcpu, 1, &timeline, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	for (unsigned int bit = 44; bit < 60; bit++) {
		const uint64_t host = (UINT64_C(1) << bit) + 12345678901;
		const uint64_t back =
			tdm_timeline_apply(timeline, guest_reading(vcpu, host), UINT32_MAX, NULL);
		const uint64_t apart = back > host ? back - host : host - back;

		assert_true(apart <= (vcpu->ratio ? 2 : 0));
	}
	tdm_timeline_destroy(timeline);
}

static void an_offset_alone_is_undone_to_the_tick(void **state)
{
	(void)state;
	check_within_a_tick(&(struct tdm_tsc_relation){ .offset = -1886070712784 });
	check_within_a_tick(&(struct tdm_tsc_relation){ .offset = 5000000000 });
}

static void scaling_is_undone_within_its_rounding(void **state)
{
	(void)state;
	check_within_a_tick(&(struct tdm_tsc_relation){ .offset = -1886070712784,
		.ratio = (UINT64_C(1) << 48) / 10 * 11,
		.frac_bits = 48 });
	check_within_a_tick(&(struct tdm_tsc_relation){
		.offset = 77, .ratio = UINT64_C(3) << 31, .frac_bits = 32 });
}

static void a_vcpu_with_another_offset_gets_its_own_ticks(void **state)
{
	const struct tdm_tsc_relation vcpus[] = { { .vcpu = 0, .offset = -1000 },
		{ .vcpu = 1, .offset = -1500 } };
	struct tdm_timeline *timeline = NULL;

	(void)state;
	assert_int_equal(tdm_timeline_from_tsc(&no_info, vcpus, 2, &timeline, NULL), TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 9000, 0, NULL), 10000);
	assert_int_equal(tdm_timeline_apply(timeline, 8500, 1, NULL), 10000);
	tdm_timeline_destroy(timeline);
}

static void different_ratios_are_refused(void **state)
{
	const struct tdm_tsc_relation vcpus[] = { { .vcpu = 0, .ratio = 5, .frac_bits = 2 },
		{ .vcpu = 1 } };
	struct tdm_timeline *timeline = NULL;

	(void)state;
	assert_int_equal(
		tdm_timeline_from_tsc(&no_info, vcpus, 2, &timeline, NULL), TDM_ERR_UNSUPPORTED);
	assert_int_equal(tdm_timeline_from_tsc(&no_info, vcpus, 0, &timeline, NULL), TDM_ERR_RANGE);
}

/* What the readings around a change are put to, and how well. */
static void check_span(const struct tdm_timeline *timeline, const struct tdm_tsc_relation *vcpu,
	uint64_t host, uint64_t bound)
{
	const uint64_t guest = guest_reading(vcpu, host);
	const uint64_t got = tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL);
	uint64_t minus;
	uint64_t plus;

	tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
	assert_true(got <= host + minus && host <= got + plus);
	assert_true(minus <= bound && plus <= bound);
}

/* A relation seen at 1000 to 2000 s, another one at 2001 to 3000 s, of a TSC of 1 GHz: @p ratio that of the second. */
static struct tdm_timeline *two_spans(const struct tdm_tsc_relation relations[2])
{
	const struct tdm_tsc_span spans[] = {
		{ &relations[0], 1, UINT64_C(1000000000000), UINT64_C(2000000000000) },
		{ &relations[1], 1, UINT64_C(2001000000000), UINT64_C(3000000000000) },
	};
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err = { 0 };

	if (tdm_timeline_from_tsc_spans(&no_info, spans, 2, &timeline, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	return timeline;
}

static void a_change_is_a_new_segment(void **state)
{
	/* Forward by more than the looks are apart: no reading can have been shown by both. */
	static const struct tdm_tsc_relation forward[2] = { { .offset = -500000000000 },
		{ .offset = -490000000000 } };
	/* The same, and another rate from then on. */
	static const struct tdm_tsc_relation scaled[2] = {
		{ .offset = -500000000000 },
		{ .offset = -400000000000, .ratio = (UINT64_C(1) << 48) / 10 * 11, .frac_bits = 48 }
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct tdm_tsc_relation *const relations = i ? scaled : forward;
		struct tdm_timeline *const timeline = two_spans(relations);
		const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

		assert_int_equal(info.segment_count, 2);
		assert_int_equal(info.doubt_count, 0);
		assert_int_equal(tdm_timeline_segment(timeline, 1).kind, TDM_SEGMENT_STEP);
		for (uint64_t s = 600; s <= 2000; s += 100) {
			check_span(timeline, &relations[0], s * 1000000000 + 7, 3);
		}
		for (uint64_t s = 2001; s <= 10001; s += 100) {
			check_span(timeline, &relations[1], s * 1000000000 + 7, 3);
		}
		/* Whenever it happened. */
		check_span(timeline, &relations[0], UINT64_C(2000999999999), 3);
		check_span(timeline, &relations[1], UINT64_C(2000000000001), 3);
		tdm_timeline_destroy(timeline);
	}
}

static void what_both_sides_of_a_change_may_have_shown_is_in_doubt(void **state)
{
	static const struct tdm_tsc_relation steps[][2] = {
		{ { .offset = -500000000000 }, { .offset = -499999999700 } }, /* 300 ns ahead */
		{ { .offset = -500000000000 }, { .offset = -500000000300 } }, /* and back */
		{ { .offset = -500000000000 }, { .offset = -700000000000 } }, /* restored */
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct tdm_tsc_relation *const relations = steps[i];
		const int64_t by = relations[1].offset - relations[0].offset;
		const uint64_t bound = (uint64_t)(by < 0 ? -by : by) + 4;
		struct tdm_timeline *const timeline = two_spans(relations);
		uint64_t from, to;

		assert_int_equal(tdm_timeline_get_info(timeline).doubt_count, 1);
		tdm_timeline_doubt(timeline, 0, &from, &to);
		assert_true(from <= guest_reading(&relations[1], UINT64_C(2000000000001)));
		assert_true(to >= guest_reading(&relations[0], UINT64_C(2000999999999)));
		for (uint64_t ms = 0; ms <= 1000; ms += 50) {
			const uint64_t host = UINT64_C(2000000000000) + ms * 1000000;

			check_span(timeline, &relations[0], host, bound);
			check_span(timeline, &relations[1], host, bound);
		}
		check_span(timeline, &relations[1], UINT64_C(2900000000000), 3);
		if (i < 2) {
			check_span(timeline, &relations[0], UINT64_C(1900000000000), 3);
		}
		tdm_timeline_destroy(timeline);
	}
}

static void vcpus_keep_their_differences_over_a_change(void **state)
{
	static const struct tdm_tsc_relation before[2] = { { .vcpu = 0, .offset = -1000 },
		{ .vcpu = 1, .offset = -1500 } };
	struct tdm_tsc_relation after[3] = { { .vcpu = 0, .offset = 5000 },
		{ .vcpu = 1, .offset = 4500 }, { .vcpu = 2, .offset = 4900 } };
	const struct tdm_tsc_span spans[] = { { before, 2, 1000000, 2000000 },
		{ after, 3, 3000000, 4000000 } };
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err = { 0 };
	int64_t ticks;
	uint64_t bound;

	(void)state;
	assert_int_equal(tdm_timeline_from_tsc_spans(&no_info, spans, 2, &timeline, &err), TDM_OK);
	assert_true(tdm_timeline_cpu(timeline, 1, &ticks, &bound));
	assert_int_equal(ticks, 500);
	assert_true(tdm_timeline_cpu(timeline, 2, &ticks, &bound));
	assert_int_equal(ticks, 100);
	tdm_timeline_destroy(timeline);
	after[1].offset++;
	assert_int_equal(tdm_timeline_from_tsc_spans(&no_info, spans, 2, &timeline, &err),
		TDM_ERR_UNSUPPORTED);
	assert_null(timeline);
	assert_int_equal(
		tdm_timeline_from_tsc_spans(&no_info, spans, 0, &timeline, &err), TDM_ERR_RANGE);
}

static void a_contradiction_is_told_with_its_size(void **state)
{
	static const char measured_text[] = "tandem-corrections 1\nsegment start 1000 2\n"
					    "k 1000 51000 100 100\nk 900000 950000 100 100\nend\n";
	const struct tdm_tsc_relation right = { .offset = -50050 }, wrong = { .offset = -50300 };
	struct tdm_timeline *measured = NULL, *exact = NULL;
	uint64_t worst;

	(void)state;
	assert_int_equal(
		tdm_timeline_parse("test", measured_text, strlen(measured_text), &measured, NULL),
		TDM_OK);
	assert_int_equal(tdm_timeline_from_tsc(&no_info, &right, 1, &exact, NULL), TDM_OK);
	assert_true(tdm_timeline_agrees(exact, measured, UINT32_MAX, &worst));
	tdm_timeline_destroy(exact);
	assert_int_equal(tdm_timeline_from_tsc(&no_info, &wrong, 1, &exact, NULL), TDM_OK);
	assert_false(tdm_timeline_agrees(exact, measured, UINT32_MAX, &worst));
	assert_int_equal(worst, 200);
	tdm_timeline_destroy(exact);
	tdm_timeline_destroy(measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offset_alone_is_undone_to_the_tick),
		cmocka_unit_test(scaling_is_undone_within_its_rounding),
		cmocka_unit_test(a_vcpu_with_another_offset_gets_its_own_ticks),
		cmocka_unit_test(different_ratios_are_refused),
		cmocka_unit_test(a_change_is_a_new_segment),
		cmocka_unit_test(what_both_sides_of_a_change_may_have_shown_is_in_doubt),
		cmocka_unit_test(vcpus_keep_their_differences_over_a_change),
		cmocka_unit_test(a_contradiction_is_told_with_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
