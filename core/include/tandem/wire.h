/* SPDX-License-Identifier: MIT */
/*
 * wire.h - the messages of a Tandem connection, byte for byte; docs/sync-protocol.md is the text to it.
 */
#ifndef TANDEM_WIRE_H
#define TANDEM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/reading.h>
#include <tandem/status.h>

/* Types of frames. A type that the receiver does not know ends the connection. */
enum tdm_frame_type {
	TDM_FRAME_HELLO = 1,    /* both ways, first */
	TDM_FRAME_AUTH = 2,     /* both ways, where a secret is set */
	TDM_FRAME_OPEN = 3,     /* client: what the connection is for */
	TDM_FRAME_OPENED = 4,   /* server: granted */
	TDM_FRAME_ERROR = 5,    /* either: the reason, then the connection ends */
	TDM_FRAME_BURST = 6,    /* client: exchanges begin */
	TDM_FRAME_READY = 7,    /* server: go */
	TDM_FRAME_EXCHANGE = 8, /* both ways: the 96-byte message */
	TDM_FRAME_QUERY = 9,    /* client: the burst is over; what is new? */
	TDM_FRAME_NOTES = 10,   /* server: text lines about its own clocks */
	TDM_FRAME_LINES = 11,   /* server: text lines of a corrections stream */
	TDM_FRAME_CLOSE = 12,   /* either: a proper end */
	TDM_FRAME_STREAM = 32,  /* first of the types of trace streams */
};

/* Flags of frames. */
enum {
	TDM_FRAME_TAGGED = 1 /* the last TDM_TAG_BYTES of the body prove its sender */
};

enum {
	TDM_NONCE_BYTES = 32,
	TDM_PROOF_BYTES = 32,
	TDM_KEY_BYTES = 32,
	TDM_TAG_BYTES = 16,
	TDM_HELLO_BYTES = 64,
	TDM_MESSAGE_BYTES = 96,
	TDM_OPEN_FIXED_BYTES = 8,
	TDM_ERROR_TEXT_MAX = 400,
	TDM_VALUE_MAX = 255, /* of one value of OPEN and OPENED */
};

/* What a side can do, in HELLO. */
enum tdm_capability {
	TDM_CAN_EXCHANGE = 1,
	TDM_CAN_STREAM = 2,
	TDM_CAN_CORRECTIONS = 4,
	TDM_CAN_DATAGRAMS = 8, /* exchanges over UDP beside the connection */
};

enum {
	TDM_HELLO_HAS_SECRET = 1,  /* the sender was given a secret */
	TDM_HELLO_WANTS_PROOF = 2, /* server: nothing is granted to this peer without it */
};

struct tdm_hello {
	uint8_t nonce[TDM_NONCE_BYTES];
	uint32_t capabilities;
	uint32_t flags;
	char program[24]; /* name and version, for messages */
};

void tdm_hello_put(uint8_t to[TDM_HELLO_BYTES], const struct tdm_hello *hello);

/** @retval TDM_ERR_PEER  Too short. A longer one is taken: a later minor version may add fields. */
enum tdm_status tdm_hello_get(
	const uint8_t *body, size_t size, struct tdm_hello *hello, struct tdm_error *err);

/* What a connection is for. */
enum tdm_purpose {
	TDM_PURPOSE_EXCHANGE = 1,
	TDM_PURPOSE_STREAM = 2,
	TDM_PURPOSE_CORRECTIONS = 3
};

/* OPEN and OPENED: a number or two, then text lines "KEY VALUE". Unknown keys are passed over. */
struct tdm_open {
	enum tdm_purpose purpose;
	uint32_t session; /* random; named in every exchange message */
	const char *text; /* borrowed; not NUL-terminated */
	size_t text_bytes;
};

struct tdm_opened {
	uint32_t session;
	uint32_t epoch; /* of the server's clocks now */
	const char *text;
	size_t text_bytes;
};

/** Appends an OPEN body, less its lines, which tdm_record_add() adds. */
enum tdm_status tdm_open_put(struct tdm_buffer *to, enum tdm_purpose purpose, uint32_t session);
enum tdm_status tdm_open_get(
	const uint8_t *body, size_t size, struct tdm_open *open, struct tdm_error *err);
enum tdm_status tdm_opened_put(struct tdm_buffer *to, uint32_t session, uint32_t epoch);
enum tdm_status tdm_opened_get(
	const uint8_t *body, size_t size, struct tdm_opened *opened, struct tdm_error *err);

/** Appends "KEY VALUE\n"; a value is cut at its first control character. */
enum tdm_status tdm_record_add(struct tdm_buffer *to, const char *key, const char *value);

/**
 * Finds the value of a key among text lines.
 *
 * @param nth    0 for its first line, 1 for its second, ...
 * @param value  Receives it, NUL-terminated, free of control characters.
 * @return False where there is no such line or the value is longer than TDM_VALUE_MAX.
 */
bool tdm_record_find(const char *text, size_t text_bytes, const char *key, unsigned int nth,
	char value[TDM_VALUE_MAX + 1]);

/** The same for a value that is a decimal number of at most 64 bits. */
bool tdm_record_find_number(
	const char *text, size_t text_bytes, const char *key, unsigned int nth, uint64_t *value);

/* BURST and READY. */
enum {
	TDM_BURST_STAMPS = 1,    /* kernel stamps asked for, or granted */
	TDM_BURST_DATAGRAMS = 2, /* exchanges come over UDP */
};

struct tdm_burst_frame {
	uint32_t count; /* exchanges at most */
	uint32_t flags;
};

enum {
	TDM_BURST_BYTES = 8,
	TDM_BURST_MAX_MS = 1000 /* no burst takes longer; the answering end leaves it soon after */
};

void tdm_burst_put(uint8_t to[TDM_BURST_BYTES], const struct tdm_burst_frame *burst);
enum tdm_status tdm_burst_get(
	const uint8_t *body, size_t size, struct tdm_burst_frame *burst, struct tdm_error *err);

/* The exchange message: 96 bytes, the same both ways. */

enum {
	TDM_MESSAGE_PROBE = 1,
	TDM_MESSAGE_REPLY = 2,
	TDM_MESSAGE_FOLLOW_UP = 3,
};

enum {
	TDM_MESSAGE_HAS_RAW = 1,
	TDM_MESSAGE_HAS_TSC = 2,
	TDM_MESSAGE_STAMPED = 4,
	TDM_MESSAGE_FIRST_OF_PAIR = 8,
	TDM_MESSAGE_SECOND_OF_PAIR = 16,
	TDM_MESSAGE_BURST_START = 32,
};

/* Readings are of the units of their clocks; 2^62 is the limit of all. */
struct tdm_message {
	uint8_t type;
	uint16_t flags;
	uint32_t session;
	uint32_t epoch;
	uint64_t sequence;
	uint64_t h1, g2, g3;
	uint64_t g2_raw, g3_raw;
	uint64_t received_ns;   /* kernel: arrival of this probe; 0 = none */
	uint64_t sent_ns;       /* kernel: departure of an earlier reply; 0 = none */
	uint32_t sent_sequence; /* low half of the sequence of that reply */
	uint16_t cpu;           /* the agent ran on */
	uint16_t clocks;        /* trace clock in the high byte, raw clock in the low one */
	int32_t frequency;      /* adjtimex, 2^-16 ppm */
};

void tdm_message_put(uint8_t to[TDM_MESSAGE_BYTES], const struct tdm_message *message);

/**
 * @retval TDM_ERR_PEER  Another size, magic, version, type, checksum, or a reading past the limit.
 */
enum tdm_status tdm_message_get(
	const uint8_t *bytes, size_t size, struct tdm_message *message, struct tdm_error *err);

/** CRC-32C (Castagnoli) of bytes, as iSCSI defines it (RFC 3720, appendix B.4). */
uint32_t tdm_crc32c(const void *bytes, size_t size);

/** Puts text that a peer wrote into a message: control characters and what is no UTF-8 lead become '?'. */
void tdm_text_clean(char *to, size_t room, const uint8_t *from, size_t size);

#endif
