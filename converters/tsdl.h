/* SPDX-License-Identifier: MIT */
/*
 * tsdl.h - the metadata of a CTF 1.8 trace, as the language that LTTng and others write, parsed into types.
 *
 * For linting traces that anybody wrote: every depth, count and size has a cap, nothing is trusted.
 */
#ifndef TANDEM_TSDL_H
#define TANDEM_TSDL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/arena.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

enum tsdl_kind {
	TSDL_INTEGER,
	TSDL_FLOAT,
	TSDL_ENUM,
	TSDL_STRING,
	TSDL_STRUCT,
	TSDL_ARRAY,
	TSDL_SEQUENCE,
	TSDL_VARIANT,
};

struct tsdl_type;

struct tsdl_field {
	const char *name; /* as written, underscore and all */
	const struct tsdl_type *type;
	bool is_referenced; /* a length, a selector, or wanted by the reader: its value is to be kept */
};

struct tsdl_mapping {
	const char *label;
	int64_t low, high;
};

/* A type. Of the members those that the kind has. */
struct tsdl_type {
	enum tsdl_kind kind;
	uint32_t align_bits;
	uint32_t size_bits; /* INTEGER, FLOAT; ENUM: of its integer */
	bool is_signed, is_big_endian, has_clock, is_text;
	unsigned int base;
	struct tsdl_field *fields; /* STRUCT: members; VARIANT: options */
	uint32_t field_count;
	struct tsdl_mapping *mappings; /* ENUM */
	uint32_t mapping_count;
	const struct tsdl_type *element; /* ARRAY, SEQUENCE */
	uint64_t length;                 /* ARRAY */
	const char *
		reference; /* SEQUENCE: field of its length; VARIANT: its selector; the last part of a path */
};

struct tsdl_clock {
	const char *name, *uuid; /* NULL = not said */
	uint64_t freq_hz;        /* 1000000000 where not said */
	int64_t offset, offset_s;
	bool is_absolute, freq_comes_late; /* late: after an offset in seconds */
};

struct tsdl_env {
	const char *name, *text; /* text NULL: a number */
	int64_t number;
};

struct tsdl_stream {
	bool has_id;
	uint64_t id;
	const struct tsdl_type *event_header, *packet_context, *event_context; /* NULL = none */
};

struct tsdl_event {
	const char *name;
	bool has_id;
	uint64_t id, stream_id;
	const struct tsdl_type *context, *fields;
};

struct tsdl_metadata {
	struct tdm_arena arena;
	bool has_signature; /* the text begins with the CTF comment */
	bool is_packetized;
	bool is_big_endian;
	const char *uuid;
	uint64_t major, minor;
	const struct tsdl_type *packet_header;
	struct tsdl_clock *clocks;
	struct tsdl_env *env;
	struct tsdl_stream *streams;
	struct tsdl_event *events;
	size_t clock_count, env_count, stream_count, event_count;
	size_t clock_room, env_room, stream_room, event_room;
};

/** Whether a metadata file is in packets. */
bool tsdl_is_packetized(const uint8_t *bytes, size_t size);

/**
 * The text of a metadata file, which may be in packets.
 * @param text  Receives it, appended.
 * @retval TDM_ERR_FORMAT  Packets that make no sense; @p err names @p path and the offset.
 */
enum tdm_status tsdl_text(const char *path, const uint8_t *bytes, size_t size,
	struct tdm_buffer *text, struct tdm_error *err);

/** The trace's uuid as bytes. False where it has none. */
bool tsdl_get_uuid(const struct tsdl_metadata *metadata, uint8_t uuid[16]);

/**
 * Parses a metadata file: text, or in packets.
 *
 * @param path      For messages.
 * @param wanted    Names of fields whose values the reader wants, NULL at the end; borrowed for the call.
 * @param metadata  Receives it; to be released in either case.
 * @retval TDM_ERR_FORMAT  @p err names file, line, what was read and what was wanted.
 */
enum tdm_status tsdl_parse(const char *path, const uint8_t *bytes, size_t size,
	const char *const *wanted, struct tsdl_metadata *metadata, struct tdm_error *err);
void tsdl_release(struct tsdl_metadata *metadata);

/** Environment entry by name, or NULL. */
const struct tsdl_env *tsdl_find_env(const struct tsdl_metadata *metadata, const char *name);

/** Whether an event's name begins so. */
bool tsdl_has_event(const struct tsdl_metadata *metadata, const char *prefix);

/** Member of a structure by name, with or without a leading underscore; NULL if there is none. */
const struct tsdl_field *tsdl_find_field(const struct tsdl_type *type, const char *name);

#endif
