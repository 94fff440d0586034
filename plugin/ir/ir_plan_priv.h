/* SPDX-License-Identifier: MIT */
/*
 * ir_plan_priv.h - parts of ir_plan.c that have a file of their own: leaf classes, and links as 2.1 has them.
 */
#ifndef TANDEM_IR_PLAN_PRIV_H
#define TANDEM_IR_PLAN_PRIV_H

#include "ir/ir_plan.h"

/** Rebuilds a class without children and sets the plan's kind. NULL without memory or for an unknown kind. */
bt_field_class *ir_plan_make_leaf(
	const struct ir_plan_context *context, const bt_field_class *in, struct ir_plan *plan);

/*
 * Protocol version 1: a link is a scope and a list of names, so that the same is simply said again. All return NULL
 * without memory, and always where the plugin is built against 2.0, which never asks for that version.
 */
bt_field_class *ir_plan_array_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *element, bool is_linked);
bt_field_class *ir_plan_option_by_location(const struct ir_plan_context *context,
	const bt_field_class *in, bt_field_class *content, bt_field_class_type type);
bt_field_class *ir_plan_variant_by_location(
	const struct ir_plan_context *context, const bt_field_class *in, bt_field_class_type type);
bt_field_class *ir_plan_blob(const struct ir_plan_context *context, const bt_field_class *in);

#endif
