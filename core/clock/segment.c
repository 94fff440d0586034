/* SPDX-License-Identifier: MIT */
#include "chain.h"
#include <math.h>
#include <stdlib.h>

enum {
	LOOK_AHEAD = 6, /* windows that are asked whether a contradiction lasts */
	WEIGHT_CAP = 8, /* samples of a window that count there */
	OWN_WEIGHT = 4, /* samples of two bursts or more that agree: a time of its own */
	RATED_BURSTS = 3,
	UNSTEADY_BURSTS = 2, /* more are needed for a rate where breaks are frequent: */
	UNSTEADY_EVERY = 6,  /* at least one in so many bursts, */
	UNSTEADY_LEAST = 3,  /* and at least so many */
	END_SAMPLES = 3,
};

static unsigned int weight(const struct window *window)
{
	return window->believed < WEIGHT_CAP ? window->believed : WEIGHT_CAP;
}

/* True where guest readings went back, or the guest said so: nothing before and after may be compared. */
static bool is_cut(const struct window *before, const struct window *window)
{
	return window->run != before->run;
}

/* Do most of the next windows agree with this one that the stretch has ended? */
static bool lasts(const struct estimate *est, const struct chain *chain, size_t at)
{
	unsigned int against = weight(&est->windows[at]);
	unsigned int with = 0;
	double reach = 0;

	for (size_t i = at + 1; i < est->window_count && i <= at + LOOK_AHEAD; i++) {
		const struct view view = view_of(&est->windows[i], false, true);
		double low;
		double high;

		if (is_cut(&est->windows[i - 1], &est->windows[i])) {
			break;
		}
		if (chain_try(chain, &view, &low, &high)) {
			/* The very next one is back on the line: it was no more than one burst. */
			if (i == at + 1) {
				return false;
			}
			with += weight(&est->windows[i]);
		} else {
			against += weight(&est->windows[i]);
			reach = est->windows[i].x - est->windows[at].x;
		}
	}
	/* A running session waits for a second burst: rather late than wrong, it cannot take a jump back. */
	return against > with && (!est->is_live || reach > BURST_REACH_NS);
}

/* A window that contradicts all around it: the estimate passes over it, the bound does not. */
static bool disbelieve(struct estimate *est, struct window *window)
{
	const struct window *last = &est->windows[est->window_count - 1];
	/* Of the last burst of a running session nothing is said yet. */
	const bool is_held =
		est->is_live && last->run == window->run && last->x - window->x <= BURST_REACH_NS;
	const bool good = is_held || dissent_add(est, window);

	est->quality.stray += window->believed;
	for (size_t i = 0; i < window->count; i++) {
		est->samples[window->first + i].believed = false;
	}
	window->believed = 0;
	return good;
}

static bool add_stretch(struct estimate *est, size_t first, enum tdm_segment_kind kind)
{
	if (est->stretch_count == est->stretch_room) {
		const size_t room = est->stretch_room ? est->stretch_room * 2 : 16;
		struct stretch *bigger = realloc(est->stretches, room * sizeof(*bigger));

		if (!bigger) {
			return false;
		}
		est->stretches = bigger;
		est->stretch_room = room;
	}
	est->stretches[est->stretch_count++] = (struct stretch){ .first = first, .kind = kind };
	return true;
}

/* Closes the gaps that windows taken out have left. */
static void compact(struct estimate *est)
{
	size_t kept = 0;

	for (size_t s = 0; s < est->stretch_count; s++) {
		struct stretch *stretch = &est->stretches[s];
		const size_t first = kept;

		for (size_t i = 0; i < stretch->count; i++) {
			if (est->windows[stretch->first + i].believed) {
				est->windows[kept++] = est->windows[stretch->first + i];
			}
		}
		stretch->first = first;
		stretch->count = kept - first;
	}
	est->window_count = kept;
}

/* Samples from here on that contradict the chain and agree with each other; and over what time, in ns. */
static unsigned int agreeing(const struct estimate *est, const struct chain *chain,
	struct chain *fresh, size_t at, double *reach)
{
	unsigned int sum = 0;

	chain_reset(fresh, est->rate_center);
	for (size_t i = at; i < est->window_count && i <= at + LOOK_AHEAD; i++) {
		const struct view view = view_of(&est->windows[i], false, true);
		double low;
		double high;

		if ((i > at && is_cut(&est->windows[i - 1], &est->windows[i])) ||
			chain_try(chain, &view, &low, &high) ||
			!chain_try(fresh, &view, &low, &high)) {
			break;
		}
		chain_push(fresh, &view);
		sum += est->windows[i].believed;
		*reach = est->windows[i].x - est->windows[at].x;
	}
	return sum;
}

/* A window contradicts the chain: does a stretch begin with it? If not it is passed over. */
static bool begins(
	const struct estimate *est, const struct chain *chain, struct chain *fresh, size_t at)
{
	double reach = 0;
	const unsigned int own = agreeing(est, chain, fresh, at, &reach);

	return (own >= OWN_WEIGHT && reach > BURST_REACH_NS) || lasts(est, chain, at);
}

/* Ends the open stretch before a window and begins one with it. */
static bool begin_stretch(
	struct estimate *est, struct chain *chain, size_t at, enum tdm_segment_kind kind)
{
	struct stretch *open = &est->stretches[est->stretch_count - 1];

	open->count = at - open->first;
	chain_reset(chain, est->rate_center);
	return add_stretch(est, at, kind);
}

/* Left to right: each stretch as long as one rate within rho can explain it. */
static bool find_breaks(struct estimate *est)
{
	struct chain chain;
	struct chain fresh;
	const bool has_chain = chain_init(&chain, est, est->window_count, false);
	bool good = chain_init(&fresh, est, LOOK_AHEAD + 1, false) && has_chain &&
		    add_stretch(est, 0, TDM_SEGMENT_START);

	for (size_t i = 0; good && i < est->window_count; i++) {
		struct window *window = &est->windows[i];
		const struct view view = view_of(window, false, true);
		double low;
		double high;

		if (i > est->stretches[est->stretch_count - 1].first &&
			is_cut(&est->windows[i - 1], window)) {
			good = begin_stretch(est, &chain, i, TDM_SEGMENT_EPOCH);
			if (good && window->epoch != est->windows[i - 1].epoch) {
				struct stretch *made = &est->stretches[est->stretch_count - 1];

				made->has_mark = true;
				made->mark = place_x(est, est->epochs[window->epoch - 1].guest);
			}
		} else if (!chain_try(&chain, &view, &low, &high)) {
			if (!begins(est, &chain, &fresh, i)) {
				/* Its place is needed by is_cut(): only its samples go. */
				good = disbelieve(est, window);
				continue;
			}
			good = begin_stretch(est, &chain, i, TDM_SEGMENT_STEP);
		}
		chain_push(&chain, &view);
	}
	if (good) {
		struct stretch *last = &est->stretches[est->stretch_count - 1];

		last->count = est->window_count - last->first;
	}
	chain_release(&chain);
	chain_release(&fresh);
	return good;
}

/* Samples that a stretch rests on. */
static unsigned int stretch_weight(const struct estimate *est, const struct stretch *stretch)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < stretch->count && sum < 1000; i++) {
		sum += est->windows[stretch->first + i].believed;
	}
	return sum;
}

/* One or two samples alone are more likely bogus than a time of their own, where there is much else. */
static bool drop_crumbs(struct estimate *est)
{
	size_t kept = 0;
	enum tdm_segment_kind kind = TDM_SEGMENT_START;

	bool good = true;

	if (est->stretch_count < 2) {
		return true;
	}
	for (size_t s = 0; good && s < est->stretch_count; s++) {
		struct stretch stretch = est->stretches[s];

		if (stretch_weight(est, &stretch) <= 2 && est->sample_count > 20) {
			for (size_t i = 0; good && i < stretch.count; i++) {
				good = disbelieve(est, &est->windows[stretch.first + i]);
			}
			stretch.count = 0;
			if (stretch.kind == TDM_SEGMENT_EPOCH) {
				kind = TDM_SEGMENT_EPOCH;
			}
			continue;
		}
		if (kept == 0) {
			stretch.kind = TDM_SEGMENT_START;
		} else if (kind == TDM_SEGMENT_EPOCH) {
			stretch.kind = TDM_SEGMENT_EPOCH;
		}
		kind = TDM_SEGMENT_START;
		est->stretches[kept++] = stretch;
	}
	/* All of it crumbs: nothing to hold on to. */
	est->stretch_count = kept;
	return good;
}

/* Can one rate within rho explain the windows of both? @return False without memory. */
static bool are_one(const struct estimate *est, const struct stretch *left,
	const struct stretch *right, bool *one)
{
	struct chain chain;

	if (!chain_init(&chain, est, left->count + right->count, false)) {
		chain_release(&chain);
		return false;
	}
	*one = true;
	for (size_t i = 0; *one && i < left->count + right->count; i++) {
		const size_t at =
			i < left->count ? left->first + i : right->first + i - left->count;
		const struct view view = view_of(&est->windows[at], false, true);
		double low;
		double high;

		*one = chain_try(&chain, &view, &low, &high);
		chain_push(&chain, &view);
	}
	chain_release(&chain);
	return true;
}

/* A few samples away from a line that goes on behind them are passed over. */
static bool drop_islands(struct estimate *est)
{
	for (size_t s = 1; s + 1 < est->stretch_count; s++) {
		struct stretch *island = &est->stretches[s];
		bool one = false;

		if (stretch_weight(est, island) >= OWN_WEIGHT ||
			island->kind == TDM_SEGMENT_EPOCH || island[1].kind == TDM_SEGMENT_EPOCH) {
			continue;
		}
		if (!are_one(est, island - 1, island + 1, &one)) {
			return false;
		}
		for (size_t i = 0; one && i < island->count; i++) {
			if (!disbelieve(est, &est->windows[island->first + i])) {
				return false;
			}
		}
	}
	return true;
}

/* Where two neighbours are one after all (something bogus stood between them), they are put together. */
static bool merge(struct estimate *est)
{
	size_t kept = 0;

	for (size_t s = 0; s < est->stretch_count; s++) {
		const struct stretch right = est->stretches[s];
		bool one = false;

		if (!right.count) {
			continue;
		}
		if (kept && right.kind != TDM_SEGMENT_EPOCH &&
			!are_one(est, &est->stretches[kept - 1], &right, &one)) {
			return false;
		}
		if (one) {
			est->stretches[kept - 1].count += right.count;
		} else {
			est->stretches[kept++] = right;
		}
	}
	est->stretch_count = kept;
	return true;
}

/* Right to left: how far before a break could the new rate hold already? Those windows are sure of neither. */
static bool find_sure(struct estimate *est)
{
	for (size_t s = 0; s < est->stretch_count; s++) {
		struct stretch *stretch = &est->stretches[s];

		stretch->sure_first = stretch->first;
		stretch->sure_count = stretch->count;
	}
	for (size_t s = 1; s < est->stretch_count; s++) {
		const struct stretch *right = &est->stretches[s];
		struct stretch *left = &est->stretches[s - 1];
		struct chain chain;
		double low;
		double high;

		if (right->kind == TDM_SEGMENT_EPOCH) {
			continue;
		}
		if (!chain_init(&chain, est, left->count + right->count, true)) {
			chain_release(&chain);
			return false;
		}
		for (size_t i = right->count; i > 0; i--) {
			const struct view view =
				view_of(&est->windows[right->first + i - 1], true, true);

			chain_push(&chain, &view);
		}
		while (left->sure_count > 1) {
			const struct view view = view_of(
				&est->windows[left->first + left->sure_count - 1], true, true);

			if (!chain_try(&chain, &view, &low, &high)) {
				break;
			}
			chain_push(&chain, &view);
			left->sure_count--;
		}
		chain_release(&chain);
	}
	return true;
}

/* Bursts that a stretch surely holds; not counted further than needed. */
static size_t bursts(const struct estimate *est, const struct stretch *stretch, size_t needed)
{
	size_t count = 1;

	for (size_t i = 1; i < stretch->sure_count && count < needed; i++) {
		const struct window *window = &est->windows[stretch->sure_first + i];

		count += window->x - window[-1].x > BURST_REACH_NS;
	}
	return count;
}

/*
 * Do the windows of a stretch tell its rate? Two bursts lie on a line whatever the clock did between them, three do so
 * by chance where the rate changes all the time; one that was passed over speaks against the line.
 */
static bool is_rated(const struct estimate *est, const struct stretch *stretch)
{
	const struct window *first = &est->windows[stretch->sure_first];
	size_t needed = RATED_BURSTS;
	size_t at;

	if (est->stretch_count == 1 && !est->is_live) {
		return true;
	}
	needed += dissent_between(est, first->run, first->x, first[stretch->sure_count - 1].x, &at);
	needed += est->is_unsteady ? UNSTEADY_BURSTS : 0;
	return bursts(est, stretch, needed) >= needed;
}

void segment_judge(struct estimate *est)
{
	const size_t breaks = est->stretch_count - 1 + est->dissent_count;
	size_t count = est->window_count > 0;

	for (size_t i = 1; i < est->window_count; i++) {
		count += est->windows[i].x - est->windows[i - 1].x > BURST_REACH_NS;
	}
	est->is_unsteady = breaks >= UNSTEADY_LEAST && breaks * UNSTEADY_EVERY > count;
}

void segment_rates(const struct estimate *est, struct stretch *stretch)
{
	struct chain chain;

	stretch->rate_low = est->rate_center - RATE_CAP;
	stretch->rate_high = est->rate_center + RATE_CAP;
	stretch->is_rated = is_rated(est, stretch);
	if (stretch->is_rated && chain_init(&chain, est, stretch->sure_count, false)) {
		for (size_t i = 0; i < stretch->sure_count; i++) {
			const struct view view =
				view_of(&est->windows[stretch->sure_first + i], false, false);

			chain_push(&chain, &view);
		}
		const double low = chain.slope_low - 2 * est->rho;
		const double high = chain.slope_high + 2 * est->rho;

		stretch->rate_low = low > stretch->rate_low ? low : stretch->rate_low;
		stretch->rate_high = high < stretch->rate_high ? high : stretch->rate_high;
		chain_release(&chain);
	}
}

/* Keeps an exchange that was outvoted, or stood still under way. True where it was believed. */
static bool hear(struct estimate *est, const struct window *window, size_t at, bool *good)
{
	const struct sample *sample = &est->samples[at];

	if (!sample->believed) {
		/* One that contradicts nothing was most likely slow, and no more: the bound covers it, without a word of doubt. */
		const bool is_against =
			sample->lower > window->upper || sample->upper < window->lower;

		*good = *good && dissent_add_sample(est, window, sample, is_against);
	}
	return sample->believed;
}

/* Samples [from, to), none of which is in a window that was kept: whole bursts were outvoted, or stood still. */
static void hear_lost(
	struct estimate *est, const struct window *window, size_t from, size_t to, bool *good)
{
	for (size_t i = from; i < to; i++) {
		hear(est, window, i, good);
	}
}

bool segment_hear_ends(struct estimate *est)
{
	bool good = true;

	/* A pause may have come right behind the first exchanges of a run, or before its last ones. */
	for (size_t i = 0; i < est->window_count; i++) {
		const struct window *window = &est->windows[i];
		const bool is_first = i == 0 || is_cut(window - 1, window);
		const bool is_end = i + 1 == est->window_count;
		/* In a session that goes on, more is to come behind its last burst. */
		const bool is_last = is_end ? !est->is_live : is_cut(window, window + 1);
		const size_t most = window->count < END_SAMPLES ? window->count : END_SAMPLES;
		const size_t end = window->first + window->count;

		for (size_t j = 0;
			is_first && j < most && !hear(est, window, window->first + j, &good); j++) {
		}
		for (size_t j = 1; is_last && j <= most && !hear(est, window, end - j, &good);
			j++) {
		}
		if (i == 0) {
			hear_lost(est, window,
				window->first > END_SAMPLES ? window->first - END_SAMPLES : 0,
				window->first, &good);
		}
		if (is_end && is_last) {
			hear_lost(est, window, end,
				est->sample_count - end > END_SAMPLES ? end + END_SAMPLES
								      : est->sample_count,
				&good);
		}
	}
	return good;
}

enum tdm_status segment_windows(struct estimate *est, struct tdm_error *err)
{
	est->stretch_count = 0;
	if (!find_breaks(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the segments");
	}
	compact(est);
	if (!drop_crumbs(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the segments");
	}
	compact(est);
	if (!est->stretch_count) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"the exchanges contradict each other: none can be used");
	}
	if (!drop_islands(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the segments");
	}
	compact(est);
	if (!merge(est) || !find_sure(est)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the segments");
	}
	return TDM_OK;
}
