/* SPDX-License-Identifier: MIT */
#include "ir/ir_plan_priv.h"

static void copy_integer_properties(
	const struct ir_plan_context *context, const bt_field_class *in, bt_field_class *out)
{
	bt_field_class_integer_set_field_value_range(
		out, bt_field_class_integer_get_field_value_range(in));
	bt_field_class_integer_set_preferred_display_base(
		out, bt_field_class_integer_get_preferred_display_base(in));
#if TANDEM_HAVE_BT_2_1
	if (context->mip > 0) {
		bt_field_class_integer_set_field_value_hints(
			out, bt_field_class_integer_get_field_value_hints(in));
	}
#else
	(void)context;
#endif
}

static bool copy_unsigned_mappings(const bt_field_class *in, bt_field_class *out)
{
	for (uint64_t i = 0; i < bt_field_class_enumeration_get_mapping_count(in); i++) {
		const bt_field_class_enumeration_unsigned_mapping *mapping =
			bt_field_class_enumeration_unsigned_borrow_mapping_by_index_const(in, i);

		if (bt_field_class_enumeration_unsigned_add_mapping(out,
			    bt_field_class_enumeration_mapping_get_label(
				    bt_field_class_enumeration_unsigned_mapping_as_mapping_const(
					    mapping)),
			    bt_field_class_enumeration_unsigned_mapping_borrow_ranges_const(
				    mapping)) != BT_FIELD_CLASS_ENUMERATION_ADD_MAPPING_STATUS_OK) {
			return false;
		}
	}
	return true;
}

static bool copy_signed_mappings(const bt_field_class *in, bt_field_class *out)
{
	for (uint64_t i = 0; i < bt_field_class_enumeration_get_mapping_count(in); i++) {
		const bt_field_class_enumeration_signed_mapping *mapping =
			bt_field_class_enumeration_signed_borrow_mapping_by_index_const(in, i);

		if (bt_field_class_enumeration_signed_add_mapping(out,
			    bt_field_class_enumeration_mapping_get_label(
				    bt_field_class_enumeration_signed_mapping_as_mapping_const(
					    mapping)),
			    bt_field_class_enumeration_signed_mapping_borrow_ranges_const(
				    mapping)) != BT_FIELD_CLASS_ENUMERATION_ADD_MAPPING_STATUS_OK) {
			return false;
		}
	}
	return true;
}

static bt_field_class *make_integer(
	const struct ir_plan_context *context, const bt_field_class *in, struct ir_plan *plan)
{
	bt_trace_class *trace_class = context->trace_class;
	const bt_field_class_type type = bt_field_class_get_type(in);
	const bool is_enumeration =
		bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ENUMERATION) == BT_TRUE;
	bt_field_class *out = NULL;
	bool mapped = true;

	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		plan->kind = IR_PLAN_UNSIGNED;
		out = is_enumeration ? bt_field_class_enumeration_unsigned_create(trace_class)
				     : bt_field_class_integer_unsigned_create(trace_class);
	} else {
		plan->kind = IR_PLAN_SIGNED;
		out = is_enumeration ? bt_field_class_enumeration_signed_create(trace_class)
				     : bt_field_class_integer_signed_create(trace_class);
	}
	if (!out) {
		return NULL;
	}
	copy_integer_properties(context, in, out);
	if (is_enumeration) {
		mapped = plan->kind == IR_PLAN_UNSIGNED ? copy_unsigned_mappings(in, out)
							: copy_signed_mappings(in, out);
	}
	if (!mapped) {
		BT_FIELD_CLASS_PUT_REF_AND_RESET(out);
	}
	return out;
}

static bt_field_class *make_bit_array(
	const struct ir_plan_context *context, const bt_field_class *in)
{
	bt_field_class *out = bt_field_class_bit_array_create(
		context->trace_class, bt_field_class_bit_array_get_length(in));

#if TANDEM_HAVE_BT_2_1
	for (uint64_t i = 0;
		out && context->mip > 0 && i < bt_field_class_bit_array_get_flag_count(in); i++) {
		const bt_field_class_bit_array_flag *flag =
			bt_field_class_bit_array_borrow_flag_by_index_const(in, i);

		if (bt_field_class_bit_array_add_flag(out,
			    bt_field_class_bit_array_flag_get_label(flag),
			    bt_field_class_bit_array_flag_borrow_index_ranges_const(flag)) !=
			BT_FIELD_CLASS_BIT_ARRAY_ADD_FLAG_STATUS_OK) {
			BT_FIELD_CLASS_PUT_REF_AND_RESET(out);
		}
	}
#endif
	return out;
}

bt_field_class *ir_plan_make_leaf(
	const struct ir_plan_context *context, const bt_field_class *in, struct ir_plan *plan)
{
	const bt_field_class_type type = bt_field_class_get_type(in);

	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_INTEGER)) {
		return make_integer(context, in, plan);
	}
	if (type == BT_FIELD_CLASS_TYPE_STRING) {
		plan->kind = IR_PLAN_STRING;
		return bt_field_class_string_create(context->trace_class);
	}
	if (type == BT_FIELD_CLASS_TYPE_BOOL) {
		plan->kind = IR_PLAN_BOOL;
		return bt_field_class_bool_create(context->trace_class);
	}
	if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY) {
		plan->kind = IR_PLAN_BIT_ARRAY;
		return make_bit_array(context, in);
	}
	if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
		plan->kind = IR_PLAN_SINGLE;
		return bt_field_class_real_single_precision_create(context->trace_class);
	}
	if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
		plan->kind = IR_PLAN_DOUBLE;
		return bt_field_class_real_double_precision_create(context->trace_class);
	}
#if TANDEM_HAVE_BT_2_1
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_BLOB)) {
		plan->kind = type == BT_FIELD_CLASS_TYPE_STATIC_BLOB ? IR_PLAN_STATIC_BLOB
								     : IR_PLAN_DYNAMIC_BLOB;
		return ir_plan_blob(context, in);
	}
#endif
	return NULL;
}
