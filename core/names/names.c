/* SPDX-License-Identifier: MIT */
/*
 * names.c - shown classes: a schema's event classes under the names of a style.
 */
#include "names_priv.h"
#include "syscall_tables.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>

#define IDS_MAX        65536u /* common_type is 16 bits wide: a class with a greater id has no records */
#define NAME_BYTES_MAX 4096u

/* What one class of the tracer is shown as. */
struct group {
	const struct tdm_event_class *source;
	struct tdm_names_choice choice;
};

/* One piece of memory that lives as long as the names. */
struct piece {
	struct piece *next;
	max_align_t bytes[];
};

struct tdm_names {
	const struct tdm_schema *schema;
	enum tdm_names_style style;
	enum tdm_machine machine;
	size_t schema_count;  /* classes of the schema that were looked at */
	struct group **by_id; /* by_id_count entries */
	size_t by_id_count;
	const struct tdm_shown_class **classes;
	size_t class_count, class_room;
	struct piece *pieces;
	bool no_memory; /* an allocation failed */
};

static void *take(struct tdm_names *names, size_t count, size_t size_bytes)
{
	struct piece *const piece = calloc(1, sizeof(*piece) + count * size_bytes);

	if (!piece) {
		names->no_memory = true;
		return NULL;
	}
	piece->next = names->pieces;
	names->pieces = piece;
	return piece->bytes;
}

static const char *take_text(struct tdm_names *names, const char *text, size_t length)
{
	char *const copy = take(names, length + 1, 1);

	if (copy) {
		memcpy(copy, text, length);
	}
	return copy;
}

/* Adds a class and gives it its index. NULL without memory. */
static const struct tdm_shown_class *add_class(struct tdm_names *names, const char *name,
	const struct tdm_event_class *source, const struct tdm_shown_field *fields,
	uint32_t field_count)
{
	struct tdm_shown_class *const shown = take(names, 1, sizeof(*shown));
	const char *const own_name = take_text(names, name, strnlen(name, NAME_BYTES_MAX));

	if (!shown || !own_name || (field_count && !fields)) {
		return NULL;
	}
	if (names->class_count == names->class_room) {
		const size_t room = names->class_room ? names->class_room * 2 : 256;
		const struct tdm_shown_class **const grown =
			realloc(names->classes, room * sizeof(*grown));

		if (!grown) {
			names->no_memory = true;
			return NULL;
		}
		names->classes = grown;
		names->class_room = room;
	}
	shown->index = (uint32_t)names->class_count;
	shown->name = own_name;
	shown->source = source;
	shown->fields = fields;
	shown->field_count = field_count;
	names->classes[names->class_count++] = shown;
	return shown;
}

static bool is_taken(const struct tdm_shown_field *fields, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(fields[i].field.unique_name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_named(const struct tdm_event_class *event_class, const char *name)
{
	for (uint32_t i = event_class->common_count; i < event_class->field_count; i++) {
		if (strcmp(event_class->fields[i].unique_name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* The kernel widens every argument of a call to a long; LTTng shows the type that the call declares. */
static void narrow_argument(struct tdm_field *field, bool big_endian)
{
	static const char *const signed_types[] = { "int", "pid_t", "clockid_t", "key_t", "timer_t",
		"mqd_t", "key_serial_t", "rwf_t", "s32", "__s32" };
	static const char *const unsigned_types[] = { "unsigned int", "unsigned", "uid_t", "gid_t",
		"umode_t", "mode_t", "qid_t", "u32", "__u32", "uint32_t" };
	const char *type = field->type_name;
	enum tdm_field_kind kind = field->kind;
	bool narrow = false;

	if (field->is_array || field->size_bytes != 8 || field->place != TDM_PLACE_FIXED ||
		(kind != TDM_FIELD_UNSIGNED && kind != TDM_FIELD_SIGNED)) {
		return;
	}
	if (strncmp(type, "const ", 6) == 0) {
		type += 6;
	}
	for (size_t i = 0; i < sizeof(signed_types) / sizeof(signed_types[0]); i++) {
		if (strcmp(type, signed_types[i]) == 0) {
			kind = TDM_FIELD_SIGNED;
			narrow = true;
		}
	}
	for (size_t i = 0; i < sizeof(unsigned_types) / sizeof(unsigned_types[0]); i++) {
		if (strcmp(type, unsigned_types[i]) == 0) {
			kind = TDM_FIELD_UNSIGNED;
			narrow = true;
		}
	}
	if (narrow) {
		field->kind = kind;
		field->size_bytes = 4;
		field->element_bytes = 4;
		field->offset_bytes += big_endian ? 4 : 0;
	}
}

/* "__filename_val" is the text behind the pointer "filename": it gets the name, the pointer a longer one. */
static const char *syscall_field_name(struct tdm_names *names,
	const struct tdm_event_class *event_class, const struct tdm_field *field)
{
	const char *const name = field->unique_name;
	const size_t length = strlen(name);
	char other[256];

	if (length > 6 && length < sizeof(other) && strncmp(name, "__", 2) == 0 &&
		strcmp(name + length - 4, "_val") == 0) {
		snprintf(other, sizeof(other), "%.*s", (int)(length - 6), name + 2);
		return is_named(event_class, other) ? take_text(names, other, length - 6) : name;
	}
	if (field->kind == TDM_FIELD_POINTER && length + 16 < sizeof(other)) {
		snprintf(other, sizeof(other), "__%s_val", name);
		if (is_named(event_class, other)) {
			snprintf(other, sizeof(other), "%s_address", name);
			return take_text(names, other, strlen(other));
		}
	}
	return name;
}

static void show_lttng_field(struct tdm_names *names, const struct tdm_event_class *event_class,
	struct tdm_shown_field *shown, const struct tdm_shown_field *before, uint32_t before_count)
{
	const struct tdm_field *const field = &shown->field;
	struct tdm_lttng_field lttng = tdm_lttng_field(event_class, field);

	if (strcmp(event_class->system, "syscalls") == 0) {
		lttng.name = syscall_field_name(names, event_class, field);
		narrow_argument(&shown->field, tdm_schema_big_endian(names->schema));
	}
	if (lttng.name && strcmp(lttng.name, field->unique_name) != 0 &&
		!is_taken(before, before_count, lttng.name) &&
		(lttng.name[0] == '_' || !is_named(event_class, lttng.name) ||
			strcmp(event_class->system, "syscalls") == 0)) {
		shown->field.name = lttng.name;
		shown->field.unique_name = lttng.name;
	}
	shown->conversion = lttng.conversion;
}

/* True for the number of the call in syscalls:*: LTTng has it in the event's name alone. */
static bool is_call_number(const struct tdm_event_class *event_class, uint32_t index)
{
	const char *const name = event_class->fields[index].name;

	return strcmp(event_class->system, "syscalls") == 0 && index == event_class->common_count &&
	       (strcmp(name, "__syscall_nr") == 0 || strcmp(name, "nr") == 0);
}

static const struct tdm_shown_class *show_plain(
	struct tdm_names *names, const struct tdm_event_class *event_class)
{
	const uint32_t count = event_class->field_count - event_class->common_count;
	struct tdm_shown_field *const fields = take(names, count, sizeof(*fields));
	uint32_t used = 0;
	char room[NAME_BYTES_MAX];
	const char *name = event_class->name;

	if (!fields) {
		return NULL;
	}
	for (uint32_t i = event_class->common_count; i < event_class->field_count; i++) {
		if (names->style == TDM_NAMES_LTTNG && is_call_number(event_class, i)) {
			continue;
		}
		fields[used].field = event_class->fields[i];
		fields[used].field.name = fields[used].field.unique_name;
		if (names->style == TDM_NAMES_LTTNG) {
			show_lttng_field(names, event_class, &fields[used], fields, used);
		}
		used++;
	}
	if (names->style == TDM_NAMES_LTTNG) {
		name = tdm_lttng_event_name(event_class, names->machine, room, sizeof(room));
	}
	return add_class(names, name, event_class, fields, used);
}

/* Fields of a call's entry by the names of its arguments; NULL where they are not known (or without memory). */
static const struct tdm_shown_field *argument_fields(
	struct tdm_names *names, const char *call, const struct tdm_field *args, uint32_t *count)
{
	static const char clone_backwards[] =
		"Uclone_flags Unewsp pparent_tidptr Utls pchild_tidptr";
	const bool big_endian = tdm_schema_big_endian(names->schema);
	const char *text = tdm_names_syscall_arguments(call);
	const uint32_t word = args->element_bytes;
	struct tdm_shown_field *fields = NULL;

	if (text && strcmp(call, "clone") == 0 && names->machine != TDM_MACHINE_X86_64) {
		text = clone_backwards;
	}
	/* A 64-bit argument takes two words of a 32-bit machine: which, is not known here. */
	if (!text || (word != 8 && strcmp(call, "futex") != 0)) {
		return NULL;
	}
	fields = take(names, args->element_count, sizeof(*fields));
	*count = 0;
	for (uint32_t i = 0; fields && *text && i < args->element_count; i++) {
		const size_t length = strcspn(text, " ");
		struct tdm_field *const field = &fields[i].field;
		const bool narrow = word == 8 && (text[0] == 'd' || text[0] == 'u');

		*field = *args;
		field->name = take_text(names, text + 1, length - 1);
		field->unique_name = field->name;
		field->kind = text[0] == 'p'                     ? TDM_FIELD_POINTER
			      : text[0] == 'd' || text[0] == 'D' ? TDM_FIELD_SIGNED
								 : TDM_FIELD_UNSIGNED;
		field->is_array = false;
		field->element_count = 0;
		field->element_bytes = narrow ? 4 : word;
		field->size_bytes = field->element_bytes;
		field->offset_bytes =
			args->offset_bytes + i * word + (narrow && big_endian ? 4 : 0);
		if (!field->name) {
			return NULL;
		}
		*count = i + 1;
		text += length;
		text += *text == ' ';
	}
	return fields;
}

/* Calls of 32-bit programs carry no mark in raw_syscalls, but the numbers that x86_64 leaves out are theirs alone. */
static const char *compat_name(const struct tdm_names *names, size_t number)
{
	const struct tdm_syscall_table *const table = tdm_names_syscall_table(TDM_MACHINE_I386);

	return names->machine == TDM_MACHINE_X86_64 && number >= 337 && number < 424 &&
			       number < table->count
		       ? table->names[number]
		       : NULL;
}

static bool is_raw_syscall(const struct tdm_event_class *event_class, bool *entry)
{
	const struct tdm_field *const id = tdm_event_class_field(event_class, "id");

	*entry = strcmp(event_class->name, "sys_enter") == 0;
	return strcmp(event_class->system, "raw_syscalls") == 0 &&
	       (*entry || strcmp(event_class->name, "sys_exit") == 0) && id &&
	       id->place == TDM_PLACE_FIXED && !id->is_array &&
	       (id->kind == TDM_FIELD_SIGNED || id->kind == TDM_FIELD_UNSIGNED);
}

/* raw_syscalls:sys_enter and sys_exit: a class for each call, and one for numbers without a name. */
static bool show_raw_syscall(
	struct tdm_names *names, const struct tdm_event_class *event_class, struct group *group)
{
	bool entry = false;

	if (!is_raw_syscall(event_class, &entry)) {
		return false;
	}

	const struct tdm_syscall_table *const table = tdm_names_syscall_table(names->machine);
	const struct tdm_field *const id = tdm_event_class_field(event_class, "id");
	const struct tdm_field *const args =
		entry ? tdm_event_class_field(event_class, "args") : NULL;
	const size_t count = table ? table->count : 0;
	const struct tdm_shown_class **const by = take(names, count + 1, sizeof(*by));
	const uint32_t all_count = event_class->field_count - event_class->common_count;
	struct tdm_shown_field *const all = take(names, all_count, sizeof(*all));
	struct tdm_shown_field *const rest =
		take(names, all_count, sizeof(*rest)); /* without the number */
	uint32_t rest_count = 0;

	if (!by || !all || !rest) {
		return true;
	}
	for (uint32_t i = 0; i < all_count; i++) {
		const struct tdm_field *const field =
			&event_class->fields[event_class->common_count + i];

		all[i].field = *field;
		all[i].field.name = field->unique_name;
		if (field != id) {
			rest[rest_count++] = all[i];
		}
	}
	for (size_t number = 0; number < count; number++) {
		const char *const native = table->names[number];
		const char *const call = native ? native : compat_name(names, number);
		const struct tdm_shown_field *fields = NULL;
		uint32_t field_count = 0;
		char room[128];

		if (!call) {
			continue;
		}
		if (native && args && args->place == TDM_PLACE_FIXED && args->is_array &&
			rest_count == 1 && (args->element_bytes == 8 || args->element_bytes == 4)) {
			fields = argument_fields(names, call, args, &field_count);
		}
		snprintf(room, sizeof(room), "%ssyscall_%s_%s", native ? "" : "compat_",
			entry ? "entry" : "exit", call);
		by[number] = add_class(names, room, event_class, fields ? fields : rest,
			fields ? field_count : rest_count);
	}
	group->choice.by_number = true;
	group->choice.offset_bytes = id->offset_bytes;
	group->choice.size_bytes = id->size_bytes;
	group->choice.by = by;
	group->choice.table_count = count;
	group->choice.fallback =
		add_class(names, entry ? "syscall_entry_unknown" : "syscall_exit_unknown",
			event_class, all, all_count);
	return true;
}

static enum tdm_status grow_ids(struct tdm_names *names, uint32_t id)
{
	const size_t wanted = (id | 1023u) + 1u;
	struct group **grown = NULL;

	if (id < names->by_id_count) {
		return TDM_OK;
	}
	grown = realloc(names->by_id, wanted * sizeof(*grown));
	if (!grown) {
		return TDM_ERR_NOMEM;
	}
	memset(grown + names->by_id_count, 0, (wanted - names->by_id_count) * sizeof(*grown));
	names->by_id = grown;
	names->by_id_count = wanted;
	return TDM_OK;
}

/* Shown classes of all that the schema has. */
static enum tdm_status show_all(struct tdm_names *names)
{
	const size_t count = tdm_schema_count(names->schema);

	names->no_memory = false;
	for (; names->schema_count < count; names->schema_count++) {
		const struct tdm_event_class *const event_class =
			tdm_schema_at(names->schema, names->schema_count);
		struct group *group = NULL;

		if (event_class->id >= IDS_MAX) {
			continue;
		}
		group = take(names, 1, sizeof(*group));
		if (!group || grow_ids(names, event_class->id) != TDM_OK) {
			return TDM_ERR_NOMEM;
		}
		group->source = event_class;
		if (!event_class->fault && (names->style != TDM_NAMES_LTTNG ||
						   !show_raw_syscall(names, event_class, group))) {
			group->choice.fallback = show_plain(names, event_class);
		}
		if (names->no_memory) {
			return TDM_ERR_NOMEM;
		}
		names->by_id[event_class->id] = group;
	}
	return TDM_OK;
}

struct tdm_names *tdm_names_create(
	const struct tdm_schema *schema, enum tdm_names_style style, const char *architecture)
{
	struct tdm_names *const names = calloc(1, sizeof(*names));

	if (!names) {
		return NULL;
	}
	names->schema = schema;
	names->style = style;
	names->machine = tdm_names_machine(architecture, tdm_schema_long_bytes(schema));
	if (show_all(names) != TDM_OK) {
		tdm_names_destroy(names);
		return NULL;
	}
	return names;
}

void tdm_names_destroy(struct tdm_names *names)
{
	if (!names) {
		return;
	}
	for (struct piece *piece = names->pieces; piece;) {
		struct piece *const next = piece->next;

		free(piece);
		piece = next;
	}
	free(names->by_id);
	free(names->classes);
	free(names);
}

static const struct group *find_group(
	const struct tdm_names *names, const struct tdm_event_class *event_class)
{
	const struct group *const group =
		event_class->id < names->by_id_count ? names->by_id[event_class->id] : NULL;

	return group && group->source == event_class ? group : NULL;
}

const struct tdm_shown_class *tdm_names_class(const struct tdm_names *names,
	const struct tdm_event_class *event_class, const uint8_t *payload, uint32_t payload_bytes)
{
	const struct group *const group = find_group(names, event_class);

	if (!group) {
		return NULL;
	}

	const struct tdm_names_choice *const choice = &group->choice;

	if (choice->by_number && choice->size_bytes <= payload_bytes &&
		choice->offset_bytes <= payload_bytes - choice->size_bytes) {
		const uint64_t number = tdm_load_uint(payload + choice->offset_bytes,
			choice->size_bytes, tdm_schema_big_endian(names->schema));

		if (number < choice->table_count && choice->by[number]) {
			return choice->by[number];
		}
	}
	return choice->fallback;
}

struct tdm_names_choice tdm_names_get_choice(
	const struct tdm_names *names, const struct tdm_event_class *event_class)
{
	const struct group *const group = find_group(names, event_class);

	return group ? group->choice : (struct tdm_names_choice){ 0 };
}

size_t tdm_names_count(const struct tdm_names *names)
{
	return names->class_count;
}

const struct tdm_shown_class *tdm_names_at(const struct tdm_names *names, size_t index)
{
	return index < names->class_count ? names->classes[index] : NULL;
}

bool tdm_shown_is_printk(
	const struct tdm_shown_class *shown_class, const struct tdm_shown_field *shown)
{
	const struct tdm_event_class *const source = shown_class->source;
	const struct tdm_field *const field = &shown->field;

	return strcmp(field->name, "fmt") == 0 && strcmp(source->system, "ftrace") == 0 &&
	       (strcmp(source->name, "bprint") == 0 || strcmp(source->name, "bputs") == 0) &&
	       field->place == TDM_PLACE_FIXED && !field->is_array;
}
