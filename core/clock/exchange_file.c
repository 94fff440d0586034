/* SPDX-License-Identifier: MIT */
#include "exchange_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/text.h>
#include <tandem/timeline.h>

enum {
	FILE_CAP_BYTES = 1 << 30
};

/* "r" and "t" records wait here until the "x" of their number is known. */
struct extra {
	char type;
	uint64_t seq;
	struct tdm_exchange stamps;
};

struct reader {
	struct tdm_exchange_log *log;
	struct extra *extras;
	size_t extra_count, extra_room;
	bool ended;
};

struct record {
	char *fields[TDM_LINE_FIELDS];
	size_t count;
};

/* A reading of the log: digits, perhaps signed. What is no reading gives 0 and false in @p valid. */
static bool read_stamp(const char *text, uint64_t *stamp, bool *valid)
{
	const char *digits = text + (*text == '-');

	if (!*digits || digits[strspn(digits, "0123456789")]) {
		return false;
	}
	if (!tdm_text_u64(text, TDM_READING_MAX, stamp)) {
		*stamp = 0;
		*valid = false;
	}
	return true;
}

static bool read_exchange(
	struct record *record, uint64_t *seq, struct tdm_exchange *exchange, bool *valid)
{
	*valid = true;
	return record->count >= 6 && tdm_text_u64(record->fields[1], UINT64_MAX, seq) &&
	       read_stamp(record->fields[2], &exchange->host_sent, valid) &&
	       read_stamp(record->fields[3], &exchange->guest_got, valid) &&
	       read_stamp(record->fields[4], &exchange->guest_sent, valid) &&
	       read_stamp(record->fields[5], &exchange->host_got, valid);
}

static enum tdm_status read_x(struct reader *reader, struct record *record)
{
	struct tdm_exchange_record made = { 0 };
	bool valid;

	if (!read_exchange(record, &made.seq, &made.trace, &valid)) {
		return TDM_ERR_FORMAT;
	}
	if (!valid) {
		made.marks |= TDM_MARK_INVALID;
	}
	for (size_t i = 6; i < record->count; i++) {
		if (strcmp(record->fields[i], "p") == 0) {
			made.marks |= TDM_MARK_PIPELINED;
		} else if (strcmp(record->fields[i], "c") == 0) {
			made.marks |= TDM_MARK_CODED;
		}
	}
	return tdm_exchange_log_add(reader->log, &made);
}

static enum tdm_status read_extra(struct reader *reader, struct record *record)
{
	struct extra extra = { .type = record->fields[0][0] };
	bool valid;

	if (!read_exchange(record, &extra.seq, &extra.stamps, &valid)) {
		return TDM_ERR_FORMAT;
	}
	if (!valid) {
		/* Of no use to anybody; its exchange stays. */
		reader->log->faults.orphans++;
		return TDM_OK;
	}
	if (reader->extra_count == reader->extra_room) {
		const size_t room = reader->extra_room ? reader->extra_room * 2 : 64;

		if (room > 2 * (size_t)TDM_EXCHANGE_LOG_MAX) {
			return TDM_ERR_NOMEM;
		}

		struct extra *extras = realloc(reader->extras, room * sizeof(*extras));

		if (!extras) {
			return TDM_ERR_NOMEM;
		}
		reader->extras = extras;
		reader->extra_room = room;
	}
	reader->extras[reader->extra_count++] = extra;
	return TDM_OK;
}

static enum tdm_status read_l(struct reader *reader, struct record *record)
{
	struct tdm_local_record made = { 0 };

	if (record->count < 5 ||
		(strcmp(record->fields[1], "h") != 0 && strcmp(record->fields[1], "g") != 0) ||
		!tdm_text_u64(record->fields[2], TDM_READING_MAX, &made.raw) ||
		!tdm_text_u64(record->fields[3], TDM_READING_MAX, &made.trace) ||
		!tdm_text_u64(record->fields[4], TDM_READING_MAX, &made.width)) {
		return TDM_ERR_FORMAT;
	}
	made.side = record->fields[1][0] == 'h' ? TDM_SIDE_HOST : TDM_SIDE_GUEST;
	return tdm_exchange_log_add_local(reader->log, &made);
}

static enum tdm_status read_e(struct reader *reader, struct record *record)
{
	struct tdm_epoch_record made = { 0 };

	if (record->count < 3 || !tdm_text_u64(record->fields[1], UINT64_MAX, &made.epoch) ||
		!tdm_text_u64(record->fields[2], TDM_READING_MAX, &made.guest)) {
		return TDM_ERR_FORMAT;
	}
	if (record->count > 3) {
		const size_t bytes = strnlen(record->fields[3], sizeof(made.reason) - 1);

		memcpy(made.reason, record->fields[3], bytes);
	}
	return tdm_exchange_log_add_epoch(reader->log, &made);
}

static enum tdm_status read_clock(struct reader *reader, struct record *record)
{
	const bool is_host = strcmp(record->fields[0], "host") == 0;
	uint64_t *hz = is_host ? &reader->log->info.host_unit_hz : &reader->log->info.guest_unit_hz;

	if (record->count < 2) {
		return TDM_ERR_FORMAT;
	}

	enum tdm_status status = exchange_keep_text(
		reader->log, is_host ? LOG_HOST_UUID : LOG_GUEST_UUID, record->fields[1], NULL);

	for (size_t i = 2; status == TDM_OK && i + 1 < record->count; i += 2) {
		uint64_t value;

		if (strcmp(record->fields[i], "clock") == 0) {
			status = exchange_keep_text(reader->log,
				is_host ? LOG_HOST_CLOCK : LOG_GUEST_CLOCK, record->fields[i + 1],
				NULL);
		} else if (strcmp(record->fields[i], "unit-hz") == 0) {
			if (!tdm_text_u64(record->fields[i + 1], TDM_READING_MAX, &value) ||
				!value) {
				return TDM_ERR_FORMAT;
			}
			*hz = value;
		}
	}
	return status;
}

static enum tdm_status read_epoch_offset(struct reader *reader, struct record *record)
{
	struct tdm_epoch_offset made = { .is_known = true };

	if (record->count < 4 ||
		(strcmp(record->fields[1], "host") != 0 &&
			strcmp(record->fields[1], "guest") != 0) ||
		!tdm_text_i64(record->fields[2], INT64_MAX, &made.offset_ns) ||
		!tdm_text_u64(record->fields[3], TDM_READING_MAX, &made.width_ns)) {
		return TDM_ERR_FORMAT;
	}
	reader->log->info.epoch[record->fields[1][0] == 'h' ? TDM_SIDE_HOST : TDM_SIDE_GUEST] =
		made;
	return TDM_OK;
}

static enum tdm_status read_word(struct reader *reader, struct record *record)
{
	if (record->count < 2) {
		return TDM_ERR_FORMAT;
	}
	return exchange_keep_text(reader->log,
		strcmp(record->fields[0], "made") == 0 ? LOG_MADE : LOG_STAMPS, record->fields[1],
		NULL);
}

static enum tdm_status read_assume(struct reader *reader, struct record *record)
{
	if (record->count < 2 || strcmp(record->fields[1], "rate-ppb") != 0) {
		return TDM_OK;
	}
	if (record->count < 3 ||
		!tdm_text_u64(record->fields[2], 1000000000, &reader->log->info.rate_ppb)) {
		return TDM_ERR_FORMAT;
	}
	return TDM_OK;
}

static enum tdm_status read_end(struct reader *reader, struct record *record)
{
	reader->ended = record->count == 1;
	return reader->ended ? TDM_OK : TDM_ERR_FORMAT;
}

static const struct {
	const char *name;
	enum tdm_status (*read)(struct reader *reader, struct record *record);
	const char *wanted;
} rules[] = {
	{ "x", read_x, "x SEQ H1 G2 G3 H4 [MARK]..." },
	{ "r", read_extra, "r SEQ H1 G2 G3 H4" },
	{ "t", read_extra, "t SEQ K1 K2 K3 K4" },
	{ "l", read_l, "l h|g RAW TRACE WIDTH" },
	{ "e", read_e, "e EPOCH GUEST REASON" },
	{ "host", read_clock, "host UUID clock NAME unit-hz HZ" },
	{ "guest", read_clock, "guest UUID clock NAME unit-hz HZ" },
	{ "epoch", read_epoch_offset, "epoch host|guest NS WIDTH" },
	{ "made", read_word, "made TIME" },
	{ "stamps", read_word, "stamps NAME" },
	{ "assume", read_assume, "assume rate-ppb N" },
	{ "end", read_end, "end" },
};

static void bad_line(struct reader *reader, const struct tdm_text *walk, const char *wanted)
{
	struct tdm_exchange_log_faults *faults = &reader->log->faults;

	if (!faults->bad_lines++) {
		tdm_fail(&faults->first, TDM_ERR_FORMAT,
			"%s:%" PRIu64 ": not a record, wanted \"%s\"", walk->name,
			walk->line_number, wanted);
	}
}

/* @retval TDM_ERR_NOMEM  The only fault that ends the reading. */
static enum tdm_status read_line(struct reader *reader, struct tdm_text *walk)
{
	struct record record;

	record.count = tdm_text_split(walk->line, record.fields);
	if (!record.count) {
		return TDM_OK;
	}
	if (reader->ended) {
		bad_line(reader, walk, "nothing behind \"end\"");
		return TDM_OK;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (strcmp(rules[i].name, record.fields[0]) != 0) {
			continue;
		}
		/* A line that lacks its newline was cut: its last number may look whole and be wrong. */
		if (!walk->whole && strcmp(record.fields[0], "end") != 0) {
			return TDM_OK;
		}

		const enum tdm_status status = rules[i].read(reader, &record);

		if (status == TDM_ERR_NOMEM) {
			return status;
		}
		if (status != TDM_OK) {
			bad_line(reader, walk, rules[i].wanted);
		}
		return TDM_OK;
	}
	return TDM_OK;
}

static int compare_extras(const void *a, const void *b)
{
	const struct extra *left = a;
	const struct extra *right = b;

	if (left->seq != right->seq) {
		return left->seq < right->seq ? -1 : 1;
	}
	return left->type - right->type;
}

/* Gives each extra to the one exchange of its number; with two of either nobody can say whose it is. */
static void join_extras(struct reader *reader)
{
	struct tdm_exchange_log *log = reader->log;
	size_t at = 0;

	for (size_t i = 1; i < log->record_count; i++) {
		/* Most logs are sorted: a look is cheaper than a sort. */
		if (exchange_compare_records(&log->records[i - 1], &log->records[i]) > 0) {
			qsort(log->records, log->record_count, sizeof(*log->records),
				exchange_compare_records);
			break;
		}
	}
	if (reader->extra_count) {
		qsort(reader->extras, reader->extra_count, sizeof(*reader->extras), compare_extras);
	}
	for (size_t i = 0; i < reader->extra_count; i++) {
		const struct extra *extra = &reader->extras[i];
		const bool twin =
			(i && !compare_extras(extra, extra - 1)) ||
			(i + 1 < reader->extra_count && !compare_extras(extra, extra + 1));

		while (at < log->record_count && log->records[at].seq < extra->seq) {
			at++;
		}
		if (twin || at == log->record_count || log->records[at].seq != extra->seq ||
			(at + 1 < log->record_count && log->records[at + 1].seq == extra->seq)) {
			log->faults.orphans++;
		} else if (extra->type == 'r') {
			log->records[at].raw = extra->stamps;
			log->records[at].has_raw = true;
		} else {
			log->records[at].kernel[0] = extra->stamps.host_sent;
			log->records[at].kernel[1] = extra->stamps.guest_got;
			log->records[at].kernel[2] = extra->stamps.guest_sent;
			log->records[at].kernel[3] = extra->stamps.host_got;
			log->records[at].has_kernel = true;
		}
	}
}

static enum tdm_status read_first(struct tdm_text *walk, struct tdm_error *err)
{
	struct record record;
	const enum tdm_status status = tdm_text_next(walk, err);

	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: empty, wanted \"%s 1\"", walk->name,
			exchange_format_name);
	}
	if (status != TDM_OK) {
		return status;
	}
	record.count = tdm_text_split(walk->line, record.fields);
	if (record.count < 2 || strcmp(record.fields[0], exchange_format_name) != 0) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s:1: not an exchange log: its first line is not \"%s 1\"", walk->name,
			exchange_format_name);
	}
	if (strcmp(record.fields[1], "1") != 0) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s:1: exchanges of version \"%s\", version 1 is read", walk->name,
			record.fields[1]);
	}
	return TDM_OK;
}

enum tdm_status tdm_exchange_log_parse(const char *name, const char *text, size_t text_bytes,
	struct tdm_exchange_log **log, struct tdm_error *err)
{
	struct tdm_text walk = tdm_text_over(name, text, text_bytes);
	struct reader reader = { .log = tdm_exchange_log_create() };
	enum tdm_status status;

	*log = NULL;
	if (!reader.log) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its exchanges", name);
	}
	status = read_first(&walk, err);
	while (status == TDM_OK) {
		struct tdm_error line_err;

		status = tdm_text_next(&walk, &line_err);
		if (status == TDM_ERR_FORMAT) {
			/* Too long, or binary: passed over like any other bad line. */
			bad_line(&reader, &walk, "a line of text");
			status = tdm_text_skip(&walk);
		} else if (status == TDM_OK) {
			status = read_line(&reader, &walk);
			if (status != TDM_OK) {
				tdm_fail(err, status, "%s:%" PRIu64 ": more than %d records", name,
					walk.line_number, TDM_EXCHANGE_LOG_MAX);
			}
		}
	}
	if (status != TDM_END) {
		goto out;
	}
	status = TDM_OK;
	reader.log->faults.cut_short = !reader.ended;
	join_extras(&reader);
	*log = reader.log;
	reader.log = NULL;
out:
	tdm_exchange_log_destroy(reader.log);
	free(reader.extras);
	return status;
}

enum tdm_status tdm_exchange_log_load(
	const char *path, struct tdm_exchange_log **log, struct tdm_error *err)
{
	struct tdm_buffer text = { .cap = (size_t)FILE_CAP_BYTES + (1 << 17) };
	enum tdm_status status = tdm_text_read_file(path, FILE_CAP_BYTES, &text, err);

	*log = NULL;
	if (status == TDM_OK) {
		status =
			tdm_exchange_log_parse(path, (const char *)text.bytes, text.size, log, err);
	}
	tdm_buffer_release(&text);
	return status;
}
