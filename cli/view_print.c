/* SPDX-License-Identifier: MIT */
/*
 * view_print.c - the "babeltrace2 run" command line of a graph.
 */
#include "view_graph.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tandem/buffer.h>

static const char *const kind_words[] = {
	[VIEW_SOURCE] = "source",
	[VIEW_FILTER] = "filter",
	[VIEW_SINK] = "sink",
};

/* A text as babeltrace2's parameter syntax has it. */
static void add_text(struct tdm_buffer *out, const char *text)
{
	tdm_buffer_printf(out, "\"");
	for (; *text; text++) {
		tdm_buffer_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	}
	tdm_buffer_printf(out, "\"");
}

static void add_value(struct tdm_buffer *out, const bt_value *value);

struct entries {
	struct tdm_buffer *out;
	bool any;
};

static bt_value_map_foreach_entry_const_func_status add_entry(
	const char *key, const bt_value *value, void *user)
{
	struct entries *const entries = user;

	tdm_buffer_printf(entries->out, "%s%s=", entries->any ? "," : "", key);
	entries->any = true;
	add_value(entries->out, value);
	return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
}

static void add_entries(struct tdm_buffer *out, const bt_value *map)
{
	struct entries entries = { out, false };

	(void)bt_value_map_foreach_entry_const(map, add_entry, &entries);
}

static void add_value(struct tdm_buffer *out, const bt_value *value)
{
	if (bt_value_is_bool(value)) {
		tdm_buffer_printf(out, "%s", bt_value_bool_get(value) ? "yes" : "no");
	} else if (bt_value_is_signed_integer(value)) {
		tdm_buffer_printf(out, "%" PRId64, bt_value_integer_signed_get(value));
	} else if (bt_value_is_unsigned_integer(value)) {
		tdm_buffer_printf(out, "+%" PRIu64, bt_value_integer_unsigned_get(value));
	} else if (bt_value_is_string(value)) {
		add_text(out, bt_value_string_get(value));
	} else if (bt_value_is_array(value)) {
		tdm_buffer_printf(out, "[");
		for (uint64_t i = 0; i < bt_value_array_get_length(value); i++) {
			tdm_buffer_printf(out, "%s", i ? "," : "");
			add_value(out, bt_value_array_borrow_element_by_index_const(value, i));
		}
		tdm_buffer_printf(out, "]");
	} else if (bt_value_is_map(value)) {
		tdm_buffer_printf(out, "{");
		add_entries(out, value);
		tdm_buffer_printf(out, "}");
	}
}

/* One word for a shell. */
static void print_word(const char *bytes, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:=,+@%";
	bool quote = size == 0;

	for (size_t i = 0; i < size; i++) {
		quote = quote || !strchr(plain, bytes[i]);
	}
	if (!quote) {
		printf("%.*s", (int)size, bytes);
		return;
	}
	putchar('\'');
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\'') {
			fputs("'\\''", stdout);
		} else {
			putchar(bytes[i]);
		}
	}
	putchar('\'');
}

void view_graph_print(const struct view_graph *graph, const char *plugin_folder)
{
	struct tdm_buffer text = { 0 };

	tdm_buffer_printf(&text, "--plugin-path=%s", plugin_folder);
	fputs("babeltrace2 ", stdout);
	print_word((const char *)text.bytes, text.size);
	fputs(" run", stdout);
	for (size_t i = 0; i < graph->component_count; i++) {
		const struct view_component *const component = &graph->components[i];

		text.size = 0;
		tdm_buffer_printf(&text, "%s:%s.%s.%s", component->name,
			kind_words[component->kind], component->plugin, component->class);
		fputs(" -c ", stdout);
		print_word((const char *)text.bytes, text.size);
		text.size = 0;
		add_entries(&text, component->params);
		if (text.size > 0) {
			fputs(" -p ", stdout);
			print_word((const char *)text.bytes, text.size);
		}
	}
	for (size_t i = 0; i < graph->connection_count; i++) {
		printf(" -x %s:%s", graph->components[graph->connections[i].from].name,
			graph->components[graph->connections[i].to].name);
	}
	putchar('\n');
	tdm_buffer_release(&text);
}
