/* SPDX-License-Identifier: MIT */
#include "text_field.h"
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <tandem/utf8.h>

/* Structures nest as deep as their classes do; a class made by hand must not exhaust the stack. */
#define MAX_DEPTH 64

static void append(struct tdm_buffer *out, const bt_field *field, unsigned int depth);

static bool is(bt_field_class_type type, bt_field_class_type kind)
{
	return bt_field_class_type_is(type, kind);
}

static void append_number(struct tdm_buffer *out, const bt_field *field, bool sign)
{
	const bool hexadecimal = bt_field_class_integer_get_preferred_display_base(
					 bt_field_borrow_class_const(field)) ==
				 BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;

	if (sign) {
		const int64_t value = bt_field_integer_signed_get_value(field);

		if (hexadecimal) {
			tdm_buffer_printf(out, "0x%" PRIx64, (uint64_t)value);
		} else {
			tdm_buffer_printf(out, "%" PRId64, value);
		}
		return;
	}

	const uint64_t value = bt_field_integer_unsigned_get_value(field);

	tdm_buffer_printf(out, hexadecimal ? "0x%" PRIx64 : "%" PRIu64, value);
}

/* Text stays on its line and speaks to no terminal: control characters are shown by their numbers. */
static void append_text(struct tdm_buffer *out, const char *text)
{
	tdm_buffer_printf(out, "\"");
	while (*text) {
		const size_t plain = strcspn(text, "\n\"\\");

		(void)tdm_utf8_append_visible(out, (const uint8_t *)text, plain);
		text += plain;
		if (*text) {
			tdm_buffer_printf(out, "\\%c", *text == '\n' ? 'n' : *text);
			text++;
		}
	}
	tdm_buffer_printf(out, "\"");
}

static void append_enumeration(struct tdm_buffer *out, const bt_field *field, bool sign)
{
	bt_field_class_enumeration_mapping_label_array labels = NULL;
	uint64_t count = 0;
	const int status =
		sign ? (int)bt_field_enumeration_signed_get_mapping_labels(field, &labels, &count)
		     : (int)bt_field_enumeration_unsigned_get_mapping_labels(
			       field, &labels, &count);

	append_number(out, field, sign);
	if (status != 0) {
		bt_current_thread_clear_error();
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		tdm_buffer_printf(out, "%s", i ? "|" : "(");
		(void)tdm_utf8_append_visible(out, (const uint8_t *)labels[i], strlen(labels[i]));
		tdm_buffer_printf(out, "%s", i + 1 == count ? ")" : "");
	}
}

static void append_array(struct tdm_buffer *out, const bt_field *field, unsigned int depth)
{
	const uint64_t length = bt_field_array_get_length(field);

	tdm_buffer_printf(out, "[");
	for (uint64_t i = 0; i < length; i++) {
		tdm_buffer_printf(out, "%s", i ? ", " : "");
		append(out, bt_field_array_borrow_element_field_by_index_const(field, i),
			depth + 1);
	}
	tdm_buffer_printf(out, "]");
}

static void append_structure(struct tdm_buffer *out, const bt_field *field, unsigned int depth)
{
	const bt_field_class *const class = bt_field_borrow_class_const(field);
	const uint64_t count = bt_field_class_structure_get_member_count(class);

	if (depth > 0) {
		tdm_buffer_printf(out, "{ ");
	}
	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_structure_member *const member =
			bt_field_class_structure_borrow_member_by_index_const(class, i);

		tdm_buffer_printf(out, "%s%s=", i ? " " : "",
			bt_field_class_structure_member_get_name(member));
		append(out, bt_field_structure_borrow_member_field_by_index_const(field, i),
			depth + 1);
	}
	if (depth > 0) {
		tdm_buffer_printf(out, " }");
	}
}

static void append_optional(struct tdm_buffer *out, const bt_field *content, unsigned int depth)
{
	if (content) {
		append(out, content, depth + 1);
	} else {
		tdm_buffer_printf(out, "none");
	}
}

static void append(struct tdm_buffer *out, const bt_field *field, unsigned int depth)
{
	const bt_field_class_type type = bt_field_get_class_type(field);

	if (depth > MAX_DEPTH) {
		tdm_buffer_printf(out, "...");
	} else if (is(type, BT_FIELD_CLASS_TYPE_BOOL)) {
		tdm_buffer_printf(out, "%s", bt_field_bool_get_value(field) ? "true" : "false");
	} else if (is(type, BT_FIELD_CLASS_TYPE_BIT_ARRAY)) {
		tdm_buffer_printf(
			out, "0x%" PRIx64, bt_field_bit_array_get_value_as_integer(field));
	} else if (is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_ENUMERATION)) {
		append_enumeration(out, field, false);
	} else if (is(type, BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION)) {
		append_enumeration(out, field, true);
	} else if (is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		append_number(out, field, false);
	} else if (is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
		append_number(out, field, true);
	} else if (is(type, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)) {
		tdm_buffer_printf(
			out, "%.9g", (double)bt_field_real_single_precision_get_value(field));
	} else if (is(type, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)) {
		tdm_buffer_printf(out, "%.17g", bt_field_real_double_precision_get_value(field));
	} else if (is(type, BT_FIELD_CLASS_TYPE_STRING)) {
		append_text(out, bt_field_string_get_value(field));
	} else if (is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
		append_array(out, field, depth);
	} else if (is(type, BT_FIELD_CLASS_TYPE_STRUCTURE)) {
		append_structure(out, field, depth);
	} else if (is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		append_optional(out, bt_field_option_borrow_field_const(field), depth);
	} else if (is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		append_optional(
			out, bt_field_variant_borrow_selected_option_field_const(field), depth);
	} else {
		tdm_buffer_printf(out, "?");
	}
}

void text_field_append(struct tdm_buffer *out, const bt_field *field)
{
	append(out, field, 0);
}
