/* SPDX-License-Identifier: MIT */
#include "clock_report.h"
#include "info_report.h"
#include "options.h"
#include <inttypes.h>
#include <string.h>

/* A line of "name  value"; the value's bytes come out of files and are shown so that a terminal can take them. */
static void line(FILE *out, const char *name, const char *value)
{
	fprintf(out, "  %-11s ", name);
	cli_put_visible(out, value);
	fputc('\n', out);
}

static void text_file(FILE *out, const struct info_machine *scanned)
{
	const struct tdm_trace_info *const info = scanned->info;
	char text[300];

	snprintf(text, sizeof(text),
		"%s version %u, %s, %s-endian, %u-byte longs, %" PRIu64 " bytes",
		info->format == TDM_FORMAT_PERF ? "perf.data" : "trace.dat", info->version,
		info->compression && strcmp(info->compression, "none") != 0 ? info->compression
									    : "uncompressed",
		info->big_endian ? "big" : "little", info->long_bytes, scanned->file_bytes);
	line(out, "format", text);
	if (info->recorder) {
		line(out, "recorder", info->recorder);
	}
}

static void text_system(FILE *out, const struct tdm_trace_info *info)
{
	char text[400];

	snprintf(text, sizeof(text), "%s, Linux %s%s%s, %" PRIu32 " CPUs",
		info->hostname ? info->hostname : "?",
		info->kernel_release ? info->kernel_release : "?", info->architecture ? ", " : "",
		info->architecture ? info->architecture : "", info->cpu_count);
	line(out, "system", text);
}

static void text_clock(FILE *out, const struct tdm_trace_info *info)
{
	const struct tdm_clock_unit unit = tdm_clock_unit_of(info, info->clock, 0);
	char text[300];
	size_t used = (size_t)snprintf(text, sizeof(text), "%s, in %s",
		info->clock && *info->clock ? info->clock : "unknown", unit.unit);

	if (info->has_tsc2nsec && used < sizeof(text)) {
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			", ticks to ns: * %" PRIu32 " >> %" PRIu32, info->tsc_mult,
			info->tsc_shift);
	}
	if (info->date_offset_ns != 0 && used < sizeof(text)) {
		snprintf(text + used, sizeof(text) - used, ", plus %" PRId64 " ns",
			info->date_offset_ns);
	}
	line(out, "clock", text);
}

static void print_seconds(char *text, size_t room, uint64_t ns)
{
	snprintf(text, room, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void text_range(FILE *out, const struct info_machine *scanned)
{
	char first[40], last[40], length[40], text[160];

	if (!scanned->any) {
		line(out, "time", "no events");
		return;
	}
	print_seconds(first, sizeof(first), scanned->first_ns);
	print_seconds(last, sizeof(last), scanned->last_ns);
	print_seconds(length, sizeof(length), scanned->last_ns - scanned->first_ns);
	snprintf(text, sizeof(text), "%s to %s (%s s)", first, last, length);
	line(out, "time", text);
}

static void text_tie(
	FILE *out, const struct info_machine *scanned, const struct tdm_machines *machines)
{
	const struct tdm_machine *const machine = scanned->machine;
	char text[400];

	if (machine->tie == TDM_TIE_SELF && machine->corrections) {
		snprintf(text, sizeof(text), "%s, onto a host that is not among the inputs, %s",
			tdm_tie_words(TDM_TIE_CORRECTIONS), machine->corrections_path);
	} else if (machine->tie == TDM_TIE_SELF) {
		snprintf(text, sizeof(text), "%s",
			tdm_machines_count(machines) > 1 ? "the reference of the others"
							 : "nothing, it is alone");
	} else if (machine->tie == TDM_TIE_NONE) {
		snprintf(text, sizeof(text), "nothing: its events are merged by their own stamps");
	} else {
		snprintf(text, sizeof(text), "%s, onto %s%s%s", tdm_tie_words(machine->tie),
			tdm_machines_at(machines, machine->reference)->name,
			machine->corrections_path ? ", " : "",
			machine->corrections_path ? machine->corrections_path : "");
	}
	line(out, "tied by", text);
	if (scanned->info->has_peer && machine->tie == TDM_TIE_SELF && !machine->corrections) {
		line(out, "shifted",
			"by the time shift in the file, onto a host that is not among the inputs");
	}
	if (scanned->disjoint) {
		line(out, "doubt",
			"no moment is in both this and its reference: the relation of their clocks is not to be trusted");
	}
}

static void text_ids(FILE *out, const struct tdm_trace_info *info)
{
	char text[400];

	if (info->has_trace_id) {
		snprintf(text, sizeof(text), "0x%" PRIx64, info->trace_id);
		line(out, "trace id", text);
	}
	if (info->has_peer) {
		snprintf(text, sizeof(text), "0x%" PRIx64, info->peer_trace_id);
		line(out, "peer id", text);
	}
	for (size_t i = 0; i < info->guest_count; i++) {
		const struct tdm_guest_info *const guest = &info->guests[i];
		size_t used = (size_t)snprintf(text, sizeof(text), "%s, trace id 0x%" PRIx64,
			guest->name, guest->trace_id);

		for (size_t v = 0; v < guest->vcpu_count && used < sizeof(text); v++) {
			if (guest->vcpus[v].host_tid < 0) {
				continue;
			}
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				", vCPU %" PRIu32 " on thread %" PRId32, guest->vcpus[v].vcpu,
				guest->vcpus[v].host_tid);
		}
		line(out, "guest", text);
	}
}

/* Offsets in a TIME_SHIFT are in units of the clock. */
static const char *sample_unit(const struct info_machine *scanned)
{
	const char *const clock = scanned->info->clock;

	return clock && strcmp(clock, "x86-tsc") != 0 && strcmp(clock, "tsc2nsec") != 0 ? "ns"
											: "ticks";
}

/* How far the correction of a guest may be from the truth, or that nobody knows. */
static void text_bound(FILE *out, const struct info_machine *scanned)
{
	uint64_t samples = 0;
	uint64_t most = 0;
	char text[300];

	if (scanned->machine->corrections) {
		cli_timeline_bound_text(scanned->machine->corrections, text, sizeof(text));
		line(out, "bound", text);
		return;
	}
	if (scanned->machine->tie != TDM_TIE_SHIFT) {
		return;
	}
	for (size_t i = 0; i < scanned->sample_cpu_count; i++) {
		const struct info_samples *const of_cpu = &scanned->samples[i];
		const uint64_t spread =
			(uint64_t)of_cpu->most_offset - (uint64_t)of_cpu->least_offset;

		samples += of_cpu->count;
		most = of_cpu->count && spread > most ? spread : most;
	}
	snprintf(text, sizeof(text),
		"none: a time shift says no bound, here %" PRIu64
		" samples on %zu CPUs, which differ by up to %" PRIu64
		" %s; tandem record and tandem sync give one (--corrections)",
		samples, scanned->sample_cpu_count, most, sample_unit(scanned));
	line(out, "bound", text);
}

static void text_samples(FILE *out, const struct info_machine *scanned)
{
	const char *const unit = sample_unit(scanned);

	for (size_t i = 0; i < scanned->sample_cpu_count; i++) {
		const struct info_samples *const samples = &scanned->samples[i];
		char text[300];

		if (samples->count == 0) {
			continue;
		}
		snprintf(text, sizeof(text),
			"cpu%" PRIu32 ": %" PRIu32 " samples, offset %" PRId64
			" %s, spread %" PRIu64 " %s, rate %+.3f ppm",
			samples->cpu, samples->count, samples->least_offset, unit,
			(uint64_t)samples->most_offset - (uint64_t)samples->least_offset, unit,
			samples->rate_ppm);
		line(out, "sync", text);
	}
}

static void text_stream(
	FILE *out, const struct tdm_stream_info *stream, const struct info_stream *scanned)
{
	fprintf(out, "    cpu%-4" PRIu32 " %10" PRIu64 " events", stream->cpu, scanned->events);
	if (scanned->losses > 0) {
		fprintf(out, ", lost %" PRIu64 " in %" PRIu64 " places", scanned->lost_events,
			scanned->losses);
		if (scanned->losses_unknown > 0) {
			fprintf(out, " (%" PRIu64 " uncounted)", scanned->losses_unknown);
		}
	}
	if (scanned->unknown_events > 0) {
		fprintf(out, ", %" PRIu64 " without a usable format", scanned->unknown_events);
	}
	if (scanned->went_back > 0) {
		fprintf(out, ", %" PRIu64 " stamps go back", scanned->went_back);
	}
	if (scanned->unreadable_pages > 0) {
		fprintf(out, ", %" PRIu64 " unreadable pages", scanned->unreadable_pages);
	}
	if (scanned->failed) {
		fputs(", not readable to its end", out);
	}
	fputc('\n', out);
}

static void text_buffers(FILE *out, const struct info_machine *scanned)
{
	const struct tdm_trace_info *const info = scanned->info;

	for (size_t buffer = 0; buffer < info->buffer_count; buffer++) {
		const struct tdm_buffer_info *const about = &info->buffers[buffer];
		char label[200], text[400];

		tdm_buffer_label(info, buffer, label, sizeof(label));
		snprintf(text, sizeof(text), "%s, clock %s, pages of %" PRIu32 " bytes%s", label,
			about->clock && *about->clock ? about->clock
			: info->clock && *info->clock ? info->clock
						      : "unknown",
			about->page_bytes,
			info->has_peer && !about->shifted ? ", not shifted: another clock" : "");
		line(out, "buffer", text);
		for (size_t i = 0; i < info->stream_count; i++) {
			if (info->streams[i].buffer_index == buffer) {
				text_stream(out, &info->streams[i], &scanned->streams[i]);
			}
		}
	}
}

void info_text_machine(
	FILE *out, const struct info_machine *scanned, const struct tdm_machines *machines)
{
	const struct tdm_machine *const machine = scanned->machine;
	char text[100];

	fprintf(out, "%s  ", machine->name);
	line(out, machine->is_host ? "(host)" : "(guest)", machine->path);
	if (!scanned->info) {
		line(out, "unreadable", machine->error.text);
		return;
	}
	text_file(out, scanned);
	text_system(out, scanned->info);
	text_clock(out, scanned->info);
	text_tie(out, scanned, machines);
	text_samples(out, scanned);
	text_bound(out, scanned);
	text_ids(out, scanned->info);
	text_range(out, scanned);
	snprintf(text, sizeof(text), "%" PRIu64 ", lost by the tracer %" PRIu64 "%s",
		scanned->events, scanned->lost_events,
		scanned->losses_unknown > 0 ? " and more that it did not count" : "");
	line(out, "events", text);
	text_buffers(out, scanned);
	for (size_t i = 0; i < tdm_trace_fault_count(machine->trace); i++) {
		const struct tdm_fault fault = tdm_trace_fault_at(machine->trace, i);

		line(out, "fault", fault.text);
	}
}
