/* SPDX-License-Identifier: MIT */
/*
 * bench_decode - how fast a trace.dat file becomes records with stamps, nothing done with them.
 *
 * usage: bench_decode FILE [RUNS]
 * Prints for batches, for single records and for the walk of pages that are in the cache already: events, CPU seconds
 * (median of RUNS, default 7), million events a second.
 */
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
	qsort(seconds, (size_t)runs, sizeof(seconds[0]), compare);

	const double median = seconds[runs / 2];

	printf("%-8s %" PRIu64 " events, %.4f s CPU, %.1f M events/s\n", what, events, median,
		(double)events / median * 1e-6);
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

	const int failed = measure(trace, "batches", read_batches, runs) |
			   measure(trace, "records", read_records, runs);

	tdm_trace_close(trace);
	return failed || sink == 1;
}
