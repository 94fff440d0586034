/* SPDX-License-Identifier: MIT */
/*
 * machine_plan.c - before a machine's records are copied: what each class becomes, which are wanted, where time begins;
 * and after: its metadata, and what could not be converted.
 */
#include "convert_priv.h"
#include "tandem_version.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ENV_MAX 40

/* The names by which an event can be asked for. */
struct event_names {
	const char *of[3];
	char full[512];
};

static void fill_names(const struct tdm_shown_class *shown, struct event_names *names)
{
	snprintf(names->full, sizeof(names->full), "%s:%s", shown->source->system,
		shown->source->name);
	names->of[0] = shown->name;
	names->of[1] = shown->source->name;
	names->of[2] = names->full;
}

void tdm_convert_machine_note_used(const struct tdm_convert_machine *conversion)
{
	for (size_t i = 0; i < conversion->plan_count; i++) {
		struct event_names names;

		if (atomic_load(&conversion->used[i])) {
			fill_names(conversion->plans[i].copy.shown, &names);
			tdm_selection_note_event(&conversion->options->selection, names.of, 3);
		}
	}
}

/* The event context: thread, its name, and the common fields, which all classes of a kernel share. */
static void plan_context(struct tdm_convert_machine *conversion)
{
	conversion->common_count = tdm_common_fields(conversion->schema, conversion->commons);
	conversion->context[0] = (struct tdm_ctf_member){ "tid", false, 4, true, false };
	conversion->context[1] = (struct tdm_ctf_member){ "procname", true, 0, false, false };
	conversion->context_count = 2;
	for (size_t i = 0; i < conversion->common_count; i++) {
		const struct tdm_common_field *const common = &conversion->commons[i];

		conversion->context[conversion->context_count++] =
			(struct tdm_ctf_member){ common->name, false, common->field->size_bytes,
				common->field->kind == TDM_FIELD_SIGNED, false };
	}
	conversion->has_samples = conversion->info->format == TDM_FORMAT_PERF;
	if (!conversion->has_samples) {
		return;
	}
	conversion->context[conversion->context_count++] =
		(struct tdm_ctf_member){ .name = "pid", .size_bytes = 4, .is_signed = true };
	conversion->context[conversion->context_count++] =
		(struct tdm_ctf_member){ .name = "guest", .size_bytes = 1 };
	if (conversion->info->has_callchains) {
		conversion->context[conversion->context_count++] = (struct tdm_ctf_member){
			.name = "callchain", .size_bytes = 4, .is_list = true
		};
	}
}

static void plan_pieces(const struct tdm_convert_machine *conversion, struct tdm_id_plan *plan)
{
	for (size_t i = 0; i < conversion->common_count; i++) {
		const struct tdm_common_field *const common = &conversion->commons[i];
		const struct tdm_field *const field =
			tdm_common_field_of(plan->event_class, common);
		struct tdm_common_piece piece = { UINT32_MAX, common->field->size_bytes };
		struct tdm_common_piece *const last =
			plan->piece_count ? &plan->pieces[plan->piece_count - 1] : NULL;

		if (field &&
			field->offset_bytes + field->size_bytes <= plan->event_class->fixed_bytes) {
			piece.from_bytes = field->offset_bytes;
		}
		if (last && piece.from_bytes != UINT32_MAX && last->from_bytes != UINT32_MAX &&
			last->from_bytes + last->size_bytes == piece.from_bytes) {
			last->size_bytes += piece.size_bytes;
		} else {
			plan->pieces[plan->piece_count++] = piece;
		}
	}
}

static void plan_lessons(struct tdm_id_plan *plan)
{
	const struct tdm_event_class *const event_class = plan->event_class;
	const char *const name = event_class->name;

	plan->lesson_count = tdm_task_lessons(event_class, plan->lessons);
	if (strcmp(name, "sched_switch") == 0) {
		plan->firsts[0] = TDM_FIRST_RUNNING;
		plan->firsts[1] = TDM_FIRST_READY;
	} else if (strcmp(name, "sched_process_fork") == 0) {
		plan->firsts[0] = TDM_FIRST_RUNNING;
		plan->firsts[1] = TDM_FIRST_BORN;
	} else if (strcmp(name, "sched_wakeup_new") == 0 || strcmp(name, "task_newtask") == 0) {
		plan->firsts[0] = TDM_FIRST_BORN;
	} else if (strcmp(name, "sched_waking") == 0 || strcmp(name, "sched_wakeup") == 0) {
		plan->firsts[0] = TDM_FIRST_ASLEEP;
	} else {
		plan->firsts[0] = TDM_FIRST_RUNNING;
	}
}

static enum tdm_status plan_id(
	struct tdm_convert_machine *conversion, const struct tdm_event_class *event_class)
{
	const struct tdm_names_choice choice = tdm_names_get_choice(conversion->names, event_class);
	struct tdm_id_plan *const plan = &conversion->by_id[event_class->id];

	plan->event_class = event_class;
	plan->tid_offset = UINT32_MAX;
	if (event_class->fault) {
		return TDM_OK;
	}
	plan->fallback = choice.fallback ? &conversion->plans[choice.fallback->index] : NULL;
	if (event_class->pid_offset != UINT16_MAX &&
		event_class->pid_offset + 4u <= event_class->fixed_bytes) {
		plan->tid_offset = event_class->pid_offset;
	}
	plan_pieces(conversion, plan);
	plan_lessons(plan);
	if (!choice.by_number) {
		return TDM_OK;
	}
	plan->by = calloc(choice.table_count + 1, sizeof(struct tdm_class_plan *));
	if (!plan->by) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < choice.table_count; i++) {
		plan->by[i] = choice.by[i] ? &conversion->plans[choice.by[i]->index] : NULL;
	}
	plan->by_count = choice.table_count;
	plan->number_offset = choice.offset_bytes;
	plan->number_bytes = choice.size_bytes;
	return TDM_OK;
}

static enum tdm_status plan_classes(struct tdm_convert_machine *conversion)
{
	const struct tdm_schema *const schema = conversion->schema;
	const size_t count = tdm_names_count(conversion->names);

	conversion->plans = calloc(count + 1, sizeof(*conversion->plans));
	conversion->used = calloc(count + 1, sizeof(*conversion->used));
	conversion->short_records = calloc(count + 1, sizeof(*conversion->short_records));
	conversion->long_records = calloc(count + 1, sizeof(*conversion->long_records));
	conversion->bad_fields = calloc(count + 1, sizeof(*conversion->bad_fields));
	conversion->unknown_ids = calloc(TDM_IDS_MAX, sizeof(*conversion->unknown_ids));
	if (!conversion->plans || !conversion->used || !conversion->short_records ||
		!conversion->long_records || !conversion->bad_fields || !conversion->unknown_ids) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		const struct tdm_shown_class *const shown = tdm_names_at(conversion->names, i);
		struct tdm_class_plan *const plan = &conversion->plans[i];
		struct event_names names;

		if (tdm_copy_plan_make(shown, conversion->layout.big_endian, &plan->copy) !=
			TDM_OK) {
			return TDM_ERR_NOMEM;
		}
		conversion->plan_count++;
		plan->id = (uint32_t)i;
		fill_names(shown, &names);
		tdm_selection_near_event(&conversion->options->selection, names.of, 3);
		plan->is_wanted =
			tdm_selection_has_event(&conversion->options->selection, names.of, 3);
	}
	for (size_t i = 0; i < tdm_schema_count(schema); i++) {
		const uint32_t id = tdm_schema_at(schema, i)->id;

		if (id < TDM_IDS_MAX && id >= conversion->id_count) {
			conversion->id_count = id + 1u;
		}
	}
	conversion->by_id = calloc(conversion->id_count + 1, sizeof(*conversion->by_id));
	conversion->undecodable =
		calloc(conversion->id_count + 1, sizeof(*conversion->undecodable));
	if (!conversion->by_id || !conversion->undecodable) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < tdm_schema_count(schema); i++) {
		if (tdm_schema_at(schema, i)->id < TDM_IDS_MAX &&
			plan_id(conversion, tdm_schema_at(schema, i)) != TDM_OK) {
			return TDM_ERR_NOMEM;
		}
	}
	return TDM_OK;
}

/* A second UUID from a first: another one for the trace than for the machine's clock. */
static void derive_uuid(const uint8_t from[16], const char *salt, uint8_t to[16])
{
	uint64_t state = 0x9e3779b97f4a7c15u;

	for (const char *at = salt; *at; at++) {
		state = (state ^ (uint8_t)*at) * 0x100000001b3u;
	}
	for (size_t i = 0; i < 16; i++) {
		state = (state ^ from[i]) * 0x100000001b3u;
	}
	for (size_t i = 0; i < 16; i++) {
		/* splitmix64 */
		uint64_t mixed = state += 0x9e3779b97f4a7c15u;

		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
		mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
		to[i] = (uint8_t)(mixed >> 56);
	}
	to[6] = (uint8_t)((to[6] & 0x0f) | 0x80); /* version 8: made by a rule of our own */
	to[8] = (uint8_t)((to[8] & 0x3f) | 0x80);
}

enum tdm_status tdm_convert_machine_plan(
	struct tdm_convert_machine *conversion, struct tdm_error *err)
{
	const struct tdm_machine *const machine = conversion->machine;

	conversion->layout.big_endian = tdm_schema_big_endian(conversion->schema);
	derive_uuid(machine->clock_uuid, machine->name, conversion->layout.trace_uuid);
	conversion->names = tdm_names_create(
		conversion->schema, conversion->options->style, conversion->info->architecture);
	plan_context(conversion);
	if (!conversion->names || plan_classes(conversion) != TDM_OK) {
		return tdm_fail(
			err, TDM_ERR_NOMEM, "no memory for the event classes of %s", machine->path);
	}
	conversion->layout.compact =
		conversion->plan_count + TDM_MADE_COUNT <= TDM_CTF_COMPACT_IDS_MAX;
	conversion->epoch_offset_ns = machine->epoch_offset_ns;
	return TDM_OK;
}

void tdm_convert_machine_set_bias(struct tdm_convert_machine *conversions, size_t count)
{
	uint64_t bias_ns = 0;

	/* One ns before the first record is for what is made up. */
	for (size_t i = 0; i < count; i++) {
		bias_ns = tdm_machine_bias_ns(&conversions[i].start, 1, bias_ns);
	}
	for (size_t i = 0; i < count; i++) {
		struct tdm_convert_machine *const conversion = &conversions[i];
		const struct tdm_convert_selection *const selection =
			&conversion->options->selection;
		const int64_t first_ns = conversion->start.first_ns;
		const bool any = conversion->start.has_records;

		const int64_t offset_ns = conversion->epoch_offset_ns - (int64_t)bias_ns;

		conversion->bias_ns = bias_ns;
		conversion->limit_ns =
			offset_ns > 0 ? INT64_MAX - (uint64_t)offset_ns : (uint64_t)INT64_MAX;
		conversion->first_ns = any ? (uint64_t)first_ns + bias_ns : UINT64_MAX;
		if (any && conversion->first_ns > conversion->limit_ns) {
			conversion->first_ns = 0;
		}
		conversion->begin_ns = 0;
		conversion->end_ns = UINT64_MAX;
		if (selection->has_begin) {
			const int64_t begin = selection->begin_ns - conversion->epoch_offset_ns;

			conversion->begin_ns =
				any && begin < first_ns ? 0 : (uint64_t)begin + bias_ns;
			if (conversion->first_ns < conversion->begin_ns) {
				conversion->first_ns = conversion->begin_ns;
			}
		}
		if (selection->has_end) {
			const int64_t end = selection->end_ns - conversion->epoch_offset_ns;

			conversion->end_ns = any && end < first_ns ? 0 : (uint64_t)end + bias_ns;
		}
	}
}

static const char *correction_words(const struct tdm_machine *machine)
{
	return machine->corrections_path ? machine->corrections_path : tdm_tie_words(machine->tie);
}

struct env_list {
	struct tdm_ctf_env of[ENV_MAX];
	size_t count;
};

static void env_text(struct env_list *env, const char *name, const char *text)
{
	if (text && env->count < ENV_MAX) {
		env->of[env->count++] = (struct tdm_ctf_env){ name, text, 0 };
	}
}

static void env_number(struct env_list *env, const char *name, int64_t number)
{
	if (env->count < ENV_MAX) {
		env->of[env->count++] = (struct tdm_ctf_env){ name, NULL, number };
	}
}

static void fill_env(const struct tdm_convert_machine *conversion, struct env_list *env,
	char *trace_id, size_t trace_id_bytes, char *made_up, size_t made_up_bytes)
{
	const struct tdm_trace_info *const info = conversion->info;
	const struct tdm_machine *const machine = conversion->machine;
	const bool lttng = conversion->options->style == TDM_NAMES_LTTNG;
	const struct tdm_clock_unit unit = tdm_clock_unit_of(info, info->clock, 0);

	env_text(env, "hostname", info->hostname ? info->hostname : machine->name);
	env_text(env, "domain", "kernel");
	env_text(env, "sysname", "Linux");
	env_text(env, "kernel_release", info->kernel_release);
	env_text(env, "architecture", info->architecture);
	/* The layout of names that Trace Compass uses follows from these three. */
	env_text(env, "tracer_name", lttng ? "lttng-modules" : "ftrace");
	env_number(env, "tracer_major", 2);
	env_number(env, "tracer_minor", 13);
	env_number(env, "tracer_patchlevel", 0);
	env_text(env, "trace_name", machine->name);
	env_text(env, "tandem_version", TDM_VERSION);
	env_text(env, "tandem_source_tracer",
		info->recorder                    ? info->recorder
		: info->format == TDM_FORMAT_PERF ? "perf"
						  : "trace-cmd");
	env_text(env, "tandem_input", machine->path);
	env_text(env, "tandem_input_format",
		info->format == TDM_FORMAT_PERF ? "perf.data" : "trace.dat");
	env_text(env, "tandem_machine", machine->name);
	env_text(env, "tandem_role", machine->is_host ? "host" : "guest");
	env_text(env, "tandem_names", lttng ? "lttng" : "ftrace");
	env_text(env, "tandem_clock", info->clock);
	env_text(env, "tandem_clock_unit", unit.unit);
	env_text(env, "tandem_corrections", correction_words(machine));
	env_number(env, "tandem_bound_ns", conversion->report->bound_ns);
	if (info->has_trace_id) {
		snprintf(trace_id, trace_id_bytes, "0x%016" PRIx64, info->trace_id);
		env_text(env, "tandem_trace_id", trace_id);
	}
	snprintf(made_up, made_up_bytes, "%s%s%s",
		conversion->made_up_used[TDM_MADE_STATEDUMP] ? "lttng_statedump_process_state" : "",
		conversion->made_up_used[TDM_MADE_VMSYNC_GH_GUEST] ? ",vmsync_gh_guest" : "",
		conversion->made_up_used[TDM_MADE_VMSYNC_GH_HOST] ? ",vmsync_gh_host" : "");
	env_text(env, "tandem_synthetic_events", made_up);
}

static bool is_never_taken(const void *user, const char *name)
{
	(void)user;
	(void)name;
	return false;
}

/* A clock's name as an identifier, which no word of the language is. */
static void clock_identifier(const char *clock, char name[TDM_MEMBER_NAME_BYTES])
{
	static const char *const plain[] = { "monotonic", "counter", "uptime", "realtime" };
	bool is_plain;

	if (!*clock || strcmp(clock, "mono") == 0) {
		clock = "monotonic";
	}
	is_plain = tdm_clock_counts_ns(clock);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		is_plain = is_plain || strcmp(plain[i], clock) == 0;
	}
	if (is_plain) {
		snprintf(name, TDM_MEMBER_NAME_BYTES, "%s", clock);
		return;
	}
	tdm_member_name(strchr(clock, '-') ? "" : "clock_", clock, "", is_never_taken, NULL, name);
}

static enum tdm_status put_made_up_classes(
	const struct tdm_convert_machine *conversion, struct tdm_buffer *text)
{
	static const char *const names[TDM_MADE_COUNT] = { "lttng_statedump_process_state",
		"vmsync_gh_guest", "vmsync_gh_host" };
	enum tdm_status status = TDM_OK;

	for (unsigned int i = 0; i < TDM_MADE_COUNT && status == TDM_OK; i++) {
		const bool is_dump = i == TDM_MADE_STATEDUMP;

		if (conversion->made_up_used[i]) {
			status = tdm_ctf_metadata_made_up(text, names[i],
				tdm_made_up_id(conversion, (enum tdm_made_up)i),
				is_dump ? tdm_state_dump_members : tdm_sync_members,
				is_dump ? tdm_state_dump_member_count : tdm_sync_member_count);
		}
	}
	return status;
}

enum tdm_status tdm_convert_machine_write_metadata(
	struct tdm_convert_machine *conversion, struct tdm_error *err)
{
	const char *const clock = conversion->info->clock ? conversion->info->clock : "";
	struct tdm_buffer text = { 0 }, events = { 0 };
	struct env_list env = { 0 };
	char clock_name[TDM_MEMBER_NAME_BYTES];
	char description[160];
	char trace_id[32];
	char made_up[160];
	enum tdm_status status;

	clock_identifier(clock, clock_name);
	snprintf(description, sizeof(description), "%s of %s", *clock ? clock : "trace clock",
		conversion->machine->tie == TDM_TIE_SELF || conversion->machine->tie == TDM_TIE_NONE
			? "this machine"
			: "the host, to which this machine's was corrected");
	fill_env(conversion, &env, trace_id, sizeof(trace_id), made_up, sizeof(made_up));

	struct tdm_ctf_trace trace = {
		.layout = &conversion->layout,
		.clock_name = clock_name,
		.clock_description = description,
		.clock_offset_ns = conversion->epoch_offset_ns,
		.clock_bias_ns = conversion->bias_ns,
		.env = env.of,
		.env_count = env.count,
		.context = conversion->context,
		.context_count = conversion->context_count,
	};

	memcpy(trace.clock_uuid, conversion->machine->clock_uuid, sizeof(trace.clock_uuid));
	status = TDM_OK;
	for (size_t i = 0; i < conversion->plan_count && status == TDM_OK; i++) {
		if (atomic_load(&conversion->used[i])) {
			status = tdm_ctf_metadata_event(
				&events, conversion->plans[i].copy.shown, conversion->plans[i].id);
		}
	}
	if (status == TDM_OK) {
		status = put_made_up_classes(conversion, &events);
	}
	if (status == TDM_OK) {
		/* A sequence in the context of events that do not exist: babeltrace2 aborts on it. */
		trace.context_count = events.size ? trace.context_count : 0;
		status = tdm_ctf_metadata_begin(&text, &trace);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_append(&text, events.bytes, events.size);
	}
	tdm_buffer_release(&events);
	if (status != TDM_OK) {
		tdm_fail(
			err, status, "no memory for the metadata of %s", conversion->machine->path);
	} else {
		status = tdm_ctf_dir_put(&conversion->dir, "metadata", &text, err);
	}
	tdm_buffer_release(&text);
	return status;
}

void tdm_convert_machine_say_problems(struct tdm_convert_machine *conversion)
{
	const char *const path = conversion->machine->path;
	const struct tdm_log *const log = conversion->log;

	for (uint32_t id = 0; conversion->unknown_ids && id < TDM_IDS_MAX; id++) {
		if (conversion->unknown_ids[id]) {
			TDM_WARNING(log,
				"%s: %" PRIu64 " records have id %" PRIu32
				", which no format in the file describes: not converted",
				path, (uint64_t)conversion->unknown_ids[id], id);
		}
	}
	for (size_t id = 0; id < conversion->id_count; id++) {
		const struct tdm_event_class *const event_class = conversion->by_id[id].event_class;

		if (event_class && conversion->undecodable[id]) {
			TDM_WARNING(log, "%s: %" PRIu64 " records of %s:%s: not converted: %s",
				path, (uint64_t)conversion->undecodable[id], event_class->system,
				event_class->name,
				event_class->fault ? event_class->fault : "no way to show them");
		}
	}
	for (size_t i = 0; i < conversion->plan_count; i++) {
		const struct tdm_copy_plan *const copy = &conversion->plans[i].copy;

		if (conversion->short_records[i]) {
			TDM_WARNING(log,
				"%s: %" PRIu64 " records of %s are shorter than the %" PRIu32
				" bytes of the format: not converted",
				path, (uint64_t)conversion->short_records[i], copy->shown->name,
				copy->least_bytes);
		}
		if (conversion->long_records[i]) {
			TDM_WARNING(log,
				"%s: %" PRIu64
				" records of %s come out longer than a packet of %d bytes: not converted",
				path, (uint64_t)conversion->long_records[i], copy->shown->name,
				TDM_CTF_PACKET_ROOM_BYTES);
		}
		if (conversion->bad_fields[i]) {
			TDM_WARNING(log,
				"%s: %" PRIu64
				" fields of %s lie outside their records: written empty",
				path, (uint64_t)conversion->bad_fields[i], copy->shown->name);
		}
	}
}

void tdm_convert_machine_release(struct tdm_convert_machine *conversion)
{
	for (size_t i = 0; i < conversion->plan_count; i++) {
		tdm_copy_plan_release(&conversion->plans[i].copy);
	}
	for (size_t i = 0; conversion->by_id && i < conversion->id_count; i++) {
		free(conversion->by_id[i].by);
	}
	free(conversion->plans);
	free(conversion->by_id);
	free(conversion->used);
	free(conversion->short_records);
	free(conversion->long_records);
	free(conversion->bad_fields);
	free(conversion->unknown_ids);
	free(conversion->undecodable);
	free(conversion->vcpus);
	free(conversion->syncs);
	tdm_task_census_release(&conversion->census);
	tdm_ctf_dir_release(&conversion->dir);
	tdm_names_destroy(conversion->names);
}
