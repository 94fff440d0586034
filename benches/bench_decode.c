/* SPDX-License-Identifier: MIT */
/*
 * bench_decode - how fast a trace.dat file becomes records with stamps, nothing done with them.
 *
 * usage: bench_decode FILE [RUNS]
 * Prints events, CPU seconds (median of RUNS, default 7) and million events a second for
 *   walk     pages that are in memory already: walk and stamp alone (uncompressed files)
 *   batches  the file read, walked and stamped, many records a call
 *   records  the same, one record a call
 */
#include "decode/stamp_priv.h"
#include "decode/tracedat_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/trace.h>
#include <time.h>

enum {
	MAX_RUNS = 99
};

static uint64_t sink; /* keeps the compiler from leaving work out */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static uint64_t read_batches(struct tdm_reader *reader)
{
	struct tdm_batch batch;
	struct tdm_error err;
	uint64_t events = 0;

	while (tdm_reader_next_batch(reader, &batch, &err) == TDM_OK) {
		events += batch.count;
		if (batch.count) {
			sink += batch.slots[batch.count - 1].time_ns;
		}
	}
	return events;
}

static uint64_t read_records(struct tdm_reader *reader)
{
	struct tdm_record record;
	struct tdm_error err;
	uint64_t events = 0;

	while (tdm_reader_next(reader, &record, &err) == TDM_OK) {
		events += record.kind == TDM_ITEM_RECORD;
		sink += record.time_ns;
	}
	return events;
}

/* One stream's pages, read before the clock starts. */
struct pages {
	uint8_t *bytes;
	size_t size;
};

static uint64_t walk_pages(const struct tracedat *dat, size_t stream, const struct pages *pages)
{
	static struct tdm_slot slots[256];
	const size_t room = sizeof(slots) / sizeof(slots[0]);
	const size_t page_bytes =
		dat->base.info.buffers[dat->base.info.streams[stream].buffer_index].page_bytes;
	struct stamp_plan plan = stamp_plan_make(&dat->base.info, &dat->base.options, stream);
	uint64_t events = 0;

	for (size_t at = 0; at + page_bytes <= pages->size; at += page_bytes) {
		struct ring_page page;
		struct ring_fault fault;
		size_t count = 0;

		if (!ring_page_begin(&dat->layout, pages->bytes + at, page_bytes, &page, &fault)) {
			continue;
		}
		do {
			count = ring_page_walk(&dat->layout, &page, slots, room, &fault);
			stamp_slots(&plan, slots, count);
			events += count;
			sink += count ? slots[count - 1].time_ns : 0;
		} while (count == room);
	}
	return events;
}

static void print_median(const char *what, uint64_t events, double *seconds, int runs)
{
	qsort(seconds, (size_t)runs, sizeof(seconds[0]), compare);

	const double median = seconds[runs / 2];

	printf("%-8s %" PRIu64 " events, %.4f s CPU, %.1f M events/s\n", what, events, median,
		(double)events / median * 1e-6);
}

static int measure_walk(struct tdm_trace *trace, int runs)
{
	const struct tracedat *dat = (const struct tracedat *)trace;
	const size_t streams = trace->info.stream_count;
	struct pages *pages = calloc(streams ? streams : 1, sizeof(*pages));
	double seconds[MAX_RUNS];
	uint64_t events = 0;
	int failed = !pages;

	for (size_t i = 0; i < streams && !failed; i++) {
		const struct tracedat_data *data = &dat->data.items[i];

		if (data->is_compressed) {
			goto out;
		}
		pages[i].bytes = malloc(data->size);
		failed = !pages[i].bytes ||
			 tdm_input_file_read(dat->file, data->offset, pages[i].bytes, data->size,
				 &pages[i].size, NULL) != TDM_OK;
	}
	for (int run = -1; run < runs && !failed; run++) {
		const double start = cpu_seconds();

		events = 0;
		for (size_t i = 0; i < streams; i++) {
			events += walk_pages(dat, i, &pages[i]);
		}
		if (run >= 0) {
			seconds[run] = cpu_seconds() - start;
		}
	}
	if (!failed) {
		print_median("walk", events, seconds, runs);
	}
out:
	for (size_t i = 0; pages && i < streams; i++) {
		free(pages[i].bytes);
	}
	free(pages);
	return failed;
}

static int measure(struct tdm_trace *trace, const char *what,
	uint64_t (*read)(struct tdm_reader *reader), int runs)
{
	const size_t streams = tdm_trace_get_info(trace)->stream_count;
	double seconds[MAX_RUNS];
	uint64_t events = 0;

	for (int run = -1; run < runs; run++) {
		const double start = cpu_seconds();

		events = 0;
		for (size_t i = 0; i < streams; i++) {
			struct tdm_error err;
			struct tdm_reader *reader = tdm_reader_create(trace, i, &err);

			if (!reader) {
				fprintf(stderr, "bench_decode: %s\n", err.text);
				return 1;
			}
			events += read(reader);
			tdm_reader_destroy(reader);
		}
		/* The first one warms the page cache. */
		if (run >= 0) {
			seconds[run] = cpu_seconds() - start;
		}
	}
	print_median(what, events, seconds, runs);
	return 0;
}

int main(int argc, char **argv)
{
	const int wanted = argc > 2 ? atoi(argv[2]) : 7;
	const int runs = wanted < 1 ? 1 : wanted > MAX_RUNS ? MAX_RUNS : wanted;
	struct tdm_trace *trace;
	struct tdm_error err;

	if (argc < 2 || tdm_trace_open(argv[1], NULL, NULL, &trace, &err) != TDM_OK) {
		fprintf(stderr, "bench_decode: %s\n", argc < 2 ? "usage: FILE [RUNS]" : err.text);
		return 1;
	}

	const int failed = measure_walk(trace, runs) |
			   measure(trace, "batches", read_batches, runs) |
			   measure(trace, "records", read_records, runs);

	tdm_trace_close(trace);
	return failed || sink == 1;
}
