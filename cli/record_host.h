/* SPDX-License-Identifier: MIT */
/*
 * record_host.h - the recorder of this machine: rings of our own instance, moved to a spool by few threads.
 */
#ifndef TANDEM_CLI_RECORD_HOST_H
#define TANDEM_CLI_RECORD_HOST_H

#include "record_spool.h"
#include <stdint.h>
#include <tandem/tap.h>

struct record_host;

/**
 * Makes the instance, collects texts and opens the rings; tracing is still off.
 *
 * @param live   Also move pages that are not full, and write empty ones that tell the time: for viewers.
 * @param spool  Borrowed until record_host_destroy(); gets its CPUs and texts.
 */
enum tdm_status record_host_create(const struct tdm_tap_options *options, bool kallsyms, bool live,
	struct record_spool *spool, const struct tdm_log *log, struct record_host **host,
	struct tdm_error *err);

/** Starts the threads, then tracing. */
enum tdm_status record_host_start(struct record_host *host, struct tdm_error *err);

/** Adds a task to record. */
enum tdm_status record_host_add_pid(struct record_host *host, int32_t pid, struct tdm_error *err);

/** True once every task that is recorded has ended. */
bool record_host_tasks_ended(const struct record_host *host);

/** Bytes that reached the spool so far; for limits and progress. */
uint64_t record_host_bytes(const struct record_host *host);

/** True once a thread had to stop: disk full, ring gone. @p err receives the first reason. */
bool record_host_failed(struct record_host *host, struct tdm_error *err);

/** Stops tracing, drains the rings, joins the threads and saves the final texts. */
enum tdm_status record_host_stop(struct record_host *host, struct tdm_error *err);

/* Sums over the CPUs, valid after record_host_stop(). */
struct record_host_counts {
	uint64_t overrun_events; /* lost because a ring was full */
	uint64_t dropped_events;
};

struct record_host_counts record_host_get_counts(const struct record_host *host);

/** Removes the instance. NULL is fine. */
void record_host_destroy(struct record_host *host);

#endif
