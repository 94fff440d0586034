/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include "exchange_priv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAG_DIVISOR = 50,  /* slopes are taken between bursts this part of the session apart */
	GUARD_DIVISOR = 4, /* never is more than this part of a window disbelieved for its speed */
	REFERENCES = 101,
	FEW = 4, /* in smaller windows the spread says nothing */
};

#define NS_PER_S      1e9
#define BURST_GAP_S   0.02 /* a longer pause between two exchanges ends a burst */
#define WINDOW_SPAN_S 0.1
#define RATIO_ODD_MANY \
	0.01 /* nominal rates are not believed when several bursts say they are this far off */
#define RATIO_ODD_FEW 0.2

int compare_doubles(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;

	return (left > right) - (left < right);
}

static tdm_i128 distance(uint64_t to, uint64_t from)
{
	return (tdm_i128)to - (tdm_i128)from;
}

/* Splits guest distance * num / den into whole host units and the rest. */
static tdm_i128 scaled(const struct estimate *est, uint64_t guest, double *rest)
{
	const tdm_i128 product = distance(guest, est->guest_ref) * (tdm_i128)est->num;
	tdm_i128 quotient = product / (tdm_i128)est->den;
	tdm_i128 remainder = product % (tdm_i128)est->den;

	if (remainder < 0) {
		quotient--;
		remainder += (tdm_i128)est->den;
	}
	*rest = (double)remainder / (double)est->den;
	return quotient;
}

double select_x(const struct estimate *est, uint64_t guest)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return ((double)whole + rest) * est->host_unit_ns;
}

tdm_i128 select_host(const struct estimate *est, uint64_t guest, double y)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return (tdm_i128)est->host_ref + whole +
	       (tdm_i128)floor(rest + y / est->host_unit_ns + 0.5);
}

uint64_t select_guest(const struct estimate *est, double x)
{
	const double ticks = x / est->host_unit_ns * (double)est->den / (double)est->num;
	const tdm_i128 guest = (tdm_i128)est->guest_ref + (tdm_i128)floor(ticks + 0.5);

	if (guest < 0) {
		return 0;
	}
	return guest > (tdm_i128)TDM_READING_MAX ? TDM_READING_MAX : (uint64_t)guest;
}

static double y_of(const struct estimate *est, uint64_t guest, uint64_t host)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return ((double)(distance(host, est->host_ref) - whole) - rest) * est->host_unit_ns;
}

static void place(const struct estimate *est, struct sample *sample)
{
	const struct tdm_exchange *stamps = &sample->stamps;

	sample->x_lower = select_x(est, stamps->guest_got);
	sample->lower = y_of(est, stamps->guest_got, stamps->host_sent) - sample->slack;
	sample->x_upper = select_x(est, stamps->guest_sent);
	sample->upper = y_of(est, stamps->guest_sent, stamps->host_got) + sample->slack;
}

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

/* Kernel stamps as stamps of the trace clocks, where they are believable. */
static bool use_kernel_stamps(struct estimate *est, const struct tdm_exchange_log_info *info,
	const struct tdm_exchange_record *record, struct sample *sample)
{
	const struct tdm_epoch_offset *host = &info->epoch[TDM_SIDE_HOST];
	const struct tdm_epoch_offset *guest = &info->epoch[TDM_SIDE_GUEST];
	const struct tdm_exchange *user = &sample->stamps;
	tdm_i128 moved[4];

	if (!host->is_known || !guest->is_known || info->host_unit_hz != 1000000000 ||
		info->guest_unit_hz != 1000000000) {
		return false;
	}
	for (size_t i = 0; i < 4; i++) {
		moved[i] = (tdm_i128)record->kernel[i] -
			   (i == 0 || i == 3 ? host->offset_ns : guest->offset_ns);
		if (!record->kernel[i] || moved[i] <= 0 || moved[i] > (tdm_i128)TDM_READING_MAX) {
			return false;
		}
	}

	/* The kernel's points lie between ours, by no more than the constants may be off. */
	const tdm_i128 host_slack = (tdm_i128)host->width_ns;
	const tdm_i128 guest_slack = (tdm_i128)guest->width_ns;

	if (moved[0] + host_slack < (tdm_i128)user->host_sent || moved[3] <= moved[0] ||
		moved[3] > (tdm_i128)user->host_got + host_slack ||
		moved[1] > (tdm_i128)user->guest_got + guest_slack ||
		moved[2] + guest_slack < (tdm_i128)user->guest_sent) {
		return false;
	}

	const struct tdm_exchange stamps = { (uint64_t)moved[0], (uint64_t)moved[1],
		(uint64_t)moved[2], (uint64_t)moved[3] };

	if (!is_clean(est, &stamps)) {
		return false;
	}
	sample->stamps = stamps;
	sample->slack = (double)host->width_ns + (double)guest->width_ns;
	return true;
}

/* The greatest stretch of sequence numbers that one session can have used up, less those that are there. */
static uint64_t count_lost(const struct tdm_exchange_record *records, size_t count)
{
	uint64_t lost = 0;

	for (size_t i = 1; i < count; i++) {
		const uint64_t gap = records[i].seq - records[i - 1].seq;

		/* A larger one is another session's number, not a loss. */
		if (gap > 1 && gap < 1 << 16) {
			lost += gap - 1;
		}
	}
	return lost;
}

static int compare_by_host(const void *a, const void *b)
{
	const struct tdm_exchange_record *left = a;
	const struct tdm_exchange_record *right = b;

	if (left->trace.host_sent != right->trace.host_sent) {
		return left->trace.host_sent < right->trace.host_sent ? -1 : 1;
	}
	return exchange_compare_records(a, b);
}

/*
 * Records in the order in which they were made: by sequence number, which a bogus stamp does not disturb; by host
 * time where numbers were used again.
 */
static struct tdm_exchange_record *ordered_records(const struct estimate *est, size_t *count)
{
	const struct tdm_exchange_record *records = tdm_exchange_log_records(est->log, count);
	struct tdm_exchange_record *sorted = malloc((*count + 1) * sizeof(*sorted));
	size_t again = 0;

	if (!sorted || !*count) {
		return sorted;
	}
	memcpy(sorted, records, *count * sizeof(*sorted));
	qsort(sorted, *count, sizeof(*sorted), exchange_compare_records);
	for (size_t i = 1; i < *count; i++) {
		again += sorted[i].seq == sorted[i - 1].seq &&
			 exchange_compare_records(&sorted[i], &sorted[i - 1]) != 0;
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
	struct tdm_exchange_record *records = ordered_records(est, &count);

	est->samples = malloc((count + 1) * sizeof(*est->samples));
	if (!records || !est->samples) {
		free(records);
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu exchanges", count);
	}
	est->quality.samples = count;
	est->quality.lost = count_lost(records, count);
	for (size_t i = 0; i < count; i++) {
		const struct tdm_exchange_record *record = &records[i];
		struct sample sample = { .stamps = record->trace,
			.seq = record->seq,
			.bound_only = (record->marks & (TDM_MARK_PIPELINED | TDM_MARK_CODED)) != 0,
			.believed = true };

		if (i && record->seq == records[i - 1].seq &&
			same_stamps(record, &records[i - 1])) {
			est->quality.duplicates++;
			continue;
		}
		if ((record->marks & TDM_MARK_INVALID) || !is_clean(est, &sample.stamps)) {
			est->quality.bad_stamps++;
			continue;
		}
		if (record->has_kernel) {
			if (use_kernel_stamps(est, &info, record, &sample)) {
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
			fabs((double)distance(time, before)) > gap ||
			(double)distance(time, begin) > span) {
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

static double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[count / 2];
}

/* Typical slope of y between bursts; a jump disturbs only the few pairs around it. */
static bool find_slope(struct estimate *est)
{
	const size_t count = est->window_count;
	const size_t lag = count / LAG_DIVISOR ? count / LAG_DIVISOR : 1;
	double *slopes = malloc(count * sizeof(*slopes));
	size_t used = 0;

	est->slope = 0;
	if (!slopes) {
		return false;
	}
	for (size_t i = 0; i + lag < count; i++) {
		const struct sample *a = quickest(est, &est->windows[i]);
		const struct sample *b = quickest(est, &est->windows[i + lag]);
		const double run = (b->x_lower + b->x_upper - a->x_lower - a->x_upper) / 2;

		if (run > 0) {
			slopes[used++] = (b->lower + b->upper - a->lower - a->upper) / 2 / run;
		}
	}
	if (used) {
		est->slope = median_of(slopes, used);
	}
	free(slopes);
	return true;
}

static int compare_readings(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
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
	qsort(guest, REFERENCES, sizeof(*guest), compare_readings);
	qsort(host, REFERENCES, sizeof(*host), compare_readings);
	est->guest_ref = guest[REFERENCES / 2];
	est->host_ref = host[REFERENCES / 2];
}

static void place_all(struct estimate *est)
{
	for (size_t i = 0; i < est->sample_count; i++) {
		place(est, &est->samples[i]);
	}
}

/*
 * Where the units were not said (TSC ticks on one side), y would be as large as x: measure the rate instead.
 */
static void mend_ratio(struct estimate *est)
{
	const double ratio = 1 + est->slope;
	const double odd = est->window_count >= 4 ? RATIO_ODD_MANY : RATIO_ODD_FEW;

	if (fabs(est->slope) <= odd || est->window_count < 2 || ratio <= 0x1p-20 ||
		ratio >= 0x1p20) {
		return;
	}
	/* num and den stay below 2^62: 128-bit products of readings fit. */
	const double nominal = (double)est->num / (double)est->den;

	est->den = UINT64_C(1) << 40;
	est->num = (uint64_t)llround(nominal * ratio * (double)est->den);
}

/* The value that most of a window's samples allow; those that do not are out. */
static size_t vote(struct estimate *est, struct window *window)
{
	struct {
		double value;
		int step;
	} ends[2 * WINDOW_SAMPLES];

	double starts[WINDOW_SAMPLES];
	double stops[WINDOW_SAMPLES];
	const double middle = est->samples[window->first + window->count / 2].x_lower;
	size_t agree = 0;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		starts[i] = sample->lower - est->slope * (sample->x_lower - middle);
		stops[i] = sample->upper - est->slope * (sample->x_upper - middle);
		ends[2 * i].value = starts[i];
		ends[2 * i].step = 1;
		ends[2 * i + 1].value = stops[i];
		ends[2 * i + 1].step = -1;
	}
	/* Few and nearly sorted pairs: insertion beats a call of qsort(). Starts come before stops of the same value. */
	for (size_t i = 1; i < 2 * window->count; i++) {
		const double value = ends[i].value;
		const int step = ends[i].step;
		size_t at = i;

		while (at && (ends[at - 1].value > value ||
				     (ends[at - 1].value == value && ends[at - 1].step < step))) {
			ends[at] = ends[at - 1];
			at--;
		}
		ends[at].value = value;
		ends[at].step = step;
	}

	int depth = 0;
	int deepest = 0;
	double value = 0;

	for (size_t i = 0; i + 1 < 2 * window->count; i++) {
		depth += ends[i].step;
		if (depth > deepest) {
			deepest = depth;
			value = (ends[i].value + ends[i + 1].value) / 2;
		}
	}
	for (size_t i = 0; i < window->count; i++) {
		struct sample *sample = &est->samples[window->first + i];

		sample->believed = starts[i] <= value && value <= stops[i];
		agree += sample->believed;
	}
	return agree;
}

/* Times of one direction, or statements, of a window's believed samples; sorted. */
static size_t sorted_values(const struct estimate *est, const struct window *window, bool upper,
	bool for_bound, double *values)
{
	size_t count = 0;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (!sample->believed || (sample->bound_only && !for_bound)) {
			continue;
		}

		const double value =
			upper ? sample->upper - est->slope * (sample->x_upper - window->x)
			      : -(sample->lower - est->slope * (sample->x_lower - window->x));
		size_t at = count++;

		while (at && values[at - 1] > value) {
			values[at] = values[at - 1];
			at--;
		}
		values[at] = value;
	}
	return count;
}

/* Takes out samples that travelled much faster than the window's usual fast ones. */
static void drop_impossible(struct estimate *est, struct window *window)
{
	double below[WINDOW_SAMPLES];
	double above[WINDOW_SAMPLES];
	const size_t count = sorted_values(est, window, false, true, below);

	sorted_values(est, window, true, true, above);
	if (count < 2 * FEW) {
		return;
	}

	const size_t tenth = (count - 1) / 10 ? (count - 1) / 10 : 1;
	const double middle = (above[tenth] - below[tenth]) / 2;
	const double half = (above[tenth] + below[tenth]) / 2;
	size_t out = 0;

	for (size_t i = 0; i < count; i++) {
		out += below[i] + middle < half / 2;
		out += above[i] - middle < half / 2;
	}
	if (!out || out > count / GUARD_DIVISOR) {
		return;
	}
	for (size_t i = 0; i < window->count; i++) {
		struct sample *sample = &est->samples[window->first + i];
		const double up = sample->upper - est->slope * (sample->x_upper - window->x);
		const double down = sample->lower - est->slope * (sample->x_lower - window->x);

		if (sample->believed && (up - middle < half / 2 || middle - down < half / 2)) {
			sample->believed = false;
			est->quality.unbelievable++;
		}
	}
}

static void find_tightest(const struct estimate *est, struct window *window)
{
	double best_lower = -INFINITY;
	double best_upper = INFINITY;

	window->believed = 0;
	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (!sample->believed) {
			continue;
		}
		window->believed++;

		const double lower = sample->lower - est->slope * (sample->x_lower - window->x);
		const double upper = sample->upper - est->slope * (sample->x_upper - window->x);

		if (lower > best_lower) {
			best_lower = lower;
			window->lower = sample->lower;
			window->x_lower = sample->x_lower;
		}
		if (upper < best_upper) {
			best_upper = upper;
			window->upper = sample->upper;
			window->x_upper = sample->x_upper;
		}
	}
}

static void find_middle(const struct estimate *est, struct window *window)
{
	double first = INFINITY;
	double last = -INFINITY;

	for (size_t i = 0; i < window->count; i++) {
		const struct sample *sample = &est->samples[window->first + i];

		if (sample->believed) {
			first = sample->x_lower < first ? sample->x_lower : first;
			last = sample->x_upper > last ? sample->x_upper : last;
		}
	}
	window->x = (first + last) / 2;
}

static void measure(const struct estimate *est, struct window *window)
{
	double below[WINDOW_SAMPLES];
	double above[WINDOW_SAMPLES];

	find_middle(est, window);
	find_tightest(est, window);

	const size_t count = sorted_values(est, window, false, false, below);

	sorted_values(est, window, true, false, above);
	window->has_z = count > 0;
	window->variance = INFINITY;
	if (!count) {
		return;
	}

	const size_t tenth = (count - 1) / 10;
	const double width = above[0] + below[0];
	double sigma;

	window->z = (above[tenth] - below[tenth]) / 2;
	if (count >= FEW) {
		const size_t near = tenth ? tenth : 1;

		sigma = (above[near] - above[0] + below[near] - below[0]) / 2;
	} else {
		/* What it waited above the session's best may all be on one side. */
		const double excess = width - est->round_trip_low;

		sigma = (est->round_trip_middle - est->round_trip_low) / 2 +
			(excess > 0 ? excess / 2 : 0);
	}
	window->variance = sigma * sigma + (width / 200) * (width / 200) + 20.0 * 20.0;
}

static int compare_epochs(const void *a, const void *b)
{
	const struct tdm_epoch_record *left = a;
	const struct tdm_epoch_record *right = b;

	if (left->epoch != right->epoch) {
		return left->epoch < right->epoch ? -1 : 1;
	}
	if (left->guest != right->guest) {
		return left->guest < right->guest ? -1 : 1;
	}
	return strcmp(left->reason, right->reason);
}

/* Which windows lie behind which of the guest's own marks of a break. */
static bool number_epochs(struct estimate *est)
{
	const struct tdm_epoch_record *epochs =
		tdm_exchange_log_epochs(est->log, &est->epoch_count);
	size_t next = 1;

	est->epochs = malloc((est->epoch_count + 1) * sizeof(*est->epochs));
	if (!est->epochs) {
		return false;
	}
	if (est->epoch_count) {
		memcpy(est->epochs, epochs, est->epoch_count * sizeof(*epochs));
		qsort(est->epochs, est->epoch_count, sizeof(*est->epochs), compare_epochs);
	}
	for (size_t i = 0; i < est->epoch_count && next < est->window_count; i++) {
		const double mark = select_x(est, est->epochs[i].guest);
		size_t at = next;

		/* Behind the mark, and either the first so or the first after readings went back. */
		while (at < est->window_count &&
			!(est->windows[at].x >= mark &&
				(est->windows[at - 1].x < mark ||
					est->windows[at].x < est->windows[at - 1].x))) {
			at++;
		}
		for (size_t j = at; j < est->window_count; j++) {
			est->windows[j].epoch = (uint32_t)i + 1;
		}
		if (at < est->window_count) {
			next = at + 1;
		}
	}
	return true;
}

/* Session-wide figures that single windows are held against. */
static bool find_usual(struct estimate *est)
{
	double *values = malloc((est->sample_count + est->window_count + 1) * sizeof(*values));
	size_t count = 0;

	if (!values) {
		return false;
	}
	for (size_t i = 0; i < est->sample_count; i++) {
		if (est->samples[i].believed) {
			values[count++] = round_trip(&est->samples[i]);
		}
	}
	if (count) {
		qsort(values, count, sizeof(*values), compare_doubles);
		est->round_trip_low = values[count / 10];
		est->round_trip_middle = values[count / 2];
	}
	free(values);
	return true;
}

static bool find_shrink(struct estimate *est)
{
	double *widths = malloc((est->window_count + 1) * sizeof(*widths));

	if (!widths) {
		return false;
	}
	for (size_t i = 0; i < est->window_count; i++) {
		const struct window *window = &est->windows[i];

		widths[i] = window->upper - window->lower -
			    est->slope * (window->x_upper - window->x_lower);
	}
	for (size_t i = 0; i < est->window_count; i++) {
		est->windows[i].shrink = widths[i];
	}
	qsort(widths, est->window_count, sizeof(*widths), compare_doubles);
	est->usual_width = widths[est->window_count / 10];
	for (size_t i = 0; i < est->window_count; i++) {
		struct window *window = &est->windows[i];
		const double width =
			window->shrink < est->usual_width ? window->shrink : est->usual_width;

		window->shrink = width > 0 ? width / 4 : 0;
	}
	free(widths);
	return true;
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
	}

	size_t kept = 0;

	for (size_t i = 0; i < est->window_count; i++) {
		struct window window = est->windows[i];
		const size_t agree = vote(est, &window);

		/* Alone, or fewer than half: nobody to believe. */
		if (agree * 2 < window.count) {
			for (size_t j = 0; j < window.count; j++) {
				est->samples[window.first + j].believed = false;
			}
			est->quality.outvoted += window.count;
			continue;
		}
		est->quality.outvoted += window.count - agree;
		find_middle(est, &window);
		drop_impossible(est, &window);
		find_middle(est, &window);
		est->windows[kept++] = window;
	}
	est->window_count = kept;
	if (!kept) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"not one of %zu exchanges can be used: they contradict each other",
			(size_t)est->quality.samples);
	}
	return number_epochs(est) && select_measure(est)
		       ? TDM_OK
		       : tdm_fail(err, TDM_ERR_NOMEM, "no memory for the windows");
}

bool select_measure(struct estimate *est)
{
	size_t kept = 0;

	if (!find_usual(est)) {
		return false;
	}
	for (size_t i = 0; i < est->window_count; i++) {
		struct window window = est->windows[i];

		measure(est, &window);
		if (window.believed) {
			est->windows[kept++] = window;
		}
	}
	est->window_count = kept;
	return find_shrink(est);
}
