/* SPDX-License-Identifier: MIT */
#include "compose.h"
#include "estimate_priv.h"
#include "estimate_run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *tdm_grade_name(enum tdm_grade grade)
{
	static const char *const names[] = {
		[TDM_GRADE_UNSYNCED] = "unsynced",
		[TDM_GRADE_WEAK] = "weak",
		[TDM_GRADE_BOUNDED] = "bounded",
		[TDM_GRADE_EXACT] = "exact",
	};

	return names[grade];
}

static void release(struct estimate *est)
{
	free(est->samples);
	free(est->windows);
	free(est->stretches);
	free(est->epochs);
	free(est->dissents);
}

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the estimate");
}

static double clamp(double value, double low, double high)
{
	return fmax(low, fmin(high, value));
}

/* Fits each stretch on its sure windows, places what lies between, fits again. */
static enum tdm_status fit_all(struct estimate *est, struct tdm_error *err)
{
	segment_judge(est);
	for (size_t s = 0; s < est->stretch_count; s++) {
		struct stretch *stretch = &est->stretches[s];

		stretch->count = stretch->sure_count;
		segment_rates(est, stretch);
		if (!fit_stretch(est, stretch)) {
			return no_memory(err);
		}
	}
	if (!bound_bursts(est)) {
		return no_memory(err);
	}
	bound_breaks(est);
	change_place(est);
	for (size_t s = 0; s < est->stretch_count; s++) {
		struct stretch *stretch = &est->stretches[s];

		if (stretch->count != stretch->sure_count && !fit_stretch(est, stretch)) {
			return no_memory(err);
		}
		stretch->slope_first =
			clamp(stretch->slope_first, stretch->rate_low, stretch->rate_high);
		stretch->slope_last =
			clamp(stretch->slope_last, stretch->rate_low, stretch->rate_high);
	}
	bound_beside(est);
	for (size_t i = 0; i < est->window_count; i++) {
		struct window *window = &est->windows[i];

		window->y = clamp(window->y, window->low, window->high);
	}
	change_meet(est);
	return TDM_OK;
}

static enum tdm_status run(struct estimate *est, struct tdm_error *err)
{
	enum tdm_status status = select_samples(est, err);

	if (status == TDM_OK) {
		status = segment_windows(est, err);
	}
	if (status != TDM_OK) {
		return status;
	}

	const uint64_t unbelievable = est->quality.unbelievable;

	for (size_t s = 0; s < est->stretch_count; s++) {
		if (!fit_disbelieve(est, &est->stretches[s])) {
			return no_memory(err);
		}
	}
	if (est->quality.unbelievable != unbelievable) {
		if (!window_measure(est) || !epoch_order(est)) {
			return no_memory(err);
		}
		status = segment_windows(est, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	if (!segment_hear_ends(est)) {
		return no_memory(err);
	}
	dissent_place(est);
	return fit_all(est, err);
}

static void count_used(struct estimate *est)
{
	for (size_t i = 0; i < est->window_count; i++) {
		est->quality.used += est->windows[i].believed;
	}
	est->quality.windows = est->window_count;
}

/* A time in ns as host units. */
static uint64_t in_units(const struct estimate *est, double ns)
{
	return ns > 0 ? (uint64_t)llround(ns / est->host_unit_ns) : 0;
}

static uint64_t sorted_at(const struct estimate *est, double *values, size_t count, size_t at)
{
	return count ? in_units(est, values[at < count ? at : count - 1]) : 0;
}

/* Figures for the report; they steer nothing. */
static bool judge(struct estimate *est)
{
	struct tdm_quality *quality = &est->quality;
	double *bounds = malloc((est->window_count + 1) * sizeof(double));
	double *spreads = malloc((est->window_count + 1) * sizeof(double));
	double *trips = malloc((est->sample_count + 1) * sizeof(double));
	double forward = INFINITY;
	double backward = INFINITY;
	double doubt = 0;
	size_t trip_count = 0;
	size_t longest = 0;

	if (!bounds || !spreads || !trips) {
		free(bounds);
		free(spreads);
		free(trips);
		return false;
	}
	count_used(est);
	for (size_t i = 0; i < est->window_count; i++) {
		const struct window *window = &est->windows[i];

		bounds[i] = (window->high - window->low) / 2;
		spreads[i] = window->has_z ? sqrt(window->variance) : 0;
		for (size_t j = 0; j < window->count; j++) {
			const struct sample *sample = &est->samples[window->first + j];

			if (sample->believed) {
				trips[trip_count++] = sample->upper - sample->lower;
			}
		}
		forward = fmin(forward, window->y - window->lower);
		backward = fmin(backward, window->upper - window->y);
	}
	for (size_t s = 0; s < est->stretch_count; s++) {
		const struct stretch *stretch = &est->stretches[s];

		doubt += s ? stretch->told_to - stretch->told_from : 0;
		if (stretch->count > est->stretches[longest].count) {
			longest = s;
		}
	}
	qsort(bounds, est->window_count, sizeof(double), compare_doubles);
	qsort(spreads, est->window_count, sizeof(double), compare_doubles);
	quality->median_bound = sorted_at(est, bounds, est->window_count, est->window_count / 2);
	quality->worst_bound = sorted_at(est, bounds, est->window_count, est->window_count - 1);
	quality->median_spread = sorted_at(est, spreads, est->window_count, est->window_count / 2);
	quality->worst_spread = sorted_at(est, spreads, est->window_count, est->window_count - 1);
	quality->median_round_trip =
		trip_count ? in_units(est, order_nth(trips, trip_count, trip_count / 2)) : 0;
	quality->forward_least = in_units(est, forward);
	quality->backward_least = in_units(est, backward);
	quality->noisy = trip_count >= 10 &&
			 order_nth(trips, trip_count, trip_count * 9 / 10) >
				 50 * fmax(order_nth(trips, trip_count, trip_count / 10), 1);
	/* Delayed acknowledgements come after 40 ms. */
	quality->stalled = trip_count && order_nth(trips, trip_count, trip_count / 2) > 20e6;
	quality->doubt =
		(uint64_t)llround(doubt / est->host_unit_ns * (double)est->den / (double)est->num);

	const struct stretch *stretch = &est->stretches[longest];
	const struct window *first = &est->windows[stretch->first];
	const struct window *last = first + stretch->count - 1;
	const double nominal = (double)est->host_hz / (double)est->guest_hz;
	const double slope = stretch->count > 1 ? (last->y - first->y) / (last->x - first->x)
						: stretch->slope_first;

	quality->rate_ppb =
		llround(((1 + slope) * ((double)est->num / (double)est->den) / nominal - 1) * 1e9);
	quality->grade = est->window_count > 1 && last->x - first->x > 1e9 * LONE_SESSION_S
				 ? TDM_GRADE_BOUNDED
				 : TDM_GRADE_WEAK;
	free(bounds);
	free(spreads);
	free(trips);
	return true;
}

enum tdm_status estimate_make(const struct tdm_exchange_log *exchanges,
	const struct tdm_quality *quality, struct tdm_timeline **timeline, struct tdm_error *err)
{
	const struct tdm_exchange_log_info log = tdm_exchange_log_get_info(exchanges);
	const struct tdm_epoch_offset *epoch = &log.epoch[TDM_SIDE_HOST];
	const struct tdm_timeline_info info = {
		.host_uuid = log.host_uuid,
		.host_clock = log.host_clock,
		.guest_uuid = log.guest_uuid,
		.guest_clock = log.guest_clock,
		.host_unit_hz = log.host_unit_hz,
		.guest_unit_hz = log.guest_unit_hz,
		.has_epoch = epoch->is_known,
		.epoch_offset_ns = epoch->offset_ns,
		.epoch_width_ns = epoch->width_ns,
		.made = log.made,
		.method = quality->grade == TDM_GRADE_WEAK ? "offset-only" : "bounded",
		.stamps = log.stamps,
		.has_counts = true,
		.samples = quality->samples,
		.used = quality->used,
		.bogus = quality->bad_stamps + quality->outvoted + quality->unbelievable +
			 quality->stray,
		.lost = quality->lost,
		.rate_ppb = quality->assumed_ppb,
	};
	struct tdm_timeline *made = tdm_timeline_create();

	if (!made) {
		return no_memory(err);
	}

	const enum tdm_status status = tdm_timeline_set_info(made, &info, err);

	if (status != TDM_OK) {
		tdm_timeline_destroy(made);
		return status;
	}
	*timeline = made;
	return TDM_OK;
}

/* @param fits  Receives whether the exchanges are as they have to be with this allowance: no break, and none passed over. */
static enum tdm_status estimate_within(const struct tdm_exchange_log *log, enum estimate_mode mode,
	uint64_t rate_ppb, bool *fits, struct tdm_timeline **timeline, struct tdm_quality *quality,
	struct tdm_error *err)
{
	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	struct estimate est = { .log = log,
		.is_live = mode == ESTIMATE_LIVE,
		.host_hz = info.host_unit_hz,
		.guest_hz = info.guest_unit_hz,
		.num = info.host_unit_hz,
		.den = info.guest_unit_hz,
		.host_unit_ns = 1e9 / (double)info.host_unit_hz,
		.rho = (double)rate_ppb * 1e-9,
		.quality = { .assumed_ppb = rate_ppb } };
	struct tdm_timeline *made = NULL;

	*timeline = NULL;

	enum tdm_status status = run(&est, err);

	if (status == TDM_OK && !judge(&est)) {
		status = no_memory(err);
	}
	if (status == TDM_OK) {
		status = estimate_make(log, &est.quality, &made, err);
	}
	if (status == TDM_OK) {
		status = knots_emit(&est, mode == ESTIMATE_WHOLE, made, err);
	}
	if (status == TDM_OK) {
		*timeline = made;
		made = NULL;
	}
	tdm_timeline_destroy(made);
	if (quality) {
		*quality = est.quality;
	}
	*fits = est.stretch_count <= 1 && est.dissent_count == 0;
	release(&est);
	return status;
}

enum tdm_status estimate_direct(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, struct tdm_error *err)
{
	const uint64_t rate_ppb = tdm_exchange_log_get_info(log).rate_ppb;
	bool fits;
	const enum tdm_status status =
		estimate_within(log, mode, rate_ppb, &fits, timeline, quality, err);

	if (status != TDM_OK || fits || rate_ppb == 0 || rate_ppb >= ESTIMATE_APART_PPB) {
		return status;
	}
	/* Whatever was said of their oscillator: these two are not bound to each other so closely. */
	tdm_timeline_destroy(*timeline);
	return estimate_within(log, mode, ESTIMATE_APART_PPB, &fits, timeline, quality, err);
}

enum tdm_status estimate_run(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, struct tdm_error *err)
{
	struct tdm_quality unwanted;
	bool done = false;

	*timeline = NULL;
	if (compose_wanted(log)) {
		const enum tdm_status status =
			compose_run(log, mode, timeline, quality ? quality : &unwanted, &done, err);

		if (status != TDM_OK || done) {
			return status;
		}
	}
	return estimate_direct(log, mode, timeline, quality, err);
}

enum tdm_status tdm_estimate(const struct tdm_exchange_log *log, struct tdm_timeline **timeline,
	struct tdm_quality *quality, struct tdm_error *err)
{
	return estimate_run(log, ESTIMATE_WHOLE, timeline, quality, err);
}
