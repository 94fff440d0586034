/* SPDX-License-Identifier: MIT */
/*
 * sync_link.h - one Tandem connection: HELLO, AUTH, OPEN, then frames whose sender is proven.
 *
 * The same object serves both ends, and both ways of waiting: tdm_link_next() never waits (for event loops),
 * tdm_link_receive() waits up to a deadline. A link is used by one thread at a time.
 */
#ifndef TANDEM_SYNC_LINK_H
#define TANDEM_SYNC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/framing.h>
#include <tandem/secret.h>
#include <tandem/socket.h>
#include <tandem/wire.h>

struct tdm_link; /* opaque: only sync_link.c knows the layout */

struct tdm_link_options {
	const struct tdm_secret
		*secret;       /* borrowed for the life of the link; NULL or not set = none */
	uint32_t capabilities; /* bits of enum tdm_capability */
	bool wants_proof;      /* server: this peer is granted nothing without the secret */
	int stop_fd; /* client: readable where it shall give up connecting (TDM_AGAIN); 0 = none */
};

/**
 * Makes a link of a connected socket and sends HELLO.
 *
 * @param fd    Taken: closed by tdm_link_destroy(), on failure at once.
 * @return The link, owned by the caller, or NULL with @p err filled.
 */
struct tdm_link *tdm_link_create(
	int fd, enum tdm_role role, const struct tdm_link_options *options, struct tdm_error *err);

/**
 * Connects, proves and opens: the client's whole beginning.
 *
 * @param open    The OPEN body (tdm_open_put(), tdm_record_add()).
 * @param answer_ms  How long the answer to OPEN may take where the connection stands; 0 = until @p deadline_ns.
 * @param opened  Receives the server's answer; its text lives until the next call on the link. May be NULL.
 * @retval TDM_ERR_PEER  Refused, or no answer in time; @p err says what the peer gave as reason.
 * @retval TDM_AGAIN     The options' stop_fd became readable.
 */
enum tdm_status tdm_link_open(const struct tdm_address *address,
	const struct tdm_link_options *options, const struct tdm_buffer *open, uint64_t deadline_ns,
	uint32_t answer_ms, struct tdm_link **link, struct tdm_opened *opened,
	struct tdm_error *err);

/** The first half of tdm_link_open(): connects and proves. */
enum tdm_status tdm_link_greet(const struct tdm_address *address,
	const struct tdm_link_options *options, uint64_t deadline_ns, struct tdm_link **link,
	struct tdm_error *err);

/** The second half: sends OPEN and waits for OPENED; @p stop_fd as for tdm_link_receive(). */
enum tdm_status tdm_link_request(struct tdm_link *link, const struct tdm_buffer *open,
	uint64_t deadline_ns, int stop_fd, struct tdm_opened *opened, struct tdm_error *err);

/** Closes the socket; says CLOSE first where that needs no wait. NULL is fine. */
void tdm_link_destroy(struct tdm_link *link);

int tdm_link_fd(const struct tdm_link *link);

/** True once HELLO, and AUTH where it is wanted, are done. */
bool tdm_link_is_ready(const struct tdm_link *link);

/** True where the peer has proven the secret. */
bool tdm_link_is_proven(const struct tdm_link *link);

/** A key that both ends can derive once the link is proven; see tdm_session_derive(). */
void tdm_link_derive(const struct tdm_link *link, enum tdm_role sender, const char *label,
	uint8_t key[TDM_KEY_BYTES]);

/**
 * Receives once, without waiting, into the link's buffer. The caller may read clocks right after it.
 *
 * @retval TDM_AGAIN     Nothing was there.
 * @retval TDM_END       The peer has closed its side.
 * @retval TDM_ERR_PEER  The connection broke.
 */
enum tdm_status tdm_link_fill(struct tdm_link *link, struct tdm_error *err);

/**
 * The next frame of those that tdm_link_fill() received; HELLO and AUTH are dealt with inside.
 *
 * @retval TDM_OK        @p frame holds one, its tag checked and taken off.
 * @retval TDM_AGAIN     More bytes are needed: fill again.
 * @retval TDM_END       The peer said CLOSE.
 * @retval TDM_ERR_PEER  The peer broke the protocol, failed the proof, or gave a reason (ERROR): "peer says: ...".
 *                       Where it is the peer's fault, ERROR was sent to it.
 */
enum tdm_status tdm_link_next(
	struct tdm_link *link, struct tdm_frame *frame, struct tdm_error *err);

/**
 * Waits for a frame. The same results as tdm_link_next(), TDM_AGAIN at the deadline; TDM_ERR_PEER also where the
 * peer is gone without CLOSE.
 *
 * @param stop_fd  Becomes readable when waiting should end early (TDM_AGAIN); -1 = none.
 */
enum tdm_status tdm_link_receive(struct tdm_link *link, struct tdm_frame *frame,
	uint64_t deadline_ns, int stop_fd, struct tdm_error *err);

/** Sends one frame by one call. Waits for room up to the deadline. */
enum tdm_status tdm_link_send(struct tdm_link *link, enum tdm_frame_type type, const void *body,
	size_t size, uint64_t deadline_ns, struct tdm_error *err);

/**
 * Sends an exchange message that the caller wrote to @p message (of tdm_link_message()): no copy, no wait.
 *
 * @retval TDM_ERR_PEER  No room: a peer that does not read what it asked for.
 */
enum tdm_status tdm_link_send_message(struct tdm_link *link, struct tdm_error *err);
uint8_t *tdm_link_message(struct tdm_link *link);

/** Sends ERROR with a reason, as far as that needs no wait. */
void tdm_link_refuse(struct tdm_link *link, const char *reason);

/** A frame made beforehand for loops that send piecewise: header, body, tag. */
enum tdm_status tdm_link_pack(struct tdm_link *link, enum tdm_frame_type type, const void *body,
	size_t size, struct tdm_buffer *to);

/* Kernel stamps of exchange messages: see stamps.h. */
enum tdm_status tdm_link_stamps_begin(struct tdm_link *link, struct tdm_error *err);
void tdm_link_stamps_end(struct tdm_link *link);

/** CLOCK_REALTIME at the arrival of what the last tdm_link_fill() received; 0 = none. */
uint64_t tdm_link_received_ns(const struct tdm_link *link);

/** The stamp of a message sent since stamps began: its number, from 0, and CLOCK_REALTIME. False: none has come. */
bool tdm_link_sent_ns(struct tdm_link *link, uint32_t *number, uint64_t *stamp_ns);

#endif
