/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <tandem/cursor.h>

static const uint8_t eight[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void integers_are_read_in_the_order_that_was_asked_for(void **state)
{
	struct tdm_cursor little = tdm_cursor_over(eight, sizeof(eight), 0, false);
	struct tdm_cursor big = tdm_cursor_over(eight, sizeof(eight), 0, true);

	(void)state;
	assert_int_equal(tdm_cursor_u16(&little), 0x0201);
	assert_int_equal(tdm_cursor_u32(&little), 0x06050403);
	assert_true(tdm_cursor_u64(&big) == 0x0102030405060708);
	assert_false(little.failed);
	assert_false(big.failed);
}

static void a_short_read_gives_zero_and_fails_for_good(void **state)
{
	struct tdm_cursor in = tdm_cursor_over(eight, 3, 0, false);

	(void)state;
	assert_int_equal(tdm_cursor_u32(&in), 0);
	assert_true(in.failed);
	assert_int_equal(tdm_cursor_u8(&in), 0);
	assert_int_equal(tdm_cursor_left(&in), 0);
}

static void a_part_ends_where_it_was_told_and_knows_its_place(void **state)
{
	struct tdm_cursor in = tdm_cursor_over(eight, sizeof(eight), 100, false);

	(void)state;
	tdm_cursor_skip(&in, 2);

	struct tdm_cursor part = tdm_cursor_take(&in, 3);

	assert_int_equal(tdm_cursor_offset(&part), 102);
	assert_int_equal(tdm_cursor_u32(&part), 0);
	assert_true(part.failed);
	assert_false(in.failed);
	assert_int_equal(tdm_cursor_u8(&in), 6);
}

static void a_part_longer_than_the_rest_is_empty_and_failed(void **state)
{
	struct tdm_cursor in = tdm_cursor_over(eight, sizeof(eight), 0, false);

	(void)state;

	const struct tdm_cursor part = tdm_cursor_take(&in, UINT64_MAX);

	assert_true(in.failed);
	assert_true(part.failed);
	assert_int_equal(part.size, 0);
}

static void a_string_without_nul_is_no_string(void **state)
{
	struct tdm_cursor in = tdm_cursor_over("abc\0de", 6, 0, false);

	(void)state;
	assert_string_equal(tdm_cursor_string(&in, 100), "abc");
	assert_null(tdm_cursor_string(&in, 100));
	assert_true(in.failed);
}

static void a_string_longer_than_its_limit_is_refused(void **state)
{
	struct tdm_cursor in = tdm_cursor_over("abcdef", 7, 0, false);

	(void)state;
	assert_null(tdm_cursor_string(&in, 4));
}

static void odd_widths_are_loaded_and_sign_extended(void **state)
{
	const uint8_t three[] = { 0xfe, 0xff, 0xff };

	(void)state;
	assert_int_equal(tdm_load_uint(three, 3, false), 0xfffffe);
	assert_int_equal(tdm_load_int(three, 3, false), -2);
	assert_int_equal(tdm_load_int(three, 1, false), -2);
	assert_int_equal(tdm_load_uint(eight, 3, true), 0x010203);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_read_in_the_order_that_was_asked_for),
		cmocka_unit_test(a_short_read_gives_zero_and_fails_for_good),
		cmocka_unit_test(a_part_ends_where_it_was_told_and_knows_its_place),
		cmocka_unit_test(a_part_longer_than_the_rest_is_empty_and_failed),
		cmocka_unit_test(a_string_without_nul_is_no_string),
		cmocka_unit_test(a_string_longer_than_its_limit_is_refused),
		cmocka_unit_test(odd_widths_are_loaded_and_sign_extended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
