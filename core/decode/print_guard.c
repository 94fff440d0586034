/* SPDX-License-Identifier: MIT */
#include "print_guard_priv.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <traceevent/event-parse.h>

/* The largest of the kernel's own have a few KiB, 64 operators, and 8 levels. */
enum {
	TEXT_BYTES_MAX = 64 << 10,
	PRINTK_LINE_MAX = 16 << 10,
	LEVELS_MAX = 64,
	OPERATORS_MAX = 1000, /* outside of braces, and inside of each outermost pair */
	WIDTH_MAX = 4096,
	ARRAYS_MAX = 64
};

/* ---- the text ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A conversion from its '%' on. False: its width or precision could be anything. */
static bool conversion_is_bounded(const char *at, const char *end)
{
	bool star_width = false, star_precision = false;

	at++;
	for (bool is_precision = false;; at++) {
		uint32_t number = 0;

		while (at < end && strchr("-+ #", *at)) {
			at++;
		}
		if (at < end && *at == '*') {
			star_width = star_width || !is_precision;
			star_precision = star_precision || is_precision;
			at++;
		}
		for (; at < end && is_digit(*at); at++) {
			number = number * 10 + (uint32_t)(*at - '0');
			if (number > WIDTH_MAX) {
				return false;
			}
		}
		if (at >= end || *at != '.' || is_precision) {
			break;
		}
		is_precision = true;
	}
	while (at < end && strchr("hlLzjt", *at)) {
		at++;
	}
	/* "%*pbl" is a bitmap of so many bits; the length of a text only ever cuts it. */
	return at >= end || ((!star_width || *at == 'p') && (!star_precision || *at == 's'));
}

static bool conversions_are_bounded(const char *text, size_t size)
{
	const char *const end = text + size;

	for (const char *at = text; at < end; at++) {
		if (*at != '%') {
			continue;
		}
		if (at + 1 < end && at[1] == '%') {
			at++;
		} else if (!conversion_is_bounded(at, end)) {
			return false;
		}
	}
	return true;
}

/* What stands behind '/' or '%': a number that is not 0, or a field, whose values are looked at in each record. */
static bool divisor_is_known(const char *at, const char *end)
{
	unsigned int levels = 0;

	for (; at < end && (*at == ' ' || *at == '('); at++) {
		levels += *at == '(';
	}
	if (end - at >= 3 && memcmp(at, "REC", 3) == 0) {
		return true;
	}
	if (end - at >= 6 && memcmp(at, "sizeof", 6) == 0) {
		return true;
	}
	if (at >= end || *at < '1' || *at > '9') {
		return false;
	}
	while (at < end && (is_digit(*at) || strchr("uUlL", *at))) {
		at++;
	}
	while (at < end && *at == ' ') {
		at++;
	}
	/* "8 / (2 - 2)" */
	return !levels || (at < end && *at == ')');
}

struct scan {
	unsigned int levels, braces;
	unsigned int operators;       /* outside of braces */
	unsigned int brace_operators; /* since the outermost brace opened */
};

static bool scan_code(struct scan *scan, const char *at, const char *end)
{
	switch (*at) {
	case '(':
	case '[':
		return ++scan->levels <= LEVELS_MAX;
	case '{':
		scan->braces++;
		scan->brace_operators = 0;
		return ++scan->levels <= LEVELS_MAX;
	case ')':
	case ']':
		scan->levels -= scan->levels > 0;
		return true;
	case '}':
		scan->levels -= scan->levels > 0;
		scan->braces -= scan->braces > 0;
		return true;
	case '/':
	case '%':
		/* Values in braces are computed when the text is parsed. */
		if (scan->braces || !divisor_is_known(at + 1, end)) {
			return false;
		}
		break;
	case '!':
	case '~':
	case '-':
	case '+':
	case '*':
	case '&':
	case '|':
	case '^':
	case '<':
	case '>':
	case '=':
	case '?':
	case ':':
		break;
	default:
		return true;
	}
	return (scan->braces ? ++scan->brace_operators : ++scan->operators) <= OPERATORS_MAX;
}

bool print_guard_text(const char *text, size_t text_bytes)
{
	static const char mark[] = "print fmt:";
	const char *const end = text + text_bytes;
	const char *at = memmem(text, text_bytes, mark, sizeof(mark) - 1);
	struct scan scan = { 0 };
	size_t literal_bytes = 0;

	if (text_bytes > TEXT_BYTES_MAX) {
		return false;
	}
	if (!at) {
		return true;
	}

	/* Literals beside one another are one format: they are looked at together. */
	char *const literals = malloc((size_t)(end - at) + 1);
	bool in_literal = false, allowed = literals != NULL;

	for (at += sizeof(mark) - 1; allowed && at < end; at++) {
		if (in_literal && *at == '\\' && at + 1 < end) {
			literals[literal_bytes++] = *at++;
			literals[literal_bytes++] = *at;
		} else if (*at == '"') {
			in_literal = !in_literal;
		} else if (in_literal) {
			literals[literal_bytes++] = *at;
		} else if (*at == '\'') {
			/* One character: a quote or a bracket as a value. */
			at += at + 2 < end && at[1] == '\\' ? 3 : 2;
		} else {
			allowed = scan_code(&scan, at, end);
		}
	}
	allowed = allowed && conversions_are_bounded(literals, literal_bytes);
	free(literals);
	return allowed;
}

bool print_guard_printk(const char *text, size_t text_bytes)
{
	size_t line_bytes = 0;

	for (size_t i = 0; i < text_bytes; i++) {
		line_bytes = text[i] == '\n' ? 0 : line_bytes + 1;
		if (line_bytes > PRINTK_LINE_MAX) {
			return false;
		}
	}
	return conversions_are_bounded(text, text_bytes);
}

/* ---- the arguments ---- */

struct walk {
	struct print_guard *guard;
	const struct tdm_event_class *event_class;
	unsigned int arrays;
};

static bool is_word(const char *word, const char *wanted)
{
	return word && strcmp(word, wanted) == 0;
}

static const struct tep_print_arg *without_casts(const struct tep_print_arg *arg)
{
	for (unsigned int level = 0; arg && arg->type == TEP_PRINT_TYPE && level < LEVELS_MAX;
		level++) {
		arg = arg->typecast.item;
	}
	return arg;
}

/* An integer of fixed place, whose value can be looked at. NULL: no such field. */
static const struct tdm_field *integer_of(const struct walk *walk, const struct tep_print_arg *arg)
{
	const struct tdm_field *const field =
		arg && arg->type == TEP_PRINT_FIELD && arg->field.name
			? tdm_event_class_field(walk->event_class, arg->field.name)
			: NULL;

	return field && field->place == TDM_PLACE_FIXED && !field->is_array &&
			       field->element_bytes >= 1 && field->element_bytes <= 8
		       ? field
		       : NULL;
}

static bool is_array(const struct walk *walk, const struct tep_print_arg *arg)
{
	arg = without_casts(arg);
	if (!arg || arg->type == TEP_PRINT_DYNAMIC_ARRAY) {
		return arg != NULL;
	}

	const struct tdm_field *const field =
		arg->type == TEP_PRINT_FIELD && arg->field.name
			? tdm_event_class_field(walk->event_class, arg->field.name)
			: NULL;

	return field && field->is_array;
}

static bool watch(struct walk *walk, const struct tdm_field *field, uint64_t most, bool is_divisor)
{
	struct print_guard *const guard = walk->guard;

	if (!field || guard->count == PRINT_GUARD_VALUES_MAX) {
		return false;
	}
	guard->values[guard->count++] = (struct print_guard_value){ field, most, is_divisor };
	return true;
}

static bool atom_value(const struct tep_print_arg *arg, uint64_t *value)
{
	char *end = NULL;

	if (!arg || arg->type != TEP_PRINT_ATOM || !arg->atom.atom || !is_digit(*arg->atom.atom)) {
		return false;
	}
	*value = strtoull(arg->atom.atom, &end, 0);
	return true;
}

/* Whether a count or an index stays within what there is room for. */
static bool is_bounded(struct walk *walk, const struct tep_print_arg *arg, unsigned int level)
{
	uint64_t value = 0;

	arg = without_casts(arg);
	if (!arg || level > LEVELS_MAX) {
		return false;
	}
	switch (arg->type) {
	case TEP_PRINT_ATOM:
		return atom_value(arg, &value) && value <= PRINT_GUARD_COUNT_MAX;
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		return true;
	case TEP_PRINT_FIELD:
		return watch(walk, integer_of(walk, arg), PRINT_GUARD_COUNT_MAX, false);
	case TEP_PRINT_OP:
		/* "length / size of an element" */
		return (is_word(arg->op.op, "/") || is_word(arg->op.op, ">>")) &&
		       is_bounded(walk, arg->op.left, level + 1);
	default:
		return false;
	}
}

static bool is_divisor(struct walk *walk, const struct tep_print_arg *arg)
{
	uint64_t value = 0;

	arg = without_casts(arg);
	if (atom_value(arg, &value)) {
		return value > 0 && value <= INT64_MAX;
	}
	return watch(walk, integer_of(walk, arg), UINT64_MAX, true);
}

/* Some functions of the library's plugins take an argument for an address. */
static bool function_is_safe(const struct walk *walk, const struct tep_print_arg *arg)
{
	const struct tep_print_arg *const first = arg->func.args;
	const struct tep_print_arg *const second = first ? first->next : NULL;
	static const char *const takers[] = { "__le16_to_cpup", "scsi_trace_parse_cdb" };
	bool takes_address = false;

	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		takes_address = takes_address ||
				memmem(walk->event_class->text, walk->event_class->text_bytes,
					takers[i], strlen(takers[i]));
	}
	return !takes_address || is_array(walk, second ? second : first);
}

static bool walk_list(struct walk *walk, const struct tep_print_arg *arg, unsigned int level);

static bool walk_array(struct walk *walk, const struct tep_print_arg *field,
	const struct tep_print_arg *count, unsigned int level)
{
	return ++walk->arrays <= ARRAYS_MAX && is_bounded(walk, count, 0) &&
	       is_array(walk, field) && walk_list(walk, field, level + 1);
}

static bool walk_one(struct walk *walk, const struct tep_print_arg *arg, unsigned int level)
{
	switch (arg->type) {
	case TEP_PRINT_TYPE:
		return walk_list(walk, arg->typecast.item, level + 1);
	case TEP_PRINT_FLAGS:
		return walk_list(walk, arg->flags.field, level + 1);
	case TEP_PRINT_SYMBOL:
		return walk_list(walk, arg->symbol.field, level + 1);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
		return walk_array(walk, arg->hex.field, arg->hex.size, level);
	case TEP_PRINT_INT_ARRAY:
		return walk_array(walk, arg->int_array.field, arg->int_array.count, level);
	case TEP_PRINT_DYNAMIC_ARRAY:
		return !arg->dynarray.index || is_bounded(walk, arg->dynarray.index, 0);
	case TEP_PRINT_FUNC:
		return function_is_safe(walk, arg) && walk_list(walk, arg->func.args, level + 1);
	case TEP_PRINT_OP:
		if ((is_word(arg->op.op, "/") || is_word(arg->op.op, "%")) &&
			!is_divisor(walk, arg->op.right)) {
			return false;
		}
		if (is_word(arg->op.op, "[") && !is_bounded(walk, arg->op.right, 0)) {
			return false;
		}
		return walk_list(walk, arg->op.left, level + 1) &&
		       walk_list(walk, arg->op.right, level + 1);
	default:
		return true;
	}
}

/* Operators lean to one side: a long chain is as deep as it is long, and bounded by the text. */
static bool walk_list(struct walk *walk, const struct tep_print_arg *arg, unsigned int level)
{
	if (level > OPERATORS_MAX + LEVELS_MAX) {
		return false;
	}
	for (; arg; arg = arg->next) {
		if (!walk_one(walk, arg, level)) {
			return false;
		}
	}
	return true;
}

bool print_guard_args(struct print_guard *guard, const struct tdm_event_class *event_class,
	const struct tep_print_arg *args)
{
	struct walk walk = { .guard = guard, .event_class = event_class };

	guard->count = 0;
	return walk_list(&walk, args, 0);
}

bool print_guard_allows(const struct print_guard *guard, const uint8_t *payload,
	uint32_t payload_bytes, bool big_endian)
{
	for (size_t i = 0; i < guard->count; i++) {
		const struct print_guard_value *const value = &guard->values[i];
		struct tdm_span span;

		if (!tdm_field_span(value->field, payload, payload_bytes, big_endian, &span) ||
			span.size_bytes != value->field->element_bytes) {
			return false;
		}

		const uint64_t number = tdm_load_uint(span.bytes, span.size_bytes, big_endian);
		const uint64_t minus_one = UINT64_MAX >> (64 - 8 * span.size_bytes);

		if (number > value->most ||
			(value->is_divisor && (number == 0 || number == minus_one))) {
			return false;
		}
	}
	return true;
}
