/* SPDX-License-Identifier: MIT */
#include "info_scan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void scan_batch(
	const struct tdm_schema *schema, const struct tdm_batch *batch, struct info_stream *stream)
{
	if (batch->lost) {
		stream->losses++;
		stream->losses_unknown += batch->lost_count == 0;
		stream->lost_events += batch->lost_count;
	}
	for (size_t i = 0; i < batch->count; i++) {
		const struct tdm_slot *const slot = &batch->slots[i];
		const struct tdm_event_class *const class = tdm_schema_find(schema, slot->event_id);

		if (!class || class->fault || slot->payload_bytes < class->fixed_bytes) {
			stream->unknown_events++;
		}
		if (!stream->any) {
			stream->any = true;
			stream->first_ns = slot->time_ns;
			stream->last_ns = slot->time_ns;
		}
		if (slot->time_ns < stream->last_ns) {
			stream->went_back++;
		} else {
			stream->last_ns = slot->time_ns;
		}
	}
	stream->events += batch->count;
}

static void scan_stream(struct tdm_trace *trace, size_t index, struct info_stream *stream)
{
	const struct tdm_schema *const schema = tdm_trace_get_schema(trace);
	struct tdm_reader *const reader = tdm_reader_create(trace, index, NULL);
	struct tdm_batch batch;
	enum tdm_status status;

	if (!reader) {
		stream->failed = true;
		return;
	}
	while ((status = tdm_reader_next_batch(reader, &batch, NULL)) == TDM_OK) {
		scan_batch(schema, &batch, stream);
	}
	stream->failed = status != TDM_END;
	stream->unreadable_pages = tdm_reader_get_counts(reader).unreadable_pages;
	tdm_reader_destroy(reader);
}

static void add_stream(struct info_machine *machine, const struct info_stream *stream)
{
	machine->events += stream->events;
	machine->lost_events += stream->lost_events;
	machine->losses_unknown += stream->losses_unknown;
	machine->unknown_events += stream->unknown_events;
	machine->unreadable_pages += stream->unreadable_pages;
	machine->went_back += stream->went_back;
	machine->complete = machine->complete && !stream->failed;
	if (!stream->any) {
		return;
	}
	if (!machine->any || stream->first_ns < machine->first_ns) {
		machine->first_ns = stream->first_ns;
	}
	if (!machine->any || stream->last_ns > machine->last_ns) {
		machine->last_ns = stream->last_ns;
	}
	machine->any = true;
}

static void scan_samples(const struct tdm_trace_info *info, struct info_machine *machine)
{
	for (size_t cpu = 0; cpu < info->shift_cpu_count; cpu++) {
		const struct tdm_recorded_shift *const shift = &info->shift_cpus[cpu];
		struct info_samples *const samples = &machine->samples[cpu];

		samples->cpu = (uint32_t)cpu;
		samples->count = shift->sample_count;
		for (uint32_t i = 0; i < shift->sample_count; i++) {
			const int64_t offset = shift->samples[i].offset;

			if (i == 0 || offset < samples->least_offset) {
				samples->least_offset = offset;
			}
			if (i == 0 || offset > samples->most_offset) {
				samples->most_offset = offset;
			}
		}
		if (shift->sample_count >= 2) {
			const struct tdm_recorded_sample *const first = &shift->samples[0];
			const struct tdm_recorded_sample *const last =
				&shift->samples[shift->sample_count - 1];
			const double span = (double)last->time - (double)first->time;

			samples->rate_ppm =
				span > 0 ? 1e6 * ((double)last->offset - (double)first->offset) /
						   span
					 : 0;
		}
	}
	machine->sample_cpu_count = info->shift_cpu_count;
}

enum tdm_status info_scan(
	const struct tdm_machine *machine, struct info_machine *scanned, struct tdm_error *err)
{
	struct stat status;

	memset(scanned, 0, sizeof(*scanned));
	scanned->machine = machine;
	if (stat(machine->path, &status) == 0) {
		scanned->file_bytes = (uint64_t)status.st_size;
	}
	if (!machine->trace) {
		return TDM_OK;
	}
	scanned->info = tdm_trace_get_info(machine->trace);
	scanned->streams = calloc(scanned->info->stream_count + 1, sizeof(*scanned->streams));
	scanned->samples = calloc(scanned->info->shift_cpu_count + 1, sizeof(*scanned->samples));
	if (!scanned->streams || !scanned->samples) {
		info_scan_release(scanned);
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its streams", machine->path);
	}
	scanned->complete = true;
	for (size_t i = 0; i < scanned->info->stream_count; i++) {
		scan_stream(machine->trace, i, &scanned->streams[i]);
		add_stream(scanned, &scanned->streams[i]);
	}
	scanned->complete = scanned->complete && tdm_trace_fault_count(machine->trace) == 0;
	scan_samples(scanned->info, scanned);
	return TDM_OK;
}

void info_scan_release(struct info_machine *scanned)
{
	free(scanned->streams);
	free(scanned->samples);
	scanned->streams = NULL;
	scanned->samples = NULL;
}

void info_scan_compare(
	struct info_machine *scanned, size_t count, const struct tdm_machines *machines)
{
	for (size_t i = 0; i < count; i++) {
		const struct tdm_machine *const machine = scanned[i].machine;
		const struct info_machine *reference = NULL;

		for (size_t other = 0; other < count; other++) {
			if (scanned[other].machine ==
				tdm_machines_at(machines, machine->reference)) {
				reference = &scanned[other];
			}
		}
		if (!reference || reference == &scanned[i] || !scanned[i].any || !reference->any ||
			(machine->tie != TDM_TIE_SHIFT && machine->tie != TDM_TIE_CORRECTIONS)) {
			continue;
		}
		scanned[i].disjoint = scanned[i].last_ns < reference->first_ns ||
				      scanned[i].first_ns > reference->last_ns;
	}
}
