/* SPDX-License-Identifier: MIT */
#include "event_format_priv.h"
#include "field_type_priv.h"
#include <stdio.h>
#include <string.h>

enum {
	MAX_FIELDS = 512,
	MAX_NAME_BYTES = 256,
	/* Offsets in locators have 16 bits: nothing in a record lies beyond. */
	MAX_RECORD_BYTES = 65536,
	MAX_ID = 65535
};

/* A piece of the text, not NUL-terminated. */
struct piece {
	const char *at;
	size_t size;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trim(struct piece piece)
{
	while (piece.size && is_blank(piece.at[0])) {
		piece.at++;
		piece.size--;
	}
	while (piece.size && is_blank(piece.at[piece.size - 1])) {
		piece.size--;
	}
	return piece;
}

/* Takes the bytes up to @p end_mark, or all; the mark is passed. */
static struct piece take_until(struct piece *rest, char end_mark)
{
	const char *stop = rest->size ? memchr(rest->at, end_mark, rest->size) : NULL;
	const struct piece taken = { rest->at, stop ? (size_t)(stop - rest->at) : rest->size };
	const size_t passed = taken.size + (stop ? 1 : 0);

	if (passed) {
		rest->at += passed;
		rest->size -= passed;
	}
	return taken;
}

static bool starts_with(struct piece *piece, const char *word)
{
	const size_t size = strlen(word);

	if (piece->size < size || memcmp(piece->at, word, size) != 0) {
		return false;
	}
	piece->at += size;
	piece->size -= size;
	return true;
}

/* One word without blanks and control characters: what kernels give to events and fields. */
static bool is_name(struct piece name)
{
	for (size_t i = 0; i < name.size; i++) {
		if (name.at[i] <= ' ' || name.at[i] > '~') {
			return false;
		}
	}
	return name.size && name.size <= MAX_NAME_BYTES;
}

static bool parse_number(struct piece piece, uint32_t *number)
{
	uint64_t value = 0;

	piece = trim(piece);
	if (!piece.size || piece.size > 10) {
		return false;
	}
	for (size_t i = 0; i < piece.size; i++) {
		if (piece.at[i] < '0' || piece.at[i] > '9') {
			return false;
		}
		value = value * 10 + (uint64_t)(piece.at[i] - '0');
	}
	*number = (uint32_t)value;
	return value <= UINT32_MAX;
}

/* What a "field:" line says, before anything is concluded from it. */
struct field_line {
	struct piece declaration;
	uint32_t offset, size;
	bool is_signed, has_offset, has_size;
};

static void parse_field_line(struct piece line, struct field_line *out)
{
	*out = (struct field_line){ .declaration = trim(take_until(&line, ';')) };
	while (line.size) {
		struct piece item = trim(take_until(&line, ';'));
		uint32_t number = 0;

		if (starts_with(&item, "offset:")) {
			out->has_offset = parse_number(item, &out->offset);
		} else if (starts_with(&item, "size:")) {
			out->has_size = parse_number(item, &out->size);
		} else if (starts_with(&item, "signed:")) {
			out->is_signed = parse_number(item, &number) && number;
		}
	}
}

/* The declaration taken apart. */
struct declaration {
	struct piece type; /* without locator and array parts */
	struct piece name;
	enum tdm_field_place place;
	bool is_array, is_function;
	bool has_count; /* every dimension is a number */
	uint64_t count;
};

/* Takes "[...]" off the end, as often as it is there. */
static void strip_dimensions(struct piece *piece, struct declaration *out)
{
	for (*piece = trim(*piece); piece->size && piece->at[piece->size - 1] == ']';
		*piece = trim(*piece)) {
		size_t open = piece->size - 1;
		uint32_t number = 0;

		while (open && piece->at[open] != '[') {
			open--;
		}
		if (piece->at[open] != '[') {
			return;
		}
		if (!out->is_array) {
			out->is_array = true;
			out->has_count = true;
			out->count = 1;
		}
		if (parse_number((struct piece){ piece->at + open + 1, piece->size - open - 2 },
			    &number) &&
			number <= MAX_RECORD_BYTES && out->count <= MAX_RECORD_BYTES) {
			out->count *= number;
		} else {
			out->has_count = false;
		}
		piece->size = open;
	}
}

static bool parse_declaration(struct piece text, struct declaration *out)
{
	*out = (struct declaration){ .place = TDM_PLACE_FIXED };
	if (starts_with(&text, "__data_loc ")) {
		out->place = TDM_PLACE_DATA_LOC;
	} else if (starts_with(&text, "__rel_loc ")) {
		out->place = TDM_PLACE_REL_LOC;
	}
	text = trim(text);

	/* "int (*name)(args)": a pointer to a function. */
	for (size_t i = 0; i + 1 < text.size; i++) {
		if (text.at[i] == '(' && text.at[i + 1] == '*') {
			struct piece rest = { text.at + i + 2, text.size - i - 2 };

			out->is_function = true;
			out->name = trim(take_until(&rest, ')'));
			out->type = trim((struct piece){ text.at, i });
			return is_name(out->name);
		}
	}
	strip_dimensions(&text, out);

	size_t start = text.size;

	while (start && !is_blank(text.at[start - 1]) && text.at[start - 1] != '*' &&
		text.at[start - 1] != ']') {
		start--;
	}
	out->name = (struct piece){ text.at + start, text.size - start };
	out->type = (struct piece){ text.at, start };
	strip_dimensions(&out->type, out);
	return is_name(out->name) && out->type.size && out->type.size <= MAX_NAME_BYTES;
}

/* How many elements of which size. False: the numbers contradict each other. */
static bool settle_layout(struct tdm_field *field, const struct declaration *declaration,
	uint32_t known_element_bytes)
{
	if (field->place == TDM_PLACE_FIXED && field->size_bytes == 0) {
		field->place = TDM_PLACE_TRAILING;
		field->is_array = true;
	}
	if (field->place != TDM_PLACE_FIXED) {
		field->is_array = true;
		field->element_bytes = known_element_bytes ? known_element_bytes : 1;
		return field->place == TDM_PLACE_TRAILING || field->size_bytes == 4;
	}
	if (field->is_array && declaration->has_count && declaration->count &&
		field->size_bytes % declaration->count == 0) {
		field->element_count = (uint32_t)declaration->count;
	} else if (field->is_array && known_element_bytes &&
		   field->size_bytes % known_element_bytes == 0) {
		/* A size that is a macro's or an enumerator's name, which only the compiler knew. */
		field->element_count = field->size_bytes / known_element_bytes;
	} else if (field->is_array) {
		field->element_count = field->size_bytes;
	} else {
		field->element_count = 1;
	}
	field->element_bytes = field->size_bytes / field->element_count;
	return true;
}

static void settle_kind(struct tdm_field *field, const struct field_type *type, bool is_signed)
{
	const bool is_text_place = field->is_array && field->element_bytes == 1;

	field->kind = is_signed ? TDM_FIELD_SIGNED : TDM_FIELD_UNSIGNED;
	if (type->is_cpumask && (field->is_array || !type->is_pointer)) {
		field->kind = TDM_FIELD_CPUMASK;
		if (field->place == TDM_PLACE_FIXED && field->size_bytes % type->element_bytes) {
			field->kind = TDM_FIELD_UNSIGNED;
		} else {
			field->is_array = true;
			field->element_bytes = type->element_bytes;
			field->element_count = field->size_bytes / field->element_bytes;
		}
	} else if (type->is_char && is_text_place) {
		field->kind = TDM_FIELD_TEXT;
	} else if (type->is_wide && field->element_bytes == 16) {
		field->kind = TDM_FIELD_WIDE;
	} else if (type->is_bool && field->element_bytes == 1) {
		field->kind = TDM_FIELD_BOOL;
	} else if (type->is_pointer && (field->element_bytes == 4 || field->element_bytes == 8)) {
		field->kind = TDM_FIELD_POINTER;
	}
	/* A structure, or an array of structures: its bytes. */
	if (field->kind != TDM_FIELD_WIDE && field->kind != TDM_FIELD_CPUMASK &&
		field->element_bytes > 8) {
		field->kind = TDM_FIELD_UNSIGNED;
		field->is_array = true;
		field->element_bytes = 1;
		field->element_count = field->place == TDM_PLACE_FIXED ? field->size_bytes : 0;
	}
	if (field->place != TDM_PLACE_FIXED) {
		field->element_count = 0;
	}
}

/* NULL, or what is wrong. */
static const char *parse_field(struct tdm_arena *arena, struct piece line, unsigned int long_bytes,
	struct tdm_field *field)
{
	struct field_line parts;
	struct declaration declaration;

	parse_field_line(line, &parts);
	if (!parts.has_offset || !parts.has_size) {
		return "offset and size as numbers are wanted";
	}
	if (!parse_declaration(parts.declaration, &declaration)) {
		return "a type and a name are wanted";
	}
	if (parts.offset > MAX_RECORD_BYTES || parts.size > MAX_RECORD_BYTES - parts.offset) {
		return "it ends past 64 KiB";
	}
	*field = (struct tdm_field){
		.name = tdm_arena_text(arena, declaration.name.at, declaration.name.size),
		.type_name = tdm_arena_text(arena, declaration.type.at, declaration.type.size),
		.place = declaration.place,
		.is_array = declaration.is_array,
		.offset_bytes = parts.offset,
		.size_bytes = parts.size,
	};
	if (!field->name || !field->type_name) {
		return "no memory";
	}
	field->unique_name = field->name;

	struct field_type type = field_type_from_name(field->type_name, long_bytes);

	type.is_pointer = type.is_pointer || declaration.is_function;
	if (!settle_layout(field, &declaration, type.element_bytes)) {
		return "a locator of 4 bytes is wanted";
	}
	settle_kind(field, &type, parts.is_signed);
	return NULL;
}

/* Words that no field of a kernel can be called, and that some readers of CTF do not get along with as a name. */
static bool is_keyword(const char *name)
{
	static const char *const keywords[] = { "_Bool", "_Complex", "_Imaginary", "char", "const",
		"double", "enum", "float", "int", "long", "short", "signed", "struct", "typedef",
		"union", "unsigned", "void", "volatile" };

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (strcmp(keywords[i], name) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_taken(const struct tdm_event_class *event_class, const char *name, size_t self)
{
	for (size_t i = 0; i < event_class->field_count; i++) {
		if (i != self && (strcmp(event_class->fields[i].unique_name, name) == 0 ||
					 strcmp(event_class->fields[i].name, name) == 0)) {
			return true;
		}
	}
	return false;
}

static bool make_names_unique(struct tdm_arena *arena, struct tdm_event_class *event_class)
{
	/* By the first field of a name, the number that is tried next: a hostile text must not make this cubic. */
	uint16_t next_number[MAX_FIELDS];

	for (size_t i = 0; i < event_class->field_count; i++) {
		struct tdm_field *field = &event_class->fields[i];
		bool clashes = is_keyword(field->name);
		size_t first = i;

		next_number[i] = 2;
		for (size_t before = i; before-- > 0;) {
			const struct tdm_field *other = &event_class->fields[before];

			clashes = clashes || strcmp(other->unique_name, field->name) == 0;
			first = strcmp(other->name, field->name) == 0 ? before : first;
		}
		while (clashes) {
			char name[MAX_NAME_BYTES + 16];
			const int size = snprintf(
				name, sizeof(name), "%s_%u", field->name, next_number[first]++);

			if (!is_taken(event_class, name, i)) {
				field->unique_name = tdm_arena_text(arena, name, (size_t)size);
				clashes = false;
			}
		}
		if (!field->unique_name) {
			return false;
		}
	}
	return true;
}

/* Fields that every record of the class holds, and where the pid is. */
static void summarise(struct tdm_event_class *event_class)
{
	event_class->pid_offset = UINT16_MAX;
	for (uint32_t i = 0; i < event_class->field_count; i++) {
		const struct tdm_field *field = &event_class->fields[i];
		const uint32_t end = field->offset_bytes + field->size_bytes;

		if (end > event_class->fixed_bytes) {
			event_class->fixed_bytes = end;
		}
		if (strcmp(field->name, "common_pid") == 0 && field->size_bytes == 4 &&
			field->place == TDM_PLACE_FIXED && field->offset_bytes < UINT16_MAX) {
			event_class->pid_offset = (uint16_t)field->offset_bytes;
		}
	}
}

static void set_fault(struct tdm_arena *arena, struct tdm_event_class *out, struct piece line,
	unsigned int line_number, const char *reason)
{
	char text[256];
	const int shown = line.size > 120 ? 120 : (int)line.size;
	const int size = snprintf(text, sizeof(text), "line %u of its format \"%.*s\": %s",
		line_number, shown, line.at, reason);

	out->fault = tdm_arena_text(
		arena, text, (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
	if (!out->fault) {
		out->fault = "no memory";
	}
}

static size_t count_field_lines(struct piece text)
{
	size_t count = 0;

	while (text.size) {
		struct piece line = trim(take_until(&text, '\n'));

		count += starts_with(&line, "field:");
	}
	return count;
}

enum tdm_status event_format_parse(struct tdm_arena *arena, const char *text, size_t text_bytes,
	unsigned int long_bytes, struct tdm_event_class *out, struct tdm_error *err)
{
	struct piece rest = { text, text_bytes };
	struct piece name = { NULL, 0 };
	bool has_id = false, in_common = true;
	size_t field_lines = count_field_lines(rest);

	*out = (struct tdm_event_class){ .pid_offset = UINT16_MAX };
	if (field_lines > MAX_FIELDS) {
		field_lines = MAX_FIELDS;
	}
	out->fields = tdm_arena_array(arena, field_lines + 1, sizeof(*out->fields));
	if (!out->fields) {
		return tdm_fail(err, TDM_ERR_NOMEM, "event format: no memory");
	}
	for (unsigned int line_number = 1; rest.size; line_number++) {
		const struct piece line = trim(take_until(&rest, '\n'));
		struct piece value = line;

		if (starts_with(&value, "print fmt:")) {
			break;
		}
		if (starts_with(&value, "name:")) {
			name = trim(value);
		} else if (starts_with(&value, "ID:")) {
			has_id = parse_number(value, &out->id) && out->id <= MAX_ID;
		} else if (line.size == 0 && out->field_count) {
			in_common = false;
		} else if (starts_with(&value, "field:") && !out->fault) {
			const char *reason = out->field_count < field_lines
						     ? parse_field(arena, value, long_bytes,
							       &out->fields[out->field_count])
						     : "there are too many fields";

			if (reason) {
				set_fault(arena, out, line, line_number, reason);
				continue;
			}
			out->field_count++;
			out->common_count += in_common;
		}
	}
	if (!has_id || !is_name(name)) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"event format of %zu bytes: a name and an ID below %d are wanted, read \"%.*s\"",
			text_bytes, MAX_ID + 1, text_bytes > 40 ? 40 : (int)text_bytes, text);
	}
	out->name = tdm_arena_text(arena, name.at, name.size);
	if (!out->name || !make_names_unique(arena, out)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "event format: no memory");
	}
	if (!out->field_count && !out->fault) {
		out->fault = "its format has no fields";
	}
	summarise(out);
	return TDM_OK;
}
