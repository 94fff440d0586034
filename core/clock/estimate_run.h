/* SPDX-License-Identifier: MIT */
/*
 * estimate_run.h - one estimate of one log, for the whole session and for the live one.
 */
#ifndef TANDEM_ESTIMATE_RUN_H
#define TANDEM_ESTIMATE_RUN_H

#include <tandem/estimate.h>

/* A session shorter than this gives an offset, no rate worth the name. */
#define LONE_SESSION_S 0.05

enum {
	ESTIMATE_APART_PPB = 100 /* allowance of two oscillators */
};

enum estimate_mode {
	ESTIMATE_WHOLE,  /* knots that are not needed are left out */
	ESTIMATE_LIVE,   /* a knot for each window; more is to come behind the last one */
	ESTIMATE_ENDING, /* the same, but nothing more comes */
};

/** tdm_estimate(), for a whole session or for a part of a running one. */
enum tdm_status estimate_run(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, struct tdm_error *err);

/** Without a look at raw stamps. */
enum tdm_status estimate_direct(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, struct tdm_error *err);

/** A timeline without segments yet, that says what the log and the quality say. */
enum tdm_status estimate_make(const struct tdm_exchange_log *log, const struct tdm_quality *quality,
	struct tdm_timeline **timeline, struct tdm_error *err);

#endif
