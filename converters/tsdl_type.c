/* SPDX-License-Identifier: MIT */
/*
 * tsdl_type.c - the types of metadata.
 */
#include "tsdl_priv.h"
#include <stdio.h>
#include <string.h>

enum {
	DEPTH_MAX = 64,
	FIELDS_MAX = 65536,
	NAME_BYTES_MAX = 256,
	/* Names are looked up one by one: real traces have some dozens of these. */
};

static struct tsdl_type *new_type(struct tsdl_parser *parser, enum tsdl_kind kind)
{
	struct tsdl_type *const type = tdm_arena_alloc(&parser->metadata->arena, sizeof(*type));

	if (!type) {
		tsdl_fail(parser, "memory");
		return NULL;
	}
	type->kind = kind;
	type->align_bits = 1;
	type->base = 10;
	type->is_big_endian = parser->metadata->is_big_endian;
	return type;
}

void tsdl_find_byte_order(struct tsdl_parser *parser)
{
	struct tsdl_lexer ahead = parser->lexer;
	bool in_trace = false;

	/* No deep understanding: the first "byte_order = X" behind the word "trace". */
	for (tsdl_next(&ahead);
		ahead.token.kind != TSDL_TOKEN_END && ahead.token.kind != TSDL_TOKEN_BAD;
		tsdl_next(&ahead)) {
		if (ahead.token.kind != TSDL_TOKEN_WORD) {
			continue;
		}
		in_trace |= strcmp(ahead.token.text, "trace") == 0;
		if (!in_trace || strcmp(ahead.token.text, "byte_order") != 0) {
			continue;
		}
		tsdl_next(&ahead);
		tsdl_next(&ahead);
		parser->metadata->is_big_endian = ahead.token.kind == TSDL_TOKEN_WORD &&
						  (strcmp(ahead.token.text, "be") == 0 ||
							  strcmp(ahead.token.text, "network") == 0);
		return;
	}
}

static bool is_power_of_two(uint64_t number)
{
	return number && (number & (number - 1)) == 0;
}

static bool set_attribute(struct tsdl_parser *parser, struct tsdl_type *type, const char *name,
	const struct tsdl_value *value, uint64_t *exp_bits)
{
	const char *const text = value->text ? value->text : "";

	if (strcmp(name, "size") == 0) {
		if (!value->is_number || value->number < 1 || value->number > 64) {
			return tsdl_fail(parser, "an integer of 1 to 64 bits");
		}
		type->size_bits = (uint32_t)value->number;
	} else if (strcmp(name, "align") == 0) {
		if (!value->is_number || !is_power_of_two((uint64_t)value->number) ||
			value->number > 1 << 20) {
			return tsdl_fail(parser, "an alignment that is a power of two");
		}
		type->align_bits = (uint32_t)value->number;
	} else if (strcmp(name, "signed") == 0) {
		type->is_signed = value->is_number
					  ? value->number != 0
					  : strcmp(text, "true") == 0 || strcmp(text, "TRUE") == 0;
	} else if (strcmp(name, "byte_order") == 0 && strcmp(text, "native") != 0) {
		type->is_big_endian = strcmp(text, "be") == 0 || strcmp(text, "network") == 0;
	} else if (strcmp(name, "map") == 0) {
		type->has_clock = strncmp(text, "clock.", 6) == 0;
	} else if (strcmp(name, "encoding") == 0) {
		type->is_text = strcmp(text, "none") != 0;
	} else if (strcmp(name, "base") == 0 && value->is_number) {
		type->base = (unsigned int)value->number;
	} else if (strcmp(name, "exp_dig") == 0 || strcmp(name, "mant_dig") == 0) {
		if (value->number < 1 || value->number > 112) {
			return tsdl_fail(parser, "digits of a floating-point number");
		}
		*exp_bits += (uint64_t)value->number;
	}
	return true;
}

/* "integer { ... }", "floating_point { ... }", "string { ... }": the word is the current token. */
static const struct tsdl_type *take_scalar(struct tsdl_parser *parser, enum tsdl_kind kind)
{
	struct tsdl_type *const type = new_type(parser, kind);
	uint64_t exp_bits = 0;

	tsdl_next(&parser->lexer);
	if (!type) {
		return NULL;
	}
	if (kind == TSDL_STRING) {
		type->align_bits = 8;
		if (!tsdl_is_mark(parser, '{')) {
			return type;
		}
	}
	if (!tsdl_take_mark(parser, '{')) {
		return NULL;
	}
	while (!tsdl_is_mark(parser, '}')) {
		char name[NAME_BYTES_MAX];
		struct tsdl_value value;

		if (!tsdl_take_path(parser, name, sizeof(name)) || !tsdl_take_mark(parser, '=') ||
			!tsdl_take_value(parser, &value) ||
			!set_attribute(parser, type, name, &value, &exp_bits) ||
			!tsdl_take_mark(parser, ';')) {
			return NULL;
		}
	}
	tsdl_next(&parser->lexer);
	if (kind == TSDL_FLOAT) {
		type->size_bits = (uint32_t)exp_bits;
	}
	if (kind != TSDL_STRING && type->size_bits == 0) {
		tsdl_fail(parser, "a type with a size");
		return NULL;
	}
	return type;
}

static bool add_field(struct tsdl_parser *parser, struct tsdl_type *type, size_t *room,
	const char *name, const struct tsdl_type *field_type)
{
	struct tsdl_field *const fields =
		tsdl_grow(parser, type->fields, type->field_count, room, sizeof(*fields));

	if (!fields) {
		return false;
	}
	if (type->field_count >= FIELDS_MAX) {
		return tsdl_fail(parser, "fewer fields");
	}
	type->fields = fields;
	fields[type->field_count++] =
		(struct tsdl_field){ tdm_arena_text(&parser->metadata->arena, name, strlen(name)),
			field_type, false };
	return fields[type->field_count - 1].name != NULL;
}

/* "[N]" and "[name]" behind a name: the last bound is the innermost. */
static const struct tsdl_type *take_bounds(
	struct tsdl_parser *parser, const struct tsdl_type *element)
{
	struct tsdl_type *type = NULL;
	const struct tsdl_type *inner = NULL;

	if (!tsdl_is_mark(parser, '[')) {
		return element;
	}
	if (++parser->depth > DEPTH_MAX) {
		tsdl_fail(parser, "fewer dimensions");
		return NULL;
	}
	tsdl_next(&parser->lexer);
	type = new_type(parser, TSDL_ARRAY);
	if (!type) {
		return NULL;
	}
	if (parser->lexer.token.kind == TSDL_TOKEN_NUMBER) {
		type->length = parser->lexer.token.number;
		tsdl_next(&parser->lexer);
	} else {
		type->kind = TSDL_SEQUENCE;
		type->reference = tsdl_take_reference(parser);
		if (!type->reference) {
			return NULL;
		}
	}
	inner = tsdl_take_mark(parser, ']') ? take_bounds(parser, element) : NULL;
	parser->depth--;
	if (!inner) {
		return NULL;
	}
	type->element = inner;
	type->align_bits = inner->align_bits;
	type->is_text = (inner->kind == TSDL_INTEGER && inner->size_bits == 8 && inner->is_text);
	return type;
}

static bool take_fields(struct tsdl_parser *parser, struct tsdl_type *type)
{
	size_t room = 0;

	if (!tsdl_take_mark(parser, '{')) {
		return false;
	}
	while (!parser->failed && !tsdl_is_mark(parser, '}')) {
		const struct tsdl_type *field = NULL;
		const char *name = NULL;

		if (tsdl_is_word(parser, "typealias") || tsdl_is_word(parser, "typedef")) {
			if (!tsdl_take_declaration(parser)) {
				return false;
			}
			continue;
		}
		field = tsdl_take_type(parser);
		if (!field) {
			return false;
		}
		if (parser->lexer.token.kind != TSDL_TOKEN_WORD) {
			return tsdl_fail(parser, "a member's name");
		}
		name = parser->lexer.token.text;
		tsdl_next(&parser->lexer);
		field = take_bounds(parser, field);
		if (!field || !add_field(parser, type, &room, name, field) ||
			!tsdl_take_mark(parser, ';')) {
			return false;
		}
	}
	return tsdl_take_mark(parser, '}');
}

static bool note_struct(struct tsdl_parser *parser, struct tsdl_type *type)
{
	struct tsdl_type **const structs = tsdl_grow(parser, parser->structs, parser->struct_count,
		&parser->struct_room, sizeof(struct tsdl_type *));

	if (!structs) {
		return false;
	}
	parser->structs = structs;
	structs[parser->struct_count++] = type;
	return true;
}

/* A tag behind struct, variant or enum, put into "KEYWORD TAG". Empty: none. */
static void take_tag(struct tsdl_parser *parser, const char *keyword, char *tag, size_t room)
{
	tag[0] = '\0';
	if (parser->lexer.token.kind == TSDL_TOKEN_WORD) {
		snprintf(tag, room, "%s %s", keyword, parser->lexer.token.text);
		tsdl_next(&parser->lexer);
	}
}

static const struct tsdl_type *tagged(struct tsdl_parser *parser, const char *tag)
{
	const struct tsdl_type *const type = tsdl_find_alias(parser, tag);

	if (!type) {
		tsdl_fail(parser, "a type that was declared");
	}
	return type;
}

static const struct tsdl_type *take_struct(struct tsdl_parser *parser)
{
	char tag[NAME_BYTES_MAX];
	struct tsdl_type *type = NULL;

	tsdl_next(&parser->lexer);
	take_tag(parser, "struct", tag, sizeof(tag));
	if (!tsdl_is_mark(parser, '{')) {
		return tagged(parser, tag);
	}
	type = new_type(parser, TSDL_STRUCT);
	if (!type || !take_fields(parser, type) || !note_struct(parser, type)) {
		return NULL;
	}
	if (tsdl_is_word(parser, "align")) {
		int64_t align = 0;

		tsdl_next(&parser->lexer);
		if (!tsdl_take_mark(parser, '(') || !tsdl_take_integer(parser, &align) ||
			!tsdl_take_mark(parser, ')')) {
			return NULL;
		}
		if (!is_power_of_two((uint64_t)align) || align > 1 << 20) {
			tsdl_fail(parser, "an alignment that is a power of two");
			return NULL;
		}
		type->align_bits = (uint32_t)align;
	}
	for (uint32_t i = 0; i < type->field_count; i++) {
		const uint32_t align_bits = type->fields[i].type->align_bits;

		type->align_bits = align_bits > type->align_bits ? align_bits : type->align_bits;
	}
	return !tag[0] || tsdl_add_alias(parser, tag, type) ? type : NULL;
}

static const struct tsdl_type *take_variant(struct tsdl_parser *parser)
{
	char tag[NAME_BYTES_MAX];
	const char *reference = NULL;
	struct tsdl_type *type = NULL;

	tsdl_next(&parser->lexer);
	take_tag(parser, "variant", tag, sizeof(tag));
	if (tsdl_is_mark(parser, '<')) {
		tsdl_next(&parser->lexer);
		reference = tsdl_take_reference(parser);
		if (!reference || !tsdl_take_mark(parser, '>')) {
			return NULL;
		}
	}
	type = new_type(parser, TSDL_VARIANT);
	if (!type) {
		return NULL;
	}
	type->reference = reference;
	if (!tsdl_is_mark(parser, '{')) {
		/* A declared variant, here with its selector. */
		const struct tsdl_type *const declared = tagged(parser, tag);

		if (declared && declared->kind == TSDL_VARIANT) {
			type->fields = declared->fields;
			type->field_count = declared->field_count;
			type->reference = reference ? reference : declared->reference;
			return type;
		}
		return NULL;
	}
	if (!take_fields(parser, type) || !note_struct(parser, type)) {
		return NULL;
	}
	return !tag[0] || tsdl_add_alias(parser, tag, type) ? type : NULL;
}

static bool take_mappings(struct tsdl_parser *parser, struct tsdl_type *type)
{
	size_t room = 0;
	int64_t next = 0;

	while (!parser->failed && !tsdl_is_mark(parser, '}')) {
		struct tsdl_mapping *const mappings = tsdl_grow(
			parser, type->mappings, type->mapping_count, &room, sizeof(*mappings));
		struct tsdl_mapping mapping = { .low = next, .high = next };

		if (!mappings) {
			return false;
		}
		type->mappings = mappings;
		if (parser->lexer.token.kind != TSDL_TOKEN_WORD &&
			parser->lexer.token.kind != TSDL_TOKEN_TEXT) {
			return tsdl_fail(parser, "a label");
		}
		mapping.label = parser->lexer.token.text;
		tsdl_next(&parser->lexer);
		if (tsdl_is_mark(parser, '=')) {
			tsdl_next(&parser->lexer);
			if (!tsdl_take_integer(parser, &mapping.low)) {
				return false;
			}
			mapping.high = mapping.low;
			if (parser->lexer.token.is_range) {
				tsdl_next(&parser->lexer);
				if (!tsdl_take_integer(parser, &mapping.high)) {
					return false;
				}
			}
		}
		next = (int64_t)((uint64_t)mapping.high + 1);
		mappings[type->mapping_count++] = mapping;
		if (!tsdl_is_mark(parser, ',')) {
			break;
		}
		tsdl_next(&parser->lexer);
	}
	return tsdl_take_mark(parser, '}');
}

static const struct tsdl_type *take_enum(struct tsdl_parser *parser)
{
	char tag[NAME_BYTES_MAX];
	const struct tsdl_type *integer = NULL;
	struct tsdl_type *type = NULL;

	tsdl_next(&parser->lexer);
	take_tag(parser, "enum", tag, sizeof(tag));
	if (tsdl_is_mark(parser, ':')) {
		tsdl_next(&parser->lexer);
		integer = tsdl_take_type(parser);
	} else if (tsdl_is_mark(parser, '{')) {
		integer = tsdl_find_alias(parser, "int");
	} else {
		return tagged(parser, tag);
	}
	if (!integer || integer->kind != TSDL_INTEGER) {
		tsdl_fail(parser, "an enumeration of an integer type");
		return NULL;
	}
	type = new_type(parser, TSDL_ENUM);
	if (!type || !tsdl_take_mark(parser, '{')) {
		return NULL;
	}
	*type = *integer;
	type->kind = TSDL_ENUM;
	type->mappings = NULL;
	type->mapping_count = 0;
	if (!take_mappings(parser, type)) {
		return NULL;
	}
	return !tag[0] || tsdl_add_alias(parser, tag, type) ? type : NULL;
}

static bool is_c_type_word(const char *word)
{
	static const char *const words[] = { "unsigned", "signed", "long", "short", "char", "int",
		"float", "double", "const", "_Bool", "bool" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i], word) == 0) {
			return true;
		}
	}
	return false;
}

/* An alias of one word, or of several words of C ("unsigned long"). */
static bool take_alias_name(struct tsdl_parser *parser, char *name, size_t room)
{
	size_t used = 0;

	name[0] = '\0';
	while (parser->lexer.token.kind == TSDL_TOKEN_WORD) {
		const char *const word = parser->lexer.token.text;
		const size_t length = strlen(word);

		if (used && !is_c_type_word(word)) {
			break; /* the member's name */
		}
		if (used + length + 2 > room) {
			return tsdl_fail(parser, "a shorter name");
		}
		used += (size_t)snprintf(name + used, room - used, "%s%s", used ? " " : "", word);
		const bool is_c = is_c_type_word(word);

		tsdl_next(&parser->lexer);
		if (!is_c) {
			break;
		}
	}
	return used > 0 || tsdl_fail(parser, "a type");
}

static const struct tsdl_type *take_type_inside(struct tsdl_parser *parser)
{
	char name[NAME_BYTES_MAX];
	const struct tsdl_type *type = NULL;

	if (tsdl_is_word(parser, "integer")) {
		return take_scalar(parser, TSDL_INTEGER);
	}
	if (tsdl_is_word(parser, "floating_point")) {
		return take_scalar(parser, TSDL_FLOAT);
	}
	if (tsdl_is_word(parser, "string")) {
		return take_scalar(parser, TSDL_STRING);
	}
	if (tsdl_is_word(parser, "struct")) {
		return take_struct(parser);
	}
	if (tsdl_is_word(parser, "variant")) {
		return take_variant(parser);
	}
	if (tsdl_is_word(parser, "enum")) {
		return take_enum(parser);
	}
	if (!take_alias_name(parser, name, sizeof(name))) {
		return NULL;
	}
	type = tsdl_find_alias(parser, name);
	if (!type) {
		tsdl_fail(parser, "a type that was declared");
	}
	return type;
}

const struct tsdl_type *tsdl_take_type(struct tsdl_parser *parser)
{
	const struct tsdl_type *type = NULL;

	if (++parser->depth > DEPTH_MAX) {
		tsdl_fail(parser, "types that are less deep");
		return NULL;
	}
	type = take_type_inside(parser);
	parser->depth--;
	return type;
}

bool tsdl_take_declaration(struct tsdl_parser *parser)
{
	const bool is_alias = tsdl_is_word(parser, "typealias");
	const bool is_typedef = tsdl_is_word(parser, "typedef");
	char name[NAME_BYTES_MAX];
	const struct tsdl_type *type = NULL;

	if (is_alias || is_typedef) {
		tsdl_next(&parser->lexer);
	}
	type = tsdl_take_type(parser);
	if (!type) {
		return false;
	}
	if (is_alias) {
		if (!tsdl_is_mark(parser, '=') || !parser->lexer.token.is_assign) {
			return tsdl_fail(parser, "\":=\"");
		}
		tsdl_next(&parser->lexer);
	}
	if (is_alias || is_typedef) {
		if (!take_alias_name(parser, name, sizeof(name))) {
			return false;
		}
		type = take_bounds(parser, type);
		if (!type || !tsdl_add_alias(parser, name, type)) {
			return false;
		}
	}
	return tsdl_take_mark(parser, ';');
}
