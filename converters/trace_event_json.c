/* SPDX-License-Identifier: MIT */
/*
 * trace_event_json.c - the records of machines as events of a trace-event file, one CPU after another.
 */
#include "trace_event_json.h"
#include "convert_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/utf8.h>

/* One CPU while it is written. */
struct cpu {
	const struct tdm_convert_machine *conversion;
	struct tdm_json_file *json;
	size_t machine; /* as the file numbers it */
	struct tdm_task_names *names;
	struct tdm_task_census *census; /* tasks that need a track */
	uint32_t cpu;
	uint64_t last_time;
	bool is_running; /* a switch told who runs */
	uint64_t since;
	int32_t tid;
	char comm[TDM_TASK_NAME_MAX + 1];
};

/* As the output shows time. */
static int64_t shown_time(const struct tdm_convert_machine *conversion, uint64_t time)
{
	return (int64_t)(time - conversion->bias_ns) + conversion->epoch_offset_ns;
}

static void put_element(struct tdm_json_file *json, const struct tdm_field *field,
	const uint8_t *at, uint32_t size_bytes, bool big_endian)
{
	if (field->kind == TDM_FIELD_SIGNED) {
		tdm_json_put_signed(json, tdm_load_int(at, size_bytes, big_endian));
	} else if (field->kind == TDM_FIELD_POINTER) {
		fprintf(json->file, "\"0x%" PRIx64 "\"", tdm_load_uint(at, size_bytes, big_endian));
	} else {
		tdm_json_put_unsigned(json, tdm_load_uint(at, size_bytes, big_endian));
	}
}

static void put_value(struct cpu *cpu, const struct tdm_shown_class *shown_class,
	const struct tdm_shown_field *shown, const struct tdm_slot *slot)
{
	struct tdm_json_file *const json = cpu->json;
	const struct tdm_field *const field = &shown->field;
	const bool big_endian = cpu->conversion->layout.big_endian;
	const bool wide = field->kind == TDM_FIELD_WIDE;
	const uint32_t element_bytes = wide ? 8 : field->element_bytes;
	struct tdm_span span = { 0 };

	if (!tdm_field_span(field, slot->payload, slot->payload_bytes, big_endian, &span)) {
		span = (struct tdm_span){ 0 };
	}
	if (shown->conversion == TDM_CONVERT_RWBS) {
		fprintf(json->file, "%" PRIu32, tdm_names_rwbs(span.bytes, span.size_bytes));
	} else if (shown->conversion == TDM_CONVERT_PRIO) {
		fprintf(json->file, "%" PRId64,
			span.size_bytes
				? tdm_load_int(span.bytes, span.size_bytes, big_endian) - 100
				: 0);
	} else if (field->kind == TDM_FIELD_TEXT) {
		tdm_json_put_text(json, (const char *)span.bytes,
			span.size_bytes ? tdm_text_length(span.bytes, span.size_bytes) : 0);
	} else if (tdm_shown_is_printk(shown_class, shown) && span.size_bytes) {
		const char *const format = tdm_trace_printk_format(cpu->conversion->trace,
			tdm_load_uint(span.bytes, span.size_bytes, big_endian));

		tdm_json_put_string(json, format ? format : "");
	} else if (field->is_array || field->place != TDM_PLACE_FIXED || wide) {
		fputc('[', json->file);
		for (uint32_t at = 0; element_bytes && at + element_bytes <= span.size_bytes;
			at += element_bytes) {
			const uint32_t from = wide && big_endian ? at ^ 8u : at;

			fputs(at ? "," : "", json->file);
			put_element(json, field, span.bytes + from, element_bytes, big_endian);
		}
		fputc(']', json->file);
	} else if (span.size_bytes >= element_bytes && element_bytes) {
		put_element(json, field, span.bytes, element_bytes, big_endian);
	} else {
		fputs("null", json->file);
	}
}

static void put_args(struct cpu *cpu, const struct tdm_shown_class *shown,
	const struct tdm_slot *slot, int32_t tid)
{
	struct tdm_json_file *const json = cpu->json;
	size_t length = 0;
	const char *const comm = tdm_task_names_find(cpu->names, tid, &length);

	fprintf(json->file, ",\"args\":{\"tid\":%" PRId32 ",\"procname\":", tid);
	tdm_json_put_text(json, comm, length);
	for (uint32_t i = 0; i < shown->field_count; i++) {
		fputc(',', json->file);
		tdm_json_put_string(json, shown->fields[i].field.unique_name);
		fputc(':', json->file);
		put_value(cpu, shown, &shown->fields[i], slot);
	}
	fputs("}}", json->file);
}

/* The slice of the task that ran until now. */
static void close_slice(struct cpu *cpu, uint64_t time)
{
	if (cpu->is_running) {
		tdm_json_put_slice(cpu->json, cpu->machine, cpu->cpu,
			shown_time(cpu->conversion, cpu->since), shown_time(cpu->conversion, time),
			cpu->tid, cpu->comm);
	}
}

static bool load_next(const struct cpu *cpu, const struct tdm_id_plan *plan,
	const struct tdm_slot *slot, int32_t *tid)
{
	const struct tdm_field *const next = tdm_event_class_field(plan->event_class, "next_pid");

	if (!next || next->place != TDM_PLACE_FIXED || next->size_bytes != 4 ||
		slot->payload_bytes < next->offset_bytes + 4u) {
		return false;
	}
	*tid = (int32_t)tdm_load_u32(
		slot->payload + next->offset_bytes, cpu->conversion->layout.big_endian);
	return true;
}

static void put_switch(
	struct cpu *cpu, const struct tdm_id_plan *plan, const struct tdm_slot *slot, uint64_t time)
{
	int32_t next = 0;
	size_t length = 0;
	const char *comm = NULL;

	if (!load_next(cpu, plan, slot, &next)) {
		return;
	}
	close_slice(cpu, time);
	comm = tdm_task_names_find(cpu->names, next, &length);
	cpu->is_running = true;
	cpu->since = time;
	cpu->tid = next;
	snprintf(cpu->comm, sizeof(cpu->comm), "%.*s", (int)length, comm);
}

static void put_record(struct cpu *cpu, const struct tdm_id_plan *plan,
	const struct tdm_class_plan *class_plan, const struct tdm_slot *slot, uint64_t time)
{
	const struct tdm_shown_class *const shown = class_plan->copy.shown;
	struct tdm_json_file *const json = cpu->json;
	const size_t machine = cpu->machine;
	bool is_entry = false;
	const char *const call = tdm_json_call_of(shown->name, &is_entry);
	int32_t tid = -1;

	if (plan->tid_offset != UINT32_MAX) {
		tid = (int32_t)tdm_load_u32(
			slot->payload + plan->tid_offset, cpu->conversion->layout.big_endian);
	}
	if (strcmp(shown->name, "sched_switch") == 0) {
		put_switch(cpu, plan, slot, time);
	}
	if (call && tid >= 0) {
		size_t length = 0;
		const char *const comm = tdm_task_names_find(cpu->names, tid, &length);

		(void)tdm_task_census_see(
			cpu->census, tid, TDM_FIRST_RUNNING, cpu->cpu, time, comm, length);
		tdm_json_begin_event(
			json, is_entry ? "B" : "E", machine, TDM_JSON_TASK_TRACK + (uint64_t)tid);
	} else {
		tdm_json_begin_event(json, "i", machine, cpu->cpu);
		fputs(",\"s\":\"t\"", json->file);
	}
	tdm_json_put_time(json, "ts", shown_time(cpu->conversion, time));
	fputs(",\"cat\":", json->file);
	tdm_json_put_string(json, shown->source->system);
	fputs(",\"name\":", json->file);
	tdm_json_put_string(json, call && tid >= 0 ? call : shown->name);
	put_args(cpu, shown, slot, tid);
}

static const struct tdm_class_plan *plan_of(const struct tdm_convert_machine *conversion,
	const struct tdm_slot *slot, const struct tdm_id_plan **plan)
{
	const struct tdm_shown_class *shown = NULL;

	*plan = slot->event_id < conversion->id_count ? &conversion->by_id[slot->event_id] : NULL;
	if (!*plan || !(*plan)->event_class) {
		return NULL;
	}
	shown = tdm_names_class(
		conversion->names, (*plan)->event_class, slot->payload, slot->payload_bytes);
	return shown ? &conversion->plans[shown->index] : NULL;
}

static enum tdm_status write_cpu(struct tdm_json_file *json, size_t machine,
	struct tdm_convert_machine *conversion, uint32_t number, struct tdm_task_census *census)
{
	const struct tdm_convert_options *const options = conversion->options;
	struct tdm_convert_report *const report = conversion->report;
	struct tdm_cpu_scan *const scan = tdm_cpu_scan_create(conversion, number);
	struct cpu cpu = { .conversion = conversion,
		.json = json,
		.machine = machine,
		.names = tdm_task_names_create(conversion->trace),
		.census = census,
		.cpu = number };
	struct tdm_scanned scanned;
	enum tdm_status status = scan && cpu.names ? TDM_OK : TDM_ERR_NOMEM;
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", number);
	tdm_json_name_track(json, machine, number, name);
	while (status == TDM_OK && tdm_cpu_scan_next(scan, &scanned)) {
		const struct tdm_id_plan *plan = NULL;
		const struct tdm_class_plan *const class_plan =
			plan_of(conversion, scanned.slot, &plan);
		uint64_t time = scanned.time;

		report->records++;
		if (!class_plan || scanned.slot->payload_bytes < class_plan->copy.least_bytes) {
			report->unconverted++;
			continue;
		}
		if (time > conversion->limit_ns) {
			time = cpu.last_time;
			report->out_of_range++;
		}
		tdm_task_names_learn(cpu.names, plan->event_class, scanned.slot->payload,
			scanned.slot->payload_bytes);
		if (!class_plan->is_wanted || time < conversion->begin_ns ||
			time > conversion->end_ns) {
			report->left_out++;
			continue;
		}
		if (time < cpu.last_time) {
			time = cpu.last_time;
			report->clamped++;
		}
		cpu.last_time = time;
		put_record(&cpu, plan, class_plan, scanned.slot, time);
		atomic_store_explicit(&conversion->used[class_plan->id], 1, memory_order_relaxed);
		report->events++;
		if ((report->records & 4095) == 0 && options->stop && *options->stop) {
			status = TDM_END;
		}
	}
	close_slice(&cpu, cpu.last_time);
	if (scan) {
		tdm_cpu_scan_add_counts(scan, report);
	}
	tdm_cpu_scan_destroy(scan);
	tdm_task_names_destroy(cpu.names);
	return status;
}

static void name_tasks(
	struct tdm_json_file *json, size_t machine, const struct tdm_task_census *census)
{
	for (size_t i = 0; i < census->room; i++) {
		const struct tdm_seen_task *const task = &census->tasks[i];
		char name[64];

		if (task->used) {
			snprintf(name, sizeof(name), "%s (%" PRId32 ")", task->comm, task->tid);
			tdm_json_name_track(
				json, machine, TDM_JSON_TASK_TRACK + (uint64_t)task->tid, name);
		}
	}
}

static enum tdm_status write_machine(
	struct tdm_json_file *json, struct tdm_convert_machine *conversion)
{
	const struct tdm_trace_info *const info = conversion->info;
	struct tdm_task_census census = { 0 };
	enum tdm_status status = TDM_OK;
	const size_t machine =
		tdm_json_add_machine(json, conversion->machine->name, conversion->machine->is_host);

	for (size_t i = 0; i < info->stream_count && status == TDM_OK; i++) {
		bool is_first = tdm_selection_has_cpu(
			&conversion->options->selection, info->streams[i].cpu);

		for (size_t j = 0; j < i; j++) {
			is_first &= info->streams[j].cpu != info->streams[i].cpu;
		}
		if (is_first) {
			const uint64_t before = conversion->report->events;

			status =
				write_cpu(json, machine, conversion, info->streams[i].cpu, &census);
			conversion->report->cpu_count++;
			if (conversion->report->events > before) {
				tdm_selection_note_cpu(
					&conversion->options->selection, info->streams[i].cpu);
			}
		}
	}
	tdm_convert_machine_note_used(conversion);
	name_tasks(json, machine, &census);
	tdm_task_census_release(&census);
	return status;
}

enum tdm_status tdm_convert_put_json(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_json_file *json, struct tdm_convert_report *reports, struct tdm_error *err)
{
	const size_t count = tdm_machines_count(machines);
	struct tdm_convert_machine *const conversions = calloc(count + 1, sizeof(*conversions));
	enum tdm_status status;

	memset(reports, 0, count * sizeof(*reports));
	if (!conversions) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", count);
	}
	status = tdm_plan_machines(machines, options, log, reports, conversions, err);
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		status = write_machine(json, &conversions[i]);
		reports[i].path = strdup(json->path);
		if (status == TDM_ERR_NOMEM) {
			tdm_fail(err, status, "no memory for %s", json->path);
		}
	}
	for (size_t i = 0; i < count; i++) {
		tdm_convert_machine_release(&conversions[i]);
	}
	free(conversions);
	return status;
}
