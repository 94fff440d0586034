/* SPDX-License-Identifier: MIT */
#include "ir/ir_mirror_priv.h"

bt_packet *ir_mirror_packet(
	struct ir_mirror *mirror, struct ir_mirror_stream *stream, const bt_packet *in)
{
	bt_packet *out = bt_packet_create(stream->out);

	if (!out) {
		return IR_FAIL(mirror, "No memory for a packet");
	}
	if (stream->stream_class->has_packet_context &&
		!ir_plan_copy(&stream->stream_class->packet_context,
			bt_packet_borrow_context_field_const(in),
			bt_packet_borrow_context_field(out))) {
		bt_packet_put_ref(out);
		return IR_FAIL(mirror, "No memory for a packet's context");
	}
	return out;
}

bool ir_mirror_event_fields(const struct ir_mirror_stream_class *stream_class,
	const struct ir_mirror_event_class *event_class, const bt_event *in, bt_event *out)
{
	bool good = true;

	if (stream_class->has_common_context) {
		good = ir_plan_copy(&stream_class->common_context,
			bt_event_borrow_common_context_field_const(in),
			bt_event_borrow_common_context_field(out));
	}
	if (event_class->has_specific_context) {
		good = good && ir_plan_copy(&event_class->specific_context,
				       bt_event_borrow_specific_context_field_const(in),
				       bt_event_borrow_specific_context_field(out));
	}
	if (event_class->has_payload) {
		good = good &&
		       ir_plan_copy(&event_class->payload, bt_event_borrow_payload_field_const(in),
			       bt_event_borrow_payload_field(out));
	}
	return good;
}
