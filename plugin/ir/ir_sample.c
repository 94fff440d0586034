/* SPDX-License-Identifier: MIT */
#include "ir_sample.h"

/* Members, counted from the first one behind the common fields. */
enum {
	MEMBER_PID,
	MEMBER_GUEST,
	MEMBER_CHAIN_LENGTH,
	MEMBER_CHAIN
};

/* Takes the member. */
static bool append(bt_field_class *context, const char *name, bt_field_class *member)
{
	const bool done = member && bt_field_class_structure_append_member(context, name, member) ==
					    BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK;

	bt_field_class_put_ref(member);
	return done;
}

static bt_field_class *unsigned_class(const struct ir_trace *trace, uint64_t bits)
{
	bt_field_class *const made = bt_field_class_integer_unsigned_create(trace->trace_class);

	if (made) {
		bt_field_class_integer_set_field_value_range(made, bits);
	}
	return made;
}

static bool add_chain(struct ir_trace *trace, bt_field_class *context)
{
	static const char length_name[] = "_callchain_length";
	bt_field_class *const length = unsigned_class(trace, 32);
	bt_field_class *const address = unsigned_class(trace, 64);
	bool done = length && address;

	if (done) {
		bt_field_class_integer_set_preferred_display_base(
			address, BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL);
		bt_field_class_get_ref(length);
		done = append(context, length_name, length) &&
		       append(context, "callchain",
			       ir_dynamic_array_class(trace, address, length, length_name, false));
	}
	bt_field_class_put_ref(length);
	bt_field_class_put_ref(address);
	return done;
}

bool ir_sample_add_members(struct ir_trace *trace, bt_field_class *context)
{
	bt_field_class *const pid = bt_field_class_integer_signed_create(trace->trace_class);

	if (pid) {
		bt_field_class_integer_set_field_value_range(pid, 32);
	}
	return append(context, "pid", pid) && append(context, "guest", unsigned_class(trace, 8)) &&
	       (!trace->info->has_callchains || add_chain(trace, context));
}

void ir_sample_fill(
	const struct ir_trace *trace, bt_field *context, const struct tdm_sample *sample)
{
	const uint64_t first = IR_CONTEXT_COMMON + (uint64_t)trace->common_count;
	const uint32_t count = sample ? sample->callchain_count : 0;

	bt_field_integer_signed_set_value(
		bt_field_structure_borrow_member_field_by_index(context, first + MEMBER_PID),
		sample ? sample->pid : -1);
	bt_field_integer_unsigned_set_value(
		bt_field_structure_borrow_member_field_by_index(context, first + MEMBER_GUEST),
		sample && sample->in_guest);
	if (!trace->info->has_callchains) {
		return;
	}

	bt_field *const chain =
		bt_field_structure_borrow_member_field_by_index(context, first + MEMBER_CHAIN);

	bt_field_integer_unsigned_set_value(bt_field_structure_borrow_member_field_by_index(
						    context, first + MEMBER_CHAIN_LENGTH),
		count);
	if (bt_field_array_dynamic_set_length(chain, count) !=
		BT_FIELD_DYNAMIC_ARRAY_SET_LENGTH_STATUS_OK) {
		bt_current_thread_clear_error();
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		bt_field_integer_unsigned_set_value(
			bt_field_array_borrow_element_field_by_index(chain, i),
			sample->callchain[i]);
	}
}
