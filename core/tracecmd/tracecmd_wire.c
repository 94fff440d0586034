/* SPDX-License-Identifier: MIT */
#include "tracecmd_priv.h"
#include <inttypes.h>
#include <string.h>
#include <tandem/socket.h>

enum {
	COMMAND_END = 12
};

void message_bytes(struct message_out *out, const void *bytes, size_t count)
{
	if (count > sizeof(out->bytes) - out->size) {
		out->overflow = true;
		return;
	}
	memcpy(out->bytes + out->size, bytes, count);
	out->size += count;
}

void message_u32(struct message_out *out, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16),
		(uint8_t)(value >> 8), (uint8_t)value };

	message_bytes(out, bytes, sizeof(bytes));
}

void message_u64(struct message_out *out, uint64_t value)
{
	message_u32(out, (uint32_t)(value >> 32));
	message_u32(out, (uint32_t)value);
}

void message_name(struct message_out *out, const char *name)
{
	char padded[PROTOCOL_NAME_BYTES] = { 0 };

	memcpy(padded, name, strnlen(name, sizeof(padded) - 1));
	message_bytes(out, padded, sizeof(padded));
}

void message_begin(struct message_out *out, enum message_command command, uint32_t fixed_bytes)
{
	out->size = 0;
	out->overflow = false;
	message_u32(out, 0); /* the size, known when it is sent */
	message_u32(out, command);
	message_u32(out, fixed_bytes);
}

enum tdm_status message_send(
	int fd, struct message_out *out, uint32_t timeout_ms, struct tdm_error *err)
{
	const size_t size = out->size;

	if (out->overflow) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"a message of trace-cmd's protocol would be over %d bytes",
			MESSAGE_MAX_BYTES);
	}
	out->size = 0;
	message_u32(out, (uint32_t)size);
	out->size = size;
	/* One call: a message in two halves meets Nagle's algorithm and a delayed acknowledgement. */
	return tdm_socket_send(fd, out->bytes, size, tdm_deadline_ns(timeout_ms), err);
}

/* True when a whole message stands at in->from; checks its sizes before they are used. */
static enum tdm_status parse(struct message_in *in, struct tdm_error *err)
{
	const size_t there = in->to - in->from;
	const uint8_t *at = in->bytes + in->from;

	if (there < MESSAGE_HEADER_BYTES) {
		return TDM_AGAIN;
	}

	const uint32_t size = tdm_load_u32(at, true);
	const uint32_t fixed_bytes = tdm_load_u32(at + 8, true);

	in->command = tdm_load_u32(at + 4, true);
	if (size < MESSAGE_HEADER_BYTES || size > MESSAGE_MAX_BYTES || in->command >= COMMAND_END ||
		fixed_bytes > size - MESSAGE_HEADER_BYTES) {
		return tdm_fail(err, TDM_ERR_PEER,
			"%s sent a message of %" PRIu32 " bytes, command %" PRIu32
			", fixed part %" PRIu32 ": no such message",
			in->peer, size, in->command, fixed_bytes);
	}
	if (there < size) {
		return TDM_AGAIN;
	}
	in->whole = at;
	in->whole_bytes = size;
	in->fixed = tdm_cursor_over(at + MESSAGE_HEADER_BYTES, fixed_bytes, 0, true);
	in->payload = tdm_cursor_over(at + MESSAGE_HEADER_BYTES + fixed_bytes,
		size - MESSAGE_HEADER_BYTES - fixed_bytes, 0, true);
	in->from += size;
	return TDM_OK;
}

static void make_room(struct message_in *in)
{
	if (in->from) {
		memmove(in->bytes, in->bytes + in->from, in->to - in->from);
		in->to -= in->from;
		in->from = 0;
	}
}

enum tdm_status message_receive(int fd, struct message_in *in, uint32_t timeout_ms,
	void (*got_bytes)(void *user), void *user, struct tdm_error *err)
{
	const uint64_t deadline_ns = timeout_ms ? tdm_deadline_ns(timeout_ms) : UINT64_MAX;
	enum tdm_status status = parse(in, err);

	if (status != TDM_AGAIN) {
		return status;
	}
	make_room(in);
	while (status == TDM_AGAIN) {
		size_t got = 0;

		/* An agent with Nagle's algorithm on holds its second half back until the first is acknowledged. */
		tdm_socket_quick_ack(fd);
		status = tdm_socket_receive(
			fd, in->bytes + in->to, sizeof(in->bytes) - in->to, &got, err);
		if (status == TDM_OK) {
			if (got_bytes) {
				got_bytes(user);
			}
			in->to += got;
			status = parse(in, err);
			continue;
		}
		if (status != TDM_AGAIN) {
			return status;
		}
		if (tdm_now_ns() >= deadline_ns) {
			return tdm_fail(err, TDM_ERR_PEER, "%s is silent for %" PRIu32 " ms",
				in->peer, timeout_ms);
		}
		tdm_socket_wait(fd, TDM_WAIT_READ, in->stop_fd, deadline_ns);
		if (tdm_socket_is_stopped(in->stop_fd)) {
			return TDM_AGAIN;
		}
		status = TDM_AGAIN;
	}
	return status;
}
