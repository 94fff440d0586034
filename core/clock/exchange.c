/* SPDX-License-Identifier: MIT */
#include "exchange_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/timeline.h>
#include <tandem/wide.h>

const char exchange_format_name[] = "tandem-exchanges";

enum tdm_status tdm_exchange_solve(
	const struct tdm_exchange *ex, int64_t *offset_ns, uint64_t *delay_ns)
{
	if (ex->host_got < ex->host_sent || ex->guest_sent < ex->guest_got) {
		return TDM_ERR_RANGE;
	}

	const uint64_t away = ex->host_got - ex->host_sent;
	const uint64_t there = ex->guest_sent - ex->guest_got;
	const tdm_i128 sum = (tdm_i128)ex->host_sent - (tdm_i128)ex->guest_got +
			     (tdm_i128)ex->host_got - (tdm_i128)ex->guest_sent;
	/* Floor, also below 0. */
	const tdm_i128 offset = sum >> 1;

	if (there > away || offset > INT64_MAX || offset < INT64_MIN) {
		return TDM_ERR_RANGE;
	}
	*offset_ns = (int64_t)offset;
	*delay_ns = away - there;
	return TDM_OK;
}

struct tdm_exchange_log *tdm_exchange_log_create(void)
{
	struct tdm_exchange_log *log = calloc(1, sizeof(*log));

	if (log) {
		log->info.host_unit_hz = 1000000000;
		log->info.guest_unit_hz = 1000000000;
		log->info.rate_ppb = 100;
	}
	return log;
}

void tdm_exchange_log_destroy(struct tdm_exchange_log *log)
{
	if (!log) {
		return;
	}
	for (size_t i = 0; i < LOG_TEXTS; i++) {
		free(log->texts[i]);
	}
	free(log->records);
	free(log->locals);
	free(log->epochs);
	free(log);
}

const struct tdm_exchange_log_faults *tdm_exchange_log_get_faults(
	const struct tdm_exchange_log *log)
{
	return &log->faults;
}

enum tdm_status exchange_keep_text(
	struct tdm_exchange_log *log, enum log_text slot, const char *text, struct tdm_error *err)
{
	char *copy = NULL;

	if (text && strcmp(text, "-") != 0) {
		for (const char *at = text; *at; at++) {
			if ((unsigned char)*at <= ' ' || *at == 0x7f) {
				return tdm_fail(err, TDM_ERR_RANGE,
					"a name in an exchange log may not hold blanks: \"%s\"",
					text);
			}
		}
		copy = strdup(text);
		if (!copy) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for an exchange log");
		}
	}
	free(log->texts[slot]);
	log->texts[slot] = copy;
	return TDM_OK;
}

enum tdm_status tdm_exchange_log_set_info(struct tdm_exchange_log *log,
	const struct tdm_exchange_log_info *info, struct tdm_error *err)
{
	const char *const texts[LOG_TEXTS] = {
		[LOG_HOST_UUID] = info->host_uuid,
		[LOG_HOST_CLOCK] = info->host_clock,
		[LOG_GUEST_UUID] = info->guest_uuid,
		[LOG_GUEST_CLOCK] = info->guest_clock,
		[LOG_MADE] = info->made,
		[LOG_STAMPS] = info->stamps,
	};

	if (!info->host_unit_hz || info->host_unit_hz > TDM_READING_MAX || !info->guest_unit_hz ||
		info->guest_unit_hz > TDM_READING_MAX || info->rate_ppb > 1000000000) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"unit-hz must be above 0 and rate-ppb at most 1000000000");
	}
	for (size_t i = 0; i < LOG_TEXTS; i++) {
		const enum tdm_status status =
			exchange_keep_text(log, (enum log_text)i, texts[i], err);

		if (status != TDM_OK) {
			return status;
		}
	}
	log->info = *info;
	return TDM_OK;
}

struct tdm_exchange_log_info tdm_exchange_log_get_info(const struct tdm_exchange_log *log)
{
	struct tdm_exchange_log_info info = log->info;

	info.host_uuid = log->texts[LOG_HOST_UUID];
	info.host_clock = log->texts[LOG_HOST_CLOCK];
	info.guest_uuid = log->texts[LOG_GUEST_UUID];
	info.guest_clock = log->texts[LOG_GUEST_CLOCK];
	info.made = log->texts[LOG_MADE];
	info.stamps = log->texts[LOG_STAMPS];
	return info;
}

/* Room for one more of @p element_bytes, up to the limit of a log. */
static bool grow(void **array, size_t count, size_t *room, size_t element_bytes)
{
	if (count < *room) {
		return true;
	}
	if (count >= TDM_EXCHANGE_LOG_MAX) {
		return false;
	}

	const size_t wanted = *room ? *room * 2 : 64;
	void *bigger = realloc(*array, wanted * element_bytes);

	if (!bigger) {
		return false;
	}
	*array = bigger;
	*room = wanted;
	return true;
}

enum tdm_status tdm_exchange_log_add(
	struct tdm_exchange_log *log, const struct tdm_exchange_record *record)
{
	if (!grow((void **)&log->records, log->record_count, &log->record_room, sizeof(*record))) {
		return TDM_ERR_NOMEM;
	}
	log->records[log->record_count++] = *record;
	return TDM_OK;
}

enum tdm_status tdm_exchange_log_add_local(
	struct tdm_exchange_log *log, const struct tdm_local_record *record)
{
	if (!grow((void **)&log->locals, log->local_count, &log->local_room, sizeof(*record))) {
		return TDM_ERR_NOMEM;
	}
	log->locals[log->local_count++] = *record;
	return TDM_OK;
}

enum tdm_status tdm_exchange_log_add_epoch(
	struct tdm_exchange_log *log, const struct tdm_epoch_record *record)
{
	if (!grow((void **)&log->epochs, log->epoch_count, &log->epoch_room, sizeof(*record))) {
		return TDM_ERR_NOMEM;
	}
	log->epochs[log->epoch_count++] = *record;
	return TDM_OK;
}

const struct tdm_exchange_record *tdm_exchange_log_records(
	const struct tdm_exchange_log *log, size_t *count)
{
	*count = log->record_count;
	return log->records;
}

const struct tdm_local_record *tdm_exchange_log_locals(
	const struct tdm_exchange_log *log, size_t *count)
{
	*count = log->local_count;
	return log->locals;
}

const struct tdm_epoch_record *tdm_exchange_log_epochs(
	const struct tdm_exchange_log *log, size_t *count)
{
	*count = log->epoch_count;
	return log->epochs;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_exchanges(const struct tdm_exchange *a, const struct tdm_exchange *b)
{
	int order = compare_u64(a->host_sent, b->host_sent);

	order = order ? order : compare_u64(a->guest_got, b->guest_got);
	order = order ? order : compare_u64(a->guest_sent, b->guest_sent);
	return order ? order : compare_u64(a->host_got, b->host_got);
}

int exchange_compare_records(const void *a, const void *b)
{
	const struct tdm_exchange_record *left = a;
	const struct tdm_exchange_record *right = b;
	int order = compare_u64(left->seq, right->seq);

	order = order ? order : compare_exchanges(&left->trace, &right->trace);
	order = order ? order : left->marks - right->marks;
	order = order ? order : left->has_raw - right->has_raw;
	order = order ? order : compare_exchanges(&left->raw, &right->raw);
	for (size_t i = 0; i < 4; i++) {
		order = order ? order : compare_u64(left->kernel[i], right->kernel[i]);
	}
	return order;
}

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

enum tdm_status tdm_exchange_write_header(
	const struct tdm_exchange_log_info *info, struct tdm_buffer *out)
{
	static const char *const sides[] = { [TDM_SIDE_HOST] = "host", [TDM_SIDE_GUEST] = "guest" };
	bool fits = tdm_buffer_printf(out, "%s 1\n", exchange_format_name) == TDM_OK;

	if (info->host_uuid || info->host_clock || info->host_unit_hz != 1000000000) {
		fits &= tdm_buffer_printf(out, "host %s clock %s unit-hz %" PRIu64 "\n",
				or_dash(info->host_uuid), or_dash(info->host_clock),
				info->host_unit_hz) == TDM_OK;
	}
	if (info->guest_uuid || info->guest_clock || info->guest_unit_hz != 1000000000) {
		fits &= tdm_buffer_printf(out, "guest %s clock %s unit-hz %" PRIu64 "\n",
				or_dash(info->guest_uuid), or_dash(info->guest_clock),
				info->guest_unit_hz) == TDM_OK;
	}
	for (size_t i = 0; i < 2; i++) {
		if (info->epoch[i].is_known) {
			fits &= tdm_buffer_printf(out, "epoch %s %" PRId64 " %" PRIu64 "\n",
					sides[i], info->epoch[i].offset_ns,
					info->epoch[i].width_ns) == TDM_OK;
		}
	}
	if (info->made) {
		fits &= tdm_buffer_printf(out, "made %s\n", info->made) == TDM_OK;
	}
	if (info->stamps) {
		fits &= tdm_buffer_printf(out, "stamps %s\n", info->stamps) == TDM_OK;
	}
	fits &= tdm_buffer_printf(out, "assume rate-ppb %" PRIu64 "\n", info->rate_ppb) == TDM_OK;
	return fits ? TDM_OK : TDM_ERR_NOMEM;
}

static bool write_exchange(
	struct tdm_buffer *out, char type, uint64_t seq, const struct tdm_exchange *ex)
{
	return tdm_buffer_printf(out, "%c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		       type, seq, ex->host_sent, ex->guest_got, ex->guest_sent,
		       ex->host_got) == TDM_OK;
}

enum tdm_status tdm_exchange_write_record(
	const struct tdm_exchange_record *record, struct tdm_buffer *out)
{
	bool fits = write_exchange(out, 'x', record->seq, &record->trace);

	if (record->marks & TDM_MARK_PIPELINED) {
		fits &= tdm_buffer_append(out, " p", 2) == TDM_OK;
	}
	if (record->marks & TDM_MARK_CODED) {
		fits &= tdm_buffer_append(out, " c", 2) == TDM_OK;
	}
	fits &= tdm_buffer_append(out, "\n", 1) == TDM_OK;
	if (record->has_raw) {
		fits &= write_exchange(out, 'r', record->seq, &record->raw);
		fits &= tdm_buffer_append(out, "\n", 1) == TDM_OK;
	}
	if (record->has_kernel) {
		const struct tdm_exchange stamps = { record->kernel[0], record->kernel[1],
			record->kernel[2], record->kernel[3] };

		fits &= write_exchange(out, 't', record->seq, &stamps);
		fits &= tdm_buffer_append(out, "\n", 1) == TDM_OK;
	}
	return fits ? TDM_OK : TDM_ERR_NOMEM;
}

enum tdm_status tdm_exchange_write_local(
	const struct tdm_local_record *record, struct tdm_buffer *out)
{
	return tdm_buffer_printf(out, "l %c %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		record->side == TDM_SIDE_HOST ? 'h' : 'g', record->raw, record->trace,
		record->width);
}

enum tdm_status tdm_exchange_write_epoch(
	const struct tdm_epoch_record *record, struct tdm_buffer *out)
{
	return tdm_buffer_printf(out, "e %" PRIu64 " %" PRIu64 " %s\n", record->epoch,
		record->guest, *record->reason ? record->reason : "-");
}

enum tdm_status tdm_exchange_log_write(const struct tdm_exchange_log *log, struct tdm_buffer *out)
{
	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	bool fits = tdm_exchange_write_header(&info, out) == TDM_OK;

	for (size_t i = 0; i < log->epoch_count; i++) {
		fits &= tdm_exchange_write_epoch(&log->epochs[i], out) == TDM_OK;
	}
	for (size_t i = 0; i < log->local_count; i++) {
		fits &= tdm_exchange_write_local(&log->locals[i], out) == TDM_OK;
	}
	for (size_t i = 0; i < log->record_count; i++) {
		fits &= tdm_exchange_write_record(&log->records[i], out) == TDM_OK;
	}
	fits &= tdm_buffer_append(out, "end\n", 4) == TDM_OK;
	return fits ? TDM_OK : TDM_ERR_NOMEM;
}
