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
		cmocka_unit_test(a_contradiction_is_told_with_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
