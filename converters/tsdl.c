/* SPDX-License-Identifier: MIT */
/*
 * tsdl.c - the blocks of metadata: trace, env, clock, stream, event.
 */
#include "tsdl_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/buffer.h>

#define METADATA_BYTES_MAX ((size_t)32 << 20)

bool tsdl_fail(struct tsdl_parser *parser, const char *wanted)
{
	const struct tsdl_token *const token = &parser->lexer.token;

	if (!parser->failed) {
		parser->failed = true;
		if (token->kind == TSDL_TOKEN_END) {
			tdm_fail(parser->err, TDM_ERR_FORMAT, "%s:%u: the text ends, wanted %s",
				parser->path, token->line, wanted);
		} else if (token->kind == TSDL_TOKEN_NUMBER) {
			tdm_fail(parser->err, TDM_ERR_FORMAT, "%s:%u: read %" PRIu64 ", wanted %s",
				parser->path, token->line, token->number, wanted);
		} else if (token->text) {
			tdm_fail(parser->err, TDM_ERR_FORMAT, "%s:%u: read \"%.40s\", wanted %s",
				parser->path, token->line, token->text, wanted);
		} else {
			tdm_fail(parser->err, TDM_ERR_FORMAT, "%s:%u: read '%c', wanted %s",
				parser->path, token->line,
				token->mark > 0x20 && token->mark < 0x7f ? token->mark : '?',
				wanted);
		}
	}
	return false;
}

bool tsdl_is_mark(const struct tsdl_parser *parser, char mark)
{
	const struct tsdl_token *const token = &parser->lexer.token;

	return token->kind == TSDL_TOKEN_MARK && token->mark == mark && !token->is_range;
}

bool tsdl_is_word(const struct tsdl_parser *parser, const char *word)
{
	const struct tsdl_token *const token = &parser->lexer.token;

	return token->kind == TSDL_TOKEN_WORD && strcmp(token->text, word) == 0;
}

bool tsdl_take_mark(struct tsdl_parser *parser, char mark)
{
	char wanted[] = "\"?\"";

	if (tsdl_is_mark(parser, mark)) {
		tsdl_next(&parser->lexer);
		return true;
	}
	wanted[1] = mark;
	return tsdl_fail(parser, wanted);
}

bool tsdl_take_path(struct tsdl_parser *parser, char *path, size_t room)
{
	size_t used = 0;

	path[0] = '\0';
	for (;;) {
		const struct tsdl_token *const token = &parser->lexer.token;
		const size_t length = token->kind == TSDL_TOKEN_WORD ? strlen(token->text) : 0;

		if (length == 0 || used + length + 2 > room) {
			return tsdl_fail(parser, "a name");
		}
		memcpy(path + used, token->text, length + 1);
		used += length;
		tsdl_next(&parser->lexer);
		if (!tsdl_is_mark(parser, '.')) {
			return true;
		}
		path[used++] = '.';
		tsdl_next(&parser->lexer);
	}
}

bool tsdl_take_integer(struct tsdl_parser *parser, int64_t *number)
{
	const bool negative = tsdl_is_mark(parser, '-');

	if (negative || tsdl_is_mark(parser, '+')) {
		tsdl_next(&parser->lexer);
	}
	if (parser->lexer.token.kind != TSDL_TOKEN_NUMBER) {
		return tsdl_fail(parser, "a number");
	}
	*number =
		(int64_t)(negative ? 0u - parser->lexer.token.number : parser->lexer.token.number);
	tsdl_next(&parser->lexer);
	return true;
}

bool tsdl_take_value(struct tsdl_parser *parser, struct tsdl_value *value)
{
	char path[256];

	*value = (struct tsdl_value){ 0 };
	if (parser->lexer.token.kind == TSDL_TOKEN_TEXT) {
		value->text = parser->lexer.token.text;
		tsdl_next(&parser->lexer);
		return true;
	}
	if (parser->lexer.token.kind == TSDL_TOKEN_WORD) {
		if (!tsdl_take_path(parser, path, sizeof(path))) {
			return false;
		}
		value->text = tdm_arena_text(&parser->metadata->arena, path, strlen(path));
		value->is_word = true;
		return value->text || tsdl_fail(parser, "memory");
	}
	value->is_number = true;
	return tsdl_take_integer(parser, &value->number);
}

void *tsdl_grow(
	struct tsdl_parser *parser, void *array, size_t count, size_t *room, size_t size_bytes)
{
	if (count == *room) {
		const size_t more = *room ? *room * 2 : 8;
		void *const grown = tdm_arena_array(&parser->metadata->arena, more, size_bytes);

		if (!grown) {
			tsdl_fail(parser, "memory");
			return NULL;
		}
		if (count) {
			memcpy(grown, array, count * size_bytes);
		}
		*room = more;
		return grown;
	}
	return array;
}

/* What one block is filled with. */
struct block {
	struct tsdl_clock *clock;
	struct tsdl_stream *stream;
	struct tsdl_event *event;
	bool is_trace, is_env;
};

static bool add_env(struct tsdl_parser *parser, const char *name, const struct tsdl_value *value)
{
	struct tsdl_metadata *const metadata = parser->metadata;
	struct tsdl_env *const env = tsdl_grow(
		parser, metadata->env, metadata->env_count, &metadata->env_room, sizeof(*env));

	if (!env) {
		return false;
	}
	metadata->env = env;
	env[metadata->env_count++] = (struct tsdl_env){
		.name = tdm_arena_text(&metadata->arena, name, strlen(name)),
		.text = value->is_number ? NULL : value->text,
		.number = value->number,
	};
	return true;
}

static void set_clock(struct tsdl_clock *clock, const char *name, const struct tsdl_value *value)
{
	if (strcmp(name, "name") == 0) {
		clock->name = value->text;
	} else if (strcmp(name, "uuid") == 0) {
		clock->uuid = value->text;
	} else if (strcmp(name, "freq") == 0) {
		clock->freq_hz = (uint64_t)value->number;
		clock->freq_comes_late = clock->offset_s != 0;
	} else if (strcmp(name, "offset") == 0) {
		clock->offset = value->number;
	} else if (strcmp(name, "offset_s") == 0) {
		clock->offset_s = value->number;
	} else if (strcmp(name, "absolute") == 0) {
		clock->is_absolute = value->number == 1 ||
				     (value->text && (strcmp(value->text, "true") == 0 ||
							     strcmp(value->text, "TRUE") == 0));
	}
}

static bool set_value(struct tsdl_parser *parser, const struct block *block, const char *name)
{
	struct tsdl_value value;

	if (!tsdl_take_value(parser, &value)) {
		return false;
	}
	if (block->is_env) {
		return add_env(parser, name, &value);
	}
	if (block->clock) {
		set_clock(block->clock, name, &value);
	} else if (block->stream && strcmp(name, "id") == 0) {
		block->stream->has_id = true;
		block->stream->id = (uint64_t)value.number;
	} else if (block->event && strcmp(name, "name") == 0) {
		block->event->name = value.text;
	} else if (block->event && strcmp(name, "id") == 0) {
		block->event->has_id = true;
		block->event->id = (uint64_t)value.number;
	} else if (block->event && strcmp(name, "stream_id") == 0) {
		block->event->stream_id = (uint64_t)value.number;
	} else if (block->is_trace && strcmp(name, "uuid") == 0) {
		parser->metadata->uuid = value.text;
	} else if (block->is_trace && strcmp(name, "major") == 0) {
		parser->metadata->major = (uint64_t)value.number;
	} else if (block->is_trace && strcmp(name, "minor") == 0) {
		parser->metadata->minor = (uint64_t)value.number;
	} else if (block->is_trace && strcmp(name, "byte_order") == 0 && value.text) {
		parser->metadata->is_big_endian =
			strcmp(value.text, "be") == 0 || strcmp(value.text, "network") == 0;
	}
	return true;
}

static bool set_type(struct tsdl_parser *parser, const struct block *block, const char *name)
{
	const struct tsdl_type *const type = tsdl_take_type(parser);

	if (!type) {
		return false;
	}
	if (block->is_trace && strcmp(name, "packet.header") == 0) {
		parser->metadata->packet_header = type;
	} else if (block->stream && strcmp(name, "event.header") == 0) {
		block->stream->event_header = type;
	} else if (block->stream && strcmp(name, "packet.context") == 0) {
		block->stream->packet_context = type;
	} else if (block->stream && strcmp(name, "event.context") == 0) {
		block->stream->event_context = type;
	} else if (block->event && strcmp(name, "context") == 0) {
		block->event->context = type;
	} else if (block->event && strcmp(name, "fields") == 0) {
		block->event->fields = type;
	}
	return true;
}

static bool is_type_word(const struct tsdl_parser *parser)
{
	return tsdl_is_word(parser, "typealias") || tsdl_is_word(parser, "typedef") ||
	       tsdl_is_word(parser, "struct") || tsdl_is_word(parser, "enum") ||
	       tsdl_is_word(parser, "variant");
}

static bool take_block(struct tsdl_parser *parser, const struct block *block)
{
	tsdl_next(&parser->lexer);
	if (!tsdl_take_mark(parser, '{')) {
		return false;
	}
	while (!parser->failed && !tsdl_is_mark(parser, '}')) {
		char name[256];

		if (!block->is_env && is_type_word(parser)) {
			if (!tsdl_take_declaration(parser)) {
				return false;
			}
			continue;
		}
		if (!tsdl_take_path(parser, name, sizeof(name))) {
			return false;
		}
		if (!tsdl_is_mark(parser, '=')) {
			return tsdl_fail(parser, "\"=\" or \":=\"");
		}

		const bool is_type = parser->lexer.token.is_assign;

		tsdl_next(&parser->lexer);
		if (!(is_type ? set_type(parser, block, name) : set_value(parser, block, name)) ||
			!tsdl_take_mark(parser, ';')) {
			return false;
		}
	}
	return tsdl_take_mark(parser, '}') && tsdl_take_mark(parser, ';');
}

static bool take_top(struct tsdl_parser *parser)
{
	struct tsdl_metadata *const metadata = parser->metadata;
	struct block block = { 0 };

	if (tsdl_is_word(parser, "trace")) {
		block.is_trace = true;
	} else if (tsdl_is_word(parser, "env")) {
		block.is_env = true;
	} else if (tsdl_is_word(parser, "clock")) {
		metadata->clocks = tsdl_grow(parser, metadata->clocks, metadata->clock_count,
			&metadata->clock_room, sizeof(*metadata->clocks));
		if (!metadata->clocks) {
			return false;
		}
		block.clock = &metadata->clocks[metadata->clock_count++];
		*block.clock = (struct tsdl_clock){ .freq_hz = 1000000000 };
	} else if (tsdl_is_word(parser, "stream")) {
		metadata->streams = tsdl_grow(parser, metadata->streams, metadata->stream_count,
			&metadata->stream_room, sizeof(*metadata->streams));
		if (!metadata->streams) {
			return false;
		}
		block.stream = &metadata->streams[metadata->stream_count++];
		*block.stream = (struct tsdl_stream){ 0 };
	} else if (tsdl_is_word(parser, "event")) {
		metadata->events = tsdl_grow(parser, metadata->events, metadata->event_count,
			&metadata->event_room, sizeof(*metadata->events));
		if (!metadata->events) {
			return false;
		}
		block.event = &metadata->events[metadata->event_count++];
		*block.event = (struct tsdl_event){ 0 };
	} else if (!tsdl_is_word(parser, "callsite")) {
		return tsdl_take_declaration(parser);
	}
	return take_block(parser, &block);
}

enum tdm_status tsdl_parse(const char *path, const uint8_t *bytes, size_t size,
	const char *const *wanted, struct tsdl_metadata *metadata, struct tdm_error *err)
{
	struct tdm_buffer text = { .cap = METADATA_BYTES_MAX };
	struct tsdl_parser parser = {
		.path = path, .wanted = wanted, .metadata = metadata, .err = err
	};
	enum tdm_status status = TDM_OK;

	*metadata = (struct tsdl_metadata){ 0 };
	if (size > METADATA_BYTES_MAX) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: %zu bytes of metadata", path, size);
	}
	metadata->is_packetized = tsdl_is_packetized(bytes, size);
	if (metadata->is_packetized) {
		status = tsdl_text(path, bytes, size, &text, err);
		if (status != TDM_OK) {
			tdm_buffer_release(&text);
			return status;
		}
		bytes = text.size ? text.bytes : (const uint8_t *)""; /* no packet held anything */
		size = text.size;
	}
	/* A text sequence of JSON: what LTTng writes from 2.15 on where nobody asks for 1.8. */
	if (size && (bytes[0] == 0x1e || bytes[0] == '{')) {
		tdm_buffer_release(&text);
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: CTF 2, wanted CTF 1.8: babeltrace2 2.1 converts it (-o ctf, parameter ctf-version=\"1\"), LTTng "
			"records 1.8 when its session is created with --trace-format=ctf-1.8",
			path);
	}
	metadata->has_signature = size >= 10 && memcmp(bytes, "/* CTF 1.8", 10) == 0;
	parser.lexer = (struct tsdl_lexer){ .at = (const char *)bytes,
		.end = (const char *)bytes + size,
		.line = 1,
		.arena = &metadata->arena };
	tsdl_find_byte_order(&parser);
	tsdl_next(&parser.lexer);
	while (!parser.failed && parser.lexer.token.kind != TSDL_TOKEN_END) {
		take_top(&parser);
	}
	tsdl_mark_references(&parser);
	tdm_buffer_release(&text);
	return parser.failed ? TDM_ERR_FORMAT : TDM_OK;
}

void tsdl_release(struct tsdl_metadata *metadata)
{
	tdm_arena_release(&metadata->arena);
	*metadata = (struct tsdl_metadata){ 0 };
}

bool tsdl_has_event(const struct tsdl_metadata *metadata, const char *prefix)
{
	for (size_t i = 0; i < metadata->event_count; i++) {
		const char *const name = metadata->events[i].name;

		if (name && strncmp(name, prefix, strlen(prefix)) == 0) {
			return true;
		}
	}
	return false;
}

const struct tsdl_env *tsdl_find_env(const struct tsdl_metadata *metadata, const char *name)
{
	for (size_t i = 0; i < metadata->env_count; i++) {
		if (metadata->env[i].name && strcmp(metadata->env[i].name, name) == 0) {
			return &metadata->env[i];
		}
	}
	return NULL;
}

const struct tsdl_field *tsdl_find_field(const struct tsdl_type *type, const char *name)
{
	for (uint32_t i = 0; type && type->kind == TSDL_STRUCT && i < type->field_count; i++) {
		const char *const own = type->fields[i].name;

		if (strcmp(own, name) == 0 || (own[0] == '_' && strcmp(own + 1, name) == 0)) {
			return &type->fields[i];
		}
	}
	return NULL;
}
