/* SPDX-License-Identifier: MIT */
#include "ctf_event.h"

const bt_field *ctf_member(const bt_field *structure, const char *name)
{
	return structure && bt_field_get_class_type(structure) == BT_FIELD_CLASS_TYPE_STRUCTURE
		       ? bt_field_structure_borrow_member_field_by_name_const(structure, name)
		       : NULL;
}

bool ctf_number(const bt_field *field, int64_t *number)
{
	if (!field) {
		return false;
	}
	const bt_field_class_type type = bt_field_get_class_type(field);

	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		*number = (int64_t)bt_field_integer_unsigned_get_value(field);
		return true;
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
		*number = bt_field_integer_signed_get_value(field);
		return true;
	}
	return false;
}

uint32_t ctf_event_cpu(const bt_event *event)
{
	const bt_stream_class *const stream_class =
		bt_stream_borrow_class_const(bt_event_borrow_stream_const(event));
	int64_t cpu = -1;

	if (bt_stream_class_supports_packets(stream_class)) {
		(void)ctf_number(ctf_member(bt_packet_borrow_context_field_const(
						    bt_event_borrow_packet_const(event)),
					 "cpu_id"),
			&cpu);
	}
	return cpu >= 0 && cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX;
}
