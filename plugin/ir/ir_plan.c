/* SPDX-License-Identifier: MIT */
#include "ir/ir_plan.h"
#include "ir/ir_plan_priv.h"
#include <stdlib.h>

/* Deeper than any tracer nests; a source that nests without end must not take our stack. */
#define MAX_DEPTH 64

/* The classes that a link can lead to are those that have a plan already, so the path is walked in the plans. */
static bt_field_class *linked_class(
	const struct ir_plan_context *context, const bt_field_path *path)
{
	static const enum ir_scope scopes[] = {
		[BT_FIELD_PATH_SCOPE_PACKET_CONTEXT] = IR_SCOPE_PACKET_CONTEXT,
		[BT_FIELD_PATH_SCOPE_EVENT_COMMON_CONTEXT] = IR_SCOPE_COMMON_CONTEXT,
		[BT_FIELD_PATH_SCOPE_EVENT_SPECIFIC_CONTEXT] = IR_SCOPE_SPECIFIC_CONTEXT,
		[BT_FIELD_PATH_SCOPE_EVENT_PAYLOAD] = IR_SCOPE_PAYLOAD,
	};

	if (!path) {
		return NULL;
	}
	const struct ir_plan *at = context->scopes[scopes[bt_field_path_get_root_scope(path)]];

	for (uint64_t i = 0; at && i < bt_field_path_get_item_count(path); i++) {
		const bt_field_path_item *item = bt_field_path_borrow_item_by_index_const(path, i);
		/* The other two item types lead into an array's element or an option's content: the only child. */
		const uint64_t index =
			bt_field_path_item_get_type(item) == BT_FIELD_PATH_ITEM_TYPE_INDEX
				? bt_field_path_item_index_get_index(item)
				: 0;

		at = index < at->child_count ? &at->children[index] : NULL;
	}
	return at ? at->out : NULL;
}

#define FAIL(context, ...) \
	(BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT((context)->self, __VA_ARGS__), NULL)

static bt_field_class *memory(const struct ir_plan_context *context)
{
	return FAIL(context, "No memory for a field class");
}

static bt_field_class *no_link(const struct ir_plan_context *context, const char *what)
{
	return FAIL(context, "%s of a field class leads to no field before it", what);
}

static bool reserve_children(struct ir_plan *plan, uint64_t count)
{
	if (count > UINT32_MAX) {
		return false;
	}
	plan->children = calloc(count ? count : 1, sizeof(*plan->children));
	plan->child_count = plan->children ? (uint32_t)count : 0;
	return plan->children != NULL;
}

static bt_field_class *make(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth);

/* The one child of an array or option. */
static bt_field_class *make_child(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	if (!reserve_children(plan, 1)) {
		return memory(context);
	}
	return make(context, in, plan->children, depth + 1);
}

static bt_field_class *make_structure(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	const uint64_t count = bt_field_class_structure_get_member_count(in);
	bt_field_class *out = bt_field_class_structure_create(context->trace_class);

	plan->kind = IR_PLAN_STRUCTURE;
	if (!out || !reserve_children(plan, count)) {
		bt_field_class_put_ref(out);
		return memory(context);
	}
	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_structure_member *member =
			bt_field_class_structure_borrow_member_by_index_const(in, i);
		bt_field_class *child = make(context,
			bt_field_class_structure_member_borrow_field_class_const(member),
			&plan->children[i], depth + 1);

		if (!child) {
			bt_field_class_put_ref(out);
			return NULL;
		}
		const bool appended =
			bt_field_class_structure_append_member(out,
				bt_field_class_structure_member_get_name(member),
				child) == BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK;

		bt_field_class_put_ref(child);
		if (!appended) {
			bt_field_class_put_ref(out);
			return memory(context);
		}
		bt_field_class_structure_member_set_user_attributes(
			bt_field_class_structure_borrow_member_by_index(out, i),
			bt_field_class_structure_member_borrow_user_attributes_const(member));
	}
	return out;
}

static bt_field_class *make_array(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	const bt_field_class_type type = bt_field_class_get_type(in);
	const bool is_static = type == BT_FIELD_CLASS_TYPE_STATIC_ARRAY;
	const bool is_linked = type == BT_FIELD_CLASS_TYPE_DYNAMIC_ARRAY_WITH_LENGTH_FIELD;
	bt_field_class *element = make_child(
		context, bt_field_class_array_borrow_element_field_class_const(in), plan, depth);
	bt_field_class *out = NULL;

	plan->kind = is_static ? IR_PLAN_STATIC_ARRAY : IR_PLAN_DYNAMIC_ARRAY;
	if (!element) {
		return NULL;
	}
	if (is_static) {
		out = bt_field_class_array_static_create(
			context->trace_class, element, bt_field_class_array_static_get_length(in));
	} else if (context->mip > 0) {
		out = ir_plan_array_by_location(context, in, element, is_linked);
	} else {
		bt_field_class *length = NULL;

		if (is_linked) {
			length = linked_class(context,
				bt_field_class_array_dynamic_with_length_field_borrow_length_field_path_const(
					in));
			if (!length) {
				bt_field_class_put_ref(element);
				return no_link(context, "The length link");
			}
		}
		out = bt_field_class_array_dynamic_create(context->trace_class, element, length);
	}
	bt_field_class_put_ref(element);
	return out ? out : memory(context);
}

static bt_field_class *option_by_path(struct ir_plan_context *context, const bt_field_class *in,
	bt_field_class *content, bt_field_class_type type)
{
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITHOUT_SELECTOR_FIELD) {
		return bt_field_class_option_without_selector_create(context->trace_class, content);
	}
	bt_field_class *selector = linked_class(context,
		bt_field_class_option_with_selector_field_borrow_selector_field_path_const(in));

	if (!selector) {
		return no_link(context, "The selector link");
	}
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITH_BOOL_SELECTOR_FIELD) {
		return bt_field_class_option_with_selector_field_bool_create(
			context->trace_class, content, selector);
	}
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITH_UNSIGNED_INTEGER_SELECTOR_FIELD) {
		return bt_field_class_option_with_selector_field_integer_unsigned_create(
			context->trace_class, content, selector,
			bt_field_class_option_with_selector_field_integer_unsigned_borrow_selector_ranges_const(
				in));
	}
	return bt_field_class_option_with_selector_field_integer_signed_create(context->trace_class,
		content, selector,
		bt_field_class_option_with_selector_field_integer_signed_borrow_selector_ranges_const(
			in));
}

static bt_field_class *make_option(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	const bt_field_class_type type = bt_field_class_get_type(in);
	bt_field_class *content = make_child(
		context, bt_field_class_option_borrow_field_class_const(in), plan, depth);

	plan->kind = IR_PLAN_OPTION;
	if (!content) {
		return NULL;
	}
	bt_field_class *out = context->mip > 0
				      ? ir_plan_option_by_location(context, in, content, type)
				      : option_by_path(context, in, content, type);

	bt_field_class_put_ref(content);
	if (!out) {
		return memory(context);
	}
	if (type == BT_FIELD_CLASS_TYPE_OPTION_WITH_BOOL_SELECTOR_FIELD) {
		bt_field_class_option_with_selector_field_bool_set_selector_is_reversed(out,
			bt_field_class_option_with_selector_field_bool_selector_is_reversed(in));
	}
	return out;
}

/* Appends option @p index of @p in, whose class is @p child. */
static bool append_variant_option(bt_field_class *out, const bt_field_class *in,
	bt_field_class_type type, uint64_t index, const char *name, bt_field_class *child)
{
	if (type == BT_FIELD_CLASS_TYPE_VARIANT_WITHOUT_SELECTOR_FIELD) {
		return bt_field_class_variant_without_selector_append_option(out, name, child) ==
		       BT_FIELD_CLASS_VARIANT_WITHOUT_SELECTOR_FIELD_APPEND_OPTION_STATUS_OK;
	}
	if (type == BT_FIELD_CLASS_TYPE_VARIANT_WITH_UNSIGNED_INTEGER_SELECTOR_FIELD) {
		return bt_field_class_variant_with_selector_field_integer_unsigned_append_option(
			       out, name, child,
			       bt_field_class_variant_with_selector_field_integer_unsigned_option_borrow_ranges_const(
				       bt_field_class_variant_with_selector_field_integer_unsigned_borrow_option_by_index_const(
					       in, index))) ==
		       BT_FIELD_CLASS_VARIANT_WITH_SELECTOR_FIELD_APPEND_OPTION_STATUS_OK;
	}
	return bt_field_class_variant_with_selector_field_integer_signed_append_option(out, name,
		       child,
		       bt_field_class_variant_with_selector_field_integer_signed_option_borrow_ranges_const(
			       bt_field_class_variant_with_selector_field_integer_signed_borrow_option_by_index_const(
				       in, index))) ==
	       BT_FIELD_CLASS_VARIANT_WITH_SELECTOR_FIELD_APPEND_OPTION_STATUS_OK;
}

static bt_field_class *variant_by_path(
	struct ir_plan_context *context, const bt_field_class *in, bt_field_class_type type)
{
	bt_field_class *selector = NULL;

	if (type != BT_FIELD_CLASS_TYPE_VARIANT_WITHOUT_SELECTOR_FIELD) {
		selector = linked_class(context,
			bt_field_class_variant_with_selector_field_borrow_selector_field_path_const(
				in));
		if (!selector) {
			return no_link(context, "The selector link");
		}
	}
	return bt_field_class_variant_create(context->trace_class, selector);
}

static bt_field_class *make_variant(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	const bt_field_class_type type = bt_field_class_get_type(in);
	const uint64_t count = bt_field_class_variant_get_option_count(in);
	bt_field_class *out = context->mip > 0 ? ir_plan_variant_by_location(context, in, type)
					       : variant_by_path(context, in, type);

	plan->kind = IR_PLAN_VARIANT;
	if (!out || !reserve_children(plan, count)) {
		bt_field_class_put_ref(out);
		return memory(context);
	}
	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_variant_option *option =
			bt_field_class_variant_borrow_option_by_index_const(in, i);
		bt_field_class *child = make(context,
			bt_field_class_variant_option_borrow_field_class_const(option),
			&plan->children[i], depth + 1);

		if (!child) {
			bt_field_class_put_ref(out);
			return NULL;
		}
		const bool appended = append_variant_option(
			out, in, type, i, bt_field_class_variant_option_get_name(option), child);

		bt_field_class_put_ref(child);
		if (!appended) {
			bt_field_class_put_ref(out);
			return memory(context);
		}
		bt_field_class_variant_option_set_user_attributes(
			bt_field_class_variant_borrow_option_by_index(out, i),
			bt_field_class_variant_option_borrow_user_attributes_const(option));
	}
	return out;
}

static bt_field_class *make_class(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	const bt_field_class_type type = bt_field_class_get_type(in);

	if (depth > MAX_DEPTH) {
		return FAIL(context, "A field class is nested deeper than %d", MAX_DEPTH);
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_STRUCTURE)) {
		return make_structure(context, in, plan, depth);
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
		return make_array(context, in, plan, depth);
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		return make_option(context, in, plan, depth);
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		return make_variant(context, in, plan, depth);
	}
	bt_field_class *out = ir_plan_make_leaf(context, in, plan);

	return out ? out : FAIL(context, "No memory for a field class, or one of an unknown kind");
}

static bt_field_class *make(struct ir_plan_context *context, const bt_field_class *in,
	struct ir_plan *plan, unsigned int depth)
{
	plan->in = in;

	bt_field_class *out = make_class(context, in, plan, depth);

	if (out) {
		plan->out = out;
		bt_field_class_set_user_attributes(
			out, bt_field_class_borrow_user_attributes_const(in));
	}
	return out;
}

bt_field_class *ir_plan_make(struct ir_plan_context *context, enum ir_scope scope,
	const bt_field_class *in, struct ir_plan *plan)
{
	context->scopes[scope] = plan;
	return make(context, in, plan, 0);
}

void ir_plan_release(struct ir_plan *plan)
{
	for (uint32_t i = 0; i < plan->child_count; i++) {
		ir_plan_release(&plan->children[i]);
	}
	free(plan->children);
	*plan = (struct ir_plan){ .kind = IR_PLAN_BOOL };
}
