/* SPDX-License-Identifier: MIT */
#include "ctf_state_dump.h"
#include "convert_ctf_graph.h"
#include "ctf_event.h"
#include <ctf_packet.h>
#include <ctf_packets.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>

enum {
	THREADS_MAX = 65536,
	STATUS_WAIT = 5, /* of LTTng's state dump */
	MODE_UNKNOWN = 0,
	SUBMODE_UNKNOWN = 1,
	TYPE_USER = 0
};

/* ---- threads ---- */

static struct ctf_thread *place_of(const struct ctf_threads *threads, int32_t tid)
{
	size_t at = ((uint32_t)tid * 2654435761u) & (threads->room - 1);

	while (threads->of[at].tid && threads->of[at].tid != tid) {
		at = (at + 1) & (threads->room - 1);
	}
	return &threads->of[at];
}

static bool grow(struct ctf_threads *threads)
{
	struct ctf_threads bigger = { .room = threads->room ? threads->room * 2 : 256 };

	bigger.of = calloc(bigger.room, sizeof(*bigger.of));
	if (!bigger.of) {
		return false;
	}
	for (size_t i = 0; i < threads->room; i++) {
		if (threads->of[i].tid) {
			*place_of(&bigger, threads->of[i].tid) = threads->of[i];
		}
	}
	free(threads->of);
	threads->of = bigger.of;
	threads->room = bigger.room;
	return true;
}

/* A program begins: its process has this name, and a child of vfork is a process of its own from here. */
static void note_program(struct ctf_thread *thread, const bt_message *message, int32_t pid)
{
	const bt_event *const event = bt_message_event_borrow_event_const(message);
	const char *const name = bt_event_class_get_name(bt_event_borrow_class_const(event));
	const bt_field *const program =
		ctf_member(bt_event_borrow_payload_field_const(event), "name");

	if (!name || strcmp(name, "tandem:process_start") != 0) {
		return;
	}
	thread->pid = pid;
	if (!thread->has_context_name && program &&
		bt_field_get_class_type(program) == BT_FIELD_CLASS_TYPE_STRING) {
		snprintf(thread->comm, sizeof(thread->comm), "%s",
			bt_field_string_get_value(program));
	}
}

void ctf_threads_see(struct ctf_threads *threads, const bt_message *message)
{
	const bt_field *const context = bt_event_borrow_common_context_field_const(
		bt_message_event_borrow_event_const(message));
	const bt_field *comm;
	struct ctf_thread *thread;
	int64_t tid = 0;
	int64_t pid = 0;

	if (bt_message_event_borrow_stream_class_default_clock_class_const(message)) {
		const uint64_t value = bt_clock_snapshot_get_value(
			bt_message_event_borrow_default_clock_snapshot_const(message));

		threads->first_value = threads->has_first && threads->first_value < value
					       ? threads->first_value
					       : value;
		threads->has_first = true;
	}
	if (!ctf_number(ctf_member(context, "vtid"), &tid) || tid <= 0 || tid > INT32_MAX ||
		(threads->count * 2 >= threads->room &&
			(threads->count >= THREADS_MAX || !grow(threads)))) {
		return;
	}
	thread = place_of(threads, (int32_t)tid);
	pid = ctf_number(ctf_member(context, "vpid"), &pid) ? pid : tid;
	if (!thread->tid) {
		thread->tid = (int32_t)tid;
		thread->pid = (int32_t)pid;
		threads->count++;
		comm = ctf_member(context, "procname");
		thread->has_context_name =
			comm && bt_field_get_class_type(comm) == BT_FIELD_CLASS_TYPE_STRING;
		snprintf(thread->comm, sizeof(thread->comm), "%s",
			thread->has_context_name ? bt_field_string_get_value(comm) : "");
	}
	note_program(thread, message, (int32_t)pid);
}

void ctf_threads_release(struct ctf_threads *threads)
{
	free(threads->of);
	*threads = (struct ctf_threads){ 0 };
}

/* ---- the stream ---- */

static void put(struct tdm_buffer *out, uint64_t value, size_t size, bool big_endian)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++) {
		bytes[big_endian ? size - 1 - i : i] = (uint8_t)(value >> (8 * i));
	}
	(void)tdm_buffer_append(out, bytes, size);
}

/* The trace's own packet header. */
static bool put_header(
	const struct tdm_ctf_reading *reading, uint64_t stream_id, struct tdm_buffer *out)
{
	const struct tsdl_type *const header = reading->metadata->packet_header;
	struct ctf_walk *const walk = calloc(1, sizeof(*walk));
	uint8_t bytes[256] = { 0 };
	bool good = walk != NULL;

	if (walk) {
		*walk = (struct ctf_walk){ .bytes = bytes, .end_bits = 8 * sizeof(bytes) };
	}
	for (uint32_t i = 0; good && header && i < header->field_count; i++) {
		const struct tsdl_field *const field = &header->fields[i];
		struct tdm_ctf_head_word word = { .type = field->type };

		good = ctf_walk_field(walk, field);
		word.at_bits = walk->at_bits - field->type->size_bits;
		if (good && strcmp(field->name, "magic") == 0) {
			word.value = TDM_CTF_MAGIC;
			tdm_ctf_word_store(bytes, &word);
		} else if (good && strcmp(field->name, "stream_id") == 0) {
			word.value = stream_id;
			tdm_ctf_word_store(bytes, &word);
		} else if (good && strcmp(field->name, "uuid") == 0) {
			memcpy(bytes + walk->at_bits / 8 - 16, reading->uuid, 16);
		}
	}
	good = good && tdm_buffer_append(out, bytes, (walk->at_bits + 7) / 8) == TDM_OK;
	free(walk);
	return good;
}

static int by_tid(const void *a, const void *b)
{
	const struct ctf_thread *const x = a;
	const struct ctf_thread *const y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void put_thread(
	struct tdm_buffer *out, const struct ctf_thread *thread, uint64_t time, bool big_endian)
{
	put(out, 0, 4, big_endian);
	put(out, time, 8, big_endian);
	put(out, (uint32_t)thread->tid, 4, big_endian);
	put(out, (uint32_t)thread->pid, 4, big_endian);
	put(out, 0, 4, big_endian);
	(void)tdm_buffer_append(out, thread->comm, strlen(thread->comm) + 1);
	put(out, TYPE_USER, 4, big_endian);
	put(out, MODE_UNKNOWN, 4, big_endian);
	put(out, SUBMODE_UNKNOWN, 4, big_endian);
	put(out, STATUS_WAIT, 4, big_endian);
	put(out, 0, 4, big_endian);
	put(out, 1, 1, big_endian);
}

/* One packet with an event for each thread. */
static bool put_packet(const struct ctf_threads *threads, const struct tdm_ctf_reading *reading,
	uint64_t stream_id, struct tdm_buffer *out)
{
	const bool big_endian = reading->metadata->is_big_endian;
	const uint64_t time = threads->first_value ? threads->first_value - 1 : 0;
	struct ctf_thread *const sorted = calloc(threads->count + 1, sizeof(*sorted));
	size_t count = 0;
	size_t context;

	if (!sorted || !put_header(reading, stream_id, out)) {
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < threads->room; i++) {
		if (threads->of[i].tid) {
			struct ctf_thread *const thread = &sorted[count++];

			*thread = threads->of[i];
			if (!*thread->comm && thread->pid > 0) {
				/* A thread is called as its process is. */
				memcpy(thread->comm, place_of(threads, thread->pid)->comm,
					sizeof(thread->comm));
			}
		}
	}
	qsort(sorted, count, sizeof(*sorted), by_tid);
	context = out->size;
	for (size_t i = 0; i < 5; i++) {
		put(out, i < 2 ? time : 0, 8, big_endian);
	}
	put(out, 0, 4, big_endian);
	for (size_t i = 0; i < count; i++) {
		put_thread(out, &sorted[i], time, big_endian);
	}
	free(sorted);
	tdm_store_u64(out->bytes + context + 16, 8 * (uint64_t)out->size, big_endian);
	tdm_store_u64(out->bytes + context + 24, 8 * (uint64_t)out->size, big_endian);
	return true;
}

static enum tdm_status declare(
	const struct tsdl_metadata *metadata, uint64_t stream_id, struct tdm_buffer *out)
{
	const char *const clock = metadata->clocks[0].name;

	return tdm_buffer_printf(out,
		"\nstream {\n\tid = %" PRIu64 ";\n\tevent.header := struct {\n"
		"\t\tinteger { size = 32; align = 8; signed = false; } id;\n"
		"\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp;\n"
		"\t} align(8);\n\tpacket.context := struct {\n"
		"\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp_begin;\n"
		"\t\tinteger { size = 64; align = 8; signed = false; map = clock.%s.value; } timestamp_end;\n"
		"\t\tinteger { size = 64; align = 8; signed = false; } content_size;\n"
		"\t\tinteger { size = 64; align = 8; signed = false; } packet_size;\n"
		"\t\tinteger { size = 64; align = 8; signed = false; } events_discarded;\n"
		"\t\tinteger { size = 32; align = 8; signed = false; } cpu_id;\n\t} align(8);\n};\n\n"
		"event {\n\tname = \"lttng_statedump_process_state\";\n\tid = 0;\n\tstream_id = %" PRIu64
		";\n\tfields := struct {\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _tid;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _pid;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _ppid;\n"
		"\t\tstring { encoding = UTF8; } _name;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _type;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _mode;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _submode;\n"
		"\t\tinteger { size = 32; align = 8; signed = true; } _status;\n"
		"\t\tinteger { size = 32; align = 8; signed = false; } _cpu;\n"
		"\t\tinteger { size = 8; align = 8; signed = false; } _tandem_synthetic;\n"
		"\t};\n};\n",
		stream_id, clock, clock, clock, stream_id);
}

enum tdm_status ctf_state_dump_put(const struct ctf_threads *threads, const char *dir,
	struct tdm_buffer *metadata, uint64_t *written, struct tdm_error *err)
{
	struct tsdl_metadata parsed;
	struct tdm_ctf_reading reading = { 0 };
	struct tdm_buffer out = { 0 };
	char path[PATH_MAX];
	uint64_t stream_id = 0;
	FILE *file = NULL;
	enum tdm_status status = tsdl_parse(
		dir, metadata->bytes, metadata->size, tdm_ctf_clone_fields, &parsed, err);

	*written = 0;
	if (status == TDM_OK) {
		status = tdm_ctf_reading_begin(&parsed, &reading);
	}
	if (status == TDM_OK && threads->count && threads->has_first && parsed.clock_count &&
		parsed.clocks[0].name) {
		for (size_t i = 0; i < parsed.stream_count; i++) {
			stream_id = parsed.streams[i].id >= stream_id ? parsed.streams[i].id + 1
								      : stream_id;
		}
		if (!put_packet(threads, &reading, stream_id, &out)) {
			status = TDM_ERR_NOMEM;
		} else {
			status = declare(&parsed, stream_id, metadata);
		}
	}
	if (status == TDM_OK && out.size) {
		convert_ctf_join(path, dir, "tandem_state_dump");
		file = fopen(path, "wbxe");
		if (!file || fwrite(out.bytes, 1, out.size, file) != out.size) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
		if (file && fclose(file) != 0 && status == TDM_OK) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
		*written = out.size;
	} else if (status == TDM_ERR_NOMEM) {
		tdm_fail(err, status, "%s: no memory for its state dump", dir);
	}
	tdm_buffer_release(&out);
	tdm_ctf_reading_end(&reading);
	tsdl_release(&parsed);
	return status;
}
