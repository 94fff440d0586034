/* SPDX-License-Identifier: MIT */
#include "syscalls_graph.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACES_MAX 4096 /* per-process buffers: one for each process */

/* The head of a metadata packet: the magic number and the identity of the trace. */
#define METADATA_MAGIC      0x75d11d57u
#define METADATA_HEAD_BYTES 20

/* One trace: one source component. */
struct trace {
	uint8_t identity[METADATA_HEAD_BYTES]; /* all zero: plain text, which has no head */
	bt_value *params;                      /* owned */
	bt_value *inputs;                      /* in params */
};

struct traces {
	struct trace *traces; /* owned */
	size_t count;
};

static void read_identity(const char *path, uint8_t identity[METADATA_HEAD_BYTES])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const uint32_t magic = METADATA_MAGIC;

	memset(identity, 0, METADATA_HEAD_BYTES);
	if (fd < 0) {
		return; /* the source will tell */
	}
	if (read(fd, identity, METADATA_HEAD_BYTES) != METADATA_HEAD_BYTES ||
		memcmp(identity, &magic, sizeof(magic)) != 0) {
		memset(identity, 0, METADATA_HEAD_BYTES);
	}
	close(fd);
}

/* The trace of this identity, made where it is new. NULL without memory. */
static struct trace *trace_of(struct traces *all, const uint8_t identity[METADATA_HEAD_BYTES])
{
	struct trace *trace;
	struct trace *grown;

	for (size_t i = 0; identity[0] && i < all->count; i++) {
		if (memcmp(all->traces[i].identity, identity, METADATA_HEAD_BYTES) == 0) {
			return &all->traces[i];
		}
	}
	grown = realloc(all->traces, (all->count + 1) * sizeof(*grown));
	if (!grown) {
		return NULL;
	}
	all->traces = grown;
	trace = &grown[all->count];
	memset(trace, 0, sizeof(*trace));
	memcpy(trace->identity, identity, METADATA_HEAD_BYTES);
	trace->params = bt_value_map_create();
	if (!trace->params || bt_value_map_insert_empty_array_entry(trace->params, "inputs",
				      &trace->inputs) != BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) {
		bt_value_put_ref(trace->params);
		return NULL;
	}
	all->count++;
	return trace;
}

static enum tdm_status add_folder(struct traces *all, const FTSENT *entry, struct tdm_error *err)
{
	uint8_t identity[METADATA_HEAD_BYTES];
	char folder[PATH_MAX];
	struct trace *trace;

	snprintf(folder, sizeof(folder), "%.*s", (int)(entry->fts_pathlen - entry->fts_namelen - 1),
		entry->fts_path);
	read_identity(entry->fts_accpath, identity);
	if (all->count >= TRACES_MAX) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "more than %d traces below \"%s\"", TRACES_MAX, folder);
	}
	trace = trace_of(all, identity);
	if (!trace || bt_value_array_append_string_element(trace->inputs, folder) !=
			      BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the list of traces");
	}
	return TDM_OK;
}

static enum tdm_status find_traces(const char *dir, struct traces *all, struct tdm_error *err)
{
	char *roots[] = { (char *)(uintptr_t)dir, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	enum tdm_status status = TDM_OK;
	FTSENT *entry;

	if (!tree) {
		return tdm_fail_errno(err, errno, "\"%s\"", dir);
	}
	while (status == TDM_OK && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_F && strcmp(entry->fts_name, "metadata") == 0) {
			status = add_folder(all, entry, err);
		}
	}
	fts_close(tree);
	return status;
}

static const bt_plugin *find_plugin(const char *name)
{
	const bt_plugin *plugin = NULL;

	return bt_plugin_find(name, BT_TRUE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin) ==
			       BT_PLUGIN_FIND_STATUS_OK
		       ? plugin
		       : NULL;
}

/* One source.ctf.fs for a trace; its ports go to the muxer, which makes one more each time. */
static bool add_source(bt_graph *graph, const bt_plugin *ctf, const struct trace *trace,
	size_t index, const bt_component_filter *muxer)
{
	const bt_component_source *source = NULL;
	char name[32];

	snprintf(name, sizeof(name), "trace-%zu", index);
	if (bt_graph_add_source_component(graph,
		    bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs"), name,
		    trace->params, BT_LOGGING_LEVEL_NONE,
		    &source) != BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
		return false;
	}

	const uint64_t ports = bt_component_source_get_output_port_count(source);

	for (uint64_t i = 0; i < ports; i++) {
		const uint64_t last = bt_component_filter_get_input_port_count(muxer) - 1;

		if (bt_graph_connect_ports(graph,
			    bt_component_source_borrow_output_port_by_index_const(source, i),
			    bt_component_filter_borrow_input_port_by_index_const(muxer, last),
			    NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK) {
			return false;
		}
	}
	return true;
}

static bool build(bt_graph *graph, const bt_plugin *ctf, const bt_plugin *utils,
	const struct traces *all, bt_graph_simple_sink_component_consume_func consume, void *user)
{
	const bt_component_filter *muxer = NULL;
	const bt_component_sink *sink = NULL;

	if (bt_graph_add_filter_component(graph,
		    bt_plugin_borrow_filter_component_class_by_name_const(utils, "muxer"), "muxer",
		    NULL, BT_LOGGING_LEVEL_NONE, &muxer) != BT_GRAPH_ADD_COMPONENT_STATUS_OK ||
		bt_graph_add_simple_sink_component(graph, "count", NULL, consume, NULL, user,
			&sink) != BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
		return false;
	}
	for (size_t i = 0; i < all->count; i++) {
		if (!add_source(graph, ctf, &all->traces[i], i, muxer)) {
			return false;
		}
	}
	return bt_graph_connect_ports(graph,
		       bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
		       bt_component_sink_borrow_input_port_by_index_const(sink, 0),
		       NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
}

enum tdm_status syscalls_graph_fail(const char *dir, struct tdm_error *err)
{
	const bt_error *error = bt_current_thread_take_error();
	const char *cause = "unknown";

	if (error && bt_error_get_cause_count(error) > 0) {
		cause = bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0));
	}
	tdm_fail(err, TDM_ERR_FORMAT, "reading the trace in \"%s\": %s", dir, cause);
	if (error) {
		bt_error_release(error);
	}
	return TDM_ERR_FORMAT;
}

enum tdm_status syscalls_graph_build(bt_graph *graph, const char *dir,
	bt_graph_simple_sink_component_consume_func consume, void *user, size_t *count,
	struct tdm_error *err)
{
	const bt_plugin *ctf = find_plugin("ctf");
	const bt_plugin *utils = find_plugin("utils");
	struct traces all = { 0 };
	enum tdm_status status;

	if (!ctf || !utils) {
		status = tdm_fail(
			err, TDM_ERR_NOMEM, "babeltrace2's plugins ctf and utils cannot be used");
	} else {
		status = find_traces(dir, &all, err);
	}
	*count = all.count;
	if (status == TDM_OK && all.count && !build(graph, ctf, utils, &all, consume, user)) {
		status = syscalls_graph_fail(dir, err);
	}
	for (size_t i = 0; i < all.count; i++) {
		bt_value_put_ref(all.traces[i].params);
	}
	free(all.traces);
	bt_plugin_put_ref(ctf);
	bt_plugin_put_ref(utils);
	return status;
}
