/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <task_census.h>

static void the_first_sight_counts_whatever_the_order(void **state)
{
	struct tdm_task_census a = { 0 };
	struct tdm_task_census b = { 0 };

	(void)state;
	assert_int_equal(tdm_task_census_see(&a, 5, TDM_FIRST_RUNNING, 1, 200, "late", 4), TDM_OK);
	assert_int_equal(tdm_task_census_see(&b, 5, TDM_FIRST_ASLEEP, 0, 100, "early", 5), TDM_OK);
	assert_int_equal(tdm_task_census_merge(&a, &b), TDM_OK);
	assert_int_equal(tdm_task_census_find(&a, 5)->first, TDM_FIRST_ASLEEP);
	assert_string_equal(tdm_task_census_find(&a, 5)->comm, "early");
	assert_int_equal(tdm_task_census_see(&a, 5, TDM_FIRST_BORN, 0, 300, "later", 5), TDM_OK);
	assert_int_equal(tdm_task_census_find(&a, 5)->first, TDM_FIRST_ASLEEP);
	tdm_task_census_release(&a);
	tdm_task_census_release(&b);
}

static void a_name_comes_when_it_is_known_and_what_is_listed_yields(void **state)
{
	struct tdm_task_census census = { 0 };

	(void)state;
	tdm_task_census_see(&census, 9, TDM_FIRST_RUNNING, 0, 10, NULL, 0);
	tdm_task_census_see(&census, 9, TDM_FIRST_LISTED, 0, UINT64_MAX, "listed", 6);
	assert_int_equal(tdm_task_census_find(&census, 9)->first, TDM_FIRST_RUNNING);
	assert_string_equal(tdm_task_census_find(&census, 9)->comm, "listed");
	tdm_task_census_see(
		&census, 8, TDM_FIRST_LISTED, 0, UINT64_MAX, "a name of more than fifteen", 27);
	assert_string_equal(tdm_task_census_find(&census, 8)->comm, "a name of more ");
	assert_null(tdm_task_census_find(&census, 7));
	tdm_task_census_release(&census);
}

static void it_stops_to_grow(void **state)
{
	struct tdm_task_census census = { 0 };

	(void)state;
	for (int32_t tid = 1; tid <= 70000; tid++) {
		assert_int_equal(
			tdm_task_census_see(&census, tid, TDM_FIRST_RUNNING, 0, 1, "x", 1), TDM_OK);
	}
	assert_int_equal(census.count, 65536);
	assert_int_equal(census.left_out, 70000 - 65536);
	assert_true(tdm_task_census_has(&census, 65536));
	assert_false(tdm_task_census_has(&census, 65537));
	tdm_task_census_release(&census);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_sight_counts_whatever_the_order),
		cmocka_unit_test(a_name_comes_when_it_is_known_and_what_is_listed_yields),
		cmocka_unit_test(it_stops_to_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
