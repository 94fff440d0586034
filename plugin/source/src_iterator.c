/* SPDX-License-Identifier: MIT */
/*
 * src_iterator.c - one stream's records as messages: stream, packets, events, losses.
 */
#include "src_component.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/live_trace.h>
#include <tandem/task_names.h>

/*
 * A packet ends after so many events, and wherever the tracer lost some. Small enough for readers of CTF that index by
 * packets, large enough that its two messages cost nothing.
 */
#define PACKET_EVENTS 8192

enum state {
	AT_BEGINNING,
	IN_STREAM,
	AT_STREAM_END,
	AT_END,
	TOLD_AGAIN /* the end of the last stream, before the error that tells of unreadable data */
};

struct iterator {
	bt_self_message_iterator *self;
	struct src_component *component;
	struct src_port *port;
	struct src_machine *machine;
	struct ir_trace *trace;
	struct ir_stream_class *class;
	struct tdm_reader *reader;
	bt_packet *packet; /* NULL between packets */
	enum state state;
	bool counted_open;
	bool loss_pending;   /* the tracer lost events before the next record */
	uint64_t loss_count; /* 0: it does not know how many */
	uint64_t loss_ns;
	bool in_loss_packet; /* the packet after a loss: its end is told beforehand */
	uint64_t loss_packet_end_ns;
	bool had_packet;
	struct tdm_batch batch;
	size_t slot; /* next of the batch */
	uint64_t last_ns;
	uint64_t packet_events;
	uint64_t delivered, records, clamped, out_of_range;
	struct tdm_task_names *names;
};

static struct iterator *iterator_of(bt_self_message_iterator *self)
{
	return bt_self_message_iterator_get_data(self);
}

static void close_packet(struct iterator *it)
{
	bt_packet_put_ref(it->packet);
	it->packet = NULL;
}

bt_message_iterator_class_initialize_method_status src_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *configuration,
	bt_self_component_port_output *port)
{
	struct iterator *const it = calloc(1, sizeof(*it));
	struct tdm_error err = { TDM_OK, "" };

	if (!it) {
		return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	it->self = self;
	it->port = bt_self_component_port_get_data(
		bt_self_component_port_output_as_self_component_port(port));
	it->component = it->port->component;
	it->machine = it->port->machine;
	it->trace = it->machine->trace;
	it->class = ir_trace_class_of(
		it->trace, it->trace->info->streams[it->port->stream_index].buffer_index);
	it->reader = tdm_reader_create(it->machine->machine->trace, it->port->stream_index, &err);
	it->names = tdm_task_names_create(it->machine->machine->trace);
	if (it->reader && !it->names) {
		tdm_fail(&err, TDM_ERR_NOMEM, "no memory for task names");
	}
	if (!it->reader || !it->names) {
		report_iterator_cause(self, &err);
		tdm_reader_destroy(it->reader);
		tdm_task_names_destroy(it->names);
		free(it);
		return err.status == TDM_ERR_NOMEM
			       ? BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR
			       : BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
	}
	it->counted_open = true;
	it->component->iterators_open++;
	bt_self_message_iterator_configuration_set_can_seek_forward(configuration, BT_TRUE);
	bt_self_message_iterator_set_data(self, it);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

/* Adds what this iterator met to its machine's counts, once. */
static void count_closed(struct iterator *it)
{
	if (!it->counted_open) {
		return;
	}

	const struct tdm_reader_counts counts = tdm_reader_get_counts(it->reader);

	it->counted_open = false;
	it->component->iterators_open--;
	it->machine->records += it->records;
	it->machine->delivered += it->delivered;
	it->machine->clamped += it->clamped;
	it->machine->out_of_range += it->out_of_range;
	it->machine->lost += counts.lost_events;
	it->machine->losses_uncounted += counts.lost_unknown;
	it->machine->unreadable_pages += counts.unreadable_pages;
}

void src_iterator_finalize(bt_self_message_iterator *self)
{
	struct iterator *const it = iterator_of(self);

	count_closed(it);
	close_packet(it);
	tdm_reader_destroy(it->reader);
	tdm_task_names_destroy(it->names);
	free(it);
}

static uint64_t value_of(const struct iterator *it, uint64_t time_ns)
{
	return src_clock_value(time_ns, it->component->bias_ns);
}

/* babeltrace2's muxer takes no stream that goes back in time. */
static uint64_t next_time(struct iterator *it, uint64_t time_ns)
{
	uint64_t value = value_of(it, time_ns);

	if (time_ns + it->component->bias_ns > INT64_MAX) {
		it->out_of_range++;
		return it->last_ns;
	}
	if (value < it->last_ns) {
		it->clamped++;
		value = it->last_ns;
	}
	it->last_ns = value;
	return value;
}

static bt_message *stream_beginning(struct iterator *it)
{
	it->state = IN_STREAM;
	return bt_message_stream_beginning_create(it->self, it->port->stream);
}

static bt_message *packet_beginning(struct iterator *it, uint64_t time_ns)
{
	it->packet = bt_packet_create(it->port->stream);
	if (!it->packet) {
		return NULL;
	}
	it->packet_events = 0;
	bt_field_integer_unsigned_set_value(bt_field_structure_borrow_member_field_by_index(
						    bt_packet_borrow_context_field(it->packet), 0),
		it->trace->info->streams[it->port->stream_index].cpu);
	return bt_message_packet_beginning_create_with_default_clock_snapshot(
		it->self, it->packet, time_ns);
}

static bt_message *packet_end(struct iterator *it)
{
	if (it->in_loss_packet) {
		it->in_loss_packet = false;
		it->last_ns = it->loss_packet_end_ns;
	}

	bt_message *const message = bt_message_packet_end_create_with_default_clock_snapshot(
		it->self, it->packet, it->last_ns);

	it->had_packet = true;
	close_packet(it);
	return message;
}

/*
 * What the tracer lost, between two packets. sink.ctf.fs takes a range of time only where it runs from the end of the
 * packet before (or the beginning of the first one) to the end of the next. So the packet after a loss is the rest of the
 * batch at hand, whose end is known now.
 */
static bt_message *discarded_events(struct iterator *it)
{
	const struct tdm_batch *const batch = &it->batch;
	uint64_t begin_ns = it->last_ns;
	uint64_t end_ns = value_of(it, it->loss_ns);

	end_ns = end_ns > begin_ns ? end_ns : begin_ns;
	for (size_t i = it->slot; i < batch->count; i++) {
		const uint64_t time_ns = value_of(it, batch->slots[i].time_ns);

		end_ns = time_ns > end_ns ? time_ns : end_ns;
	}
	if (!it->had_packet) {
		begin_ns = it->slot < batch->count ? value_of(it, batch->slots[it->slot].time_ns)
						   : end_ns;
	}

	bt_message *const message = bt_message_discarded_events_create_with_default_clock_snapshots(
		it->self, it->port->stream, begin_ns, end_ns);

	it->loss_pending = false;
	it->in_loss_packet = true;
	it->loss_packet_end_ns = end_ns;
	if (message && it->loss_count > 0) {
		bt_message_discarded_events_set_count(message, it->loss_count);
	}
	return message;
}

static bt_message *event(
	struct iterator *it, const struct ir_record_plan *plan, const struct tdm_slot *slot)
{
	const uint64_t time_ns = next_time(it, slot->time_ns);
	bt_message *const message = bt_message_event_create_with_packet_and_default_clock_snapshot(
		it->self, plan->event_class, it->packet, time_ns);

	if (!message) {
		return NULL;
	}

	const int32_t tid = plan->pid_offset == UINT16_MAX
				    ? -1
				    : (int32_t)tdm_load_u32(slot->payload + plan->pid_offset,
					      it->trace->big_endian);

	if (plan->teaches) {
		tdm_task_names_learn(
			it->names, plan->shown->source, slot->payload, slot->payload_bytes);
	}

	size_t name_bytes;
	uint64_t until;
	const char *name = tdm_task_names_find_at(it->names, slot->sample ? slot->sample->tid : tid,
		slot->raw_time, &name_bytes, &until);

	if (name_bytes == 0) {
		name = TDM_TASK_NAME_UNKNOWN;
		name_bytes = sizeof(TDM_TASK_NAME_UNKNOWN);
	}
	ir_event_fill(it->trace, plan, bt_message_event_borrow_event(message), slot, tid, name,
		name_bytes);
	if (plan->has_print) {
		ir_event_print(it->trace, plan, bt_message_event_borrow_event(message), slot,
			it->trace->info->streams[it->port->stream_index].cpu);
	}
	it->delivered++;
	it->packet_events++;
	return message;
}

/*
 * The message for the next record that can be delivered, or for the packet that must begin or end before it.
 * @return False where the batch holds no further one.
 */
static bool next_of_batch(struct iterator *it, bt_message **message)
{
	while (it->slot < it->batch.count) {
		const struct tdm_slot *const slot = &it->batch.slots[it->slot];
		const struct ir_record_plan *const plan = ir_record_plan_of(
			it->trace, it->class, slot->event_id, slot->payload, slot->payload_bytes);

		if (!plan || slot->payload_bytes < plan->least_bytes) {
			if (plan) {
				ir_trace_refuse(it->trace, slot->event_id,
					plan->shown->source->name, "shorter than their format");
			}
			it->records++;
			it->slot++;
			continue;
		}
		if (it->loss_pending) {
			*message = it->packet ? packet_end(it) : discarded_events(it);
			return true;
		}
		if (!it->packet) {
			uint64_t time_ns = value_of(it, slot->time_ns);

			time_ns = time_ns < it->last_ns ? it->last_ns : time_ns;
			*message = packet_beginning(it, time_ns);
			return true;
		}
		if (it->packet_events >= PACKET_EVENTS && !it->in_loss_packet) {
			*message = packet_end(it);
			return true;
		}
		*message = event(it, plan, slot);
		it->records++;
		it->slot++;
		return true;
	}
	return false;
}

static enum tdm_status fetch(struct iterator *it, struct tdm_error *err)
{
	it->slot = 0;
	it->batch.count = 0;
	it->batch.lost = false;

	const enum tdm_status status = tdm_reader_next_batch(it->reader, &it->batch, err);

	if (status != TDM_OK) {
		it->batch.count = 0;
		return status;
	}
	if (it->batch.lost) {
		/* Two losses with nothing that can be delivered between them are one. */
		const bool known =
			it->batch.lost_count > 0 && (!it->loss_pending || it->loss_count > 0);

		it->loss_count =
			known ? it->batch.lost_count + (it->loss_pending ? it->loss_count : 0) : 0;
		it->loss_pending = true;
		it->loss_ns = it->batch.lost_time_ns;
	}
	return TDM_OK;
}

/* What is still to come after the last record: a loss with an empty packet to stand before, the stream's end. */
static bt_message *ending_message(struct iterator *it)
{
	if (it->packet) {
		return packet_end(it);
	}
	if (it->loss_pending) {
		return discarded_events(it);
	}
	if (it->in_loss_packet) {
		return packet_beginning(it, it->loss_packet_end_ns);
	}
	it->state = AT_END;
	return bt_message_stream_end_create(it->self, it->port->stream);
}

/*
 * A live stream has nothing now: says how far it is complete, so that the muxer need not wait for it. TDM_AGAIN where that is
 * no further than was said before.
 */
static enum tdm_status inactivity(struct iterator *it, bt_message **message)
{
	uint64_t time_ns = 0;

	if (!tdm_reader_progress(it->reader, &time_ns) || value_of(it, time_ns) <= it->last_ns) {
		return TDM_AGAIN;
	}
	it->last_ns = value_of(it, time_ns);
	*message = bt_message_message_iterator_inactivity_create(
		it->self, it->class->clock_class, it->last_ns);
	return TDM_OK;
}

/* One message. TDM_OK with *message NULL: no memory. */
static enum tdm_status next_message(
	struct iterator *it, bt_message **message, struct tdm_error *err)
{
	if (it->state == AT_BEGINNING) {
		*message = stream_beginning(it);
		return TDM_OK;
	}
	while (it->state == IN_STREAM) {
		if (next_of_batch(it, message)) {
			return TDM_OK;
		}
		if (it->packet && it->in_loss_packet) {
			*message = packet_end(it);
			return TDM_OK;
		}

		const enum tdm_status status = fetch(it, err);

		if (status == TDM_AGAIN) {
			return inactivity(it, message);
		}
		if (status == TDM_ERR_NOMEM) {
			return status;
		}
		if (status != TDM_OK) {
			/* What ends a stream early is one of its faults: the others still come whole. */
			it->state = AT_STREAM_END;
		}
	}
	if (it->state == AT_STREAM_END) {
		*message = ending_message(it);
		return TDM_OK;
	}
	return TDM_END;
}

/*
 * Unreadable data must end babeltrace2 with a failure, but everything that can be read comes first: so it is the last
 * stream to end that fails, and only after the muxer has given away what it holds, which it does on AGAIN.
 */
static bt_message_iterator_class_next_method_status finish(struct iterator *it)
{
	/* Only who asks beyond the end has taken all that was given; the muxer reads ahead in the others. */
	count_closed(it);
	if (it->component->iterators_open > 0) {
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
	}
	if (it->state == TOLD_AGAIN) {
		const struct tdm_error err = {
			TDM_ERR_FORMAT,
			"parts of the inputs could not be read, see the warnings; everything else was delivered"
		};

		report_iterator_cause(it->self, &err);
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
	}
	if (!src_tell_losses(it->component)) {
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
	}
	it->state = TOLD_AGAIN;
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_AGAIN;
}

bt_message_iterator_class_next_method_status src_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct iterator *const it = iterator_of(self);
	struct tdm_error err = { TDM_OK, "" };
	uint64_t made = 0;

	while (made < capacity) {
		bt_message *message = NULL;
		const enum tdm_status status = next_message(it, &message, &err);

		if (status == TDM_OK && message) {
			messages[made++] = message;
			continue;
		}
		if (status == TDM_OK || status == TDM_ERR_NOMEM) {
			while (made > 0) {
				bt_message_put_ref(messages[--made]);
			}
			return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_MEMORY_ERROR;
		}
		if (made > 0) {
			break;
		}
		return status == TDM_AGAIN ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_AGAIN
					   : finish(it);
	}
	*count = made;
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
}

bt_message_iterator_class_seek_beginning_method_status src_iterator_seek_beginning(
	bt_self_message_iterator *self)
{
	struct iterator *const it = iterator_of(self);
	struct tdm_error err = { TDM_OK, "" };

	if (tdm_reader_rewind(it->reader, &err) != TDM_OK) {
		report_iterator_cause(self, &err);
		return BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_ERROR;
	}
	close_packet(it);
	if (!it->counted_open) {
		it->counted_open = true;
		it->component->iterators_open++;
	}
	tdm_task_names_reset(it->names);
	it->state = AT_BEGINNING;
	it->loss_pending = false;
	it->in_loss_packet = false;
	it->had_packet = false;
	it->batch.count = 0;
	it->slot = 0;
	it->last_ns = 0;
	it->delivered = 0;
	it->records = 0;
	it->clamped = 0;
	it->out_of_range = 0;
	return BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_OK;
}

bt_message_iterator_class_can_seek_beginning_method_status src_iterator_can_seek_beginning(
	bt_self_message_iterator *self, bt_bool *can_seek)
{
	*can_seek = iterator_of(self)->trace->info->format != TDM_FORMAT_LIVE;
	return BT_MESSAGE_ITERATOR_CLASS_CAN_SEEK_BEGINNING_METHOD_STATUS_OK;
}
