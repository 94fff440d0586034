/* SPDX-License-Identifier: MIT */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stamps.h>
#include <tandem/sync_link.h>
#include <unistd.h>

#include "tandem_version.h"

enum {
	/* A stranger gets no more memory than a handshake needs. */
	GREETING_MAX_BYTES = 2048,
	FRAME_ROOM = TDM_FRAME_HEADER_BYTES + TDM_FRAME_MAX_BYTES,
	MESSAGE_FRAME_BYTES = TDM_FRAME_HEADER_BYTES + TDM_MESSAGE_BYTES + TDM_TAG_BYTES
};

enum state {
	AWAITS_HELLO,
	AWAITS_AUTH,
	READY,
	BROKEN
};

struct tdm_link {
	int fd;
	enum tdm_role role;
	enum state state;
	struct tdm_link_options options;
	struct tdm_frame_reader reader;
	struct tdm_hello peer_hello;
	uint8_t own_hello[TDM_HELLO_BYTES];
	bool is_proven;

	struct tdm_session_keys keys;
	/* With the key absorbed: what is left for a tag is one round of the hash. */
	crypto_generichash_state tag_sent, tag_received;
	uint64_t sent_count, received_count;

	bool has_stamps;
	uint64_t received_ns;
	uint32_t stamp_base; /* what the ids of transmit stamps count from */
	bool has_stamp_base;

	uint8_t message_frame[MESSAGE_FRAME_BYTES];
	uint8_t *out; /* FRAME_ROOM bytes, made when first needed */
};

/* Binds a frame to its place in the connection: neither replay nor reordering nor a gap goes unseen. */
static void make_tag(const crypto_generichash_state *keyed, uint64_t count, const uint8_t *header,
	const uint8_t *body, size_t size, uint8_t tag[TDM_TAG_BYTES])
{
	crypto_generichash_state state = *keyed;
	uint8_t number[8];

	for (int i = 0; i < 8; i++) {
		number[i] = (uint8_t)(count >> (8 * i));
	}
	crypto_generichash_update(&state, number, sizeof(number));
	crypto_generichash_update(&state, header, TDM_FRAME_HEADER_BYTES);
	crypto_generichash_update(&state, body, size);
	crypto_generichash_final(&state, tag, TDM_TAG_BYTES);
}

/* Header, body and tag in place; the body stands behind the header already. Returns the frame's size. */
static size_t seal(struct tdm_link *link, uint8_t *frame, uint16_t type, size_t size)
{
	const bool tagged = link->state == READY && link->is_proven;
	const size_t whole = size + (tagged ? TDM_TAG_BYTES : 0);
	uint8_t *body = frame + TDM_FRAME_HEADER_BYTES;

	tdm_frame_put_header(frame, type, tagged ? TDM_FRAME_TAGGED : 0, (uint32_t)whole);
	if (tagged) {
		make_tag(&link->tag_sent, link->sent_count, frame, body, size, body + size);
		link->sent_count++;
	}
	return TDM_FRAME_HEADER_BYTES + whole;
}

/* Small frames of the beginning and the end: a peer that leaves no room for them is not waited for. */
static enum tdm_status send_small(
	struct tdm_link *link, uint16_t type, const void *body, size_t size, struct tdm_error *err)
{
	uint8_t frame[TDM_FRAME_HEADER_BYTES + TDM_ERROR_TEXT_MAX + 8 + TDM_TAG_BYTES];
	size_t sent;

	memcpy(frame + TDM_FRAME_HEADER_BYTES, body, size);

	const size_t whole = seal(link, frame, type, size);
	const enum tdm_status status = tdm_socket_send_some(link->fd, frame, whole, &sent, err);

	if (status == TDM_OK && sent == whole) {
		return TDM_OK;
	}
	link->state = BROKEN;
	return status == TDM_OK || status == TDM_AGAIN
		       ? tdm_fail(err, TDM_ERR_PEER, "the peer takes no data")
		       : status;
}

struct tdm_link *tdm_link_create(
	int fd, enum tdm_role role, const struct tdm_link_options *options, struct tdm_error *err)
{
	/* Not calloc(): the hash states inside want more alignment than it gives. */
	struct tdm_link *link = aligned_alloc(_Alignof(struct tdm_link), sizeof(*link));

	if (!link) {
		close(fd);
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a connection");
		return NULL;
	}
	memset(link, 0, sizeof(*link));
	link->fd = fd;
	link->role = role;
	link->options = *options;
	if (!options->secret || !options->secret->is_set) {
		link->options.secret = NULL;
	}
	if (tdm_frame_reader_init(&link->reader, GREETING_MAX_BYTES) != TDM_OK) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a connection");
		tdm_link_destroy(link);
		return NULL;
	}

	struct tdm_hello hello = { .capabilities = options->capabilities,
		.flags = (link->options.secret ? TDM_HELLO_HAS_SECRET : 0u) |
			 (options->wants_proof ? TDM_HELLO_WANTS_PROOF : 0u),
		.program = "tandem " TDM_VERSION };

	tdm_random(hello.nonce, sizeof(hello.nonce));
	tdm_hello_put(link->own_hello, &hello);
	if (send_small(link, TDM_FRAME_HELLO, link->own_hello, TDM_HELLO_BYTES, err) != TDM_OK) {
		tdm_link_destroy(link);
		return NULL;
	}
	return link;
}

void tdm_link_destroy(struct tdm_link *link)
{
	if (!link) {
		return;
	}
	tdm_link_stamps_end(link);
	if (link->state == READY) {
		send_small(link, TDM_FRAME_CLOSE, "", 0, NULL);
	}
	close(link->fd);
	tdm_frame_reader_release(&link->reader);
	free(link->out);
	sodium_memzero(link, sizeof(*link));
	free(link);
}

int tdm_link_fd(const struct tdm_link *link)
{
	return link->fd;
}

bool tdm_link_is_ready(const struct tdm_link *link)
{
	return link->state == READY;
}

bool tdm_link_is_proven(const struct tdm_link *link)
{
	return link->is_proven;
}

void tdm_link_derive(const struct tdm_link *link, enum tdm_role sender, const char *label,
	uint8_t key[TDM_KEY_BYTES])
{
	tdm_session_derive(&link->keys, sender, label, key);
}

void tdm_link_refuse(struct tdm_link *link, const char *reason)
{
	uint8_t body[4 + TDM_ERROR_TEXT_MAX] = { 0 };
	const size_t length = strnlen(reason, TDM_ERROR_TEXT_MAX);

	if (link->state == BROKEN) {
		return;
	}
	memcpy(body + 4, reason, length);
	send_small(link, TDM_FRAME_ERROR, body, 4 + length, NULL);
	link->state = BROKEN;
}

/* The peer is at fault: it is told, and the link is of no use any more. */
static enum tdm_status break_off(
	struct tdm_link *link, struct tdm_error *err, enum tdm_status status, const char *reason)
{
	tdm_link_refuse(link, reason);
	return tdm_fail(err, status, "%s", reason);
}

static enum tdm_role other(enum tdm_role role)
{
	return role == TDM_ROLE_CLIENT ? TDM_ROLE_SERVER : TDM_ROLE_CLIENT;
}

static void key_tag(struct tdm_link *link, enum tdm_role sender, crypto_generichash_state *state)
{
	uint8_t key[TDM_KEY_BYTES];

	tdm_session_derive(&link->keys, sender, "frames", key);
	crypto_generichash_init(state, key, sizeof(key), TDM_TAG_BYTES);
	sodium_memzero(key, sizeof(key));
}

static enum tdm_status become_ready(struct tdm_link *link, bool proven, struct tdm_error *err)
{
	if (proven) {
		key_tag(link, link->role, &link->tag_sent);
		key_tag(link, other(link->role), &link->tag_received);
	}
	/* The bytes that follow in the same read are kept. */
	if (tdm_frame_reader_resize(&link->reader, TDM_FRAME_MAX_BYTES) != TDM_OK) {
		link->state = BROKEN;
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a connection");
	}
	link->is_proven = proven;
	link->state = READY;
	return TDM_OK;
}

static enum tdm_status send_proof(struct tdm_link *link, struct tdm_error *err)
{
	uint8_t proof[TDM_PROOF_BYTES];

	tdm_session_proof(&link->keys, link->role, proof);
	return send_small(link, TDM_FRAME_AUTH, proof, sizeof(proof), err);
}

static enum tdm_status take_hello(
	struct tdm_link *link, const struct tdm_frame *frame, struct tdm_error *err)
{
	enum tdm_status status =
		tdm_hello_get(frame->body, frame->size_bytes, &link->peer_hello, err);

	if (status != TDM_OK) {
		tdm_link_refuse(link, "HELLO is too short");
		return status;
	}

	const bool is_client = link->role == TDM_ROLE_CLIENT;
	const uint32_t peer_flags = link->peer_hello.flags;

	if (link->options.secret) {
		tdm_session_keys_make(&link->keys, link->options.secret,
			is_client ? link->own_hello : frame->body,
			is_client ? frame->body : link->own_hello);
	}
	if (is_client && link->options.secret) {
		if (!(peer_flags & TDM_HELLO_HAS_SECRET)) {
			return break_off(link, err, TDM_ERR_PEER,
				"the peer has no secret, so it cannot prove who it is");
		}
		link->state = AWAITS_AUTH;
		return send_proof(link, err);
	}
	if (is_client && peer_flags & TDM_HELLO_WANTS_PROOF) {
		link->state = BROKEN;
		return tdm_fail(err, TDM_ERR_PEER,
			"the peer wants proof of a secret (--secret-file), none is given here");
	}
	if (!is_client && peer_flags & TDM_HELLO_HAS_SECRET && link->options.secret) {
		link->state = AWAITS_AUTH;
		return TDM_OK;
	}
	if (!is_client && link->options.wants_proof) {
		return break_off(link, err, TDM_ERR_PEER,
			"proof of the secret is wanted and was not offered");
	}
	return become_ready(link, false, err);
}

static enum tdm_status take_auth(
	struct tdm_link *link, const struct tdm_frame *frame, struct tdm_error *err)
{
	if (!tdm_session_proof_is(&link->keys, other(link->role), frame->body, frame->size_bytes)) {
		return break_off(link, err, TDM_ERR_PEER, "wrong secret");
	}
	/* The client proves first: a stranger who connects learns nothing to guess the secret from. */
	if (link->role == TDM_ROLE_SERVER) {
		const enum tdm_status status = send_proof(link, err);

		if (status != TDM_OK) {
			return status;
		}
	}
	return become_ready(link, true, err);
}

/* Takes the tag off a frame, if it has to have one. */
static enum tdm_status check_tag(
	struct tdm_link *link, struct tdm_frame *frame, struct tdm_error *err)
{
	if (!link->is_proven) {
		return frame->flags & TDM_FRAME_TAGGED
			       ? break_off(link, err, TDM_ERR_PEER,
					 "a tagged frame on a connection without secret")
			       : TDM_OK;
	}

	uint8_t tag[TDM_TAG_BYTES];

	if (!(frame->flags & TDM_FRAME_TAGGED) || frame->size_bytes < TDM_TAG_BYTES) {
		return break_off(link, err, TDM_ERR_PEER, "a frame without proof of its sender");
	}
	frame->size_bytes -= TDM_TAG_BYTES;
	make_tag(&link->tag_received, link->received_count, frame->header, frame->body,
		frame->size_bytes, tag);
	if (sodium_memcmp(tag, frame->body + frame->size_bytes, sizeof(tag)) != 0) {
		return break_off(
			link, err, TDM_ERR_PEER, "a frame that was changed, replayed or left out");
	}
	link->received_count++;
	return TDM_OK;
}

static enum tdm_status take_error(
	struct tdm_link *link, const struct tdm_frame *frame, struct tdm_error *err)
{
	char text[TDM_ERROR_TEXT_MAX + 1] = "no reason given";

	if (frame->size_bytes > 4) {
		tdm_text_clean(text, sizeof(text), frame->body + 4, frame->size_bytes - 4);
	}
	link->state = BROKEN;
	return tdm_fail(err, TDM_ERR_PEER, "peer says: %s", text);
}

enum tdm_status tdm_link_next(struct tdm_link *link, struct tdm_frame *frame, struct tdm_error *err)
{
	while (link->state != BROKEN) {
		enum tdm_status status = tdm_frame_next(&link->reader, frame, err);

		if (status == TDM_AGAIN) {
			return TDM_AGAIN;
		}
		if (status != TDM_OK) {
			tdm_link_refuse(link, "not understood: no frame of Tandem's protocol 1");
			return status;
		}
		if (link->state == READY) {
			status = check_tag(link, frame, err);
			if (status != TDM_OK) {
				return status;
			}
			switch (frame->type) {
			case TDM_FRAME_ERROR:
				return take_error(link, frame, err);
			case TDM_FRAME_CLOSE:
				link->state = BROKEN;
				return TDM_END;
			case TDM_FRAME_HELLO:
			case TDM_FRAME_AUTH:
				return break_off(link, err, TDM_ERR_PEER, "a second HELLO or AUTH");
			default:
				return TDM_OK;
			}
		}
		if (frame->type == TDM_FRAME_ERROR) {
			return take_error(link, frame, err);
		}
		if (frame->type == TDM_FRAME_HELLO && link->state == AWAITS_HELLO) {
			status = take_hello(link, frame, err);
		} else if (frame->type == TDM_FRAME_AUTH && link->state == AWAITS_AUTH) {
			status = take_auth(link, frame, err);
		} else {
			status = break_off(link, err, TDM_ERR_PEER,
				link->state == AWAITS_HELLO ? "HELLO is wanted first"
							    : "AUTH is wanted next");
		}
		if (status != TDM_OK) {
			return status;
		}
	}
	return tdm_fail(err, TDM_ERR_PEER, "the connection has ended");
}

enum tdm_status tdm_link_fill(struct tdm_link *link, struct tdm_error *err)
{
	size_t room, got;
	uint8_t *to = tdm_frame_room(&link->reader, &room);
	const enum tdm_status status =
		link->has_stamps
			? tdm_stamps_receive(link->fd, to, room, &got, &link->received_ns, err)
			: tdm_socket_receive(link->fd, to, room, &got, err);

	if (status == TDM_OK) {
		tdm_frame_received(&link->reader, got);
	}
	return status;
}

enum tdm_status tdm_link_receive(struct tdm_link *link, struct tdm_frame *frame,
	uint64_t deadline_ns, int stop_fd, struct tdm_error *err)
{
	bool is_ready = link->state == READY;

	for (;;) {
		enum tdm_status status = tdm_link_next(link, frame, err);

		/* A client that waits to become ready is served by the change of state. */
		if (status != TDM_AGAIN || (!is_ready && link->state == READY)) {
			return status;
		}
		is_ready = link->state == READY;
		status = tdm_link_fill(link, err);
		if (status == TDM_END) {
			link->state = BROKEN;
			return tdm_fail(err, TDM_ERR_PEER, "the peer closed the connection");
		}
		if (status == TDM_AGAIN) {
			const uint64_t now_ns = tdm_now_ns();

			if (now_ns >= deadline_ns || (tdm_socket_wait(link->fd, TDM_WAIT_READ,
							      stop_fd, deadline_ns) == TDM_OK &&
							     tdm_socket_is_stopped(stop_fd))) {
				return TDM_AGAIN;
			}
		} else if (status != TDM_OK) {
			link->state = BROKEN;
			return status;
		}
	}
}

enum tdm_status tdm_link_pack(struct tdm_link *link, enum tdm_frame_type type, const void *body,
	size_t size, struct tdm_buffer *to)
{
	if (size > TDM_FRAME_MAX_BYTES - TDM_TAG_BYTES) {
		return TDM_ERR_RANGE;
	}
	if (tdm_buffer_reserve(to, TDM_FRAME_HEADER_BYTES + size + TDM_TAG_BYTES) != TDM_OK) {
		return TDM_ERR_NOMEM;
	}

	uint8_t *frame = to->bytes + to->size;

	if (size) {
		memcpy(frame + TDM_FRAME_HEADER_BYTES, body, size);
	}
	to->size += seal(link, frame, (uint16_t)type, size);
	return TDM_OK;
}

enum tdm_status tdm_link_send(struct tdm_link *link, enum tdm_frame_type type, const void *body,
	size_t size, uint64_t deadline_ns, struct tdm_error *err)
{
	if (link->state == BROKEN) {
		return tdm_fail(err, TDM_ERR_PEER, "the connection has ended");
	}
	if (size > TDM_FRAME_MAX_BYTES - TDM_TAG_BYTES) {
		return tdm_fail(err, TDM_ERR_RANGE, "a frame of %zu bytes is too long", size);
	}
	if (!link->out) {
		link->out = malloc(FRAME_ROOM);
		if (!link->out) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a frame");
		}
	}
	if (size) {
		memcpy(link->out + TDM_FRAME_HEADER_BYTES, body, size);
	}

	const size_t whole = seal(link, link->out, (uint16_t)type, size);
	const enum tdm_status status =
		tdm_socket_send(link->fd, link->out, whole, deadline_ns, err);

	if (status != TDM_OK) {
		/* Part of a frame may be out: nothing can follow it. */
		link->state = BROKEN;
	}
	return status;
}

uint8_t *tdm_link_message(struct tdm_link *link)
{
	return link->message_frame + TDM_FRAME_HEADER_BYTES;
}

enum tdm_status tdm_link_send_message(struct tdm_link *link, struct tdm_error *err)
{
	const size_t whole = seal(link, link->message_frame, TDM_FRAME_EXCHANGE, TDM_MESSAGE_BYTES);
	enum tdm_status status;

	if (link->state == BROKEN) {
		return tdm_fail(err, TDM_ERR_PEER, "the connection has ended");
	}
	if (link->has_stamps) {
		status = tdm_stamps_send(link->fd, link->message_frame, whole, err);
	} else {
		size_t sent;

		status = tdm_socket_send_some(link->fd, link->message_frame, whole, &sent, err);
		if (status == TDM_AGAIN || (status == TDM_OK && sent < whole)) {
			status = tdm_fail(err, TDM_ERR_PEER, "the peer takes no data");
		}
	}
	if (status != TDM_OK) {
		link->state = BROKEN;
	}
	return status;
}

enum tdm_status tdm_link_stamps_begin(struct tdm_link *link, struct tdm_error *err)
{
	const enum tdm_status status = tdm_stamps_begin(link->fd, err);

	link->has_stamps = status == TDM_OK;
	link->has_stamp_base = false;
	link->received_ns = 0;
	return status;
}

void tdm_link_stamps_end(struct tdm_link *link)
{
	if (link->has_stamps) {
		tdm_stamps_end(link->fd);
		link->has_stamps = false;
		link->received_ns = 0;
	}
}

uint64_t tdm_link_received_ns(const struct tdm_link *link)
{
	return link->received_ns;
}

bool tdm_link_sent_ns(struct tdm_link *link, uint32_t *number, uint64_t *stamp_ns)
{
	const uint32_t frame_bytes = TDM_FRAME_HEADER_BYTES + TDM_MESSAGE_BYTES +
				     (link->is_proven ? (uint32_t)TDM_TAG_BYTES : 0);
	uint32_t last_byte;

	while (link->has_stamps && tdm_stamps_fetch_sent(link->fd, &last_byte, stamp_ns)) {
		/*
		 * All frames since stamps began are messages of one size. Kernels before 6.2 count from what was
		 * acknowledged when stamps began, so the first report, which is the first message's, is the base.
		 */
		if (!link->has_stamp_base) {
			link->stamp_base = last_byte + 1 - frame_bytes;
			link->has_stamp_base = true;
		}

		const uint32_t end = last_byte + 1 - link->stamp_base;

		if (end % frame_bytes == 0 && *stamp_ns != 0) {
			*number = end / frame_bytes - 1;
			return true;
		}
	}
	return false;
}
