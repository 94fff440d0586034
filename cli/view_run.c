/* SPDX-License-Identifier: MIT */
/*
 * view_run.c - a described graph is built through libbabeltrace2 and run.
 */
#include "options.h"
#include "view_graph.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static const bt_plugin *find_plugin(const char *name, const char *own_folder)
{
	const bt_plugin *plugin = NULL;

	if (strcmp(name, "tandem") == 0) {
		/* Our own plugin must be the one that belongs to this program. */
		const bt_plugin_set *set = NULL;

		if (bt_plugin_find_all_from_dir(own_folder, BT_FALSE, BT_FALSE, &set) !=
			BT_PLUGIN_FIND_ALL_FROM_DIR_STATUS_OK) {
			return NULL;
		}
		for (uint64_t i = 0; i < bt_plugin_set_get_plugin_count(set); i++) {
			const bt_plugin *const found =
				bt_plugin_set_borrow_plugin_by_index_const(set, i);

			if (strcmp(bt_plugin_get_name(found), name) == 0) {
				plugin = found;
				bt_plugin_get_ref(plugin);
				break;
			}
		}
		bt_plugin_set_put_ref(set);
		return plugin;
	}
	if (bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin) !=
		BT_PLUGIN_FIND_STATUS_OK) {
		return NULL;
	}
	return plugin;
}

static bool add_component(bt_graph *graph, struct view_component *wanted, const bt_plugin *plugin,
	bt_logging_level level)
{
	bool added = false;

	/* The muxer logs addresses in memory, of what others say in words. */
	if (strcmp(wanted->plugin, "utils") == 0 && strcmp(wanted->class, "muxer") == 0) {
		level = BT_LOGGING_LEVEL_NONE;
	}
	if (wanted->kind == VIEW_SOURCE) {
		const bt_component_class_source *const class =
			bt_plugin_borrow_source_component_class_by_name_const(
				plugin, wanted->class);
		const bt_component_source *component = NULL;

		added = class &&
			bt_graph_add_source_component(graph, class, wanted->name, wanted->params,
				level, &component) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;
		wanted->built = component;
	} else if (wanted->kind == VIEW_FILTER) {
		const bt_component_class_filter *const class =
			bt_plugin_borrow_filter_component_class_by_name_const(
				plugin, wanted->class);
		const bt_component_filter *component = NULL;

		added = class &&
			bt_graph_add_filter_component(graph, class, wanted->name, wanted->params,
				level, &component) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;
		wanted->built = component;
	} else {
		const bt_component_class_sink *const class =
			bt_plugin_borrow_sink_component_class_by_name_const(plugin, wanted->class);
		const bt_component_sink *component = NULL;

		added = class &&
			bt_graph_add_sink_component(graph, class, wanted->name, wanted->params,
				level, &component) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;
		wanted->built = component;
	}
	return added;
}

static bool add_own(bt_graph *graph, struct view_component *wanted, bt_logging_level level)
{
	const bt_component_filter *component = NULL;
	const bool added =
		bt_graph_add_filter_component_with_initialize_method_data(graph, wanted->own_class,
			wanted->name, wanted->params, wanted->own_data, level,
			&component) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;

	wanted->built = component;
	return added;
}

static uint64_t output_count(const struct view_component *component)
{
	return component->kind == VIEW_SOURCE
		       ? bt_component_source_get_output_port_count(component->built)
		       : bt_component_filter_get_output_port_count(component->built);
}

static const bt_port_output *output_at(const struct view_component *component, uint64_t index)
{
	return component->kind == VIEW_SOURCE
		       ? bt_component_source_borrow_output_port_by_index_const(
				 component->built, index)
		       : bt_component_filter_borrow_output_port_by_index_const(
				 component->built, index);
}

/* The first input port that is not connected; the muxer adds one whenever its last is taken. */
static const bt_port_input *free_input(const struct view_component *component)
{
	const bool is_sink = component->kind == VIEW_SINK;
	const uint64_t count = is_sink ? bt_component_sink_get_input_port_count(component->built)
				       : bt_component_filter_get_input_port_count(component->built);

	for (uint64_t i = 0; i < count; i++) {
		const bt_port_input *const port =
			is_sink ? bt_component_sink_borrow_input_port_by_index_const(
					  component->built, i)
				: bt_component_filter_borrow_input_port_by_index_const(
					  component->built, i);

		if (!bt_port_is_connected(bt_port_input_as_port_const(port))) {
			return port;
		}
	}
	return NULL;
}

static bool connect(bt_graph *graph, const struct view_component *from,
	const struct view_component *to, const char *program)
{
	const uint64_t count = output_count(from);

	for (uint64_t i = 0; i < count; i++) {
		const bt_port_input *const input = free_input(to);

		if (!input) {
			fprintf(stderr, "%s: error: %s has no free port for port %llu of %s\n",
				program, to->name, (unsigned long long)i, from->name);
			return false;
		}
		if (bt_graph_connect_ports(graph, output_at(from, i), input, NULL) !=
			BT_GRAPH_CONNECT_PORTS_STATUS_OK) {
			return false;
		}
	}
	return true;
}

static bool is_of_muxer(const bt_error_cause *cause)
{
	const char *plugin = NULL;

	switch (bt_error_cause_get_actor_type(cause)) {
	case BT_ERROR_CAUSE_ACTOR_TYPE_COMPONENT:
		plugin = bt_error_cause_component_actor_get_plugin_name(cause);
		break;
	case BT_ERROR_CAUSE_ACTOR_TYPE_MESSAGE_ITERATOR:
		plugin = bt_error_cause_message_iterator_actor_get_plugin_name(cause);
		break;
	default:
		break;
	}
	return plugin && strcmp(plugin, "utils") == 0;
}

/* babeltrace2 lists causes from the innermost out; the user needs the innermost one that is ours most. */
static void print_causes(const char *program)
{
	const bt_error *const error = bt_current_thread_take_error();

	if (!error) {
		return;
	}
	for (uint64_t i = 0; i < bt_error_get_cause_count(error); i++) {
		const bt_error_cause *const cause = bt_error_borrow_cause_by_index(error, i);
		const bt_error_cause_actor_type actor = bt_error_cause_get_actor_type(cause);

		/* What the library and its muxer add names their functions, not the user's files. */
		if (i == 0 || (actor != BT_ERROR_CAUSE_ACTOR_TYPE_UNKNOWN && !is_of_muxer(cause))) {
			fprintf(stderr, "%s: error: ", program);
			cli_put_visible(stderr, bt_error_cause_get_message(cause));
			fputc('\n', stderr);
		}
	}
	bt_error_release(error);
}

static bool build(bt_graph *graph, struct view_graph *wanted, const char *plugin_folder,
	const char *program, bt_logging_level level)
{
	for (size_t i = 0; i < wanted->component_count; i++) {
		struct view_component *const component = &wanted->components[i];

		if (component->own_class) {
			if (!add_own(graph, component, level)) {
				return false;
			}
			continue;
		}

		const bt_plugin *const plugin = find_plugin(component->plugin, plugin_folder);

		if (!plugin) {
			fprintf(stderr,
				"%s: error: babeltrace2's plugin \"%s\" was not found (looked in %s and babeltrace2's own folders)\n",
				program, component->plugin, plugin_folder);
			return false;
		}

		const bool added = add_component(graph, component, plugin, level);

		bt_plugin_put_ref(plugin);
		if (!added) {
			return false;
		}
	}
	for (size_t i = 0; i < wanted->connection_count; i++) {
		if (!connect(graph, &wanted->components[wanted->connections[i].from],
			    &wanted->components[wanted->connections[i].to], program)) {
			return false;
		}
	}
	return true;
}

static enum view_end run(bt_graph *graph)
{
	const struct timespec pause = { 0, 20 * 1000 * 1000 };
	bool gave_something = false;

	while (!interrupted) {
		const bt_graph_run_once_status status = bt_graph_run_once(graph);

		switch (status) {
		case BT_GRAPH_RUN_ONCE_STATUS_OK:
			gave_something = true;
			break;
		case BT_GRAPH_RUN_ONCE_STATUS_END:
			return VIEW_DONE;
		case BT_GRAPH_RUN_ONCE_STATUS_AGAIN:
			fflush(stdout);
			nanosleep(&pause, NULL);
			break;
		default:
			return gave_something ? VIEW_CUT : VIEW_FAILED;
		}
	}
	return VIEW_INTERRUPTED;
}

struct feed {
	size_t from;
	bool (*each)(void *user, const bt_message *message);
	void *user;
};

static bt_graph_simple_sink_component_consume_func_status consume(
	bt_message_iterator *iterator, void *user)
{
	const struct feed *const feed = user;
	bt_message_array_const messages;
	uint64_t count = 0;
	bool good = true;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(iterator, &messages, &count);

	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
		/* The values of the two enumerations are the same by design. */
		return (bt_graph_simple_sink_component_consume_func_status)status;
	}
	for (uint64_t i = 0; i < count; i++) {
		good = good && feed->each(feed->user, messages[i]);
		bt_message_put_ref(messages[i]);
	}
	return good ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK
		    : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_MEMORY_ERROR;
}

static bool add_feed(bt_graph *graph, const struct view_graph *wanted, struct feed *feed)
{
	const bt_component_sink *sink = NULL;

	return bt_graph_add_simple_sink_component(graph, "feed", NULL, consume, NULL, feed,
		       &sink) == BT_GRAPH_ADD_COMPONENT_STATUS_OK &&
	       bt_graph_connect_ports(graph, output_at(&wanted->components[feed->from], 0),
		       bt_component_sink_borrow_input_port_by_index_const(sink, 0),
		       NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
}

/*
 * sink.ctf.fs of babeltrace2 2.0.4 follows a null pointer when it is finalized before its trace was complete. So a graph
 * that failed with it inside is left alone until the process ends.
 */
static void release_graph(bt_graph *graph, const struct view_graph *wanted, enum view_end end)
{
	static bt_graph *left_alone;

	for (size_t i = 0; i < wanted->component_count && end != VIEW_DONE; i++) {
		const struct view_component *const component = &wanted->components[i];

		if (component->kind == VIEW_SINK && strcmp(component->plugin, "ctf") == 0) {
			left_alone = graph;
		}
	}
	if (left_alone != graph) {
		bt_graph_put_ref(graph);
	}
}

static enum view_end build_and_run(struct view_graph *wanted, const char *plugin_folder,
	const char *program, bt_logging_level level, struct feed *feed)
{
	struct sigaction action = { .sa_handler = note_signal };
	struct sigaction old_int, old_term;
	bt_graph *const graph = bt_graph_create(0);
	enum view_end end = VIEW_FAILED;

	if (!graph) {
		fprintf(stderr, "%s: error: no memory for a graph\n", program);
		return VIEW_FAILED;
	}
	/* Building connects to what is live: a Ctrl-C meanwhile does what it did before, nothing is shown yet. */
	const bool is_built = build(graph, wanted, plugin_folder, program, level) &&
			      (!feed || add_feed(graph, wanted, feed));

	interrupted = 0;
	sigaction(SIGINT, &action, &old_int);
	sigaction(SIGTERM, &action, &old_term);
	if (is_built) {
		end = run(graph);
	}
	fflush(stdout);
	print_causes(program);
	release_graph(graph, wanted, end);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	return end;
}

enum view_end view_graph_run(struct view_graph *wanted, const char *plugin_folder,
	const char *program, bt_logging_level level)
{
	return build_and_run(wanted, plugin_folder, program, level, NULL);
}

enum view_end view_graph_feed(struct view_graph *wanted, const char *plugin_folder,
	const char *program, bt_logging_level level, size_t from,
	bool (*each)(void *user, const bt_message *message), void *user)
{
	struct feed feed = { from, each, user };

	return build_and_run(wanted, plugin_folder, program, level, &feed);
}
