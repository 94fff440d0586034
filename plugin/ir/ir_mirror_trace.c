/* SPDX-License-Identifier: MIT */
#include "ir/ir_mirror_priv.h"
#include <stdlib.h>

static void free_trace(struct ir_mirror_trace *made)
{
	struct ir_mirror *mirror = made->mirror;

	for (size_t i = 0; i < made->streams.room; i++) {
		struct ir_mirror_stream *stream = made->streams.slots[i].value;

		if (made->streams.slots[i].key) {
			bt_stream_put_ref(stream->out);
			free(stream);
		}
	}
	ir_table_release(&made->streams);
	bt_trace_put_ref(made->out);
	free(made);
	mirror->generation++;
}

static void on_trace_gone(const bt_trace *in, void *user)
{
	struct ir_mirror_trace *made = user;

	ir_table_remove(&made->mirror->traces, in);
	free_trace(made);
}

static bool copy_environment(const bt_trace *in, bt_trace *out)
{
	for (uint64_t i = 0; i < bt_trace_get_environment_entry_count(in); i++) {
		const char *name = NULL;
		const bt_value *value = NULL;
		bool good = false;

		bt_trace_borrow_environment_entry_by_index_const(in, i, &name, &value);
		if (bt_value_is_string(value)) {
			good = bt_trace_set_environment_entry_string(
				       out, name, bt_value_string_get(value)) ==
			       BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;
		} else {
			good = bt_trace_set_environment_entry_integer(
				       out, name, bt_value_integer_signed_get(value)) ==
			       BT_TRACE_SET_ENVIRONMENT_ENTRY_STATUS_OK;
		}
		if (!good) {
			return false;
		}
	}
	return true;
}

static bool copy_trace_properties(const struct ir_mirror *mirror, const bt_trace *in, bt_trace *out)
{
	const char *name = bt_trace_get_name(in);

	if (name && bt_trace_set_name(out, name) != BT_TRACE_SET_NAME_STATUS_OK) {
		return false;
	}
	if (mirror->mip == 0) {
		bt_uuid uuid = bt_trace_get_uuid(in);

		if (uuid) {
			bt_trace_set_uuid(out, uuid);
		}
	}
#if TANDEM_HAVE_BT_2_1
	if (mirror->mip > 0) {
		const char *space = bt_trace_get_namespace(in);
		const char *uid = bt_trace_get_uid(in);

		if (space &&
			bt_trace_set_namespace(out, space) != BT_TRACE_SET_NAMESPACE_STATUS_OK) {
			return false;
		}
		if (uid && bt_trace_set_uid(out, uid) != BT_TRACE_SET_UID_STATUS_OK) {
			return false;
		}
	}
#endif
	bt_trace_set_user_attributes(out, bt_trace_borrow_user_attributes_const(in));
	return copy_environment(in, out);
}

/* All that the input has by now, so that whoever lists a trace's classes and streams sees the same ones. */
static bool copy_known(struct ir_mirror *mirror, const bt_trace *in, const bt_trace_class *in_class)
{
	for (uint64_t i = 0; i < bt_trace_class_get_stream_class_count(in_class); i++) {
		if (!ir_mirror_stream_class(mirror,
			    bt_trace_class_borrow_stream_class_by_index_const(in_class, i))) {
			return false;
		}
	}
	for (uint64_t i = 0; i < bt_trace_get_stream_count(in); i++) {
		if (!ir_mirror_stream(mirror, bt_trace_borrow_stream_by_index_const(in, i))) {
			return false;
		}
	}
	return true;
}

static struct ir_mirror_trace *find_trace(struct ir_mirror *mirror, const bt_trace *in)
{
	struct ir_mirror_trace *made = ir_table_find(&mirror->traces, in);

	if (made) {
		return made;
	}
	struct ir_mirror_trace_class *trace_class =
		ir_mirror_trace_class(mirror, bt_trace_borrow_class_const(in));

	if (!trace_class) {
		return NULL;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		return IR_FAIL(mirror, "No memory for a trace");
	}
	made->mirror = mirror;
	made->in = in;
	made->out = bt_trace_create(trace_class->out);
	if (!made->out || !copy_trace_properties(mirror, in, made->out) ||
		!mirror->ops->mark_trace(mirror->owner, made->out) ||
		!ir_table_add(&mirror->traces, in, made)) {
		bt_trace_put_ref(made->out);
		free(made);
		return IR_FAIL(mirror, "Cannot rebuild a trace");
	}
	if (bt_trace_add_destruction_listener(in, on_trace_gone, made, &made->listener) !=
		BT_TRACE_ADD_LISTENER_STATUS_OK) {
		ir_table_remove(&mirror->traces, in);
		free_trace(made);
		return IR_FAIL(mirror, "Cannot follow the life of a trace");
	}
	return copy_known(mirror, in, trace_class->in) ? made : NULL;
}

struct ir_mirror_stream *ir_mirror_stream(struct ir_mirror *mirror, const bt_stream *in)
{
	struct ir_mirror_trace *trace = find_trace(mirror, bt_stream_borrow_trace_const(in));

	if (!trace) {
		return NULL;
	}
	struct ir_mirror_stream *made = ir_table_find(&trace->streams, in);

	if (made) {
		return made;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		return IR_FAIL(mirror, "No memory for a stream");
	}
	made->in = in;
	made->stream_class = ir_mirror_stream_class(mirror, bt_stream_borrow_class_const(in));
	if (!made->stream_class) {
		free(made);
		return NULL;
	}
	made->out =
		bt_stream_create_with_id(made->stream_class->out, trace->out, bt_stream_get_id(in));

	const char *name = bt_stream_get_name(in);

	if (!made->out ||
		(name && bt_stream_set_name(made->out, name) != BT_STREAM_SET_NAME_STATUS_OK) ||
		!ir_table_add(&trace->streams, in, made)) {
		bt_stream_put_ref(made->out);
		free(made);
		return IR_FAIL(mirror, "Cannot rebuild stream: id=%llu",
			(unsigned long long)bt_stream_get_id(in));
	}
	bt_stream_set_user_attributes(made->out, bt_stream_borrow_user_attributes_const(in));
	return made;
}

struct ir_mirror *ir_mirror_create(
	bt_self_component *self, uint64_t mip, const struct ir_mirror_ops *ops, void *owner)
{
	struct ir_mirror *mirror = calloc(1, sizeof(*mirror));

	if (mirror) {
		mirror->self = self;
		mirror->mip = mip;
		mirror->ops = ops;
		mirror->owner = owner;
	}
	return mirror;
}

void ir_mirror_destroy(struct ir_mirror *mirror)
{
	if (!mirror) {
		return;
	}
	for (size_t i = 0; i < mirror->traces.room; i++) {
		struct ir_mirror_trace *trace = mirror->traces.slots[i].value;

		if (mirror->traces.slots[i].key) {
			(void)bt_trace_remove_destruction_listener(trace->in, trace->listener);
			free_trace(trace);
		}
	}
	for (size_t i = 0; i < mirror->trace_classes.room; i++) {
		struct ir_mirror_trace_class *trace_class = mirror->trace_classes.slots[i].value;

		if (mirror->trace_classes.slots[i].key) {
			(void)bt_trace_class_remove_destruction_listener(
				trace_class->in, trace_class->listener);
			ir_mirror_free_trace_class(trace_class);
		}
	}
	for (size_t i = 0; i < mirror->clocks.room; i++) {
		if (mirror->clocks.slots[i].key) {
			ir_mirror_free_clock(mirror, mirror->clocks.slots[i].value);
		}
	}
	ir_table_release(&mirror->traces);
	ir_table_release(&mirror->trace_classes);
	ir_table_release(&mirror->clocks);
	free(mirror);
}

uint64_t ir_mirror_generation(const struct ir_mirror *mirror)
{
	return mirror->generation;
}
