/* SPDX-License-Identifier: MIT */
/*
 * record_spool_priv.h - what keeping a spool and making a file of it share.
 */
#ifndef TANDEM_CLI_RECORD_SPOOL_PRIV_H
#define TANDEM_CLI_RECORD_SPOOL_PRIV_H

#include "record_spool.h"

struct record_spool {
	char *dir, *name;
	char *path; /* DIR/NAME.recording */
	int lock_fd; /* of that folder, locked as long as somebody writes or completes it; -1 = not ours */
	struct record_ties ties;
	struct tdm_trace_meta meta; /* as last saved or loaded; of a prefix only its numbers */
	struct tdm_buffer prefix;
	int *fds;
	uint32_t cpu_count;
};

/* Gives back what was held back for a full disk. */
void record_spool_release_reserve(const struct record_spool *spool);

#endif
