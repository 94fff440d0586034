/* SPDX-License-Identifier: MIT */
/*
 * sync_serve.h - the corrections service: what is known of each guest's clock, sent on as it becomes final.
 */
#ifndef CLI_SYNC_SERVE_H
#define CLI_SYNC_SERVE_H

#include <tandem/address.h>
#include <tandem/log.h>
#include <tandem/secret.h>
#include <tandem/sync_link.h>

struct sync_serve; /* opaque; one thread serves all readers */

/**
 * Listens and begins to serve.
 *
 * Readers share one text for each guest and only have a place in it: one that is slow lags behind, and takes no memory.
 *
 * @param address  Its port is filled in. Other than loopback and UNIX it needs a secret.
 * @param names    Names of the guests; copied.
 * @param secret   Borrowed for its life; may be NULL.
 * @return Owned by the caller; NULL with @p err filled.
 */
struct sync_serve *sync_serve_create(struct tdm_address *address, const char *const *names,
	size_t name_count, const struct tdm_secret *secret, const struct tdm_log *log,
	struct tdm_error *err);

/**
 * Also takes connections that were opened for a stream.
 *
 * @param take  Gets the link, which is its own from then on, and whether its peer may see more than corrections: one that
 *              has proven the secret, or root on this machine. From the service's thread. Set before anybody connects.
 */
void sync_serve_set_streams(struct sync_serve *serve,
	void (*take)(void *user, struct tdm_link *link, const char *who, bool may_view,
		const struct tdm_open *open),
	void *user);

/** Adds whole lines to a guest's text. Thread-safe. */
void sync_serve_lines(struct sync_serve *serve, size_t guest, const char *text, size_t text_bytes);

/** Sends "end" to all, gives readers two seconds to take what is left, and closes. NULL is fine. */
void sync_serve_destroy(struct sync_serve *serve);

#endif
