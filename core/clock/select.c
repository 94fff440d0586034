/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include "exchange_priv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	REFERENCES = 101
};

#define BURST_GAP_S   0.02 /* a longer pause between two exchanges ends a burst */
#define WINDOW_SPAN_S 0.1
#define RATE_RUN_NS   50e6 /* over less than that a difference says nothing of the rate */

/* The nominal rates are not believed when many bursts, or few, say that they are this far off. */
#define RATIO_ODD_MANY 0.01
#define RATIO_ODD_FEW  0.2

/* True for stamps that one exchange can have made. */
static bool is_clean(const struct estimate *est, const struct tdm_exchange *stamps)
{
	if (!stamps->host_sent || !stamps->guest_got || !stamps->guest_sent || !stamps->host_got ||
		stamps->host_sent > TDM_READING_MAX || stamps->guest_got > TDM_READING_MAX ||
		stamps->guest_sent > TDM_READING_MAX || stamps->host_got > TDM_READING_MAX ||
		stamps->host_got <= stamps->host_sent || stamps->guest_sent < stamps->guest_got) {
		return false;
	}

	const double away = (double)(stamps->host_got - stamps->host_sent) * est->host_unit_ns;
	const double there = (double)(stamps->guest_sent - stamps->guest_got) * (double)est->num /
			     (double)est->den * est->host_unit_ns;

	return there <= away * 1.001 + 50;
}

/* Numbers between those that are there: probes whose answers were lost. */
static uint64_t count_lost(const struct tdm_exchange_record **records, size_t count)
{
	uint64_t lost = 0;

	for (size_t i = 1; i < count; i++) {
		const uint64_t gap = records[i]->seq - records[i - 1]->seq;

		/* A larger one is another session's number, not a loss. */
		if (gap > 1 && gap < 1 << 16) {
			lost += gap - 1;
		}
	}
	return lost;
}

static int compare_by_number(const void *a, const void *b)
{
	const struct tdm_exchange_record *const *left = a;
	const struct tdm_exchange_record *const *right = b;

	return exchange_compare_records(*left, *right);
}

static int compare_by_host(const void *a, const void *b)
{
	const struct tdm_exchange_record *left = *(const struct tdm_exchange_record *const *)a;
	const struct tdm_exchange_record *right = *(const struct tdm_exchange_record *const *)b;

	if (left->trace.host_sent != right->trace.host_sent) {
		return left->trace.host_sent < right->trace.host_sent ? -1 : 1;
	}
	return exchange_compare_records(left, right);
}

/*
 * Records in the order in which they were made: by sequence number, which a bogus stamp does not disturb; by host
 * time where numbers were used again. NULL without memory.
 */
static const struct tdm_exchange_record **ordered_records(const struct estimate *est, size_t *count)
{
	const struct tdm_exchange_record *records = tdm_exchange_log_records(est->log, count);
	const struct tdm_exchange_record **sorted = malloc((*count + 1) * sizeof(*sorted));
	size_t again = 0;
	bool is_sorted = true;

	if (!sorted) {
		return NULL;
	}
	for (size_t i = 0; i < *count; i++) {
		sorted[i] = &records[i];
		is_sorted = is_sorted &&
			    (i == 0 || exchange_compare_records(sorted[i - 1], sorted[i]) <= 0);
	}
	if (!is_sorted) {
		qsort(sorted, *count, sizeof(*sorted), compare_by_number);
	}
	for (size_t i = 1; i < *count; i++) {
		again += sorted[i]->seq == sorted[i - 1]->seq &&
			 exchange_compare_records(sorted[i], sorted[i - 1]) != 0;
	}
	if (again > *count / 10) {
		qsort(sorted, *count, sizeof(*sorted), compare_by_host);
	}
	return sorted;
}

static bool same_stamps(const struct tdm_exchange_record *a, const struct tdm_exchange_record *b)
{
	return memcmp(&a->trace, &b->trace, sizeof(a->trace)) == 0;
}

static enum tdm_status gather(struct estimate *est, struct tdm_error *err)
{
	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(est->log);
	size_t count;
	const struct tdm_exchange_record **records = ordered_records(est, &count);

	est->samples = malloc((count + 1) * sizeof(*est->samples));
	if (!records || !est->samples) {
		free(records);
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu exchanges", count);
	}
	est->quality.samples = count;
	est->quality.lost = count_lost(records, count);
	for (size_t i = 0; i < count; i++) {
		const struct tdm_exchange_record *record = records[i];
		struct sample sample = { .stamps = record->trace,
			.bound_only = (record->marks & (TDM_MARK_PIPELINED | TDM_MARK_CODED)) != 0,
			.believed = true };

		if (i && record->seq == records[i - 1]->seq &&
			same_stamps(record, records[i - 1])) {
			est->quality.duplicates++;
			continue;
		}
		if ((record->marks & TDM_MARK_INVALID) || !is_clean(est, &sample.stamps)) {
			est->quality.bad_stamps++;
			continue;
		}
		if (record->has_kernel) {
			struct tdm_exchange stamps;
			uint64_t slack_ns;

			if (stamps_from_kernel(&info, record, &stamps, &slack_ns) &&
				is_clean(est, &stamps)) {
				sample.stamps = stamps;
				sample.slack = (double)slack_ns;
				est->quality.kernel_used++;
			} else {
				est->quality.kernel_dropped++;
			}
		}
		est->samples[est->sample_count++] = sample;
	}
	free(records);
	return TDM_OK;
}

static uint64_t middle_of_three(uint64_t a, uint64_t b, uint64_t c)
{
	if (a > b) {
		const uint64_t swap = a;

		a = b;
		b = swap;
	}
	return c < a ? a : c > b ? b : c;
}

/* Send time of a sample; one bogus stamp among its neighbours does not show. */
static uint64_t steady_time(const struct estimate *est, size_t at)
{
	const struct sample *samples = est->samples;

	if (at == 0 || at + 1 == est->sample_count) {
		return samples[at].stamps.host_sent;
	}
	return middle_of_three(samples[at - 1].stamps.host_sent, samples[at].stamps.host_sent,
		samples[at + 1].stamps.host_sent);
}

static bool split_windows(struct estimate *est)
{
	const double gap = BURST_GAP_S * (double)est->host_hz;
	const double span = WINDOW_SPAN_S * (double)est->host_hz;
	size_t room = 0;
	uint64_t begin = 0;
	uint64_t before = 0;

	for (size_t i = 0; i < est->sample_count; i++) {
		const uint64_t time = steady_time(est, i);
		struct window *window =
			est->window_count ? &est->windows[est->window_count - 1] : NULL;

		if (!window || window->count == WINDOW_SAMPLES ||
			fabs((double)place_distance(time, before)) > gap ||
			(double)place_distance(time, begin) > span) {
			if (est->window_count == room) {
				room = room ? room * 2 : 256;
				window = realloc(est->windows, room * sizeof(*window));
				if (!window) {
					return false;
				}
				est->windows = window;
			}
			window = &est->windows[est->window_count++];
			*window = (struct window){ .first = i };
			begin = time;
		}
		window->count++;
		before = time;
	}
	return true;
}

static double round_trip(const struct sample *sample)
{
	return sample->upper - sample->lower;
}

/* The sample that waited least. */
static const struct sample *quickest(const struct estimate *est, const struct window *window)
{
	const struct sample *best = &est->samples[window->first];

	for (size_t i = 1; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (round_trip(sample) < round_trip(best)) {
			best = sample;
		}
	}
	return best;
}

/* True where no relation within RATE_CAP of the nominal rate passes between what both exchanges allow. */
static bool rules_nominal_out(const struct sample *a, const struct sample *b)
{
	const double least_run = b->x_lower - a->x_upper;

	return least_run > 0 &&
	       (b->lower - a->upper > RATE_CAP * (b->x_lower - a->x_upper) ||
		       b->upper - a->lower < -RATE_CAP * (b->x_upper - a->x_lower));
}

static double median_of(double *values, size_t count)
{
	return order_nth(values, count, count / 2);
}

/*
 * Typical slope of y between neighbours; a jump disturbs the one pair around it. Neighbours inside a burst are too near
 * to tell a rate, but good enough for looking at one burst.
 */
static bool find_slope(struct estimate *est)
{
	const size_t count = est->window_count;
	double *slopes = malloc(count * sizeof(*slopes));
	double *rates = malloc(count * sizeof(*rates));
	size_t used = 0;
	size_t rated = 0;

	est->slope = 0;
	est->rate_pairs = 0;
	est->off_pairs = 0;
	est->rate_guess = est->rate_center;
	if (!slopes || !rates) {
		free(slopes);
		free(rates);
		return false;
	}
	for (size_t i = 0; i + 1 < count; i++) {
		const struct sample *a = quickest(est, &est->windows[i]);
		const struct sample *b = quickest(est, &est->windows[i + 1]);
		const double run = (b->x_lower + b->x_upper - a->x_lower - a->x_upper) / 2;

		if (run > 0) {
			est->rate_pairs++;
			est->off_pairs += rules_nominal_out(a, b);
			slopes[used++] = (b->lower + b->upper - a->lower - a->upper) / 2 / run;
			if (run > RATE_RUN_NS) {
				rates[rated++] = slopes[used - 1];
			}
		}
	}
	if (used) {
		est->slope = median_of(slopes, used);
	}
	if (rated) {
		est->rate_guess = median_of(rates, rated);
	}
	if (fabs(est->rate_guess - est->rate_center) > RATE_CAP) {
		est->rate_guess = est->rate_center;
	}
	free(slopes);
	free(rates);
	return true;
}

/* A middle reading of each clock: one bogus exchange must not make every other one look far away. */
static void find_references(struct estimate *est)
{
	uint64_t guest[REFERENCES];
	uint64_t host[REFERENCES];

	for (size_t i = 0; i < REFERENCES; i++) {
		const struct sample *sample = &est->samples[est->sample_count * i / REFERENCES];

		guest[i] = sample->stamps.guest_got;
		host[i] = sample->stamps.host_sent;
	}
	qsort(guest, REFERENCES, sizeof(*guest), compare_u64);
	qsort(host, REFERENCES, sizeof(*host), compare_u64);
	est->guest_ref = guest[REFERENCES / 2];
	est->host_ref = host[REFERENCES / 2];
}

static void place_all(struct estimate *est)
{
	for (size_t i = 0; i < est->sample_count; i++) {
		place_sample(est, &est->samples[i]);
	}
}

/*
 * Where the units were not said (TSC ticks on one side), y would be as large as x: measure the rate instead. Only where most
 * bursts rule the nominal rate out: long and uneven ways look like a rate too, and so does a pause between two bursts.
 */
static void mend_ratio(struct estimate *est)
{
	const double ratio = 1 + est->slope;
	const double odd = est->window_count >= 4 ? RATIO_ODD_MANY : RATIO_ODD_FEW;

	if (fabs(est->slope) <= odd || est->off_pairs * 2 <= est->rate_pairs ||
		est->window_count < (est->is_live ? 3 : 2) || ratio <= 0x1p-20 || ratio >= 0x1p20) {
		return;
	}
	/* num and den stay below 2^62: 128-bit products of readings fit. */
	const double nominal = (double)est->num / (double)est->den;

	est->den = UINT64_C(1) << 40;
	est->num = (uint64_t)llround(nominal * ratio * (double)est->den);
}

enum tdm_status select_samples(struct estimate *est, struct tdm_error *err)
{
	enum tdm_status status = gather(est, err);

	if (status != TDM_OK) {
		return status;
	}
	if (!est->sample_count) {
		return tdm_fail(err, TDM_ERR_RANGE, "not one of %zu exchanges can be used",
			(size_t)est->quality.samples);
	}
	find_references(est);
	place_all(est);
	if (!split_windows(est) || !find_slope(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the windows");
	}

	const uint64_t num = est->num;

	mend_ratio(est);
	if (num != est->num) {
		place_all(est);
		if (!find_slope(est)) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the windows");
		}
		est->rate_center = est->slope;
		est->rate_guess = est->slope;
	} else if (fabs(est->slope) > RATE_CAP) {
		/* A jump among few windows: inside a burst no clock runs like that. */
		est->slope = 0;
	}

	if (!window_vote(est)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"not one of %zu exchanges can be used: they contradict each other",
			(size_t)est->quality.samples);
	}
	if (!window_measure(est) || !epoch_order(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the windows");
	}
	return TDM_OK;
}
