/* SPDX-License-Identifier: MIT */
#include "ir/ir_plan_priv.h"
#include <stdlib.h>

#if TANDEM_HAVE_BT_2_1

static bt_field_location *same_location(
	const struct ir_plan_context *context, const bt_field_location *in)
{
	const uint64_t count = bt_field_location_get_item_count(in);
	const char **items = calloc(count ? count : 1, sizeof(*items));

	if (!items) {
		return NULL;
	}
	for (uint64_t i = 0; i < count; i++) {
		items[i] = bt_field_location_get_item_by_index(in, i);
	}
	bt_field_location *out = bt_field_location_create(
		context->trace_class, bt_field_location_get_root_scope(in), items, count);

	free(items);
	return out;
}

bt_field_class *ir_plan_array_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *element, bool is_linked)
{
	if (!is_linked) {
		return bt_field_class_array_dynamic_without_length_field_location_create(
			context->trace_class, element);
	}
	bt_field_location *length = same_location(context,
		bt_field_class_array_dynamic_with_length_field_borrow_length_field_location_const(
			in));
	bt_field_class *out =
		length ? bt_field_class_array_dynamic_with_length_field_location_create(
				 context->trace_class, element, length)
		       : NULL;

	bt_field_location_put_ref(length);
	return out;
}

bt_field_class *ir_plan_option_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *content, bt_field_class_type type)
{
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITHOUT_SELECTOR_FIELD) {
		return bt_field_class_option_without_selector_field_location_create(
			context->trace_class, content);
	}
	bt_field_location *selector = same_location(context,
		bt_field_class_option_with_selector_field_borrow_selector_field_location_const(in));
	bt_field_class *out = NULL;

	if (!selector) {
		return NULL;
	}
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITH_BOOL_SELECTOR_FIELD) {
		out = bt_field_class_option_with_selector_field_location_bool_create(
			context->trace_class, content, selector);
	} else if (type == BT_FIELD_CLASS_TYPE_OPTION_WITH_UNSIGNED_INTEGER_SELECTOR_FIELD) {
		out = bt_field_class_option_with_selector_field_location_integer_unsigned_create(
			context->trace_class, content, selector,
			bt_field_class_option_with_selector_field_integer_unsigned_borrow_selector_ranges_const(
				in));
	} else {
		out = bt_field_class_option_with_selector_field_location_integer_signed_create(
			context->trace_class, content, selector,
			bt_field_class_option_with_selector_field_integer_signed_borrow_selector_ranges_const(
				in));
	}
	bt_field_location_put_ref(selector);
	return out;
}

bt_field_class *ir_plan_variant_by_location(
	const struct ir_plan_context *context, const bt_field_class *in, bt_field_class_type type)
{
	if (type == BT_FIELD_CLASS_TYPE_VARIANT_WITHOUT_SELECTOR_FIELD) {
		return bt_field_class_variant_without_selector_field_location_create(
			context->trace_class);
	}
	bt_field_location *selector = same_location(context,
		bt_field_class_variant_with_selector_field_borrow_selector_field_location_const(
			in));
	bt_field_class *out = NULL;

	if (!selector) {
		return NULL;
	}
	out = type == BT_FIELD_CLASS_TYPE_VARIANT_WITH_UNSIGNED_INTEGER_SELECTOR_FIELD
		      ? bt_field_class_variant_with_selector_field_location_integer_unsigned_create(
				context->trace_class, selector)
		      : bt_field_class_variant_with_selector_field_location_integer_signed_create(
				context->trace_class, selector);
	bt_field_location_put_ref(selector);
	return out;
}

bt_field_class *ir_plan_blob(const struct ir_plan_context *context, const bt_field_class *in)
{
	const bt_field_class_type type = bt_field_class_get_type(in);
	bt_field_class *out = NULL;

	if (type == BT_FIELD_CLASS_TYPE_STATIC_BLOB) {
		out = bt_field_class_blob_static_create(
			context->trace_class, bt_field_class_blob_static_get_length(in));
	} else if (type == BT_FIELD_CLASS_TYPE_DYNAMIC_BLOB_WITHOUT_LENGTH_FIELD) {
		out = bt_field_class_blob_dynamic_without_length_field_location_create(
			context->trace_class);
	} else {
		bt_field_location *length = same_location(context,
			bt_field_class_blob_dynamic_with_length_field_borrow_length_field_location_const(
				in));

		out = length ? bt_field_class_blob_dynamic_with_length_field_location_create(
				       context->trace_class, length)
			     : NULL;
		bt_field_location_put_ref(length);
	}
	if (out &&
		bt_field_class_blob_set_media_type(out, bt_field_class_blob_get_media_type(in)) !=
			BT_FIELD_CLASS_BLOB_SET_MEDIA_TYPE_STATUS_OK) {
		BT_FIELD_CLASS_PUT_REF_AND_RESET(out);
	}
	return out;
}

#else /* babeltrace2 2.0 speaks version 0 only */

bt_field_class *ir_plan_array_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *element, bool is_linked)
{
	(void)context, (void)in, (void)element, (void)is_linked;
	return NULL;
}

bt_field_class *ir_plan_option_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *content, bt_field_class_type type)
{
	(void)context, (void)in, (void)content, (void)type;
	return NULL;
}

bt_field_class *ir_plan_variant_by_location(
	const struct ir_plan_context *context, const bt_field_class *in, bt_field_class_type type)
{
	(void)context, (void)in, (void)type;
	return NULL;
}

#endif
