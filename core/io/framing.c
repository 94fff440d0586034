/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/framing.h>

static const uint8_t magic[4] = { 'T', 'N', 'D', 'M' };

void tdm_frame_put_header(uint8_t *to, uint16_t type, uint32_t flags, uint32_t size_bytes)
{
	memcpy(to, magic, sizeof(magic));
	to[4] = TDM_FRAME_MAJOR;
	to[5] = TDM_FRAME_MINOR;
	to[6] = (uint8_t)type;
	to[7] = (uint8_t)(type >> 8);
	for (int i = 0; i < 4; i++) {
		to[8 + i] = (uint8_t)(flags >> (8 * i));
		to[12 + i] = (uint8_t)(size_bytes >> (8 * i));
	}
}

enum tdm_status tdm_frame_reader_init(struct tdm_frame_reader *reader, size_t body_max)
{
	memset(reader, 0, sizeof(*reader));
	return tdm_frame_reader_resize(reader, body_max);
}

enum tdm_status tdm_frame_reader_resize(struct tdm_frame_reader *reader, size_t body_max)
{
	const size_t room = TDM_FRAME_HEADER_BYTES + body_max;

	if (room > reader->room) {
		/* calloc: the pages are touched now, not in a burst. */
		uint8_t *bytes = calloc(1, room);

		if (!bytes) {
			return TDM_ERR_NOMEM;
		}
		if (reader->to > reader->from) {
			memcpy(bytes, reader->bytes + reader->from, reader->to - reader->from);
		}
		free(reader->bytes);
		reader->bytes = bytes;
		reader->room = room;
		reader->to -= reader->from;
		reader->from = 0;
	}
	reader->body_max = body_max;
	return TDM_OK;
}

void tdm_frame_reader_release(struct tdm_frame_reader *reader)
{
	free(reader->bytes);
	memset(reader, 0, sizeof(*reader));
}

uint8_t *tdm_frame_room(struct tdm_frame_reader *reader, size_t *room)
{
	if (reader->from == reader->to) {
		reader->from = reader->to = 0;
	} else if (reader->from > 0 && reader->to == reader->room) {
		memmove(reader->bytes, reader->bytes + reader->from, reader->to - reader->from);
		reader->to -= reader->from;
		reader->from = 0;
	}
	*room = reader->room - reader->to;
	return reader->bytes + reader->to;
}

void tdm_frame_received(struct tdm_frame_reader *reader, size_t count)
{
	reader->to += count;
}

enum tdm_status tdm_frame_next(
	struct tdm_frame_reader *reader, struct tdm_frame *frame, struct tdm_error *err)
{
	const size_t there = reader->to - reader->from;
	struct tdm_cursor in = tdm_cursor_over(reader->bytes + reader->from, there, 0, false);

	/* Garbage is refused by its first bytes: no wait for a header that never comes. */
	if (memcmp(reader->bytes + reader->from, magic, there < 4 ? there : 4) != 0) {
		return tdm_fail(
			err, TDM_ERR_PEER, "this is no Tandem connection: no frame begins here");
	}
	if (there < TDM_FRAME_HEADER_BYTES) {
		return TDM_AGAIN;
	}
	tdm_cursor_skip(&in, sizeof(magic));

	const uint8_t major = tdm_cursor_u8(&in);

	frame->header = reader->bytes + reader->from;
	frame->minor = tdm_cursor_u8(&in);
	frame->type = tdm_cursor_u16(&in);
	frame->flags = tdm_cursor_u32(&in);
	frame->size_bytes = tdm_cursor_u32(&in);
	if (major != TDM_FRAME_MAJOR) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"the peer speaks version %u of the protocol, this program version %d",
			major, TDM_FRAME_MAJOR);
	}
	if (frame->size_bytes > reader->body_max) {
		return tdm_fail(err, TDM_ERR_PEER,
			"frame of type %u has %u bytes, at most %zu are taken here", frame->type,
			frame->size_bytes, reader->body_max);
	}

	const struct tdm_cursor body = tdm_cursor_take(&in, frame->size_bytes);

	if (in.failed) {
		return TDM_AGAIN;
	}
	frame->body = body.bytes;
	reader->from += TDM_FRAME_HEADER_BYTES + frame->size_bytes;
	return TDM_OK;
}
