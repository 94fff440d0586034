/* SPDX-License-Identifier: MIT */
/*
 * tsdl_priv.h - shared by the two halves of the metadata parser: blocks and types.
 */
#ifndef TANDEM_TSDL_PRIV_H
#define TANDEM_TSDL_PRIV_H

#include "tsdl.h"
#include "tsdl_lexer.h"

/* A name that stands for a type: an alias, or a tagged struct, variant or enum. */
struct tsdl_alias {
	const char *name; /* with its tag's keyword in front: "struct packet_context" */
	const struct tsdl_type *type;
};

struct tsdl_parser {
	const char *path;
	const char *const *wanted;
	struct tsdl_metadata *metadata;
	struct tsdl_lexer lexer;
	struct tsdl_alias *aliases;
	size_t alias_count, alias_room;
	const char **references; /* names of lengths and selectors */
	size_t reference_count, reference_room;
	struct tsdl_type **structs; /* to mark their fields when all references are known */
	size_t struct_count, struct_room;
	unsigned int depth;
	bool failed;
	struct tdm_error *err;
};

struct tsdl_value {
	const char *text; /* of a text or a word */
	bool is_word, is_number;
	int64_t number;
};

/** Says what was wanted instead of the current token, once. @return false. */
bool tsdl_fail(struct tsdl_parser *parser, const char *wanted);

bool tsdl_is_mark(const struct tsdl_parser *parser, char mark);
bool tsdl_is_word(const struct tsdl_parser *parser, const char *word);
bool tsdl_take_mark(struct tsdl_parser *parser, char mark);
/* "a.b.c" into room for it. */
bool tsdl_take_path(struct tsdl_parser *parser, char *path, size_t room);
bool tsdl_take_integer(struct tsdl_parser *parser, int64_t *number);
bool tsdl_take_value(struct tsdl_parser *parser, struct tsdl_value *value);

/** Makes room for one more element in an array of the arena. NULL without memory. */
void *tsdl_grow(
	struct tsdl_parser *parser, void *array, size_t count, size_t *room, size_t size_bytes);

/* tsdl_type.c */

/** A type at the current token. NULL where it is none. */
const struct tsdl_type *tsdl_take_type(struct tsdl_parser *parser);

/** typealias, typedef, or a tagged type, with its semicolon. */
bool tsdl_take_declaration(struct tsdl_parser *parser);

/** Looks ahead for the trace's byte order: integers that stand before it have it too. */
void tsdl_find_byte_order(struct tsdl_parser *parser);

/** Marks the fields whose values are lengths, selectors, or wanted. */
void tsdl_mark_references(struct tsdl_parser *parser);

/* tsdl_name.c */
bool tsdl_add_alias(struct tsdl_parser *parser, const char *name, const struct tsdl_type *type);
const struct tsdl_type *tsdl_find_alias(const struct tsdl_parser *parser, const char *name);
const char *tsdl_take_reference(struct tsdl_parser *parser);

#endif
