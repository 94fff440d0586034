/* SPDX-License-Identifier: MIT */
#include "ctf_packet.h"
#include "ctf_packets_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/input_file.h>

#define PACKET_BYTES_MAX (UINT64_C(512) << 20)
#define SEARCH_BYTES     (1u << 20)
#define HEAD_BYTES       4096u

static const char *const word_names[] = {
	[TDM_CTF_PACKET_SIZE] = "packet_size",
	[TDM_CTF_CONTENT_SIZE] = "content_size",
	[TDM_CTF_BEGIN] = "timestamp_begin",
	[TDM_CTF_END] = "timestamp_end",
	[TDM_CTF_DISCARDED] = "events_discarded",
	[TDM_CTF_NUMBER] = "packet_seq_num",
	[TDM_CTF_MAGIC_WORD] = "magic",
	[TDM_CTF_STREAM_ID] = "stream_id",
};

/* ---- a trace ---- */

static uint64_t last_value(const struct tsdl_clock *clock)
{
	const __int128 second_ns = 1000000000;
	__int128 left_ns = INT64_MAX;
	__int128 value;

	if (!clock || clock->freq_hz == 0) {
		return INT64_MAX;
	}
	left_ns -= (__int128)clock->offset_s * second_ns;
	left_ns -= (__int128)clock->offset * second_ns / clock->freq_hz;
	value = left_ns < 0 ? 0 : left_ns * clock->freq_hz / second_ns;
	return value > INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)value;
}

enum tdm_status tdm_ctf_reading_begin(
	const struct tsdl_metadata *metadata, struct tdm_ctf_reading *reading)
{
	enum tdm_status status = TDM_OK;

	*reading = (struct tdm_ctf_reading){ .metadata = metadata };
	reading->has_uuid = tsdl_get_uuid(metadata, reading->uuid);
	reading->last_value = last_value(metadata->clock_count ? &metadata->clocks[0] : NULL);
	reading->events = calloc(metadata->stream_count + 1, sizeof(*reading->events));
	if (!reading->events) {
		return TDM_ERR_NOMEM;
	}
	for (size_t i = 0; i < metadata->stream_count && status == TDM_OK; i++) {
		status = tdm_ctf_events_plan(metadata, &metadata->streams[i], &reading->events[i]);
	}
	return status;
}

void tdm_ctf_reading_end(struct tdm_ctf_reading *reading)
{
	for (size_t i = 0; reading->events && i < reading->metadata->stream_count; i++) {
		tdm_ctf_events_release(&reading->events[i]);
	}
	free(reading->events);
	*reading = (struct tdm_ctf_reading){ 0 };
}

/* ---- words ---- */

void tdm_ctf_word_store(uint8_t *packet, const struct tdm_ctf_head_word *word)
{
	const uint32_t size_bits = word->type->size_bits;

	for (uint32_t i = 0; i < size_bits; i++) {
		const uint64_t at = word->at_bits + i;
		const uint32_t from = word->type->is_big_endian ? size_bits - 1 - i : i;
		const uint8_t bit =
			(uint8_t)(1u << (word->type->is_big_endian ? 7 - (at & 7) : at & 7));

		if (word->value >> from & 1) {
			packet[at / 8] |= bit;
		} else {
			packet[at / 8] &= (uint8_t)~bit;
		}
	}
}

static void note_word(
	struct tdm_ctf_packet *packet, const struct ctf_walk *walk, const struct tsdl_field *field)
{
	const char *const name = field->name[0] == '_' ? field->name + 1 : field->name;
	const struct tsdl_type *const type = field->type;
	uint64_t value = 0;

	for (size_t i = 0; i < TDM_CTF_WORD_COUNT; i++) {
		if (strcmp(name, word_names[i]) == 0 && type->kind == TSDL_INTEGER &&
			!type->is_signed && ctf_walk_find(walk, name, &value)) {
			packet->words[i] = (struct tdm_ctf_head_word){ .type = type,
				.at_bits = walk->at_bits - type->size_bits,
				.value = value };
		}
	}
}

/* ---- a packet's head ---- */

bool ctf_look_load(struct ctf_look *look, uint64_t offset, uint64_t wanted)
{
	const uint64_t left = look->file->size_bytes - offset;
	const uint64_t size = wanted < left ? wanted : left;

	look->got = 0;
	if (size > look->room) {
		uint8_t *const grown = realloc(look->bytes, size);

		if (!grown) {
			return false;
		}
		look->bytes = grown;
		look->room = size;
	}
	(void)tdm_input_file_read(look->file, offset, look->bytes, size, &look->got, NULL);
	return look->got == size;
}

/*
 * The header's magic number and uuid, where it has them. Of a packet that stands where one is due they are set right: its
 * other words tell whether it is one.
 */
static const char *check_header(struct ctf_look *look, struct tdm_ctf_packet *packet, bool is_due)
{
	const struct tdm_ctf_reading *const reading = look->reading;
	const struct tsdl_type *const header = reading->metadata->packet_header;
	struct ctf_walk *const walk = &look->walk;

	for (uint32_t i = 0; header && i < header->field_count; i++) {
		const struct tsdl_field *const field = &header->fields[i];
		const bool is_uuid = strcmp(field->name, "uuid") == 0 &&
				     field->type->kind == TSDL_ARRAY && field->type->length == 16 &&
				     field->type->element->size_bits == 8;

		if (!ctf_walk_field(walk, field)) {
			return walk->fault;
		}
		note_word(packet, walk, field);
		if (ctf_word_of(packet, TDM_CTF_MAGIC_WORD, TDM_CTF_MAGIC) != TDM_CTF_MAGIC &&
			!(is_due && ctf_set_word(packet, TDM_CTF_MAGIC_WORD, TDM_CTF_MAGIC))) {
			return "no packet begins here: its magic number is another";
		}
		if (is_uuid && reading->has_uuid && walk->at_bits % 8 == 0 &&
			memcmp(walk->bytes + walk->at_bits / 8 - 16, reading->uuid, 16) != 0) {
			if (!is_due) {
				return "its uuid is not the trace's";
			}
			packet->uuid_at_bits = walk->at_bits - 128;
		}
	}
	return NULL;
}

static const struct tdm_ctf_events *events_of(
	const struct tdm_ctf_reading *reading, const struct ctf_walk *walk)
{
	const struct tsdl_metadata *const metadata = reading->metadata;
	uint64_t id = 0;

	if (!ctf_walk_find(walk, "stream_id", &id)) {
		return metadata->stream_count ? &reading->events[0] : NULL;
	}
	for (size_t i = 0; i < metadata->stream_count; i++) {
		if (metadata->streams[i].id == id) {
			return &reading->events[i];
		}
	}
	return NULL;
}

const char *ctf_look_head(struct ctf_look *look, struct tdm_ctf_packet *packet, bool is_due,
	const struct tdm_ctf_events **events)
{
	struct ctf_walk *const walk = &look->walk;
	const struct tsdl_type *context;
	const char *fault = NULL;

	walk->bytes = look->bytes;
	walk->at_bits = 0;
	walk->end_bits = 8 * (uint64_t)look->got;
	walk->clock = 0;
	walk->value_count = 0;
	walk->depth = 0;
	walk->steps = 0;
	walk->fault = NULL;
	fault = check_header(look, packet, is_due);
	if (fault) {
		return fault;
	}
	*events = events_of(look->reading, walk);
	if (!*events && is_due && look->reading->metadata->stream_count == 1 &&
		ctf_set_word(packet, TDM_CTF_STREAM_ID, look->reading->metadata->streams[0].id)) {
		*events = &look->reading->events[0];
	}
	if (!*events) {
		return "its stream class is in no metadata";
	}
	if (look->events && *events != look->events) {
		return "it is of another stream class than the file's first";
	}
	context = (*events)->stream->packet_context;
	if (context && context->align_bits > 1) {
		const uint64_t mask = (uint64_t)context->align_bits - 1;

		walk->at_bits = (walk->at_bits + mask) & ~mask;
	}
	for (uint32_t i = 0; context && i < context->field_count; i++) {
		if (!ctf_walk_field(walk, &context->fields[i])) {
			return walk->fault;
		}
		note_word(packet, walk, &context->fields[i]);
	}
	packet->first_event_bits = walk->at_bits;
	return NULL;
}

static const char *read_head(struct ctf_look *look, uint64_t offset, struct tdm_ctf_packet *packet,
	bool is_due, const struct tdm_ctf_events **events)
{
	*packet = (struct tdm_ctf_packet){ .offset = offset };
	return ctf_look_load(look, offset, HEAD_BYTES) ? ctf_look_head(look, packet, is_due, events)
						       : "it cannot be read";
}

/* ---- where the next packet is ---- */

/* The first good header among the magic numbers in a piece of the file that begins at @p from; the file's end without one. */
static uint64_t search_piece(struct ctf_look *look, uint64_t from, const uint8_t *piece,
	size_t size, const uint8_t magic[4])
{
	const uint8_t *const end = piece + size;
	const uint8_t *at = piece;

	while ((at = memmem(at, (size_t)(end - at), magic, 4))) {
		struct tdm_ctf_packet packet;
		const struct tdm_ctf_events *events = NULL;
		const uint64_t offset = from + (uint64_t)(at - piece);

		if (!read_head(look, offset, &packet, false, &events)) {
			return offset;
		}
		at++;
	}
	return look->file->size_bytes;
}

/* Offset of the next packet whose header is good, at or behind @p from; the file's end where there is none to be known. */
static uint64_t search(struct ctf_look *look, uint64_t from)
{
	const struct tsdl_type *const header = look->reading->metadata->packet_header;
	const bool has_magic =
		header && header->field_count && strcmp(header->fields[0].name, "magic") == 0;
	/* Its own: each header that is looked at takes the place of the one before in look->bytes. */
	uint8_t *const piece = has_magic ? malloc(SEARCH_BYTES) : NULL;
	uint64_t found = look->file->size_bytes;
	uint8_t magic[4];

	for (size_t i = 0; i < sizeof(magic); i++) {
		const size_t shift = look->reading->metadata->is_big_endian ? 3 - i : i;

		magic[i] = (uint8_t)(TDM_CTF_MAGIC >> (8 * shift));
	}
	while (piece && found == look->file->size_bytes && from + 4 <= look->file->size_bytes) {
		size_t got = 0;

		if (tdm_input_file_read(look->file, from, piece, SEARCH_BYTES, &got, NULL) !=
				TDM_OK ||
			got < sizeof(magic)) {
			break;
		}
		found = search_piece(look, from, piece, got, magic);
		from += got - 3; /* the magic number may lie across the edge */
	}
	free(piece);
	return found;
}

/* Whether a packet begins at an offset, or nothing does. */
static bool is_place(struct ctf_look *look, uint64_t offset)
{
	struct tdm_ctf_packet packet;
	const struct tdm_ctf_events *events = NULL;

	if (offset >= look->file->size_bytes) {
		return offset == look->file->size_bytes;
	}
	return !read_head(look, offset, &packet, false, &events);
}

/* ---- all heads of a file ---- */

static struct tdm_ctf_packet *add_packet(struct ctf_look *look, const struct tdm_ctf_packet *packet)
{
	struct tdm_ctf_packets *const packets = look->packets;

	if (packets->count == look->packet_room) {
		const size_t room = look->packet_room ? look->packet_room * 2 : 64;
		struct tdm_ctf_packet *const grown = realloc(packets->of, room * sizeof(*grown));

		if (!grown) {
			return NULL;
		}
		packets->of = grown;
		look->packet_room = room;
	}
	packets->of[packets->count] = *packet;
	return &packets->of[packets->count++];
}

/* Whether its own words say how long the packet is, and a packet or the end follows. */
static bool is_sized(struct ctf_look *look, struct tdm_ctf_packet *packet)
{
	const uint64_t left_bytes = look->file->size_bytes - packet->offset;
	const uint64_t bits = ctf_word_of(packet, TDM_CTF_PACKET_SIZE, left_bytes * 8);
	const uint64_t content = ctf_word_of(packet, TDM_CTF_CONTENT_SIZE, bits);

	if (bits % 8 || bits / 8 > left_bytes || content > bits ||
		content < packet->first_event_bits || bits / 8 > PACKET_BYTES_MAX ||
		!is_place(look, packet->offset + bits / 8)) {
		return false;
	}
	packet->bytes = bits / 8;
	packet->content_bits = content;
	return true;
}

/* Up to the next packet then. */
static void size_by_next(struct ctf_look *look, struct tdm_ctf_packet *packet)
{
	const uint64_t bits = ctf_word_of(packet, TDM_CTF_PACKET_SIZE, UINT64_MAX);
	const uint64_t content = ctf_word_of(packet, TDM_CTF_CONTENT_SIZE, UINT64_MAX);

	packet->bytes = search(look, packet->offset + 1) - packet->offset;
	if (packet->bytes > PACKET_BYTES_MAX) {
		packet->bytes = PACKET_BYTES_MAX;
	}
	packet->content_bits = content >= packet->first_event_bits && content <= packet->bytes * 8
				       ? content
				       : packet->bytes * 8;
	if (bits % 8 == 0 && bits / 8 < packet->bytes && bits >= packet->content_bits) {
		packet->bytes = bits / 8; /* it is right, and garbage follows */
	}
	if (!ctf_set_word(packet, TDM_CTF_PACKET_SIZE, packet->bytes * 8) &&
		ctf_has_word(packet, TDM_CTF_PACKET_SIZE)) {
		packet->bytes = 0;
	}
	look->packets->is_changed = true;
}

/* The packet at an offset. @return NULL, or why there is none. */
static const char *find_packet(
	struct ctf_look *look, uint64_t offset, struct tdm_ctf_packet *packet)
{
	const struct tdm_ctf_events *events = NULL;
	const char *const fault = read_head(look, offset, packet, false, &events);

	if (!fault) {
		look->events = events;
		if (!is_sized(look, packet)) {
			size_by_next(look, packet);
		}
		return packet->bytes ? NULL : "its size makes no sense";
	}
	/* Only its header is wrong where its other words fit. */
	if (ctf_has_word(packet, TDM_CTF_MAGIC_WORD) &&
		!read_head(look, offset, packet, true, &events) &&
		ctf_has_word(packet, TDM_CTF_PACKET_SIZE) && is_sized(look, packet)) {
		look->events = events;
		look->packets->is_changed = true;
		look->packets->damaged_packets++;
		CTF_TELL(look, "%s at 0x%" PRIx64 ": %s: set right", look->path, offset, fault);
		return NULL;
	}
	return fault;
}

static enum tdm_status find_heads(struct ctf_look *look)
{
	uint64_t offset = 0;
	enum tdm_status status = TDM_OK;

	while (status == TDM_OK && offset < look->file->size_bytes) {
		struct tdm_ctf_packet packet;
		const char *const fault = find_packet(look, offset, &packet);

		if (fault) {
			const uint64_t next = search(look, offset + 1);

			CTF_TELL(look, "%s at 0x%" PRIx64 ": %s: %" PRIu64 " bytes are left out",
				look->path, offset, fault, next - offset);
			look->packets->lost_bytes += next - offset;
			look->packets->damaged_packets++;
			look->packets->is_changed = true;
			offset = next;
			continue;
		}
		offset += packet.bytes;
		status = add_packet(look, &packet) ? TDM_OK : TDM_ERR_NOMEM;
	}
	return status;
}

enum tdm_status tdm_ctf_packets_find(const struct tdm_ctf_reading *reading, const char *path,
	const struct tdm_log *log, struct tdm_ctf_packets *packets, struct tdm_error *err)
{
	struct ctf_look *const look = calloc(1, sizeof(*look));
	enum tdm_status status;

	*packets = (struct tdm_ctf_packets){ 0 };
	if (!look) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	look->reading = reading;
	look->path = path;
	look->log = log;
	look->packets = packets;
	status = tdm_input_file_open(path, &look->file, err);
	if (status != TDM_OK) {
		free(look);
		return status;
	}
	status = find_heads(look);
	if (status == TDM_OK) {
		status = ctf_settle(look);
	}
	if (status == TDM_ERR_NOMEM) {
		tdm_fail(err, status, "%s: no memory", path);
	}
	if (look->told > CTF_TOLD_MAX) {
		TDM_WARNING(log, "%s: %u more such faults", path, look->told - CTF_TOLD_MAX);
	}
	tdm_input_file_close(look->file);
	free(look->bytes);
	free(look);
	return status;
}

void tdm_ctf_packets_release(struct tdm_ctf_packets *packets)
{
	free(packets->of);
	*packets = (struct tdm_ctf_packets){ 0 };
}
