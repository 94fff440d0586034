/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/trace_meta.h>

static struct tdm_trace_meta sample(void)
{
	struct tdm_trace_meta meta = { .cpu_count = 2, .page_bytes = 4096, .long_bytes = 8 };

	assert_int_equal(
		tdm_trace_meta_add(&meta, TDM_META_CLOCK, NULL, "[mono]", 6, NULL), TDM_OK);
	assert_int_equal(
		tdm_trace_meta_add(&meta, TDM_META_EVENT_FORMAT, "sched", "ID: 1", 5, NULL),
		TDM_OK);
	assert_int_equal(
		tdm_trace_meta_add(&meta, TDM_META_EVENT_FORMAT, "sched", "ID: 2", 5, NULL),
		TDM_OK);
	return meta;
}

static void a_text_that_a_machine_has_once_is_replaced(void **state)
{
	struct tdm_trace_meta meta = sample();

	(void)state;
	assert_int_equal(
		tdm_trace_meta_add(&meta, TDM_META_CLOCK, NULL, "[boot] x", 8, NULL), TDM_OK);
	assert_int_equal(meta.text_count, 3);
	assert_int_equal(meta.total_bytes, 18);
	assert_memory_equal(tdm_trace_meta_find(&meta, TDM_META_CLOCK)->text.bytes, "[boot] x", 8);
	tdm_trace_meta_release(&meta);
}

static void each_cpu_has_one_text(void **state)
{
	enum {
		CPUS = 3000
	};
	struct tdm_trace_meta meta = sample();
	char name[16];

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			snprintf(name, sizeof(name), "%u", cpu);
			assert_int_equal(tdm_trace_meta_add(&meta, TDM_META_CPUSTAT, name,
						 round ? "two" : "first", round ? 3 : 5, NULL),
				TDM_OK);
		}
	}
	assert_int_equal(meta.text_count, 3 + CPUS);
	assert_int_equal(meta.total_bytes, 16 + 3 * CPUS);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		snprintf(name, sizeof(name), "%u", cpu);
		assert_string_equal(meta.texts[3 + cpu].name, name);
		assert_memory_equal(meta.texts[3 + cpu].text.bytes, "two", 3);
	}
	tdm_trace_meta_release(&meta);
}

static void what_was_packed_comes_back(void **state)
{
	struct tdm_trace_meta meta = sample(), back = { 0 };
	struct tdm_buffer bytes = { 0 };

	(void)state;
	assert_int_equal(tdm_trace_meta_pack(&meta, &bytes), TDM_OK);

	struct tdm_cursor in = tdm_cursor_over(bytes.bytes, bytes.size, 0, false);

	assert_int_equal(tdm_trace_meta_unpack(&in, &back, NULL), TDM_OK);
	assert_int_equal(back.page_bytes, 4096);
	assert_int_equal(back.text_count, 3);
	assert_string_equal(back.texts[2].name, "sched");
	assert_memory_equal(back.texts[2].text.bytes, "ID: 2", 5);
	assert_int_equal(tdm_cursor_left(&in), 0);
	tdm_trace_meta_release(&meta);
	tdm_trace_meta_release(&back);
	tdm_buffer_release(&bytes);
}

static void bytes_cut_short_anywhere_are_refused(void **state)
{
	struct tdm_trace_meta meta = sample();
	struct tdm_buffer bytes = { 0 };

	(void)state;
	assert_int_equal(tdm_trace_meta_pack(&meta, &bytes), TDM_OK);
	for (size_t size = 0; size < bytes.size; size++) {
		struct tdm_trace_meta back = { 0 };
		struct tdm_cursor in = tdm_cursor_over(bytes.bytes, size, 0, false);

		assert_int_not_equal(tdm_trace_meta_unpack(&in, &back, NULL), TDM_OK);
		tdm_trace_meta_release(&back);
	}
	tdm_trace_meta_release(&meta);
	tdm_buffer_release(&bytes);
}

static void an_absurd_length_is_refused_before_memory_is_taken(void **state)
{
	struct tdm_trace_meta meta = sample(), back = { 0 };
	struct tdm_buffer bytes = { 0 };
	struct tdm_error err = { 0 };

	(void)state;
	assert_int_equal(tdm_trace_meta_pack(&meta, &bytes), TDM_OK);
	memset(bytes.bytes + 24 + 8, 0xff, 8);

	struct tdm_cursor in = tdm_cursor_over(bytes.bytes, bytes.size, 0, false);

	assert_int_equal(tdm_trace_meta_unpack(&in, &back, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "pass the end"));
	tdm_trace_meta_release(&meta);
	tdm_trace_meta_release(&back);
	tdm_buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_that_a_machine_has_once_is_replaced),
		cmocka_unit_test(each_cpu_has_one_text),
		cmocka_unit_test(what_was_packed_comes_back),
		cmocka_unit_test(bytes_cut_short_anywhere_are_refused),
		cmocka_unit_test(an_absurd_length_is_refused_before_memory_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
