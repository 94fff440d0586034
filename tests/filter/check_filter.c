/* SPDX-License-Identifier: MIT */
/*
 * check_filter.c - filter.tandemtest.check: passes messages on and ends the graph at the first that breaks the rules.
 *
 * Distributions build libbabeltrace2 without its checks of message sequences, so nothing else would notice: streams
 * begin before and end after all else of theirs, packets pair, events stand in the open packet, time never goes back,
 * every snapshot is of the stream's own clock class.
 */
#include "test_plugin.h"
#include <stdlib.h>

enum {
	STREAMS_MOST = 256
};

struct stream {
	const bt_stream *stream;
	const bt_packet *packet;
	bool ended;
	int64_t last_ns;
};

struct check {
	bt_self_message_iterator *self;
	bt_message_iterator *upstream;
	struct stream streams[STREAMS_MOST];
	size_t count;
	int64_t last_ns; /* of the whole port */
};

static bool fail(struct check *check, const char *what)
{
	(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(
		check->self, "Message sequence: %s", what);
	return false;
}

static struct stream *find(struct check *check, const bt_stream *stream)
{
	for (size_t i = 0; i < check->count; i++) {
		if (check->streams[i].stream == stream && !check->streams[i].ended) {
			return &check->streams[i];
		}
	}
	return NULL;
}

static bool check_time(
	struct check *check, struct stream *stream, const bt_clock_snapshot *snapshot)
{
	int64_t ns = 0;

	if (!snapshot) {
		return true;
	}
	if (stream && bt_clock_snapshot_borrow_clock_class_const(snapshot) !=
			      bt_stream_class_borrow_default_clock_class_const(
				      bt_stream_borrow_class_const(stream->stream))) {
		return fail(check, "a snapshot of another clock class");
	}
	if (bt_clock_snapshot_get_ns_from_origin(snapshot, &ns) !=
		BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
		return fail(check, "a time that does not fit");
	}
	if (ns < check->last_ns || (stream && ns < stream->last_ns)) {
		return fail(check, "time goes back");
	}
	check->last_ns = ns;
	if (stream) {
		stream->last_ns = ns;
	}
	return true;
}

static bool check_begin(struct check *check, const bt_message *message)
{
	const bt_stream *stream = bt_message_stream_beginning_borrow_stream_const(message);
	const bt_clock_snapshot *snapshot = NULL;

	if (find(check, stream)) {
		return fail(check, "a stream begins twice");
	}
	if (check->count == STREAMS_MOST) {
		return fail(check, "more streams than this checker takes");
	}
	check->streams[check->count] = (struct stream){ stream, NULL, false, INT64_MIN };
	if (bt_stream_class_borrow_default_clock_class_const(
		    bt_stream_borrow_class_const(stream)) &&
		bt_message_stream_beginning_borrow_default_clock_snapshot_const(
			message, &snapshot) != BT_MESSAGE_STREAM_CLOCK_SNAPSHOT_STATE_KNOWN) {
		snapshot = NULL;
	}
	return check_time(check, &check->streams[check->count++], snapshot);
}

static bool check_event(struct check *check, const bt_message *message)
{
	const bt_event *event = bt_message_event_borrow_event_const(message);
	struct stream *stream = find(check, bt_event_borrow_stream_const(event));

	if (!stream) {
		return fail(check, "an event outside its stream");
	}
	const bt_stream_class *stream_class = bt_stream_borrow_class_const(stream->stream);

	if (bt_event_class_borrow_stream_class_const(bt_event_borrow_class_const(event)) !=
		stream_class) {
		return fail(check, "an event of another stream class");
	}
	if (bt_stream_class_supports_packets(stream_class) &&
		bt_event_borrow_packet_const(event) != stream->packet) {
		return fail(check, "an event outside the open packet");
	}
	return check_time(check, stream,
		bt_stream_class_borrow_default_clock_class_const(stream_class)
			? bt_message_event_borrow_default_clock_snapshot_const(message)
			: NULL);
}

static bool check_packet(struct check *check, const bt_message *message, bool is_end)
{
	const bt_packet *packet = is_end ? bt_message_packet_end_borrow_packet_const(message)
					 : bt_message_packet_beginning_borrow_packet_const(message);
	struct stream *stream = find(check, bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *snapshot = NULL;

	if (!stream || (is_end ? stream->packet != packet : stream->packet != NULL)) {
		return fail(check, "packets do not pair");
	}
	const bt_stream_class *stream_class = bt_stream_borrow_class_const(stream->stream);

	stream->packet = is_end ? NULL : packet;
	if (is_end && bt_stream_class_packets_have_end_default_clock_snapshot(stream_class)) {
		snapshot = bt_message_packet_end_borrow_default_clock_snapshot_const(message);
	} else if (!is_end &&
		   bt_stream_class_packets_have_beginning_default_clock_snapshot(stream_class)) {
		snapshot = bt_message_packet_beginning_borrow_default_clock_snapshot_const(message);
	}
	return check_time(check, stream, snapshot);
}

static bool check_end(struct check *check, const bt_message *message)
{
	struct stream *stream = find(check, bt_message_stream_end_borrow_stream_const(message));
	const bt_clock_snapshot *snapshot = NULL;

	if (!stream || stream->packet) {
		return fail(check, "a stream ends that did not begin, or with an open packet");
	}
	if (bt_stream_class_borrow_default_clock_class_const(
		    bt_stream_borrow_class_const(stream->stream)) &&
		bt_message_stream_end_borrow_default_clock_snapshot_const(message, &snapshot) !=
			BT_MESSAGE_STREAM_CLOCK_SNAPSHOT_STATE_KNOWN) {
		snapshot = NULL;
	}
	stream->ended = true;
	return check_time(check, stream, snapshot);
}

static bool check_discarded(struct check *check, const bt_message *message)
{
	struct stream *stream =
		find(check, bt_message_discarded_events_borrow_stream_const(message));

	if (!stream || stream->packet) {
		return fail(check, "discarded events inside a packet or outside a stream");
	}
	return check_time(check, stream,
		bt_stream_class_discarded_events_have_default_clock_snapshots(
			bt_stream_borrow_class_const(stream->stream))
			? bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(
				  message)
			: NULL);
}

static bool check_message(struct check *check, const bt_message *message)
{
	switch (bt_message_get_type(message)) {
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		return check_begin(check, message);
	case BT_MESSAGE_TYPE_STREAM_END:
		return check_end(check, message);
	case BT_MESSAGE_TYPE_EVENT:
		return check_event(check, message);
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return check_packet(check, message, false);
	case BT_MESSAGE_TYPE_PACKET_END:
		return check_packet(check, message, true);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return check_discarded(check, message);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return find(check, bt_message_discarded_packets_borrow_stream_const(message)) ||
		       fail(check, "discarded packets outside a stream");
	case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
		return check_time(check, NULL,
			bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(
				message));
	}
	return fail(check, "a message of an unknown kind");
}

/* ---- methods ---- */

bt_component_class_get_supported_mip_versions_method_status check_supported_mip(
	bt_self_component_class_filter *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class, (void)params, (void)data, (void)level;
	return (bt_component_class_get_supported_mip_versions_method_status)
		bt_integer_range_set_unsigned_add_range(versions, 0, TANDEM_MIP_MAX);
}

bt_component_class_initialize_method_status check_initialize(bt_self_component_filter *self,
	bt_self_component_filter_configuration *config, const bt_value *params, void *data)
{
	bt_self_component_port_input *input = NULL;

	(void)config, (void)params, (void)data;
	if (bt_self_component_filter_add_input_port(self, "in", NULL, &input) ||
		bt_self_component_filter_add_output_port(self, "out", input, NULL)) {
		return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

bt_message_iterator_class_initialize_method_status check_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port)
{
	struct check *check = calloc(1, sizeof(*check));

	if (!check || bt_message_iterator_create_from_message_iterator(self,
			      bt_self_component_port_get_data(
				      bt_self_component_port_output_as_self_component_port(port)),
			      &check->upstream)) {
		free(check);
		return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	(void)config;
	check->self = self;
	check->last_ns = INT64_MIN;
	bt_self_message_iterator_set_data(self, check);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

bt_message_iterator_class_next_method_status check_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct check *check = bt_self_message_iterator_get_data(self);
	bt_message_array_const got;
	const bt_message_iterator_next_status status =
		bt_message_iterator_next(check->upstream, &got, count);
	bool good = true;

	(void)capacity;
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
		if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END) {
			for (size_t i = 0; i < check->count; i++) {
				good = good && check->streams[i].ended;
			}
		}
		if (!good) {
			(void)fail(check, "a stream does not end");
			return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
		}
		/* The values of the two enumerations are the same by design. */
		return (bt_message_iterator_class_next_method_status)status;
	}
	for (uint64_t i = 0; i < *count; i++) {
		good = good && check_message(check, got[i]);
	}
	for (uint64_t i = 0; i < *count; i++) {
		if (good) {
			messages[i] = got[i];
		} else {
			bt_message_put_ref(got[i]);
		}
	}
	return good ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK
		    : BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
}

void check_iterator_finalize(bt_self_message_iterator *self)
{
	struct check *check = bt_self_message_iterator_get_data(self);

	bt_message_iterator_put_ref(check->upstream);
	free(check);
}
