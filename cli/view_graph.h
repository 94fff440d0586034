/* SPDX-License-Identifier: MIT */
/*
 * view_graph.h - a babeltrace2 graph as a description, which is then either run or printed as a command line.
 *
 * One description serves both, so what --run-args prints is what runs.
 */
#ifndef CLI_VIEW_GRAPH_H
#define CLI_VIEW_GRAPH_H

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <tandem/status.h>

enum view_kind {
	VIEW_SOURCE,
	VIEW_FILTER,
	VIEW_SINK
};

/* One component to be. */
struct view_component {
	enum view_kind kind;
	char name[80];                              /* in the graph, unique */
	const char *plugin;                         /* e.g. "tandem" */
	const char *class;                          /* e.g. "tracedat" */
	bt_value *params;                           /* a map, owned */
	const bt_component_class_filter *own_class; /* owned; NULL: of the plugin */
	void *own_data;                             /* given to it when it is made; borrowed */
	const void *built;                          /* the component, once the graph is built */
};

struct view_graph {
	struct view_component *components;
	size_t component_count;

	struct view_connection {
		size_t from, to; /* every output port of from to a free input port of to */
	} * connections;

	size_t connection_count;
};

#define VIEW_NONE SIZE_MAX

/**
 * Adds a component.
 * @param params  A map value that is taken, NULL for none.
 * @return Its index; VIEW_NONE without memory.
 */
size_t view_graph_add(struct view_graph *graph, enum view_kind kind, const char *name,
	const char *plugin, const char *class, bt_value *params);

/** Adds a filter whose class this program has made. @param filter_class  Taken. */
size_t view_graph_add_own(struct view_graph *graph, const char *name,
	const bt_component_class_filter *filter_class, void *data);

/** Connects all outputs of one to another. @return False without memory. */
bool view_graph_connect(struct view_graph *graph, size_t from, size_t to);

/** Prints the "babeltrace2 run" command line that makes the same graph, quoted for a shell. */
void view_graph_print(const struct view_graph *graph, const char *plugin_folder);

/* How a run ended. */
enum view_end {
	VIEW_DONE,
	VIEW_FAILED, /* before anything was given out */
	VIEW_CUT,    /* after something was: the messages on stderr tell why */
	VIEW_INTERRUPTED
};

/** Builds the graph and runs it to its end. Causes of a failure are written to stderr, each with @p program in front. */
enum view_end view_graph_run(struct view_graph *graph, const char *plugin_folder,
	const char *program, bt_logging_level level);

/**
 * Builds the graph and gives every message that leaves @p from to @p each, instead of to a sink.
 *
 * @param each  Returns false to end the run as failed.
 */
enum view_end view_graph_feed(struct view_graph *graph, const char *plugin_folder,
	const char *program, bt_logging_level level, size_t from,
	bool (*each)(void *user, const bt_message *message), void *user);

void view_graph_release(struct view_graph *graph);

#endif
