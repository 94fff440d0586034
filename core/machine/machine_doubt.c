/* SPDX-License-Identifier: MIT */
/*
 * machine_doubt.c - a shift that trace-cmd measured may still be of no use; what the files show of that.
 */
#include "machines_priv.h"
#include <inttypes.h>
#include <stdlib.h>

/*
 * Real clocks differ by less than a thousandth; measured over a moment with replies held back, by some hundredths. Ticks
 * taken for ns differ by a third and more, so a tenth tells the two apart.
 */
#define DOUBTFUL_PART 10

/*
 * trace-cmd 3.1.6 and later, without -C: the host measures with its local clock, whatever it records with. The offsets then
 * run away as the guest's clock does against that one.
 */
static bool clocks_are_mixed(const struct tdm_trace_info *info)
{
	for (size_t cpu = 0; cpu < info->shift_cpu_count; cpu++) {
		const struct tdm_recorded_shift *const shift = &info->shift_cpus[cpu];

		if (shift->sample_count < 2) {
			continue;
		}

		const struct tdm_recorded_sample *const first = &shift->samples[0];
		const struct tdm_recorded_sample *const last =
			&shift->samples[shift->sample_count - 1];
		const double span = (double)last->time - (double)first->time;
		const double run = (double)last->offset - (double)first->offset;

		/* Over less than a tenth of a second (of a clock of 1 GHz) noise could do it. */
		if (span > 1e8 && (run > span / DOUBTFUL_PART || -run > span / DOUBTFUL_PART)) {
			return true;
		}
	}
	return false;
}

void machines_tell_doubt(const struct tdm_machines *machines, const struct entry *entry)
{
	const struct entry *const reference = &machines->entries[entry->machine.reference];
	const struct tdm_trace_info *const info = machines_info(entry);
	const struct tdm_trace_info *const other = machines_info(reference);
	const char *const name = entry->machine.name;
	const char *const reference_name = reference->machine.name;

	if (!info || !other || reference == entry || entry->machine.tie != TDM_TIE_SHIFT) {
		return;
	}
	if (!tdm_clock_names_agree(info, other) ||
		tdm_clock_unit_of(info, info->clock, 0).is_ns !=
			tdm_clock_unit_of(other, other->clock, 0).is_ns) {
		TDM_WARNING(machines->log,
			"Clocks differ, so the time shift between them is doubtful; record both with one clock (trace-cmd record -C), or give corrections: \"%s\" has %s, \"%s\" has %s",
			name, info->clock, reference_name, other->clock);
	} else if (clocks_are_mixed(info)) {
		TDM_WARNING(machines->log,
			"The time shift of \"%s\" was measured between two different clocks, so its events are not where they were on the clock of \"%s\"; record both with one clock (trace-cmd record -C), or give corrections",
			name, reference_name);
	}
	if (other->has_peer && reference->machine.tie == TDM_TIE_SHIFT) {
		TDM_WARNING(machines->log,
			"\"%s\" was measured against \"%s\", which is a guest itself: its events are on the clock of that guest, not on the host's; give corrections onto the host",
			name, reference_name);
	}
	if (info->date_offset_ns != other->date_offset_ns) {
		TDM_WARNING(machines->log,
			"Date offsets differ, so the guest's events are apart by the difference, as trace-cmd shows them: \"%s\" adds %" PRId64
			" ns, \"%s\" adds %" PRId64 " ns",
			name, info->date_offset_ns, reference_name, other->date_offset_ns);
	}
}
