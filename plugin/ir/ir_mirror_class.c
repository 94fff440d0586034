/* SPDX-License-Identifier: MIT */
#include "ir/ir_mirror_priv.h"
#include <stdlib.h>
#include <string.h>

/* ---- event classes ---- */

static void free_event_class(struct ir_mirror_event_class *made)
{
	ir_plan_release(&made->specific_context);
	ir_plan_release(&made->payload);
	free(made);
}

static bool copy_event_class_properties(
	struct ir_mirror *mirror, const bt_event_class *in, bt_event_class *out)
{
	const char *name = bt_event_class_get_name(in);
	const char *uri = bt_event_class_get_emf_uri(in);
	bt_event_class_log_level level;
	bool good = true;

	if (name) {
		good = bt_event_class_set_name(out, name) == BT_EVENT_CLASS_SET_NAME_STATUS_OK;
	}
	if (uri) {
		good = good &&
		       bt_event_class_set_emf_uri(out, uri) == BT_EVENT_CLASS_SET_EMF_URI_STATUS_OK;
	}
	if (bt_event_class_get_log_level(in, &level) == BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		bt_event_class_set_log_level(out, level);
	}
#if TANDEM_HAVE_BT_2_1
	if (mirror->mip > 0) {
		const char *space = bt_event_class_get_namespace(in);
		const char *uid = bt_event_class_get_uid(in);

		if (space) {
			good = good && bt_event_class_set_namespace(out, space) ==
					       BT_EVENT_CLASS_SET_NAMESPACE_STATUS_OK;
		}
		if (uid) {
			good = good &&
			       bt_event_class_set_uid(out, uid) == BT_EVENT_CLASS_SET_UID_STATUS_OK;
		}
	}
#else
	(void)mirror;
#endif
	bt_event_class_set_user_attributes(out, bt_event_class_borrow_user_attributes_const(in));
	return good;
}

static bool fill_event_class(struct ir_mirror *mirror, struct ir_mirror_stream_class *stream_class,
	const bt_event_class *in, struct ir_mirror_event_class *made)
{
	struct ir_plan_context context = {
		.self = mirror->self,
		.trace_class = bt_stream_class_borrow_trace_class(stream_class->out),
		.mip = mirror->mip,
		.scopes = {
			[IR_SCOPE_PACKET_CONTEXT] =
				stream_class->has_packet_context ? &stream_class->packet_context : NULL,
			[IR_SCOPE_COMMON_CONTEXT] =
				stream_class->has_common_context ? &stream_class->common_context : NULL,
		},
	};
	const bt_field_class *specific =
		bt_event_class_borrow_specific_context_field_class_const(in);
	const bt_field_class *payload = bt_event_class_borrow_payload_field_class_const(in);

	if (!copy_event_class_properties(mirror, in, made->out)) {
		return IR_FAIL(mirror, "No memory for an event class") != NULL;
	}
	if (specific) {
		bt_field_class *out = ir_plan_make(
			&context, IR_SCOPE_SPECIFIC_CONTEXT, specific, &made->specific_context);

		if (!out) {
			return false;
		}
		const bool set = bt_event_class_set_specific_context_field_class(made->out, out) ==
				 BT_EVENT_CLASS_SET_FIELD_CLASS_STATUS_OK;

		bt_field_class_put_ref(out);
		if (!set) {
			return false;
		}
		made->has_specific_context = true;
	}
	if (payload) {
		bt_field_class *out =
			ir_plan_make(&context, IR_SCOPE_PAYLOAD, payload, &made->payload);

		if (!out) {
			return false;
		}
		const bool set = bt_event_class_set_payload_field_class(made->out, out) ==
				 BT_EVENT_CLASS_SET_FIELD_CLASS_STATUS_OK;

		bt_field_class_put_ref(out);
		if (!set) {
			return false;
		}
		made->has_payload = true;
	}
	return true;
}

struct ir_mirror_event_class *ir_mirror_event_class(struct ir_mirror *mirror,
	struct ir_mirror_stream_class *stream_class, const bt_event_class *in)
{
	struct ir_mirror_event_class *made = ir_table_find(&stream_class->event_classes, in);

	if (made) {
		return made;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		return IR_FAIL(mirror, "No memory for an event class");
	}
	made->out = bt_event_class_create_with_id(stream_class->out, bt_event_class_get_id(in));
	if (!made->out) {
		free(made);
		return IR_FAIL(mirror, "Cannot create an event class");
	}
	/* The stream class holds it from here on: our reference is not needed. */
	bt_event_class_put_ref(made->out);
	if (!fill_event_class(mirror, stream_class, in, made)) {
		free_event_class(made);
		return IR_FAIL(mirror, "Cannot rebuild event class: name=\"%s\", id=%llu",
			bt_event_class_get_name(in) ? bt_event_class_get_name(in) : "",
			(unsigned long long)bt_event_class_get_id(in));
	}
	if (!ir_table_add(&stream_class->event_classes, in, made)) {
		free_event_class(made);
		return IR_FAIL(mirror, "No memory for an event class");
	}
	return made;
}

/* ---- stream classes ---- */

static void free_stream_class(struct ir_mirror_stream_class *made)
{
	for (size_t i = 0; i < made->event_classes.room; i++) {
		if (made->event_classes.slots[i].key) {
			free_event_class(made->event_classes.slots[i].value);
		}
	}
	ir_table_release(&made->event_classes);
	ir_plan_release(&made->packet_context);
	ir_plan_release(&made->common_context);
	if (made->clock) {
		made->clock->users--;
	}
	bt_stream_class_put_ref(made->out);
	free(made);
}

static bool copy_stream_class_properties(
	struct ir_mirror *mirror, const bt_stream_class *in, struct ir_mirror_stream_class *made)
{
	bt_stream_class *out = made->out;
	const char *name = bt_stream_class_get_name(in);
	const bt_clock_class *clock = bt_stream_class_borrow_default_clock_class_const(in);
	bool good = true;

	if (name) {
		good = bt_stream_class_set_name(out, name) == BT_STREAM_CLASS_SET_NAME_STATUS_OK;
	}
#if TANDEM_HAVE_BT_2_1
	if (mirror->mip > 0) {
		const char *space = bt_stream_class_get_namespace(in);
		const char *uid = bt_stream_class_get_uid(in);

		if (space) {
			good = good && bt_stream_class_set_namespace(out, space) ==
					       BT_STREAM_CLASS_SET_NAMESPACE_STATUS_OK;
		}
		if (uid) {
			good = good && bt_stream_class_set_uid(out, uid) ==
					       BT_STREAM_CLASS_SET_UID_STATUS_OK;
		}
	}
#endif
	if (!good) {
		return IR_FAIL(mirror, "No memory for a stream class") != NULL;
	}
	bt_stream_class_set_user_attributes(out, bt_stream_class_borrow_user_attributes_const(in));
	/* The clock first: the snapshot flags below are refused without one. */
	if (clock) {
		made->clock = ir_mirror_clock(mirror, clock);
		if (!made->clock) {
			return false;
		}
		made->clock->users++;
		if (bt_stream_class_set_default_clock_class(out, made->clock->out) !=
			BT_STREAM_CLASS_SET_DEFAULT_CLOCK_CLASS_STATUS_OK) {
			return false;
		}
	}
	made->has_packets = bt_stream_class_supports_packets(in) == BT_TRUE;
	if (made->has_packets) {
		made->packet_begin_timed =
			bt_stream_class_packets_have_beginning_default_clock_snapshot(in) ==
			BT_TRUE;
		made->packet_end_timed =
			bt_stream_class_packets_have_end_default_clock_snapshot(in) == BT_TRUE;
	}
	bt_stream_class_set_supports_packets(out, made->has_packets ? BT_TRUE : BT_FALSE,
		made->packet_begin_timed ? BT_TRUE : BT_FALSE,
		made->packet_end_timed ? BT_TRUE : BT_FALSE);
	if (bt_stream_class_supports_discarded_events(in)) {
		made->discarded_events_timed =
			bt_stream_class_discarded_events_have_default_clock_snapshots(in) ==
			BT_TRUE;
		bt_stream_class_set_supports_discarded_events(
			out, BT_TRUE, made->discarded_events_timed ? BT_TRUE : BT_FALSE);
	}
	if (bt_stream_class_supports_discarded_packets(in)) {
		made->discarded_packets_timed =
			bt_stream_class_discarded_packets_have_default_clock_snapshots(in) ==
			BT_TRUE;
		bt_stream_class_set_supports_discarded_packets(
			out, BT_TRUE, made->discarded_packets_timed ? BT_TRUE : BT_FALSE);
	}
	bt_stream_class_set_assigns_automatic_event_class_id(out, BT_FALSE);
	bt_stream_class_set_assigns_automatic_stream_id(out, BT_FALSE);
	return true;
}

/* Index of the member by which a tracer says which CPU a packet is from, or -1. */
static int find_cpu_member(const bt_field_class *context)
{
	const uint64_t count = bt_field_class_structure_get_member_count(context);

	for (uint64_t i = 0; i < count && i < INT32_MAX; i++) {
		const bt_field_class_structure_member *member =
			bt_field_class_structure_borrow_member_by_index_const(context, i);
		const bt_field_class *member_class =
			bt_field_class_structure_member_borrow_field_class_const(member);

		if (strcmp(bt_field_class_structure_member_get_name(member), "cpu_id") == 0 &&
			bt_field_class_type_is(bt_field_class_get_type(member_class),
				BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
			return (int)i;
		}
	}
	return -1;
}

static bool copy_stream_class_fields(
	struct ir_mirror *mirror, const bt_stream_class *in, struct ir_mirror_stream_class *made)
{
	struct ir_plan_context context = {
		.self = mirror->self,
		.trace_class = bt_stream_class_borrow_trace_class(made->out),
		.mip = mirror->mip,
	};
	const bt_field_class *packet = bt_stream_class_borrow_packet_context_field_class_const(in);
	const bt_field_class *common =
		bt_stream_class_borrow_event_common_context_field_class_const(in);

	if (packet) {
		bt_field_class *out = ir_plan_make(
			&context, IR_SCOPE_PACKET_CONTEXT, packet, &made->packet_context);

		if (!out) {
			return false;
		}
		const bool set = bt_stream_class_set_packet_context_field_class(made->out, out) ==
				 BT_STREAM_CLASS_SET_FIELD_CLASS_STATUS_OK;

		bt_field_class_put_ref(out);
		if (!set) {
			return false;
		}
		made->has_packet_context = true;
		made->cpu_member = find_cpu_member(packet);
	}
	if (common) {
		bt_field_class *out = ir_plan_make(
			&context, IR_SCOPE_COMMON_CONTEXT, common, &made->common_context);

		if (!out) {
			return false;
		}
		const bool set = bt_stream_class_set_event_common_context_field_class(made->out,
					 out) == BT_STREAM_CLASS_SET_FIELD_CLASS_STATUS_OK;

		bt_field_class_put_ref(out);
		if (!set) {
			return false;
		}
		made->has_common_context = true;
	}
	return true;
}

struct ir_mirror_stream_class *ir_mirror_stream_class(
	struct ir_mirror *mirror, const bt_stream_class *in)
{
	struct ir_mirror_trace_class *trace_class =
		ir_mirror_trace_class(mirror, bt_stream_class_borrow_trace_class_const(in));

	if (!trace_class) {
		return NULL;
	}
	struct ir_mirror_stream_class *made = ir_table_find(&trace_class->stream_classes, in);

	if (made) {
		return made;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		return IR_FAIL(mirror, "No memory for a stream class");
	}
	made->in = in;
	made->cpu_member = -1;
	made->out = bt_stream_class_create_with_id(trace_class->out, bt_stream_class_get_id(in));
	if (!made->out || !copy_stream_class_properties(mirror, in, made) ||
		!copy_stream_class_fields(mirror, in, made) ||
		!ir_table_add(&trace_class->stream_classes, in, made)) {
		free_stream_class(made);
		return IR_FAIL(mirror, "Cannot rebuild stream class: id=%llu",
			(unsigned long long)bt_stream_class_get_id(in));
	}
	/* By index: ids may be sparse. Classes that a live tracer adds later are made on first use. */
	for (uint64_t i = 0; i < bt_stream_class_get_event_class_count(in); i++) {
		if (!ir_mirror_event_class(mirror, made,
			    bt_stream_class_borrow_event_class_by_index_const(in, i))) {
			return NULL;
		}
	}
	return made;
}

/* ---- trace classes ---- */

void ir_mirror_free_trace_class(struct ir_mirror_trace_class *made)
{
	struct ir_mirror *mirror = made->mirror;

	for (size_t i = 0; i < made->stream_classes.room; i++) {
		if (made->stream_classes.slots[i].key) {
			free_stream_class(made->stream_classes.slots[i].value);
		}
	}
	ir_table_release(&made->stream_classes);
	bt_trace_class_put_ref(made->out);
	free(made);
	mirror->generation++;
}

static void on_trace_class_gone(const bt_trace_class *in, void *user)
{
	struct ir_mirror_trace_class *made = user;
	struct ir_mirror *mirror = made->mirror;

	ir_table_remove(&mirror->trace_classes, in);
	ir_mirror_free_trace_class(made);
	ir_mirror_sweep_clocks(mirror);
}

struct ir_mirror_trace_class *ir_mirror_trace_class(
	struct ir_mirror *mirror, const bt_trace_class *in)
{
	struct ir_mirror_trace_class *made = ir_table_find(&mirror->trace_classes, in);

	if (made) {
		return made;
	}
	made = calloc(1, sizeof(*made));
	if (!made) {
		return IR_FAIL(mirror, "No memory for a trace class");
	}
	made->mirror = mirror;
	made->in = in;
	made->out = bt_trace_class_create(mirror->self);
	if (!made->out || !ir_table_add(&mirror->trace_classes, in, made)) {
		bt_trace_class_put_ref(made->out);
		free(made);
		return IR_FAIL(mirror, "No memory for a trace class");
	}
	if (bt_trace_class_add_destruction_listener(in, on_trace_class_gone, made,
		    &made->listener) != BT_TRACE_CLASS_ADD_LISTENER_STATUS_OK) {
		ir_table_remove(&mirror->trace_classes, in);
		ir_mirror_free_trace_class(made);
		return IR_FAIL(mirror, "Cannot follow the life of a trace class");
	}
	bt_trace_class_set_assigns_automatic_stream_class_id(made->out, BT_FALSE);
	bt_trace_class_set_user_attributes(
		made->out, bt_trace_class_borrow_user_attributes_const(in));
	return made;
}
