/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/timeline.h>

static const char full[] = "tandem-corrections 1\n"
			   "host 6f0d3c0e clock mono_raw unit-hz 2400000000\n"
			   "guest - clock x86-tsc unit-hz 1200000000\n"
			   "epoch host -17 250\n"
			   "made 2026-01-02T03:04:05Z samples 10 used 8 bogus 1 lost 1\n"
			   "method bounded\n"
			   "assume rate-ppb 40\n"
			   "stamps user\n"
			   "cpu 2 -9 1\n"
			   "segment start 100 2\n"
			   "k 100 1000 1 2\n"
			   "k 200 1200 3 4\n"
			   "segment step 300 1\n"
			   "k 310 5000 5 6\n"
			   "doubt 200 310\n"
			   "end\n";

static enum tdm_status parse(
	const char *text, struct tdm_timeline **timeline, struct tdm_error *err)
{
	return tdm_timeline_parse("it", text, strlen(text), timeline, err);
}

static void what_is_written_is_what_was_read(void **state)
{
	struct tdm_timeline *timeline;
	struct tdm_error err;
	struct tdm_buffer out = { 0 };

	(void)state;
	assert_int_equal(parse(full, &timeline, &err), TDM_OK);

	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

	assert_string_equal(info.host_uuid, "6f0d3c0e");
	assert_null(info.guest_uuid);
	assert_string_equal(info.guest_clock, "x86-tsc");
	assert_int_equal(info.host_unit_hz, 2400000000);
	assert_int_equal(info.epoch_offset_ns, -17);
	assert_int_equal(info.bogus, 1);
	assert_int_equal(info.rate_ppb, 40);
	assert_int_equal(info.segment_count, 2);
	assert_int_equal(info.knot_count, 3);
	assert_int_equal(info.doubt_count, 1);
	assert_int_equal(info.cpu_count, 1);
	assert_true(info.complete);
	assert_int_equal(tdm_timeline_write(timeline, &out), TDM_OK);
	assert_int_equal(out.size, strlen(full));
	assert_memory_equal(out.bytes, full, out.size);
	tdm_buffer_release(&out);
	tdm_timeline_destroy(timeline);
}

static void every_cut_is_refused(void **state)
{
	(void)state;
	/* Up to the newline behind "end", which may be missing. */
	for (size_t bytes = 0; bytes + 1 < strlen(full); bytes++) {
		struct tdm_timeline *timeline;
		struct tdm_error err;

		assert_int_not_equal(
			tdm_timeline_parse("it", full, bytes, &timeline, &err), TDM_OK);
		assert_null(timeline);
		assert_memory_equal(err.text, "it:", 3);
	}
}

/* The text of one fault, and what the message must hold. */
static void expect_fault(const char *text, const char *wanted)
{
	struct tdm_timeline *timeline;
	struct tdm_error err = { 0 };

	assert_int_equal(parse(text, &timeline, &err), TDM_ERR_FORMAT);
	assert_int_equal(err.status, TDM_ERR_FORMAT);
	if (!strstr(err.text, wanted)) {
		fail_msg("\"%s\" lacks \"%s\"", err.text, wanted);
	}
}

static void faults_are_named_with_their_line(void **state)
{
	static const struct {
		const char *body, *wanted;
	} cases[] = {
		{ "segment start 0 2\nk 1 1 0 0\nend\n", "it:4: 1 knots" },
		{ "segment start 0 1\nk 1 1 0 0\nk 2 2 0 0\nend\n", "it:4: more knots" },
		{ "k 1 1 0 0\nend\n", "it:2: a knot before" },
		{ "segment start 0 2\nk 2 1 0 0\nk 2 2 0 0\nend\n", "it:4: knot at 2" },
		{ "segment start 0 2\nk 1 2 0 0\nk 2 1 0 0\nend\n", "it:4: knot at 2" },
		{ "segment start 0 1\nk 1 1 0\nend\n", "it:3: record \"k\"" },
		{ "segment start 0 1\nk 1  1 0 0\nend\n", "it:3: record \"k\"" },
		{ "segment start 0 1\nk -1 1 0 0\nend\n", "it:3" },
		{ "segment start 0 1\nk 4611686018427387905 1 0 0\nend\n", "it:3" },
		{ "segment start 0 1\nk 99999999999999999999 1 0 0\nend\n", "it:3" },
		{ "segment odd 0 1\nk 1 1 0 0\nend\n", "it:2: segment of kind \"odd\"" },
		{ "segment start 0 99999999\nend\n", "it:2" },
		{ "segment start 5 1\nk 6 1 0 0\nsegment step 5 1\nk 9 9 0 0\nend\n", "it:4" },
		{ "segment start 0 0\nsegment step 5 0\nend\n", "it:3: the segment before" },
		{ "end\n", "it:2: \"end\" without" },
		{ "doubt 5 4\nsegment start 0 1\nk 1 1 0 0\nend\n", "it:2: doubt range" },
		{ "cpu 99999 1 1\nsegment start 0 1\nk 1 1 0 0\nend\n", "it:2: CPU 99999" },
		{ "host a clock b unit-hz 0\nend\n", "it:2: unit-hz" },
		{ "segment start 0 1\nk 1 1 0 0\nhost a clock b unit-hz 7\nend\n", "it:4" },
		{ "segment start 0 1\nk 1 1 0 0\nend\nk 2 2 0 0\n", "it:5: record \"k\" behind" },
		{ "assume rate-ppb x\nend\n", "it:2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text), "tandem-corrections 1\n%s", cases[i].body);
		expect_fault(text, cases[i].wanted);
	}
	expect_fault("", "it: empty");
	expect_fault("tandem-exchanges 1\nend\n", "it:1: not a corrections file");
}

static void a_later_version_is_refused_as_such(void **state)
{
	struct tdm_timeline *timeline;
	struct tdm_error err;

	(void)state;
	assert_int_equal(
		parse("tandem-corrections 2\nend\n", &timeline, &err), TDM_ERR_UNSUPPORTED);
}

static void unknown_records_are_passed_over(void **state)
{
	struct tdm_timeline *timeline;
	struct tdm_error err;

	(void)state;
	assert_int_equal(parse("tandem-corrections 1\n# said by hand\n\nlater 1 2\n"
			       "segment start 0 1\nwait\nk 10 20 0 0\nepoch guest 1\n"
			       "assume weather fine\nend",
				 &timeline, &err),
		TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 11, UINT32_MAX, NULL), 21);
	tdm_timeline_destroy(timeline);
}

static void long_lines_and_nul_bytes_are_refused(void **state)
{
	char text[512];
	struct tdm_timeline *timeline;
	struct tdm_error err;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "tandem-corrections 1\n", 21);
	assert_int_equal(
		tdm_timeline_parse("it", text, sizeof(text), &timeline, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "it:2: a line of"));
	memcpy(text + 21, "end\0\n", 5);
	assert_int_equal(tdm_timeline_parse("it", text, 26, &timeline, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "it:2: a NUL byte"));
}

static void feed(struct tdm_timeline *timeline, const char *line, enum tdm_status wanted)
{
	struct tdm_error err = { 0 };

	if (tdm_timeline_feed_line(timeline, line, &err) != wanted) {
		fail_msg("\"%s\": not %s: %s", line, tdm_status_name(wanted), err.text);
	}
}

static void a_fed_timeline_only_grows(void **state)
{
	struct tdm_timeline *timeline = tdm_timeline_create();

	(void)state;
	feed(timeline, "k 1 1 0 0", TDM_ERR_FORMAT);
	feed(timeline, "tandem-corrections 1", TDM_OK);
	feed(timeline, "segment start 100 0", TDM_OK);
	feed(timeline, "k 100 1100 5 5", TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 150, UINT32_MAX, NULL), 1150);
	feed(timeline, "k 200 1210 5 5", TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 150, UINT32_MAX, NULL), 1155);
	feed(timeline, "k 150 1300 5 5", TDM_ERR_FORMAT);
	feed(timeline, "wait", TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 150, UINT32_MAX, NULL), 1155);
	feed(timeline, "segment step 300 0", TDM_OK);
	feed(timeline, "k 300 5000 5 5", TDM_OK);
	assert_int_equal(tdm_timeline_apply(timeline, 299, UINT32_MAX, NULL), 1318);
	assert_int_equal(tdm_timeline_apply(timeline, 301, UINT32_MAX, NULL), 5001);
	assert_false(tdm_timeline_get_info(timeline).complete);
	feed(timeline, "end", TDM_END);
	assert_true(tdm_timeline_get_info(timeline).complete);
	feed(timeline, "k 400 6000 5 5", TDM_ERR_FORMAT);
	tdm_timeline_destroy(timeline);
}

static void a_missing_file_is_named(void **state)
{
	struct tdm_timeline *timeline;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_timeline_load("/nowhere/at-all", &timeline, &err), TDM_ERR_IO);
	assert_non_null(strstr(err.text, "/nowhere/at-all"));
	assert_null(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_what_was_read),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(faults_are_named_with_their_line),
		cmocka_unit_test(a_later_version_is_refused_as_such),
		cmocka_unit_test(unknown_records_are_passed_over),
		cmocka_unit_test(long_lines_and_nul_bytes_are_refused),
		cmocka_unit_test(a_fed_timeline_only_grows),
		cmocka_unit_test(a_missing_file_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
