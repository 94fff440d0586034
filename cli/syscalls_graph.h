/* SPDX-License-Identifier: MIT */
/*
 * syscalls_graph.h - a babeltrace2 graph over all that LTTng wrote below one folder.
 */
#ifndef CLI_SYSCALLS_GRAPH_H
#define CLI_SYSCALLS_GRAPH_H

#include "tandem/status.h"
#include <babeltrace2/babeltrace.h>
#include <stddef.h>

/**
 * Finds the traces below a folder and connects them, through a muxer, to one sink.
 *
 * LTTng writes one trace for each user ID, process or chunk of time; those of one identity (a session
 * that was rotated) are one trace, whose discarded counts go on.
 *
 * @param graph    Borrowed; gets the components.
 * @param dir      The folder.
 * @param consume  What the sink does with each batch; called with @p user.
 * @param count    Receives how many traces there are; with 0 the graph stays empty.
 */
enum tdm_status syscalls_graph_build(bt_graph *graph, const char *dir,
	bt_graph_simple_sink_component_consume_func consume, void *user, size_t *count,
	struct tdm_error *err);

/** babeltrace2's own words for what went wrong, the cause first. Always fails. */
enum tdm_status syscalls_graph_fail(const char *dir, struct tdm_error *err);

#endif
