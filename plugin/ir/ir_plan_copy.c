/* SPDX-License-Identifier: MIT */
#include "ir/ir_plan.h"
#include <string.h>

#if TANDEM_HAVE_BT_2_1
static bool copy_blob(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	const uint64_t size_bytes = bt_field_blob_get_length(in);

	if (plan->kind == IR_PLAN_DYNAMIC_BLOB &&
		bt_field_blob_dynamic_set_length(out, size_bytes) !=
			BT_FIELD_DYNAMIC_BLOB_SET_LENGTH_STATUS_OK) {
		return false;
	}
	if (size_bytes) {
		memcpy(bt_field_blob_get_data(out), bt_field_blob_get_data_const(in), size_bytes);
	}
	return true;
}
#endif

/* Integers are most of what a trace holds: they are copied here, without a call of our own each. */
static inline bool copy_one(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	if (plan->kind == IR_PLAN_UNSIGNED) {
		bt_field_integer_unsigned_set_value(out, bt_field_integer_unsigned_get_value(in));
		return true;
	}
	if (plan->kind == IR_PLAN_SIGNED) {
		bt_field_integer_signed_set_value(out, bt_field_integer_signed_get_value(in));
		return true;
	}
	return ir_plan_copy(plan, in, out);
}

static bool copy_elements(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	const uint64_t count = bt_field_array_get_length(in);

	if (plan->kind == IR_PLAN_DYNAMIC_ARRAY &&
		bt_field_array_dynamic_set_length(out, count) !=
			BT_FIELD_DYNAMIC_ARRAY_SET_LENGTH_STATUS_OK) {
		return false;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!copy_one(plan->children,
			    bt_field_array_borrow_element_field_by_index_const(in, i),
			    bt_field_array_borrow_element_field_by_index(out, i))) {
			return false;
		}
	}
	return true;
}

static bool copy_option(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	const bt_field *content = bt_field_option_borrow_field_const(in);

	/* Output fields are recycled: an absent content must be said too. */
	bt_field_option_set_has_field(out, content ? BT_TRUE : BT_FALSE);
	return !content || ir_plan_copy(plan->children, content, bt_field_option_borrow_field(out));
}

static bool copy_variant(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	const uint64_t index = bt_field_variant_get_selected_option_index(in);

	if (bt_field_variant_select_option_by_index(out, index) !=
		BT_FIELD_VARIANT_SELECT_OPTION_STATUS_OK) {
		return false;
	}
	return ir_plan_copy(&plan->children[index],
		bt_field_variant_borrow_selected_option_field_const(in),
		bt_field_variant_borrow_selected_option_field(out));
}

static bool copy_members(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	const struct ir_plan *child = plan->children;
	const uint64_t count = plan->child_count;

	for (uint64_t i = 0; i < count; i++, child++) {
		if (!copy_one(child, bt_field_structure_borrow_member_field_by_index_const(in, i),
			    bt_field_structure_borrow_member_field_by_index(out, i))) {
			return false;
		}
	}
	return true;
}

bool ir_plan_copy(const struct ir_plan *plan, const bt_field *in, bt_field *out)
{
	switch (plan->kind) {
	case IR_PLAN_UNSIGNED:
		bt_field_integer_unsigned_set_value(out, bt_field_integer_unsigned_get_value(in));
		return true;
	case IR_PLAN_SIGNED:
		bt_field_integer_signed_set_value(out, bt_field_integer_signed_get_value(in));
		return true;
	case IR_PLAN_STRUCTURE:
		return copy_members(plan, in, out);
	case IR_PLAN_STRING:
		return bt_field_string_set_value(out, bt_field_string_get_value(in)) ==
		       BT_FIELD_STRING_SET_VALUE_STATUS_OK;
	case IR_PLAN_STATIC_ARRAY:
	case IR_PLAN_DYNAMIC_ARRAY:
		return copy_elements(plan, in, out);
	case IR_PLAN_BOOL:
		bt_field_bool_set_value(out, bt_field_bool_get_value(in));
		return true;
	case IR_PLAN_BIT_ARRAY:
		bt_field_bit_array_set_value_as_integer(
			out, bt_field_bit_array_get_value_as_integer(in));
		return true;
	case IR_PLAN_SINGLE:
		bt_field_real_single_precision_set_value(
			out, bt_field_real_single_precision_get_value(in));
		return true;
	case IR_PLAN_DOUBLE:
		bt_field_real_double_precision_set_value(
			out, bt_field_real_double_precision_get_value(in));
		return true;
	case IR_PLAN_OPTION:
		return copy_option(plan, in, out);
	case IR_PLAN_VARIANT:
		return copy_variant(plan, in, out);
	case IR_PLAN_STATIC_BLOB:
	case IR_PLAN_DYNAMIC_BLOB:
#if TANDEM_HAVE_BT_2_1
		return copy_blob(plan, in, out);
#else
		break;
#endif
	}
	return false;
}
