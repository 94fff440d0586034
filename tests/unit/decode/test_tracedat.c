/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include "trace_sum.h"
#include "tracedat_builder.h"
#include <fcntl.h>
#include <unistd.h>

static const struct dat_layout layouts[] = {
	{ 6, false, 8, 4096, "none" },
	{ 6, true, 8, 4096, "none" },
	{ 6, false, 4, 4096, "none" },
	{ 6, true, 4, 65536, "none" },
	{ 7, false, 8, 4096, "none" },
	{ 7, true, 8, 4096, "none" },
	{ 7, true, 4, 4096, "zlib" },
	{ 7, false, 4, 4096, "zstd" },
	{ 7, false, 8, 4096, "zlib" },
	{ 7, true, 8, 65536, "zstd" },
	{ 7, false, 8, 65536, "none" },
	{ 7, false, 8, 524288, "zstd" },
};

enum {
	LAYOUTS = sizeof(layouts) / sizeof(layouts[0])
};

/* Builds, saves and forgets the bytes. */
static char *save(const struct dat_spec *spec, struct dat_marks *marks)
{
	struct tdm_buffer bytes = { 0 };

	dat_build(spec, &bytes, marks);

	char *path = dat_save(&bytes);

	tdm_buffer_release(&bytes);
	return path;
}

static void forget(char *path)
{
	unlink(path);
	free(path);
}

static void every_layout_gives_the_same_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < LAYOUTS; i++) {
		struct dat_pages a = { .layout = &layouts[i] }, b = { .layout = &layouts[i] };
		const struct dat_cpu cpus[] = { { 0, &a.bytes }, { 5, &b.bytes } };
		const struct dat_cpu instance_cpus[] = { { 1, &b.bytes } };
		const struct dat_buffer buffers[] = {
			{ "", "mono", 0, cpus, 2 },
			{ "other one", "mono", 0, instance_cpus, 1 },
		};
		const struct dat_spec spec = {
			.layout = layouts[i], .buffers = buffers, .buffer_count = 2
		};

		pages_of_ticks(&a, 23, 100, 1);
		pages_of_ticks(&b, 2, 50, 10000);

		char *path = save(&spec, NULL);
		const struct trace_sum sum = trace_sum_of(path, NULL);

		assert_int_equal(sum.status, TDM_OK);
		assert_string_equal(sum.all_faults, "");
		assert_int_equal(sum.streams, 3);
		assert_int_equal(sum.records_of[0], 2300);
		assert_int_equal(sum.records_of[1], 100);
		assert_int_equal(sum.records_of[2], 100);
		assert_true(
			sum.value_sum == 2300ull * 2301 / 2 + 2 * (100 * 10000ull + 99 * 100 / 2));
		assert_true(sum.first_ns == 1);
		assert_true(sum.last_ns == 10099);
		forget(path);
		tdm_buffer_release(&a.bytes);
		tdm_buffer_release(&b.bytes);
	}
}

static void what_the_file_says_of_itself_is_told(void **state)
{
	static const struct dat_layout layout = { 7, true, 8, 4096, "none" };
	struct tdm_buffer uname = { 0 }, id = { 0 }, shift = { 0 }, guest = { 0 }, date = { 0 };
	struct tdm_buffer offset = { 0 }, stat = { 0 }, clock = { 0 }, tsc = { 0 };
	const struct dat_option options[] = { { 5, &uname }, { 11, &id }, { 12, &shift },
		{ 13, &guest }, { 1, &date }, { 7, &offset }, { 2, &stat }, { 4, &clock },
		{ 14, &tsc } };
	struct dat_pages pages = { .layout = &layout };
	const struct dat_cpu cpu = { 3, &pages.bytes };
	const struct dat_buffer buffer = { "", "", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = layout,
		.buffers = &buffer,
		.buffer_count = 1,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.cmdlines = "1 init\n77 two words \n77 other\n-1 x\nbad\n 5 y\n",
		.kallsyms = "ffffffff81000000 T _text\nffffffff81000100 t one\t[mod]\n0 A zero\n",
		.printk = "0xffffffff82000000 : \"a \\\"b\\\" %d\\n\"\n",
	};
	struct tdm_trace *trace;
	struct tdm_error err;
	uint64_t distance = 0;

	(void)state;
	pages_of_ticks(&pages, 1, 10, 100);
	dat_text(&uname, "Linux box 6.1.0 x86_64");
	dat_u64(&id, &layout, 0x1234);
	dat_u64(&shift, &layout, 0x9999);
	dat_u32(&shift, &layout, 1);
	dat_u32(&shift, &layout, 2);
	/* Unsorted, and of equal times the first counts. */
	dat_u32(&shift, &layout, 3);
	for (int i = 0; i < 9; i++) {
		static const uint64_t numbers[] = { 20, 10, 10, 7, 8, 9, 1, 1, 1 };

		dat_u64(&shift, &layout, numbers[i]);
	}
	dat_u32(&shift, &layout, 0);
	dat_text(&guest, "vm");
	dat_u64(&guest, &layout, 0x5678);
	dat_u32(&guest, &layout, 2);
	dat_u32(&guest, &layout, 0);
	dat_u32(&guest, &layout, 4321);
	dat_u32(&guest, &layout, 1);
	dat_u32(&guest, &layout, UINT32_MAX);
	dat_text(&date, "0x10");
	dat_text(&offset, "-6000");
	dat_text(&stat, "CPU: 3\nentries: 1\noverrun: 22\ncommit overrun: 3\ndropped events: 4\n"
			"read events: 5\n");
	dat_text(&clock, "local global counter [mono] x86-tsc\n");
	dat_u32(&tsc, &layout, 0);
	dat_u32(&tsc, &layout, 31);
	dat_u64(&tsc, &layout, 0);

	char *path = save(&spec, NULL);

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);

	const struct tdm_trace_info *info = tdm_trace_get_info(trace);

	assert_string_equal(info->hostname, "box");
	assert_string_equal(info->kernel_release, "6.1.0");
	assert_string_equal(info->architecture, "x86_64");
	assert_string_equal(info->clock, "mono");
	assert_string_equal(info->buffers[0].clock, "mono");
	assert_true(info->buffers[0].is_ns);
	assert_true(info->has_trace_id && info->trace_id == 0x1234);
	assert_true(info->has_peer && info->peer_trace_id == 0x9999);
	assert_true(info->buffers[0].shifted);
	assert_true(info->shift_interpolates);
	assert_int_equal(info->shift_cpu_count, 2);
	assert_int_equal(info->shift_cpus[0].sample_count, 2);
	assert_int_equal(info->shift_cpus[0].samples[0].time, 10);
	assert_int_equal(info->shift_cpus[0].samples[0].offset, 8);
	assert_int_equal(info->shift_cpus[0].samples[1].offset, 7);
	assert_int_equal(info->shift_cpus[1].sample_count, 0);
	assert_int_equal(info->guest_count, 1);
	assert_string_equal(info->guests[0].name, "vm");
	assert_int_equal(info->guests[0].vcpu_count, 2);
	assert_int_equal(info->guests[0].vcpus[0].host_tid, 4321);
	assert_int_equal(info->guests[0].vcpus[1].host_tid, -1);
	assert_int_equal(info->date_offset_ns, 16000 - 6000);
	assert_true(info->is_unix_time);
	assert_false(info->has_tsc2nsec);
	assert_int_equal(info->stats_count, 1);
	assert_int_equal(info->stats[0].cpu, 3);
	assert_int_equal(info->stats[0].overrun, 22);
	assert_int_equal(info->stats[0].dropped_events, 4);
	assert_string_equal(tdm_trace_saved_comm(trace, 1), "init");
	assert_string_equal(tdm_trace_saved_comm(trace, 77), "two words ");
	assert_null(tdm_trace_saved_comm(trace, 2));
	assert_string_equal(
		tdm_trace_symbol(trace, UINT64_C(0xffffffff81000105), &distance), "one");
	assert_int_equal(distance, 5);
	assert_null(tdm_trace_symbol(trace, 5, NULL));
	assert_string_equal(
		tdm_trace_printk_format(trace, UINT64_C(0xffffffff82000000)), "a \"b\" %d\n");
	assert_null(tdm_trace_printk_format(trace, UINT64_C(0xffffffff82000001)));
	assert_int_equal(tdm_trace_fault_count(trace), 0);
	tdm_trace_close(trace);
	forget(path);
	for (size_t i = 0; i < spec.option_count; i++) {
		tdm_buffer_release((struct tdm_buffer *)(uintptr_t)options[i].value);
	}
	tdm_buffer_release(&pages.bytes);
}

static void batches_and_single_records_may_be_mixed(void **state)
{
	struct dat_pages pages = { .layout = &layouts[4] };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffer = { "", "mono", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = layouts[4], .buffers = &buffer, .buffer_count = 1
	};
	struct tdm_trace *trace;
	struct tdm_record record;
	struct tdm_batch batch;
	struct tdm_error err;

	(void)state;
	page_begin(&pages, 50);
	pages.lost = true;
	pages.lost_count = 9;
	for (int i = 0; i < 100; i++) {
		page_tick(&pages, 1, i, 0);
	}
	page_end(&pages);
	pages_of_ticks(&pages, 1, 10, 1000);

	char *path = save(&spec, NULL);

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);

	struct tdm_reader *reader = tdm_reader_create(trace, 0, &err);

	for (int round = 0; round < 2; round++) {
		assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_OK);
		assert_int_equal(record.kind, TDM_ITEM_LOST);
		assert_int_equal(record.lost_count, 9);
		assert_int_equal(record.time_ns, 51);
		assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_OK);
		assert_int_equal(record.kind, TDM_ITEM_RECORD);
		assert_int_equal(record.time_ns, 51);
		assert_int_equal(record.tid, 0);
		assert_string_equal(record.event_class->name, "tick");
		assert_int_equal(tdm_reader_next_batch(reader, &batch, &err), TDM_OK);
		assert_false(batch.lost);
		assert_int_equal(batch.count, 99);
		assert_int_equal(batch.slots[0].time_ns, 52);
		assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_OK);
		assert_int_equal(record.time_ns, 1000);
		assert_int_equal(record.tid, 1);
		assert_int_equal(tdm_reader_next_batch(reader, &batch, &err), TDM_OK);
		assert_int_equal(batch.count, 9);
		assert_int_equal(tdm_reader_next_batch(reader, &batch, &err), TDM_END);
		assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_END);
		assert_int_equal(tdm_reader_get_counts(reader).records, 110);
		assert_int_equal(tdm_reader_get_counts(reader).lost_events, 9);
		assert_int_equal(tdm_reader_rewind(reader, &err), TDM_OK);
	}
	tdm_reader_destroy(reader);
	tdm_trace_close(trace);
	forget(path);
	tdm_buffer_release(&pages.bytes);
}

/* Moves the data of a version 6 file behind 5 GiB of nothing. */
static void data_at_5_gib_is_read(void **state)
{
	const uint64_t far = 5ull << 30;
	struct dat_pages pages = { .layout = &layouts[0] };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffer = { "", "mono", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = layouts[0], .buffers = &buffer, .buffer_count = 1
	};
	struct tdm_buffer bytes = { 0 };
	struct dat_marks marks;

	(void)state;
	pages_of_ticks(&pages, 40, 100, 1);
	dat_build(&spec, &bytes, &marks);
	dat_patch_u64(&bytes, &layouts[0], marks.cpu_table, far);

	char *path = dat_save(&bytes);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (pwrite(fd, pages.bytes.bytes, pages.bytes.size, (off_t)far) !=
		(ssize_t)pages.bytes.size) {
		close(fd);
		forget(path);
		print_message("SKIP: no file of 5 GiB can be made here\n");
		skip();
	}
	close(fd);

	const struct trace_sum sum = trace_sum_of(path, NULL);

	assert_int_equal(sum.status, TDM_OK);
	assert_int_equal(sum.records, 4000);
	assert_int_equal(sum.faults, 0);
	forget(path);
	tdm_buffer_release(&bytes);
	tdm_buffer_release(&pages.bytes);
}

/* The data of one CPU with holes of the file in it: pages that nobody wrote. */
static void pages_that_nobody_wrote_are_passed_over(void **state)
{
	enum {
		HALF_PAGES = 20,
		PAGE_BYTES = 4096
	};

	const uint64_t hole = (5ull << 30) + 512; /* ends inside a page */
	const uint64_t half = HALF_PAGES * PAGE_BYTES;
	struct dat_pages pages = { .layout = &layouts[0] };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffer = { "", "mono", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = layouts[0], .buffers = &buffer, .buffer_count = 1
	};
	struct tdm_buffer bytes = { 0 };
	struct dat_marks marks;

	(void)state;
	pages_of_ticks(&pages, 2 * HALF_PAGES, 100, 1);
	dat_build(&spec, &bytes, &marks);

	const uint64_t at = 1ull << 20;
	/* A hole in front, in the middle and behind, all of whole pages together. */
	const uint64_t gap = hole / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;

	dat_patch_u64(&bytes, &layouts[0], marks.cpu_table, at);
	dat_patch_u64(&bytes, &layouts[0], marks.cpu_table + 8, 3 * gap + 2 * half);

	char *path = dat_save(&bytes);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool is_made =
		pwrite(fd, pages.bytes.bytes, half, (off_t)(at + gap)) == (ssize_t)half &&
		pwrite(fd, pages.bytes.bytes + half, half, (off_t)(at + 2 * gap + half)) ==
			(ssize_t)half &&
		ftruncate(fd, (off_t)(at + 3 * gap + 2 * half)) == 0;

	close(fd);
	if (!is_made) {
		forget(path);
		print_message("SKIP: no file of 15 GiB can be made here\n");
		skip();
	}

	const struct trace_sum sum = trace_sum_of(path, NULL);

	assert_int_equal(sum.status, TDM_OK);
	assert_int_equal(sum.records, 2 * HALF_PAGES * 100);
	assert_int_equal(sum.faults, 0);
	forget(path);
	tdm_buffer_release(&bytes);
	tdm_buffer_release(&pages.bytes);
}

static void an_instance_is_shifted_where_it_shares_the_clock(void **state)
{
	static const struct dat_layout layout = { 7, false, 8, 4096, "none" };
	struct dat_pages pages = { .layout = &layout };
	struct tdm_buffer shift = { 0 };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffers[] = {
		{ "", "x86-tsc", 0, &cpu, 1 },
		{ "same", "tsc2nsec", 0, &cpu, 1 },
		{ "other", "mono", 0, &cpu, 1 },
	};
	const struct dat_option option = { 12, &shift };
	const struct dat_spec spec = { .layout = layout,
		.buffers = buffers,
		.buffer_count = 3,
		.options = &option,
		.option_count = 1 };
	const uint64_t wanted[] = { 1000 + 70000, 1000 + 70000, 1000 };
	struct tdm_trace *trace;
	struct tdm_error err;

	(void)state;
	pages_of_ticks(&pages, 1, 3, 1000);
	dat_u64(&shift, &layout, 1);
	dat_u32(&shift, &layout, 0);
	dat_u32(&shift, &layout, 1);
	dat_u32(&shift, &layout, 1);
	dat_u64(&shift, &layout, 5);
	dat_u64(&shift, &layout, 70000);
	dat_u64(&shift, &layout, 1);

	char *path = save(&spec, NULL);

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);
	for (size_t i = 0; i < 3; i++) {
		struct tdm_reader *reader = tdm_reader_create(trace, i, &err);
		struct tdm_record record;

		assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_OK);
		assert_int_equal(record.time_ns, wanted[i]);
		assert_int_equal(record.raw_time, 1000);
		assert_int_equal(tdm_trace_get_info(trace)->buffers[i].shifted, i < 2);
		tdm_reader_destroy(reader);
	}
	tdm_trace_close(trace);
	forget(path);
	tdm_buffer_release(&shift);
	tdm_buffer_release(&pages.bytes);
}

static void relative_text_and_wide_numbers_are_found_in_big_endian(void **state)
{
	static const char format[] =
		"name: mixed\nID: 20\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:__rel_loc char[] text;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:__uint128_t wide;\toffset:16;\tsize:16;\tsigned:0;\n"
		"\tfield:__data_loc u16[] list;\toffset:32;\tsize:4;\tsigned:0;\n";
	static const struct dat_layout layout = { 7, true, 4, 4096, "none" };
	struct dat_pages pages = { .layout = &layout };
	struct tdm_buffer payload = { 0 };
	const struct dat_cpu cpu = { 0, &pages.bytes };
	const struct dat_buffer buffer = { "", "mono", 0, &cpu, 1 };
	const struct dat_spec spec = {
		.layout = layout, .formats = format, .buffers = &buffer, .buffer_count = 1
	};
	struct tdm_trace *trace;
	struct tdm_record record;
	struct tdm_error err;
	struct tdm_span span;

	(void)state;
	dat_u16(&payload, &layout, 20);
	dat_u16(&payload, &layout, 0);
	dat_u32(&payload, &layout, (uint32_t)-5);
	dat_u32(&payload, &layout, 6 << 16 | 28); /* 12 + 28 = 40 */
	dat_u32(&payload, &layout, 0);
	dat_u64(&payload, &layout, 1);
	dat_u64(&payload, &layout, 2);
	dat_u32(&payload, &layout, 4 << 16 | 46);
	dat_u32(&payload, &layout, 0);
	dat_bytes(&payload, "hello", 6);
	dat_u16(&payload, &layout, 300);
	dat_u16(&payload, &layout, 301);
	page_begin(&pages, 1);
	page_record(&pages, 0, payload.bytes, (uint32_t)payload.size, false);
	page_end(&pages);

	char *path = save(&spec, NULL);

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);

	struct tdm_reader *reader = tdm_reader_create(trace, 0, &err);

	assert_int_equal(tdm_reader_next(reader, &record, &err), TDM_OK);
	assert_int_equal(record.tid, -5);
	assert_string_equal(record.event_class->name, "mixed");
	assert_true(tdm_field_span(tdm_event_class_field(record.event_class, "text"),
		record.payload, record.payload_bytes, true, &span));
	assert_int_equal(span.size_bytes, 6);
	assert_string_equal((const char *)span.bytes, "hello");
	assert_true(tdm_field_span(tdm_event_class_field(record.event_class, "list"),
		record.payload, record.payload_bytes, true, &span));
	assert_int_equal(span.size_bytes, 4);
	assert_int_equal(tdm_load_u16(span.bytes + 2, true), 301);
	assert_int_equal(tdm_event_class_field(record.event_class, "wide")->kind, TDM_FIELD_WIDE);
	tdm_reader_destroy(reader);
	tdm_trace_close(trace);
	forget(path);
	tdm_buffer_release(&payload);
	tdm_buffer_release(&pages.bytes);
}

static void formats_are_told_by_their_first_bytes(void **state)
{
	struct tdm_buffer bytes = { 0 };

	(void)state;
	dat_bytes(&bytes, "PERFILE2........", 16);

	char *path = dat_save(&bytes);

	assert_int_equal(tdm_trace_probe(path), TDM_FORMAT_PERF);
	forget(path);
	assert_int_equal(tdm_trace_probe(TEST_DATA_DIR "/single/v6.dat"), TDM_FORMAT_TRACEDAT);
	assert_int_equal(tdm_trace_probe(TEST_DATA_DIR "/single"), TDM_FORMAT_UNKNOWN);
	assert_int_equal(tdm_trace_probe("/dev/null"), TDM_FORMAT_UNKNOWN);
	assert_int_equal(tdm_trace_probe("/nonexistent"), TDM_FORMAT_UNKNOWN);
	tdm_buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_gives_the_same_records),
		cmocka_unit_test(what_the_file_says_of_itself_is_told),
		cmocka_unit_test(batches_and_single_records_may_be_mixed),
		cmocka_unit_test(data_at_5_gib_is_read),
		cmocka_unit_test(pages_that_nobody_wrote_are_passed_over),
		cmocka_unit_test(an_instance_is_shifted_where_it_shares_the_clock),
		cmocka_unit_test(relative_text_and_wide_numbers_are_found_in_big_endian),
		cmocka_unit_test(formats_are_told_by_their_first_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
