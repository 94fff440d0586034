/* SPDX-License-Identifier: MIT */
/*
 * tracecmd_arguments.h - the arguments of "trace-cmd record", as a host sends them, become a recording that is allowed here.
 */
#ifndef AGENT_TRACECMD_ARGUMENTS_H
#define AGENT_TRACECMD_ARGUMENTS_H

#include "agent_options.h"
#include <tandem/tap.h>

/* What a host wants recorded. Strings that are not the request's own are owned. */
struct tracecmd_wish {
	struct tdm_tap_event *events;
	size_t event_count;
	struct tdm_tap_setting *settings;
	size_t setting_count;
	int32_t *pids;
	size_t pid_count;
	const char *clock;
	const char *tracer; /* of -p; NULL = none */
	uint32_t buffer_kib;
	unsigned int file_version; /* 6 or 7 */
	bool follow_children;
	bool may_miss;
	bool excludes;  /* -v stands before what comes */
	char **strings; /* owned */
	size_t string_count;
};

/**
 * Parses the arguments. Options that are the host's own business are passed over; those that would write elsewhere than to
 * this session's trace instance, run something or are not known are refused.
 *
 * @param arguments  Borrowed for the wish's life.
 * @param wish       Released by the caller, also after a failure.
 * @retval TDM_ERR_PEER  @p err says which argument and why.
 */
enum tdm_status tracecmd_wish_parse(const char *const *arguments, size_t count,
	struct tracecmd_wish *wish, struct tdm_error *err);
void tracecmd_wish_release(struct tracecmd_wish *wish);

#endif
