/* SPDX-License-Identifier: MIT */
#include "src_component.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/utf8.h>

/* Everything that the parameters say about inputs, as the library wants it. */
struct wanted {
	struct tdm_machine_input *inputs;
	struct tdm_correction_input *corrections;
	size_t correction_count;
	size_t correction_room;
	struct tdm_offset_input *offsets;
	size_t offset_count;
};

static bool add_offset(struct wanted *wanted, const char *guest, int64_t offset_ns)
{
	struct tdm_offset_input *const offsets =
		realloc(wanted->offsets, (wanted->offset_count + 1) * sizeof(*wanted->offsets));

	if (!offsets) {
		return false;
	}
	wanted->offsets = offsets;
	offsets[wanted->offset_count++] =
		(struct tdm_offset_input){ .machine = guest, .offset = offset_ns };
	return true;
}

static bool add_correction(void *user, const char *guest, const char *path)
{
	struct wanted *const wanted = user;
	int64_t offset_ns = 0;

	if (param_offset(path, &offset_ns)) {
		return add_offset(wanted, guest, offset_ns);
	}

	struct tdm_correction_input *const corrections = realloc(
		wanted->corrections, (wanted->correction_count + 1) * sizeof(*wanted->corrections));

	if (!corrections) {
		return false;
	}
	wanted->corrections = corrections;
	corrections[wanted->correction_count++] = (struct tdm_correction_input){ guest, path };
	return true;
}

static enum tdm_status read_wanted(
	const bt_value *params, struct wanted *wanted, struct tdm_error *err)
{
	const size_t input_count = param_text_count(params, "inputs");
	const size_t name_count = param_text_count(params, "machines");
	const char *const one_for_all = param_text(params, "corrections", NULL);

	if (name_count > input_count) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"parameter \"machines\" has %zu names for %zu inputs", name_count,
			input_count);
	}
	wanted->inputs = calloc(input_count + 1, sizeof(*wanted->inputs));
	if (!wanted->inputs || (one_for_all && !add_correction(wanted, NULL, one_for_all))) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu inputs", input_count);
	}
	param_each_text(params, "corrections", add_correction, wanted);
	for (size_t i = 0; i < input_count; i++) {
		const char *const name = i < name_count ? param_text_at(params, "machines", i) : "";

		wanted->inputs[i].path = param_text_at(params, "inputs", i);
		wanted->inputs[i].name = *name ? name : NULL;
	}
	return TDM_OK;
}

/* A source reads one format: a file of another one is an input by mistake. */
static enum tdm_status check_formats(const struct src_kind *kind, const struct wanted *wanted,
	size_t count, struct tdm_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const enum tdm_trace_format format = tdm_trace_probe(wanted->inputs[i].path);

		/* What has no magic gets its message from opening it. */
		if (format != TDM_FORMAT_UNKNOWN && format != kind->format) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"%s is of another format than %s reads", wanted->inputs[i].path,
				kind->class_name);
		}
	}
	return TDM_OK;
}

enum tdm_status src_open_machines(const struct src_kind *kind, const bt_value *params,
	const struct tdm_log *log, struct tdm_machines **machines, size_t *unopened,
	struct tdm_error *err)
{
	struct wanted wanted = { 0 };
	enum tdm_status status = param_check(params, kind->rules, kind->rule_count, err);

	if (status != TDM_OK) {
		return status;
	}

	const size_t input_count = param_text_count(params, "inputs");

	status = read_wanted(params, &wanted, err);
	if (status == TDM_OK) {
		status = check_formats(kind, &wanted, input_count, err);
	}
	if (status == TDM_OK) {
		const struct tdm_machines_options options = {
			.corrections = wanted.corrections,
			.correction_count = wanted.correction_count,
			.offsets = wanted.offsets,
			.offset_count = wanted.offset_count,
			.clock_hz = (uint64_t)param_int(params, "clock-hz", 0),
			.offset_ns = param_int(params, "clock-offset-ns", 0),
			.refuse_unrelated =
				strcmp(param_text(params, "on-unrelated", "warn"), "fail") == 0,
			.keep_going = true,
		};

		status =
			tdm_machines_open(wanted.inputs, input_count, &options, log, machines, err);
		if (status == TDM_OK) {
			status = tdm_machines_put_aside_unopened(*machines, unopened, err);
			if (status != TDM_OK) {
				tdm_machines_close(*machines);
				*machines = NULL;
			}
		}
	}
	free(wanted.inputs);
	free(wanted.corrections);
	free(wanted.offsets);
	return status;
}

bool src_buffer_is_wanted(
	const bt_value *params, const struct tdm_trace_info *info, size_t buffer_index)
{
	const size_t count = param_text_count(params, "buffers");
	char label[256];

	tdm_buffer_label(info, buffer_index, label, sizeof(label));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(param_text_at(params, "buffers", i), label) == 0) {
			return true;
		}
	}
	return count == 0;
}

void src_stream_name(
	const struct tdm_machine *machine, size_t stream_index, char *name, size_t room)
{
	const struct tdm_trace_info *const info = tdm_trace_get_info(machine->trace);
	const struct tdm_stream_info *const stream = &info->streams[stream_index];
	char label[128];
	struct tdm_buffer shown = { .cap = 4 * sizeof(label) };

	tdm_buffer_label(info, stream->buffer_index, label, sizeof(label));
	/*
	 * The name of an instance is bytes that somebody else chose. Where they cannot stand here as they are, the
	 * buffer's number does: ports have different names.
	 */
	const bool is_plain = tdm_utf8_is_valid((const uint8_t *)label, strlen(label)) &&
			      strlen(label) + 1 < sizeof(label) && !strpbrk(label, "\\~");

	if (tdm_utf8_append_shown(&shown, (const uint8_t *)label, strlen(label)) != TDM_OK ||
		tdm_buffer_append(&shown, "", 1) != TDM_OK) {
		shown.size = 0;
	}
	if (is_plain) {
		snprintf(name, room, "%s/%s/cpu%" PRIu32, machine->name,
			shown.size ? (const char *)shown.bytes : "buffer", stream->cpu);
	} else {
		snprintf(name, room, "%s/%.*s~%" PRIu32 "/cpu%" PRIu32, machine->name,
			(int)(room / 2), shown.size ? (const char *)shown.bytes : "buffer",
			stream->buffer_index, stream->cpu);
	}
	tdm_buffer_release(&shown);
}

static bool has_clock(const struct ir_trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->class_count; i++) {
		if (strcmp(trace->classes[i].clock_name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Clocks that are not in ns: said once for each clock, at the first machine that has it. */
static void tell_clock_units(
	const struct src_component *component, size_t member_index, uint64_t clock_hz)
{
	const struct ir_trace *const trace = component->members[member_index].trace;

	for (size_t i = 0; i < trace->class_count; i++) {
		const char *const name = trace->classes[i].clock_name;
		const struct tdm_clock_unit unit = tdm_clock_unit_of(trace->info, name, clock_hz);
		bool told = unit.is_ns;

		for (size_t before = 0; before < member_index; before++) {
			const struct ir_trace *const other = component->members[before].trace;

			told = told ||
			       (has_clock(other, name) &&
				       !tdm_clock_unit_of(other->info, name, clock_hz).is_ns);
		}
		if (!told) {
			TDM_WARNING(&component->report.log,
				"Clock \"%s\" counts %s, and each is shown as 1 ns (clock-hz tells its frequency): input=\"%s\"",
				name, unit.unit, trace->machine->path);
		}
	}
}

static bool make_stream(struct src_port *port)
{
	struct ir_trace *const trace = port->machine->trace;
	const struct tdm_stream_info *const info = &trace->info->streams[port->stream_index];

	port->stream = bt_stream_create(
		ir_trace_class_of(trace, info->buffer_index)->stream_class, trace->trace);
	return port->stream &&
	       bt_stream_set_name(port->stream, port->name) == BT_STREAM_SET_NAME_STATUS_OK;
}

static bool has_buffer(const struct tdm_trace_info *info, const char *wanted)
{
	for (size_t i = 0; i < info->buffer_count; i++) {
		char label[256];

		tdm_buffer_label(info, i, label, sizeof(label));
		if (strcmp(label, wanted) == 0) {
			return true;
		}
	}
	return false;
}

/* A name that no input has selects nothing, and nothing is easily taken for an empty trace. */
static void tell_unknown_buffers(const struct src_component *component, const bt_value *params)
{
	for (size_t i = 0; i < param_text_count(params, "buffers"); i++) {
		const char *const wanted = param_text_at(params, "buffers", i);
		bool found = false;

		for (size_t k = 0; k < component->member_count && !found; k++) {
			found = has_buffer(component->members[k].trace->info, wanted);
		}
		if (!found) {
			TDM_WARNING(&component->report.log,
				"No input has a buffer called \"%s\" (the unnamed one is \"top\")",
				wanted);
		}
	}
}

static enum tdm_status add_ports(struct src_component *component, bt_self_component_source *self,
	const bt_value *params, struct tdm_error *err)
{
	size_t room = 0;

	for (size_t i = 0; i < component->member_count; i++) {
		room += component->members[i].trace->info->stream_count;
	}
	component->ports = calloc(room + 1, sizeof(*component->ports));
	if (!component->ports) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu ports", room);
	}
	tell_unknown_buffers(component, params);
	for (size_t i = 0; i < component->member_count; i++) {
		struct src_machine *const member = &component->members[i];
		const struct tdm_trace_info *const info = member->trace->info;

		for (size_t stream = 0; stream < info->stream_count; stream++) {
			if (!src_buffer_is_wanted(
				    params, info, info->streams[stream].buffer_index)) {
				continue;
			}

			struct src_port *const port = &component->ports[component->port_count++];

			port->component = component;
			port->machine = member;
			port->stream_index = stream;
			src_stream_name(member->machine, stream, port->name, sizeof(port->name));
			if (!make_stream(port)) {
				return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a stream");
			}
			if (bt_self_component_source_add_output_port(self, port->name, port,
				    NULL) != BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
				return tdm_fail(
					err, TDM_ERR_NOMEM, "cannot add port \"%s\"", port->name);
			}
		}
	}
	return TDM_OK;
}

/* Only what was added to stamps brings them below zero; for the others nothing is read ahead. */
static bool may_begin_below_zero(const struct tdm_machine *machine)
{
	const struct tdm_trace_info *const info = tdm_trace_get_info(machine->trace);

	return info->format != TDM_FORMAT_LIVE &&
	       (machine->corrections || machine->offset_ns < 0 || info->has_peer ||
		       info->date_offset_ns < 0);
}

enum tdm_status src_find_bias(
	const struct tdm_machines *machines, uint64_t *bias_ns, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	*bias_ns = 0;
	for (size_t i = 0; i < tdm_machines_count(machines) && status == TDM_OK; i++) {
		const struct tdm_machine *const machine = tdm_machines_at(machines, i);
		struct tdm_machine_start start;

		if (may_begin_below_zero(machine)) {
			status = tdm_machine_find_start(machine, &start, err);
			if (status == TDM_OK) {
				*bias_ns = tdm_machine_bias_ns(&start, 0, *bias_ns);
			}
		}
	}
	return status;
}

static enum tdm_status make_members(struct src_component *component, bt_self_component_source *self,
	const bt_value *params, struct tdm_error *err)
{
	const struct ir_options options = {
		.lttng_names = strcmp(param_text(params, "names", "lttng"), "lttng") == 0,
		.symbols = param_bool(params, "symbols", false),
		.print = param_bool(params, "print", false),
		.clock_hz = (uint64_t)param_int(params, "clock-hz", 0),
		.bias_ns = component->bias_ns,
	};
	const size_t count = tdm_machines_count(component->machines);

	component->members = calloc(count, sizeof(*component->members));
	if (!component->members) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", count);
	}
	for (size_t i = 0; i < count; i++) {
		struct src_machine *const member = &component->members[i];

		component->member_count = i + 1;
		member->machine = tdm_machines_at(component->machines, i);

		const enum tdm_status status = ir_trace_create(&member->trace, member->machine,
			&options, bt_self_component_source_as_self_component(self), err);

		if (status != TDM_OK) {
			return status;
		}
		tell_clock_units(component, i, options.clock_hz);
	}
	return TDM_OK;
}

static void destroy(struct src_component *component)
{
	for (size_t i = 0; i < component->port_count; i++) {
		bt_stream_put_ref(component->ports[i].stream);
	}
	for (size_t i = 0; i < component->member_count; i++) {
		ir_trace_destroy(component->members[i].trace);
	}
	free(component->ports);
	free(component->members);
	tdm_machines_close(component->machines);
	if (component->connection) {
		component->kind->close(component->connection);
	}
	free(component);
}

bt_component_class_initialize_method_status src_initialize(
	const struct src_kind *kind, bt_self_component_source *self, const bt_value *params)
{
	bt_self_component *const self_component = bt_self_component_source_as_self_component(self);
	struct src_component *const component = calloc(1, sizeof(*component));
	struct tdm_error err = { TDM_OK, "" };

	if (!component) {
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	component->kind = kind;
	report_init(&component->report, kind->class_name,
		bt_component_get_logging_level(bt_self_component_as_component(self_component)));

	enum tdm_status status =
		kind->open ? kind->open(component, params, &err)
			   : src_open_machines(kind, params, &component->report.log,
				     &component->machines, &component->unopened, &err);

	if (status == TDM_OK) {
		status = src_find_bias(component->machines, &component->bias_ns, &err);
	}
	if (status == TDM_OK) {
		status = make_members(component, self, params, &err);
	}
	if (status == TDM_OK) {
		status = add_ports(component, self, params, &err);
	}
	if (status != TDM_OK) {
		report_component_cause(self_component, &err);
		destroy(component);
		return status == TDM_ERR_NOMEM
			       ? BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR
			       : BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	bt_self_component_set_data(self_component, component);
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

void src_finalize(bt_self_component_source *self)
{
	struct src_component *const component =
		bt_self_component_get_data(bt_self_component_source_as_self_component(self));

	src_tell_losses(component);
	destroy(component);
}

bt_component_class_get_supported_mip_versions_method_status src_mip_versions(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
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

static void tell_refused(const struct src_component *component, const struct src_machine *member)
{
	for (size_t i = 0; i < member->trace->refused_count; i++) {
		const struct ir_refused *const refused = &member->trace->refused[i];

		TDM_WARNING(&component->report.log,
			"Records left out, %s: event=\"%s\", id=%" PRIu32 ", records=%" PRIu64
			", input=\"%s\"",
			refused->why, refused->name ? refused->name : "?", refused->event_id,
			refused->count, member->machine->path);
	}
	if (member->trace->refused_more > 0) {
		TDM_WARNING(&component->report.log,
			"Records left out, of further ids: records=%" PRIu64 ", input=\"%s\"",
			member->trace->refused_more, member->machine->path);
	}
}

static void tell_times(const struct src_component *component, const struct src_machine *member)
{
	if (member->clamped > 0) {
		TDM_WARNING(&component->report.log,
			"Stamps that went back within their stream were raised to the one before: records=%" PRIu64
			", input=\"%s\"",
			member->clamped, member->machine->path);
	}
	if (member->out_of_range > 0) {
		TDM_WARNING(&component->report.log,
			"Stamps beyond what a trace can hold have the time of the event before: records=%" PRIu64
			", input=\"%s\"",
			member->out_of_range, member->machine->path);
	}
	if (member->trace->bad_places > 0) {
		TDM_WARNING(&component->report.log,
			"Fields that point out of their record are shown empty: fields=%" PRIu64
			", input=\"%s\"",
			member->trace->bad_places, member->machine->path);
	}
}

bool src_tell_losses(struct src_component *component)
{
	bool unreadable = component->unopened > 0;

	for (size_t i = 0; i < component->member_count; i++) {
		struct src_machine *const member = &component->members[i];
		const struct tdm_trace *const trace = member->machine->trace;
		const size_t fault_count = tdm_trace_fault_count(trace);

		unreadable = unreadable || fault_count > 0;
		/* The reader has told each fault when it met it first. */
		for (; member->faults_told < fault_count; member->faults_told++) {
			const struct tdm_fault fault =
				tdm_trace_fault_at(trace, member->faults_told);

			if (fault.count > 1) {
				TDM_WARNING(&component->report.log, "met %" PRIu64 " times: %s",
					fault.count, fault.text);
			}
		}
		if (member->told || member->records == 0) {
			continue;
		}
		member->told = true;
		tell_refused(component, member);
		tell_times(component, member);
		if (member->delivered != member->records || member->lost > 0 ||
			member->losses_uncounted > 0 || member->unreadable_pages > 0) {
			TDM_WARNING(&component->report.log,
				"Not all events are here: input=\"%s\", in=%" PRIu64
				", out=%" PRIu64 ", lost-by-the-tracer=%" PRIu64
				", unreadable-pages=%" PRIu64,
				member->machine->path, member->records, member->delivered,
				member->lost, member->unreadable_pages);
		}
	}
	return unreadable;
}
