/* SPDX-License-Identifier: MIT */
/*
 * tracecmd_agent_priv.h - what the files of the recorded side share.
 */
#ifndef TRACECMD_AGENT_PRIV_H
#define TRACECMD_AGENT_PRIV_H

#include "tracecmd_priv.h"
#include <tandem/tracecmd_agent.h>

struct tdm_tracecmd_agent {
	struct tdm_peer who;
	int stop_fd;
	int control_fd, sync_fd;
	int sync_listener;
	int *page_listeners; /* by CPU; -1 once taken */
	uint32_t cpu_count;
	struct message_in control, sync;
	char *argument_text; /* what the pointers point into */
	const char **arguments;
	uint32_t series; /* id of the last series */
};

#endif
