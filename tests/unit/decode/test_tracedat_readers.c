/* SPDX-License-Identifier: MIT */
/*
 * test_tracedat_readers.c - many readers of one trace.dat at once: their memory, and threads.
 */
#include "tdm_cmocka.h"
#include "trace_sum.h"
#include "tracedat_builder.h"
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

static const struct dat_layout zstd_layout = { 7, false, 4, 4096, "zstd" };

static void forget(char *path)
{
	unlink(path);
	free(path);
}

/* All readers open, as in a graph: one batch of each in turn. */
static uint64_t read_in_turn(struct tdm_trace *trace, size_t *most_bytes)
{
	const size_t count = tdm_trace_get_info(trace)->stream_count;
	struct tdm_reader **readers = calloc(count, sizeof(struct tdm_reader *));
	size_t open = count;
	uint64_t records = 0;
	struct tdm_error err;

	for (size_t i = 0; i < count; i++) {
		readers[i] = tdm_reader_create(trace, i, &err);
		assert_non_null(readers[i]);
	}
	while (open) {
		for (size_t i = 0; i < count; i++) {
			struct tdm_batch batch;

			if (!readers[i]) {
				continue;
			}
			if (tdm_reader_next_batch(readers[i], &batch, &err) == TDM_OK) {
				records += batch.count;
			} else {
				tdm_reader_destroy(readers[i]);
				readers[i] = NULL;
				open--;
			}
		}

		const struct mallinfo2 now = mallinfo2();

		if (now.uordblks + now.hblkhd > *most_bytes) {
			*most_bytes = now.uordblks + now.hblkhd;
		}
	}
	free(readers);
	return records;
}

static void many_cpus_with_large_pages_stay_below_48_mib(void **state)
{
	static const struct dat_layout layout = { 7, false, 8, 65536, "zstd" };
	static struct dat_cpu cpus[200];
	struct dat_pages pages = { .layout = &layout };
	const struct dat_buffer buffer = { "", "mono", 0, cpus, 200 };
	const struct dat_spec spec = { .layout = layout, .buffers = &buffer, .buffer_count = 1 };
	struct tdm_trace *trace;
	struct tdm_error err;
	size_t most_bytes = 0;

	(void)state;
	/* 12 pages of 64 KiB: a chunk of 640 KiB and a short one, for each of 200 CPUs. */
	pages_of_ticks(&pages, 12, 300, 1);
	for (uint32_t i = 0; i < 200; i++) {
		cpus[i] = (struct dat_cpu){ i, &pages.bytes };
	}

	/* What marks would point to has no room for so many. */
	struct tdm_buffer bytes = { 0 };

	dat_build(&spec, &bytes, NULL);

	char *path = dat_save(&bytes);

	tdm_buffer_release(&bytes);
	tdm_buffer_release(&pages.bytes);

	const struct mallinfo2 before = mallinfo2();
	const size_t bytes_before = before.uordblks + before.hblkhd;

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);
	assert_int_equal(read_in_turn(trace, &most_bytes), 200 * 12 * 300);
	assert_int_equal(tdm_trace_fault_count(trace), 0);
	/* A sanitizer's allocator says 0. */
	assert_true(most_bytes < bytes_before + (48u << 20));
	tdm_trace_close(trace);
	forget(path);
}

/* Of the streams one in four, from the number in the argument on. */
struct share {
	struct tdm_trace *trace;
	size_t first;
	uint64_t records;
};

static void *read_share(void *argument)
{
	struct share *share = argument;
	const size_t count = tdm_trace_get_info(share->trace)->stream_count;

	for (size_t i = share->first; i < count; i += 4) {
		struct tdm_error err;
		struct tdm_reader *reader = tdm_reader_create(share->trace, i, &err);
		struct tdm_record record;

		while (reader && tdm_reader_next(reader, &record, &err) == TDM_OK) {
			share->records += record.kind == TDM_ITEM_RECORD;
		}
		(void)tdm_trace_symbol(share->trace, UINT64_MAX, NULL);
		(void)tdm_trace_fault_count(share->trace);
		tdm_reader_destroy(reader);
	}
	return NULL;
}

static void readers_of_one_trace_may_run_in_threads(void **state)
{
	static struct dat_cpu cpus[32];
	struct dat_pages pages = { .layout = &zstd_layout };
	const struct dat_buffer buffer = { "", "mono", 0, cpus, 32 };
	const struct dat_spec spec = { .layout = zstd_layout,
		.buffers = &buffer,
		.buffer_count = 1,
		.kallsyms = "ffffffff81000000 T _text\n" };
	struct share shares[4] = { 0 };
	pthread_t threads[4];
	struct tdm_trace *trace;
	struct tdm_error err;
	uint64_t records = 0;

	(void)state;
	pages_of_ticks(&pages, 25, 50, 1);
	/* A page that is damaged, so that the threads meet in the list of faults, too. */
	dat_patch_u32(&pages.bytes, &zstd_layout, 4096 + 8, 4090);
	for (uint32_t i = 0; i < 32; i++) {
		cpus[i] = (struct dat_cpu){ i, &pages.bytes };
	}

	struct tdm_buffer bytes = { 0 };

	dat_build(&spec, &bytes, NULL);

	char *path = dat_save(&bytes);

	tdm_buffer_release(&bytes);

	assert_int_equal(tdm_trace_open(path, NULL, NULL, &trace, &err), TDM_OK);
	for (size_t i = 0; i < 4; i++) {
		shares[i] = (struct share){ trace, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, read_share, &shares[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		records += shares[i].records;
	}
	assert_int_equal(records, 32 * 24 * 50);
	assert_int_equal(tdm_trace_fault_count(trace), 32);
	tdm_trace_close(trace);
	forget(path);
	tdm_buffer_release(&pages.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_cpus_with_large_pages_stay_below_48_mib),
		cmocka_unit_test(readers_of_one_trace_may_run_in_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
