/* SPDX-License-Identifier: MIT */
#include "timeline_priv.h"
#include <inttypes.h>

/* trace-cmd multiplies a distance by a change of offset in 64 signed bits; half of that leaves room for its rounding. */
#define PRODUCT_LIMIT ((tdm_u128)1 << 62)

struct shift {
	const struct tdm_timeline *timeline;
	uint32_t cpu;
	struct tdm_shift_sample *samples;
	size_t room, count;
	struct tdm_error *err;
};

static enum tdm_status offset_at(const struct shift *shift, uint64_t time, int64_t *offset)
{
	const uint64_t host = tdm_timeline_apply(shift->timeline, time, shift->cpu, NULL);
	const tdm_i128 wide = (tdm_i128)host - (tdm_i128)time;

	if (wide > INT64_MAX || wide < -(tdm_i128)INT64_MAX) {
		return tdm_fail(shift->err, TDM_ERR_RANGE,
			"the offset at %" PRIu64 " does not fit 64 bits", time);
	}
	/* trace-cmd drops a sample whose offset is 0: one unit off is the lesser fault. */
	*offset = wide ? (int64_t)wide : 1;
	return TDM_OK;
}

static enum tdm_status put(struct shift *shift, uint64_t time, int64_t offset)
{
	if (shift->count == shift->room) {
		return tdm_fail(
			shift->err, TDM_ERR_RANGE, "more than %zu samples are needed", shift->room);
	}
	shift->samples[shift->count++] =
		(struct tdm_shift_sample){ .time = (int64_t)time, .offset = offset };
	return TDM_OK;
}

/* Reaches a sample at time from the one put last, with as many between as trace-cmd's arithmetic asks for. */
static enum tdm_status reach(struct shift *shift, uint64_t time)
{
	enum tdm_status status = TDM_OK;

	while (status == TDM_OK) {
		const struct tdm_shift_sample *last = &shift->samples[shift->count - 1];
		uint64_t next = time;
		int64_t offset = 0;

		for (;;) {
			status = offset_at(shift, next, &offset);
			if (status != TDM_OK) {
				return status;
			}

			const tdm_i128 change = (tdm_i128)offset - last->offset;
			const tdm_u128 size = (tdm_u128)(change < 0 ? -change : change);

			if (next - (uint64_t)last->time <= 1 ||
				size < PRODUCT_LIMIT / (next - (uint64_t)last->time)) {
				break;
			}
			next = (uint64_t)last->time + (next - (uint64_t)last->time) / 2;
		}
		status = put(shift, next, offset);
		if (next == time) {
			break;
		}
	}
	return status;
}

enum tdm_status tdm_timeline_to_shift(const struct tdm_timeline *timeline, uint32_t cpu,
	uint64_t first, uint64_t last, struct tdm_shift_sample *samples, size_t room, size_t *count,
	struct tdm_error *err)
{
	struct shift shift = { timeline, cpu, samples, room, 0, err };
	int64_t offset = 0;

	*count = 0;
	if (!timeline->piece_count) {
		return tdm_fail(err, TDM_ERR_RANGE, "an empty timeline has no samples");
	}
	if (!first) {
		first = 1;
	}
	if (last < first) {
		last = first;
	}
	if (last > INT64_MAX) {
		return tdm_fail(err, TDM_ERR_RANGE, "stamp %" PRIu64 " does not fit 63 bits", last);
	}

	enum tdm_status status = offset_at(&shift, first, &offset);

	if (status == TDM_OK) {
		status = put(&shift, first, offset);
	}

	const int64_t ticks = cpu < timeline->cpu_room ? timeline->cpus[cpu].ticks : 0;
	size_t at = timeline_find_piece(timeline, timeline_cpu_reading(timeline, first, cpu), NULL);

	while (status == TDM_OK && ++at < timeline->piece_count) {
		const tdm_i128 from = (tdm_i128)timeline->pieces[at].from - ticks;

		if (from > (tdm_i128)last) {
			break;
		}

		const uint64_t time = (uint64_t)from;

		/* A jump needs a sample on each side of it. */
		if (timeline->pieces[at].segment != timeline->pieces[at - 1].segment &&
			time - 1 > (uint64_t)samples[shift.count - 1].time) {
			status = reach(&shift, time - 1);
		}
		if (status == TDM_OK) {
			status = reach(&shift, time);
		}
	}
	if (status == TDM_OK && last > (uint64_t)samples[shift.count - 1].time) {
		status = reach(&shift, last);
	}
	if (status == TDM_OK) {
		*count = shift.count;
	}
	return status;
}
