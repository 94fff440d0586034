/* SPDX-License-Identifier: MIT */
/*
 * src_query.c - babeltrace.support-info (is this file ours?) and babeltrace.trace-infos (which ranges of time has it?).
 */
#include "src_component.h"
#include <stdlib.h>
#include <string.h>

#define OK        BT_COMPONENT_CLASS_QUERY_METHOD_STATUS_OK
#define NO_MEMORY BT_COMPONENT_CLASS_QUERY_METHOD_STATUS_MEMORY_ERROR
#define FAILED    BT_COMPONENT_CLASS_QUERY_METHOD_STATUS_ERROR

/*
 * Asked about every argument of every babeltrace2 command where the plugin is installed, so any doubt is "not ours"
 * and never an error.
 */
static bt_component_class_query_method_status support_info(
	const struct src_kind *kind, const bt_value *params, const bt_value **result)
{
	const char *const input =
		bt_value_is_map(params) ? param_text(params, "input", NULL) : NULL;
	const char *const type = input ? param_text(params, "type", "") : "";

	if (kind->scheme) {
		const bool is_ours = strcmp(type, "string") == 0 &&
				     strncmp(input, kind->scheme, strlen(kind->scheme)) == 0;

		*result = bt_value_real_create_init(is_ours ? 1.0 : 0.0);
		return *result ? OK : NO_MEMORY;
	}

	const bool is_path = strcmp(type, "file") == 0 ||
			     (kind->takes_folders && strcmp(type, "directory") == 0);

	if (!is_path || tdm_trace_probe(input) != kind->format) {
		*result = bt_value_real_create_init(0.0);
		return *result ? OK : NO_MEMORY;
	}

	bt_value *const answer = bt_value_map_create();

	if (!answer ||
		bt_value_map_insert_real_entry(answer, "weight", kind->weight) !=
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK ||
		bt_value_map_insert_string_entry(answer, "group", kind->group) !=
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) {
		bt_value_put_ref(answer);
		return NO_MEMORY;
	}
	*result = answer;
	return OK;
}

/* First and last time of a stream as its iterator gives them. @return False for a stream without records. */
static bool stream_range(const struct tdm_machine *machine, size_t stream_index, uint64_t bias_ns,
	int64_t *begin_ns, int64_t *end_ns)
{
	struct tdm_reader *const reader = tdm_reader_create(machine->trace, stream_index, NULL);
	struct tdm_batch batch;
	bool any = false;
	uint64_t last_ns = 0;

	if (!reader) {
		return false;
	}
	while (tdm_reader_next_batch(reader, &batch, NULL) == TDM_OK) {
		for (size_t i = 0; i < batch.count; i++) {
			const uint64_t time_ns = src_clock_value(batch.slots[i].time_ns, bias_ns);

			if (!any) {
				*begin_ns = (int64_t)(time_ns - bias_ns);
				any = true;
			}
			last_ns = time_ns > last_ns ? time_ns : last_ns;
		}
	}
	tdm_reader_destroy(reader);
	*end_ns = (int64_t)(last_ns - bias_ns);
	return any;
}

static bool add_stream_info(
	bt_value *streams, const struct tdm_machine *machine, size_t stream_index, uint64_t bias_ns)
{
	int64_t begin_ns = 0;
	int64_t end_ns = 0;
	char name[256];
	bt_value *stream = NULL;
	bt_value *range = NULL;

	if (!stream_range(machine, stream_index, bias_ns, &begin_ns, &end_ns)) {
		/* A stream without records cuts nothing. */
		return true;
	}
	src_stream_name(machine, stream_index, name, sizeof(name));
	return bt_value_array_append_empty_map_element(streams, &stream) ==
		       BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
	       bt_value_map_insert_string_entry(stream, "port-name", name) ==
		       BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
	       bt_value_map_insert_empty_map_entry(stream, "range-ns", &range) ==
		       BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
	       bt_value_map_insert_signed_integer_entry(range, "begin", begin_ns) ==
		       BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
	       bt_value_map_insert_signed_integer_entry(range, "end", end_ns) ==
		       BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

static bool add_trace_info(bt_value *traces, const struct tdm_machine *machine,
	const bt_value *params, uint64_t bias_ns)
{
	const struct tdm_trace_info *const info = tdm_trace_get_info(machine->trace);
	bt_value *trace = NULL;
	bt_value *streams = NULL;

	if (bt_value_array_append_empty_map_element(traces, &trace) !=
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK ||
		bt_value_map_insert_empty_array_entry(trace, "stream-infos", &streams) !=
			BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK) {
		return false;
	}
	for (size_t i = 0; i < info->stream_count; i++) {
		if (src_buffer_is_wanted(params, info, info->streams[i].buffer_index) &&
			!add_stream_info(streams, machine, i, bias_ns)) {
			return false;
		}
	}
	return true;
}

static bt_component_class_query_method_status trace_infos(const struct src_kind *kind,
	bt_self_component_class *self_class, const bt_value *params, bt_logging_level level,
	const bt_value **result)
{
	struct report report;
	struct tdm_machines *machines = NULL;
	size_t unopened = 0;
	uint64_t bias_ns = 0;
	struct tdm_error err = { TDM_OK, "" };
	bt_value *traces = NULL;
	bt_component_class_query_method_status status = OK;

	/* What is to be said about these inputs the component says, which comes next. */
	report_init(&report, kind->class_name, level);
	report.log.write = NULL;
	if (src_open_machines(kind, params, &report.log, &machines, &unopened, &err) != TDM_OK) {
		report_class_cause(self_class, &err);
		return FAILED;
	}
	if (src_find_bias(machines, &bias_ns, &err) != TDM_OK) {
		tdm_machines_close(machines);
		return NO_MEMORY;
	}
	traces = bt_value_array_create();
	for (size_t i = 0; traces && i < tdm_machines_count(machines); i++) {
		if (!add_trace_info(traces, tdm_machines_at(machines, i), params, bias_ns)) {
			BT_VALUE_PUT_REF_AND_RESET(traces);
		}
	}
	if (traces) {
		*result = traces;
	} else {
		status = NO_MEMORY;
	}
	tdm_machines_close(machines);
	return status;
}

bt_component_class_query_method_status src_query(const struct src_kind *kind,
	bt_self_component_class_source *self_class, const char *object, const bt_value *params,
	bt_logging_level level, const bt_value **result)
{
	if (strcmp(object, "babeltrace.support-info") == 0) {
		return support_info(kind, params, result);
	}
	/* Of what is still to come nobody knows the range. */
	if (strcmp(object, "babeltrace.trace-infos") == 0 && !kind->scheme) {
		return trace_infos(kind,
			bt_self_component_class_source_as_self_component_class(self_class), params,
			level, result);
	}
	return BT_COMPONENT_CLASS_QUERY_METHOD_STATUS_UNKNOWN_OBJECT;
}
