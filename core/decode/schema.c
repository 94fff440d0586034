/* SPDX-License-Identifier: MIT */
#include "event_format_priv.h"
#include "schema_priv.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>

struct tdm_schema *tdm_schema_create(bool big_endian, unsigned int long_bytes)
{
	struct tdm_schema *schema = calloc(1, sizeof(*schema));

	if (schema) {
		schema->big_endian = big_endian;
		schema->long_bytes = long_bytes;
		schema->pid_offset = UINT16_MAX;
	}
	return schema;
}

void tdm_schema_destroy(struct tdm_schema *schema)
{
	if (!schema) {
		return;
	}
	tdm_arena_release(&schema->arena);
	free(schema->by_id);
	free(schema->in_order);
	free(schema);
}

static bool make_room(struct tdm_schema *schema, uint32_t id)
{
	if (id >= schema->id_room) {
		uint32_t room = schema->id_room ? schema->id_room : 1024;

		while (room <= id) {
			room *= 2;
		}

		struct tdm_event_class **by_id =
			realloc(schema->by_id, room * sizeof(struct tdm_event_class *));

		if (!by_id) {
			return false;
		}
		memset(by_id + schema->id_room, 0,
			(room - schema->id_room) * sizeof(struct tdm_event_class *));
		schema->by_id = by_id;
		schema->id_room = room;
	}
	if (schema->count == schema->room) {
		const size_t room = schema->room ? schema->room * 2 : 256;
		struct tdm_event_class **in_order =
			realloc(schema->in_order, room * sizeof(struct tdm_event_class *));

		if (!in_order) {
			return false;
		}
		schema->in_order = in_order;
		schema->room = room;
	}
	return true;
}

/*
 * The kernel declares caller[8] for what it prints itself, but writes as many entries as the stack had: the field
 * goes on to the end of the record.
 */
static void open_kernel_stack(struct tdm_event_class *event_class)
{
	if (strcmp(event_class->system, "ftrace") != 0 ||
		strcmp(event_class->name, "kernel_stack") != 0 || !event_class->field_count) {
		return;
	}

	struct tdm_field *last = &event_class->fields[event_class->field_count - 1];

	if (last->place == TDM_PLACE_FIXED && last->is_array) {
		last->place = TDM_PLACE_TRAILING;
		last->size_bytes = 0;
		last->element_count = 0;
		event_class->fixed_bytes = last->offset_bytes;
	}
}

/* What a program writes to trace_marker_raw is bytes, not text, though it is declared as "char buf[]". */
static void make_raw_data_bytes(struct tdm_event_class *event_class)
{
	if (strcmp(event_class->system, "ftrace") != 0 ||
		strcmp(event_class->name, "raw_data") != 0 || !event_class->field_count) {
		return;
	}

	struct tdm_field *last = &event_class->fields[event_class->field_count - 1];

	if (last->kind == TDM_FIELD_TEXT && last->place == TDM_PLACE_TRAILING) {
		last->kind = TDM_FIELD_UNSIGNED;
	}
}

enum tdm_status tdm_schema_add(struct tdm_schema *schema, const char *system, const char *text,
	size_t text_bytes, struct tdm_error *err)
{
	struct tdm_event_class parsed;
	enum tdm_status status = event_format_parse(
		&schema->arena, text, text_bytes, schema->long_bytes, &parsed, err);

	if (status != TDM_OK) {
		return status;
	}

	const struct tdm_event_class *known = tdm_schema_find(schema, parsed.id);

	if (known) {
		if (known->text_bytes == text_bytes && memcmp(known->text, text, text_bytes) == 0) {
			return TDM_OK;
		}
		return tdm_fail(err, TDM_ERR_FORMAT,
			"event %s:%s has ID %u, which %s:%s has already", system, parsed.name,
			parsed.id, known->system, known->name);
	}

	struct tdm_event_class *added = tdm_arena_alloc(&schema->arena, sizeof(*added));

	parsed.system = tdm_arena_text(&schema->arena, system, strlen(system));
	parsed.text = tdm_arena_text(&schema->arena, text, text_bytes);
	parsed.text_bytes = text_bytes;
	if (!added || !parsed.system || !parsed.text || !make_room(schema, parsed.id)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "event %s: no memory", parsed.name);
	}
	*added = parsed;
	open_kernel_stack(added);
	make_raw_data_bytes(added);
	schema->by_id[parsed.id] = added;
	schema->in_order[schema->count++] = added;
	if (schema->pid_offset == UINT16_MAX) {
		schema->pid_offset = added->pid_offset;
	}
	return TDM_OK;
}

const struct tdm_event_class *tdm_schema_find(const struct tdm_schema *schema, uint32_t id)
{
	return schema_find(schema, id);
}

const struct tdm_event_class *tdm_schema_find_name(
	const struct tdm_schema *schema, const char *system, const char *name)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct tdm_event_class *event_class = schema->in_order[i];

		if (strcmp(event_class->name, name) == 0 &&
			(!system || strcmp(event_class->system, system) == 0)) {
			return event_class;
		}
	}
	return NULL;
}

size_t tdm_schema_count(const struct tdm_schema *schema)
{
	return schema->count;
}

const struct tdm_event_class *tdm_schema_at(const struct tdm_schema *schema, size_t index)
{
	return schema->in_order[index];
}

bool tdm_schema_big_endian(const struct tdm_schema *schema)
{
	return schema->big_endian;
}

unsigned int tdm_schema_long_bytes(const struct tdm_schema *schema)
{
	return schema->long_bytes;
}

const struct tdm_field *tdm_event_class_field(
	const struct tdm_event_class *event_class, const char *name)
{
	for (uint32_t i = 0; i < event_class->field_count; i++) {
		if (strcmp(event_class->fields[i].name, name) == 0) {
			return &event_class->fields[i];
		}
	}
	return NULL;
}

static bool fits(uint64_t offset, uint64_t size, uint32_t payload_bytes)
{
	return offset <= payload_bytes && size <= payload_bytes - offset;
}

bool tdm_field_span(const struct tdm_field *field, const uint8_t *payload, uint32_t payload_bytes,
	bool big_endian, struct tdm_span *span)
{
	uint64_t offset = field->offset_bytes;
	uint64_t size = field->size_bytes;

	*span = (struct tdm_span){ payload, 0 };
	if (!fits(offset, size, payload_bytes)) {
		return false;
	}
	switch (field->place) {
	case TDM_PLACE_FIXED:
		break;
	case TDM_PLACE_DATA_LOC:
	case TDM_PLACE_REL_LOC: {
		const uint32_t locator = tdm_load_u32(payload + offset, big_endian);

		offset = (locator & 0xffff) +
			 (field->place == TDM_PLACE_REL_LOC ? offset + size : 0);
		size = locator >> 16;
		if (!fits(offset, size, payload_bytes)) {
			return false;
		}
		break;
	}
	case TDM_PLACE_TRAILING:
		size = payload_bytes - offset;
		size -= size % field->element_bytes;
		break;
	}
	span->bytes = payload + offset;
	span->size_bytes = (uint32_t)size;
	return true;
}
