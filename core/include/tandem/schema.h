/* SPDX-License-Identifier: MIT */
/*
 * schema.h - what the records of a trace mean: event classes and their fields, from the kernel's format texts.
 *
 * trace.dat and perf.data carry the same texts and the same record bytes, so both readers give these.
 */
#ifndef TANDEM_SCHEMA_H
#define TANDEM_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/log.h>
#include <tandem/status.h>

/* What one element of a field is. */
enum tdm_field_kind {
	TDM_FIELD_UNSIGNED, /* integer of 1 to 8 bytes */
	TDM_FIELD_SIGNED,   /* integer of 1 to 8 bytes */
	TDM_FIELD_BOOL,     /* 1 byte; shown as an unsigned integer */
	TDM_FIELD_POINTER,  /* 4 or 8 bytes, unsigned, shown in hexadecimal */
	TDM_FIELD_WIDE,     /* 16-byte integer: shown as an array of two u64, low half first */
	TDM_FIELD_TEXT,     /* char array: text up to its first NUL or its end */
	TDM_FIELD_CPUMASK,  /* array of unsigned longs */
};

/* Where the bytes of a field are. */
enum tdm_field_place {
	TDM_PLACE_FIXED, /* at offset_bytes, size_bytes long */
	TDM_PLACE_DATA_LOC, /* a u32 at offset_bytes: low half offset from the record's start, high half length */
	TDM_PLACE_REL_LOC,  /* the same, the offset counts from the end of the u32 */
	TDM_PLACE_TRAILING, /* from offset_bytes to the end of the record */
};

struct tdm_field {
	const char *name; /* as the format text has it; owned by the schema */
	const char *
		unique_name; /* the name, suffixed where the class has it twice or it is a C keyword */
	const char *type_name; /* C type without name and array part, e.g. "unsigned long" */
	enum tdm_field_kind kind;
	enum tdm_field_place place;
	bool is_array; /* several elements (also CPUMASK); TEXT is never an array of texts */
	uint32_t offset_bytes;  /* of the field's own bytes from the record's start */
	uint32_t size_bytes;    /* of the field's own bytes; 4 for locators, 0 for trailing */
	uint32_t element_bytes; /* of one element */
	uint32_t element_count; /* of FIXED arrays; 0 where the record decides */
};

struct tdm_event_class {
	uint32_t id;        /* common_type of its records */
	const char *system; /* e.g. "sched"; owned by the schema */
	const char *name;   /* e.g. "sched_switch" */
	const char *
		text; /* the format text, text_bytes long, not NUL-terminated; lives as long as the schema */
	size_t text_bytes;
	struct tdm_field *fields; /* the common ones first, in the order of the text */
	uint32_t common_count;
	uint32_t field_count; /* common ones included */
	uint32_t fixed_bytes; /* the least size of a record: end of the last fixed field */
	uint16_t pid_offset;  /* of common_pid, 4 bytes; UINT16_MAX = none */
	const char *fault;    /* NULL, or why its records cannot be decoded */
};

struct tdm_schema; /* opaque */

/** @return An empty schema that the caller owns, or NULL without memory. */
struct tdm_schema *tdm_schema_create(bool big_endian, unsigned int long_bytes);
void tdm_schema_destroy(struct tdm_schema *schema);

/**
 * Parses one format text and adds its class. A text that cannot be understood adds a class with a fault where at
 * least its ID could be read, so that its records are counted under a name; "print fmt" is not looked at.
 *
 * @param system  Name of the system; borrowed for the call.
 * @param text    The format text; copied.
 * @retval TDM_ERR_FORMAT  Not even an ID, or an id that exists with another text (the first one stays).
 */
enum tdm_status tdm_schema_add(struct tdm_schema *schema, const char *system, const char *text,
	size_t text_bytes, struct tdm_error *err);

/** Class by id (common_type), or NULL. O(1). */
const struct tdm_event_class *tdm_schema_find(const struct tdm_schema *schema, uint32_t id);

/** Class by system and name (@p system may be NULL: any), or NULL. Linear; for set-up only. */
const struct tdm_event_class *tdm_schema_find_name(
	const struct tdm_schema *schema, const char *system, const char *name);

/** Number of classes, and the class at an index in order of addition. */
size_t tdm_schema_count(const struct tdm_schema *schema);
const struct tdm_event_class *tdm_schema_at(const struct tdm_schema *schema, size_t index);

bool tdm_schema_big_endian(const struct tdm_schema *schema);
unsigned int tdm_schema_long_bytes(const struct tdm_schema *schema);

/** Field of a class by its name, or NULL. */
const struct tdm_field *tdm_event_class_field(
	const struct tdm_event_class *event_class, const char *name);

/* Bytes of one field inside one record. */
struct tdm_span {
	const uint8_t *bytes; /* borrowed from the record */
	uint32_t size_bytes;
};

/**
 * Finds the bytes of a field in a record, locators followed and checked.
 *
 * @param payload  The record, payload_bytes long.
 * @param span     Receives the bytes; empty where the record does not hold them.
 * @return False where the record is too short or a locator points outside it.
 */
bool tdm_field_span(const struct tdm_field *field, const uint8_t *payload, uint32_t payload_bytes,
	bool big_endian, struct tdm_span *span);

#endif
