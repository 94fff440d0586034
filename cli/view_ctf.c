/* SPDX-License-Identifier: MIT */
/*
 * view_ctf.c - the CTF traces below a directory, as source.ctf.fs wants them.
 */
#include "ctf_list.h"
#include "view_inputs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
	struct view_ctf_list *list;
	const bt_component_class_source *source_class;
	struct tdm_error *err;
	enum tdm_status status;
};

/* What source.ctf.fs says of one directory: which others it is one trace with. */
static void ask_group(
	const bt_component_class_source *source_class, const char *dir, char *group, size_t room)
{
	bt_value *params = bt_value_map_create();
	const bt_value *answer = NULL;
	bt_query_executor *executor = NULL;

	*group = '\0';
	if (params &&
		bt_value_map_insert_string_entry(params, "input", dir) ==
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
		bt_value_map_insert_string_entry(params, "type", "directory") ==
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) {
		executor = bt_query_executor_create(
			bt_component_class_source_as_component_class_const(source_class),
			"babeltrace.support-info", params);
	}
	if (executor &&
		bt_query_executor_query(executor, &answer) == BT_QUERY_EXECUTOR_QUERY_STATUS_OK &&
		bt_value_is_map(answer)) {
		const bt_value *found = bt_value_map_borrow_entry_value_const(answer, "group");

		if (found && bt_value_is_string(found)) {
			snprintf(group, room, "%s", bt_value_string_get(found));
		}
	}
	bt_current_thread_clear_error();
	bt_value_put_ref(answer);
	bt_value_put_ref(params);
	bt_query_executor_put_ref(executor);
}

static void no_memory(struct search *search)
{
	search->status = tdm_fail(search->err, TDM_ERR_NOMEM, "no memory for a list of traces");
}

static void add_trace(struct search *search, const char *dir)
{
	struct view_ctf_list *list = search->list;
	struct view_ctf *ctf = NULL;
	char group[sizeof(ctf->group)];

	ask_group(search->source_class, dir, group, sizeof(group));
	for (size_t i = 0; *group && i < list->count && !ctf; i++) {
		ctf = strcmp(list->items[i].group, group) == 0 ? &list->items[i] : NULL;
	}
	if (!ctf) {
		struct view_ctf *items =
			realloc(list->items, (list->count + 1) * sizeof(*list->items));

		if (!items) {
			no_memory(search);
			return;
		}
		list->items = items;
		ctf = &items[list->count++];
		*ctf = (struct view_ctf){ .inputs = bt_value_array_create() };
		memcpy(ctf->group, group, sizeof(group));
	}
	if (!ctf->inputs || bt_value_array_append_string_element(ctf->inputs, dir) !=
				    BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK) {
		no_memory(search);
	}
}

static void count_ports(struct search *search, struct view_ctf *ctf, const char *dir)
{
	bt_graph *graph = bt_graph_create(0);
	bt_value *params = view_ctf_params(ctf, NULL, 0);
	const bt_component_source *source = NULL;

	if (graph && params &&
		bt_graph_add_source_component(graph, search->source_class, "trace", params,
			BT_LOGGING_LEVEL_NONE, &source) == BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
		ctf->port_count = bt_component_source_get_output_port_count(source);
	} else {
		const bt_error *error = bt_current_thread_take_error();
		const char *why = "it cannot be opened as CTF";

		if (error && bt_error_get_cause_count(error)) {
			why = bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0));
		}
		search->status = tdm_fail(search->err, TDM_ERR_FORMAT, "%s: %s", dir, why);
		if (error) {
			bt_error_release(error);
		}
	}
	bt_value_put_ref(params);
	bt_graph_put_ref(graph);
}

enum tdm_status view_ctf_is_there(const char *dir, struct tdm_error *err)
{
	struct tdm_ctf_list found = { 0 };
	enum tdm_status status = tdm_ctf_list_find(dir, &found, err);

	if (status == TDM_OK && !found.count) {
		status = tdm_ctf_list_fail_empty(dir, &found, err);
	}
	tdm_ctf_list_release(&found);
	return status;
}

enum tdm_status view_ctf_find(const char *dir, struct view_ctf_list *list, struct tdm_error *err)
{
	struct search search = { .list = list, .err = err, .status = TDM_OK };
	struct tdm_ctf_list found = { 0 };
	const bt_plugin *plugin = NULL;

	if (bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin) !=
		BT_PLUGIN_FIND_STATUS_OK) {
		bt_current_thread_clear_error();
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: babeltrace2's plugin \"ctf\" is not found", dir);
	}
	search.source_class = bt_plugin_borrow_source_component_class_by_name_const(plugin, "fs");
	if (search.source_class) {
		search.status = tdm_ctf_list_find(dir, &found, err);
	}
	for (size_t i = 0; i < found.count && search.status == TDM_OK; i++) {
		add_trace(&search, found.paths[i]);
	}
	if (search.status == TDM_OK && !found.count) {
		search.status = tdm_ctf_list_fail_empty(dir, &found, err);
	}
	tdm_ctf_list_release(&found);
	for (size_t i = 0; search.status == TDM_OK && i < list->count; i++) {
		count_ports(&search, &list->items[i], dir);
	}
	bt_plugin_put_ref(plugin);
	return search.status;
}

void view_ctf_release(struct view_ctf_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		bt_value_put_ref(list->items[i].inputs);
	}
	free(list->items);
	*list = (struct view_ctf_list){ NULL, 0 };
}

bt_value *view_ctf_params(const struct view_ctf *ctf, const char *name, int64_t clock_offset_ns)
{
	bt_value *params = bt_value_map_create();

	/* Without the origin forced, a perf trace (a random clock each) can be merged with nothing. */
	if (params &&
		(bt_value_map_insert_entry(params, "inputs", ctf->inputs) !=
				BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK ||
			bt_value_map_insert_bool_entry(params,
				"force-clock-class-origin-unix-epoch",
				BT_TRUE) != BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK ||
			(name && bt_value_map_insert_string_entry(params, "trace-name", name) !=
					 BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) ||
			(clock_offset_ns && bt_value_map_insert_signed_integer_entry(params,
						    "clock-class-offset-ns", clock_offset_ns) !=
						    BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK))) {
		bt_value_put_ref(params);
		return NULL;
	}
	return params;
}
