/* SPDX-License-Identifier: MIT */
/*
 * ir_value_names.c - enumerations of the names that a format gives to a field's values.
 */
#include "ir_class.h"
#include <stdio.h>
#include <string.h>
#include <tandem/utf8.h>

enum {
	NAME_BYTES_MAX = 200,
	LABEL_BYTES = 4 * NAME_BYTES_MAX + 16, /* where every byte is shown by its number */
	TRIES_MAX = 8
};

/* The field of the tracer that a shown field stands for: it may have another name there. */
static const char *tracer_name(const struct tdm_event_class *class, const struct tdm_field *field)
{

	for (uint32_t i = class->common_count; i < class->field_count; i++) {
		if (class->fields[i].offset_bytes == field->offset_bytes &&
			class->fields[i].place == field->place) {
			return class->fields[i].name;
		}
	}
	return field->name;
}

static bool add_mapping(
	bt_field_class *class, bool sign, const char *label, uint64_t value, uint32_t size_bytes)
{
	const unsigned int unused_bits = 64 - 8 * size_bytes;
	bool done = false;

	if (sign) {
		/* The format names bit patterns; of a signed field they are what its bytes mean. */
		const int64_t number = (int64_t)(value << unused_bits) >> unused_bits;
		bt_integer_range_set_signed *const range = bt_integer_range_set_signed_create();

		done = range &&
		       bt_integer_range_set_signed_add_range(range, number, number) ==
			       BT_INTEGER_RANGE_SET_ADD_RANGE_STATUS_OK &&
		       bt_field_class_enumeration_signed_add_mapping(class, label, range) ==
			       BT_FIELD_CLASS_ENUMERATION_ADD_MAPPING_STATUS_OK;
		bt_integer_range_set_signed_put_ref(range);
		return done;
	}

	const uint64_t number = (value << unused_bits) >> unused_bits;
	bt_integer_range_set_unsigned *const range = bt_integer_range_set_unsigned_create();

	done = range &&
	       bt_integer_range_set_unsigned_add_range(range, number, number) ==
		       BT_INTEGER_RANGE_SET_ADD_RANGE_STATUS_OK &&
	       bt_field_class_enumeration_unsigned_add_mapping(class, label, range) ==
		       BT_FIELD_CLASS_ENUMERATION_ADD_MAPPING_STATUS_OK;
	bt_integer_range_set_unsigned_put_ref(range);
	return done;
}

static bool has_label(const bt_field_class *class, bool sign, const char *label)
{
	return sign ? bt_field_class_enumeration_signed_borrow_mapping_by_label_const(
			      class, label) != NULL
		    : bt_field_class_enumeration_unsigned_borrow_mapping_by_label_const(
			      class, label) != NULL;
}

/*
 * A label may stand for several values; babeltrace2 wants each label once, and ends the program where one comes twice.
 * So the others are numbered. @return False where none of some numbers is free.
 */
static bool unique_label(const bt_field_class *class, bool sign, const struct tdm_value_name *names,
	size_t index, char label[LABEL_BYTES])
{
	unsigned int number = 1;
	struct tdm_buffer shown = { 0 };
	const char *const name = names[index].name;
	bool is_free = false;

	for (size_t i = 0; i < index; i++) {
		number += strcmp(names[i].name, name) == 0;
	}
	if (tdm_utf8_append_shown(&shown, (const uint8_t *)name, strnlen(name, NAME_BYTES_MAX)) !=
			TDM_OK ||
		tdm_buffer_append(&shown, "", 1) != TDM_OK) {
		shown.size = 0;
	}
	for (unsigned int tries = 0; tries < TRIES_MAX && !is_free; tries++, number++) {
		snprintf(label, LABEL_BYTES, number > 1 ? "%s#%u" : "%s",
			shown.size ? (char *)shown.bytes : "?", number);
		is_free = !has_label(class, sign, label);
	}
	tdm_buffer_release(&shown);
	return is_free;
}

bt_field_class *ir_enumeration_class(const struct ir_trace *trace,
	const struct tdm_shown_class *shown, const struct tdm_field *field)
{
	const struct tdm_value_name *names = NULL;
	const bool sign = field->kind == TDM_FIELD_SIGNED;
	const size_t count = trace->options.symbols && trace->print
				     ? tdm_print_text_value_names(trace->print, shown->source,
					       tracer_name(shown->source, field), &names)
				     : 0;

	if (count == 0) {
		return NULL;
	}

	bt_field_class *const made =
		sign ? bt_field_class_enumeration_signed_create(trace->trace_class)
		     : bt_field_class_enumeration_unsigned_create(trace->trace_class);

	for (size_t i = 0; made && i < count; i++) {
		char label[LABEL_BYTES];

		if (unique_label(made, sign, names, i, label) &&
			!add_mapping(made, sign, label, names[i].value, field->element_bytes)) {
			/* One label less is no reason to lose the event. */
			bt_current_thread_clear_error();
		}
	}
	if (made) {
		bt_field_class_integer_set_field_value_range(
			made, 8 * (uint64_t)field->element_bytes);
	}
	return made;
}
