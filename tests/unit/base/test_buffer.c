/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <tandem/buffer.h>

static void growth_stops_at_the_cap_and_keeps_what_is_there(void **state)
{
	struct tdm_buffer buffer = { .cap = 1000 };
	const uint8_t block[600] = { 7 };

	(void)state;
	assert_int_equal(tdm_buffer_append(&buffer, block, sizeof(block)), TDM_OK);
	assert_int_equal(tdm_buffer_append(&buffer, block, sizeof(block)), TDM_ERR_NOMEM);
	assert_int_equal(buffer.size, 600);
	assert_int_equal(buffer.bytes[0], 7);
	assert_int_equal(tdm_buffer_append(&buffer, block, 400), TDM_OK);
	tdm_buffer_release(&buffer);
}

static void text_is_appended_without_its_nul(void **state)
{
	struct tdm_buffer buffer = { 0 };

	(void)state;
	assert_int_equal(tdm_buffer_printf(&buffer, "%d-%s", 12, "x"), TDM_OK);
	assert_int_equal(tdm_buffer_printf(&buffer, "!"), TDM_OK);
	assert_int_equal(buffer.size, 5);
	assert_memory_equal(buffer.bytes, "12-x!", 5);
	tdm_buffer_release(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_stops_at_the_cap_and_keeps_what_is_there),
		cmocka_unit_test(text_is_appended_without_its_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
