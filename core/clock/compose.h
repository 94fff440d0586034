/* SPDX-License-Identifier: MIT */
/*
 * compose.h - the relation of two trace clocks by way of the raw clocks beside them.
 */
#ifndef TANDEM_COMPOSE_H
#define TANDEM_COMPOSE_H

#include "estimate_run.h"

/** True where a log has raw stamps and its trace clocks are not raw themselves. */
bool compose_wanted(const struct tdm_exchange_log *log);

/**
 * As tdm_estimate(), through the raw clocks.
 * @param done  False where the log does not say enough of the local clocks: nothing was made.
 */
enum tdm_status compose_run(const struct tdm_exchange_log *log, enum estimate_mode mode,
	struct tdm_timeline **timeline, struct tdm_quality *quality, bool *done,
	struct tdm_error *err);

#endif
