/* SPDX-License-Identifier: MIT */
/*
 * attach.h - following another tracer's session: whether it runs, for commands that begin and end with it.
 */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include <tandem/status.h>

enum attach_state {
	ATTACH_WAITING, /* it is there and does not record */
	ATTACH_RUNNING,
	ATTACH_ENDED /* it recorded and does no more, or is gone */
};

struct attach; /* opaque */

/**
 * Begins to follow "lttng:SESSION", asked ten times a second by a thread of its own: LTTng has no notice of starts, and a
 * session daemon that hangs must not hang us.
 *
 * @return Owned by the caller; NULL with @p err filled: no such text, no session daemon of this user, no such session.
 */
struct attach *attach_create(const char *text, struct tdm_error *err);

enum attach_state attach_get_state(const struct attach *attach);

/** Where the session's own output goes, an absolute path; NULL where it is on no disk of this machine. */
const char *attach_path(const struct attach *attach);

/** Its name, for messages. */
const char *attach_name(const struct attach *attach);

/** NULL is fine. */
void attach_destroy(struct attach *attach);

#endif
