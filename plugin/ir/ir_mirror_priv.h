/* SPDX-License-Identifier: MIT */
/*
 * ir_mirror_priv.h - what the files of the mirror share.
 */
#ifndef TANDEM_IR_MIRROR_PRIV_H
#define TANDEM_IR_MIRROR_PRIV_H

#include "ir/ir_mirror.h"

struct ir_mirror_trace_class {
	struct ir_mirror *mirror;
	const bt_trace_class *in; /* borrowed: the listener tells when it goes */
	bt_trace_class *out;      /* a reference */
	bt_listener_id listener;
	struct ir_table
		stream_classes; /* const bt_stream_class * -> struct ir_mirror_stream_class * */
};

struct ir_mirror_trace {
	struct ir_mirror *mirror;
	const bt_trace *in; /* borrowed: the listener tells when it goes */
	bt_trace *out;      /* a reference */
	bt_listener_id listener;
	struct ir_table streams; /* const bt_stream * -> struct ir_mirror_stream * */
};

struct ir_mirror {
	bt_self_component *self;
	uint64_t mip;
	const struct ir_mirror_ops *ops;
	void *owner;
	struct ir_table clocks; /* const bt_clock_class * -> struct ir_mirror_clock * */
	struct ir_table
		trace_classes;  /* const bt_trace_class * -> struct ir_mirror_trace_class * */
	struct ir_table traces; /* const bt_trace * -> struct ir_mirror_trace * */
	uint64_t generation;
};

/* Appends a cause and gives NULL of any type. */
#define IR_FAIL(mirror, ...) \
	(BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT((mirror)->self, __VA_ARGS__), NULL)

/** Finds or makes the stream class and, on the way, its trace class. NULL with a cause appended. */
struct ir_mirror_stream_class *ir_mirror_stream_class(
	struct ir_mirror *mirror, const bt_stream_class *in);
struct ir_mirror_trace_class *ir_mirror_trace_class(
	struct ir_mirror *mirror, const bt_trace_class *in);
void ir_mirror_free_trace_class(struct ir_mirror_trace_class *made);
void ir_mirror_free_clock(struct ir_mirror *mirror, struct ir_mirror_clock *clock);
/** Frees the clocks that no stream class uses. */
void ir_mirror_sweep_clocks(struct ir_mirror *mirror);

#endif
