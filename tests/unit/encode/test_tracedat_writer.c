/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/trace.h>
#include <tandem/tracedat_writer.h>
#include <unistd.h>

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static const char event_format[] =
	"name: tick\nID: 300\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:u32 number;\toffset:8;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"%u\", REC->number\n";

enum {
	PAGE_BYTES = 4096,
	EVENTS_PER_PAGE = 100,
	PAGES = 25,
	DELTA_NS = 10
};

static struct tdm_trace_meta make_meta(void)
{
	struct tdm_trace_meta meta = { .cpu_count = 2, .page_bytes = PAGE_BYTES, .long_bytes = 8 };

	tdm_trace_meta_add(
		&meta, TDM_META_HEADER_PAGE, NULL, header_page, strlen(header_page), NULL);
	tdm_trace_meta_add(
		&meta, TDM_META_EVENT_FORMAT, "test", event_format, strlen(event_format), NULL);
	tdm_trace_meta_add(&meta, TDM_META_CLOCK, NULL, "local [mono]", 12, NULL);
	tdm_trace_meta_add(&meta, TDM_META_UNAME, NULL, "Linux box 6.1 x86_64", 20, NULL);
	tdm_trace_meta_add(&meta, TDM_META_CMDLINES, NULL, "7 tick er\n", 10, NULL);
	return meta;
}

/* Pages of "tick" events, number counting up over all pages, one each DELTA_NS. */
static int make_pages(unsigned int pages, uint64_t first_ns)
{
	char name[] = "/tmp/tandem-test-pages-XXXXXX";
	const int fd = mkstemp(name);
	uint32_t number = 0;

	assert_true(fd >= 0);
	unlink(name);
	for (unsigned int page = 0; page < pages; page++) {
		uint8_t bytes[PAGE_BYTES] = { 0 };
		uint64_t base_ns = first_ns + (uint64_t)number * DELTA_NS;
		const uint64_t commit = EVENTS_PER_PAGE * 16;

		memcpy(bytes, &base_ns, 8);
		memcpy(bytes + 8, &commit, 8);
		for (unsigned int i = 0; i < EVENTS_PER_PAGE; i++, number++) {
			uint8_t *at = bytes + 16 + i * 16;
			const uint32_t header = 3 | (i ? DELTA_NS : 0) << 5;
			const uint16_t id = 300;
			const int32_t pid = 7;

			memcpy(at, &header, 4);
			memcpy(at + 4, &id, 2);
			memcpy(at + 8, &pid, 4);
			memcpy(at + 12, &number, 4);
		}
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	}
	return fd;
}

struct fixture {
	char path[64];
	struct tdm_trace_meta meta;
	struct tdm_page_spool spools[2];
	struct tdm_tracedat_plan plan;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/tandem-test-%ld.dat", (long)getpid());
	f->meta = make_meta();
	f->spools[0] = (struct tdm_page_spool){
		.cpu = 0, .fd = make_pages(PAGES, 1000), .size_bytes = PAGES * PAGE_BYTES
	};
	f->spools[1] = (struct tdm_page_spool){
		.cpu = 1, .fd = make_pages(1, 5000), .size_bytes = PAGE_BYTES + 100
	};
	f->plan = (struct tdm_tracedat_plan){
		.path = f->path,
		.meta = &f->meta,
		.trace_id = 0x1234,
		.spools = f->spools,
		.spool_count = 2,
	};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	close(f->spools[0].fd);
	close(f->spools[1].fd);
	tdm_trace_meta_release(&f->meta);
	free(f);
	return 0;
}

static struct tdm_trace *open_written(const struct fixture *f)
{
	struct tdm_trace *trace = NULL;
	struct tdm_error err = { 0 };
	const struct tdm_stamp_options options = { 0 };

	if (tdm_trace_open(f->path, &options, NULL, &trace, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(tdm_trace_fault_count(trace), 0);
	return trace;
}

/* Reads CPU 0 and checks each record against what make_pages() wrote. */
static void check_records(struct tdm_trace *trace, uint64_t shift_ns)
{
	struct tdm_reader *reader = tdm_reader_create(trace, 0, NULL);
	struct tdm_record record;
	uint32_t number = 0;

	assert_non_null(reader);
	while (tdm_reader_next(reader, &record, NULL) == TDM_OK) {
		uint32_t value;

		assert_int_equal(record.kind, TDM_ITEM_RECORD);
		memcpy(&value, record.payload + 8, 4);
		assert_int_equal(value, number);
		assert_int_equal(record.time_ns, 1000 + (uint64_t)number * DELTA_NS + shift_ns);
		assert_int_equal(record.tid, 7);
		number++;
	}
	assert_int_equal(number, PAGES * EVENTS_PER_PAGE);
	tdm_reader_destroy(reader);
}

static void what_was_written_is_read_back(void **state)
{
	struct fixture *f = *state;

	for (int compress = 0; compress < 2; compress++) {
		f->plan.compress = compress;
		assert_int_equal(tdm_tracedat_write(&f->plan, NULL), TDM_OK);

		struct tdm_trace *trace = open_written(f);
		const struct tdm_trace_info *info = tdm_trace_get_info(trace);

		assert_string_equal(info->compression, compress ? "zstd" : "none");
		assert_string_equal(info->clock, "mono");
		assert_string_equal(info->hostname, "box");
		assert_int_equal(info->trace_id, 0x1234);
		assert_int_equal(info->stream_count, 2);
		assert_string_equal(tdm_trace_saved_comm(trace, 7), "tick er");
		check_records(trace, 0);
		tdm_trace_close(trace);
	}
}

static void a_part_of_a_page_at_the_end_is_left_out(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(tdm_tracedat_write(&f->plan, NULL), TDM_OK);

	struct tdm_trace *trace = open_written(f);

	assert_int_equal(tdm_trace_get_info(trace)->streams[1].data_bytes, PAGE_BYTES);
	tdm_trace_close(trace);
}

static void ties_to_host_and_guests_come_back(void **state)
{
	struct fixture *f = *state;
	const struct tdm_vcpu vcpus[] = { { 0, 4711 }, { 1, -1 } };
	const struct tdm_guest_info guest = {
		.name = "web", .trace_id = 99, .vcpus = vcpus, .vcpu_count = 2
	};
	const struct tdm_shift_sample samples[] = { { 500, 70000 }, { 400000, 70000 } };
	const struct tdm_shift_cpu cpus[] = { { samples, 2 }, { samples, 2 } };

	f->plan.guests = &guest;
	f->plan.guest_count = 1;
	f->plan.has_shift = true;
	f->plan.peer_trace_id = 0xabc;
	f->plan.shift_cpus = cpus;
	f->plan.shift_cpu_count = 2;
	assert_int_equal(tdm_tracedat_write(&f->plan, NULL), TDM_OK);

	struct tdm_trace *trace = open_written(f);
	const struct tdm_trace_info *info = tdm_trace_get_info(trace);

	assert_int_equal(info->guest_count, 1);
	assert_string_equal(info->guests[0].name, "web");
	assert_int_equal(info->guests[0].vcpus[0].host_tid, 4711);
	assert_int_equal(info->guests[0].vcpus[1].host_tid, -1);
	assert_true(info->has_peer);
	assert_int_equal(info->peer_trace_id, 0xabc);
	check_records(trace, 70000);
	tdm_trace_close(trace);
}

static void pages_are_added_to_a_beginning_that_another_program_made(void **state)
{
	struct fixture *f = *state;

	struct tdm_buffer prefix = { 0 };
	struct tdm_error err = { 0 };

	f->plan.compress = true;
	assert_int_equal(tdm_tracedat_begin(f->plan.meta, 7, 7, &prefix, &err), TDM_OK);
	f->plan.meta = NULL;
	f->plan.prefix = &prefix;
	if (tdm_tracedat_write(&f->plan, &err) != TDM_OK) {
		fail_msg("%s", err.text);
	}

	struct tdm_trace *trace = open_written(f);

	assert_string_equal(tdm_trace_get_info(trace)->clock, "mono");
	check_records(trace, 0);
	tdm_trace_close(trace);
	tdm_buffer_release(&prefix);
}

static void a_beginning_cut_short_anywhere_is_refused(void **state)
{
	struct fixture *f = *state;

	struct tdm_buffer prefix = { 0 };

	assert_int_equal(tdm_tracedat_begin(f->plan.meta, 7, 7, &prefix, NULL), TDM_OK);

	const size_t whole = prefix.size;
	unsigned int taken = 0;

	f->plan.meta = NULL;
	f->plan.prefix = &prefix;
	for (size_t size = 0; size < whole; size++) {
		prefix.size = size;
		taken += tdm_tracedat_write(&f->plan, NULL) == TDM_OK;
	}
	assert_int_equal(taken, 0);
	tdm_buffer_release(&prefix);
}

static void a_plan_that_contradicts_itself_leaves_no_file(void **state)
{
	struct fixture *f = *state;
	struct tdm_error err = { 0 };

	f->spools[1].cpu = 0;
	assert_int_equal(tdm_tracedat_write(&f->plan, &err), TDM_ERR_RANGE);
	assert_non_null(strstr(err.text, "CPU 0 twice"));
	f->spools[1].cpu = 1;
	f->meta.page_bytes = 4095;
	assert_int_equal(tdm_tracedat_write(&f->plan, &err), TDM_ERR_RANGE);
	assert_int_not_equal(access(f->path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_written_is_read_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_part_of_a_page_at_the_end_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			ties_to_host_and_guests_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			pages_are_added_to_a_beginning_that_another_program_made, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_beginning_cut_short_anywhere_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_plan_that_contradicts_itself_leaves_no_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
