/* SPDX-License-Identifier: MIT */
/*
 * estimate_run.h - one estimate of one log, for the whole session and for the live one.
 */
#ifndef TANDEM_ESTIMATE_RUN_H
#define TANDEM_ESTIMATE_RUN_H

#include <tandem/estimate.h>

/* A session shorter than this gives an offset, no rate worth the name. */
#define LONE_SESSION_S 0.05

/** tdm_estimate(), with or without leaving out knots. */
enum tdm_status estimate_run(const struct tdm_exchange_log *log, bool thin,
	struct tdm_timeline **timeline, struct tdm_quality *quality, struct tdm_error *err);

#endif
