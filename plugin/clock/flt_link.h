/* SPDX-License-Identifier: MIT */
/*
 * flt_link.h - the lines of a corrections service, received beside the graph: nobody who asks for them ever waits.
 */
#ifndef TANDEM_FLT_LINK_H
#define TANDEM_FLT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/log.h>
#include <tandem/status.h>

struct flt_link;

/* What became of the link since it was asked last. */
struct flt_link_news {
	bool came;     /* a connection came up */
	bool went;     /* the one there was is lost, or one could not be made */
	char why[256]; /* of went */
};

/**
 * Begins to connect, and goes on trying with a growing pause until destroyed.
 *
 * @param address      tcp:HOST:PORT or unix:PATH.
 * @param guest        Which guest's corrections; NULL = the only one.
 * @param secret_file  NULL = none.
 * @return Owned by the caller; NULL with @p err filled: a bad address or secret file.
 */
struct flt_link *flt_link_create(
	const char *address, const char *guest, const char *secret_file, struct tdm_error *err);
/** Ends within a moment, whatever the peer does. */
void flt_link_destroy(struct flt_link *link);

/**
 * The next line that has come, without newline.
 *
 * @param line  Receives it, owned by the caller (free()); NULL stands for a new connection, whose lines follow.
 * @return False where none has come.
 */
bool flt_link_take(struct flt_link *link, char **line);

/** What is new; reading it clears it. */
void flt_link_get_news(struct flt_link *link, struct flt_link_news *news);

#endif
