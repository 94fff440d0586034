/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf_json.c - events of CTF traces, as a graph gives them, become events of a trace-event file.
 */
#include "convert_ctf_priv.h"
#include "ctf_event.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <task_census.h>

enum {
	CPUS_MAX = 65536
};

/* Who runs on a CPU, as its switches tell. */
struct running {
	bool is_known, is_named;
	int64_t since_ns;
	int32_t tid;
	char comm[64];
};

/* One machine while its events are written. */
struct writer {
	struct tdm_json_file *json;
	struct ctf_select select;
	size_t machine;
	int64_t last_ns;
	struct running *cpus;
	size_t cpu_count;
	struct tdm_task_census tasks; /* that need a track */
};

/* ---- fields ---- */

static void put_field(struct tdm_json_file *json, const bt_field *field);

static void put_members(struct tdm_json_file *json, const bt_field *structure, bool *has_one)
{
	const bt_field_class *const field_class = bt_field_borrow_class_const(structure);
	const uint64_t count = bt_field_class_structure_get_member_count(field_class);

	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_structure_member *const member =
			bt_field_class_structure_borrow_member_by_index_const(field_class, i);

		fputs(*has_one ? "," : "", json->file);
		*has_one = true;
		tdm_json_put_string(json, bt_field_class_structure_member_get_name(member));
		fputc(':', json->file);
		put_field(
			json, bt_field_structure_borrow_member_field_by_index_const(structure, i));
	}
}

static void put_array(struct tdm_json_file *json, const bt_field *array)
{
	const uint64_t length = bt_field_array_get_length(array);

	fputc('[', json->file);
	for (uint64_t i = 0; i < length; i++) {
		fputs(i ? "," : "", json->file);
		put_field(json, bt_field_array_borrow_element_field_by_index_const(array, i));
	}
	fputc(']', json->file);
}

static void put_unsigned(struct tdm_json_file *json, const bt_field *field)
{
	const uint64_t number = bt_field_integer_unsigned_get_value(field);

	if (bt_field_class_integer_get_preferred_display_base(bt_field_borrow_class_const(field)) ==
		BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL) {
		fprintf(json->file, "\"0x%" PRIx64 "\"", number);
	} else {
		tdm_json_put_unsigned(json, number);
	}
}

static void put_real(struct tdm_json_file *json, double number)
{
	if (isfinite(number)) {
		fprintf(json->file, "%.17g", number);
	} else {
		tdm_json_put_string(json, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
	}
}

static void put_field(struct tdm_json_file *json, const bt_field *field)
{
	const bt_field_class_type type = field ? bt_field_get_class_type(field) : 0;

	if (!field) {
		fputs("null", json->file);
	} else if (type == BT_FIELD_CLASS_TYPE_BOOL) {
		fputs(bt_field_bool_get_value(field) ? "true" : "false", json->file);
	} else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY) {
		tdm_json_put_unsigned(json, bt_field_bit_array_get_value_as_integer(field));
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		put_unsigned(json, field);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
		tdm_json_put_signed(json, bt_field_integer_signed_get_value(field));
	} else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
		put_real(json, (double)bt_field_real_single_precision_get_value(field));
	} else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
		put_real(json, bt_field_real_double_precision_get_value(field));
	} else if (type == BT_FIELD_CLASS_TYPE_STRING) {
		tdm_json_put_text(
			json, bt_field_string_get_value(field), bt_field_string_get_length(field));
	} else if (type == BT_FIELD_CLASS_TYPE_STRUCTURE) {
		bool has_one = false;

		fputc('{', json->file);
		put_members(json, field, &has_one);
		fputc('}', json->file);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
		put_array(json, field);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		put_field(json, bt_field_option_borrow_field_const(field));
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		put_field(json, bt_field_variant_borrow_selected_option_field_const(field));
	} else {
		fputs("null", json->file);
	}
}

static void copy_text(char *to, size_t room, const bt_field *field)
{
	to[0] = '\0';
	if (field && bt_field_get_class_type(field) == BT_FIELD_CLASS_TYPE_STRING) {
		snprintf(to, room, "%s", bt_field_string_get_value(field));
	}
}

/* ---- who runs ---- */

static struct running *cpu_at(struct writer *writer, uint32_t cpu)
{
	if (cpu >= CPUS_MAX) {
		return NULL;
	}
	if (cpu >= writer->cpu_count) {
		const size_t room = (cpu | 15u) + 1u;
		struct running *const grown = realloc(writer->cpus, room * sizeof(*grown));

		if (!grown) {
			return NULL;
		}
		memset(grown + writer->cpu_count, 0, (room - writer->cpu_count) * sizeof(*grown));
		writer->cpus = grown;
		writer->cpu_count = room;
	}
	if (!writer->cpus[cpu].is_named) {
		char name[32];

		snprintf(name, sizeof(name), "CPU %" PRIu32, cpu);
		tdm_json_name_track(writer->json, writer->machine, cpu, name);
		writer->cpus[cpu].is_named = true;
	}
	return &writer->cpus[cpu];
}

static void end_slice(struct writer *writer, uint32_t cpu, int64_t time_ns)
{
	const struct running *const running = &writer->cpus[cpu];

	if (running->is_known) {
		tdm_json_put_slice(writer->json, writer->machine, cpu, running->since_ns, time_ns,
			running->tid, running->comm);
	}
}

static void take_switch(struct writer *writer, struct running *running, uint32_t cpu,
	int64_t time_ns, const bt_field *payload)
{
	int64_t next = 0;

	if (!ctf_number(ctf_member(payload, "next_tid"), &next) &&
		!ctf_number(ctf_member(payload, "next_pid"), &next)) {
		return;
	}
	end_slice(writer, cpu, time_ns);
	running->is_known = true;
	running->since_ns = time_ns;
	running->tid = (int32_t)next;
	copy_text(running->comm, sizeof(running->comm), ctf_member(payload, "next_comm"));
}

/* ---- events ---- */

static int32_t thread_of(const bt_event *event, const struct running *running)
{
	const bt_field *const contexts[] = { bt_event_borrow_common_context_field_const(event),
		bt_event_borrow_specific_context_field_const(event) };
	int64_t tid = -1;

	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		if (ctf_number(ctf_member(contexts[i], "tid"), &tid) ||
			ctf_number(ctf_member(contexts[i], "vtid"), &tid)) {
			return (int32_t)tid;
		}
	}
	return running && running->is_known ? running->tid : -1;
}

static void put_args(struct tdm_json_file *json, const bt_event *event)
{
	const bt_field *const parts[] = { bt_event_borrow_common_context_field_const(event),
		bt_event_borrow_specific_context_field_const(event),
		bt_event_borrow_payload_field_const(event) };
	bool has_one = false;

	fputs(",\"args\":{", json->file);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i]) {
			put_members(json, parts[i], &has_one);
		}
	}
	fputs("}}", json->file);
}

static void note_task(struct writer *writer, const bt_event *event, int32_t tid, uint32_t cpu)
{
	char comm[64];

	copy_text(comm, sizeof(comm),
		ctf_member(bt_event_borrow_common_context_field_const(event), "procname"));
	if (!*comm && cpu < writer->cpu_count && writer->cpus[cpu].tid == tid) {
		snprintf(comm, sizeof(comm), "%s", writer->cpus[cpu].comm);
	}
	(void)tdm_task_census_see(&writer->tasks, tid, TDM_FIRST_RUNNING, cpu,
		(uint64_t)writer->last_ns, comm, strlen(comm));
}

static void put_event(struct writer *writer, const bt_message *message)
{
	struct tdm_json_file *const json = writer->json;
	const bt_event *const event = bt_message_event_borrow_event_const(message);
	const char *const given = bt_event_class_get_name(bt_event_borrow_class_const(event));
	const char *const name = given ? given : "";
	const char *const colon = strchr(name, ':');
	const uint32_t cpu = ctf_event_cpu(event);
	struct running *const running = cpu_at(writer, cpu);
	const int32_t tid = thread_of(event, running);
	bool is_entry = false;
	const char *const call = tid >= 0 ? tdm_json_call_of(name, &is_entry) : NULL;

	if (running && strcmp(name, "sched_switch") == 0) {
		take_switch(writer, running, cpu, writer->last_ns,
			bt_event_borrow_payload_field_const(event));
	}
	if (call) {
		note_task(writer, event, tid, cpu);
		tdm_json_begin_event(json, is_entry ? "B" : "E", writer->machine,
			TDM_JSON_TASK_TRACK + (uint64_t)tid);
	} else {
		tdm_json_begin_event(json, "i", writer->machine, cpu < CPUS_MAX ? cpu : 0);
		fputs(",\"s\":\"t\"", json->file);
	}
	tdm_json_put_time(json, "ts", writer->last_ns);
	fputs(",\"cat\":", json->file);
	tdm_json_put_text(
		json, colon ? name : "kernel", colon ? (size_t)(colon - name) : strlen("kernel"));
	fputs(",\"name\":", json->file);
	tdm_json_put_string(json, call ? call : name);
	put_args(json, event);
}

static bool each(void *user, const bt_message *message)
{
	struct writer *const writer = user;
	int64_t time_ns = 0;

	if (bt_message_get_type(message) != BT_MESSAGE_TYPE_EVENT ||
		!ctf_select_has(&writer->select, message)) {
		return true;
	}
	if (bt_message_event_borrow_stream_class_default_clock_class_const(message) &&
		bt_clock_snapshot_get_ns_from_origin(
			bt_message_event_borrow_default_clock_snapshot_const(message), &time_ns) ==
			BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
		writer->last_ns = time_ns;
	}
	put_event(writer, message);
	return !ferror(writer->json->file);
}

/* ---- machines ---- */

static enum tdm_status put_trace(struct convert_ctf *ctf, struct ctf_machine *machine,
	struct writer *writer, const char *from, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	struct tsdl_metadata metadata;
	char copy[PATH_MAX];
	enum tdm_status status = convert_ctf_metadata(from, &text, &metadata, err);

	if (snprintf(copy, sizeof(copy), "%s.copy", writer->json->work_path) >= (int)sizeof(copy)) {
		copy[0] = '\0';
	}
	if (status != TDM_OK) {
		TDM_ERROR(&ctf->command->log, "%s: this trace is left out", err->text);
		machine->unread_traces++;
		status = TDM_OK;
	} else {
		const struct convert_ctf_filter filter =
			convert_ctf_filter_of(ctf, machine, &metadata);

		status = convert_ctf_feed(ctf->command, from, copy, &filter, &machine->report,
			&metadata, each, writer, err);
	}
	tsdl_release(&metadata);
	tdm_buffer_release(&text);
	return status;
}

static void name_tasks(struct writer *writer)
{
	for (size_t i = 0; i < writer->tasks.room; i++) {
		const struct tdm_seen_task *const task = &writer->tasks.tasks[i];
		char name[TDM_TASK_NAME_MAX + 32];

		if (task->used) {
			snprintf(name, sizeof(name), "%s (%" PRId32 ")", task->comm, task->tid);
			tdm_json_name_track(writer->json, writer->machine,
				TDM_JSON_TASK_TRACK + (uint64_t)task->tid, name);
		}
	}
}

static enum tdm_status put_machine(struct convert_ctf *ctf, struct ctf_machine *machine,
	struct tdm_json_file *file, struct tdm_error *err)
{
	struct writer writer = { .json = file,
		.select = { .selection = &ctf->options->convert.selection,
			.counts = &machine->counts },
		.machine = tdm_json_add_machine(file, machine->name, machine->is_host) };
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < machine->traces.count && status == TDM_OK; i++) {
		status = put_trace(ctf, machine, &writer, machine->traces.paths[i], err);
		for (size_t cpu = 0; cpu < writer.cpu_count; cpu++) {
			end_slice(&writer, (uint32_t)cpu, writer.last_ns);
			writer.cpus[cpu].is_known = false;
		}
	}
	name_tasks(&writer);
	tdm_task_census_release(&writer.tasks);
	free(writer.cpus);
	return status;
}

int convert_ctf_put_json(struct convert_ctf *ctf, struct tdm_json_file *file)
{
	struct tdm_error err = { 0 };
	enum tdm_status status = TDM_OK;
	bool incomplete = ctf->unread_count > 0;

	for (size_t i = 0; i < ctf->count && status == TDM_OK; i++) {
		status = put_machine(ctf, &ctf->machines[i], file, &err);
	}
	if (status != TDM_OK) {
		return cli_failed(ctf->command, &err);
	}
	for (size_t i = 0; i < ctf->count; i++) {
		const struct ctf_machine *const machine = &ctf->machines[i];

		if (!ctf->command->quiet) {
			printf("%s: %" PRIu64 " events of %s -> %" PRIu64 " events in %s\n",
				machine->name, machine->counts.in, machine->path,
				machine->counts.out, file->path);
		}
		incomplete |= convert_ctf_say_faults(ctf, machine);
	}
	return incomplete ? TDM_EXIT_INCOMPLETE : TDM_EXIT_DONE;
}
