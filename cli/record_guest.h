/* SPDX-License-Identifier: MIT */
/*
 * record_guest.h - the recorder of one guest: its agent's pages, moved to a spool by a thread.
 */
#ifndef TANDEM_CLI_RECORD_GUEST_H
#define TANDEM_CLI_RECORD_GUEST_H

#include "record_spool.h"
#include <tandem/stream.h>

struct record_guest;

struct record_guest_options {
	const char *name;                  /* borrowed for its life, as all here */
	const struct tdm_address *address; /* numeric */
	const struct tdm_secret *secret;   /* NULL = none */
	const struct tdm_stream_request *request;
	const char *dir;
	bool force; /* overwrites what a killed recorder left */
	uint64_t host_trace_id;
	const struct record_ties *host_ties; /* scale of the host's TSC */
	int interrupt_fd;                    /* readable: give up connecting; 0 = none */
};

/** Connects, receives the texts and opens the page links; nothing is recorded yet. */
enum tdm_status record_guest_create(const struct record_guest_options *options,
	struct record_guest **guest, struct tdm_error *err);

/** Begins to trace and starts the thread. */
enum tdm_status record_guest_start(struct record_guest *guest, struct tdm_error *err);

/** Asks the guest to stop; returns at once, so that all guests stop together. */
void record_guest_ask_stop(struct record_guest *guest);

/* How it ended. */
struct record_guest_result {
	struct tdm_error failure; /* status TDM_OK = complete; else why not */
	uint64_t received_bytes, sent_bytes;
	uint64_t lost_events; /* in the guest's rings */
};

/** Waits for the rest of the pages and saves the final texts. Always leaves a spool that can be finished. */
struct record_guest_result record_guest_wait(struct record_guest *guest);

uint64_t record_guest_bytes(const struct record_guest *guest);
struct record_spool *record_guest_spool(struct record_guest *guest);
struct tdm_stream_facts record_guest_facts(const struct record_guest *guest);

/** NULL is fine. */
void record_guest_destroy(struct record_guest *guest);

#endif
