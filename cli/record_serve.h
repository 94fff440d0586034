/* SPDX-License-Identifier: MIT */
/*
 * record_serve.h - the pages of a recording that runs, for viewers that come and go.
 *
 * What is recorded lies in spools on disk: a viewer is a place in them, so that a slow one only lags behind and neither
 * memory nor the recording knows of it.
 */
#ifndef TANDEM_CLI_RECORD_SERVE_H
#define TANDEM_CLI_RECORD_SERVE_H

#include "record_spool.h"
#include <tandem/sync_link.h>

struct record_serve;

/** Serves nothing yet. @return Owned by the caller; NULL without memory. */
struct record_serve *record_serve_create(const struct tdm_log *log);

/** Adds a machine. Before the first viewer. @p spool is borrowed for the life of the service. */
enum tdm_status record_serve_add(
	struct record_serve *serve, struct record_spool *spool, struct tdm_error *err);

/**
 * Takes over a connection whose OPEN of purpose stream has come; answers it in a thread.
 *
 * @param link        Taken.
 * @param may_view    False: it is refused, for want of a proof.
 */
void record_serve_take(struct record_serve *serve, struct tdm_link *link, const char *who,
	bool may_view, const struct tdm_open *open);

/** Says that nothing more is recorded: viewers get the rest, then the end. Waits for them a few seconds. */
void record_serve_end(struct record_serve *serve);

/** Ends all. NULL is fine. */
void record_serve_destroy(struct record_serve *serve);

#endif
