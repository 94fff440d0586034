/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/clock_identity.h>

#define HOST  "d10e5fa2-7415-4bd3-8b87-b4daffbc4195"
#define GUEST "ae231fb1-912f-454c-93bd-f347398fe7f3"
#define OWN   "ae231fb1-912f-854c-93bd-f347398fe7f3" /* version 8 */

static struct tdm_timeline *parse(const char *records)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err;
	char text[1000];

	snprintf(text, sizeof(text), "tandem-corrections 1\n%s\nend\n", records);
	assert_int_equal(tdm_timeline_parse("test", text, strlen(text), &timeline, &err), TDM_OK);
	return timeline;
}

static void a_clock_is_another_by_its_boot_or_its_name(void **state)
{
	static const struct {
		enum tdm_side side;
		const char *uuid, *clock;
		bool fits;
	} cases[] = {
		{ TDM_SIDE_GUEST, GUEST, "monotonic", true },
		{ TDM_SIDE_GUEST, "AE231FB1-912F-454C-93BD-F347398FE7F3", "mono", true },
		{ TDM_SIDE_GUEST, HOST, "monotonic", false },
		{ TDM_SIDE_GUEST, GUEST, "mono_raw", false },
		{ TDM_SIDE_GUEST, NULL, "x86-tsc", false },
		{ TDM_SIDE_GUEST, NULL, "tsc2nsec", false },
		{ TDM_SIDE_GUEST, NULL, NULL, true },
		{ TDM_SIDE_GUEST, "", "my_own_clock", true },
		{ TDM_SIDE_GUEST, OWN, "mono", true },
		{ TDM_SIDE_HOST, HOST, "mono", true },
		{ TDM_SIDE_HOST, GUEST, "mono", false },
	};
	struct tdm_timeline *const timeline =
		parse("host " HOST " clock mono unit-hz 1000000000\n"
		      "guest " GUEST " clock mono unit-hz 1000000000\n"
		      "segment start 0 1\nk 5 6 1 1");
	struct tdm_timeline *const silent = parse("segment start 0 1\nk 5 6 1 1");
	char why[TDM_MISFIT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(tdm_clock_identity_fits(timeline, cases[i].side, cases[i].uuid,
					 cases[i].clock, why),
			cases[i].fits);
		assert_int_equal(why[0] == '\0', cases[i].fits);
		assert_true(tdm_clock_identity_fits(
			silent, cases[i].side, cases[i].uuid, cases[i].clock, why));
	}
	tdm_timeline_destroy(timeline);
	tdm_timeline_destroy(silent);
}

static void a_trace_behind_or_long_before_the_exchanges_is_told(void **state)
{
	static const char knots[] =
		"segment start 0 2\nk 1000000000000 5 1 1\nk 1030000000000 30000000005 1 1";
	struct tdm_timeline *const timeline = parse(knots);
	struct tdm_timeline *exact;
	char why[TDM_MISFIT_BYTES], text[300];

	(void)state;
	assert_true(tdm_clock_range_fits(timeline, UINT64_C(1000000000000), why));
	assert_true(tdm_clock_range_fits(timeline, UINT64_C(1030000000000), why));
	assert_true(tdm_clock_range_fits(timeline, UINT64_C(910000000000), why));
	assert_string_equal(why, "");
	assert_false(tdm_clock_range_fits(timeline, UINT64_C(1033000000000), why));
	assert_non_null(strstr(why, "was 3 s before"));
	assert_false(tdm_clock_range_fits(timeline, UINT64_C(900000000000), why));
	assert_non_null(strstr(why, "was 100 s after"));
	snprintf(text, sizeof(text), "method exact\n%s", knots);
	exact = parse(text);
	assert_true(tdm_clock_range_fits(exact, UINT64_C(9033000000000), why));
	tdm_timeline_destroy(exact);
	tdm_timeline_destroy(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_is_another_by_its_boot_or_its_name),
		cmocka_unit_test(a_trace_behind_or_long_before_the_exchanges_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
