/* SPDX-License-Identifier: MIT */
#include "compose.h"
#include "estimate_priv.h"
#include "estimate_run.h"
#include "local.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * guest trace -> guest raw -> host raw -> host trace. The middle step is estimated from the raw stamps, whose relation is
 * a straight line for as long as the guest runs; the outer ones are local. Bounds add.
 */

struct compose {
	const struct tdm_exchange_log *log;
	struct tdm_exchange_log_info info;
	struct local_table guest, host;
	struct tdm_timeline *raw; /* guest raw -> host raw */
	struct estimate est;      /* for placing points */
	uint64_t kernel_used, kernel_dropped;
};

static bool is_raw_name(const char *clock)
{
	return clock && (strcmp(clock, "mono_raw") == 0 || strcmp(clock, "x86-tsc") == 0 ||
				strcmp(clock, "tsc") == 0 || strcmp(clock, "raw") == 0);
}

bool compose_wanted(const struct tdm_exchange_log *log)
{
	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	size_t count;
	size_t with_raw = 0;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);

	if (is_raw_name(info.host_clock) && is_raw_name(info.guest_clock)) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		with_raw += records[i].has_raw;
	}
	/* Where most lack it (an old agent), the trace clocks alone say more. */
	return with_raw && with_raw >= count - count / 10;
}

/* A reading through one of the local tables, in whole units. */
static uint64_t through(
	const struct local_table *table, uint64_t reading, double *minus, double *plus)
{
	*minus = 0;
	*plus = 0;
	if (table->is_identity) {
		return reading;
	}

	const tdm_i128 other = local_other_reading(
		table, local_at(table, local_own_ns(table, reading), minus, plus));

	if (other < 0) {
		return 0;
	}
	return other > (tdm_i128)TDM_READING_MAX ? TDM_READING_MAX : (uint64_t)other;
}

/* The reading that goes through to @p wanted; the tables rise with a slope near 1. */
static uint64_t back_through(const struct local_table *table, uint64_t wanted)
{
	double minus;
	double plus;
	tdm_i128 reading;

	if (table->is_identity) {
		return wanted;
	}

	const double own =
		(double)((tdm_i128)wanted - (tdm_i128)table->other_origin) * table->other_unit_ns;

	reading = local_own_reading(table, own);
	for (int i = 0; i < 6; i++) {
		if (reading < 0) {
			reading = 0;
		}

		const tdm_i128 off = (tdm_i128)wanted -
				     (tdm_i128)through(table, (uint64_t)reading, &minus, &plus);

		reading +=
			(tdm_i128)llround((double)off * table->other_unit_ns / table->own_unit_ns);
	}
	if (reading < 0) {
		return 0;
	}
	return reading > (tdm_i128)TDM_READING_MAX ? TDM_READING_MAX : (uint64_t)reading;
}

/* Kernel stamps by way of the trace clocks; what the local tables may be off is taken off the statements. */
static bool kernel_as_raw(const struct compose *compose, const struct tdm_exchange_record *record,
	struct tdm_exchange *stamps)
{
	uint64_t slack_ns;
	double minus[4] = { 0 };
	double plus[4] = { 0 };

	if (!record->has_kernel || !stamps_from_kernel(&compose->info, record, stamps, &slack_ns)) {
		return false;
	}
	stamps->guest_got = through(&compose->guest, stamps->guest_got, &minus[0], &plus[0]);
	stamps->guest_sent = through(&compose->guest, stamps->guest_sent, &minus[1], &plus[1]);
	stamps->host_sent = back_through(&compose->host, stamps->host_sent);
	stamps->host_got = back_through(&compose->host, stamps->host_got);
	(void)through(&compose->host, stamps->host_sent, &minus[2], &plus[2]);
	(void)through(&compose->host, stamps->host_got, &minus[3], &plus[3]);

	/* The same to either side: what moves both statements alike would move the estimate. */
	double slack = (double)slack_ns + 1;

	slack += fmax(fmax(minus[0], plus[0]), fmax(minus[1], plus[1]));
	slack += fmax(fmax(minus[2], plus[2]), fmax(minus[3], plus[3]));
	if (slack > (double)stamps->host_sent) {
		return false;
	}
	stamps->host_sent -= (uint64_t)ceil(slack);
	stamps->host_got += (uint64_t)ceil(slack);
	return stamps->host_got > stamps->host_sent && stamps->guest_sent >= stamps->guest_got;
}

/* The log as it would be had raw been the trace clock. */
static struct tdm_exchange_log *raw_log(struct compose *compose, struct tdm_error *err)
{
	struct tdm_exchange_log *made = tdm_exchange_log_create();
	struct tdm_exchange_log_info info = compose->info;
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(compose->log, &count);
	size_t epoch_count;
	const struct tdm_epoch_record *epochs = tdm_exchange_log_epochs(compose->log, &epoch_count);
	enum tdm_status status = made ? TDM_OK : TDM_ERR_NOMEM;

	info.host_unit_hz = compose->host.is_identity ? info.host_unit_hz : 1000000000;
	info.guest_unit_hz = compose->guest.is_identity ? info.guest_unit_hz : 1000000000;
	if (status == TDM_OK) {
		status = tdm_exchange_log_set_info(made, &info, err);
	}
	for (size_t i = 0; status == TDM_OK && i < count; i++) {
		struct tdm_exchange_record record = records[i];
		struct tdm_exchange stamps;

		if (!record.has_raw) {
			continue;
		}
		if (!compose->host.is_identity) {
			record.trace.host_sent = record.raw.host_sent;
			record.trace.host_got = record.raw.host_got;
		}
		if (!compose->guest.is_identity) {
			record.trace.guest_got = record.raw.guest_got;
			record.trace.guest_sent = record.raw.guest_sent;
		}
		if (kernel_as_raw(compose, &records[i], &stamps)) {
			record.trace = stamps;
			compose->kernel_used++;
		} else {
			compose->kernel_dropped += record.has_kernel;
		}
		record.has_raw = false;
		record.has_kernel = false;
		status = tdm_exchange_log_add(made, &record);
	}
	for (size_t i = 0; status == TDM_OK && i < epoch_count; i++) {
		struct tdm_epoch_record epoch = epochs[i];

		if (!compose->guest.is_identity) {
			double minus;
			double plus;

			epoch.guest = through(&compose->guest, epoch.guest, &minus, &plus);
		}
		status = tdm_exchange_log_add_epoch(made, &epoch);
	}
	if (status != TDM_OK) {
		tdm_exchange_log_destroy(made);
		if (status == TDM_ERR_NOMEM) {
			tdm_fail(err, TDM_ERR_NOMEM, "no memory for the raw exchanges");
		}
		return NULL;
	}
	return made;
}

/* One point of the whole way. */
static void add_point(const struct compose *compose, struct points *points, uint64_t guest)
{
	double guest_minus;
	double guest_plus;
	double host_minus;
	double host_plus;
	uint64_t minus;
	uint64_t plus;
	const struct estimate *est = &compose->est;
	const uint64_t guest_raw = through(&compose->guest, guest, &guest_minus, &guest_plus);
	const uint64_t host_raw = tdm_timeline_apply(compose->raw, guest_raw, UINT32_MAX, NULL);

	tdm_timeline_bound(compose->raw, guest_raw, UINT32_MAX, &minus, &plus);

	const uint64_t host = through(&compose->host, host_raw, &host_minus, &host_plus);
	/* Slopes are 1 but for some ppm; 2 ns for the roundings on the way. */
	const double raw_ns = compose->host.is_identity ? est->host_unit_ns : 1;
	const double y = place_y(est, guest, host);

	points_add(points, est, guest, y, y - guest_minus - host_minus - (double)minus * raw_ns - 2,
		y + guest_plus + host_plus + (double)plus * raw_ns + 2);
}

/* Guest readings at which anything bends: knots of the raw relation, cells of both tables, and the middles of cells. */
static size_t gather_places(const struct compose *compose, const struct tdm_segment_info *segment,
	uint64_t from, uint64_t to, uint64_t **places)
{
	const size_t room =
		segment->knot_count + 4 * (compose->guest.count + compose->host.count) + 4;
	uint64_t *made = malloc(room * sizeof(*made));
	size_t count = 0;

	*places = made;
	if (!made) {
		return 0;
	}
	for (size_t i = 0; i < segment->knot_count; i++) {
		made[count++] = back_through(&compose->guest, segment->knots[i].guest);
	}

	const uint64_t first = made[0];
	const uint64_t last = made[count - 1];

	for (size_t side = 0; side < 2; side++) {
		const struct local_table *table = side ? &compose->host : &compose->guest;

		for (size_t i = 0; i < table->count; i++) {
			/* Quarters as well: between two cells the bound is a parabola. */
			for (int part = 0; part < 4; part++) {
				const double next = i + 1 < table->count ? table->cells[i + 1].own
									 : table->cells[i].own;
				const double own = table->cells[i].own +
						   (next - table->cells[i].own) * part / 4;
				const tdm_i128 reading = local_own_reading(table, own);
				uint64_t guest;

				if (reading < 0 || (part && next == table->cells[i].own)) {
					continue;
				}
				guest = (uint64_t)reading;
				if (side && tdm_timeline_invert(compose->raw, guest, &guest) !=
						    TDM_OK) {
					continue;
				}
				if (side) {
					guest = back_through(&compose->guest, guest);
				}
				if (guest > first && guest < last && guest >= from && guest < to) {
					made[count++] = guest;
				}
			}
		}
	}
	qsort(made, count, sizeof(*made), compare_u64);
	return count;
}

static enum tdm_status put_segments(const struct compose *compose, bool thin,
	struct tdm_timeline *timeline, struct tdm_error *err)
{
	const size_t segments = tdm_timeline_get_info(compose->raw).segment_count;
	struct points points = { 0 };
	enum tdm_status status = TDM_OK;

	for (size_t s = 0; status == TDM_OK && s < segments; s++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(compose->raw, s);
		const uint64_t from = back_through(&compose->guest, segment.from);
		const uint64_t to =
			s + 1 < segments ? back_through(&compose->guest,
						   tdm_timeline_segment(compose->raw, s + 1).from)
					 : UINT64_MAX;
		uint64_t *places;
		const size_t count = gather_places(
			compose, &segment, s ? from : 0, to > from ? to : UINT64_MAX, &places);

		points.count = 0;
		for (size_t i = 0; i < count; i++) {
			/* A segment's own edge is looked at from its own side: the next one begins there. */
			add_point(compose, &points,
				s + 1 < segments && places[i] == to && to > 0 ? to - 1 : places[i]);
		}
		free(places);
		if (points.failed || !points.count) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for the knots");
			break;
		}
		if (thin || points.ripple > 0) {
			points_thin(&points);
		}
		status = points_put(&compose->est, segment.kind, from, &points, timeline, err);
	}
	free(points.at);
	return status;
}

static enum tdm_status put_doubts(
	const struct compose *compose, struct tdm_timeline *timeline, struct tdm_error *err)
{
	const size_t doubts = tdm_timeline_get_info(compose->raw).doubt_count;
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; status == TDM_OK && i < doubts; i++) {
		uint64_t from;
		uint64_t to;

		tdm_timeline_doubt(compose->raw, i, &from, &to);
		status = tdm_timeline_add_doubt(timeline, back_through(&compose->guest, from),
			back_through(&compose->guest, to), err);
	}
	for (size_t side = 0; side < 2; side++) {
		const struct local_table *table = side ? &compose->host : &compose->guest;

		for (size_t i = 0; status == TDM_OK && i + 1 < table->count; i++) {
			uint64_t ends[2];

			if (!table->jumps[i]) {
				continue;
			}
			for (size_t j = 0; j < 2; j++) {
				ends[j] =
					(uint64_t)local_own_reading(table, table->cells[i + j].own);
				if (side) {
					(void)tdm_timeline_invert(compose->raw, ends[j], &ends[j]);
					ends[j] = back_through(&compose->guest, ends[j]);
				}
			}
			if (ends[0] <= ends[1]) {
				status = tdm_timeline_add_doubt(timeline, ends[0], ends[1], err);
			}
		}
	}
	return status;
}

/* The bound of the whole way for the report, as far as its knots tell, and the raw clocks' times in the file's units. */
static void judge(const struct compose *compose, const struct tdm_timeline *timeline,
	struct tdm_quality *quality)
{
	const struct local_table *host = &compose->host;
	const struct local_table *guest = &compose->guest;
	uint64_t median;
	uint64_t worst;

	/* So far in ns of the raw clock, where there is one beside the host's. */
	if (!host->is_identity && host->other_unit_ns != 1) {
		uint64_t *const times[] = { &quality->median_spread, &quality->worst_spread,
			&quality->forward_least, &quality->backward_least,
			&quality->median_round_trip };

		for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
			*times[i] = (uint64_t)((double)*times[i] / host->other_unit_ns);
		}
	}
	if (!guest->is_identity && guest->own_unit_ns != 1) {
		quality->doubt = (uint64_t)((double)quality->doubt / guest->own_unit_ns);
	}
	if (tdm_timeline_bounds(timeline, &median, &worst)) {
		quality->median_bound = median;
		quality->worst_bound = worst;
	}
}

enum tdm_status compose_run(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, bool *done,
	struct tdm_error *err)
{
	struct compose compose = { .log = log, .info = tdm_exchange_log_get_info(log) };
	struct tdm_exchange_log *raw = NULL;
	struct tdm_timeline *made = NULL;
	enum tdm_status status = TDM_ERR_NOMEM;
	bool usable[2] = { true, true };

	*done = false;
	compose.guest.is_identity = is_raw_name(compose.info.guest_clock);
	compose.host.is_identity = is_raw_name(compose.info.host_clock);
	if ((!compose.guest.is_identity &&
		    !local_build(&compose.guest, log, TDM_SIDE_GUEST, &usable[0])) ||
		(!compose.host.is_identity &&
			!local_build(&compose.host, log, TDM_SIDE_HOST, &usable[1]))) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for the local clocks");
		goto out;
	}
	if (!usable[0] || !usable[1]) {
		status = TDM_OK;
		goto out;
	}
	raw = raw_log(&compose, err);
	if (!raw) {
		goto out;
	}
	/* Thinned or not is asked of the whole; the parts keep all they know but what a burst alone cannot say. */
	status = estimate_direct(raw, mode, &compose.raw, quality, err);
	if (status != TDM_OK) {
		goto out;
	}

	struct tdm_segment_info first = tdm_timeline_segment(compose.raw, 0);
	double minus;
	double plus;

	compose.est = (struct estimate){ .host_hz = compose.info.host_unit_hz,
		.guest_hz = compose.info.guest_unit_hz,
		.num = compose.info.host_unit_hz,
		.den = compose.info.guest_unit_hz,
		.host_unit_ns = 1e9 / (double)compose.info.host_unit_hz,
		.guest_ref = back_through(&compose.guest, first.knots[0].guest),
		.host_ref = through(&compose.host, first.knots[0].host, &minus, &plus) };
	quality->composed = true;
	quality->kernel_used = compose.kernel_used;
	quality->kernel_dropped = compose.kernel_dropped;
	status = estimate_make(log, quality, &made, err);
	if (status == TDM_OK) {
		status = put_segments(&compose, mode == ESTIMATE_WHOLE, made, err);
	}
	if (status == TDM_OK) {
		status = put_doubts(&compose, made, err);
	}
	if (status == TDM_OK) {
		judge(&compose, made, quality);
		*timeline = made;
		made = NULL;
		*done = true;
	}
out:
	tdm_timeline_destroy(made);
	tdm_timeline_destroy(compose.raw);
	tdm_exchange_log_destroy(raw);
	if (!compose.guest.is_identity) {
		local_release(&compose.guest);
	}
	if (!compose.host.is_identity) {
		local_release(&compose.host);
	}
	return status;
}
