/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <errno.h>
#include <tandem/status.h>

static void a_prefix_says_where_and_keeps_what(void **state)
{
	struct tdm_error err = { 0 };

	(void)state;
	assert_int_equal(
		tdm_fail(&err, TDM_ERR_FORMAT, "size %d, wanted %d", 3, 4), TDM_ERR_FORMAT);
	assert_int_equal(tdm_error_prefix(&err, "trace.dat at 0x%x", 16), TDM_ERR_FORMAT);
	assert_string_equal(err.text, "trace.dat at 0x10: size 3, wanted 4");
}

static void an_errno_becomes_words(void **state)
{
	struct tdm_error err = { 0 };

	(void)state;
	assert_int_equal(tdm_fail_errno(&err, ENOENT, "open %s", "x"), TDM_ERR_IO);
	assert_string_equal(err.text, "open x: No such file or directory");
	assert_int_equal(tdm_fail_errno(NULL, ENOMEM, "open"), TDM_ERR_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_says_where_and_keeps_what),
		cmocka_unit_test(an_errno_becomes_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
