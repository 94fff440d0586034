/* SPDX-License-Identifier: MIT */
#include "json_writer.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tandem/utf8.h>

static void new_line(struct json_writer *json)
{
	fputc('\n', json->out);
	for (unsigned int i = 0; i < json->depth; i++) {
		fputs("  ", json->out);
	}
}

void json_quote(FILE *out, const struct tdm_buffer *text)
{
	fputc('"', out);
	for (size_t i = 0; i < text->size; i++) {
		const uint8_t c = text->bytes[i];

		if (c == '"' || c == '\\') {
			fprintf(out, "\\%c", c);
		} else if (c < 0x20 || c == 0x7f) {
			fprintf(out, "\\u%04x", c);
		} else {
			fputc(c, out);
		}
	}
	fputc('"', out);
}

static void write_string(struct json_writer *json, const char *text)
{
	struct tdm_buffer shown = { 0 };

	if (tdm_utf8_append_shown(&shown, (const uint8_t *)text, strlen(text)) != TDM_OK) {
		shown.size = 0;
	}
	json_quote(json->out, &shown);
	tdm_buffer_release(&shown);
}

static void begin_value(struct json_writer *json, const char *key)
{
	if (json->depth > 0) {
		if (json->has_item) {
			fputc(',', json->out);
		}
		new_line(json);
	}
	if (key) {
		write_string(json, key);
		fputs(": ", json->out);
	}
	json->has_item = true;
}

static void begin(struct json_writer *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->out);
	json->depth++;
	json->has_item = false;
}

static void end(struct json_writer *json, char bracket)
{
	const bool had_item = json->has_item;

	json->depth--;
	if (had_item) {
		new_line(json);
	}
	fputc(bracket, json->out);
	json->has_item = true;
	if (json->depth == 0) {
		fputc('\n', json->out);
	}
}

void json_object_begin(struct json_writer *json, const char *key)
{
	begin(json, key, '{');
}

void json_object_end(struct json_writer *json)
{
	end(json, '}');
}

void json_array_begin(struct json_writer *json, const char *key)
{
	begin(json, key, '[');
}

void json_array_end(struct json_writer *json)
{
	end(json, ']');
}

void json_text(struct json_writer *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text) {
		write_string(json, text);
	} else {
		fputs("null", json->out);
	}
}

void json_int(struct json_writer *json, const char *key, int64_t number)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRId64, number);
}

void json_uint(struct json_writer *json, const char *key, uint64_t number)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, number);
}

void json_bool(struct json_writer *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_real(struct json_writer *json, const char *key, double number)
{
	if (!isfinite(number)) {
		json_null(json, key);
		return;
	}
	begin_value(json, key);
	fprintf(json->out, "%.9g", number);
}

void json_null(struct json_writer *json, const char *key)
{
	begin_value(json, key);
	fputs("null", json->out);
}

void json_id(struct json_writer *json, const char *key, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, id);
	json_text(json, key, text);
}
