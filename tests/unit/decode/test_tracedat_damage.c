/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include "trace_sum.h"
#include "tracedat_builder.h"
#include <unistd.h>

enum {
	PAGES = 6,
	TICKS = 100, /* of each page */
	ALL_TICKS = 2 * PAGES * TICKS
};

static const struct dat_layout v7 = { 7, false, 8, 4096, "none" };
static const struct dat_layout v7_zstd = { 7, false, 8, 4096, "zstd" };
static const struct dat_layout v7_zlib = { 7, true, 4, 4096, "zlib" };
static const struct dat_layout v6 = { 6, false, 8, 4096, "none" };

static struct dat_marks marks;

/* A file with one buffer of two CPUs. */
static struct tdm_buffer build(
	const struct dat_layout *layout, const struct dat_option *options, size_t option_count)
{
	struct dat_pages a = { .layout = layout }, b = { .layout = layout };
	const struct dat_cpu cpus[] = { { 0, &a.bytes }, { 1, &b.bytes } };
	const struct dat_buffer buffer = { "", "mono", 0, cpus, 2 };
	const struct dat_spec spec = {
		.layout = *layout,
		.buffers = &buffer,
		.buffer_count = 1,
		.options = options,
		.option_count = option_count,
		.cmdlines = "1 init\n",
	};
	struct tdm_buffer bytes = { 0 };

	pages_of_ticks(&a, PAGES, TICKS, 1);
	pages_of_ticks(&b, PAGES, TICKS, 1000000);
	dat_build(&spec, &bytes, &marks);
	tdm_buffer_release(&a.bytes);
	tdm_buffer_release(&b.bytes);
	return bytes;
}

static struct trace_sum sum_of(const struct tdm_buffer *bytes)
{
	char *path = dat_save(bytes);
	const struct trace_sum sum = trace_sum_of(path, NULL);

	unlink(path);
	free(path);
	return sum;
}

static struct trace_sum sum_and_release(struct tdm_buffer *bytes)
{
	const struct trace_sum sum = sum_of(bytes);

	tdm_buffer_release(bytes);
	return sum;
}

/* Still there, nothing invented, and said. */
static void check(const struct trace_sum *sum, uint64_t records, const char *words)
{
	assert_int_equal(sum->status, TDM_OK);
	assert_int_equal(sum->records, records);
	assert_true(sum->faults > 0);
	if (!strstr(sum->all_faults, words)) {
		fail_msg("no \"%s\" in: %s", words, sum->all_faults);
	}
}

static void an_undamaged_file_has_no_fault(void **state)
{
	const struct dat_layout *const all[] = { &v7, &v7_zstd, &v7_zlib, &v6 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct tdm_buffer bytes = build(all[i], NULL, 0);
		const struct trace_sum sum = sum_and_release(&bytes);

		assert_int_equal(sum.status, TDM_OK);
		assert_int_equal(sum.records, ALL_TICKS);
		assert_string_equal(sum.all_faults, "");
	}
}

static void a_chain_of_options_that_leads_back_ends(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);

	(void)state;
	/* The second section leads to the first: all is read once. */
	dat_patch_u64(&bytes, &v7, bytes.size - 8, marks.first_options);

	const struct trace_sum sum = sum_of(&bytes);

	check(&sum, ALL_TICKS, "leads back");
	/* The first one leads to itself: the buffers are out of reach, or found another way. */
	dat_patch_u64(&bytes, &v7, marks.first_done + 6, marks.first_options);

	const struct trace_sum alone = sum_and_release(&bytes);

	assert_true(alone.status == TDM_ERR_FORMAT || alone.faults);
	assert_non_null(strstr(alone.status ? alone.err.text : alone.all_faults, "leads back"));
}

static void a_damaged_page_is_passed_over(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);

	(void)state;
	dat_patch_u32(&bytes, &v7, marks.data[0][0] + 4096 + 8, 0xc7ffffff);

	struct trace_sum sum = sum_of(&bytes);

	check(&sum, ALL_TICKS - TICKS, "more bytes than fit");
	assert_int_equal(sum.unreadable_pages, 1);
	/* 16 bytes more than fit: the reference reader invents 15 records. */
	dat_patch_u32(&bytes, &v7, marks.data[0][0] + 4096 + 8, 4096);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS - TICKS, "more bytes than fit");
	dat_patch_u32(&bytes, &v7, marks.data[0][0] + 4096 + 8, TICKS * 20);
	/* The 51st record has an impossible length. */
	dat_patch_u32(&bytes, &v7, marks.data[0][0] + 4096 + 16 + 50 * 20, 0);
	dat_patch_u32(&bytes, &v7, marks.data[0][0] + 4096 + 16 + 50 * 20 + 4, (uint32_t)-8);
	sum = sum_and_release(&bytes);
	check(&sum, ALL_TICKS - 50, "impossible length");
}

static void a_thousand_damaged_pages_are_one_fault(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);

	(void)state;
	for (size_t page = 0; page < PAGES; page++) {
		dat_patch_u32(&bytes, &v7, marks.data[0][1] + page * 4096 + 8, 5000);
	}

	const struct trace_sum sum = sum_and_release(&bytes);

	check(&sum, ALL_TICKS / 2, "CPU 1: page at");
	assert_int_equal(sum.faults, 1);
	assert_int_equal(sum.unreadable_pages, PAGES);
}

static void cpu_entries_that_make_no_sense_lose_that_cpu_alone(void **state)
{
	/* offset, name "", clock "mono", page size, count, then the entries. */
	const size_t count_at = 8 + 1 + 5 + 4, first = count_at + 4, second = first + 20;
	static const uint32_t bad_ids[] = { UINT32_MAX, 0x7ffffff0, 8192, 0 };
	struct trace_sum sum;

	(void)state;
	for (size_t i = 0; i < sizeof(bad_ids) / sizeof(bad_ids[0]); i++) {
		struct tdm_buffer bytes = build(&v7, NULL, 0);

		dat_patch_u32(&bytes, &v7, marks.buffer_option[0] + second, bad_ids[i]);
		sum = sum_and_release(&bytes);
		check(&sum, ALL_TICKS / 2, bad_ids[i] ? "CPU id" : "twice");
	}

	struct tdm_buffer bytes = build(&v7, NULL, 0);

	dat_patch_u32(&bytes, &v7, marks.buffer_option[0] + count_at, 0x10000000);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "268435456 CPUs are announced");
	dat_patch_u32(&bytes, &v7, marks.buffer_option[0] + count_at, 2);
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 4, marks.data[0][1] + 1);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS / 2, "wanted a multiple");
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 4, UINT64_MAX - 4095);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS / 2, "behind the file's end");
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 4, marks.data[0][1]);
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 12, UINT64_MAX);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "the file ends after");
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 4, marks.data[0][0] + 4096);
	dat_patch_u64(&bytes, &v7, marks.buffer_option[0] + second + 12, 4096);
	sum = sum_and_release(&bytes);
	check(&sum, ALL_TICKS / 2 + TICKS, "overlaps");
}

static void a_page_size_that_is_none_is_not_taken(void **state)
{
	static const uint32_t bad[] = { 0, 4095, 4097, 1u << 31, 8192 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tdm_buffer bytes = build(&v7, NULL, 0);

		dat_patch_u32(&bytes, &v7, marks.buffer_option[0] + 14, bad[i]);

		struct trace_sum sum = sum_of(&bytes);

		check(&sum, ALL_TICKS, "page size");
		tdm_buffer_release(&bytes);
		if (bad[i] == 8192) {
			continue;
		}
		/* In the prefix: header_page tells it, too. */
		bytes = build(&v7, NULL, 0);
		dat_patch_u32(&bytes, &v7, 14, bad[i]);
		sum = sum_and_release(&bytes);
		check(&sum, ALL_TICKS, "page size");
	}
}

/* One option with a value of our own before the others' end. */
static struct trace_sum with_option(uint16_t id, const void *value, size_t size)
{
	struct tdm_buffer bytes = { 0 };

	dat_bytes(&bytes, value, size);

	const struct dat_option option = { id, &bytes };
	struct tdm_buffer file = build(&v7, &option, 1);

	tdm_buffer_release(&bytes);
	return sum_and_release(&file);
}

static void options_that_are_cut_or_hostile_lose_themselves_alone(void **state)
{
	/* In words, as the format stores them: guest "a", id 1, one vCPU -100000000. */
	static const uint8_t guest[] = { 'a', 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x00, 0x1f,
		0x0a, 0xfa, 1, 0, 0, 0 };
	static const uint8_t many_cpus[] = { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
		0x7f, 0, 0, 0, 0 };
	static const uint8_t many_samples[] = { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff };
	static const uint8_t nothing[64];

	(void)state;

	struct trace_sum sum = with_option(13, guest, sizeof(guest));

	check(&sum, ALL_TICKS, "vCPU ids");
	sum = with_option(13, "aaaaaaa", 7);
	check(&sum, ALL_TICKS, "GUEST");
	sum = with_option(12, many_cpus, sizeof(many_cpus));
	check(&sum, ALL_TICKS, "2147483647 CPUs");
	sum = with_option(12, many_samples, sizeof(many_samples));
	check(&sum, ALL_TICKS, "samples of CPU 0");
	sum = with_option(8, "ab", 2);
	check(&sum, ALL_TICKS, "CPUCOUNT");
	sum = with_option(1, "abc", 3);
	check(&sum, ALL_TICKS, "a number is wanted");
	sum = with_option(14, "abcdef", 6);
	check(&sum, ALL_TICKS, "TSC2NSEC");
	/* Every id with no value, and with one that is all NUL. */
	for (uint16_t id = 1; id < 40; id++) {
		sum = with_option(id, "", 0);
		assert_int_equal(sum.status, TDM_OK);
		assert_int_equal(sum.records, ALL_TICKS);
		sum = with_option(id, nothing, sizeof(nothing));
		assert_int_equal(sum.status, TDM_OK);
		/* An offset of 0 in BUFFER or in EVENT_FORMATS: the records come, unnamed or not. */
		assert_true(sum.records == ALL_TICKS || id == 3);
	}
}

static void a_huge_option_ends_the_options_with_a_message(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);

	(void)state;
	dat_patch_u32(&bytes, &v7, marks.first_options + 16 + 2, 0xfffffff0);

	const struct trace_sum sum = sum_and_release(&bytes);

	assert_non_null(strstr(sum.status == TDM_OK ? sum.all_faults : sum.err.text,
		"4294967280 bytes are announced"));
}

static void damaged_chunks_are_passed_over(void **state)
{
	struct tdm_buffer bytes = build(&v7_zstd, NULL, 0);
	struct trace_sum sum;

	(void)state;
	/* One chunk a CPU: its packed bytes damaged, its sizes hostile, the count hostile. */
	bytes.bytes[marks.data[0][0] + 12 + 20] ^= 0xff;
	sum = sum_of(&bytes);
	assert_int_equal(sum.status, TDM_OK);
	assert_true(sum.faults == 1 && sum.records < ALL_TICKS && sum.records >= ALL_TICKS / 2);
	bytes.bytes[marks.data[0][0] + 12 + 20] ^= 0xff;

	const uint32_t packed = tdm_load_u32(bytes.bytes + marks.data[0][0] + 4, false);

	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0] + 8, 0xfffff000);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS / 2, "unpacked bytes");
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0] + 8, PAGES * 4096 + 1);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS / 2, "unpacked bytes");
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0] + 8, PAGES * 4096);
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0] + 4, 0xffffffff);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS / 2, "packed bytes");
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0] + 4, packed);
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0], 0);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "that were announced end");
	dat_patch_u32(&bytes, &v7_zstd, marks.data[0][0], 0xffffffff);
	sum = sum_and_release(&bytes);
	assert_int_equal(sum.status, TDM_OK);
	assert_int_equal(sum.records, ALL_TICKS);
	assert_true(sum.faults > 0);
}

static void a_damaged_block_of_metadata_leaves_the_records(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);
	struct trace_sum sum;

	(void)state;
	/* The number of systems, then a length of a format. */
	dat_patch_u32(&bytes, &v7, marks.event_formats + 16, 0xffffffff);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "event formats");
	dat_patch_u32(&bytes, &v7, marks.event_formats + 16, 1);
	dat_patch_u64(&bytes, &v7, marks.event_formats + 16 + 4 + 5 + 4, UINT64_MAX);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "event formats");
	dat_patch_u64(&bytes, &v7, marks.event_formats + 8, UINT64_MAX);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "section 18");
	bytes.bytes[marks.event_formats] = 77;
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "has id 77, wanted 18");
	bytes.bytes[marks.header_info + 16] = 'x';
	sum = sum_and_release(&bytes);
	check(&sum, ALL_TICKS, "header_page");

	bytes = build(&v6, NULL, 0);
	dat_patch_u32(&bytes, &v6, marks.event_formats, 0xffffffff);
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "event formats");
	bytes.bytes[marks.header_info] = 'x';
	sum = sum_of(&bytes);
	check(&sum, ALL_TICKS, "header info");
	/* An option that swallows the rest of the file. */
	dat_patch_u32(&bytes, &v6, marks.options_start + 2, 0xfffffff0);
	sum = sum_and_release(&bytes);
	check(&sum, ALL_TICKS, "option 4");
}

static void a_damaged_stream_does_not_stop_the_merge_of_others(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);

	(void)state;
	memset(bytes.bytes + marks.data[0][0], 0xff, PAGES * 4096);

	const struct trace_sum sum = sum_and_release(&bytes);

	check(&sum, ALL_TICKS / 2, "CPU 0");
	assert_int_equal(sum.unreadable_pages, PAGES);
}

/* What is told of a file must not be silence: all records, or a fault, or a refusal. */
static void check_honest(const struct trace_sum *sum, size_t at)
{
	if (sum->status == TDM_OK) {
		if (sum->records < ALL_TICKS && !sum->faults) {
			fail_msg("at %zu: %llu records and no fault", at,
				(unsigned long long)sum->records);
		}
		assert_true(sum->records <= ALL_TICKS);
	} else {
		assert_true(strlen(sum->err.text) > 10);
	}
}

static void a_file_cut_at_any_place_is_honest_about_it(void **state)
{
	const struct dat_layout *const all[] = { &v7, &v7_zstd, &v7_zlib, &v6 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct tdm_buffer bytes = build(all[i], NULL, 0);
		const size_t whole = bytes.size;

		for (size_t size = 0; size < whole;) {
			bytes.size = size;

			const struct trace_sum sum = sum_of(&bytes);

			check_honest(&sum, size);
			/* Every byte of the metadata, some of the data. */
			size += size < marks.data[0][0] || size > whole - 200 ? 7 : 1013;
		}
		tdm_buffer_release(&bytes);
	}
}

static void the_pages_before_the_cut_are_delivered(void **state)
{
	struct tdm_buffer bytes = build(&v6, NULL, 0);
	struct trace_sum sum;

	(void)state;
	bytes.size = marks.data[0][1] + 2 * 4096 + 100;
	sum = sum_and_release(&bytes);
	check(&sum, ALL_TICKS / 2 + 2 * TICKS, "the file ends after");
}

static void data_that_no_option_leads_to_any_more_is_found(void **state)
{
	const struct dat_layout *const all[] = { &v7, &v7_zstd, &v7_zlib };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tdm_buffer bytes = build(all[i], NULL, 0);
		struct trace_sum sum;

		/* Whole but for the options at its end. */
		bytes.size = marks.buffer_options;
		sum = sum_of(&bytes);
		check(&sum, ALL_TICKS, "no option leads to it");
		if (i == 0) {
			bytes.size = marks.data[0][1] + 2 * 4096 + 100;
			sum = sum_of(&bytes);
			check(&sum, ALL_TICKS / 2 + 2 * TICKS, "no option leads to it");
		} else {
			assert_int_equal(sum.streams, 2);
			/* Into the only chunk of the second CPU. */
			bytes.size = marks.data[0][1] + 100;
			sum = sum_of(&bytes);
			check(&sum, ALL_TICKS / 2, "no option leads to it");
		}
		tdm_buffer_release(&bytes);
	}
}

static void a_latency_text_is_refused_and_other_buffers_are_read(void **state)
{
	struct tdm_buffer value = { 0 };

	(void)state;
	dat_u64(&value, &v7, 100);
	dat_text(&value, "");
	dat_text(&value, "mono");

	const struct trace_sum sum = with_option(22, value.bytes, value.size);

	check(&sum, ALL_TICKS, "latency");
	tdm_buffer_release(&value);

	/* Version 6 has one or the other. */
	struct tdm_buffer bytes = build(&v6, NULL, 0);

	memcpy(bytes.bytes + marks.cpu_table - 10, "latency  ", 10);

	const struct trace_sum text = sum_and_release(&bytes);

	assert_int_equal(text.status, TDM_ERR_UNSUPPORTED);
	assert_non_null(strstr(text.err.text, "latency"));
}

static void a_file_that_is_cut_while_it_is_read_ends_with_a_fault(void **state)
{
	struct tdm_buffer bytes = build(&v7, NULL, 0);
	char *path = dat_save(&bytes);
	struct tdm_trace *trace;
	struct tdm_record record;
	struct tdm_error err;
	uint64_t records = 0;

	(void)state;
	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);
	assert_int_equal(truncate(path, (off_t)marks.data[0][0] + 2 * 4096), 0);
	for (size_t i = 0; i < 2; i++) {
		struct tdm_reader *reader = tdm_reader_create(trace, i, &err);

		while (tdm_reader_next(reader, &record, &err) == TDM_OK) {
			records++;
		}
		tdm_reader_destroy(reader);
	}
	assert_int_equal(records, 2 * TICKS);
	assert_int_equal(tdm_trace_fault_count(trace), 2);
	assert_non_null(strstr(tdm_trace_fault_at(trace, 0).text, "cut while it was read"));
	tdm_trace_close(trace);
	unlink(path);
	free(path);
	tdm_buffer_release(&bytes);
}

static void what_is_no_trace_at_all_is_refused_in_words(void **state)
{
	struct tdm_buffer bytes = { 0 };
	struct trace_sum sum = sum_of(&bytes);

	(void)state;
	assert_int_equal(sum.status, TDM_ERR_FORMAT);
	assert_non_null(strstr(sum.err.text, "is empty"));
	dat_text(&bytes, "some text that is no trace");
	sum = sum_and_release(&bytes);
	assert_int_equal(sum.status, TDM_ERR_FORMAT);
	assert_non_null(strstr(sum.err.text, "neither"));
	sum = trace_sum_of("/nonexistent", NULL);
	assert_int_equal(sum.status, TDM_ERR_IO);
	sum = trace_sum_of("/", NULL);
	assert_int_equal(sum.status, TDM_ERR_FORMAT);
	assert_non_null(strstr(sum.err.text, "/: a directory"));
	sum = trace_sum_of("/dev/null", NULL);
	assert_non_null(strstr(sum.err.text, "not a regular file"));
	bytes = build(&v7, NULL, 0);
	bytes.bytes[10] = '8';
	sum = sum_of(&bytes);
	assert_int_equal(sum.status, TDM_ERR_UNSUPPORTED);
	assert_non_null(strstr(sum.err.text, "version \"8\""));
	bytes.bytes[10] = '7';
	memcpy(bytes.bytes + 18, "lzma", 4);
	sum = sum_and_release(&bytes);
	assert_int_equal(sum.status, TDM_ERR_UNSUPPORTED);
	assert_non_null(strstr(sum.err.text, "lzma"));
}

static void changed_bytes_never_crash_hang_or_invent(void **state)
{
	const struct dat_layout *const all[] = { &v7, &v7_zstd, &v7_zlib, &v6 };
	static const uint8_t values[] = { 0x00, 0xff, 0x7f, 0x80 };
	uint32_t seed = 99;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct tdm_buffer bytes = build(all[i], NULL, 0);

		for (int round = 0; round < 400; round++) {
			seed = seed * 1664525 + 1013904223;

			/* The metadata and the option of the buffer rather than the pages. */
			const size_t front = marks.data[0][0] + 64;
			const size_t spread = (seed >> 8) % (front + 200);
			const size_t at =
				spread < front ? spread : bytes.size - 1 - (spread - front);
			const uint8_t old = bytes.bytes[at];

			bytes.bytes[at] =
				round % 2 ? (uint8_t)(old ^ 1 << seed % 8) : values[seed % 4];

			const struct trace_sum sum = sum_of(&bytes);

			/* A changed byte may be one that nothing hangs on, or make other records: no more. */
			assert_true(sum.status != TDM_OK || sum.records <= 2 * ALL_TICKS);
			bytes.bytes[at] = old;
		}
		tdm_buffer_release(&bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_undamaged_file_has_no_fault),
		cmocka_unit_test(a_chain_of_options_that_leads_back_ends),
		cmocka_unit_test(a_damaged_page_is_passed_over),
		cmocka_unit_test(a_thousand_damaged_pages_are_one_fault),
		cmocka_unit_test(cpu_entries_that_make_no_sense_lose_that_cpu_alone),
		cmocka_unit_test(a_page_size_that_is_none_is_not_taken),
		cmocka_unit_test(options_that_are_cut_or_hostile_lose_themselves_alone),
		cmocka_unit_test(a_huge_option_ends_the_options_with_a_message),
		cmocka_unit_test(damaged_chunks_are_passed_over),
		cmocka_unit_test(a_damaged_block_of_metadata_leaves_the_records),
		cmocka_unit_test(a_damaged_stream_does_not_stop_the_merge_of_others),
		cmocka_unit_test(a_file_cut_at_any_place_is_honest_about_it),
		cmocka_unit_test(the_pages_before_the_cut_are_delivered),
		cmocka_unit_test(data_that_no_option_leads_to_any_more_is_found),
		cmocka_unit_test(a_latency_text_is_refused_and_other_buffers_are_read),
		cmocka_unit_test(a_file_that_is_cut_while_it_is_read_ends_with_a_fault),
		cmocka_unit_test(what_is_no_trace_at_all_is_refused_in_words),
		cmocka_unit_test(changed_bytes_never_crash_hang_or_invent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
