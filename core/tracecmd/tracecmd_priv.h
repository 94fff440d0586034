/* SPDX-License-Identifier: MIT */
/*
 * tracecmd_priv.h - messages of trace-cmd's agent protocol; all integers big endian.
 */
#ifndef TRACECMD_PRIV_H
#define TRACECMD_PRIV_H

#include <tandem/cursor.h>
#include <tandem/tracecmd.h>

enum {
	MESSAGE_MAX_BYTES = 8192,
	MESSAGE_HEADER_BYTES = 12,
	PROTOCOL_NAME_BYTES = 16,
	DEFAULT_TIMEOUT_MS = 10000
};

enum message_command {
	COMMAND_CLOSE = 0,
	COMMAND_SEND_DATA = 3,
	COMMAND_FIN_DATA = 4,
	COMMAND_NOT_SUPP = 5,
	COMMAND_TRACE_REQ = 6,
	COMMAND_TRACE_RESP = 7,
	COMMAND_CLOSE_RESP = 8,
	COMMAND_TIME_SYNC = 9,
};

/* Messages on the sync connection: those of the outer loop, protocol name "none", and those of ptp. */
enum outer_message {
	OUTER_PROBE = 1,
	OUTER_STOP = 2,
};

enum ptp_message {
	PTP_START = 1,
	PTP_PROBE = 2,
	PTP_RESULTS = 3,
	PTP_OFFSET = 4,
	PTP_END = 5,
};

enum {
	PTP_RESULT_ENTRIES = 2 * TDM_TRACECMD_PROBES, /* room of the results message */
	PARAMETER_ARGUMENTS = 0,
	PARAMETER_SYNC_PROTOCOLS = 1
};

/* A message that is put together and goes out in one call. */
struct message_out {
	uint8_t bytes[MESSAGE_MAX_BYTES];
	size_t size;
	bool overflow;
};

void message_begin(struct message_out *out, enum message_command command, uint32_t fixed_bytes);
void message_u32(struct message_out *out, uint32_t value);
void message_u64(struct message_out *out, uint64_t value);
void message_bytes(struct message_out *out, const void *bytes, size_t count);
void message_name(struct message_out *out, const char *name); /* padded to PROTOCOL_NAME_BYTES */
enum tdm_status message_send(
	int fd, struct message_out *out, uint32_t timeout_ms, struct tdm_error *err);

/* A connection that messages are read from. */
struct message_in {
	const char *peer; /* who sends, for messages of ours */
	int stop_fd;      /* readable: stop waiting, TDM_AGAIN; -1 = none */
	uint8_t bytes[2 * MESSAGE_MAX_BYTES];
	size_t from, to;
	/* the current message */
	uint32_t command;
	struct tdm_cursor fixed, payload; /* big endian */
	const uint8_t *whole;
	size_t whole_bytes;
};

/*
 * Waits for the next message, for ever with timeout_ms 0. got_time, if not NULL, is called the moment bytes have arrived, before they are looked at.
 * TDM_END: the peer closed in good order. TDM_AGAIN: stop_fd became readable.
 */
enum tdm_status message_receive(int fd, struct message_in *in, uint32_t timeout_ms,
	void (*got_bytes)(void *user), void *user, struct tdm_error *err);

struct tdm_tracecmd {
	const struct tdm_log *log;
	struct tdm_address address;
	uint32_t timeout_ms;
	int control_fd, sync_fd;
	struct message_in control, sync;
	struct tdm_tracecmd_info info;
	uint32_t *ports; /* of the pages, by CPU */
};

#endif
