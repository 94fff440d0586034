/* SPDX-License-Identifier: MIT */
#include "perfdata_priv.h"
#include <string.h>

/* perf_event_attr.read_format */
enum {
	READ_ENABLED = 1 << 0,
	READ_RUNNING = 1 << 1,
	READ_ID = 1 << 2,
	READ_GROUP = 1 << 3,
	READ_LOST = 1 << 4
};

/* Passes over the counter values that stand between the fixed fields and the call chain. */
static void skip_read(struct tdm_cursor *in, uint64_t format)
{
	const uint64_t times = (format & READ_ENABLED) + (format >> 1 & 1);
	const uint64_t extra = (format >> 2 & 1) + (format >> 4 & 1); /* id, lost */

	if (!(format & READ_GROUP)) {
		tdm_cursor_skip(in, 8 * (1 + times + extra));
		return;
	}

	const uint64_t count = tdm_cursor_u64(in);

	if (count > PERF_RECORD_MAX_BYTES / 8) {
		in->failed = true;
		return;
	}
	tdm_cursor_skip(in, 8 * (times + count * (1 + extra)));
}

const char *perfdata_sample_parse(const struct perfdata *pd, const struct perfdata_record *record,
	const struct perfdata_attr *attr, struct perfdata_sample *sample)
{
	const struct perfdata_layout *layout = &attr->layout;
	const uint8_t *bytes = record->bytes;
	const bool big_endian = pd->big_endian;

	if (record->size < layout->fixed_end) {
		return "is shorter than its fields";
	}
	sample->attr = attr;
	sample->ip = layout->ip >= 0 ? tdm_load_u64(bytes + layout->ip, big_endian) : 0;
	sample->addr = layout->addr >= 0 ? tdm_load_u64(bytes + layout->addr, big_endian) : 0;
	sample->period = layout->period >= 0 ? tdm_load_u64(bytes + layout->period, big_endian) : 0;
	sample->time = layout->time_at >= 0 ? tdm_load_u64(bytes + layout->time_at, big_endian) : 0;
	sample->pid = -1;
	sample->tid = -1;
	if (layout->tid >= 0) {
		sample->pid = (int32_t)tdm_load_u32(bytes + layout->tid, big_endian);
		sample->tid = (int32_t)tdm_load_u32(bytes + layout->tid + 4, big_endian);
	}
	sample->in_guest = perfdata_is_guest_mode(record->misc);
	sample->chain = NULL;
	sample->chain_count = 0;
	sample->raw = NULL;
	sample->raw_bytes = 0;

	/* A tracepoint's record right behind the fixed fields: nearly every sample. */
	if ((attr->sample_type & (PERF_HAS_RAW | PERF_HAS_READ | PERF_HAS_CALLCHAIN)) ==
			PERF_HAS_RAW &&
		record->size - layout->fixed_end >= 4) {
		const uint32_t count = tdm_load_u32(bytes + layout->fixed_end, big_endian);

		if (count <= record->size - layout->fixed_end - 4) {
			sample->raw = bytes + layout->fixed_end + 4;
			sample->raw_bytes = count;
			return NULL;
		}
	}

	struct tdm_cursor in = tdm_cursor_over(bytes, record->size, record->offset, big_endian);

	tdm_cursor_skip(&in, layout->fixed_end);
	if (attr->sample_type & PERF_HAS_READ) {
		skip_read(&in, attr->read_format);
	}
	if (attr->sample_type & PERF_HAS_CALLCHAIN) {
		const uint64_t count = tdm_cursor_u64(&in);

		if (in.failed || count > tdm_cursor_left(&in) / 8) {
			return "has a call chain that passes its end";
		}
		sample->chain = bytes + in.pos;
		sample->chain_count = (uint32_t)count;
		tdm_cursor_skip(&in, count * 8);
	}
	if (attr->sample_type & PERF_HAS_RAW) {
		const uint32_t count = tdm_cursor_u32(&in);

		if (in.failed || count > tdm_cursor_left(&in)) {
			return "has a tracepoint record that passes its end";
		}
		sample->raw = bytes + in.pos;
		sample->raw_bytes = count;
	}
	return in.failed ? "is shorter than its fields" : NULL;
}
