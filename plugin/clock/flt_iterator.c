/* SPDX-License-Identifier: MIT */
#include "clock/flt_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A power of two: more event classes than this in use at once only cost a table lookup. */
#define CACHE_ROOM 256

/* What an iterator keeps of a stream between its beginning and its end. */
struct flt_stream {
	struct ir_mirror_stream *mirror;
	const bt_stream *in;
	const bt_packet
		*in_packet;    /* the open packet: only compared, alive until its end has passed */
	bt_packet *out_packet; /* a reference; NULL between packets */
	uint32_t cpu;          /* that the packets are from; UINT32_MAX = not said */
	struct tdm_timeline_hint hint;
};

struct cached_class {
	const bt_event_class *in;
	struct ir_mirror_event_class *made;
};

struct flt_iterator {
	bt_self_message_iterator *self;
	struct flt_component *component;
	bt_message_iterator *upstream; /* a reference */
	struct ir_table streams;       /* const bt_stream * -> struct flt_stream * */
	struct flt_stream *last;       /* runs of one stream are long */
	/* The batch that upstream gave; from here on not yet converted. */
	bt_message_array_const batch;
	uint64_t batch_at, batch_count;
	uint64_t last_value; /* the greatest value given out, with the clock that it is of */
	const struct flt_clock *last_clock;
	uint64_t generation;
	struct cached_class cache[CACHE_ROOM];
};

static const bt_message *fail(struct flt_iterator *it, const char *what)
{
	(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(it->self, "%s", what);
	return NULL;
}

static const bt_message *made(struct flt_iterator *it, const bt_message *message)
{
	return message ? message : fail(it, "No memory for a message");
}

/* ---- streams ---- */

static void free_stream(struct flt_stream *stream)
{
	bt_packet_put_ref(stream->out_packet);
	free(stream);
}

static void forget_streams(struct flt_iterator *it)
{
	for (size_t i = 0; i < it->streams.room; i++) {
		if (it->streams.slots[i].key) {
			free_stream(it->streams.slots[i].value);
		}
	}
	ir_table_release(&it->streams);
	it->last = NULL;
}

static struct flt_stream *find_stream(struct flt_iterator *it, const bt_stream *in)
{
	if (it->last && it->last->in == in) {
		return it->last;
	}
	struct flt_stream *stream = ir_table_find(&it->streams, in);

	if (!stream) {
		stream = calloc(1, sizeof(*stream));
		if (!stream || !ir_table_add(&it->streams, in, stream)) {
			free(stream);
			(void)fail(it, "No memory for a stream");
			return NULL;
		}
		stream->in = in;
		stream->cpu = UINT32_MAX;
		stream->mirror = ir_mirror_stream(it->component->mirror, in);
		if (!stream->mirror) {
			ir_table_remove(&it->streams, in);
			free(stream);
			return NULL;
		}
	}
	it->last = stream;
	return stream;
}

static void end_stream(struct flt_iterator *it, struct flt_stream *stream)
{
	ir_table_remove(&it->streams, stream->in);
	it->last = NULL;
	free_stream(stream);
}

/* ---- time ---- */

/* The corrected value for a snapshot, never below what this iterator has given out. */
static bool correct(struct flt_iterator *it, const struct flt_clock *clock, uint32_t cpu,
	struct tdm_timeline_hint *hint, const bt_clock_snapshot *snapshot, uint64_t *value)
{
	struct flt_component *component = it->component;
	const uint64_t reading = flt_clock_reading(clock, bt_clock_snapshot_get_value(snapshot));

	if (component->mapping.extrapolate != FLT_EXTRAPOLATE_YES &&
		!flt_mapping_covers(&component->mapping, &component->report, reading)) {
		(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(it->self,
			"Reading %" PRIu64 " lies outside the correction's samples, %" PRIu64
			" to %" PRIu64 ", and extrapolate=no",
			reading, component->mapping.first_reading, component->mapping.last_reading);
		return false;
	}
	if (!flt_clock_apply(&component->mapping, clock, reading, cpu, hint, value)) {
		(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(it->self,
			"The corrected time of reading %" PRIu64
			" passes what a trace can hold (292 years around the epoch): is this the correction of another clock?",
			reading);
		return false;
	}
	/* Clocks of one iterator may have been made at different times, hence with different offsets. */
	if (it->last_clock && it->last_clock != clock) {
		const int64_t shift = clock->bias_ns - it->last_clock->bias_ns +
				      (it->last_clock->epoch_ns - clock->epoch_ns);

		it->last_value = shift < 0 && it->last_value < (uint64_t)-shift
					 ? 0
					 : it->last_value + (uint64_t)shift;
	}
	it->last_clock = clock;
	if (*value < it->last_value) {
		const uint64_t back_ns = it->last_value - *value;

		component->held_count++;
		if (back_ns > component->held_most_ns) {
			component->held_most_ns = back_ns;
		}
		*value = it->last_value;
		return true;
	}
	it->last_value = *value;
	return true;
}

static bool correct_in_stream(struct flt_iterator *it, struct flt_stream *stream,
	const bt_clock_snapshot *snapshot, uint64_t *value)
{
	return correct(it, stream->mirror->stream_class->clock->data, stream->cpu, &stream->hint,
		snapshot, value);
}

/* The end of a range lies ahead: it must not hold back the messages that come before it. */
static bool correct_ahead(struct flt_iterator *it, struct flt_stream *stream,
	const bt_clock_snapshot *snapshot, uint64_t *value)
{
	const uint64_t last_value = it->last_value;
	const bool good = correct_in_stream(it, stream, snapshot, value);

	it->last_value = last_value;
	return good;
}

/* ---- messages ---- */

static const bt_message *convert_stream_edge(
	struct flt_iterator *it, const bt_message *in, bool is_end)
{
	struct flt_stream *stream =
		find_stream(it, is_end ? bt_message_stream_end_borrow_stream_const(in)
				       : bt_message_stream_beginning_borrow_stream_const(in));
	const bt_clock_snapshot *snapshot = NULL;
	bool is_known = false;
	uint64_t value = 0;

	if (!stream) {
		return NULL;
	}
	if (stream->mirror->stream_class->clock) {
		is_known =
			(is_end ? bt_message_stream_end_borrow_default_clock_snapshot_const(
					  in, &snapshot)
				: bt_message_stream_beginning_borrow_default_clock_snapshot_const(
					  in, &snapshot)) ==
			BT_MESSAGE_STREAM_CLOCK_SNAPSHOT_STATE_KNOWN;
	}
	if (is_known && !correct_in_stream(it, stream, snapshot, &value)) {
		return NULL;
	}
	bt_message *out =
		is_end ? bt_message_stream_end_create(it->self, stream->mirror->out)
		       : bt_message_stream_beginning_create(it->self, stream->mirror->out);

	if (out && is_known) {
		if (is_end) {
			bt_message_stream_end_set_default_clock_snapshot(out, value);
		} else {
			bt_message_stream_beginning_set_default_clock_snapshot(out, value);
		}
	}
	if (is_end) {
		end_stream(it, stream);
	}
	return made(it, out);
}

static void learn_cpu(struct flt_stream *stream, const bt_packet *packet)
{
	const int member = stream->mirror->stream_class->cpu_member;

	if (member < 0) {
		return;
	}
	const uint64_t cpu = bt_field_integer_unsigned_get_value(
		bt_field_structure_borrow_member_field_by_index_const(
			bt_packet_borrow_context_field_const(packet), (uint64_t)member));

	stream->cpu = cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX;
}

/* The output packet of the stream's open packet, made where it is not there yet. NULL with a cause appended. */
static bt_packet *open_packet(
	struct flt_iterator *it, struct flt_stream *stream, const bt_packet *in)
{
	if (stream->out_packet && stream->in_packet == in) {
		return stream->out_packet;
	}
	bt_packet_put_ref(stream->out_packet);
	stream->in_packet = in;
	stream->out_packet = ir_mirror_packet(it->component->mirror, stream->mirror, in);
	if (stream->out_packet) {
		learn_cpu(stream, in);
	}
	return stream->out_packet;
}

static const bt_message *convert_packet_edge(
	struct flt_iterator *it, const bt_message *in, bool is_end)
{
	const bt_packet *in_packet = is_end ? bt_message_packet_end_borrow_packet_const(in)
					    : bt_message_packet_beginning_borrow_packet_const(in);
	struct flt_stream *stream = find_stream(it, bt_packet_borrow_stream_const(in_packet));

	if (!stream) {
		return NULL;
	}
	if (!is_end) {
		/* Never the one before, even where the allocator gives out its address again. */
		bt_packet_put_ref(stream->out_packet);
		stream->out_packet = NULL;
	}
	const struct ir_mirror_stream_class *stream_class = stream->mirror->stream_class;
	bt_packet *out_packet = open_packet(it, stream, in_packet);
	bt_message *out = NULL;
	uint64_t value = 0;

	if (!out_packet) {
		return NULL;
	}
	if (is_end ? stream_class->packet_end_timed : stream_class->packet_begin_timed) {
		if (!correct_in_stream(it, stream,
			    is_end ? bt_message_packet_end_borrow_default_clock_snapshot_const(in)
				   : bt_message_packet_beginning_borrow_default_clock_snapshot_const(
					     in),
			    &value)) {
			return NULL;
		}
		out = is_end ? bt_message_packet_end_create_with_default_clock_snapshot(
				       it->self, out_packet, value)
			     : bt_message_packet_beginning_create_with_default_clock_snapshot(
				       it->self, out_packet, value);
	} else {
		out = is_end ? bt_message_packet_end_create(it->self, out_packet)
			     : bt_message_packet_beginning_create(it->self, out_packet);
	}
	if (is_end) {
		BT_PACKET_PUT_REF_AND_RESET(stream->out_packet);
		stream->in_packet = NULL;
	}
	return made(it, out);
}

static struct ir_mirror_event_class *find_event_class(
	struct flt_iterator *it, struct flt_stream *stream, const bt_event_class *in)
{
	struct cached_class *cached = &it->cache[((uintptr_t)in >> 5) & (CACHE_ROOM - 1)];

	if (cached->in == in && it->generation == ir_mirror_generation(it->component->mirror)) {
		return cached->made;
	}
	struct ir_mirror_event_class *event_class =
		ir_mirror_event_class(it->component->mirror, stream->mirror->stream_class, in);

	if (event_class) {
		const uint64_t generation = ir_mirror_generation(it->component->mirror);

		if (it->generation != generation) {
			memset(it->cache, 0, sizeof(it->cache));
			it->generation = generation;
		}
		*cached = (struct cached_class){ in, event_class };
	}
	return event_class;
}

static const bt_message *convert_event(struct flt_iterator *it, const bt_message *in)
{
	const bt_event *in_event = bt_message_event_borrow_event_const(in);
	struct flt_stream *stream = find_stream(it, bt_event_borrow_stream_const(in_event));

	if (!stream) {
		return NULL;
	}
	const struct ir_mirror_stream_class *stream_class = stream->mirror->stream_class;
	const struct ir_mirror_event_class *event_class =
		find_event_class(it, stream, bt_event_borrow_class_const(in_event));
	bt_packet *packet = NULL;
	bt_message *out = NULL;

	if (!event_class) {
		return NULL;
	}
	if (stream_class->has_packets) {
		packet = open_packet(it, stream, bt_event_borrow_packet_const(in_event));
		if (!packet) {
			return NULL;
		}
	}
	if (stream_class->clock) {
		uint64_t value = 0;

		if (!correct_in_stream(it, stream,
			    bt_message_event_borrow_default_clock_snapshot_const(in), &value)) {
			return NULL;
		}
		out = packet ? bt_message_event_create_with_packet_and_default_clock_snapshot(
				       it->self, event_class->out, packet, value)
			     : bt_message_event_create_with_default_clock_snapshot(
				       it->self, event_class->out, stream->mirror->out, value);
	} else {
		out = packet ? bt_message_event_create_with_packet(
				       it->self, event_class->out, packet)
			     : bt_message_event_create(
				       it->self, event_class->out, stream->mirror->out);
	}
	if (out && !ir_mirror_event_fields(stream_class, event_class, in_event,
			   bt_message_event_borrow_event(out))) {
		BT_MESSAGE_PUT_REF_AND_RESET(out);
	}
	return made(it, out);
}

static const bt_message *convert_discarded_events(struct flt_iterator *it, const bt_message *in)
{
	struct flt_stream *stream =
		find_stream(it, bt_message_discarded_events_borrow_stream_const(in));
	bt_message *out = NULL;
	uint64_t count = 0;

	if (!stream) {
		return NULL;
	}
	if (stream->mirror->stream_class->discarded_events_timed) {
		uint64_t begin = 0;
		uint64_t end = 0;

		if (!correct_in_stream(it, stream,
			    bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(
				    in),
			    &begin) ||
			!correct_ahead(it, stream,
				bt_message_discarded_events_borrow_end_default_clock_snapshot_const(
					in),
				&end)) {
			return NULL;
		}
		out = bt_message_discarded_events_create_with_default_clock_snapshots(
			it->self, stream->mirror->out, begin, end);
	} else {
		out = bt_message_discarded_events_create(it->self, stream->mirror->out);
	}
	if (out && bt_message_discarded_events_get_count(in, &count) ==
			   BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		bt_message_discarded_events_set_count(out, count);
	}
	return made(it, out);
}

static const bt_message *convert_discarded_packets(struct flt_iterator *it, const bt_message *in)
{
	struct flt_stream *stream =
		find_stream(it, bt_message_discarded_packets_borrow_stream_const(in));
	bt_message *out = NULL;
	uint64_t count = 0;

	if (!stream) {
		return NULL;
	}
	if (stream->mirror->stream_class->discarded_packets_timed) {
		uint64_t begin = 0;
		uint64_t end = 0;

		if (!correct_in_stream(it, stream,
			    bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(
				    in),
			    &begin) ||
			!correct_ahead(it, stream,
				bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(
					in),
				&end)) {
			return NULL;
		}
		out = bt_message_discarded_packets_create_with_default_clock_snapshots(
			it->self, stream->mirror->out, begin, end);
	} else {
		out = bt_message_discarded_packets_create(it->self, stream->mirror->out);
	}
	if (out && bt_message_discarded_packets_get_count(in, &count) ==
			   BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		bt_message_discarded_packets_set_count(out, count);
	}
	return made(it, out);
}

static const bt_message *convert_inactivity(struct flt_iterator *it, const bt_message *in)
{
	const bt_clock_snapshot *snapshot =
		bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(in);
	/* It has no stream, and may come before any: its clock is rebuilt on demand. */
	struct ir_mirror_clock *clock = ir_mirror_clock(
		it->component->mirror, bt_clock_snapshot_borrow_clock_class_const(snapshot));
	uint64_t value = 0;

	if (!clock || !correct(it, clock->data, UINT32_MAX, NULL, snapshot, &value)) {
		return NULL;
	}
	return made(it, bt_message_message_iterator_inactivity_create(it->self, clock->out, value));
}

static const bt_message *convert(struct flt_iterator *it, const bt_message *in)
{
	switch (bt_message_get_type(in)) {
	case BT_MESSAGE_TYPE_EVENT:
		return convert_event(it, in);
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return convert_packet_edge(it, in, false);
	case BT_MESSAGE_TYPE_PACKET_END:
		return convert_packet_edge(it, in, true);
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		return convert_stream_edge(it, in, false);
	case BT_MESSAGE_TYPE_STREAM_END:
		return convert_stream_edge(it, in, true);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return convert_discarded_events(it, in);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return convert_discarded_packets(it, in);
	case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
		return convert_inactivity(it, in);
	}
	return fail(it, "A message of a kind that this filter does not know");
}

/* ---- methods ---- */

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
		const bt_message *out = convert(it, in);

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
	forget_streams(it);
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
		forget_streams(it);
		it->last_value = 0;
		it->last_clock = NULL;
	}
	return (bt_message_iterator_class_seek_beginning_method_status)status;
}
