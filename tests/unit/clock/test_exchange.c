/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <string.h>
#include <tandem/exchange.h>

static const struct tdm_exchange even_path = { 10000, 9500, 9700, 11200 };

static void an_even_path_gives_the_exact_offset(void **state)
{
	int64_t offset_ns = 0;
	uint64_t delay_ns = 0;

	(void)state;
	assert_int_equal(tdm_exchange_solve(&even_path, &offset_ns, &delay_ns), TDM_OK);
	assert_int_equal(offset_ns, 1000);
	assert_int_equal(delay_ns, 1000);
}

static void an_offset_below_0_is_rounded_down(void **state)
{
	const struct tdm_exchange ex = { 100, 1000, 1000, 101 };
	int64_t offset_ns;
	uint64_t delay_ns;

	(void)state;
	assert_int_equal(tdm_exchange_solve(&ex, &offset_ns, &delay_ns), TDM_OK);
	assert_int_equal(offset_ns, -900);
	assert_int_equal(delay_ns, 1);
}

static void clocks_that_run_backwards_are_refused(void **state)
{
	const struct tdm_exchange bad[] = {
		{ 100, 50, 49, 200 },                     /* guest */
		{ 200, 50, 60, 100 },                     /* host */
		{ 100, 50, 250, 200 },                    /* longer there than away */
		{ UINT64_MAX - 10, 0, 5, UINT64_MAX - 1 } /* an offset of 64 bits */
	};
	int64_t offset_ns = 7;
	uint64_t delay_ns = 8;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tdm_exchange_solve(&bad[i], &offset_ns, &delay_ns), TDM_ERR_RANGE);
	}
	assert_int_equal(offset_ns, 7);
	assert_int_equal(delay_ns, 8);
}

static const char full[] = "tandem-exchanges 1\n"
			   "host h clock mono unit-hz 1000000000\n"
			   "guest g clock x86-tsc unit-hz 2400000000\n"
			   "epoch host -12 3\n"
			   "epoch guest 99 4\n"
			   "made 2026-01-02T03:04:05Z\n"
			   "stamps kernel\n"
			   "assume rate-ppb 50\n"
			   "e 1 500 suspend\n"
			   "l h 10 20 60\n"
			   "l g 11 21 61\n"
			   "x 0 1 2 3 4\n"
			   "r 0 5 6 7 8\n"
			   "t 0 9 10 11 12\n"
			   "x 7 100 200 300 400 p c\n"
			   "end\n";

static struct tdm_exchange_log *parse(const char *text)
{
	struct tdm_exchange_log *log = NULL;
	struct tdm_error err = { 0 };

	if (tdm_exchange_log_parse("it", text, strlen(text), &log, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	return log;
}

static void what_is_written_is_what_was_read(void **state)
{
	struct tdm_exchange_log *log = parse(full);
	struct tdm_buffer out = { 0 };
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

	(void)state;
	assert_int_equal(count, 2);
	assert_true(records[0].has_raw && records[0].has_kernel);
	assert_int_equal(records[0].raw.guest_got, 6);
	assert_int_equal(records[0].kernel[3], 12);
	assert_int_equal(records[1].marks, TDM_MARK_PIPELINED | TDM_MARK_CODED);
	assert_int_equal(tdm_exchange_log_get_info(log).rate_ppb, 50);
	assert_int_equal(tdm_exchange_log_get_info(log).epoch[TDM_SIDE_GUEST].offset_ns, 99);
	assert_int_equal(tdm_exchange_log_write(log, &out), TDM_OK);
	assert_int_equal(out.size, strlen(full));
	assert_memory_equal(out.bytes, full, out.size);
	tdm_buffer_release(&out);
	tdm_exchange_log_destroy(log);
}

static void records_of_one_number_meet_in_any_order(void **state)
{
	struct tdm_exchange_log *log = parse("tandem-exchanges 1\nt 3 9 8 7 6\nr 9 1 1 1 1\n"
					     "x 3 1 2 3 4\nr 3 5 6 7 8\nend\n");
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

	(void)state;
	assert_int_equal(count, 1);
	assert_true(records[0].has_raw && records[0].has_kernel);
	assert_int_equal(tdm_exchange_log_get_faults(log)->orphans, 1);
	tdm_exchange_log_destroy(log);
}

static void a_number_used_twice_gets_nobody_s_raw_stamps(void **state)
{
	struct tdm_exchange_log *log =
		parse("tandem-exchanges 1\nx 3 1 2 3 4\nx 3 11 12 13 14\n"
		      "r 3 5 6 7 8\nx 4 1 2 3 4\nr 4 1 1 1 1\nr 4 2 2 2 2\nend\n");
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

	(void)state;
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		assert_false(records[i].has_raw);
	}
	assert_int_equal(tdm_exchange_log_get_faults(log)->orphans, 3);
	tdm_exchange_log_destroy(log);
}

static void bad_lines_are_passed_over_and_the_first_is_named(void **state)
{
	struct tdm_exchange_log *log =
		parse("tandem-exchanges 1\nx 1 1 2 3 4\nx 2 1 2 3\n"
		      "x 3 1 z 3 4\nq anything\n\nl x 1 2 3\nx 5 -1 2 3 4\nend\n");
	const struct tdm_exchange_log_faults *faults = tdm_exchange_log_get_faults(log);
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

	(void)state;
	assert_int_equal(faults->bad_lines, 3);
	assert_non_null(strstr(faults->first.text, "it:3: "));
	assert_false(faults->cut_short);
	/* A negative reading is a bogus sample, no bad line. */
	assert_int_equal(count, 2);
	assert_int_equal(records[1].marks, TDM_MARK_INVALID);
	tdm_exchange_log_destroy(log);
}

static void a_log_cut_anywhere_is_taken_as_far_as_it_goes(void **state)
{
	(void)state;
	for (size_t bytes = 19; bytes + 1 < strlen(full); bytes++) {
		struct tdm_exchange_log *log = NULL;
		struct tdm_error err;
		size_t count;

		assert_int_equal(tdm_exchange_log_parse("it", full, bytes, &log, &err), TDM_OK);
		assert_true(tdm_exchange_log_get_faults(log)->cut_short);

		const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

		/* A number that lost its last digits must not pass for a whole one. */
		for (size_t i = 0; i < count; i++) {
			assert_true(
				records[i].trace.host_got == 4 || records[i].trace.host_got == 400);
		}
		tdm_exchange_log_destroy(log);
	}
}

static void other_files_and_versions_are_refused(void **state)
{
	struct tdm_exchange_log *log;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_exchange_log_parse("it", "", 0, &log, &err), TDM_ERR_FORMAT);
	assert_int_equal(tdm_exchange_log_parse("it", "tandem-exchanges 2\n", 19, &log, &err),
		TDM_ERR_UNSUPPORTED);
	assert_int_equal(tdm_exchange_log_parse("it", "tandem-corrections 1\n", 21, &log, &err),
		TDM_ERR_FORMAT);
	assert_null(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_even_path_gives_the_exact_offset),
		cmocka_unit_test(an_offset_below_0_is_rounded_down),
		cmocka_unit_test(clocks_that_run_backwards_are_refused),
		cmocka_unit_test(what_is_written_is_what_was_read),
		cmocka_unit_test(records_of_one_number_meet_in_any_order),
		cmocka_unit_test(a_number_used_twice_gets_nobody_s_raw_stamps),
		cmocka_unit_test(bad_lines_are_passed_over_and_the_first_is_named),
		cmocka_unit_test(a_log_cut_anywhere_is_taken_as_far_as_it_goes),
		cmocka_unit_test(other_files_and_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
