/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tandem/log.h>
#include <tandem/status.h>
#include <tandem/utf8.h>

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

static void what_a_file_or_a_peer_says_stays_in_its_line(void **state)
{
	struct tdm_error err = { 0 };
	char tight[8] = "ab\033[cd";

	(void)state;
	tdm_fail(&err, TDM_ERR_FORMAT, "event \"%s\"", "\033[31mred\nand \xc3\xa9 \xff \xc2\x9b");
	assert_string_equal(err.text, "event \"\\x1b[31mred\\x0aand \xc3\xa9 \\xff \\xc2\\x9b\"");
	tdm_error_prefix(&err, "a\tb");
	assert_string_equal(
		err.text, "a\\x09b: event \"\\x1b[31mred\\x0aand \xc3\xa9 \\xff \\xc2\\x9b\"");
	tdm_utf8_make_visible(tight, sizeof(tight));
	assert_string_equal(tight, "ab\\x1b[");
	/* What is shown for one byte is there as a whole or not at all. */
	strcpy(tight, "abcde\033");
	tdm_utf8_make_visible(tight, sizeof(tight));
	assert_string_equal(tight, "abcde");
}

static void keep_line(void *user, enum tdm_log_level level, const char *line)
{
	(void)level;
	snprintf(user, 64, "%s", line);
}

static void a_line_of_the_log_is_one_line(void **state)
{
	char kept[64] = "";
	const struct tdm_log log = { .max_level = TDM_LOG_INFO, .write = keep_line, .user = kept };

	(void)state;
	TDM_INFO(&log, "peer says \"%s\"", "x\ntandem-agent: Ready");
	assert_string_equal(kept, "peer says \"x\\x0atandem-agent: Ready\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_says_where_and_keeps_what),
		cmocka_unit_test(an_errno_becomes_words),
		cmocka_unit_test(what_a_file_or_a_peer_says_stays_in_its_line),
		cmocka_unit_test(a_line_of_the_log_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
