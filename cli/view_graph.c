/* SPDX-License-Identifier: MIT */
#include "view_graph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t view_graph_add(struct view_graph *graph, enum view_kind kind, const char *name,
	const char *plugin, const char *class, bt_value *params)
{
	struct view_component *const components =
		realloc(graph->components, (graph->component_count + 1) * sizeof(*components));

	if (components) {
		graph->components = components;
	}
	if (!params) {
		params = bt_value_map_create();
	}
	if (!components || !params) {
		bt_value_put_ref(params);
		return VIEW_NONE;
	}

	struct view_component *const component = &components[graph->component_count];

	memset(component, 0, sizeof(*component));
	component->kind = kind;
	snprintf(component->name, sizeof(component->name), "%s", name);
	component->plugin = plugin;
	component->class = class;
	component->params = params;
	return graph->component_count++;
}

size_t view_graph_add_own(struct view_graph *graph, const char *name,
	const bt_component_class_filter *filter_class, void *data)
{
	const size_t index = view_graph_add(graph, VIEW_FILTER, name, "", "", NULL);

	if (index == VIEW_NONE) {
		bt_component_class_filter_put_ref(filter_class);
		return index;
	}
	graph->components[index].own_class = filter_class;
	graph->components[index].own_data = data;
	return index;
}

bool view_graph_connect(struct view_graph *graph, size_t from, size_t to)
{
	struct view_connection *const connections =
		realloc(graph->connections, (graph->connection_count + 1) * sizeof(*connections));

	if (!connections) {
		return false;
	}
	graph->connections = connections;
	connections[graph->connection_count++] = (struct view_connection){ from, to };
	return true;
}

void view_graph_release(struct view_graph *graph)
{
	for (size_t i = 0; i < graph->component_count; i++) {
		bt_value_put_ref(graph->components[i].params);
		bt_component_class_filter_put_ref(graph->components[i].own_class);
	}
	free(graph->components);
	free(graph->connections);
	memset(graph, 0, sizeof(*graph));
}
