/* SPDX-License-Identifier: MIT */
/*
 * trace_sum.h - opens a file, reads all of it and keeps what tests ask for.
 */
#ifndef TDM_TRACE_SUM_H
#define TDM_TRACE_SUM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/trace.h>

enum {
	SUM_STREAMS = 16
};

struct trace_sum {
	enum tdm_status status; /* of the opening */
	struct tdm_error err;
	size_t streams, faults;
	uint64_t records;
	uint64_t records_of[SUM_STREAMS]; /* of the first streams */
	uint64_t lost, losses;
	uint64_t unreadable_pages;
	uint64_t value_sum;         /* of the "tick" records */
	uint64_t first_ns, last_ns; /* of the whole trace, in stream order */
	char all_faults[4096];      /* a line each */
};

static inline void sum_record(
	struct trace_sum *sum, const struct tdm_record *record, bool big_endian)
{
	if (!sum->records) {
		sum->first_ns = record->time_ns;
	}
	sum->last_ns = record->time_ns;
	sum->records++;
	if (record->event_id == 10 && record->payload_bytes >= 16) {
		sum->value_sum += tdm_load_u64(record->payload + 8, big_endian);
	}
}

static inline struct trace_sum trace_sum_of(
	const char *path, const struct tdm_stamp_options *options)
{
	struct trace_sum sum = { 0 };
	struct tdm_trace *trace;

	sum.status = tdm_trace_open(path, options, NULL, &trace, &sum.err);
	if (sum.status != TDM_OK) {
		return sum;
	}

	const struct tdm_trace_info *info = tdm_trace_get_info(trace);

	sum.streams = info->stream_count;
	for (size_t i = 0; i < info->stream_count; i++) {
		struct tdm_error err;
		struct tdm_reader *reader = tdm_reader_create(trace, i, &err);
		struct tdm_record record;
		const uint64_t before = sum.records;

		while (reader && tdm_reader_next(reader, &record, &err) == TDM_OK) {
			if (record.kind == TDM_ITEM_LOST) {
				sum.losses++;
				sum.lost += record.lost_count;
			} else {
				sum_record(&sum, &record, info->big_endian);
			}
		}
		if (reader) {
			sum.unreadable_pages += tdm_reader_get_counts(reader).unreadable_pages;
		}
		if (i < SUM_STREAMS) {
			sum.records_of[i] = sum.records - before;
		}
		tdm_reader_destroy(reader);
	}
	sum.faults = tdm_trace_fault_count(trace);
	for (size_t i = 0; i < sum.faults; i++) {
		const size_t used = strlen(sum.all_faults);

		snprintf(sum.all_faults + used, sizeof(sum.all_faults) - used, "%s\n",
			tdm_trace_fault_at(trace, i).text);
	}
	tdm_trace_close(trace);
	return sum;
}

#endif
