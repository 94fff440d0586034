/* SPDX-License-Identifier: MIT */
/*
 * ir_mirror.h - a second trace IR beside that of an upstream component: the same in all but the clocks.
 *
 * A clock snapshot is fixed when its message is made, a clock class belongs to a stream class and that to a trace
 * class. Whoever changes a clock needs a parallel object for each of them. They are made on first use, and go when the
 * input object that they stand for goes, so that an endless live session does not grow.
 *
 * One mirror serves all iterators of a component: two ports with streams of one trace give streams of one trace.
 */
#ifndef TANDEM_IR_MIRROR_H
#define TANDEM_IR_MIRROR_H

#include "ir/ir_plan.h"
#include "ir/ir_table.h"

struct ir_mirror;

/* What the owner decides: clocks, and what is added to a trace. */
struct ir_mirror_ops {
	/**
	 * Makes the clock class that stands for @p in, all of it but the name, description, user attributes and
	 * identity, which the mirror copies first.
	 *
	 * @param data  Receives what the owner wants to find again at each message; freed by free_clock.
	 * @return False with an error cause appended.
	 */
	bool (*make_clock)(void *owner, const bt_clock_class *in, bt_clock_class *out, void **data);
	void (*free_clock)(void *owner, void *data);
	/** Adds environment entries to a trace that has the input's already. False with a cause appended. */
	bool (*mark_trace)(void *owner, bt_trace *out);
};

struct ir_mirror_clock {
	const bt_clock_class *in; /* a reference: a clock class cannot tell when it goes */
	bt_clock_class *out;      /* a reference */
	void *data;               /* the owner's */
	unsigned int users;       /* stream classes */
};

struct ir_mirror_event_class {
	bt_event_class *out; /* borrowed from its stream class */
	struct ir_plan specific_context, payload;
	bool has_specific_context, has_payload;
};

struct ir_mirror_stream_class {
	const bt_stream_class *in;     /* borrowed */
	bt_stream_class *out;          /* a reference */
	struct ir_mirror_clock *clock; /* NULL: a stream class without a clock */
	struct ir_plan packet_context, common_context;
	bool has_packet_context, has_common_context;
	bool has_packets;
	bool packet_begin_timed, packet_end_timed;
	bool discarded_events_timed, discarded_packets_timed;
	int cpu_member; /* index of the packet context's member cpu_id, an unsigned integer; -1 = none */
	struct ir_table
		event_classes; /* const bt_event_class * -> struct ir_mirror_event_class * */
};

struct ir_mirror_stream {
	const bt_stream *in; /* borrowed: a stream lives as long as its trace */
	bt_stream *out;      /* a reference */
	struct ir_mirror_stream_class *stream_class;
};

/** @return A mirror that the caller owns, or NULL without memory. @p ops and @p owner must outlive it. */
struct ir_mirror *ir_mirror_create(
	bt_self_component *self, uint64_t mip, const struct ir_mirror_ops *ops, void *owner);
void ir_mirror_destroy(struct ir_mirror *mirror);

/** Grows by one whenever an object of the mirror goes: a cache of its pointers is empty then. */
uint64_t ir_mirror_generation(const struct ir_mirror *mirror);

/* Find or make. All return NULL with an error cause appended; what they return is the mirror's. */

struct ir_mirror_clock *ir_mirror_clock(struct ir_mirror *mirror, const bt_clock_class *in);
struct ir_mirror_stream *ir_mirror_stream(struct ir_mirror *mirror, const bt_stream *in);
struct ir_mirror_event_class *ir_mirror_event_class(struct ir_mirror *mirror,
	struct ir_mirror_stream_class *stream_class, const bt_event_class *in);

/** A packet with its context copied: a reference of the caller's, or NULL with a cause appended. */
bt_packet *ir_mirror_packet(
	struct ir_mirror *mirror, struct ir_mirror_stream *stream, const bt_packet *in);

/** Copies all fields of an event. @return False without memory, no cause appended. */
bool ir_mirror_event_fields(const struct ir_mirror_stream_class *stream_class,
	const struct ir_mirror_event_class *event_class, const bt_event *in, bt_event *out);

#endif
