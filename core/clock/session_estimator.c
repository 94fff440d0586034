/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/estimate.h>
#include <tandem/wide.h>

/*
 * Re-estimates the last stretch of a session and gives out one knot an update, at the newest burst. What lies before it is
 * settled: a later and better opinion of the same past only shows in the knots that follow.
 */

enum {
	KEPT_EXCHANGES = 2048, /* half a minute of bursts, or the start burst and some */
	KEPT_LOCALS = 512,
	KEPT_EPOCHS = 64
};

struct tdm_estimator {
	struct tdm_exchange_log_info info;
	char *texts[6];                        /* copies of the info's strings */
	struct tdm_exchange_record *exchanges; /* rings: the newest KEPT_... of each */
	struct tdm_local_record *locals;
	struct tdm_epoch_record *epochs;
	size_t exchange_count, local_count, epoch_count; /* ever added */
	struct tdm_quality quality;
	bool headed;          /* header lines went out */
	struct tdm_knot last; /* that went out */
	bool has_last;
	uint64_t segment_from; /* of the segment that is open */
};

static const char *copy_text(struct tdm_estimator *estimator, size_t slot, const char *text)
{
	estimator->texts[slot] = text ? strdup(text) : NULL;
	return estimator->texts[slot];
}

struct tdm_estimator *tdm_estimator_create(const struct tdm_exchange_log_info *info)
{
	struct tdm_estimator *made = calloc(1, sizeof(*made));

	if (!made) {
		return NULL;
	}
	made->info = *info;
	made->info.host_uuid = copy_text(made, 0, info->host_uuid);
	made->info.host_clock = copy_text(made, 1, info->host_clock);
	made->info.guest_uuid = copy_text(made, 2, info->guest_uuid);
	made->info.guest_clock = copy_text(made, 3, info->guest_clock);
	made->info.made = copy_text(made, 4, info->made);
	made->info.stamps = copy_text(made, 5, info->stamps);
	made->exchanges = calloc(KEPT_EXCHANGES, sizeof(*made->exchanges));
	made->locals = calloc(KEPT_LOCALS, sizeof(*made->locals));
	made->epochs = calloc(KEPT_EPOCHS, sizeof(*made->epochs));
	if (!made->exchanges || !made->locals || !made->epochs) {
		tdm_estimator_destroy(made);
		return NULL;
	}
	return made;
}

void tdm_estimator_destroy(struct tdm_estimator *estimator)
{
	if (!estimator) {
		return;
	}
	for (size_t i = 0; i < sizeof(estimator->texts) / sizeof(estimator->texts[0]); i++) {
		free(estimator->texts[i]);
	}
	free(estimator->exchanges);
	free(estimator->locals);
	free(estimator->epochs);
	free(estimator);
}

enum tdm_status tdm_estimator_add(
	struct tdm_estimator *estimator, const struct tdm_exchange_record *record)
{
	estimator->exchanges[estimator->exchange_count++ % KEPT_EXCHANGES] = *record;
	return TDM_OK;
}

enum tdm_status tdm_estimator_add_local(
	struct tdm_estimator *estimator, const struct tdm_local_record *record)
{
	estimator->locals[estimator->local_count++ % KEPT_LOCALS] = *record;
	return TDM_OK;
}

enum tdm_status tdm_estimator_add_epoch(
	struct tdm_estimator *estimator, const struct tdm_epoch_record *record)
{
	estimator->epochs[estimator->epoch_count++ % KEPT_EPOCHS] = *record;
	return TDM_OK;
}

static size_t kept(size_t count, size_t room)
{
	return count < room ? count : room;
}

/* A log of what is kept. */
static struct tdm_exchange_log *make_log(
	const struct tdm_estimator *estimator, struct tdm_error *err)
{
	struct tdm_exchange_log *log = tdm_exchange_log_create();
	enum tdm_status status =
		log ? tdm_exchange_log_set_info(log, &estimator->info, err) : TDM_ERR_NOMEM;

	for (size_t i = 0; status == TDM_OK && i < kept(estimator->exchange_count, KEPT_EXCHANGES);
		i++) {
		status = tdm_exchange_log_add(log, &estimator->exchanges[i]);
	}
	for (size_t i = 0; status == TDM_OK && i < kept(estimator->local_count, KEPT_LOCALS); i++) {
		status = tdm_exchange_log_add_local(log, &estimator->locals[i]);
	}
	for (size_t i = 0; status == TDM_OK && i < kept(estimator->epoch_count, KEPT_EPOCHS); i++) {
		status = tdm_exchange_log_add_epoch(log, &estimator->epochs[i]);
	}
	if (status == TDM_OK) {
		return log;
	}
	if (status == TDM_ERR_NOMEM) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for exchanges");
	}
	tdm_exchange_log_destroy(log);
	return NULL;
}

/* The lines in front of the first segment, as the file has them. */
static enum tdm_status put_header(const struct tdm_timeline *timeline, struct tdm_buffer *lines)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status = tdm_timeline_write(timeline, &text);
	const char *end = status == TDM_OK ? memmem(text.bytes, text.size, "\nsegment ", 9) : NULL;

	if (end) {
		status = tdm_buffer_append(
			lines, text.bytes, (size_t)(end + 1 - (const char *)text.bytes));
	}
	tdm_buffer_release(&text);
	return status;
}

/* Opens a segment where the newest estimate has one that began after all that went out. */
static enum tdm_status put_break(struct tdm_estimator *estimator,
	const struct tdm_timeline *timeline, struct tdm_buffer *lines, bool *opened)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	const struct tdm_segment_info segment =
		tdm_timeline_segment(timeline, info.segment_count - 1);
	enum tdm_status status = TDM_OK;

	*opened = false;
	if (!estimator->has_last) {
		*opened = true;
		estimator->segment_from = segment.from;
		return tdm_buffer_printf(lines, "segment start %" PRIu64 " 0\n", segment.from);
	}
	if (segment.kind == TDM_SEGMENT_START || segment.from <= estimator->last.guest) {
		return TDM_OK;
	}
	for (size_t i = 0; i < info.doubt_count && status == TDM_OK; i++) {
		uint64_t from, to;

		tdm_timeline_doubt(timeline, i, &from, &to);
		if (to > estimator->last.guest) {
			status = tdm_buffer_printf(lines, "doubt %" PRIu64 " %" PRIu64 "\n",
				from > estimator->last.guest ? from : estimator->last.guest + 1,
				to);
		}
	}
	*opened = true;
	estimator->segment_from = segment.from;
	return status == TDM_OK ? tdm_buffer_printf(lines, "segment %s %" PRIu64 " 0\n",
					  tdm_segment_kind_name(segment.kind), segment.from)
				: status;
}

/*
 * The knot at the newest burst. Between it and the one before, which other exchanges gave, the relation may wander by half of
 * what the rate allowance permits; the line between two bounds does not know that.
 */
static enum tdm_status put_knot(struct tdm_estimator *estimator,
	const struct tdm_timeline *timeline, bool opened, struct tdm_buffer *lines)
{
	const size_t segments = tdm_timeline_get_info(timeline).segment_count;
	const struct tdm_segment_info segment = tdm_timeline_segment(timeline, segments - 1);
	struct tdm_knot knot = segment.knots[segment.knot_count - 1];
	uint64_t wander = 0;

	if (estimator->has_last && knot.guest <= estimator->last.guest) {
		return TDM_OK;
	}
	if (estimator->has_last && !opened) {
		const uint64_t rate_ppb = estimator->info.rate_ppb ? estimator->info.rate_ppb : 100;

		wander = (uint64_t)((tdm_u128)(knot.guest - estimator->last.guest) * rate_ppb /
				    2000000000);
		/* Host readings do not go back inside a segment. */
		if (knot.host < estimator->last.host) {
			knot.plus = knot.plus > estimator->last.host - knot.host
					    ? knot.plus - (estimator->last.host - knot.host)
					    : 0;
			knot.minus += estimator->last.host - knot.host;
			knot.host = estimator->last.host;
		}
	}
	estimator->last = knot;
	estimator->has_last = true;
	return tdm_buffer_printf(lines, "k %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		knot.guest, knot.host, knot.minus + wander, knot.plus + wander);
}

enum tdm_status tdm_estimator_update(
	struct tdm_estimator *estimator, struct tdm_buffer *lines, struct tdm_error *err)
{
	struct tdm_exchange_log *log = make_log(estimator, err);
	struct tdm_timeline *timeline = NULL;
	bool opened = false;

	if (!log) {
		return err ? err->status : TDM_ERR_NOMEM;
	}

	enum tdm_status status = tdm_estimate(log, &timeline, &estimator->quality, err);

	tdm_exchange_log_destroy(log);
	if (status != TDM_OK) {
		/* Nothing usable yet is no fault of a session that has just begun. */
		return status == TDM_ERR_RANGE ? TDM_OK : status;
	}
	if (!estimator->headed) {
		status = put_header(timeline, lines);
		estimator->headed = status == TDM_OK;
	}
	if (status == TDM_OK) {
		status = put_break(estimator, timeline, lines, &opened);
	}
	if (status == TDM_OK) {
		status = put_knot(estimator, timeline, opened, lines);
	}
	tdm_timeline_destroy(timeline);
	return status == TDM_OK ? TDM_OK : tdm_fail(err, status, "no memory for corrections");
}

void tdm_estimator_quality(const struct tdm_estimator *estimator, struct tdm_quality *quality)
{
	*quality = estimator->quality;
}
