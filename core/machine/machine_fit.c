/* SPDX-License-Identifier: MIT */
/*
 * machine_fit.c - are the corrections of a guest of this guest, this host and this session?
 */
#include "machines_priv.h"
#include <stdio.h>
#include <string.h>

/* Whether a timeline and the shift in a file, where it has one, are less than a second apart: else one is of another session. */
static bool shift_agrees(const struct tdm_timeline *timeline, const struct tdm_trace_info *trace)
{
	const struct tdm_recorded_shift *const shift =
		trace->has_peer && trace->shift_cpu_count ? &trace->shift_cpus[0] : NULL;

	if (!shift || !shift->sample_count) {
		return true;
	}

	const struct tdm_recorded_sample *const sample = &shift->samples[0];
	const uint64_t told = tdm_timeline_apply(timeline, sample->time, 0, NULL);
	const uint64_t shifted = sample->time + (uint64_t)sample->offset;
	const uint64_t apart = told > shifted ? told - shifted : shifted - told;

	return apart < tdm_timeline_get_info(timeline).host_unit_hz;
}

bool tdm_machine_corrections_fit(const struct tdm_timeline *timeline,
	const struct tdm_trace_info *guest, const struct tdm_trace_info *host,
	char why[TDM_MISFIT_BYTES])
{
	if (!tdm_clock_identity_fits(timeline, TDM_SIDE_GUEST, NULL, guest->clock, why) ||
		(host && !tdm_clock_identity_fits(
				 timeline, TDM_SIDE_HOST, NULL, host->clock, why))) {
		return false;
	}
	if (!shift_agrees(timeline, guest)) {
		snprintf(why, TDM_MISFIT_BYTES,
			"they are a second or more away from the time shift in %.200s, as if they were of another session",
			guest->path);
		return false;
	}
	return true;
}

/* The least stamp of a trace; false where there is none. */
static bool first_reading(struct tdm_trace *trace, uint64_t *first)
{
	const size_t count = tdm_trace_get_info(trace)->stream_count;
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		struct tdm_error fault;
		struct tdm_record record;
		struct tdm_reader *const reader = tdm_reader_create(trace, i, &fault);

		if (reader && tdm_reader_next(reader, &record, &fault) == TDM_OK &&
			(!found || record.raw_time < *first)) {
			*first = record.raw_time;
			found = true;
		}
		tdm_reader_destroy(reader);
	}
	return found;
}

void machines_tell_misfit(const struct tdm_machines *machines, const struct entry *entry)
{
	const struct tdm_trace_info *const guest = machines_info(entry);
	const struct tdm_trace_info *host = NULL;
	uint64_t first = 0;
	char why[TDM_MISFIT_BYTES];

	for (size_t i = 0; i < machines->count && !host; i++) {
		if (machines->entries[i].machine.is_host && &machines->entries[i] != entry) {
			host = machines_info(&machines->entries[i]);
		}
	}
	if (!guest) {
		return;
	}
	if (!tdm_machine_corrections_fit(entry->timeline, guest, host, why)) {
		TDM_WARNING(machines->log,
			"%s may not be for \"%s\", its events may be at wrong times: %s",
			entry->corrections_path, entry->machine.name, why);
		return;
	}
	if (first_reading(entry->machine.trace, &first) &&
		!tdm_clock_range_fits(entry->timeline, first, why)) {
		TDM_WARNING(machines->log, "%s, \"%s\": %s", entry->corrections_path,
			entry->machine.name, why);
	}
}
