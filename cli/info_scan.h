/* SPDX-License-Identifier: MIT */
/*
 * info_scan.h - one pass over every stream of the inputs: counts, losses, ranges of time, spread of the sync samples.
 */
#ifndef CLI_INFO_SCAN_H
#define CLI_INFO_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/machines.h>

/* One stream, read to its end. */
struct info_stream {
	uint64_t events;
	uint64_t unknown_events; /* of these, records whose id has no usable format */
	uint64_t lost_events;    /* where the tracer counted them */
	uint64_t losses;         /* places where it lost some, counted or not */
	uint64_t losses_unknown; /* of these, places without a count */
	uint64_t unreadable_pages;
	uint64_t went_back; /* stamps less than the one before */
	bool any;
	uint64_t first_ns, last_ns;
	bool failed; /* it could not be read to its end */
};

/* The measurements of one guest CPU in a TIME_SHIFT. */
struct info_samples {
	uint32_t cpu;
	uint32_t count;
	int64_t least_offset, most_offset; /* of the samples, in units of the clock */
	double rate_ppm; /* slope of the offset over the samples' time; 0 for less than 2 */
};

struct info_machine {
	const struct tdm_machine *machine;
	const struct tdm_trace_info *info; /* NULL: not opened */
	uint64_t file_bytes;
	struct info_stream *streams; /* as info->streams */
	struct info_samples *samples;
	size_t sample_cpu_count;
	uint64_t events, lost_events, losses_unknown, unknown_events, unreadable_pages, went_back;
	bool any;
	uint64_t first_ns, last_ns;
	bool disjoint; /* tied to a reference, yet no moment is in both */
	bool complete; /* everything could be read */
};

/** Reads everything of one machine. @retval TDM_ERR_NOMEM  Nothing is kept. */
enum tdm_status info_scan(
	const struct tdm_machine *machine, struct info_machine *scanned, struct tdm_error *err);
void info_scan_release(struct info_machine *scanned);

/** Marks guests whose events share no moment with their reference's. */
void info_scan_compare(
	struct info_machine *scanned, size_t count, const struct tdm_machines *machines);

#endif
