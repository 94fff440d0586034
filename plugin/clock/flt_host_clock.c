/* SPDX-License-Identifier: MIT */
#include "clock/flt_host_clock.h"
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <tandem/wide.h>

/* LTTng's deepest layout (session/ust/uid/UID/64-bit, with an archive folder) has six levels. */
#define MAX_DEPTH  10
#define MAX_TRACES 64

struct search {
	const char *host_uuid;
	bool found, exact; /* exact: the clock with host_uuid */
	bool differ;
	int64_t epoch_ns;
	char uid[40], name[40];
	unsigned int traces, without_streams;
	char last_fault[300];
};

static void uuid_text(bt_uuid uuid, char text[37])
{
	char *at = text;

	for (int i = 0; i < 16; i++) {
		at += sprintf(
			at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	}
}

void flt_clock_identity(const bt_clock_class *clock, uint64_t mip, char uid[40], char name[40])
{
	const char *const own_name = bt_clock_class_get_name(clock);

	uid[0] = '\0';
	if (mip == 0) {
		bt_uuid uuid = bt_clock_class_get_uuid(clock);

		if (uuid) {
			uuid_text(uuid, uid);
		}
	}
#if TANDEM_HAVE_BT_2_1
	if (mip > 0) {
		const char *const own_uid = bt_clock_class_get_uid(clock);

		snprintf(uid, 40, "%s", own_uid ? own_uid : "");
	}
#endif
	snprintf(name, 40, "%s", own_name ? own_name : "");
}

static void take_clock(struct search *search, const bt_clock_class *clock, uint64_t mip)
{
	int64_t seconds = 0;
	uint64_t cycles = 0;
	char uid[40], name[40];

	bt_clock_class_get_offset(clock, &seconds, &cycles);
	flt_clock_identity(clock, mip, uid, name);

	const tdm_i128 ns = (tdm_i128)seconds * 1000000000 +
			    (tdm_i128)cycles * 1000000000 / bt_clock_class_get_frequency(clock);
	const bool exact = search->host_uuid && strcasecmp(uid, search->host_uuid) == 0;

	search->differ = search->differ || (search->found && ns != search->epoch_ns);
	if (ns >= INT64_MIN && ns <= INT64_MAX && (!search->found || (exact && !search->exact))) {
		search->epoch_ns = (int64_t)ns;
		search->found = true;
		search->exact = exact;
		memcpy(search->uid, uid, sizeof(uid));
		memcpy(search->name, name, sizeof(name));
	}
}

struct sink {
	struct search *search;
	uint64_t mip;
	bool done;
};

static bt_graph_simple_sink_component_consume_func_status consume(
	bt_message_iterator *iterator, void *user)
{
	struct sink *sink = user;
	bt_message_array_const messages;
	uint64_t count = 0;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(iterator, &messages, &count);

	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
		return (bt_graph_simple_sink_component_consume_func_status)status;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!sink->done &&
			bt_message_get_type(messages[i]) == BT_MESSAGE_TYPE_STREAM_BEGINNING) {
			const bt_clock_class *clock =
				bt_message_stream_beginning_borrow_stream_class_default_clock_class_const(
					messages[i]);

			if (clock) {
				take_clock(sink->search, clock, sink->mip);
			}
			sink->done = true;
		}
		bt_message_put_ref(messages[i]);
	}
	return sink->done ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END
			  : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* "inputs" = [dir], or NULL without memory. */
static bt_value *make_params(const char *dir)
{
	bt_value *params = bt_value_map_create();
	bt_value *inputs = NULL;

	if (params &&
		bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) ==
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
		bt_value_array_append_string_element(inputs, dir) ==
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK) {
		return params;
	}
	bt_value_put_ref(params);
	return NULL;
}

/* Runs a graph of its own over one stream of the trace, as far as its first message. */
static bool ask_trace(
	struct search *search, const bt_component_class_source *source_class, const char *dir)
{
	struct sink sink = { .search = search, .mip = TANDEM_MIP_MAX };
	bt_graph *graph = bt_graph_create(sink.mip);
	bt_value *params = make_params(dir);
	const bt_component_source *source = NULL;
	const bt_component_sink *end = NULL;
	bool good = false;

	if (!graph || !params ||
		bt_graph_add_source_component(graph, source_class, "host", params,
			BT_LOGGING_LEVEL_NONE, &source) != BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
		goto out;
	}
	if (bt_component_source_get_output_port_count(source) == 0) {
		search->without_streams++;
		good = true;
		goto out;
	}
	if (bt_graph_add_simple_sink_component(graph, "end", NULL, consume, NULL, &sink, &end) !=
		BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
		goto out;
	}
	if (bt_graph_connect_ports(graph,
		    bt_component_source_borrow_output_port_by_index_const(source, 0),
		    bt_component_sink_borrow_input_port_by_index_const(end, 0),
		    NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK) {
		goto out;
	}
	good = bt_graph_run(graph) == BT_GRAPH_RUN_STATUS_OK;
out:
	bt_graph_put_ref(graph);
	bt_value_put_ref(params);
	/* Whatever failed is told by our own message. */
	bt_current_thread_clear_error();
	return good;
}

/* CTF 2 has metadata of JSON; babeltrace2 reads it from 2.1 on. */
static bool is_ctf_2(const char *metadata_path)
{
	FILE *const file = fopen(metadata_path, "rbe");
	const int first = file ? getc(file) : EOF;

	if (file) {
		fclose(file);
	}
	return first == 0x1e || first == '{';
}

static void walk(struct search *search, const bt_component_class_source *source_class,
	const char *dir, unsigned int depth)
{
	char path[4096];
	struct stat st;
	struct dirent **entries = NULL;

	if (depth > MAX_DEPTH || search->traces >= MAX_TRACES) {
		return;
	}
	if (snprintf(path, sizeof(path), "%s/metadata", dir) >= (int)sizeof(path)) {
		return;
	}
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		search->traces++;
		if (!ask_trace(search, source_class, dir)) {
			snprintf(search->last_fault, sizeof(search->last_fault),
				"%.200s cannot be read as CTF%s", dir,
				is_ctf_2(path) ? " 1.8: it is CTF 2, for babeltrace2 2.1" : "");
		}
		return;
	}
	/* In the order of names, so that the answer does not depend on the file system. */
	const int count = scandir(dir, &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		/* No link: links could lead round and round. */
		if (entries[i]->d_name[0] != '.' &&
			snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name) <
				(int)sizeof(path) &&
			lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			walk(search, source_class, path, depth + 1);
		}
		free(entries[i]);
	}
	free(entries);
}

enum tdm_status flt_host_clock_epoch(
	const char *dir, const char *host_uuid, struct flt_host_clock *clock, struct tdm_error *err)
{
	struct search search = { .host_uuid = host_uuid };
	const bt_plugin *ctf = NULL;
	struct stat st;

	if (stat(dir, &st) != 0) {
		return tdm_fail_errno(err, errno, "host-clock: %s", dir);
	}
	if (!S_ISDIR(st.st_mode)) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"host-clock: %s is not a directory; give the host's CTF trace or its epoch offset in ns",
			dir);
	}
	if (bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &ctf) !=
		BT_PLUGIN_FIND_STATUS_OK) {
		bt_current_thread_clear_error();
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"host-clock: babeltrace2's plugin \"ctf\", which reads %s, is not found",
			dir);
	}
	const bt_component_class_source *source_class =
		bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs");

	if (source_class) {
		walk(&search, source_class, dir, 0);
	}
	bt_plugin_put_ref(ctf);
	if (!search.found && search.traces && search.without_streams == search.traces) {
		return tdm_fail(err, TDM_END, "host-clock: nothing is recorded in %s", dir);
	}
	if (!search.found) {
		return tdm_fail(err, TDM_ERR_FORMAT, "host-clock: no trace with a clock in %s%s%s",
			dir, search.last_fault[0] ? ": " : "", search.last_fault);
	}
	clock->epoch_ns = search.epoch_ns;
	memcpy(clock->uid, search.uid, sizeof(clock->uid));
	memcpy(clock->name, search.name, sizeof(clock->name));
	clock->differ = search.differ;
	return TDM_OK;
}
