/* SPDX-License-Identifier: MIT */
/*
 * text_sink.c - one line an event: time, machine, CPU, task, name, and what trace-cmd would print or the fields.
 *
 * sink.text.pretty names a line by host name only, and with several machines on one timeline the reader must see at a glance
 * whose event it is.
 */
#include "text_sink.h"
#include "params.h"
#include "report.h"
#include "text_field.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/utf8.h>

struct text_sink {
	bt_message_iterator *upstream;
	struct tdm_buffer line;
	int machine_columns, task_columns; /* the widest so far */
};

bt_component_class_initialize_method_status text_sink_initialize(bt_self_component_sink *self,
	bt_self_component_sink_configuration *configuration, const bt_value *params, void *data)
{
	bt_self_component *const component = bt_self_component_sink_as_self_component(self);
	struct tdm_error err = { TDM_OK, "" };

	(void)configuration;
	(void)data;
	if (param_check(params, NULL, 0, &err) != TDM_OK) {
		report_component_cause(component, &err);
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}

	struct text_sink *const sink = calloc(1, sizeof(*sink));

	if (!sink || bt_self_component_sink_add_input_port(self, "in", NULL, NULL) !=
			     BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
		free(sink);
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	sink->machine_columns = 4;
	sink->task_columns = 16;
	bt_self_component_set_data(component, sink);
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static struct text_sink *sink_of(bt_self_component_sink *self)
{
	return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

void text_sink_finalize(bt_self_component_sink *self)
{
	struct text_sink *const sink = sink_of(self);

	fflush(stdout);
	BT_MESSAGE_ITERATOR_PUT_REF_AND_RESET(sink->upstream);
	tdm_buffer_release(&sink->line);
	free(sink);
}

bt_component_class_sink_graph_is_configured_method_status text_sink_graph_is_configured(
	bt_self_component_sink *self)
{
	return (bt_component_class_sink_graph_is_configured_method_status)
		bt_message_iterator_create_from_sink_component(self,
			bt_self_component_sink_borrow_input_port_by_index(self, 0),
			&sink_of(self)->upstream);
}

bt_component_class_get_supported_mip_versions_method_status text_sink_mip_versions(
	bt_self_component_class_sink *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class;
	(void)params;
	(void)data;
	(void)level;
	return bt_integer_range_set_unsigned_add_range(versions, 0, TANDEM_MIP_MAX) ==
			       BT_INTEGER_RANGE_SET_ADD_RANGE_STATUS_OK
		       ? BT_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD_STATUS_OK
		       : BT_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD_STATUS_MEMORY_ERROR;
}

static const char *text_entry(const bt_trace *trace, const char *name)
{
	const bt_value *const value =
		bt_trace_borrow_environment_entry_value_by_name_const(trace, name);

	return value && bt_value_is_string(value) ? bt_value_string_get(value) : NULL;
}

/*
 * What a line calls the machine of a trace: our sources say it, other traces have a name or a host's name. A
 * name given to source.ctf.fs stands behind the host's and a slash there.
 */
static const char *machine_of(const bt_trace *trace)
{
	const char *const machine = text_entry(trace, "machine");
	const char *const hostname = text_entry(trace, "hostname");
	const char *const name = bt_trace_get_name(trace);
	const size_t host_bytes = hostname ? strlen(hostname) : 0;

	if (machine) {
		return machine;
	}
	if (name && host_bytes && strncmp(name, hostname, host_bytes) == 0 &&
		name[host_bytes] == '/' && name[host_bytes + 1]) {
		return name + host_bytes + 1;
	}
	return name ? name : hostname ? hostname : "-";
}

static const bt_field *member(const bt_field *structure, const char *name)
{
	return structure ? bt_field_structure_borrow_member_field_by_name_const(structure, name)
			 : NULL;
}

/* An integer under one of two names in one of two contexts. @return False where there is none. */
static bool find_int(const bt_event *event, const char *name, const char *other, int64_t *number)
{
	const bt_field *const contexts[] = { bt_event_borrow_common_context_field_const(event),
		bt_event_borrow_specific_context_field_const(event) };
	const char *const names[] = { name, other };

	for (size_t i = 0; i < 4; i++) {
		const bt_field *const field = member(contexts[i / 2], names[i % 2]);
		const bt_field_class_type type =
			field ? bt_field_get_class_type(field) : BT_FIELD_CLASS_TYPE_STRING;

		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
			*number = bt_field_integer_signed_get_value(field);
			return true;
		}
		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
			*number = (int64_t)bt_field_integer_unsigned_get_value(field);
			return true;
		}
	}
	return false;
}

static const char *find_text(const bt_field *structure, const char *name)
{
	const bt_field *const field = member(structure, name);

	return field && bt_field_get_class_type(field) == BT_FIELD_CLASS_TYPE_STRING
		       ? bt_field_string_get_value(field)
		       : NULL;
}

/* Names come from whoever was traced: none may break a line or speak to the terminal. */
static void append_name(struct tdm_buffer *line, const char *name, int columns)
{
	const size_t begin = line->size;

	(void)tdm_utf8_append_visible(line, (const uint8_t *)name, strlen(name));
	tdm_buffer_printf(line, "%*s ",
		line->size - begin < (size_t)columns ? columns - (int)(line->size - begin) : 0, "");
}

static void begin_line(
	struct text_sink *sink, const bt_clock_snapshot *snapshot, const char *machine)
{
	int64_t ns = 0;
	const int columns = (int)strlen(machine);

	sink->line.size = 0;
	if (snapshot && bt_clock_snapshot_get_ns_from_origin(snapshot, &ns) !=
				BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
		bt_current_thread_clear_error();
		snapshot = NULL;
	}
	if (snapshot) {
		const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

		tdm_buffer_printf(&sink->line, "[%s%" PRIu64 ".%09" PRIu64 "] ", ns < 0 ? "-" : "",
			size / 1000000000, size % 1000000000);
	} else {
		tdm_buffer_printf(&sink->line, "[?] ");
	}
	if (columns > sink->machine_columns && columns < 40) {
		sink->machine_columns = columns;
	}
	append_name(&sink->line, machine, sink->machine_columns);
}

static void append_cpu_and_task(struct text_sink *sink, const bt_event *event)
{
	const bt_packet *const packet =
		bt_stream_class_supports_packets(
			bt_stream_borrow_class_const(bt_event_borrow_stream_const(event)))
			? bt_event_borrow_packet_const(event)
			: NULL;
	const bt_field *const cpu =
		packet ? member(bt_packet_borrow_context_field_const(packet), "cpu_id") : NULL;
	int64_t tid = 0;

	if (cpu && bt_field_class_type_is(
			   bt_field_get_class_type(cpu), BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		tdm_buffer_printf(
			&sink->line, "cpu%-3" PRIu64 " ", bt_field_integer_unsigned_get_value(cpu));
	}
	if (!find_int(event, "tid", "vtid", &tid)) {
		return;
	}

	const char *name = find_text(bt_event_borrow_common_context_field_const(event), "procname");
	char task[120];

	if (!name) {
		name = find_text(bt_event_borrow_specific_context_field_const(event), "procname");
	}

	const int columns =
		snprintf(task, sizeof(task), "%s-%" PRId64, name && *name ? name : "<...>", tid);

	if (columns > sink->task_columns && columns < 32) {
		sink->task_columns = columns;
	}
	append_name(&sink->line, task, sink->task_columns);
}

/* The printed text may have lines of its own: they are set in below their event. */
static void append_printed(struct tdm_buffer *line, const char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == '\n') {
		length--;
	}
	for (size_t i = 0; i < length;) {
		const size_t plain = strcspn(text + i, "\n\t");
		const size_t size = plain < length - i ? plain : length - i;

		(void)tdm_utf8_append_visible(line, (const uint8_t *)text + i, size);
		i += size;
		if (i < length) {
			tdm_buffer_printf(line, "%s", text[i] == '\n' ? "\n        " : "\t");
			i++;
		}
	}
}

static void append_content(struct text_sink *sink, const bt_event *event)
{
	const char *const printed =
		find_text(bt_event_borrow_specific_context_field_const(event), "print");
	const bt_field *const payload = bt_event_borrow_payload_field_const(event);

	if (printed && *printed) {
		append_printed(&sink->line, printed);
		return;
	}
	if (payload) {
		text_field_append(&sink->line, payload);
	}
}

static void add_event(struct text_sink *sink, const bt_message *message)
{
	const bt_event *const event = bt_message_event_borrow_event_const(message);
	const bt_stream *const stream = bt_event_borrow_stream_const(event);
	const bool has_clock = bt_stream_class_borrow_default_clock_class_const(
				       bt_stream_borrow_class_const(stream)) != NULL;
	const char *const name = bt_event_class_get_name(bt_event_borrow_class_const(event));

	begin_line(sink,
		has_clock ? bt_message_event_borrow_default_clock_snapshot_const(message) : NULL,
		machine_of(bt_stream_borrow_trace_const(stream)));
	append_cpu_and_task(sink, event);
	(void)tdm_utf8_append_visible(
		&sink->line, (const uint8_t *)(name ? name : "?"), name ? strlen(name) : 1);
	tdm_buffer_printf(&sink->line, ": ");
	append_content(sink, event);
	tdm_buffer_printf(&sink->line, "\n");
}

static void add_loss(struct text_sink *sink, const bt_message *message)
{
	const bt_stream *const stream = bt_message_discarded_events_borrow_stream_const(message);
	const bool has_times = bt_stream_class_discarded_events_have_default_clock_snapshots(
		bt_stream_borrow_class_const(stream));
	const char *const name = bt_stream_get_name(stream);
	uint64_t count = 0;

	begin_line(sink,
		has_times
			? bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(
				  message)
			: NULL,
		machine_of(bt_stream_borrow_trace_const(stream)));
	if (bt_message_discarded_events_get_count(message, &count) ==
		BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		tdm_buffer_printf(&sink->line, "-- the tracer lost %" PRIu64 " events of %s\n",
			count, name ? name : "a stream");
	} else {
		tdm_buffer_printf(
			&sink->line, "-- the tracer lost events of %s\n", name ? name : "a stream");
	}
}

/* @return False where the line cannot be written. */
static bool show(struct text_sink *sink, const bt_message *message)
{
	const bt_message_type type = bt_message_get_type(message);

	if (type == BT_MESSAGE_TYPE_EVENT) {
		add_event(sink, message);
	} else if (type == BT_MESSAGE_TYPE_DISCARDED_EVENTS) {
		add_loss(sink, message);
	} else {
		return true;
	}
	return fwrite(sink->line.bytes, 1, sink->line.size, stdout) == sink->line.size;
}

bt_component_class_sink_consume_method_status text_sink_consume(bt_self_component_sink *self)
{
	struct text_sink *const sink = sink_of(self);
	bt_message_array_const messages = NULL;
	uint64_t count = 0;
	bool written = true;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(sink->upstream, &messages, &count);

	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
		return (bt_component_class_sink_consume_method_status)status;
	}
	for (uint64_t i = 0; i < count; i++) {
		written = written && show(sink, messages[i]);
		bt_message_put_ref(messages[i]);
	}
	if (!written) {
		struct tdm_error err = { TDM_OK, "" };

		tdm_fail_errno(&err, errno, "cannot write to the standard output");
		report_component_cause(bt_self_component_sink_as_self_component(self), &err);
		return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
	}
	return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}
