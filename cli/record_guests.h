/* SPDX-License-Identifier: MIT */
/*
 * record_guests.h - all guests of a recording: their pages and their clocks, begun and ended together.
 */
#ifndef TANDEM_CLI_RECORD_GUESTS_H
#define TANDEM_CLI_RECORD_GUESTS_H

#include "record_clock.h"
#include "record_guest.h"
#include "record_options.h"
#include "sync_serve.h"

struct record_guests;

/* What all guests of a recording share. Borrowed for its life. */
struct record_guests_options {
	const struct record_options *record;
	const char *dir;
	const char *clock; /* NULL = record_guests_choose_clock() says it */
	const struct record_ties *host_ties;
	const struct tdm_log *log;
	int interrupt_fd; /* readable while Ctrl-C waits to be taken: no guest is waited for then; 0 = none */
};

/** Resolves the addresses, loads the secret, checks that no file is in the way. No guest is asked yet. */
enum tdm_status record_guests_create(const struct record_guests_options *options,
	struct record_guests **guests, struct tdm_error *err);

/** The clock that is used for the guests from here on. @p clock is kept. */
void record_guests_set_clock(struct record_guests *guests, const char *clock);

/** The best common clock of all machines; it is used for the guests from here on. */
void record_guests_choose_clock(struct record_guests *guests, struct record_clock *choice);

/**
 * Begins to ask all clocks, in threads of their own.
 *
 * @param serve  Gets what becomes known of the clocks; NULL = nobody. Borrowed for the guests' life.
 */
enum tdm_status record_guests_start_clocks(
	struct record_guests *guests, struct sync_serve *serve, struct tdm_error *err);

/** Connects to all at once for their texts, and waits for the start burst of each; after record_guests_start_clocks(). */
enum tdm_status record_guests_prepare(struct record_guests *guests, struct tdm_error *err);

/** The spool of each guest in turn, NULL behind the last; after record_guests_prepare(). */
struct record_spool *record_guests_spool(struct record_guests *guests, size_t index);

/** Turns tracing on everywhere. */
enum tdm_status record_guests_start(struct record_guests *guests, struct tdm_error *err);

/** Bytes of pages of all guests so far. */
uint64_t record_guests_bytes(const struct record_guests *guests);

/**
 * Stops all, waits for their pages and last bursts, writes NAME.dat of each.
 *
 * Says on stdout, unless @p quiet, what became of each, and on stderr what was wrong.
 * @return True where all of it is complete.
 */
bool record_guests_finish(struct record_guests *guests, bool quiet);

/** For the GUEST options of the host's file; valid after record_guests_prepare(), until destroy. */
const struct tdm_guest_info *record_guests_ties(struct record_guests *guests, size_t *count);

/** Instead of record_guests_finish(), where the recording did not start: removes what was written of guests and clocks. */
void record_guests_discard(struct record_guests *guests);

/** NULL is fine. */
void record_guests_destroy(struct record_guests *guests);

#endif
