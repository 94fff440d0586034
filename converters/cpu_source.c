/* SPDX-License-Identifier: MIT */
#include "cpu_source.h"
#include <stdlib.h>

struct tdm_sync_point *tdm_next_sync(
	const struct tdm_convert_machine *conversion, size_t stream_index, uint64_t ordinal)
{
	struct tdm_sync_point *next = NULL;

	for (size_t i = 0; i < conversion->sync_count; i++) {
		struct tdm_sync_point *const sync = &conversion->syncs[i];

		if (sync->is_set && sync->stream_index == stream_index &&
			sync->ordinal >= ordinal && (!next || sync->ordinal < next->ordinal)) {
			next = sync;
		}
	}
	return next;
}

/* The next batch of a source that has none. */
static enum tdm_status load(
	struct tdm_cpu_sources *sources, struct tdm_cpu_source *source, struct tdm_error *err)
{
	struct tdm_error fault;

	while (!source->is_done && source->at == source->batch.count) {
		const enum tdm_status status =
			tdm_reader_next_batch(source->reader, &source->batch, &fault);

		source->at = 0;
		if (status != TDM_OK) {
			/* A stream that breaks off is told by the trace's faults; what was read stays. */
			source->batch = (struct tdm_batch){ 0 };
			source->is_done = true;
			if (status == TDM_ERR_NOMEM) {
				*err = fault;
				return status;
			}
		} else if (source->batch.count == 0 && source->batch.lost) {
			sources->discard += source->batch.lost_count ? source->batch.lost_count : 1;
		}
	}
	return TDM_OK;
}

enum tdm_status tdm_cpu_sources_load(struct tdm_cpu_sources *sources, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < sources->count && status == TDM_OK; i++) {
		status = load(sources, &sources->of[i], err);
	}
	return status;
}

struct tdm_cpu_source *tdm_cpu_sources_choose(
	const struct tdm_cpu_sources *sources, uint64_t *until)
{
	struct tdm_cpu_source *first = NULL;

	*until = UINT64_MAX;
	for (size_t i = 0; i < sources->count; i++) {
		struct tdm_cpu_source *const source = &sources->of[i];
		uint64_t time;

		if (source->is_done) {
			continue;
		}
		time = tdm_out_time(sources->conversion, source->batch.slots[source->at].time_ns);
		if (!first) {
			first = source;
		} else if (time < tdm_out_time(sources->conversion,
					  first->batch.slots[first->at].time_ns)) {
			*until = tdm_out_time(
				sources->conversion, first->batch.slots[first->at].time_ns);
			first = source;
		} else if (time < *until) {
			*until = time;
		}
	}
	return first;
}

enum tdm_status tdm_cpu_sources_open(
	struct tdm_cpu_job *job, struct tdm_cpu_sources *sources, struct tdm_error *err)
{
	struct tdm_convert_machine *const conversion = job->conversion;
	const struct tdm_trace_info *const info = conversion->info;

	sources->conversion = conversion;
	sources->of = calloc(info->stream_count + 1, sizeof(*sources->of));
	if (!sources->of) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	for (size_t i = 0; i < info->stream_count; i++) {
		struct tdm_cpu_source *const source = &sources->of[sources->count];

		if (info->streams[i].cpu != job->cpu) {
			continue;
		}
		source->stream_index = i;
		source->names = tdm_task_names_create(conversion->trace);
		if (!source->names) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		}
		sources->count++;
		source->reader = tdm_reader_create(conversion->trace, i, err);
		if (!source->reader) {
			/* Told among the trace's faults; the other streams still come. */
			source->is_done = true;
			if (err->status == TDM_ERR_NOMEM) {
				return TDM_ERR_NOMEM;
			}
			TDM_WARNING(conversion->log, "%s", err->text);
			job->unreadable_bytes += info->streams[i].data_bytes;
		}
		source->sync = tdm_next_sync(conversion, i, 0);
	}
	return TDM_OK;
}

void tdm_cpu_sources_close(struct tdm_cpu_job *job, struct tdm_cpu_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		struct tdm_cpu_source *const source = &sources->of[i];

		if (source->reader) {
			const struct tdm_reader_counts counts =
				tdm_reader_get_counts(source->reader);

			job->lost += counts.lost_events;
			job->lost_unknown += counts.lost_unknown;
			job->unreadable_pages += counts.unreadable_pages;
			job->unreadable_bytes += counts.unreadable_bytes;
		}
		tdm_reader_destroy(source->reader);
		tdm_task_names_destroy(source->names);
	}
	free(sources->of);
}
