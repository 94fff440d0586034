/* SPDX-License-Identifier: MIT */
#include "causality_read.h"
#include "ctf_event.h"
#include <stdlib.h>
#include <string.h>

enum kind {
	OTHER,
	ENTRY,
	EXIT,
	SWITCH,
	SENT,
	GOT
};

/* Names of LTTng; source.tandem.* gives them too with names=lttng. */
static enum kind kind_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{ "kvm_x86_entry", ENTRY },
		{ "kvm_entry", ENTRY },
		{ "kvm_x86_exit", EXIT },
		{ "kvm_exit", EXIT },
		{ "sched_switch", SWITCH },
		{ "net_dev_queue", SENT },
		{ "net_if_receive_skb", GOT },
	};

	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(name, kinds[i].name) == 0) {
			return kinds[i].kind;
		}
	}
	return OTHER;
}

static struct causality_class *find_slot(
	const struct causality_classes *classes, const bt_event_class *key)
{
	size_t at = ((uintptr_t)key >> 4) & (classes->room - 1);

	while (classes->slots[at].key && classes->slots[at].key != key) {
		at = (at + 1) & (classes->room - 1);
	}
	return &classes->slots[at];
}

static bool grow(struct causality_classes *classes)
{
	struct causality_classes bigger = { .room = classes->room ? classes->room * 2 : 256,
		.count = classes->count };

	bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
	if (!bigger.slots) {
		return false;
	}
	for (size_t i = 0; i < classes->room; i++) {
		if (classes->slots[i].key) {
			*find_slot(&bigger, classes->slots[i].key) = classes->slots[i];
		}
	}
	free(classes->slots);
	*classes = bigger;
	return true;
}

/* -1 without memory. */
static int kind_of(struct causality_classes *classes, const bt_event_class *key)
{
	if ((classes->count + 1) * 2 > classes->room && !grow(classes)) {
		return -1;
	}
	struct causality_class *slot = find_slot(classes, key);

	if (!slot->key) {
		slot->key = key;
		slot->kind = kind_of_name(bt_event_class_get_name(key));
		/* Held, so that its address is not given to another class. */
		bt_event_class_get_ref(key);
		classes->count++;
	}
	return slot->kind;
}

/* ---- fields ---- */

static int32_t tid_of(const bt_event *event)
{
	int64_t tid = 0;

	if (ctf_number(
		    ctf_member(bt_event_borrow_common_context_field_const(event), "tid"), &tid) &&
		tid >= 0 && tid <= INT32_MAX) {
		return (int32_t)tid;
	}
	return CAUSALITY_NO_TID;
}

static uint32_t vcpu_of(const bt_event *event)
{
	int64_t vcpu = 0;

	return ctf_number(
		       ctf_member(bt_event_borrow_payload_field_const(event), "vcpu_id"), &vcpu) &&
			       vcpu >= 0 && vcpu < UINT32_MAX
		       ? (uint32_t)vcpu
		       : CAUSALITY_NO_VCPU;
}

/* A field of this name at any depth: headers are structures in variants in structures. */
static const bt_field *find_deep(const bt_field *in, const char *name, unsigned int depth)
{
	if (!in || depth > 8) {
		return NULL;
	}
	const bt_field_class_type type = bt_field_get_class_type(in);

	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		return find_deep(
			bt_field_variant_borrow_selected_option_field_const(in), name, depth + 1);
	}
	if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		return find_deep(bt_field_option_borrow_field_const(in), name, depth + 1);
	}
	if (type != BT_FIELD_CLASS_TYPE_STRUCTURE) {
		return NULL;
	}
	const bt_field *found = bt_field_structure_borrow_member_field_by_name_const(in, name);
	const uint64_t count =
		bt_field_class_structure_get_member_count(bt_field_borrow_class_const(in));

	for (uint64_t i = 0; !found && i < count; i++) {
		found = find_deep(bt_field_structure_borrow_member_field_by_index_const(in, i),
			name, depth + 1);
	}
	return found;
}

/* Appends the bytes of a number, or of an array of numbers, to a packet's key. */
static bool add_to_key(
	struct causality_packet *packet, size_t *at, const bt_field *in, unsigned int bytes)
{
	int64_t number = 0;

	if (in && bt_field_class_type_is(bt_field_get_class_type(in), BT_FIELD_CLASS_TYPE_ARRAY)) {
		bool good = true;

		for (uint64_t i = 0; good && i < bt_field_array_get_length(in); i++) {
			good = add_to_key(packet, at,
				bt_field_array_borrow_element_field_by_index_const(in, i), 1);
		}
		return good;
	}
	if (!ctf_number(in, &number) || *at + bytes > sizeof(packet->key)) {
		return false;
	}
	memcpy(packet->key + *at, &number, bytes);
	*at += bytes;
	return true;
}

/* False where the event has no TCP header. */
static bool packet_of(const bt_event *event, struct causality_packet *packet)
{
	static const struct {
		const char *name;
		unsigned int bytes;
	} parts[] = {
		{ "source_port", 2 },
		{ "dest_port", 2 },
		{ "seq", 4 },
		{ "ack_seq", 4 },
		{ "saddr", 4 },
		{ "daddr", 4 },
	};

	const bt_field *headers =
		find_deep(bt_event_borrow_payload_field_const(event), "network_header", 0);
	const bt_field *flags = find_deep(headers, "flags", 0);
	const bt_field *length = find_deep(headers, "tot_len", 0);
	size_t at = 0;

	*packet = (struct causality_packet){ .time_ns = 0 };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!add_to_key(
			    packet, &at, find_deep(headers, parts[i].name, 0), parts[i].bytes)) {
			return false;
		}
	}
	if (!length) {
		length = find_deep(headers, "payload_len", 0); /* IPv6 */
	}
	(void)add_to_key(packet, &at, flags, 2);
	(void)add_to_key(packet, &at, length, 2);
	/* The identification tells a retransmission from the first sending. */
	(void)add_to_key(packet, &at, find_deep(headers, "id", 0), 2);
	return true;
}

/* ---- events ---- */

static bool read_host(
	struct causality_reader *reader, enum kind kind, const bt_event *event, int64_t time_ns)
{
	const uint32_t cpu = ctf_event_cpu(event);
	struct causality_packet packet;
	int64_t tid = 0;

	switch (kind) {
	case SWITCH:
		return !ctf_number(
			       ctf_member(bt_event_borrow_payload_field_const(event), "next_tid"),
			       &tid) ||
		       causality_host_switch(reader->model, cpu, (int32_t)tid);
	case ENTRY:
		return causality_host_entry(
			reader->model, cpu, tid_of(event), vcpu_of(event), time_ns);
	case EXIT:
		return causality_host_exit(
			reader->model, cpu, tid_of(event), vcpu_of(event), time_ns);
	case SENT:
	case GOT:
		if (!packet_of(event, &packet)) {
			return true;
		}
		packet.time_ns = time_ns;
		return causality_packet(reader->model,
			kind == SENT ? CAUSALITY_SENT_BY_HOST : CAUSALITY_GOT_BY_HOST, &packet);
	case OTHER:
		break;
	}
	return true;
}

static bool read_guest(
	struct causality_reader *reader, enum kind kind, const bt_event *event, int64_t time_ns)
{
	const uint32_t cpu = ctf_event_cpu(event);
	struct causality_packet packet;

	if (cpu != UINT32_MAX && !causality_guest_event(reader->model, cpu, time_ns)) {
		return false;
	}
	if ((kind == SENT || kind == GOT) && packet_of(event, &packet)) {
		packet.time_ns = time_ns;
		return causality_packet(reader->model,
			kind == SENT ? CAUSALITY_SENT_BY_GUEST : CAUSALITY_GOT_BY_GUEST, &packet);
	}
	return true;
}

bool causality_read(void *user, const bt_message *message)
{
	struct causality_reader *reader = user;

	if (bt_message_get_type(message) != BT_MESSAGE_TYPE_EVENT) {
		return true;
	}
	const bt_event *event = bt_message_event_borrow_event_const(message);
	int64_t time_ns = 0;

	if (reader->machine) {
		const char *name = bt_trace_get_name(
			bt_stream_borrow_trace_const(bt_event_borrow_stream_const(event)));

		if (!name || strcmp(name, reader->machine) != 0) {
			return true;
		}
	}
	if (!bt_message_event_borrow_stream_class_default_clock_class_const(message) ||
		bt_clock_snapshot_get_ns_from_origin(
			bt_message_event_borrow_default_clock_snapshot_const(message), &time_ns) !=
			BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
		return true;
	}
	const int kind = kind_of(&reader->classes, bt_event_borrow_class_const(event));

	if (kind < 0) {
		return false;
	}
	reader->events++;
	return reader->is_host ? read_host(reader, (enum kind)kind, event, time_ns)
			       : read_guest(reader, (enum kind)kind, event, time_ns);
}

void causality_reader_release(struct causality_reader *reader)
{
	for (size_t i = 0; i < reader->classes.room; i++) {
		bt_event_class_put_ref(reader->classes.slots[i].key);
	}
	free(reader->classes.slots);
	reader->classes = (struct causality_classes){ NULL, 0, 0 };
}
