/* SPDX-License-Identifier: MIT */
#include "clock/flt_message.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

void flt_message_forget_streams(struct flt_iterator *it)
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

const bt_message *flt_message_convert(struct flt_iterator *it, const bt_message *in)
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
