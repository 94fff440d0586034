/* SPDX-License-Identifier: MIT */
#include "clock/flt_message.h"
#include <stdlib.h>

static void drop_batch(struct flt_iterator *it)
{
	for (; it->batch_at < it->batch_count; it->batch_at++) {
		bt_message_put_ref(it->batch[it->batch_at]);
	}
}

/* The snapshot that decides whether a message can be corrected yet; NULL = it has none. */
static const bt_clock_snapshot *deciding_snapshot(const bt_message *in)
{
	const bt_clock_snapshot *snapshot = NULL;

	switch (bt_message_get_type(in)) {
	case BT_MESSAGE_TYPE_EVENT:
		if (bt_message_event_borrow_stream_class_default_clock_class_const(in)) {
			snapshot = bt_message_event_borrow_default_clock_snapshot_const(in);
		}
		break;
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		if (bt_stream_class_packets_have_beginning_default_clock_snapshot(
			    bt_stream_borrow_class_const(bt_packet_borrow_stream_const(
				    bt_message_packet_beginning_borrow_packet_const(in))))) {
			snapshot =
				bt_message_packet_beginning_borrow_default_clock_snapshot_const(in);
		}
		break;
	case BT_MESSAGE_TYPE_PACKET_END:
		if (bt_stream_class_packets_have_end_default_clock_snapshot(
			    bt_stream_borrow_class_const(bt_packet_borrow_stream_const(
				    bt_message_packet_end_borrow_packet_const(in))))) {
			snapshot = bt_message_packet_end_borrow_default_clock_snapshot_const(in);
		}
		break;
	case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
		snapshot = bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(in);
		break;
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		if (bt_stream_class_discarded_events_have_default_clock_snapshots(
			    bt_stream_borrow_class_const(
				    bt_message_discarded_events_borrow_stream_const(in)))) {
			snapshot =
				bt_message_discarded_events_borrow_end_default_clock_snapshot_const(
					in);
		}
		break;
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		if (bt_stream_class_discarded_packets_have_default_clock_snapshots(
			    bt_stream_borrow_class_const(
				    bt_message_discarded_packets_borrow_stream_const(in)))) {
			snapshot =
				bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(
					in);
		}
		break;
	default:
		/* Beginnings and ends of streams: rarely timed, and then like the messages beside them. */
		break;
	}
	return snapshot;
}

/* With a service: true where the message must wait for its correction. */
static bool must_wait(struct flt_iterator *it, const bt_message *in)
{
	const bt_clock_snapshot *snapshot = deciding_snapshot(in);
	struct flt_clock clock = { .hz = 0 };

	if (!flt_mapping_is_ready(&it->component->mapping)) {
		return flt_component_holds(it->component, UINT64_MAX);
	}
	if (!snapshot) {
		return false;
	}
	clock.hz =
		bt_clock_class_get_frequency(bt_clock_snapshot_borrow_clock_class_const(snapshot));
	clock.guest_hz =
		tdm_timeline_get_info(tdm_live_timeline(it->component->mapping.live)).guest_unit_hz;
	return flt_component_holds(
		it->component, flt_clock_reading(&clock, bt_clock_snapshot_get_value(snapshot)));
}

bt_message_iterator_class_next_method_status flt_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct flt_iterator *it = bt_self_message_iterator_get_data(self);
	struct tdm_error err;
	uint64_t done = 0;

	if (it->component->link && !flt_component_poll(it->component, &err)) {
		report_iterator_cause(self, &err);
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
	}
	if (it->batch_at == it->batch_count) {
		const bt_message_iterator_next_status status =
			bt_message_iterator_next(it->upstream, &it->batch, &it->batch_count);

		it->batch_at = 0;
		if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
			it->batch_count = 0;
			/* The values of the two enumerations are the same by design. */
			return (bt_message_iterator_class_next_method_status)status;
		}
	}
	while (it->batch_at < it->batch_count && done < capacity) {
		const bt_message *in = it->batch[it->batch_at];

		if (it->component->link && must_wait(it, in)) {
			break;
		}
		const bt_message *out = flt_message_convert(it, in);

		if (!out) {
			while (done) {
				bt_message_put_ref(messages[--done]);
			}
			drop_batch(it);
			return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
		}
		bt_message_put_ref(in);
		it->batch_at++;
		messages[done++] = out;
	}
	if (!done) {
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_AGAIN;
	}
	*count = done;
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
}

bt_message_iterator_class_initialize_method_status flt_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port)
{
	bt_self_component_port *self_port =
		bt_self_component_port_output_as_self_component_port(port);
	bt_self_component_port_input *input = bt_self_component_port_get_data(self_port);
	struct flt_iterator *it = calloc(1, sizeof(*it));

	if (!it) {
		return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	it->self = self;
	it->component = bt_self_component_get_data(bt_self_message_iterator_borrow_component(self));
	if (!bt_port_is_connected(bt_port_input_as_port_const(
		    bt_self_component_port_input_as_port_input(input)))) {
		(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(self,
			"Output port \"%s\" is connected, but the input port beside it is not",
			bt_port_get_name(bt_port_output_as_port_const(
				bt_self_component_port_output_as_port_output(port))));
		free(it);
		return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	const bt_message_iterator_create_from_message_iterator_status status =
		bt_message_iterator_create_from_message_iterator(self, input, &it->upstream);

	if (status != BT_MESSAGE_ITERATOR_CREATE_FROM_MESSAGE_ITERATOR_STATUS_OK) {
		free(it);
		return (bt_message_iterator_class_initialize_method_status)status;
	}
	bt_self_message_iterator_configuration_set_can_seek_forward(
		config, bt_message_iterator_can_seek_forward(it->upstream));
	bt_self_message_iterator_set_data(self, it);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

void flt_iterator_finalize(bt_self_message_iterator *self)
{
	struct flt_iterator *it = bt_self_message_iterator_get_data(self);

	drop_batch(it);
	flt_message_forget_streams(it);
	bt_message_iterator_put_ref(it->upstream);
	free(it);
}

bt_message_iterator_class_can_seek_beginning_method_status flt_iterator_can_seek(
	bt_self_message_iterator *self, bt_bool *can_seek)
{
	struct flt_iterator *it = bt_self_message_iterator_get_data(self);

	return (bt_message_iterator_class_can_seek_beginning_method_status)
		bt_message_iterator_can_seek_beginning(it->upstream, can_seek);
}

bt_message_iterator_class_seek_beginning_method_status flt_iterator_seek(
	bt_self_message_iterator *self)
{
	struct flt_iterator *it = bt_self_message_iterator_get_data(self);

	/* The array is upstream's: its messages go before upstream moves. */
	drop_batch(it);

	const bt_message_iterator_seek_beginning_status status =
		bt_message_iterator_seek_beginning(it->upstream);

	if (status == BT_MESSAGE_ITERATOR_SEEK_BEGINNING_STATUS_OK) {
		flt_message_forget_streams(it);
		it->last_value = 0;
		it->last_clock = NULL;
	}
	return (bt_message_iterator_class_seek_beginning_method_status)status;
}
