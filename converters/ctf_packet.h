/* SPDX-License-Identifier: MIT */
/*
 * ctf_packet.h - one CTF stream file: packets filled in memory, written when full, never empty, never out of order.
 *
 * Packet header and context, and the two event headers, are those of LTTng's kernel tracer, which readers have fast
 * paths for. Events discarded count up along the file.
 */
#ifndef TANDEM_CTF_PACKET_H
#define TANDEM_CTF_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tandem/status.h>

#define TDM_CTF_MAGIC 0xc1fc1fc1u

enum {
	TDM_CTF_PACKET_HEADER_BYTES = 4 + 16 + 4 + 8,
	TDM_CTF_PACKET_CONTEXT_BYTES = 5 * 8 + 4,
	TDM_CTF_PACKET_HEAD_BYTES = TDM_CTF_PACKET_HEADER_BYTES + TDM_CTF_PACKET_CONTEXT_BYTES,
	TDM_CTF_PACKET_FULL_BYTES = 256 << 10, /* a packet that reaches this is closed */
	TDM_CTF_PACKET_ROOM_BYTES = 512 << 10, /* and here no event may pass */
	TDM_CTF_EVENT_HEADER_BYTES_MAX = 14,
	TDM_CTF_COMPACT_IDS_MAX = 31, /* event classes that the compact header can tell */
};

/* What all stream files of a trace share. */
struct tdm_ctf_layout {
	uint8_t trace_uuid[16];
	bool big_endian;
	bool compact; /* event header of 4 bytes: 5 bits id, 27 bits time; else 16 and 32 bits */
};

struct tdm_ctf_stream {
	const struct tdm_ctf_layout *layout; /* borrowed */
	int fd;                              /* owned; -1 while nothing was written */
	char *path;                          /* owned */
	uint32_t cpu;
	uint8_t *bytes;       /* owned: the packet being filled */
	uint8_t *at;          /* where the next event goes */
	const uint8_t *limit; /* end of the room */
	const uint8_t *full;  /* from here on the packet is closed */
	bool is_open;         /* the packet has an event */
	uint64_t begin_time, last_time;
	uint64_t discarded;     /* so far, along the file */
	uint64_t packet_count;  /* written so far */
	uint64_t reserve_bytes; /* left free at the file's start, for a packet that comes last */
	uint64_t file_bytes;
};

/**
 * @param path           Of the file; copied. Made with the first packet.
 * @param reserve_bytes  Room to leave for tdm_ctf_stream_put_head() where the file is longer than a packet; 0 = none.
 * @retval TDM_ERR_NOMEM  Nothing to release.
 */
enum tdm_status tdm_ctf_stream_init(struct tdm_ctf_stream *stream,
	const struct tdm_ctf_layout *layout, const char *path, uint32_t cpu,
	uint64_t reserve_bytes);

/** Writes the packet being filled, if it has an event, and closes the file. @retval TDM_ERR_IO  As close() tells. */
enum tdm_status tdm_ctf_stream_finish(struct tdm_ctf_stream *stream, struct tdm_error *err);

/** Frees everything; a file that is there stays. */
void tdm_ctf_stream_release(struct tdm_ctf_stream *stream);

/** Writes the packet being filled; nothing if it has no event. @retval TDM_ERR_IO, TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_stream_flush(struct tdm_ctf_stream *stream, struct tdm_error *err);

/**
 * Puts a packet of its own at the start of a file that is complete: into the room that was reserved, or by moving the
 * rest of the file.
 *
 * @param content  Events, all at @p time; their headers were written by tdm_ctf_event_header() with last = @p time.
 */
enum tdm_status tdm_ctf_stream_put_head(struct tdm_ctf_stream *stream, const uint8_t *content,
	size_t content_bytes, uint64_t time, struct tdm_error *err);

static inline uint8_t *tdm_ctf_put_u16(uint8_t *at, uint16_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap16(value) : value;
	memcpy(at, &value, 2);
	return at + 2;
}

static inline uint8_t *tdm_ctf_put_u32(uint8_t *at, uint32_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap32(value) : value;
	memcpy(at, &value, 4);
	return at + 4;
}

static inline uint8_t *tdm_ctf_put_u64(uint8_t *at, uint64_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap64(value) : value;
	memcpy(at, &value, 8);
	return at + 8;
}

/** Writes an event header. @param last_time  Of the event before, or the packet's begin. Up to 14 bytes. */
static inline uint8_t *tdm_ctf_event_header(const struct tdm_ctf_layout *layout, uint8_t *at,
	uint32_t id, uint64_t time, uint64_t last_time)
{
	const bool big_endian = layout->big_endian;

	if (layout->compact) {
		if (__builtin_expect(time - last_time < (1u << 27), 1)) {
			const uint32_t low = (uint32_t)time & ((1u << 27) - 1);

			return tdm_ctf_put_u32(
				at, big_endian ? id << 27 | low : low << 5 | id, big_endian);
		}
		*at++ = big_endian ? 31 << 3 : 31;
	} else {
		if (__builtin_expect(time - last_time <= UINT32_MAX, 1)) {
			at = tdm_ctf_put_u16(at, (uint16_t)id, big_endian);
			return tdm_ctf_put_u32(at, (uint32_t)time, big_endian);
		}
		at = tdm_ctf_put_u16(at, UINT16_MAX, big_endian);
	}
	at = tdm_ctf_put_u32(at, id, big_endian);
	return tdm_ctf_put_u64(at, time, big_endian);
}

/** Opens the packet with its first event's time where none is open. */
static inline void tdm_ctf_stream_begin_event(struct tdm_ctf_stream *stream, uint64_t time)
{
	if (!stream->is_open) {
		stream->is_open = true;
		stream->begin_time = time;
		stream->last_time = time;
		stream->at = stream->bytes + TDM_CTF_PACKET_HEAD_BYTES;
	}
}

#endif
