/* SPDX-License-Identifier: MIT */
/*
 * framing.h - a byte stream cut into frames: a 16-byte header, then at most 64 KiB.
 *
 *   0  4  magic "TNDM"
 *   4  1  major version, 1
 *   5  1  minor version of the sender
 *   6  2  type
 *   8  4  flags
 *  12  4  bytes that follow the header, at most 65536
 *
 * Integers are little endian. What types and flags mean is defined in docs/sync-protocol.
 */
#ifndef TANDEM_FRAMING_H
#define TANDEM_FRAMING_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

enum {
	TDM_FRAME_HEADER_BYTES = 16,
	TDM_FRAME_MAX_BYTES = 65536, /* after the header */
	TDM_FRAME_MAJOR = 1,
	TDM_FRAME_MINOR = 0
};

struct tdm_frame {
	uint16_t type;
	uint8_t minor; /* of the sender */
	uint32_t flags;
	uint32_t size_bytes; /* of the body */
	const uint8_t
		*body; /* borrowed from the reader until its next call; NULL in tdm_frame_put() */
	const uint8_t *header; /* its 16 bytes as received; they stand right before the body */
};

/** Writes a header, TDM_FRAME_HEADER_BYTES long. */
void tdm_frame_put_header(uint8_t *to, uint16_t type, uint32_t flags, uint32_t size_bytes);

/* Received bytes on their way to frames. Zero-initialise, then tdm_frame_reader_init(). */
struct tdm_frame_reader {
	uint8_t *bytes; /* owned */
	size_t room;
	size_t from, to; /* bytes in use */
	size_t body_max; /* a longer frame is refused */
};

/**
 * Makes a reader that takes bodies up to @p body_max. Memory is reserved for one frame of that size at once: nothing
 * is allocated between receiving and answering.
 */
enum tdm_status tdm_frame_reader_init(struct tdm_frame_reader *reader, size_t body_max);

/** Changes the limit; bytes that are there stay. It never shrinks below what is there. */
enum tdm_status tdm_frame_reader_resize(struct tdm_frame_reader *reader, size_t body_max);
void tdm_frame_reader_release(struct tdm_frame_reader *reader);

/** Where to receive to, and how much: at least one byte, as long as tdm_frame_next() was called until TDM_AGAIN. */
uint8_t *tdm_frame_room(struct tdm_frame_reader *reader, size_t *room);

/** Says that @p count bytes were received there. */
void tdm_frame_received(struct tdm_frame_reader *reader, size_t count);

/**
 * The next whole frame.
 *
 * @retval TDM_AGAIN            More bytes are needed.
 * @retval TDM_ERR_PEER         No frame of ours, or one that is too long; nothing further can be read.
 * @retval TDM_ERR_UNSUPPORTED  Another major version.
 */
enum tdm_status tdm_frame_next(
	struct tdm_frame_reader *reader, struct tdm_frame *frame, struct tdm_error *err);

#endif
