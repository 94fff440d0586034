/* SPDX-License-Identifier: MIT */
/*
 * view_plan.h - from inputs to the graph that merges them.
 */
#ifndef CLI_VIEW_PLAN_H
#define CLI_VIEW_PLAN_H

#include "view_inputs.h"

/**
 * Adds the sources of all inputs that can be opened, a clock filter behind each guest that has a correction to apply, and the muxer.
 *
 * @param inputs  Those that cannot be opened get is_unreadable and their message on @p log, as long as another can.
 * @param only   The one machine wanted; NULL = all.
 * @param muxer  Receives the muxer's index.
 */
enum tdm_status view_plan_merge(struct view_graph *graph, const struct view_options *options,
	struct view_inputs *inputs, const struct view_input *only, const struct tdm_log *log,
	size_t *muxer, struct tdm_error *err);

#endif
