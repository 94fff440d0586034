/* SPDX-License-Identifier: MIT */
/*
 * ctf_check_stream.c - one stream file: its packets, the order of its events, and what they tell of guests.
 */
#include "ctf_check_priv.h"
#include "ctf_packet.h"
#include "ctf_views.h"
#include "ctf_walk.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/cursor.h>
#include <tandem/input_file.h>

#define HEAD_BYTES       65536u
#define PACKET_BYTES_MAX (UINT64_C(512) << 20)
#define INDEX_MAGIC      0xc1f1dcc1u
#define SAME_MAX         3 /* findings of one kind in one file */
#define THREADS_MAX      65536u

/* A file while it is looked at. */
struct look {
	struct ctf_trace_check *trace;
	const char *name;
	struct tdm_input_file *file;
	uint8_t *bytes; /* of the packet */
	size_t room;
	uint64_t offset; /* of the packet */
	uint64_t packets;
	struct ctf_packet_place *places;
	size_t place_room;
	bool has_last;
	uint64_t last_begin, last_time, last_discarded;
	bool was_empty; /* the packet before had no event */
	unsigned int order_count, range_count;
	bool has_thread;
	int32_t tid;
	enum tdm_status status;
};

#define FIND(look, is_error, format, ...)      \
	((look)->status = tdm_ctf_finding_add( \
		 (look)->trace->checked, is_error, "%s: " format, (look)->name, __VA_ARGS__))

/* Reads up to @p size bytes of the packet. @return How many there are. */
static size_t load(struct look *look, uint64_t size)
{
	size_t got = 0;

	if (size > look->file->size_bytes - look->offset) {
		size = look->file->size_bytes - look->offset;
	}
	if (size > look->room) {
		uint8_t *const grown = realloc(look->bytes, size);

		if (!grown) {
			look->status = TDM_ERR_NOMEM;
			return 0;
		}
		look->bytes = grown;
		look->room = size;
	}
	(void)tdm_input_file_read(look->file, look->offset, look->bytes, size, &got, NULL);
	return got;
}

static void check_uuid(struct look *look, const struct ctf_walk *start)
{
	const struct tsdl_type *const header = look->trace->metadata.packet_header;
	struct ctf_walk walk = *start;

	for (uint32_t i = 0; header && i < header->field_count; i++) {
		const struct tsdl_type *const type = header->fields[i].type;

		if (strcmp(header->fields[i].name, "uuid") == 0 && type->kind == TSDL_ARRAY &&
			type->length == 16 && type->element->size_bits == 8) {
			if (look->trace->has_uuid && walk.at_bits % 8 == 0 &&
				memcmp(walk.bytes + walk.at_bits / 8, look->trace->uuid, 16) != 0) {
				FIND(look, true,
					"packet at 0x%" PRIx64 ": its uuid is not the trace's",
					look->offset);
			}
			return;
		}
		if (!ctf_walk_over(&walk, type)) {
			return;
		}
	}
}

static void note_sync(struct look *look, const struct ctf_walk *walk, bool is_guest)
{
	struct tdm_ctf_checked *const checked = look->trace->checked;
	struct tdm_ctf_sync *const grown =
		realloc(checked->syncs, (checked->sync_count + 1) * sizeof(*grown));
	struct tdm_ctf_sync sync = {
		.is_guest = is_guest,
		.time_ns = (int64_t)(walk->clock + (uint64_t)checked->clock_offset_ns),
		.has_thread = look->has_thread,
		.tid = look->tid,
	};

	if (!grown) {
		look->status = TDM_ERR_NOMEM;
		return;
	}
	(void)ctf_walk_find(walk, "vm_uid", &sync.vm_uid);
	(void)ctf_walk_find(walk, "cnt", &sync.count);
	checked->syncs = grown;
	if (checked->sync_count < THREADS_MAX) {
		grown[checked->sync_count++] = sync;
	}
}

static void note_dumped(struct look *look, int32_t tid)
{
	struct tdm_ctf_checked *const checked = look->trace->checked;

	checked->has_state_dump = true;
	if (checked->dumped_count >= THREADS_MAX) {
		return;
	}
	if ((checked->dumped_count & 255) == 0) {
		int32_t *const grown =
			realloc(checked->dumped, (checked->dumped_count + 256) * sizeof(*grown));

		if (!grown) {
			look->status = TDM_ERR_NOMEM;
			return;
		}
		checked->dumped = grown;
	}
	checked->dumped[checked->dumped_count++] = tid;
}

static void note_event(
	struct look *look, const struct ctf_walk *walk, const struct tsdl_event *event)
{
	struct tdm_ctf_checked *const checked = look->trace->checked;
	const int64_t time_ns = (int64_t)(walk->clock + (uint64_t)checked->clock_offset_ns);
	uint64_t tid = 0;

	switch (ctf_event_role(event)) {
	case CTF_ROLE_SWITCH:
		checked->has_sched_switch = true;
		look->has_thread = ctf_walk_find(walk, "next_tid", &tid);
		look->tid = (int32_t)tid;
		break;
	case CTF_ROLE_KVM:
		if (!checked->has_kvm || time_ns < checked->first_kvm_ns) {
			checked->first_kvm_ns = time_ns;
		}
		checked->has_kvm = true;
		break;
	case CTF_ROLE_DUMP:
		(void)ctf_walk_find(walk, "tid", &tid);
		note_dumped(look, (int32_t)tid);
		break;
	case CTF_ROLE_SYNC_GUEST:
	case CTF_ROLE_SYNC_HOST:
		note_sync(look, walk, ctf_event_role(event) == CTF_ROLE_SYNC_GUEST);
		break;
	case CTF_ROLE_OTHER:
		break;
	}
}

/* One event. False at the first that makes no sense: the rest of the packet cannot be read. */
static bool check_event(struct look *look, struct ctf_walk *walk,
	const struct ctf_stream_events *stream, uint64_t begin, uint64_t end)
{
	const uint64_t start = walk->at_bits;
	const struct tsdl_event *event = NULL;
	uint64_t id = 0;

	if (stream->stream->event_header) {
		if (!ctf_walk_over(walk, stream->stream->event_header)) {
			return false;
		}
		(void)ctf_walk_find(walk, "id", &id);
	}
	event = id < stream->by_id_count ? stream->by_id[id] : NULL;
	if (!event) {
		FIND(look, true, "offset 0x%" PRIx64 ": event id %" PRIu64 " is in no metadata",
			look->offset + start / 8, id);
		return false;
	}
	if ((stream->stream->event_context &&
		    !ctf_walk_over(walk, stream->stream->event_context)) ||
		(event->context && !ctf_walk_over(walk, event->context)) ||
		(event->fields && !ctf_walk_over(walk, event->fields))) {
		return false;
	}
	if (walk->at_bits == start) {
		walk->fault = "an event without a bit";
		return false;
	}
	if (look->has_last && walk->clock < look->last_time && look->order_count++ < SAME_MAX) {
		FIND(look, true, "offset 0x%" PRIx64 ": time goes back by %" PRIu64 " ns",
			look->offset + start / 8, look->last_time - walk->clock);
	}
	if (end > begin && (walk->clock < begin || walk->clock > end) &&
		look->range_count++ < SAME_MAX) {
		FIND(look, false, "offset 0x%" PRIx64 ": an event lies outside its packet's times",
			look->offset + start / 8);
	}
	look->has_last = true;
	look->last_time = walk->clock;
	if (!stream->was_met[id]) {
		stream->was_met[id] = true;
		look->trace->checked->seen |= tdm_ctf_views_event(event->name ? event->name : "");
	}
	note_event(look, walk, event);
	return true;
}

static void check_events(struct look *look, struct ctf_walk *walk,
	const struct ctf_stream_events *stream, uint64_t begin, uint64_t end)
{
	const uint32_t kept = walk->value_count;
	uint64_t count = 0;

	while (walk->at_bits < walk->end_bits && look->status == TDM_OK) {
		walk->fault = NULL;
		walk->steps = 0;
		if (!check_event(look, walk, stream, begin, end)) {
			if (walk->fault && look->status == TDM_OK) {
				FIND(look, true, "offset 0x%" PRIx64 ": %s",
					look->offset + walk->at_bits / 8, walk->fault);
			}
			break;
		}
		walk->value_count = kept;
		count++;
	}
	look->trace->checked->event_count += count;
	if (count == 0 && look->status == TDM_OK) {
		FIND(look, false, "packet at 0x%" PRIx64 " is empty", look->offset);
	}
	look->was_empty = count == 0;
}

static bool note_place(struct look *look, uint64_t packet_bits, uint64_t begin)
{
	if (look->packets == look->place_room) {
		const size_t room = look->place_room ? look->place_room * 2 : 64;
		struct ctf_packet_place *const grown = realloc(look->places, room * sizeof(*grown));

		if (!grown) {
			look->status = TDM_ERR_NOMEM;
			return false;
		}
		look->places = grown;
		look->place_room = room;
	}
	look->places[look->packets++] =
		(struct ctf_packet_place){ look->offset, packet_bits, begin };
	return true;
}

static const struct ctf_stream_events *find_stream(
	const struct look *look, const struct ctf_walk *walk)
{
	const struct ctf_trace_check *const trace = look->trace;
	uint64_t id = 0;

	if (!ctf_walk_find(walk, "stream_id", &id) && trace->metadata.stream_count == 1) {
		return &trace->streams[0];
	}
	for (size_t i = 0; i < trace->metadata.stream_count; i++) {
		if (trace->metadata.streams[i].id == id) {
			return &trace->streams[i];
		}
	}
	return NULL;
}

/* What a packet says of itself, against the packet before. */
static void check_counters(struct look *look, const struct ctf_walk *walk, uint64_t begin)
{
	uint64_t discarded = 0;

	if (look->packets && look->was_empty) {
		FIND(look, true,
			"packet at 0x%" PRIx64
			" follows an empty one: Trace Compass does not read it, nor what follows",
			look->offset);
	}
	if (look->packets && begin < look->last_begin) {
		FIND(look, true,
			"packet at 0x%" PRIx64
			" begins before the one before it: Trace Compass does not read it, nor what follows",
			look->offset);
	}
	if (ctf_walk_find(walk, "events_discarded", &discarded)) {
		if (discarded < look->last_discarded) {
			FIND(look, false, "packet at 0x%" PRIx64 ": events_discarded goes back",
				look->offset);
		}
		look->last_discarded = discarded;
	}
	look->last_begin = begin;
}

/* One packet. False where the next one's place is not known. */
static bool check_packet(struct look *look)
{
	struct ctf_walk *const walk = calloc(1, sizeof(*walk));
	size_t got = load(look, HEAD_BYTES);
	const struct ctf_stream_events *stream = NULL;
	uint64_t magic = 0;
	uint64_t content_bits = 0;
	uint64_t packet_bits = 0;
	uint64_t begin = 0;
	uint64_t end = 0;
	bool go_on = false;

	if (!walk || look->status != TDM_OK) {
		look->status = TDM_ERR_NOMEM;
		goto out;
	}
	*walk = (struct ctf_walk){ .bytes = look->bytes, .end_bits = (uint64_t)got * 8 };
	if (look->trace->metadata.packet_header) {
		check_uuid(look, walk);
		if (!ctf_walk_over(walk, look->trace->metadata.packet_header)) {
			FIND(look, true, "packet at 0x%" PRIx64 ": header: %s", look->offset,
				walk->fault);
			goto out;
		}
		if (ctf_walk_find(walk, "magic", &magic) && magic != TDM_CTF_MAGIC) {
			FIND(look, true,
				"packet at 0x%" PRIx64 ": magic 0x%" PRIx64 ", wanted 0x%x",
				look->offset, magic, TDM_CTF_MAGIC);
			goto out;
		}
	}
	stream = find_stream(look, walk);
	if (!stream) {
		FIND(look, true, "packet at 0x%" PRIx64 ": its stream is in no metadata",
			look->offset);
		goto out;
	}
	if (stream->stream->packet_context &&
		!ctf_walk_over(walk, stream->stream->packet_context)) {
		FIND(look, true, "packet at 0x%" PRIx64 ": context: %s", look->offset, walk->fault);
		goto out;
	}
	if (!ctf_walk_find(walk, "packet_size", &packet_bits)) {
		packet_bits = (look->file->size_bytes - look->offset) * 8;
	}
	if (!ctf_walk_find(walk, "content_size", &content_bits)) {
		content_bits = packet_bits;
	}
	(void)ctf_walk_find(walk, "timestamp_begin", &begin);
	(void)ctf_walk_find(walk, "timestamp_end", &end);
	if (content_bits > packet_bits || packet_bits % 8 || content_bits < walk->at_bits ||
		packet_bits / 8 > look->file->size_bytes - look->offset ||
		packet_bits / 8 > PACKET_BYTES_MAX) {
		FIND(look, true,
			"packet at 0x%" PRIx64 ": %" PRIu64 " bits of content in %" PRIu64
			" bits, %" PRIu64 " bytes are left in the file",
			look->offset, content_bits, packet_bits,
			look->file->size_bytes - look->offset);
		goto out;
	}
	check_counters(look, walk, begin);
	got = load(look, packet_bits / 8);
	if (look->status != TDM_OK || got < packet_bits / 8 ||
		!note_place(look, packet_bits, begin)) {
		goto out;
	}
	walk->bytes = look->bytes;
	walk->end_bits = content_bits;
	walk->clock = begin;
	check_events(look, walk, stream, begin, end);
	look->offset += packet_bits / 8;
	go_on = look->status == TDM_OK;
out:
	free(walk);
	return go_on;
}

/* LTTng's index of the file: stale ones send readers to the wrong places. */
static void check_index(struct look *look)
{
	struct tdm_input_file *file = NULL;
	char path[4096];
	uint8_t head[16];
	size_t got = 0;
	uint64_t entry_bytes;
	uint64_t count;

	if (snprintf(path, sizeof(path), "%s/index/%s.idx", look->trace->checked->path,
		    look->name) >= (int)sizeof(path) ||
		tdm_input_file_open(path, &file, NULL) != TDM_OK) {
		return;
	}
	(void)tdm_input_file_read(file, 0, head, sizeof(head), &got, NULL);
	entry_bytes = got == sizeof(head) ? tdm_load_u32(head + 12, true) : 0;
	if (got != sizeof(head) || tdm_load_u32(head, true) != INDEX_MAGIC || entry_bytes < 56) {
		FIND(look, true, "index/%s.idx is no index: remove it", look->name);
		tdm_input_file_close(file);
		return;
	}
	count = (file->size_bytes - sizeof(head)) / entry_bytes;
	for (uint64_t i = 0; i < count || i < look->packets; i++) {
		uint8_t entry[24];
		const struct ctf_packet_place *const place =
			i < look->packets ? &look->places[i] : NULL;

		got = 0;
		if (i < count) {
			(void)tdm_input_file_read(file, sizeof(head) + i * entry_bytes, entry,
				sizeof(entry), &got, NULL);
		}
		if (!place || got != sizeof(entry) ||
			tdm_load_u64(entry, true) != place->offset_bytes ||
			tdm_load_u64(entry + 8, true) != place->packet_bits) {
			FIND(look, true,
				"index/%s.idx is stale: entry %" PRIu64
				" does not fit its packet; remove it",
				look->name, i);
			break;
		}
	}
	tdm_input_file_close(file);
}

enum tdm_status ctf_check_stream(struct ctf_trace_check *trace, const char *name)
{
	struct look look = { .trace = trace, .name = name };
	struct tdm_error err;
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", trace->checked->path, name) >=
		(int)sizeof(path)) {
		return TDM_OK;
	}
	if (tdm_input_file_open(path, &look.file, &err) != TDM_OK) {
		return tdm_ctf_finding_add(trace->checked, true, "%s", err.text);
	}
	while (look.offset < look.file->size_bytes && check_packet(&look)) {
	}
	if (look.status == TDM_OK) {
		check_index(&look);
	}
	trace->checked->file_count++;
	trace->checked->packet_count += look.packets;
	trace->checked->discarded += look.last_discarded;
	tdm_input_file_close(look.file);
	free(look.bytes);
	free(look.places);
	return look.status == TDM_ERR_NOMEM ? TDM_ERR_NOMEM : TDM_OK;
}
