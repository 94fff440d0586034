/* SPDX-License-Identifier: MIT */
/*
 * ir_trace.c - trace class, trace with its environment, clock classes and stream classes of one machine.
 */
#include "ir_class.h"
#include "ir_sample.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/utf8.h>

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the classes of a trace");
}

static bool set_env(struct ir_trace *trace, const char *name, const char *text)
{
	if (!text || !*text) {
		return true;
	}
	trace->scratch.size = 0;
	return tdm_utf8_append_shown(&trace->scratch, (const uint8_t *)text, strlen(text)) ==
		       TDM_OK &&
	       tdm_buffer_append(&trace->scratch, "", 1) == TDM_OK &&
	       bt_trace_set_environment_entry_string(
		       trace->trace, name, (const char *)trace->scratch.bytes) ==
		       BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;
}

/* Names are C identifiers: sink.ctf.fs of babeltrace2 2.0 and 2.1 crashes on others. */
static bool set_environment(struct ir_trace *trace)
{
	const struct tdm_machine *const machine = trace->machine;
	const struct tdm_trace_info *const info = trace->info;
	const struct tdm_clock_unit unit =
		tdm_clock_unit_of(info, info->clock, trace->options.clock_hz);

	return set_env(trace, "hostname", info->hostname) &&
	       set_env(trace, "kernel_release", info->kernel_release) &&
	       set_env(trace, "architecture", info->architecture) &&
	       set_env(trace, "tracer_name", info->format == TDM_FORMAT_PERF ? "perf" : "ftrace") &&
	       set_env(trace, "recorder", info->recorder) &&
	       set_env(trace, "trace_clock", info->clock) &&
	       set_env(trace, "machine", machine->name) &&
	       set_env(trace, "machine_role", machine->is_host ? "host" : "guest") &&
	       set_env(trace, "tandem_input", machine->path) &&
	       set_env(trace, "tandem_tie", tdm_tie_words(machine->tie)) &&
	       set_env(trace, "tandem_corrections", machine->corrections_path) &&
	       set_env(trace, "tandem_clock_unit", unit.is_ns ? NULL : unit.unit);
}

#if TANDEM_HAVE_BT_2_1
static void uuid_text(const uint8_t uuid[16], char text[37])
{
	char *at = text;

	for (size_t i = 0; i < 16; i++) {
		at += sprintf(
			at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	}
}
#endif

static bool identify_clock(struct ir_trace *trace, bt_clock_class *clock_class)
{
	if (trace->mip_version == 0) {
		bt_clock_class_set_uuid(clock_class, trace->machine->clock_uuid);
		return true;
	}
#if TANDEM_HAVE_BT_2_1
	char text[37];

	uuid_text(trace->machine->clock_uuid, text);
	return bt_clock_class_set_namespace(clock_class, "tandem") ==
		       BT_CLOCK_CLASS_SET_NAMESPACE_STATUS_OK &&
	       bt_clock_class_set_uid(clock_class, text) == BT_CLOCK_CLASS_SET_UID_STATUS_OK;
#else
	return false;
#endif
}

static bool make_clock_class(struct ir_trace *trace, struct ir_stream_class *class)
{
	const struct tdm_clock_unit unit =
		tdm_clock_unit_of(trace->info, class->clock_name, trace->options.clock_hz);
	const char *const name =
		class->clock_name && *class->clock_name ? class->clock_name : "clock";
	char description[400];

	class->clock_class = bt_clock_class_create(trace->component);
	if (!class->clock_class) {
		return false;
	}
	bt_clock_class_set_frequency(class->clock_class, UINT64_C(1000000000));
	bt_clock_class_set_offset(
		class->clock_class, -(int64_t)(trace->options.bias_ns / 1000000000), 0);
	/* Every clock says Unix epoch, also one that counts from boot: the muxer takes no mixture with others. */
	compat_clock_class_set_unix_epoch(class->clock_class);
	if (unit.is_ns) {
		snprintf(description, sizeof(description), "trace clock %s of machine %s", name,
			trace->machine->name);
	} else {
		snprintf(description, sizeof(description),
			"trace clock %s of machine %s; one of its %s is shown as 1 ns", name,
			trace->machine->name, unit.unit);
	}
	return identify_clock(trace, class->clock_class) &&
	       bt_clock_class_set_name(class->clock_class, name) ==
		       BT_CLOCK_CLASS_SET_NAME_STATUS_OK &&
	       bt_clock_class_set_description(class->clock_class, description) ==
		       BT_CLOCK_CLASS_SET_DESCRIPTION_STATUS_OK;
}

static bool append(bt_field_class *structure, const char *name, bt_field_class *member)
{
	const bool done =
		member && bt_field_class_structure_append_member(structure, name, member) ==
				  BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK;

	bt_field_class_put_ref(member);
	return done;
}

static bt_field_class *integer_class(struct ir_trace *trace, bool is_signed, uint32_t size_bytes)
{
	bt_field_class *const made =
		is_signed ? bt_field_class_integer_signed_create(trace->trace_class)
			  : bt_field_class_integer_unsigned_create(trace->trace_class);

	if (made) {
		bt_field_class_integer_set_field_value_range(made, 8 * (uint64_t)size_bytes);
	}
	return made;
}

static bool set_packet_context(struct ir_trace *trace, struct ir_stream_class *class)
{
	bt_field_class *const context = bt_field_class_structure_create(trace->trace_class);
	const bool done = context && append(context, "cpu_id", integer_class(trace, false, 4)) &&
			  bt_stream_class_set_packet_context_field_class(class->stream_class,
				  context) == BT_STREAM_CLASS_SET_FIELD_CLASS_STATUS_OK;

	bt_field_class_put_ref(context);
	return done;
}

static bool set_common_context(struct ir_trace *trace, struct ir_stream_class *class)
{
	bt_field_class *const context = bt_field_class_structure_create(trace->trace_class);
	bool done = context && append(context, "tid", integer_class(trace, true, 4)) &&
		    append(context, "procname", bt_field_class_string_create(trace->trace_class));

	for (uint32_t i = 0; done && i < trace->common_count; i++) {
		const struct tdm_common_field *const common = &trace->commons[i];

		done = append(context, common->name,
			integer_class(trace, common->field->kind == TDM_FIELD_SIGNED,
				common->field->size_bytes));
	}
	done = done && (!trace->has_samples || ir_sample_add_members(trace, context));
	done = done && bt_stream_class_set_event_common_context_field_class(class->stream_class,
			       context) == BT_STREAM_CLASS_SET_FIELD_CLASS_STATUS_OK;
	bt_field_class_put_ref(context);
	return done;
}

static bool make_stream_class(struct ir_trace *trace, struct ir_stream_class *class)
{
	if (!make_clock_class(trace, class)) {
		return false;
	}
	class->stream_class = bt_stream_class_create(trace->trace_class);
	if (!class->stream_class) {
		return false;
	}
	bt_stream_class_set_assigns_automatic_event_class_id(class->stream_class, BT_FALSE);
	if (bt_stream_class_set_default_clock_class(class->stream_class, class->clock_class) !=
		BT_STREAM_CLASS_SET_DEFAULT_CLOCK_CLASS_STATUS_OK) {
		return false;
	}
	bt_stream_class_set_supports_packets(class->stream_class, BT_TRUE, BT_TRUE, BT_TRUE);
	/* With times: without them filter.utils.trimmer refuses the stream, so --begin and --end would. */
	bt_stream_class_set_supports_discarded_events(class->stream_class, BT_TRUE, BT_TRUE);
	return set_packet_context(trace, class) && set_common_context(trace, class);
}

/* Buffers that run on one clock share a stream class. */
static bool sort_buffers(struct ir_trace *trace)
{
	const struct tdm_trace_info *const info = trace->info;

	trace->class_of_buffer = calloc(info->buffer_count + 1, sizeof(*trace->class_of_buffer));
	trace->classes = calloc(info->buffer_count + 1, sizeof(*trace->classes));
	if (!trace->class_of_buffer || !trace->classes) {
		return false;
	}
	for (size_t buffer = 0; buffer < info->buffer_count; buffer++) {
		const char *const clock =
			info->buffers[buffer].clock ? info->buffers[buffer].clock : info->clock;
		size_t class = 0;

		while (class < trace->class_count &&
			strcmp(trace->classes[class].clock_name, clock ? clock : "") != 0) {
			class ++;
		}
		if (class == trace->class_count) {
			trace->classes[class].clock_name = clock ? clock : "";
			trace->class_count++;
		}
		trace->class_of_buffer[buffer] = class;
	}
	return true;
}

enum tdm_status ir_trace_create(struct ir_trace **made, const struct tdm_machine *machine,
	const struct ir_options *options, bt_self_component *component, struct tdm_error *err)
{
	struct ir_trace *const trace = calloc(1, sizeof(*trace));

	if (!trace) {
		return no_memory(err);
	}
	trace->machine = machine;
	trace->info = tdm_trace_get_info(machine->trace);
	trace->schema = tdm_trace_get_schema(machine->trace);
	trace->options = *options;
	trace->has_samples = trace->info->format == TDM_FORMAT_PERF;
	trace->component = component;
	trace->mip_version = bt_self_component_get_graph_mip_version(component);
	trace->big_endian = tdm_schema_big_endian(trace->schema);
	trace->names = tdm_names_create(trace->schema,
		options->lttng_names ? TDM_NAMES_LTTNG : TDM_NAMES_FTRACE,
		trace->info->architecture);
	if (options->symbols || options->print) {
		trace->print = tdm_print_text_create(machine->trace);
	}
	trace->trace_class = bt_trace_class_create(component);
	trace->trace = trace->trace_class ? bt_trace_create(trace->trace_class) : NULL;
	if (!trace->names || !trace->trace ||
		bt_trace_set_name(trace->trace, machine->name) != BT_TRACE_SET_NAME_STATUS_OK ||
		!set_environment(trace) || !sort_buffers(trace)) {
		ir_trace_destroy(trace);
		return no_memory(err);
	}
	trace->common_count = (uint32_t)tdm_common_fields(trace->schema, trace->commons);
	for (size_t i = 0; i < trace->class_count; i++) {
		if (!make_stream_class(trace, &trace->classes[i])) {
			ir_trace_destroy(trace);
			return no_memory(err);
		}
	}
	*made = trace;
	return TDM_OK;
}

void ir_trace_destroy(struct ir_trace *trace)
{
	if (!trace) {
		return;
	}
	for (size_t i = 0; i < trace->class_count; i++) {
		struct ir_stream_class *const class = &trace->classes[i];

		for (uint32_t id = 0; id < class->plan_count; id++) {
			if (class->plans[id]) {
				free(class->plans[id]->members);
				free(class->plans[id]->context);
				free(class->plans[id]);
			}
		}
		free(class->plans);
		free(class->choices);
		bt_stream_class_put_ref(class->stream_class);
		bt_clock_class_put_ref(class->clock_class);
	}
	bt_trace_put_ref(trace->trace);
	bt_trace_class_put_ref(trace->trace_class);
	free(trace->classes);
	free(trace->class_of_buffer);
	free(trace->refused);
	tdm_buffer_release(&trace->scratch);
	tdm_names_destroy(trace->names);
	tdm_print_text_destroy(trace->print);
	free(trace);
}

struct ir_stream_class *ir_trace_class_of(struct ir_trace *trace, size_t buffer_index)
{
	return &trace->classes[trace->class_of_buffer[buffer_index]];
}

void ir_trace_refuse(struct ir_trace *trace, uint32_t event_id, const char *name, const char *why)
{
	for (size_t i = 0; i < trace->refused_count; i++) {
		if (trace->refused[i].event_id == event_id && trace->refused[i].why == why) {
			trace->refused[i].count++;
			return;
		}
	}

	/* A damaged file can make up any id: past this many they are counted together. */
	const size_t most = 64;

	if (trace->refused_count == most) {
		trace->refused_more++;
		return;
	}

	struct ir_refused *const refused =
		realloc(trace->refused, (trace->refused_count + 1) * sizeof(*refused));

	if (refused) {
		trace->refused = refused;
		refused[trace->refused_count++] = (struct ir_refused){ event_id, name, why, 1 };
	}
}
