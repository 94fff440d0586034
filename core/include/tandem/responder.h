/* SPDX-License-Identifier: MIT */
/*
 * responder.h - the answering end of time exchanges: one session, in a thread of its own.
 */
#ifndef TANDEM_RESPONDER_H
#define TANDEM_RESPONDER_H

#include <tandem/local_clock.h>
#include <tandem/sync_link.h>

/* What the host program knows. Each may be NULL. Called from the session's thread, never within a burst. */
struct tdm_responder_hooks {
	void *user;

	/* Before a burst begins: look for suspends and steps. @return The epoch that replies carry. */
	uint32_t (*epoch)(void *user);

	/* May kernel stamps go on now? They patch kernel text: at most once a second in the whole program. */
	bool (*may_stamp)(void *user);

	/* Every tick_ms outside bursts. */
	void (*tick)(void *user);

	/* After a burst: append lines about the own clocks ("l", "e", "cpu"; docs/sync-protocol). */
	enum tdm_status (*notes)(void *user, struct tdm_buffer *to);
};

struct tdm_responder_options {
	uint32_t session;
	struct tdm_local_clock *clock; /* borrowed */
	uint16_t peer_port;            /* of the client's datagrams; 0 = none */
	uint32_t idle_ms;              /* a client that asks nothing for so long is let go */
	uint32_t tick_ms;              /* 0 = no ticks: an idle session never wakes */
	int stop_fd;                   /* readable when the program ends; -1 = none */
	struct tdm_responder_hooks hooks;
};

struct tdm_responder; /* opaque */

/**
 * Prepares a session on a link that is ready: binds datagrams, reserves and locks memory.
 *
 * @param link           Borrowed; must outlive the responder.
 * @param datagram_port  Receives the own port, 0 = no datagrams.
 */
struct tdm_responder *tdm_responder_create(struct tdm_link *link,
	const struct tdm_responder_options *options, uint16_t *datagram_port,
	struct tdm_error *err);
void tdm_responder_destroy(struct tdm_responder *responder);

/**
 * Answers until the client ends.
 *
 * @retval TDM_END       The client said CLOSE, was idle too long, or the program ends.
 * @retval TDM_ERR_PEER  It broke the protocol or went away.
 */
enum tdm_status tdm_responder_run(struct tdm_responder *responder, struct tdm_error *err);

#endif
