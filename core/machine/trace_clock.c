/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <tandem/machines.h>

struct tdm_clock_unit tdm_clock_unit_of(
	const struct tdm_trace_info *info, const char *clock_name, uint64_t clock_hz)
{
	const struct tdm_clock_unit ns = { true, "ns" };

	if (clock_hz || !clock_name || !*clock_name || info->format == TDM_FORMAT_PERF ||
		tdm_clock_counts_ns(clock_name)) {
		return ns;
	}
	if (strcmp(clock_name, "x86-tsc") == 0) {
		return info->has_tsc2nsec && info->tsc_mult
			       ? ns
			       : (struct tdm_clock_unit){ false, "ticks" };
	}
	if (strcmp(clock_name, "counter") == 0) {
		return (struct tdm_clock_unit){ false, "events" };
	}
	if (strcmp(clock_name, "uptime") == 0) {
		return (struct tdm_clock_unit){ false, "jiffies" };
	}
	return (struct tdm_clock_unit){ false, "units" };
}

/* "tsc2nsec" is what trace-cmd 7 calls an x86-tsc that it can turn into ns. */
static const char *plain_clock(const struct tdm_trace_info *info)
{
	return info->clock && strcmp(info->clock, "tsc2nsec") == 0 ? "x86-tsc" : info->clock;
}

bool tdm_clock_names_agree(const struct tdm_trace_info *a, const struct tdm_trace_info *b)
{
	const char *const clock_a = plain_clock(a);
	const char *const clock_b = plain_clock(b);

	return !clock_a || !clock_b || strcmp(clock_a, clock_b) == 0;
}

void tdm_buffer_label(
	const struct tdm_trace_info *info, size_t buffer_index, char *label, size_t room)
{
	const char *const name = info->buffers[buffer_index].name;

	if (name && *name) {
		snprintf(label, room, "%s", name);
		return;
	}
	snprintf(label, room, "top");
	for (unsigned int number = 2; number < 1000; number++) {
		bool taken = false;

		for (size_t i = 0; i < info->buffer_count; i++) {
			taken = taken || (i != buffer_index && info->buffers[i].name &&
						 strcmp(info->buffers[i].name, label) == 0);
		}
		if (!taken) {
			return;
		}
		snprintf(label, room, "top-%u", number);
	}
}
