/* SPDX-License-Identifier: MIT */
/*
 * tap_priv.h - what the files of core/tap share.
 */
#ifndef TAP_PRIV_H
#define TAP_PRIV_H

#include <tandem/tap.h>

struct tdm_tap {
	char path[256]; /* of the instance */
	int hold_fd;    /* a file of it, open: nobody else can remove it */
	const struct tdm_log *log;
	uint32_t cpu_count;
	uint32_t page_bytes;
	uint32_t header_bytes; /* of a page, in front of its data */
	uint32_t long_bytes;
	char **systems; /* with an enabled event; owned */
	size_t system_count;
	struct tdm_buffer left_out; /* lines of tdm_tap_left_out() */
};

/* Appends the content of ROOT/NAME (NAME may be NULL) to text, at most max_bytes. */
enum tdm_status tracefs_read(const char *root, const char *name, size_t max_bytes,
	struct tdm_buffer *text, struct tdm_error *err);

/* Writes a value to ROOT/NAME in one call; append adds to lists such as set_event_pid. */
enum tdm_status tracefs_write(
	const char *root, const char *name, const char *value, bool append, struct tdm_error *err);

/* Enables what the options ask for; remembers the systems. */
enum tdm_status enable_events(
	struct tdm_tap *tap, const struct tdm_tap_options *options, struct tdm_error *err);

#endif
