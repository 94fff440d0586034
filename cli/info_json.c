/* SPDX-License-Identifier: MIT */
#include "clock_report.h"
#include "info_report.h"

static void json_streams(
	struct json_writer *json, const struct info_machine *scanned, size_t buffer)
{
	const struct tdm_trace_info *const info = scanned->info;

	json_array_begin(json, "cpus");
	for (size_t i = 0; i < info->stream_count; i++) {
		const struct info_stream *const stream = &scanned->streams[i];

		if (info->streams[i].buffer_index != buffer) {
			continue;
		}
		json_object_begin(json, NULL);
		json_uint(json, "cpu", info->streams[i].cpu);
		json_uint(json, "events", stream->events);
		json_uint(json, "lost_events", stream->lost_events);
		json_uint(json, "losses", stream->losses);
		json_uint(json, "losses_uncounted", stream->losses_unknown);
		json_uint(json, "events_without_format", stream->unknown_events);
		json_uint(json, "stamps_gone_back", stream->went_back);
		json_uint(json, "unreadable_pages", stream->unreadable_pages);
		json_bool(json, "read_to_its_end", !stream->failed);
		if (stream->any) {
			json_uint(json, "first_ns", stream->first_ns);
			json_uint(json, "last_ns", stream->last_ns);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_buffers(struct json_writer *json, const struct info_machine *scanned)
{
	const struct tdm_trace_info *const info = scanned->info;

	json_array_begin(json, "buffers");
	for (size_t buffer = 0; buffer < info->buffer_count; buffer++) {
		const struct tdm_buffer_info *const about = &info->buffers[buffer];
		char label[200];

		tdm_buffer_label(info, buffer, label, sizeof(label));
		json_object_begin(json, NULL);
		json_text(json, "name", label);
		json_text(json, "clock", about->clock ? about->clock : info->clock);
		json_uint(json, "page_bytes", about->page_bytes);
		json_bool(json, "shifted", about->shifted);
		json_streams(json, scanned, buffer);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_samples(struct json_writer *json, const struct info_machine *scanned)
{
	json_array_begin(json, "sync_samples");
	for (size_t i = 0; i < scanned->sample_cpu_count; i++) {
		const struct info_samples *const samples = &scanned->samples[i];

		json_object_begin(json, NULL);
		json_uint(json, "cpu", samples->cpu);
		json_uint(json, "count", samples->count);
		if (samples->count > 0) {
			json_int(json, "least_offset", samples->least_offset);
			json_int(json, "most_offset", samples->most_offset);
			json_uint(json, "spread",
				(uint64_t)samples->most_offset - (uint64_t)samples->least_offset);
			json_real(json, "rate_ppm", samples->rate_ppm);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_guests(struct json_writer *json, const struct tdm_trace_info *info)
{
	json_array_begin(json, "guests");
	for (size_t i = 0; i < info->guest_count; i++) {
		const struct tdm_guest_info *const guest = &info->guests[i];

		json_object_begin(json, NULL);
		json_text(json, "name", guest->name);
		json_id(json, "trace_id", guest->trace_id);
		json_array_begin(json, "vcpus");
		for (size_t v = 0; v < guest->vcpu_count; v++) {
			json_object_begin(json, NULL);
			json_uint(json, "vcpu", guest->vcpus[v].vcpu);
			json_int(json, "host_tid", guest->vcpus[v].host_tid);
			json_object_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_clock(struct json_writer *json, const struct tdm_trace_info *info)
{
	json_object_begin(json, "clock");
	json_text(json, "name", info->clock);
	json_text(json, "unit", tdm_clock_unit_of(info, info->clock, 0).unit);
	if (info->has_tsc2nsec) {
		json_uint(json, "mult", info->tsc_mult);
		json_uint(json, "shift", info->tsc_shift);
	}
	json_int(json, "added_ns", info->date_offset_ns);
	json_bool(json, "is_unix_time", info->is_unix_time);
	json_object_end(json);
}

static void json_file(struct json_writer *json, const struct info_machine *scanned)
{
	const struct tdm_trace_info *const info = scanned->info;

	json_text(json, "format", info->format == TDM_FORMAT_PERF ? "perf.data" : "trace.dat");
	json_uint(json, "version", info->version);
	json_text(json, "compression", info->compression ? info->compression : "none");
	json_bool(json, "big_endian", info->big_endian);
	json_uint(json, "long_bytes", info->long_bytes);
	json_uint(json, "file_bytes", scanned->file_bytes);
	json_text(json, "recorder", info->recorder);
	json_text(json, "hostname", info->hostname);
	json_text(json, "kernel_release", info->kernel_release);
	json_text(json, "architecture", info->architecture);
	json_uint(json, "cpu_count", info->cpu_count);
	if (info->has_trace_id) {
		json_id(json, "trace_id", info->trace_id);
	}
	if (info->has_peer) {
		json_id(json, "peer_trace_id", info->peer_trace_id);
	}
}

static const char *tie_name(enum tdm_tie tie)
{
	static const char *const names[] = {
		[TDM_TIE_SELF] = "self",
		[TDM_TIE_SAME] = "same-machine",
		[TDM_TIE_SHIFT] = "time-shift",
		[TDM_TIE_CORRECTIONS] = "corrections",
		[TDM_TIE_NAMED] = "named",
		[TDM_TIE_NONE] = "none",
	};

	return names[tie];
}

static void json_faults(struct json_writer *json, const struct tdm_trace *trace)
{
	json_array_begin(json, "faults");
	for (size_t i = 0; i < tdm_trace_fault_count(trace); i++) {
		const struct tdm_fault fault = tdm_trace_fault_at(trace, i);

		json_object_begin(json, NULL);
		json_text(json, "text", fault.text);
		json_uint(json, "count", fault.count);
		json_object_end(json);
	}
	json_array_end(json);
}

void info_json_machine(struct json_writer *json, const struct info_machine *scanned,
	const struct tdm_machines *machines)
{
	const struct tdm_machine *const machine = scanned->machine;

	json_object_begin(json, NULL);
	json_text(json, "name", machine->name);
	json_text(json, "role", machine->is_host ? "host" : "guest");
	json_text(json, "path", machine->path);
	if (!scanned->info) {
		json_text(json, "error", machine->error.text);
		json_object_end(json);
		return;
	}
	json_file(json, scanned);
	json_clock(json, scanned->info);
	json_text(json, "tie", tie_name(machine->tie));
	json_text(json, "reference", tdm_machines_at(machines, machine->reference)->name);
	json_text(json, "corrections", machine->corrections_path);
	if (machine->corrections) {
		uint64_t median, worst;

		(void)tdm_timeline_bounds(machine->corrections, &median, &worst);
		json_uint(json, "bound_median", median);
		json_uint(json, "bound_worst", worst);
	} else {
		json_null(json, "bound_median");
		json_null(json, "bound_worst");
	}
	json_bool(json, "shares_time_with_reference", !scanned->disjoint);
	json_samples(json, scanned);
	json_guests(json, scanned->info);
	json_uint(json, "events", scanned->events);
	json_uint(json, "lost_events", scanned->lost_events);
	json_uint(json, "losses_uncounted", scanned->losses_unknown);
	json_uint(json, "events_without_format", scanned->unknown_events);
	json_uint(json, "unreadable_pages", scanned->unreadable_pages);
	if (scanned->any) {
		json_uint(json, "first_ns", scanned->first_ns);
		json_uint(json, "last_ns", scanned->last_ns);
	}
	json_buffers(json, scanned);
	json_faults(json, machine->trace);
	json_bool(json, "complete", scanned->complete);
	json_object_end(json);
}
