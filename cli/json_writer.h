/* SPDX-License-Identifier: MIT */
/*
 * json_writer.h - JSON on a stream, written as it comes: commas, indentation and escapes.
 */
#ifndef CLI_JSON_WRITER_H
#define CLI_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tandem/buffer.h>

struct json_writer {
	FILE *out; /* borrowed */
	unsigned int depth;
	bool has_item; /* of the innermost object or array */
};

/** A string of JSON: valid UTF-8, with what JSON wants escaped. */
void json_quote(FILE *out, const struct tdm_buffer *text);

/* In an object @p key names the value; in an array, and at the top, it is NULL. */
void json_object_begin(struct json_writer *json, const char *key);
void json_object_end(struct json_writer *json);
void json_array_begin(struct json_writer *json, const char *key);
void json_array_end(struct json_writer *json);

/** @p text NULL writes null. Bytes that are no UTF-8 are written as they are shown elsewhere: \xNN. */
void json_text(struct json_writer *json, const char *key, const char *text);
void json_int(struct json_writer *json, const char *key, int64_t number);
void json_uint(struct json_writer *json, const char *key, uint64_t number);
void json_bool(struct json_writer *json, const char *key, bool value);
void json_real(struct json_writer *json, const char *key, double number);
void json_null(struct json_writer *json, const char *key);

/** A 64-bit id as text in hexadecimal: JSON readers round large numbers. */
void json_id(struct json_writer *json, const char *key, uint64_t id);

#endif
