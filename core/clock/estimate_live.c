/* SPDX-License-Identifier: MIT */
#include "estimate_run.h"
#include "exchange_priv.h"
#include "repeat.h"
#include "timeline_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/wide.h>

enum {
	/* Some twenty bursts: enough for the rate, and an update stays below 1 ms a second. */
	KEEP_RECORDS = 768,
	KEEP_LOCALS = 512,
	KEEP_EPOCHS = 16,
	KEEP_RUNS = 16,
	SPARE_DIVISOR = 32,
};

struct tdm_estimator {
	struct tdm_exchange_log *log; /* the last of what was added */
	struct tdm_quality quality;   /* of the last update; counts are the session's */
	uint64_t samples, dropped;    /* added, and let go again */
	bool has_header;
	bool has_knot;
	struct tdm_knot last; /* said last */
	/* What was said of the clock since it went back last, and of its runs before. */
	struct tdm_timeline *said;
	struct repeat_run ended[KEEP_RUNS];
	size_t ended_count;
};

struct tdm_estimator *tdm_estimator_create(const struct tdm_exchange_log_info *info)
{
	struct tdm_estimator *estimator = calloc(1, sizeof(*estimator));

	if (!estimator) {
		return NULL;
	}

	struct tdm_exchange_log_info own = *info;

	/* What is said is never taken back: an allowance that exchanges may still contradict is not for here. */
	if (own.rate_ppb > 0 && own.rate_ppb < ESTIMATE_APART_PPB) {
		own.rate_ppb = ESTIMATE_APART_PPB;
	}
	estimator->log = tdm_exchange_log_create();
	if (!estimator->log || tdm_exchange_log_set_info(estimator->log, &own, NULL) != TDM_OK) {
		tdm_estimator_destroy(estimator);
		return NULL;
	}
	return estimator;
}

void tdm_estimator_destroy(struct tdm_estimator *estimator)
{
	if (estimator) {
		tdm_exchange_log_destroy(estimator->log);
		tdm_timeline_destroy(estimator->said);
		for (size_t i = 0; i < estimator->ended_count; i++) {
			tdm_timeline_destroy(estimator->ended[i].timeline);
		}
		free(estimator);
	}
}

/* Lets the oldest go, twice as many as are kept at a time: each is moved once. */
static void forget(void *array, size_t *count, size_t keep, size_t element_bytes)
{
	if (*count >= 2 * keep) {
		memmove(array, (char *)array + (*count - keep) * element_bytes,
			keep * element_bytes);
		*count = keep;
	}
}

enum tdm_status tdm_estimator_add(
	struct tdm_estimator *estimator, const struct tdm_exchange_record *record)
{
	struct tdm_exchange_log *log = estimator->log;
	const size_t before = log->record_count;

	forget(log->records, &log->record_count, KEEP_RECORDS, sizeof(*log->records));
	estimator->dropped += before - log->record_count;
	estimator->samples++;
	return tdm_exchange_log_add(log, record);
}

enum tdm_status tdm_estimator_add_local(
	struct tdm_estimator *estimator, const struct tdm_local_record *record)
{
	struct tdm_exchange_log *log = estimator->log;

	forget(log->locals, &log->local_count, KEEP_LOCALS, sizeof(*log->locals));
	return tdm_exchange_log_add_local(log, record);
}

enum tdm_status tdm_estimator_add_epoch(
	struct tdm_estimator *estimator, const struct tdm_epoch_record *record)
{
	struct tdm_exchange_log *log = estimator->log;

	forget(log->epochs, &log->epoch_count, KEEP_EPOCHS, sizeof(*log->epochs));
	return tdm_exchange_log_add_epoch(log, record);
}

static enum tdm_status say_header(struct tdm_estimator *estimator,
	const struct tdm_timeline *timeline, struct tdm_buffer *lines)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

	if (estimator->has_header) {
		return TDM_OK;
	}
	estimator->has_header = true;
	return timeline_write_header(&info, false, lines);
}

/* Begins to keep what is said of a run of the guest's clock. */
static enum tdm_status begin_run(struct tdm_estimator *estimator)
{
	const struct tdm_exchange_log_info log = tdm_exchange_log_get_info(estimator->log);
	const struct tdm_timeline_info info = { .host_unit_hz = log.host_unit_hz,
		.guest_unit_hz = log.guest_unit_hz,
		.rate_ppb = log.rate_ppb };

	estimator->said = tdm_timeline_create();
	return estimator->said ? tdm_timeline_set_info(estimator->said, &info, NULL)
			       : TDM_ERR_NOMEM;
}

/* The guest's clock went back: what it showed before it may show again. */
static enum tdm_status end_run(
	struct tdm_estimator *estimator, const struct tdm_knot *next, struct tdm_buffer *lines)
{
	const uint64_t host_hz = tdm_timeline_get_info(estimator->said).host_unit_hz;
	const uint64_t guest_hz = tdm_timeline_get_info(estimator->said).guest_unit_hz;
	const uint64_t elapsed =
		next->host > estimator->last.host ? next->host - estimator->last.host : 0;
	struct repeat_run run = { .timeline = estimator->said };
	uint64_t last;

	if (estimator->ended_count == KEEP_RUNS) {
		tdm_timeline_destroy(estimator->ended[0].timeline);
		memmove(estimator->ended, estimator->ended + 1,
			(KEEP_RUNS - 1) * sizeof(*estimator->ended));
		estimator->ended_count--;
	}
	(void)tdm_timeline_range(estimator->said, &run.from, &last);
	run.until = last + (uint64_t)((tdm_u128)elapsed * guest_hz / host_hz) + 1;
	run.from -= run.from < 10 * guest_hz ? run.from : 10 * guest_hz;
	estimator->ended[estimator->ended_count++] = run;
	return begin_run(estimator) == TDM_OK
		       ? tdm_buffer_printf(lines, "doubt %" PRIu64 " %" PRIu64 "\n",
				 next->guest < run.until ? next->guest : run.until, run.until)
		       : TDM_ERR_NOMEM;
}

/* Until the next knot is reached readings from this one on may be those of runs before: the bound covers them. */
static void cover_ended(
	const struct tdm_estimator *estimator, uint64_t from, uint64_t to, struct tdm_knot *knot)
{
	for (size_t i = 0; i < estimator->ended_count; i++) {
		const struct repeat_run *run = &estimator->ended[i];

		if (from < run->until && to >= run->from) {
			repeat_cover(run->timeline, knot->guest, knot);
		}
	}
}

/*
 * One more knot, never before the last: what was said is not taken back, the line bends instead. Said a bit wider than
 * it is, so that the next update seldom has to say of the same time that it was wider.
 */
static enum tdm_status say_knot(struct tdm_estimator *estimator, const struct tdm_knot *knot,
	uint64_t until, struct tdm_buffer *lines)
{
	struct tdm_knot said = *knot;
	const uint64_t from = estimator->has_knot ? estimator->last.guest : knot->guest;

	if (estimator->has_knot && said.host < estimator->last.host) {
		const uint64_t up = estimator->last.host - said.host;

		said.host += up;
		said.minus += up;
		said.plus -= up < said.plus ? up : said.plus;
	}
	cover_ended(estimator, from, until, &said);
	said.minus += said.minus / SPARE_DIVISOR;
	said.plus += said.plus / SPARE_DIVISOR;
	estimator->last = said;
	estimator->has_knot = true;
	/* May be more than a file holds: then a repeat of it is not known later. */
	(void)tdm_timeline_add_knot(estimator->said, &said, NULL);
	return tdm_buffer_printf(lines, "k %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		said.guest, said.host, said.minus, said.plus);
}

/* Behind what was said, also by the host: an epoch before may have shown greater readings. */
static bool is_new(const struct tdm_estimator *estimator, const struct tdm_knot *knot)
{
	return !estimator->has_knot || (knot->guest > estimator->last.guest &&
					       knot->host + knot->plus >= estimator->last.host);
}

static uint64_t between(uint64_t a, uint64_t b, uint64_t part, uint64_t whole)
{
	return b > a ? a + (uint64_t)((tdm_u128)(b - a) * part / whole)
		     : a - (uint64_t)((tdm_u128)(a - b) * part / whole);
}

/*
 * The newest burst may show that the clock could have jumped right behind the knot said last: from there on the bound is
 * the wider one.
 */
static enum tdm_status say_wider(struct tdm_estimator *estimator, const struct tdm_knot *a,
	const struct tdm_knot *b, struct tdm_buffer *lines)
{
	const struct tdm_knot *last = &estimator->last;
	const uint64_t guest = last->guest + 1;

	/* Lower by the host: of a run before. */
	if (!estimator->has_knot || a->guest > guest || b->guest <= guest ||
		b->host + b->plus < last->host) {
		return TDM_OK;
	}

	const uint64_t part = guest - a->guest;
	const uint64_t run = b->guest - a->guest;
	struct tdm_knot wider = { .guest = guest,
		.host = between(a->host, b->host, part, run),
		.minus = between(a->minus, b->minus, part, run) + 1,
		.plus = between(a->plus, b->plus, part, run) + 1 };

	cover_ended(estimator, guest, b->guest, &wider);

	const tdm_i128 low = (tdm_i128)wider.host - (tdm_i128)wider.minus;
	const tdm_i128 high = (tdm_i128)wider.host + (tdm_i128)wider.plus;

	/* 1 for the unit between both places. */
	if (low + 2 >= (tdm_i128)last->host - (tdm_i128)last->minus &&
		high <= (tdm_i128)last->host + (tdm_i128)last->plus + 2) {
		return TDM_OK;
	}
	return say_knot(estimator, &wider, b->guest, lines);
}

static enum tdm_status say_segment(struct tdm_estimator *estimator,
	const struct tdm_timeline *timeline, const struct tdm_segment_info *segment, bool goes_back,
	struct tdm_buffer *lines)
{
	const size_t doubts = tdm_timeline_get_info(timeline).doubt_count;
	enum tdm_status status = tdm_buffer_printf(lines, "segment %s %" PRIu64 " 0\n",
		tdm_segment_kind_name(!estimator->has_knot ? TDM_SEGMENT_START
				      : goes_back          ? TDM_SEGMENT_EPOCH
							   : segment->kind),
		segment->from);

	for (size_t i = 0; i < doubts && estimator->has_knot && !goes_back; i++) {
		uint64_t from;
		uint64_t to;

		tdm_timeline_doubt(timeline, i, &from, &to);
		if (from <= segment->from && segment->from <= to) {
			status |= tdm_buffer_printf(
				lines, "doubt %" PRIu64 " %" PRIu64 "\n", from, to);
		}
	}
	if (goes_back) {
		status |= end_run(estimator, &segment->knots[0], lines);
	}
	/* A segment's knots are its own: the first one may stand where the last of the other did. */
	estimator->has_knot = false;
	(void)tdm_timeline_add_segment(estimator->said, segment->kind, segment->from, NULL);
	return status;
}

static enum tdm_status say_new(struct tdm_estimator *estimator, const struct tdm_timeline *timeline,
	struct tdm_buffer *lines)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	enum tdm_status status = TDM_OK;

	for (size_t s = 0; s < info.segment_count && status == TDM_OK; s++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, s);
		const struct tdm_knot *end = &segment.knots[segment.knot_count - 1];
		const bool is_later =
			!estimator->has_knot || end->host + end->plus >= estimator->last.host;

		/* A break that lies before what was said shows as a bend: nothing is reopened. */
		const bool goes_back = estimator->has_knot && end->guest <= estimator->last.guest &&
				       end->host > estimator->last.host + estimator->last.minus +
							   estimator->last.plus + end->minus +
							   end->plus;

		if (!estimator->has_knot || goes_back ||
			(s > 0 && is_later && segment.from >= estimator->last.guest)) {
			status = say_segment(estimator, timeline, &segment, goes_back, lines);
		}
		for (size_t i = 0; i < segment.knot_count && status == TDM_OK; i++) {
			if (i > 0) {
				status = say_wider(
					estimator, &segment.knots[i - 1], &segment.knots[i], lines);
			}
			if (status == TDM_OK && is_new(estimator, &segment.knots[i])) {
				status = say_knot(estimator, &segment.knots[i],
					segment.knots[i].guest, lines);
			}
		}
	}
	return status == TDM_OK ? TDM_OK : TDM_ERR_NOMEM;
}

static enum tdm_status take_up(struct tdm_estimator *estimator, enum estimate_mode mode,
	struct tdm_buffer *lines, struct tdm_error *err)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	enum tdm_status status = estimate_run(estimator->log, mode, &timeline, &quality, err);

	if (status != TDM_OK) {
		estimator->quality = quality;
		estimator->quality.samples = estimator->samples;
		/* Nothing usable yet is no fault of the session. */
		return status == TDM_ERR_RANGE ? TDM_OK : status;
	}
	quality.samples = estimator->samples;
	quality.used += estimator->dropped;
	estimator->quality = quality;
	status = estimator->said ? TDM_OK : begin_run(estimator);
	if (status == TDM_OK) {
		status = say_header(estimator, timeline, lines);
	}
	if (status == TDM_OK) {
		status = say_new(estimator, timeline, lines);
	}
	tdm_timeline_destroy(timeline);
	return status == TDM_OK ? TDM_OK
				: tdm_fail(err, TDM_ERR_NOMEM, "no memory for the corrections");
}

enum tdm_status tdm_estimator_update(
	struct tdm_estimator *estimator, struct tdm_buffer *lines, struct tdm_error *err)
{
	return take_up(estimator, ESTIMATE_LIVE, lines, err);
}

enum tdm_status tdm_estimator_finish(
	struct tdm_estimator *estimator, struct tdm_buffer *lines, struct tdm_error *err)
{
	return take_up(estimator, ESTIMATE_ENDING, lines, err);
}

void tdm_estimator_quality(const struct tdm_estimator *estimator, struct tdm_quality *quality)
{
	*quality = estimator->quality;
}
