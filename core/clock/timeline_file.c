/* SPDX-License-Identifier: MIT */
#include "timeline_priv.h"
#include <inttypes.h>
#include <string.h>
#include <tandem/text.h>

enum {
	FILE_CAP_BYTES = 1 << 28 /* 2^20 knots of the longest line, and as much again */
};

static const char format_name[] = "tandem-corrections";

static const char *const kind_names[] = {
	[TDM_SEGMENT_START] = "start",
	[TDM_SEGMENT_STEP] = "step",
	[TDM_SEGMENT_EPOCH] = "epoch",
	[TDM_SEGMENT_RATE] = "rate",
};

const char *tdm_segment_kind_name(enum tdm_segment_kind kind)
{
	return kind_names[kind];
}

/* One line, split. */
struct record {
	char *fields[TDM_LINE_FIELDS];
	size_t count;
};

static enum tdm_status wrong(const struct record *record, const char *wanted, struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_FORMAT, "record \"%s\" with %zu fields, wanted \"%s\"",
		record->fields[0], record->count, wanted);
}

static enum tdm_status feed_clock(struct tdm_timeline *timeline, struct record *record,
	enum info_text uuid, uint64_t *hz, struct tdm_error *err)
{
	if (timeline->segment_count) {
		return tdm_fail(err, TDM_ERR_FORMAT, "record \"%s\" behind the first segment",
			record->fields[0]);
	}
	if (record->count < 2) {
		return wrong(record, "host|guest UUID clock NAME unit-hz HZ", err);
	}

	enum tdm_status status = timeline_keep_text(timeline, uuid,
		strcmp(record->fields[1], "-") == 0 ? NULL : record->fields[1], err);

	for (size_t i = 2; status == TDM_OK && i + 1 < record->count; i += 2) {
		if (strcmp(record->fields[i], "clock") == 0) {
			status = timeline_keep_text(timeline, (enum info_text)(uuid + 1),
				strcmp(record->fields[i + 1], "-") == 0 ? NULL
									: record->fields[i + 1],
				err);
		} else if (strcmp(record->fields[i], "unit-hz") == 0 &&
			   (!tdm_text_u64(record->fields[i + 1], TDM_READING_MAX, hz) || !*hz)) {
			*hz = 1000000000;
			return tdm_fail(err, TDM_ERR_FORMAT,
				"unit-hz is \"%s\", wanted a rate above 0", record->fields[i + 1]);
		}
	}
	return status;
}

static enum tdm_status feed_host(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	return feed_clock(timeline, record, HOST_UUID, &timeline->info.host_unit_hz, err);
}

static enum tdm_status feed_guest(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	return feed_clock(timeline, record, GUEST_UUID, &timeline->info.guest_unit_hz, err);
}

static enum tdm_status feed_epoch(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	int64_t offset;
	uint64_t width;

	if (record->count < 2 || strcmp(record->fields[1], "host") != 0) {
		return TDM_OK;
	}
	if (record->count < 4 || !tdm_text_i64(record->fields[2], INT64_MAX, &offset) ||
		!tdm_text_u64(record->fields[3], TDM_READING_MAX, &width)) {
		return wrong(record, "epoch host NS WIDTH", err);
	}
	timeline->info.has_epoch = true;
	timeline->info.epoch_offset_ns = offset;
	timeline->info.epoch_width_ns = width;
	return TDM_OK;
}

static enum tdm_status feed_made(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	struct tdm_timeline_info *info = &timeline->info;

	const struct {
		const char *name;
		uint64_t *value;
	} counts[] = { { "samples", &info->samples }, { "used", &info->used },
		{ "bogus", &info->bogus }, { "lost", &info->lost } };

	if (record->count < 2) {
		return wrong(record, "made TIME samples N used N bogus N lost N", err);
	}
	for (size_t i = 2; i + 1 < record->count; i += 2) {
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			if (strcmp(record->fields[i], counts[j].name) != 0) {
				continue;
			}
			if (!tdm_text_u64(record->fields[i + 1], UINT64_MAX, counts[j].value)) {
				return tdm_fail(err, TDM_ERR_FORMAT,
					"%s is \"%s\", wanted a number", counts[j].name,
					record->fields[i + 1]);
			}
			info->has_counts = true;
		}
	}
	return timeline_keep_text(timeline, MADE,
		strcmp(record->fields[1], "-") == 0 ? NULL : record->fields[1], err);
}

static enum tdm_status feed_method(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	if (record->count < 2) {
		return wrong(record, "method NAME", err);
	}
	return timeline_keep_text(timeline, METHOD, record->fields[1], err);
}

static enum tdm_status feed_stamps(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	if (record->count < 2) {
		return wrong(record, "stamps NAME", err);
	}
	return timeline_keep_text(timeline, STAMPS, record->fields[1], err);
}

static enum tdm_status feed_assume(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	if (record->count < 2 || strcmp(record->fields[1], "rate-ppb") != 0) {
		return TDM_OK;
	}
	if (record->count < 3 ||
		!tdm_text_u64(record->fields[2], 1000000000, &timeline->info.rate_ppb)) {
		return wrong(record, "assume rate-ppb N", err);
	}
	return TDM_OK;
}

/* Counts that were promised are kept, and no segment is empty. */
static enum tdm_status check_segment_full(
	const struct tdm_timeline *timeline, struct tdm_error *err)
{
	if (timeline->counted && timeline->knots_due) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%" PRIu64 " knots of the segment before are missing", timeline->knots_due);
	}
	if (timeline->segment_count &&
		!timeline->segments[timeline->segment_count - 1].knot_count) {
		return tdm_fail(err, TDM_ERR_FORMAT, "the segment before has no knots");
	}
	return TDM_OK;
}

static enum tdm_status feed_segment(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	uint64_t from;
	uint64_t count;
	size_t kind = 0;

	if (record->count != 4 || !tdm_text_u64(record->fields[2], TDM_READING_MAX, &from) ||
		!tdm_text_u64(record->fields[3], TDM_TIMELINE_MAX_KNOTS, &count)) {
		return wrong(record, "segment KIND FROM COUNT", err);
	}
	while (kind < sizeof(kind_names) / sizeof(kind_names[0]) &&
		strcmp(kind_names[kind], record->fields[1]) != 0) {
		kind++;
	}
	if (kind == sizeof(kind_names) / sizeof(kind_names[0])) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"segment of kind \"%s\", wanted start, step, epoch or rate",
			record->fields[1]);
	}

	enum tdm_status status = check_segment_full(timeline, err);

	if (status == TDM_OK) {
		status = tdm_timeline_add_segment(timeline, (enum tdm_segment_kind)kind, from, err);
	}
	if (status == TDM_OK) {
		timeline->counted = count != 0;
		timeline->knots_due = count;
	}
	return status;
}

static enum tdm_status feed_knot(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	struct tdm_knot knot;

	if (record->count != 5 || !tdm_text_u64(record->fields[1], TDM_READING_MAX, &knot.guest) ||
		!tdm_text_u64(record->fields[2], TDM_READING_MAX, &knot.host) ||
		!tdm_text_u64(record->fields[3], TDM_READING_MAX, &knot.minus) ||
		!tdm_text_u64(record->fields[4], TDM_READING_MAX, &knot.plus)) {
		return wrong(record, "k GUEST HOST MINUS PLUS, each at most 2^62", err);
	}
	if (timeline->counted && !timeline->knots_due) {
		return tdm_fail(err, TDM_ERR_FORMAT, "more knots than the segment's count says");
	}

	const enum tdm_status status = tdm_timeline_add_knot(timeline, &knot, err);

	if (status == TDM_OK && timeline->counted) {
		timeline->knots_due--;
	}
	return status;
}

static enum tdm_status feed_doubt(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	uint64_t from;
	uint64_t to;

	if (record->count != 3 || !tdm_text_u64(record->fields[1], TDM_READING_MAX, &from) ||
		!tdm_text_u64(record->fields[2], TDM_READING_MAX, &to)) {
		return wrong(record, "doubt FROM TO", err);
	}
	return tdm_timeline_add_doubt(timeline, from, to, err);
}

static enum tdm_status feed_cpu(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	uint64_t cpu;
	int64_t ticks;
	uint64_t bound;

	if (record->count != 4 || !tdm_text_u64(record->fields[1], UINT32_MAX, &cpu) ||
		!tdm_text_i64(record->fields[2], TDM_READING_MAX, &ticks) ||
		!tdm_text_u64(record->fields[3], TDM_READING_MAX, &bound)) {
		return wrong(record, "cpu N TICKS BOUND", err);
	}
	return tdm_timeline_add_cpu(timeline, (uint32_t)cpu, ticks, bound, err);
}

static enum tdm_status feed_end(
	struct tdm_timeline *timeline, struct record *record, struct tdm_error *err)
{
	if (record->count != 1) {
		return wrong(record, "end", err);
	}

	const enum tdm_status status = check_segment_full(timeline, err);

	if (status != TDM_OK) {
		return status;
	}
	if (!timeline->segment_count) {
		return tdm_fail(err, TDM_ERR_FORMAT, "\"end\" without a segment");
	}
	timeline->info.complete = true;
	return TDM_END;
}

static const struct {
	const char *name;
	enum tdm_status (*feed)(
		struct tdm_timeline *timeline, struct record *record, struct tdm_error *err);
} rules[] = {
	{ "k", feed_knot },
	{ "segment", feed_segment },
	{ "doubt", feed_doubt },
	{ "cpu", feed_cpu },
	{ "host", feed_host },
	{ "guest", feed_guest },
	{ "epoch", feed_epoch },
	{ "made", feed_made },
	{ "method", feed_method },
	{ "stamps", feed_stamps },
	{ "assume", feed_assume },
	{ "end", feed_end },
};

static enum tdm_status feed_first(
	struct tdm_timeline *timeline, const struct record *record, struct tdm_error *err)
{
	if (record->count < 2 || strcmp(record->fields[0], format_name) != 0) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"not a corrections file: its first line is not \"%s 1\"", format_name);
	}
	if (strcmp(record->fields[1], "1") != 0) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"corrections of version \"%s\", version 1 is read", record->fields[1]);
	}
	timeline->headed = true;
	return TDM_OK;
}

static enum tdm_status feed_split(struct tdm_timeline *timeline, char *line, struct tdm_error *err)
{
	struct record record;

	record.count = tdm_text_split(line, record.fields);
	if (!timeline->headed) {
		return feed_first(timeline, &record, err);
	}
	if (!record.count) {
		return TDM_OK;
	}
	if (timeline->info.complete) {
		return tdm_fail(
			err, TDM_ERR_FORMAT, "record \"%s\" behind \"end\"", record.fields[0]);
	}
	/* A record that is not here is skipped: newer writers may add some. */
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (strcmp(rules[i].name, record.fields[0]) == 0) {
			return rules[i].feed(timeline, &record, err);
		}
	}
	return TDM_OK;
}

enum tdm_status tdm_timeline_feed_line(
	struct tdm_timeline *timeline, const char *line, struct tdm_error *err)
{
	char copy[TDM_LINE_BYTES + 1];
	const size_t bytes = strlen(line);

	if (bytes > TDM_LINE_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT, "a line of %zu bytes, at most %d are allowed",
			bytes, TDM_LINE_BYTES);
	}
	memcpy(copy, line, bytes + 1);

	enum tdm_status status = feed_split(timeline, copy, err);

	/* What the builder finds out of range is the stream's fault here. */
	if (status == TDM_ERR_RANGE) {
		status = TDM_ERR_FORMAT;
		if (err) {
			err->status = status;
		}
	}
	return status;
}

enum tdm_status tdm_timeline_parse(const char *name, const char *text, size_t text_bytes,
	struct tdm_timeline **timeline, struct tdm_error *err)
{
	struct tdm_text walk = tdm_text_over(name, text, text_bytes);
	struct tdm_timeline *made = tdm_timeline_create();
	enum tdm_status status;

	*timeline = NULL;
	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a timeline", name);
	}
	while ((status = tdm_text_next(&walk, err)) == TDM_OK) {
		status = feed_split(made, walk.line, err);
		if (status == TDM_END) {
			status = TDM_OK;
		}
		if (status == TDM_ERR_RANGE && err) {
			err->status = TDM_ERR_FORMAT;
		}
		if (status != TDM_OK) {
			tdm_error_prefix(err, "%s:%" PRIu64, name, walk.line_number);
			status = status == TDM_ERR_RANGE ? TDM_ERR_FORMAT : status;
			goto fail;
		}
	}
	if (status != TDM_END) {
		goto fail;
	}
	if (!made->headed) {
		status = tdm_fail(
			err, TDM_ERR_FORMAT, "%s: empty, wanted \"%s 1\"", name, format_name);
		goto fail;
	}
	if (!made->info.complete) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s:%" PRIu64 ": cut short, its last line is not \"end\"", name,
			walk.line_number);
		goto fail;
	}
	*timeline = made;
	return TDM_OK;
fail:
	tdm_timeline_destroy(made);
	return status;
}

enum tdm_status tdm_timeline_load(
	const char *path, struct tdm_timeline **timeline, struct tdm_error *err)
{
	struct tdm_buffer text = { .cap = FILE_CAP_BYTES + (1 << 17) };
	enum tdm_status status = tdm_text_read_file(path, FILE_CAP_BYTES, &text, err);

	*timeline = NULL;
	if (status == TDM_OK) {
		status = tdm_timeline_parse(
			path, (const char *)text.bytes, text.size, timeline, err);
	}
	tdm_buffer_release(&text);
	return status;
}

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

enum tdm_status timeline_write_header(
	const struct tdm_timeline_info *info, bool with_counts, struct tdm_buffer *out)
{
	enum tdm_status status = tdm_buffer_printf(out, "%s 1\n", format_name);

	if (info->host_uuid || info->host_clock || info->host_unit_hz != 1000000000) {
		status |= tdm_buffer_printf(out, "host %s clock %s unit-hz %" PRIu64 "\n",
			or_dash(info->host_uuid), or_dash(info->host_clock), info->host_unit_hz);
	}
	if (info->guest_uuid || info->guest_clock || info->guest_unit_hz != 1000000000) {
		status |= tdm_buffer_printf(out, "guest %s clock %s unit-hz %" PRIu64 "\n",
			or_dash(info->guest_uuid), or_dash(info->guest_clock), info->guest_unit_hz);
	}
	if (info->has_epoch) {
		status |= tdm_buffer_printf(out, "epoch host %" PRId64 " %" PRIu64 "\n",
			info->epoch_offset_ns, info->epoch_width_ns);
	}
	if (info->made || (info->has_counts && with_counts)) {
		status |= tdm_buffer_printf(out, "made %s", or_dash(info->made));
		if (info->has_counts && with_counts) {
			status |= tdm_buffer_printf(out,
				" samples %" PRIu64 " used %" PRIu64 " bogus %" PRIu64
				" lost %" PRIu64,
				info->samples, info->used, info->bogus, info->lost);
		}
		status |= tdm_buffer_append(out, "\n", 1);
	}
	if (info->method) {
		status |= tdm_buffer_printf(out, "method %s\n", info->method);
	}
	status |= tdm_buffer_printf(out, "assume rate-ppb %" PRIu64 "\n", info->rate_ppb);
	if (info->stamps) {
		status |= tdm_buffer_printf(out, "stamps %s\n", info->stamps);
	}
	return status;
}

enum tdm_status tdm_timeline_write(const struct tdm_timeline *timeline, struct tdm_buffer *out)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	enum tdm_status status = timeline_write_header(&info, true, out);

	for (size_t i = 0; i < timeline->cpu_room; i++) {
		if (timeline->cpus[i].is_set) {
			status |= tdm_buffer_printf(out, "cpu %zu %" PRId64 " %" PRIu64 "\n", i,
				timeline->cpus[i].ticks, timeline->cpus[i].bound);
		}
	}
	for (size_t i = 0; i < timeline->segment_count; i++) {
		const struct segment *segment = &timeline->segments[i];

		status |= tdm_buffer_printf(out, "segment %s %" PRIu64 " %zu\n",
			kind_names[segment->kind], segment->from, segment->knot_count);
		for (size_t j = 0; j < segment->knot_count; j++) {
			const struct tdm_knot *knot = &timeline->knots[segment->first_knot + j];

			status |= tdm_buffer_printf(out,
				"k %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", knot->guest,
				knot->host, knot->minus, knot->plus);
		}
	}
	for (size_t i = 0; i < timeline->doubt_count; i++) {
		status |= tdm_buffer_printf(out, "doubt %" PRIu64 " %" PRIu64 "\n",
			timeline->doubts[i].from, timeline->doubts[i].to);
	}
	status |= tdm_buffer_append(out, "end\n", 4);
	return status == TDM_OK ? TDM_OK : TDM_ERR_NOMEM;
}
