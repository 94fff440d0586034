/* SPDX-License-Identifier: MIT */
/*
 * ir_plan.h - a field class rebuilt under another trace class, and the plan by which its fields are copied.
 *
 * The plan is made once a class. Copying a field then is a switch on a dense kind, children by index: no names, no
 * type queries, no hashing.
 */
#ifndef TANDEM_IR_PLAN_H
#define TANDEM_IR_PLAN_H

#include "compat.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ir_plan_kind {
	IR_PLAN_BOOL,
	IR_PLAN_BIT_ARRAY,
	IR_PLAN_UNSIGNED, /* integer or enumeration */
	IR_PLAN_SIGNED,
	IR_PLAN_SINGLE,
	IR_PLAN_DOUBLE,
	IR_PLAN_STRING,
	IR_PLAN_STRUCTURE,
	IR_PLAN_STATIC_ARRAY,
	IR_PLAN_DYNAMIC_ARRAY,
	IR_PLAN_OPTION,
	IR_PLAN_VARIANT,
	IR_PLAN_STATIC_BLOB,
	IR_PLAN_DYNAMIC_BLOB,
};

struct ir_plan {
	enum ir_plan_kind kind;
	uint32_t child_count;
	struct ir_plan *children; /* owned; members, options, or the one element or content */
	const bt_field_class *in; /* borrowed: a plan lives no longer than both of its classes */
	bt_field_class *out; /* borrowed from its parent class; NULL while it is not made yet */
};

/* The four places that a field can be linked from; a link points into its own place or into one before it. */
enum ir_scope {
	IR_SCOPE_PACKET_CONTEXT,
	IR_SCOPE_COMMON_CONTEXT,
	IR_SCOPE_SPECIFIC_CONTEXT,
	IR_SCOPE_PAYLOAD,
	IR_SCOPE_COUNT
};

/* What a class is rebuilt under. */
struct ir_plan_context {
	bt_self_component *self; /* for error causes */
	bt_trace_class *trace_class;
	uint64_t mip;
	const struct ir_plan
		*scopes[IR_SCOPE_COUNT]; /* plans made so far; NULL where there is none */
};

/**
 * Rebuilds the root class of one scope and fills @p plan.
 *
 * @param scope  The place it is for: context->scopes[scope] is set to @p plan, so that links inside it are found.
 * @param plan   Filled; the caller releases it with ir_plan_release(), also after an error.
 * @return The new class, a reference of the caller's; NULL with an error cause appended.
 */
bt_field_class *ir_plan_make(struct ir_plan_context *context, enum ir_scope scope,
	const bt_field_class *in, struct ir_plan *plan);

/** Frees what the plan owns. */
void ir_plan_release(struct ir_plan *plan);

/** Copies a field by its plan. @return False without memory. */
bool ir_plan_copy(const struct ir_plan *plan, const bt_field *in, bt_field *out);

#endif
