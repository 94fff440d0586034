/* SPDX-License-Identifier: MIT */
/*
 * rich_source.c - source.tandemtest.rich: traces that hold everything babeltrace2's trace IR can say.
 *
 * Every field class kind, option and variant with each kind of selector, links into each scope, stream snapshots known
 * and unknown, each combination of packet and discarded-item flags, streams without a clock, sparse ids. No recorded
 * trace has all that. With protocol version 1 also what only that has.
 */
#include "rich_priv.h"
#include <string.h>

enum {
	ROUNDS = 4,
	STREAMS = 5
};

/* ---- traces ---- */

static bt_clock_class *make_clock(struct rich *rich, uint64_t hz)
{
	static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	bt_clock_class *clock = bt_clock_class_create(rich->self);
	bt_value *map = rich_attributes("a clock");

	bt_clock_class_set_frequency(clock, hz);
	CHECK(bt_clock_class_set_name(clock, "rich clock") == 0);
	CHECK(bt_clock_class_set_description(clock, "ticks, \"quoted\"") == 0);
	bt_clock_class_set_offset(clock, 1700000000, 123);
	bt_clock_class_set_precision(clock, 7);
	bt_clock_class_set_user_attributes(clock, map);
	bt_value_put_ref(map);
	if (rich->mip == 0) {
		bt_clock_class_set_uuid(clock, uuid);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_clock_class_set_namespace(clock, "tandem.test") == 0);
		CHECK(bt_clock_class_set_uid(clock, "clock-1") == 0);
		bt_clock_class_set_accuracy(clock, 3);
	}
#endif
	return clock;
}

struct made_class {
	bt_stream_class *stream_class;
	bt_event_class *events[2];
	bool packets, begin, end, discarded_events, discarded_packets, timed_events, timed_packets,
		clock;
};

static void make_event_class(struct rich *rich, bt_trace_class *tc, struct made_class *made,
	int which, struct scopes *scopes)
{
	/* Sparse ids. */
	bt_event_class *ec = bt_event_class_create_with_id(made->stream_class, which ? 100000 : 3);
	bt_value *map = rich_attributes("an event class");
	bt_field_class *specific = bt_field_class_structure_create(tc);
	bt_field_class *payload = rich_make_payload(rich, tc, scopes);

	CHECK(bt_event_class_set_name(ec, which ? "second:event" : "an event, quoted \"x\"") == 0);
	if (!which) {
		bt_event_class_set_log_level(ec, BT_EVENT_CLASS_LOG_LEVEL_DEBUG_FUNCTION);
		CHECK(bt_event_class_set_emf_uri(ec, "http://example.org/emf?x=1") == 0);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_event_class_set_namespace(ec, "tandem.events") == 0);
		CHECK(bt_event_class_set_uid(ec, which ? "e-2" : "e-1") == 0);
	}
#endif
	rich_append(specific, "len", rich_number(tc, 16, 10));
	rich_append(specific, "own",
		rich_dynamic_array(rich, tc, bt_field_class_real_double_precision_create(tc),
			&(struct target){ rich_last_member(specific), SPECIFIC, { "len" }, 1 }));
	rich_append(specific, "by_common", rich_option(rich, tc, 1, &scopes->flag, false));
	bt_event_class_set_user_attributes(ec, map);
	CHECK(bt_event_class_set_specific_context_field_class(ec, specific) == 0);
	CHECK(bt_event_class_set_payload_field_class(ec, payload) == 0);
	bt_value_put_ref(map);
	bt_field_class_put_ref(specific);
	bt_field_class_put_ref(payload);
	made->events[which] = ec;
}

static void make_stream_class(struct rich *rich, bt_trace_class *tc, struct made_class *made,
	uint64_t id, bt_clock_class *clock)
{
	bt_stream_class *sc = bt_stream_class_create_with_id(tc, id);
	bt_value *map = rich_attributes("a stream class");
	bt_field_class *packet = bt_field_class_structure_create(tc);
	bt_field_class *common = bt_field_class_structure_create(tc);
	struct scopes scopes = { .packet_length = { NULL, PACKET, { "len" }, 1 } };

	made->stream_class = sc;
	CHECK(bt_stream_class_set_name(sc, "a stream class") == 0);
	bt_stream_class_set_user_attributes(sc, map);
	bt_value_put_ref(map);
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_stream_class_set_namespace(sc, "tandem.streams") == 0);
		CHECK(bt_stream_class_set_uid(sc, "s-1") == 0);
	}
#endif
	if (made->clock) {
		CHECK(bt_stream_class_set_default_clock_class(sc, clock) == 0);
	}
	bt_stream_class_set_supports_packets(sc, made->packets, made->begin, made->end);
	if (made->packets) {
		bt_stream_class_set_supports_discarded_packets(
			sc, made->discarded_packets, made->timed_packets);
	}
	bt_stream_class_set_supports_discarded_events(
		sc, made->discarded_events, made->timed_events);
	bt_stream_class_set_assigns_automatic_event_class_id(sc, BT_FALSE);
	bt_stream_class_set_assigns_automatic_stream_id(sc, BT_FALSE);
	rich_append(common, "flag", bt_field_class_bool_create(tc));
	scopes.flag = (struct target){ rich_last_member(common), COMMON, { "flag" }, 1 };
	rich_append(common, "unsigned", rich_unsigned_enumeration(tc));
	scopes.unsigned_selector =
		(struct target){ rich_last_member(common), COMMON, { "unsigned" }, 1 };
	rich_append(common, "signed", bt_field_class_integer_signed_create(tc));
	scopes.signed_selector =
		(struct target){ rich_last_member(common), COMMON, { "signed" }, 1 };
	if (made->packets) {
		rich_append(packet, "cpu_id", rich_number(tc, 32, 10));
		rich_append(packet, "len", rich_number(tc, 8, 10));
		scopes.packet_length.fc = rich_last_member(packet);
		CHECK(bt_stream_class_set_packet_context_field_class(sc, packet) == 0);
	} else {
		rich_append(common, "len", rich_number(tc, 8, 10));
		scopes.packet_length =
			(struct target){ rich_last_member(common), COMMON, { "len" }, 1 };
	}
	CHECK(bt_stream_class_set_event_common_context_field_class(sc, common) == 0);
	bt_field_class_put_ref(packet);
	bt_field_class_put_ref(common);
	make_event_class(rich, tc, made, 0, &scopes);
	make_event_class(rich, tc, made, 1, &scopes);
}

static bt_trace *make_trace(struct rich *rich, bt_trace_class *tc)
{
	static const uint8_t uuid[16] = { 0xff, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0 };
	bt_trace *trace = bt_trace_create(tc);
	bt_value *map = rich_attributes("a trace");

	CHECK(bt_trace_set_name(trace, "rich") == 0);
	if (rich->mip == 0) {
		bt_trace_set_uuid(trace, uuid);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_trace_set_namespace(trace, "tandem.traces") == 0);
		CHECK(bt_trace_set_uid(trace, "t-1") == 0);
	}
#endif
	CHECK(bt_trace_set_environment_entry_string(trace, "zeta", "a \"string\"") == 0);
	CHECK(bt_trace_set_environment_entry_integer(trace, "alpha", INT64_MIN) == 0);
	CHECK(bt_trace_set_environment_entry_string(trace, "hostname", "") == 0);
	bt_trace_set_user_attributes(trace, map);
	bt_value_put_ref(map);
	return trace;
}

/* ---- messages ---- */

static void add(struct rich *rich, bt_message *message)
{
	CHECK(message && rich->count < sizeof(rich->messages) / sizeof(rich->messages[0]));
	rich->messages[rich->count++] = message;
}

static void add_event(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_stream *stream, bt_packet *packet, unsigned int round, uint64_t time)
{
	const bt_event_class *ec = made->events[round % 2];
	bt_message *message = NULL;

	if (packet) {
		message = made->clock
				  ? bt_message_event_create_with_packet_and_default_clock_snapshot(
					    it, ec, packet, time)
				  : bt_message_event_create_with_packet(it, ec, packet);
	} else {
		message = made->clock ? bt_message_event_create_with_default_clock_snapshot(
						it, ec, stream, time)
				      : bt_message_event_create(it, ec, stream);
	}
	CHECK(message);

	bt_event *event = bt_message_event_borrow_event(message);

	rich_fill(bt_event_borrow_common_context_field(event), round, "common", round);
	rich_fill(bt_event_borrow_specific_context_field(event), round, "specific", round);
	rich_fill(bt_event_borrow_payload_field(event), round, "payload", round);
	add(rich, message);
}

static void add_losses(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_stream *stream, uint64_t from, uint64_t to, bool counted)
{
	if (made->discarded_events) {
		bt_message *message =
			made->timed_events
				? bt_message_discarded_events_create_with_default_clock_snapshots(
					  it, stream, from, to)
				: bt_message_discarded_events_create(it, stream);

		if (counted) {
			bt_message_discarded_events_set_count(message, 42);
		}
		add(rich, message);
	}
	if (made->packets && made->discarded_packets) {
		bt_message *message =
			made->timed_packets
				? bt_message_discarded_packets_create_with_default_clock_snapshots(
					  it, stream, from, to)
				: bt_message_discarded_packets_create(it, stream);

		if (counted) {
			bt_message_discarded_packets_set_count(message, 3);
		}
		add(rich, message);
	}
}

static void add_stream(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_trace *trace, uint64_t id, uint64_t *now, bt_clock_class *clock)
{
	bt_stream *stream = bt_stream_create_with_id(made->stream_class, trace, id);
	bt_message *message = NULL;
	bt_value *map = rich_attributes("a stream");

	CHECK(stream && bt_stream_set_name(stream, id ? "stream name" : "zero") == 0);
	bt_stream_set_user_attributes(stream, map);
	bt_value_put_ref(map);
	message = bt_message_stream_beginning_create(it, stream);
	if (made->clock && id % 2) {
		bt_message_stream_beginning_set_default_clock_snapshot(message, *now);
	}
	add(rich, message);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		bt_packet *packet = NULL;

		if (made->packets) {
			packet = bt_packet_create(stream);
			rich_fill(bt_packet_borrow_context_field(packet), round, "packet", round);
			add(rich,
				made->begin
					? bt_message_packet_beginning_create_with_default_clock_snapshot(
						  it, packet, *now)
					: bt_message_packet_beginning_create(it, packet));
		}
		*now += 10 + round;
		add_event(it, rich, made, stream, packet, round, *now);
		add_event(it, rich, made, stream, packet, round, *now);
		*now += 5;
		if (packet) {
			add(rich,
				made->end
					? bt_message_packet_end_create_with_default_clock_snapshot(
						  it, packet, *now)
					: bt_message_packet_end_create(it, packet));
		}
		bt_packet_put_ref(packet);
		add_losses(it, rich, made, stream, *now, *now + 100, round % 2);
		*now += 100;
	}
	if (clock) {
		add(rich, bt_message_message_iterator_inactivity_create(it, clock, *now));
	}
	message = bt_message_stream_end_create(it, stream);
	if (made->clock && id % 2) {
		bt_message_stream_end_set_default_clock_snapshot(message, *now);
	}
	add(rich, message);
	bt_stream_put_ref(stream);
}

static void produce(bt_self_message_iterator *it, struct rich *rich, uint64_t hz)
{
	struct made_class classes[STREAMS] = {
		{ .packets = true,
			.begin = true,
			.end = true,
			.discarded_events = true,
			.timed_events = true,
			.discarded_packets = true,
			.timed_packets = true,
			.clock = true },
		{ .discarded_events = true, .clock = true },
		{ .packets = true, .begin = true, .discarded_packets = true, .clock = true },
		{ .packets = true,
			.end = true,
			.discarded_events = true,
			.discarded_packets = true,
			.timed_packets = true,
			.clock = true },
		{ .packets = true, .discarded_events = true, .discarded_packets = true },
	};
	bt_clock_class *clock = make_clock(rich, hz);
	bt_trace_class *tc = bt_trace_class_create(rich->self);
	bt_value *map = rich_attributes("a trace class");
	uint64_t now = 1000;

	bt_trace_class_set_assigns_automatic_stream_class_id(tc, BT_FALSE);
	bt_trace_class_set_user_attributes(tc, map);
	bt_value_put_ref(map);
	/* A clock may be seen before any stream. */
	add(rich, bt_message_message_iterator_inactivity_create(it, clock, now));
	for (unsigned int i = 0; i < STREAMS; i++) {
		make_stream_class(rich, tc, &classes[i], 7 + i * 11, clock);
	}
	bt_trace *trace = make_trace(rich, tc);

	for (unsigned int i = 0; i < STREAMS; i++) {
		add_stream(it, rich, &classes[i], trace, 10 + i, &now, i == 1 ? clock : NULL);
		/* A second stream of the class, its id far away. */
		add_stream(it, rich, &classes[i], trace, UINT64_MAX - i, &now, NULL);
	}
	for (unsigned int i = 0; i < STREAMS; i++) {
		bt_event_class_put_ref(classes[i].events[0]);
		bt_event_class_put_ref(classes[i].events[1]);
		bt_stream_class_put_ref(classes[i].stream_class);
	}
	bt_trace_put_ref(trace);
	bt_trace_class_put_ref(tc);
	bt_clock_class_put_ref(clock);
}

/* ---- methods ---- */

bt_component_class_get_supported_mip_versions_method_status rich_supported_mip(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class, (void)params, (void)data, (void)level;
	return (bt_component_class_get_supported_mip_versions_method_status)
		bt_integer_range_set_unsigned_add_range(versions, 0, TANDEM_MIP_MAX);
}

bt_component_class_initialize_method_status rich_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *config, const bt_value *params, void *data)
{
	(void)config, (void)params, (void)data;
	return (bt_component_class_initialize_method_status)
		bt_self_component_source_add_output_port(self, "out", NULL, NULL);
}

bt_message_iterator_class_initialize_method_status rich_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port)
{
	struct rich *rich = calloc(1, sizeof(*rich));

	(void)port;
	rich->self = bt_self_message_iterator_borrow_component(self);
	rich->mip = bt_self_component_get_graph_mip_version(rich->self);
	produce(self, rich, 1000000000);
	bt_self_message_iterator_configuration_set_can_seek_forward(config, BT_TRUE);
	bt_self_message_iterator_set_data(self, rich);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

bt_message_iterator_class_next_method_status rich_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	if (rich->at == rich->count) {
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
	}
	for (*count = 0; *count < capacity && rich->at < rich->count; rich->at++) {
		bt_message_get_ref(rich->messages[rich->at]);
		messages[(*count)++] = rich->messages[rich->at];
	}
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
}

bt_message_iterator_class_seek_beginning_method_status rich_iterator_seek(
	bt_self_message_iterator *self)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	rich->at = 0;
	return BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_OK;
}

void rich_iterator_finalize(bt_self_message_iterator *self)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	while (rich->count) {
		bt_message_put_ref(rich->messages[--rich->count]);
	}
	free(rich);
}
