/* SPDX-License-Identifier: MIT */
/*
 * agent_options.h - the agent's command line.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <tandem/address.h>
#include <tandem/secret.h>

enum {
	AGENT_LISTEN_MAX = 16,
	AGENT_ALLOW_MAX = 64
};

/* One --listen. */
struct agent_listen {
	struct tdm_address address;
	bool is_default;  /* not asked for: may fail where the machine has no such thing */
	bool is_tracecmd; /* speaks the protocol of trace-cmd's agent */
};

struct agent_options {
	struct agent_listen listen[AGENT_LISTEN_MAX];
	unsigned int listen_count;
	const char *allow
		[AGENT_ALLOW_MAX]; /* globs of events that may be recorded, "SYSTEM:EVENT"; borrowed */
	unsigned int allow_count;
	uint32_t max_buffer_kib; /* of each CPU and session */
	struct tdm_secret secret;
	bool quiet;
	bool keep_privileges;
};

/**
 * Parses the command line; says what is wrong on stderr.
 *
 * @return -1: go on. Else the exit status to end with.
 */
int agent_options_parse(struct agent_options *options, int argc, char **argv);

/** True where @p system:@p event matches one --allow. */
bool agent_options_allow(
	const struct agent_options *options, const char *system, const char *event);

#endif
