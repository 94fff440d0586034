/* SPDX-License-Identifier: MIT */
/*
 * tsdl_name.c - names in metadata: aliases of types, and fields that others refer to.
 */
#include "tsdl_priv.h"
#include <stdio.h>
#include <string.h>

enum {
	ALIASES_MAX = 8192,
	REFERENCES_MAX = 1024,
	NAME_BYTES_MAX = 256
};

bool tsdl_add_alias(struct tsdl_parser *parser, const char *name, const struct tsdl_type *type)
{
	struct tsdl_alias *const aliases = tsdl_grow(parser, parser->aliases, parser->alias_count,
		&parser->alias_room, sizeof(*aliases));

	if (!aliases) {
		return false;
	}
	parser->aliases = aliases;
	if (parser->alias_count >= ALIASES_MAX) {
		return tsdl_fail(parser, "fewer names of types");
	}
	aliases[parser->alias_count++] =
		(struct tsdl_alias){ tdm_arena_text(&parser->metadata->arena, name, strlen(name)),
			type };
	return true;
}

/* The newest of a name: inner scopes hide outer ones, and what is redefined later is meant later. */
const struct tsdl_type *tsdl_find_alias(const struct tsdl_parser *parser, const char *name)
{
	for (size_t i = parser->alias_count; i-- > 0;) {
		if (parser->aliases[i].name && strcmp(parser->aliases[i].name, name) == 0) {
			return parser->aliases[i].type;
		}
	}
	return NULL;
}

static bool add_reference(struct tsdl_parser *parser, const char *name)
{
	for (size_t i = 0; i < parser->reference_count; i++) {
		if (strcmp(parser->references[i], name) == 0) {
			return true;
		}
	}
	if (parser->reference_count >= REFERENCES_MAX) {
		return tsdl_fail(parser, "fewer lengths and selectors");
	}

	const char **const references = tsdl_grow(parser, parser->references,
		parser->reference_count, &parser->reference_room, sizeof(*references));

	if (!references) {
		return false;
	}
	parser->references = references;
	references[parser->reference_count++] = name;
	return true;
}

/* The last part of a path that names a length or a selector. */
const char *tsdl_take_reference(struct tsdl_parser *parser)
{
	char path[NAME_BYTES_MAX];
	const char *name = NULL;

	if (!tsdl_take_path(parser, path, sizeof(path))) {
		return NULL;
	}
	name = strrchr(path, '.');
	name = name ? name + 1 : path;
	name = tdm_arena_text(&parser->metadata->arena, name, strlen(name));
	return name && add_reference(parser, name) ? name : NULL;
}

static bool is_listed(const struct tsdl_parser *parser, const char *name)
{
	for (size_t i = 0; parser->wanted && parser->wanted[i]; i++) {
		if (strcmp(parser->wanted[i], name) == 0 ||
			(name[0] == '_' && strcmp(parser->wanted[i], name + 1) == 0)) {
			return true;
		}
	}
	for (size_t i = 0; i < parser->reference_count; i++) {
		/* A reference may leave the member's underscore out. */
		if (strcmp(parser->references[i], name) == 0 ||
			(name[0] == '_' && strcmp(parser->references[i], name + 1) == 0)) {
			return true;
		}
	}
	return false;
}

void tsdl_mark_references(struct tsdl_parser *parser)
{
	for (size_t i = 0; i < parser->struct_count; i++) {
		struct tsdl_type *const type = parser->structs[i];

		for (uint32_t j = 0; type->kind == TSDL_STRUCT && j < type->field_count; j++) {
			type->fields[j].is_referenced = is_listed(parser, type->fields[j].name);
		}
	}
}
