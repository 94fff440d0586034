/* SPDX-License-Identifier: MIT */
/*
 * rich_field.c - values for them.
 */
#include "rich_priv.h"
#include <string.h>

/* Fills a field with values that depend on the round, so that recycled fields with old content would show. */
void rich_fill(bt_field *field, unsigned int round, const char *name, uint64_t links)
{
	const bt_field_class *fc = bt_field_borrow_class_const(field);
	const bt_field_class_type type = bt_field_class_get_type(fc);
	char text[64];

	snprintf(text, sizeof(text), "%s-%u%s", name, round, round == 2 ? " \xc3\xa4\"\n" : "");
	if (type == BT_FIELD_CLASS_TYPE_BOOL) {
		bt_field_bool_set_value(field, round % 2 ? BT_TRUE : BT_FALSE);
	} else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY) {
		bt_field_bit_array_set_value_as_integer(field, 0x15a >> round);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		const bool wide = bt_field_class_integer_get_field_value_range(fc) == 64;

		bt_field_integer_unsigned_set_value(
			field, strcmp(name, "u64") == 0 && wide ? UINT64_MAX - round : links);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
		bt_field_integer_signed_set_value(field,
			strcmp(name, "i64") == 0 ? INT64_MIN + (int64_t)round : (int64_t)links - 1);
	} else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
		bt_field_real_single_precision_set_value(field, 0.1f + (float)round);
	} else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
		bt_field_real_double_precision_set_value(field, -1e300 / (round + 1));
	} else if (type == BT_FIELD_CLASS_TYPE_STRING) {
		CHECK(bt_field_string_set_value(field, round == 1 ? "" : text) == 0);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_DYNAMIC_ARRAY)) {
			CHECK(bt_field_array_dynamic_set_length(field, links) == 0);
		}
		for (uint64_t i = 0; i < bt_field_array_get_length(field); i++) {
			rich_fill(bt_field_array_borrow_element_field_by_index(field, i), round,
				"element", i + links);
		}
	} else if (type == BT_FIELD_CLASS_TYPE_STRUCTURE) {
		for (uint64_t i = 0; i < bt_field_class_structure_get_member_count(fc); i++) {
			rich_fill(bt_field_structure_borrow_member_field_by_index(field, i), round,
				bt_field_class_structure_member_get_name(
					bt_field_class_structure_borrow_member_by_index_const(
						fc, i)),
				links);
		}
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		const bool has = strcmp(name, "option_bool") == 0 ? round % 2 == 0
				 : strcmp(name, "option_u") == 0  ? links == 1 || links == 3
				 : strcmp(name, "option_i") == 0  ? false
								  : round % 2 == 1;

		bt_field_option_set_has_field(field, has ? BT_TRUE : BT_FALSE);
		if (has) {
			rich_fill(bt_field_option_borrow_field(field), round, name, links);
		}
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		CHECK(bt_field_variant_select_option_by_index(field, links % 3) == 0);
		rich_fill(bt_field_variant_borrow_selected_option_field(field), round, name, links);
	}
#if TANDEM_HAVE_BT_2_1
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_BLOB)) {
		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_DYNAMIC_BLOB)) {
			CHECK(bt_field_blob_dynamic_set_length(field, links) == 0);
		}
		for (uint64_t i = 0; i < bt_field_blob_get_length(field); i++) {
			bt_field_blob_get_data(field)[i] = (uint8_t)(round * 16 + i);
		}
	}
#endif
	else {
		CHECK(false);
	}
}
