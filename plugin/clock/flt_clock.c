/* SPDX-License-Identifier: MIT */
#include "clock/flt_clock.h"
#include "clock/flt_host_clock.h"
#include <inttypes.h>
#include <tandem/clock_identity.h>
#include <tandem/wide.h>

#define NS_PER_S 1000000000

bool flt_mapping_is_ready(const struct flt_mapping *mapping)
{
	return !mapping->live || tdm_live_is_ready(mapping->live);
}

static const struct tdm_timeline *timeline_of(const struct flt_mapping *mapping)
{
	return mapping->live ? tdm_live_timeline(mapping->live) : mapping->timeline;
}

/* a * b / d with floor, or with ceiling, held inside 64 bits. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t d, bool up)
{
	const tdm_u128 product = (tdm_u128)a * b + (up ? d - 1 : 0);
	const tdm_u128 quotient = product / d;

	return quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

static int64_t host_to_ns(int64_t host, uint64_t host_hz)
{
	return host_hz == NS_PER_S ? host : tdm_mul_div_floor(host, NS_PER_S, host_hz);
}

uint64_t flt_mapping_bound_ns(const struct flt_mapping *mapping)
{
	const struct tdm_timeline *timeline = timeline_of(mapping);
	uint64_t worst = 0;

	if (!timeline) {
		return 0;
	}
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

	for (size_t i = 0; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);

		for (size_t k = 0; k < segment.knot_count; k++) {
			worst = segment.knots[k].minus > worst ? segment.knots[k].minus : worst;
			worst = segment.knots[k].plus > worst ? segment.knots[k].plus : worst;
		}
	}
	return scale(worst, NS_PER_S, info.host_unit_hz, true);
}

/* The line through two knots, or through one at the nominal rate, at a reading left of them; may be negative. */
static int64_t left_of_knots(const struct tdm_timeline_info *info,
	const struct tdm_segment_info *segment, uint64_t guest)
{
	const struct tdm_knot *a = &segment->knots[0];
	const uint64_t run = segment->knot_count > 1 ? a[1].guest - a->guest : info->guest_unit_hz;
	const uint64_t rise = segment->knot_count > 1 ? a[1].host - a->host : info->host_unit_hz;
	const tdm_i128 product = ((tdm_i128)guest - (tdm_i128)a->guest) * (tdm_i128)rise;
	tdm_i128 quotient = product / (tdm_i128)run;

	if (product % (tdm_i128)run < 0) {
		quotient--;
	}
	quotient += (tdm_i128)a->host;
	return quotient < INT64_MIN ? INT64_MIN : (int64_t)quotient;
}

/*
 * The timeline holds host readings at 0. A guest that is older than its host's clock has events before that: their
 * readings are negative, and a clock with an offset of its own can show them.
 */
static int64_t below_zero(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	int64_t ticks = 0;
	uint64_t bound;
	size_t at = 0;

	if (tdm_timeline_cpu(timeline, cpu, &ticks, &bound)) {
		const uint64_t moved = guest + (uint64_t)ticks;

		guest = ticks < 0 && moved > guest ? 0 : moved;
	}
	for (size_t i = 1; i < info.segment_count; i++) {
		if (tdm_timeline_segment(timeline, i).from <= guest) {
			at = i;
		}
	}
	const struct tdm_segment_info segment = tdm_timeline_segment(timeline, at);

	return segment.knot_count ? left_of_knots(&info, &segment, guest) : 0;
}

/* The least host reading that any reading can map to; at most 0. */
static int64_t least_host(const struct tdm_timeline *timeline)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	int64_t least = 0;

	for (size_t i = 0; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);

		if (segment.knot_count) {
			const int64_t host = left_of_knots(&info, &segment, i ? segment.from : 0);

			least = host < least ? host : least;
		}
	}
	return least;
}

static void split_offset(int64_t offset_ns, int64_t *seconds, uint64_t *rest)
{
	*seconds = offset_ns / NS_PER_S;
	if (offset_ns % NS_PER_S < 0) {
		(*seconds)--;
	}
	*rest = (uint64_t)(offset_ns - *seconds * NS_PER_S);
}

/* The input clock's own idea of its origin. */
static bool own_epoch(const bt_clock_class *in, int64_t *epoch_ns)
{
	int64_t seconds = 0;
	uint64_t cycles = 0;

	bt_clock_class_get_offset(in, &seconds, &cycles);

	const tdm_i128 ns = (tdm_i128)seconds * NS_PER_S +
			    (tdm_i128)cycles * NS_PER_S / bt_clock_class_get_frequency(in);

	*epoch_ns = (int64_t)ns;
	return ns >= INT64_MIN && ns <= INT64_MAX;
}

static bool choose_epoch(struct flt_mapping *mapping, const struct report *report,
	bt_self_component *self, const bt_clock_class *in, int64_t *epoch_ns)
{
	const struct tdm_timeline *timeline = timeline_of(mapping);

	if (mapping->is_fixed_epoch) {
		*epoch_ns = mapping->epoch_ns;
		return true;
	}
	if (timeline) {
		const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

		if (info.has_epoch) {
			*epoch_ns = info.epoch_offset_ns;
			return true;
		}
	}
	if (!own_epoch(in, epoch_ns)) {
		(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(
			self, "The offset of the input clock passes 64 bits of nanoseconds");
		return false;
	}
	if (timeline && !mapping->said_epoch) {
		mapping->said_epoch = true;
		TDM_WARNING(&report->log,
			"Wall time is that of the guest's own clock, which may be wrong by seconds against the host's trace; "
			"name the host's trace with host-clock: epoch-ns=%" PRId64,
			*epoch_ns);
	}
	return true;
}

static void set_origin(const struct flt_mapping *mapping, bt_clock_class *out)
{
	if (mapping->is_unix) {
		compat_clock_class_set_unix_epoch(out);
		return;
	}
#if TANDEM_HAVE_BT_2_1
	bt_clock_class_set_origin_unknown(out);
#else
	bt_clock_class_set_origin_is_unix_epoch(out, BT_FALSE);
#endif
}

static uint64_t add_held(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void set_quality(
	uint64_t mip, const bt_clock_class *in, bt_clock_class *out, uint64_t bound_ns)
{
	const uint64_t hz = bt_clock_class_get_frequency(in);

	if (mip == 0) {
		bt_clock_class_set_precision(
			out, add_held(scale(bt_clock_class_get_precision(in), NS_PER_S, hz, true),
				     bound_ns));
		return;
	}
#if TANDEM_HAVE_BT_2_1
	uint64_t cycles = 0;

	if (bt_clock_class_get_opt_precision(in, &cycles) == BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		bt_clock_class_set_precision(
			out, add_held(scale(cycles, NS_PER_S, hz, true), bound_ns));
	} else if (bound_ns) {
		bt_clock_class_set_precision(out, bound_ns);
	}
	if (bt_clock_class_get_accuracy(in, &cycles) == BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		bt_clock_class_set_accuracy(
			out, add_held(scale(cycles, NS_PER_S, hz, true), bound_ns));
	} else if (bound_ns) {
		bt_clock_class_set_accuracy(out, bound_ns);
	}
#endif
}

/* A clock that is not the one which was measured is moved all the same: who gave the correction may know better. */
static void tell_misfit(struct flt_mapping *mapping, const struct report *report, uint64_t mip,
	const bt_clock_class *in)
{
	char uid[40], name[40], why[TDM_MISFIT_BYTES];

	flt_clock_identity(in, mip, uid, name);
	if (!mapping->said_misfit &&
		!tdm_clock_identity_fits(timeline_of(mapping), TDM_SIDE_GUEST, uid, name, why)) {
		mapping->said_misfit = true;
		TDM_WARNING(&report->log,
			"The corrections may not be for this trace, its events may be at wrong times: %s",
			why);
	}
}

bool flt_clock_make(struct flt_mapping *mapping, const struct report *report,
	bt_self_component *self, uint64_t mip, const bt_clock_class *in, bt_clock_class *out,
	struct flt_clock *clock)
{
	const struct tdm_timeline *timeline = timeline_of(mapping);
	int64_t seconds = 0;
	uint64_t rest = 0;

	clock->hz = bt_clock_class_get_frequency(in);
	clock->guest_hz = clock->hz;
	clock->host_hz = clock->hz;
	if (timeline) {
		const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

		tell_misfit(mapping, report, mip, in);
		clock->guest_hz = info.guest_unit_hz;
		clock->host_hz = info.host_unit_hz;
		if (clock->hz != clock->guest_hz && !mapping->said_unit) {
			mapping->said_unit = true;
			TDM_WARNING(&report->log,
				"The trace's clock and the correction count in different units, the trace's readings are scaled: "
				"clock-hz=%" PRIu64 ", correction-hz=%" PRIu64,
				clock->hz, clock->guest_hz);
		}
	}
	clock->direct = clock->hz == clock->guest_hz && clock->host_hz == NS_PER_S;
	if (!choose_epoch(mapping, report, self, in, &clock->epoch_ns)) {
		return false;
	}
	clock->bias_ns = 0;
	if (timeline) {
		const int64_t least_ns = host_to_ns(least_host(timeline), clock->host_hz);

		/* Whole seconds, so that the digits below the second stay what they are. */
		if (least_ns < 0) {
			clock->bias_ns = least_ns < -(INT64_MAX - NS_PER_S)
						 ? INT64_MAX / NS_PER_S * NS_PER_S
						 : (-least_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
		}
	}
	split_offset(clock->epoch_ns, &seconds, &rest);
	bt_clock_class_set_frequency(out, NS_PER_S);
	bt_clock_class_set_offset(out, seconds - clock->bias_ns / NS_PER_S, rest);
	set_origin(mapping, out);
	set_quality(mip, in, out, flt_mapping_bound_ns(mapping));
	return true;
}

uint64_t flt_clock_reading(const struct flt_clock *clock, uint64_t value)
{
	return clock->hz == clock->guest_hz ? value
					    : scale(value, clock->guest_hz, clock->hz, false);
}

static void tell_first_outside(
	const struct flt_mapping *mapping, const struct report *report, uint64_t reading)
{
	char why[TDM_MISFIT_BYTES];

	if (!tdm_clock_range_fits(mapping->timeline, reading, why)) {
		TDM_WARNING(&report->log, "The corrections are of another time than the trace: %s",
			why);
	}
}

bool flt_mapping_covers(struct flt_mapping *mapping, const struct report *report, uint64_t reading)
{
	if (mapping->live) {
		(void)tdm_timeline_range(tdm_live_timeline(mapping->live), &mapping->first_reading,
			&mapping->last_reading);
	} else if (!mapping->timeline) {
		return true;
	}
	if (reading >= mapping->first_reading && reading <= mapping->last_reading) {
		mapping->was_covered = true;
		return true;
	}
	if (!mapping->was_covered && !mapping->live) {
		mapping->was_covered = true;
		tell_first_outside(mapping, report, reading);
	}
	if (mapping->extrapolate == FLT_EXTRAPOLATE_WARN && !mapping->said_outside) {
		mapping->said_outside = true;
		TDM_WARNING(&report->log,
			"Readings outside the correction's samples: the nearest interval goes on, its bound grows: reading=%" PRIu64
			", first=%" PRIu64 ", last=%" PRIu64,
			reading, mapping->first_reading, mapping->last_reading);
	}
	return mapping->extrapolate != FLT_EXTRAPOLATE_NO;
}

bool flt_clock_apply(const struct flt_mapping *mapping, const struct flt_clock *clock,
	uint64_t reading, uint32_t cpu, struct tdm_timeline_hint *hint, uint64_t *value)
{
	const struct tdm_timeline *timeline = mapping->timeline;
	uint64_t host = reading;

	if (mapping->live) {
		host = tdm_live_apply(mapping->live, reading, cpu);
		timeline = NULL;
	} else if (timeline) {
		host = tdm_timeline_apply(timeline, reading, cpu, hint);
	}
	if (host > INT64_MAX) {
		return false;
	}
	int64_t ns = (int64_t)host;

	if (host == 0 && timeline && clock->bias_ns) {
		ns = below_zero(timeline, reading, cpu);
	}
	if (!clock->direct) {
		ns = host_to_ns(ns, clock->host_hz);
	}
	int64_t from_origin;

	if (__builtin_add_overflow(ns, clock->bias_ns, &ns) ||
		__builtin_add_overflow(ns - clock->bias_ns, clock->epoch_ns, &from_origin)) {
		return false;
	}
	*value = ns < 0 ? 0 : (uint64_t)ns;
	return true;
}
