/* SPDX-License-Identifier: MIT */
/*
 * view_options.h - what the user of tandem view asked for.
 */
#ifndef CLI_VIEW_OPTIONS_H
#define CLI_VIEW_OPTIONS_H

#include "options.h"
#include "view_graph.h"

struct view_inputs;

struct view_options {
	struct cli_named_list inputs;
	struct cli_named_list corrections;
	struct cli_named_list offsets; /* NAME=NS: given by hand */
	const char **buffers;
	size_t buffer_count;
	const char *names;
	const char *begin, *end;
	const char *secret_file;
	uint64_t clock_hz;
	bool no_print, no_symbols, run_args;
};

/**
 * Parameters of source.tandem.tracedat for the trace.dat files among the inputs.
 *
 * @param named            What the machines are called and corrected by, where the inputs are of several kinds. NULL: as the
 *                         user named them.
 * @param chosen           One flag an input; NULL = all.
 * @param clock_offset_ns  Added to every stamp.
 * @return Owned by the caller; NULL without memory.
 */
bt_value *view_tracedat_params(const struct view_options *options, const struct view_inputs *named,
	const bool *chosen, int64_t clock_offset_ns);

#endif
