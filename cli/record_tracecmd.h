/* SPDX-License-Identifier: MIT */
/*
 * record_tracecmd.h - the recorder of a guest that runs "trace-cmd agent": its pages, and its clock by that agent's ptp.
 */
#ifndef TANDEM_CLI_RECORD_TRACECMD_H
#define TANDEM_CLI_RECORD_TRACECMD_H

#include "record_options.h"
#include "record_spool.h"
#include <tandem/estimate.h>
#include <tandem/tracecmd.h>

struct record_tracecmd;

struct record_tracecmd_options {
	const char *name;                  /* borrowed for its life, as all here */
	const struct tdm_address *address; /* numeric */
	const struct record_events *events;
	const char *clock;
	uint32_t buffer_kib; /* of each CPU; 0 = 4096 */
	const char *dir;
	bool force; /* overwrites what a killed recorder left */
	const struct record_ties *host_ties;
	const struct tdm_log *log;
	int interrupt_fd; /* readable: give up connecting; 0 = none */
};

/** Connects, runs the first series of probes, receives the texts and opens the pages: then the agent traces. */
enum tdm_status record_tracecmd_create(const struct record_tracecmd_options *options,
	struct record_tracecmd **guest, struct tdm_error *err);

/** Starts the threads: one for pages, one for probes now and then. */
enum tdm_status record_tracecmd_start(struct record_tracecmd *guest, struct tdm_error *err);

/** Asks the agent to stop; returns at once. */
void record_tracecmd_ask_stop(struct record_tracecmd *guest);

struct record_tracecmd_result {
	struct tdm_error failure; /* status TDM_OK = complete */
	uint64_t received_bytes;
	bool has_clock; /* both files of the clock were written */
	struct tdm_quality quality;
};

/** Waits for the rest, runs the last series, writes NAME.exchanges and NAME.corrections. The spool can be finished then. */
struct record_tracecmd_result record_tracecmd_wait(struct record_tracecmd *guest);

uint64_t record_tracecmd_bytes(const struct record_tracecmd *guest);
struct record_spool *record_tracecmd_spool(struct record_tracecmd *guest);
void record_tracecmd_destroy(struct record_tracecmd *guest);

#endif
