/* SPDX-License-Identifier: MIT */
/*
 * flt_host_clock.h - the epoch offset of a host's trace, asked of the trace itself.
 */
#ifndef TANDEM_FLT_HOST_CLOCK_H
#define TANDEM_FLT_HOST_CLOCK_H

#include "compat.h"
#include <stdbool.h>
#include <tandem/status.h>

/* What the clocks below a directory say. */
struct flt_host_clock {
	int64_t epoch_ns; /* reading + this = Unix time */
	char uid[40];     /* of the clock meant: its UUID; "" = it has none */
	char name[40];    /* "" = none */
	bool differ; /* traces below the directory have different offsets; epoch_ns is of the one meant */
};

/** The identity and the name of a clock, "" where it has none. */
void flt_clock_identity(const bt_clock_class *clock, uint64_t mip, char uid[40], char name[40]);

/**
 * Reads what a CTF trace adds to its clock's readings to get Unix time.
 *
 * @param dir        A trace directory, or one above several, as LTTng lays them out.
 * @param host_uuid  Which clock is meant where there are several; NULL or not found: the first.
 * @param clock      Receives it.
 * @retval TDM_END  Nothing was recorded yet, or nothing at all: the traces there have no stream, so no clock is seen.
 * @retval TDM_ERR_IO, TDM_ERR_FORMAT  No trace there, or none that can be read; @p err says which and why.
 */
enum tdm_status flt_host_clock_epoch(const char *dir, const char *host_uuid,
	struct flt_host_clock *clock, struct tdm_error *err);

#endif
