/* SPDX-License-Identifier: MIT */
#include "clock_report.h"
#include "json_writer.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/utf8.h>

/* A time in ns, in the unit that a reader likes. */
static const char *time_text(double ns, char room[32])
{
	const double size = ns < 0 ? -ns : ns;

	if (size < 10000) {
		snprintf(room, 32, "%.0f ns", ns);
	} else if (size < 10e6) {
		snprintf(room, 32, "%.1f us", ns / 1e3);
	} else if (size < 10e9) {
		snprintf(room, 32, "%.1f ms", ns / 1e6);
	} else {
		snprintf(room, 32, "%.1f s", ns / 1e9);
	}
	return room;
}

static double host_ns(const struct tdm_timeline_info *info, uint64_t units)
{
	return (double)units * 1e9 / (double)info->host_unit_hz;
}

static double guest_ns(const struct tdm_timeline_info *info, uint64_t units)
{
	return (double)units * 1e9 / (double)info->guest_unit_hz;
}

void cli_timeline_bound_text(const struct tdm_timeline *timeline, char *text, size_t room)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	uint64_t median;
	uint64_t worst;
	char rooms[2][32];

	(void)tdm_timeline_bounds(timeline, &median, &worst);
	snprintf(text, room, "+-%s at the median knot, +-%s at worst",
		time_text(host_ns(&info, median), rooms[0]),
		time_text(host_ns(&info, worst), rooms[1]));
}

void cli_json_string(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	struct tdm_buffer shown = { 0 };

	/* JSON is UTF-8; a file's bytes need not be. */
	if (tdm_utf8_append_visible(&shown, (const uint8_t *)text, strlen(text)) != TDM_OK) {
		shown.size = 0;
	}
	json_quote(out, &shown);
	tdm_buffer_release(&shown);
}

/* Segments with their kinds and places, doubt ranges. */
static void report_segments(FILE *out, const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	const uint64_t first =
		info.segment_count ? tdm_timeline_segment(timeline, 0).knots[0].guest : 0;
	uint64_t doubt = 0;
	char room[32];

	for (size_t i = 0; i < info.doubt_count; i++) {
		uint64_t from;
		uint64_t to;

		tdm_timeline_doubt(timeline, i, &from, &to);
		doubt += to - from;
	}
	fprintf(out, "  segments    %zu, knots %zu", info.segment_count, info.knot_count);
	if (info.doubt_count) {
		fprintf(out, ", doubt ranges %zu (%s together)", info.doubt_count,
			time_text(guest_ns(&info, doubt), room));
	}
	fputc('\n', out);
	for (size_t i = 1; i < info.segment_count && i <= 20; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);
		const struct tdm_segment_info before = tdm_timeline_segment(timeline, i - 1);
		const int64_t jump =
			(int64_t)(tdm_timeline_apply(timeline, segment.from, UINT32_MAX, NULL) -
				  before.knots[before.knot_count - 1].host);
		const double at = segment.from >= first ? guest_ns(&info, segment.from - first)
							: -guest_ns(&info, first - segment.from);

		fprintf(out, "              %s %.3f s after the first knot, guest reading %" PRIu64,
			tdm_segment_kind_name(segment.kind), at / 1e9, segment.from);
		if (segment.kind != TDM_SEGMENT_RATE && jump > 0) {
			fprintf(out, ", host goes on by %s",
				time_text(host_ns(&info, (uint64_t)jump), room));
		}
		fputc('\n', out);
	}
	if (info.segment_count > 21) {
		fprintf(out, "              ... and %zu more\n", info.segment_count - 21);
	}
	if (info.ambiguous) {
		fputs("  ambiguous   guest readings were shown twice: a stamp alone does not tell which "
		      "time is meant\n",
			out);
	}
}

static void report_clocks(FILE *out, const struct tdm_timeline_info *info)
{
	fprintf(out, "  clocks      host %s, guest %s", info->host_clock ? info->host_clock : "?",
		info->guest_clock ? info->guest_clock : "?");
	if (info->host_unit_hz != 1000000000 || info->guest_unit_hz != 1000000000) {
		fprintf(out, " (%" PRIu64 " and %" PRIu64 " Hz)", info->host_unit_hz,
			info->guest_unit_hz);
	}
	fputc('\n', out);
}

void cli_report_estimate(FILE *out, const char *name, const struct tdm_quality *quality,
	const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	char room[4][32];

	fprintf(out, "%s: %s\n", name, tdm_grade_name(quality->grade));
	report_clocks(out, &info);
	fprintf(out, "  bound       +-%s at the median, +-%s at worst\n",
		time_text(host_ns(&info, quality->median_bound), room[0]),
		time_text(host_ns(&info, quality->worst_bound), room[1]));
	fprintf(out, "  spread      %s at the median, %s at worst, of a burst\n",
		time_text(host_ns(&info, quality->median_spread), room[0]),
		time_text(host_ns(&info, quality->worst_spread), room[1]));
	fprintf(out, "  path        host to guest %s, guest to host %s at best; round trip %s\n",
		time_text(host_ns(&info, quality->forward_least), room[0]),
		time_text(host_ns(&info, quality->backward_least), room[1]),
		time_text(host_ns(&info, quality->median_round_trip), room[2]));
	fprintf(out,
		"  samples     %" PRIu64 ", used %" PRIu64 " in %" PRIu64 " windows, lost %" PRIu64
		"\n",
		quality->samples, quality->used, quality->windows, quality->lost);
	if (quality->used != quality->samples) {
		fprintf(out,
			"  left out    %" PRIu64 " with impossible stamps, %" PRIu64
			" outvoted, %" PRIu64 " too fast, %" PRIu64 " stray or stalled, %" PRIu64
			" duplicates\n",
			quality->bad_stamps, quality->outvoted, quality->unbelievable,
			quality->stray, quality->duplicates);
	}
	if (quality->kernel_used || quality->kernel_dropped) {
		fprintf(out, "  stamps      kernel: %" PRIu64 " used, %" PRIu64 " dropped\n",
			quality->kernel_used, quality->kernel_dropped);
	}
	fprintf(out, "  rate        %+.3f ppm, assumed to stay within %" PRIu64 " ppb\n",
		(double)quality->rate_ppb / 1e3, quality->assumed_ppb);
	report_segments(out, timeline);
	fputs("  The estimate takes both directions for alike: a constant difference of the paths shows in "
	      "no exchange, only the bound covers it.\n",
		out);
}

static void put_count(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, name, value);
}

static void json_clock(
	FILE *out, const char *side, const char *uuid, const char *clock, uint64_t hz)
{
	fprintf(out, ",\"%s\":{\"uuid\":", side);
	cli_json_string(out, uuid);
	fputs(",\"clock\":", out);
	cli_json_string(out, clock);
	fprintf(out, ",\"unit-hz\":%" PRIu64 "}", hz);
}

static void json_timeline(FILE *out, const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

	json_clock(out, "host", info.host_uuid, info.host_clock, info.host_unit_hz);
	json_clock(out, "guest", info.guest_uuid, info.guest_clock, info.guest_unit_hz);
	put_count(out, "assume-rate-ppb", info.rate_ppb);
	if (info.has_epoch) {
		fprintf(out, ",\"epoch-ns\":%" PRId64, info.epoch_offset_ns);
		put_count(out, "epoch-width-ns", info.epoch_width_ns);
	}
	fputs(",\"made\":", out);
	cli_json_string(out, info.made);
	fputs(",\"method\":", out);
	cli_json_string(out, info.method);
	fputs(",\"stamps\":", out);
	cli_json_string(out, info.stamps);
	fprintf(out, ",\"ambiguous\":%s,\"segments\":[", info.ambiguous ? "true" : "false");
	for (size_t i = 0; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);

		fprintf(out, "%s{\"kind\":\"%s\",\"from\":%" PRIu64 ",\"knots\":%zu}", i ? "," : "",
			tdm_segment_kind_name(segment.kind), segment.from, segment.knot_count);
	}
	fputs("],\"doubts\":[", out);
	for (size_t i = 0; i < info.doubt_count; i++) {
		uint64_t from;
		uint64_t to;

		tdm_timeline_doubt(timeline, i, &from, &to);
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", from, to);
	}
	fputs("],\"cpus\":[", out);

	bool first = true;

	for (uint32_t cpu = 0; cpu < TDM_TIMELINE_MAX_CPUS; cpu++) {
		int64_t ticks;
		uint64_t bound;

		if (tdm_timeline_cpu(timeline, cpu, &ticks, &bound)) {
			fprintf(out,
				"%s{\"cpu\":%" PRIu32 ",\"ticks\":%" PRId64 ",\"bound\":%" PRIu64
				"}",
				first ? "" : ",", cpu, ticks, bound);
			first = false;
		}
	}
	fputc(']', out);
}

void cli_report_estimate_json(FILE *out, const char *name, const struct tdm_quality *quality,
	const struct tdm_timeline *timeline)
{
	fputs("{\"name\":", out);
	cli_json_string(out, name);
	fprintf(out, ",\"kind\":\"exchanges\",\"grade\":\"%s\"", tdm_grade_name(quality->grade));
	put_count(out, "samples", quality->samples);
	put_count(out, "used", quality->used);
	put_count(out, "lost", quality->lost);
	put_count(out, "bad-stamps", quality->bad_stamps);
	put_count(out, "duplicates", quality->duplicates);
	put_count(out, "outvoted", quality->outvoted);
	put_count(out, "too-fast", quality->unbelievable);
	put_count(out, "stray", quality->stray);
	put_count(out, "kernel-used", quality->kernel_used);
	put_count(out, "kernel-dropped", quality->kernel_dropped);
	put_count(out, "windows", quality->windows);
	put_count(out, "median-bound", quality->median_bound);
	put_count(out, "worst-bound", quality->worst_bound);
	put_count(out, "median-spread", quality->median_spread);
	put_count(out, "worst-spread", quality->worst_spread);
	put_count(out, "forward-least", quality->forward_least);
	put_count(out, "backward-least", quality->backward_least);
	put_count(out, "median-round-trip", quality->median_round_trip);
	put_count(out, "doubt", quality->doubt);
	fprintf(out, ",\"rate-ppb\":%" PRId64 ",\"composed\":%s,\"noisy\":%s,\"stalled\":%s",
		quality->rate_ppb, quality->composed ? "true" : "false",
		quality->noisy ? "true" : "false", quality->stalled ? "true" : "false");
	if (timeline) {
		json_timeline(out, timeline);
	}
	fputc('}', out);
}

void cli_report_timeline(FILE *out, const char *name, const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	uint64_t first;
	uint64_t last;
	char bound[100];
	char room[2][32];

	cli_timeline_bound_text(timeline, bound, sizeof(bound));
	fprintf(out, "%s: corrections, method %s\n", name, info.method ? info.method : "not said");
	report_clocks(out, &info);
	if (tdm_timeline_range(timeline, &first, &last)) {
		const uint64_t host = tdm_timeline_apply(timeline, first, UINT32_MAX, NULL);
		const double run = guest_ns(&info, last - first);
		const double rise =
			host_ns(&info, tdm_timeline_apply(timeline, last, UINT32_MAX, NULL) - host);

		fprintf(out, "  range       guest %" PRIu64 " to %" PRIu64 " (%.3f s)\n", first,
			last, run / 1e9);
		fprintf(out, "  offset      %s at the first knot",
			time_text(host_ns(&info, host) - guest_ns(&info, first), room[0]));
		if (info.segment_count == 1 && run > 0) {
			fprintf(out, ", rate %+.3f ppm", (rise / run - 1) * 1e6);
		}
		fputc('\n', out);
	}
	fprintf(out, "  bound       %s, rate within %" PRIu64 " ppb\n", bound, info.rate_ppb);
	if (info.has_counts) {
		fprintf(out,
			"  samples     %" PRIu64 ", used %" PRIu64 ", bogus %" PRIu64
			", lost %" PRIu64 "\n",
			info.samples, info.used, info.bogus, info.lost);
	}
	if (info.made) {
		fprintf(out, "  made        %s\n", info.made);
	}
	if (info.has_epoch) {
		fprintf(out, "  epoch       host clock + %" PRId64 " ns = Unix time, known to %s\n",
			info.epoch_offset_ns, time_text((double)info.epoch_width_ns, room[0]));
	}
	if (info.cpu_count) {
		fprintf(out, "  cpus        %zu with an offset of their own\n", info.cpu_count);
	}
	report_segments(out, timeline);
}

void cli_report_timeline_json(FILE *out, const char *name, const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	uint64_t median;
	uint64_t worst;

	(void)tdm_timeline_bounds(timeline, &median, &worst);
	fputs("{\"name\":", out);
	cli_json_string(out, name);
	fputs(",\"kind\":\"corrections\"", out);
	put_count(out, "median-bound", median);
	put_count(out, "worst-bound", worst);
	if (info.has_counts) {
		put_count(out, "samples", info.samples);
		put_count(out, "used", info.used);
		put_count(out, "bogus", info.bogus);
		put_count(out, "lost", info.lost);
	}
	json_timeline(out, timeline);
	fputc('}', out);
}
