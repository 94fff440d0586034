/* SPDX-License-Identifier: MIT */
/*
 * cpu_scan.c - looking through an input before it is converted: records of a CPU, saved names.
 */
#include "convert_priv.h"
#include <stdlib.h>

struct scan_source {
	struct tdm_reader *reader;
	size_t stream_index;
	struct tdm_batch batch;
	size_t at;
	uint64_t ordinal;
	bool is_done;
};

struct tdm_cpu_scan {
	uint64_t bias_ns;
	struct scan_source *sources;
	size_t source_count;
};

struct tdm_cpu_scan *tdm_cpu_scan_create(struct tdm_convert_machine *conversion, uint32_t cpu)
{
	struct tdm_cpu_scan *const scan = calloc(1, sizeof(*scan));

	if (!scan) {
		return NULL;
	}
	scan->bias_ns = conversion->bias_ns;
	scan->sources = calloc(conversion->info->stream_count + 1, sizeof(*scan->sources));
	for (size_t i = 0; scan->sources && i < conversion->info->stream_count; i++) {
		struct scan_source *const source = &scan->sources[scan->source_count];

		if (conversion->info->streams[i].cpu == cpu) {
			source->stream_index = i;
			source->reader = tdm_reader_create(conversion->trace, i, NULL);
			source->is_done = !source->reader;
			scan->source_count++;
		}
	}
	if (!scan->sources) {
		free(scan);
		return NULL;
	}
	return scan;
}

bool tdm_cpu_scan_next(struct tdm_cpu_scan *scan, struct tdm_scanned *scanned)
{
	struct scan_source *first = NULL;

	for (size_t i = 0; i < scan->source_count; i++) {
		struct scan_source *const source = &scan->sources[i];

		while (!source->is_done && source->at == source->batch.count) {
			source->at = 0;
			if (tdm_reader_next_batch(source->reader, &source->batch, NULL) != TDM_OK) {
				source->is_done = true;
			}
		}
		if (!source->is_done &&
			(!first || source->batch.slots[source->at].time_ns + scan->bias_ns <
					   first->batch.slots[first->at].time_ns + scan->bias_ns)) {
			first = source;
		}
	}
	if (!first) {
		return false;
	}
	scanned->slot = &first->batch.slots[first->at++];
	scanned->stream_index = first->stream_index;
	scanned->ordinal = first->ordinal++;
	scanned->time = scanned->slot->time_ns + scan->bias_ns;
	return true;
}

void tdm_cpu_scan_add_counts(const struct tdm_cpu_scan *scan, struct tdm_convert_report *report)
{
	for (size_t i = 0; i < scan->source_count; i++) {
		if (scan->sources[i].reader) {
			const struct tdm_reader_counts counts =
				tdm_reader_get_counts(scan->sources[i].reader);

			report->lost += counts.lost_events;
			report->lost_unknown += counts.lost_unknown;
			report->unreadable_pages += counts.unreadable_pages;
			report->unreadable_bytes += counts.unreadable_bytes;
		}
	}
}

void tdm_cpu_scan_destroy(struct tdm_cpu_scan *scan)
{
	if (!scan) {
		return;
	}
	for (size_t i = 0; i < scan->source_count; i++) {
		tdm_reader_destroy(scan->sources[i].reader);
	}
	free(scan->sources);
	free(scan);
}

void tdm_each_saved_comm(struct tdm_trace *trace,
	void (*use)(void *user, int32_t tid, const char *comm, size_t comm_bytes), void *user)
{
	struct tdm_buffer text = { 0 };

	if (tdm_trace_read_text(trace, TDM_TEXT_SAVED_CMDLINES, &text, NULL) == TDM_OK) {
		const char *at = (const char *)text.bytes;
		const char *const end = at + text.size;

		while (at < end) {
			const char *const nl = memchr(at, '\n', (size_t)(end - at));
			const char *const line_end = nl ? nl : end;
			int64_t tid = 0;
			bool is_number = false;

			while (at < line_end && (*at == ' ' || *at == '\t')) {
				at++;
			}
			while (at < line_end && *at >= '0' && *at <= '9' && tid < INT32_MAX) {
				tid = tid * 10 + (*at++ - '0');
				is_number = true;
			}
			if (is_number && at < line_end && *at == ' ' && tid <= INT32_MAX) {
				at++;
				use(user, (int32_t)tid, at, (size_t)(line_end - at));
			}
			at = line_end + 1;
		}
	}
	tdm_buffer_release(&text);
}
