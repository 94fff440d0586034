/* SPDX-License-Identifier: MIT */
#include "stamp_priv.h"
#include <string.h>
#include <tandem/wide.h>

#define NS_PER_S 1000000000ull
/* What a product comes to that 63 bits do not hold: as far below zero as can be, so that no reader takes it for a time. */
#define TIME_BEYOND (UINT64_C(1) << 63)

static const char *const ns_clocks[] = { "local", "global", "perf", "mono", "mono_raw", "boot",
	"tai", "tsc2nsec" };

bool tdm_clock_counts_ns(const char *clock)
{
	for (size_t i = 0; clock && i < sizeof(ns_clocks) / sizeof(ns_clocks[0]); i++) {
		if (strcmp(clock, ns_clocks[i]) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_tsc(const char *clock)
{
	return clock && (strcmp(clock, "x86-tsc") == 0 || strcmp(clock, "tsc2nsec") == 0);
}

bool stamp_clocks_equal(const char *a, const char *b)
{
	return !a || !b || strcmp(a, b) == 0 || (is_tsc(a) && is_tsc(b));
}

/* A stream whose buffer runs on another clock than the top buffer keeps its own units. */
static void plan_units(struct stamp_plan *plan, const struct tdm_trace_info *info,
	const struct tdm_stamp_options *options, const struct tdm_buffer_info *buffer)
{
	if (options->clock_hz) {
		plan->unit = STAMP_UNIT_HZ;
		plan->hz = options->clock_hz;
		return;
	}
	if (plan->shift == STAMP_SHIFT_CORRECTIONS) {
		const struct tdm_timeline_info about = tdm_timeline_get_info(plan->corrections);
		/* Without a clock's name (an offset given by hand) the host counts in the units of this file. */
		const bool is_host_ns = about.host_unit_hz == NS_PER_S && about.host_clock &&
					!is_tsc(about.host_clock);

		if (is_host_ns) {
			return;
		}
		if (!info->has_tsc2nsec && about.host_unit_hz != NS_PER_S) {
			plan->unit = STAMP_UNIT_HZ_INT;
			plan->hz = about.host_unit_hz;
			return;
		}
	}
	if (info->has_tsc2nsec &&
		(is_tsc(buffer->clock) || stamp_clocks_equal(buffer->clock, info->clock))) {
		plan->unit = STAMP_UNIT_TSC;
		plan->tsc_mult = info->tsc_mult;
		plan->tsc_shift = info->tsc_shift;
	}
}

struct stamp_plan stamp_plan_make(
	const struct tdm_trace_info *info, const struct tdm_stamp_options *options, size_t stream)
{
	const struct tdm_stream_info *about = &info->streams[stream];
	const struct tdm_buffer_info *buffer = &info->buffers[about->buffer_index];
	struct stamp_plan plan = { .cpu = about->cpu };

	if (options->raw) {
		return plan;
	}
	if (buffer->shifted && options->corrections) {
		plan.shift = STAMP_SHIFT_CORRECTIONS;
		plan.corrections = options->corrections;
	} else if (buffer->shifted && about->cpu < info->shift_cpu_count &&
		   info->shift_cpus[about->cpu].sample_count) {
		plan.shift = STAMP_SHIFT_SAMPLES;
		plan.samples = &info->shift_cpus[about->cpu];
		plan.interpolate = info->shift_interpolates;
	}
	plan_units(&plan, info, options, buffer);
	plan.offset_ns = (uint64_t)info->date_offset_ns + (uint64_t)options->offset_ns;
	return plan;
}

/* a / b as the reference's C does it, and no trap where a hostile file would make it overflow. */
static int64_t divide(int64_t a, int64_t b)
{
	if (b == 0) {
		return 0;
	}
	return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

/*
 * Exactly what trace-cmd computes (section "TIME_SHIFT" of docs/trace-formats): all in 64 bits that wrap, the division
 * truncating, the last sample's offset unused when stepping, the scaling of the first of the pair.
 */
static uint64_t shift_by_samples(const struct stamp_plan *plan, uint64_t raw)
{
	const struct tdm_recorded_sample *samples = plan->samples->samples;
	const uint32_t count = plan->samples->sample_count;
	uint32_t at = 0;

	if (count == 1) {
		return raw + (uint64_t)samples[0].offset;
	}
	if (count > 2 && raw >= (uint64_t)samples[count - 1].time) {
		at = count - 2;
	} else if (count > 2 && raw > (uint64_t)samples[0].time) {
		uint32_t low = 0, high = count - 1;

		while (high - low > 1) {
			const uint32_t middle = low + (high - low) / 2;

			if ((uint64_t)samples[middle].time <= raw) {
				low = middle;
			} else {
				high = middle;
			}
		}
		at = low;
	}

	const struct tdm_recorded_sample *first = &samples[at], *second = &samples[at + 1];
	uint64_t correction = (uint64_t)first->offset;

	if (plan->interpolate) {
		const uint64_t width = (uint64_t)second->time - (uint64_t)first->time;
		const uint64_t product = (raw - (uint64_t)first->time) *
					 ((uint64_t)second->offset - (uint64_t)first->offset);

		correction += (uint64_t)divide(
			(int64_t)(product + (uint64_t)((int64_t)width / 2)), (int64_t)width);
	}
	return ((raw * (uint64_t)first->scaling) >> (first->fraction & 63)) + correction;
}

static inline uint64_t to_ns(const struct stamp_plan *plan, uint64_t time)
{
	switch (plan->unit) {
	case STAMP_UNIT_KEEP:
		break;
	case STAMP_UNIT_TSC:
		/* Modulo 2^64 the same as the reference's two halves. */
		return tdm_mul_shift(time, plan->tsc_mult, plan->tsc_shift);
	case STAMP_UNIT_HZ:
		/* A double, because the reference has one and its numbers are what this is compared with. */
		{
			const double ns = (double)time * (1e9 / (double)plan->hz);

			return ns < 9223372036854775808.0 ? (uint64_t)ns : TIME_BEYOND;
		}
	case STAMP_UNIT_HZ_INT: {
		const tdm_u128 ns = (tdm_u128)time * NS_PER_S / plan->hz;

		return ns <= INT64_MAX ? (uint64_t)ns : TIME_BEYOND;
	}
	}
	return time;
}

uint64_t stamp_one(struct stamp_plan *plan, uint64_t raw)
{
	uint64_t time = raw;

	switch (plan->shift) {
	case STAMP_SHIFT_NONE:
		break;
	case STAMP_SHIFT_SAMPLES:
		time = shift_by_samples(plan, raw);
		break;
	case STAMP_SHIFT_CORRECTIONS:
		time = tdm_timeline_apply(plan->corrections, raw, plan->cpu, &plan->hint);
		break;
	}
	return to_ns(plan, time) + plan->offset_ns;
}

void stamp_slots(struct stamp_plan *plan, struct tdm_slot *slots, size_t count)
{
	if (plan->shift == STAMP_SHIFT_NONE && plan->unit == STAMP_UNIT_KEEP) {
		for (size_t i = 0; i < count; i++) {
			slots[i].time_ns = slots[i].raw_time + plan->offset_ns;
		}
		return;
	}
	for (size_t i = 0; i < count; i++) {
		slots[i].time_ns = stamp_one(plan, slots[i].raw_time);
	}
}
