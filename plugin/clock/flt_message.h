/* SPDX-License-Identifier: MIT */
/*
 * flt_message.h - what an iterator of filter.tandem.clock keeps, and one message in, the corrected one out.
 */
#ifndef TANDEM_FLT_MESSAGE_H
#define TANDEM_FLT_MESSAGE_H

#include "clock/flt_priv.h"

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

/** The corrected message for @p in, a new reference; @p in stays the caller's. NULL with a cause appended. */
const bt_message *flt_message_convert(struct flt_iterator *it, const bt_message *in);

/** Forgets every stream: after the end, or before a new beginning. */
void flt_message_forget_streams(struct flt_iterator *it);

#endif
