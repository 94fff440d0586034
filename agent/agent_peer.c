/* SPDX-License-Identifier: MIT */
#include "agent.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	STACK_BYTES = 256 * 1024
};

/* What the agent serves: who may have it, and the function that runs in the session's thread. */
static const struct purpose_rule {
	enum tdm_purpose purpose;
	bool needs_trust;
	enum tdm_status (*run)(
		struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err);
} purpose_rules[] = {
	{ TDM_PURPOSE_EXCHANGE, false, agent_exchange_session },
	{ TDM_PURPOSE_STREAM, true, agent_stream_session },
};

static const struct purpose_rule *find_rule(enum tdm_purpose purpose)
{
	for (size_t i = 0; i < sizeof(purpose_rules) / sizeof(purpose_rules[0]); i++) {
		if (purpose_rules[i].purpose == purpose) {
			return &purpose_rules[i];
		}
	}
	return NULL;
}

/* A process of root on this machine, or one of the host that could bind a port below 1024. */
static bool is_trusted(const struct tdm_peer *who)
{
	enum {
		HOST_CID = 2,
		PRIVILEGED_PORTS = 1024
	};

	return (who->kind == TDM_ADDRESS_UNIX && who->uid == 0) ||
	       (who->kind == TDM_ADDRESS_VSOCK && who->cid == HOST_CID &&
		       who->port < PRIVILEGED_PORTS);
}

bool agent_peer_may_trace(const struct agent_peer *peer)
{
	return peer->is_trusted || tdm_link_is_proven(peer->link);
}

static void unlink_peer(struct agent_peer *peer)
{
	struct agent *agent = peer->agent;

	*(peer->previous ? &peer->previous->next : &agent->first) = peer->next;
	*(peer->next ? &peer->next->previous : &agent->last) = peer->previous;
}

static void free_peer(struct agent_peer *peer)
{
	unlink_peer(peer);
	/* Closing the socket takes it out of the epoll set. */
	tdm_link_destroy(peer->link);
	tdm_buffer_release(&peer->open_body);
	free(peer);
}

static void drop_greeting(struct agent_peer *peer)
{
	peer->agent->greeting_count--;
	free_peer(peer);
}

static struct agent_peer *oldest_greeting(const struct agent *agent)
{
	for (struct agent_peer *peer = agent->first; peer; peer = peer->next) {
		if (peer->state == PEER_GREETING) {
			return peer;
		}
	}
	return NULL;
}

void agent_peer_shed(struct agent *agent)
{
	struct agent_peer *oldest = oldest_greeting(agent);

	if (oldest) {
		agent_log_peer(agent, oldest, "closed: no file descriptors are left");
		drop_greeting(oldest);
	}
}

void agent_peer_add(struct agent *agent, int fd, const struct tdm_peer *who)
{
	/* Whoever has been silent longest goes: a host that means it needs a millisecond to say OPEN. */
	if (agent->greeting_count >= AGENT_GREETING_MAX) {
		struct agent_peer *oldest = oldest_greeting(agent);

		agent_log_peer(agent, oldest, "closed: too many connections that do nothing");
		drop_greeting(oldest);
	}

	struct agent_peer *peer = calloc(1, sizeof(*peer));

	if (!peer) {
		close(fd);
		return;
	}
	peer->agent = agent;
	peer->who = *who;
	peer->fd = fd;
	peer->is_trusted = is_trusted(who);
	peer->arrived_ns = tdm_now_ns();
	peer->open_body.cap = TDM_FRAME_MAX_BYTES;

	const struct tdm_link_options options = { .secret = &agent->options->secret,
		.capabilities = TDM_CAN_EXCHANGE | TDM_CAN_DATAGRAMS | TDM_CAN_STREAM,
		.wants_proof = agent->options->secret.is_set && !peer->is_trusted };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uintptr_t)peer };
	struct tdm_error err;

	peer->link = tdm_link_create(fd, TDM_ROLE_SERVER, &options, &err);
	if (!peer->link) {
		free(peer);
		return;
	}
	if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		tdm_link_destroy(peer->link);
		free(peer);
		return;
	}
	peer->previous = agent->last;
	*(agent->last ? &agent->last->next : &agent->first) = peer;
	agent->last = peer;
	agent->greeting_count++;
}

static enum tdm_status run_opened(struct agent_peer *peer, struct tdm_error *err)
{
	struct tdm_open open;
	const enum tdm_status status =
		tdm_open_get(peer->open_body.bytes, peer->open_body.size, &open, err);

	return status == TDM_OK ? find_rule(open.purpose)->run(peer, &open, err) : status;
}

static void *session_main(void *user)
{
	struct agent_peer *peer = user;
	struct agent *agent = peer->agent;
	struct tdm_error err = { 0 };
	const enum tdm_status status =
		peer->is_tracecmd ? agent_tracecmd_session(peer, &err) : run_opened(peer, &err);

	if (status != TDM_OK && status != TDM_END) {
		agent_log_peer(agent, peer, err.text);
	}

	const uint64_t one = 1;

	peer->state = PEER_OVER;
	/* An eventfd takes it; were it full, the loop would be awake already. */
	(void)!write(agent->reap_fd, &one, sizeof(one));
	return NULL;
}

/* Room for a session of somebody nothing is known of, if need be by ending one that is silent. */
static bool make_room(struct agent *agent)
{
	const uint64_t now_ns = tdm_now_ns();
	struct agent_peer *idlest = NULL;

	if (agent->unproven_count < AGENT_UNPROVEN_MAX) {
		return true;
	}
	for (struct agent_peer *peer = agent->first; peer; peer = peer->next) {
		if (peer->state == PEER_SESSION && !agent_peer_may_trace(peer) &&
			(!idlest || peer->active_ns < idlest->active_ns)) {
			idlest = peer;
		}
	}
	if (idlest && now_ns - idlest->active_ns > (uint64_t)AGENT_EVICT_IDLE_MS * 1000000) {
		/* Its thread sees the end of the connection; the place is free when it is joined. */
		tdm_socket_abort(idlest->fd);
	}
	return false;
}

/* OPEN has come: is it for something that this peer may have? NULL: yes. */
static const char *refuse_open(
	struct agent_peer *peer, const struct tdm_frame *frame, struct tdm_error *err)
{
	struct agent *agent = peer->agent;
	struct tdm_open open;

	if (frame->type != TDM_FRAME_OPEN) {
		return "OPEN is wanted next";
	}
	if (tdm_open_get(frame->body, frame->size_bytes, &open, err) != TDM_OK) {
		return err->text;
	}

	const struct purpose_rule *rule = find_rule(open.purpose);

	if (!rule) {
		return "not served by this agent: it answers time exchanges and streams traces";
	}
	if (rule->needs_trust && !agent_peer_may_trace(peer)) {
		return "not without the secret";
	}
	if (agent->session_count >= AGENT_SESSION_MAX ||
		(!agent_peer_may_trace(peer) && !make_room(agent))) {
		return "too many sessions; try again later";
	}
	return NULL;
}

static bool start_thread(struct agent_peer *peer)
{
	pthread_attr_t attr;

	peer->state = PEER_SESSION;
	peer->active_ns = tdm_now_ns();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);

	const int failure = pthread_create(&peer->thread, &attr, session_main, peer);

	pthread_attr_destroy(&attr);
	return failure == 0;
}

static bool start_session(struct agent_peer *peer, const struct tdm_frame *frame)
{
	struct agent *agent = peer->agent;

	if (tdm_buffer_append(&peer->open_body, frame->body, frame->size_bytes) != TDM_OK) {
		return false;
	}
	epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
	if (!start_thread(peer)) {
		peer->state = PEER_GREETING;
		return false;
	}
	agent->greeting_count--;
	agent->session_count++;
	agent->unproven_count += !agent_peer_may_trace(peer);
	return true;
}

/* Makes room by ending the connection that has been silent longest. False: all have said what they want. */
static bool end_silent(struct agent *agent)
{
	bool ended = false;

	pthread_mutex_lock(&agent->tracecmd_lock);
	for (struct agent_peer *peer = agent->first; peer && !ended; peer = peer->next) {
		if (peer->is_tracecmd && peer->is_silent) {
			tdm_socket_abort(peer->fd);
			peer->is_silent = false;
			ended = true;
		}
	}
	pthread_mutex_unlock(&agent->tracecmd_lock);
	return ended;
}

/*
 * The protocol proves nothing, so the place has to: the host of vsock, root on this machine, or whoever reaches an address
 * that the command line opened for it. NULL: it may.
 */
static const char *refuse_tracecmd(struct agent *agent, const struct tdm_peer *who)
{
	enum {
		HOST_CID = 2
	};

	uint32_t uid = 0;

	if (who->kind == TDM_ADDRESS_VSOCK) {
		return who->cid == HOST_CID ? NULL : "trace-cmd is served to the host only";
	}
	if (who->is_loopback && !(tdm_socket_loopback_uid(who, &uid) && uid == 0)) {
		return "trace-cmd is served to root only on this machine";
	}
	return agent->tracecmd_count < AGENT_TRACECMD_MAX || end_silent(agent)
		       ? NULL
		       : "too many sessions of trace-cmd";
}

void agent_peer_add_tracecmd(struct agent *agent, int fd, const struct tdm_peer *who)
{
	struct agent_peer *peer = calloc(1, sizeof(*peer));
	const char *reason = refuse_tracecmd(agent, who);

	if (!peer) {
		close(fd);
		return;
	}
	*peer = (struct agent_peer){
		.agent = agent, .who = *who, .fd = fd, .is_tracecmd = true, .is_silent = true
	};
	/* May do what this protocol can: nothing else looks at it. */
	peer->is_trusted = true;
	if (reason) {
		agent_log_peer(agent, peer, reason);
	} else if (start_thread(peer)) {
		peer->previous = agent->last;
		*(agent->last ? &agent->last->next : &agent->first) = peer;
		agent->last = peer;
		agent->session_count++;
		agent->tracecmd_count++;
		return;
	}
	close(fd);
	free(peer);
}

void agent_peer_greet(struct agent_peer *peer)
{
	struct tdm_error err = { 0 };
	struct tdm_frame frame;
	enum tdm_status status = tdm_link_fill(peer->link, &err);

	if (status == TDM_END) {
		/* Somebody looked whether we are here; nothing to say. */
		drop_greeting(peer);
		return;
	}
	if (status == TDM_OK) {
		status = tdm_link_next(peer->link, &frame, &err);
	}
	if (status == TDM_AGAIN) {
		return;
	}
	if (status == TDM_OK) {
		const char *reason = refuse_open(peer, &frame, &err);

		if (!reason && start_session(peer, &frame)) {
			return;
		}
		reason = reason ? reason : "no memory for a session";
		tdm_link_refuse(peer->link, reason);
		tdm_fail(&err, TDM_ERR_PEER, "refused: %s", reason);
		status = TDM_ERR_PEER;
	}
	if (status != TDM_END) {
		agent_log_peer(peer->agent, peer, err.text);
	}
	drop_greeting(peer);
}

uint64_t agent_peer_expire(struct agent *agent)
{
	const uint64_t now_ns = tdm_now_ns();

	for (struct agent_peer *peer = agent->first, *next; peer; peer = next) {
		next = peer->next;
		if (peer->state != PEER_GREETING) {
			continue;
		}

		const uint64_t ends_ns = peer->arrived_ns + (uint64_t)AGENT_GREETING_MS * 1000000;

		if (now_ns < ends_ns) {
			return ends_ns; /* those behind it came later */
		}
		agent_log_peer(agent, peer, "closed: it did not say what it wants");
		tdm_link_refuse(peer->link, "too slow: OPEN was wanted within 10 s");
		drop_greeting(peer);
	}
	return UINT64_MAX;
}

void agent_peer_reap(struct agent *agent)
{
	uint64_t count;

	(void)!read(agent->reap_fd, &count, sizeof(count));
	for (struct agent_peer *peer = agent->first, *next; peer; peer = next) {
		next = peer->next;
		if (peer->state == PEER_OVER) {
			pthread_join(peer->thread, NULL);
			agent->session_count--;
			agent->tracecmd_count -= peer->is_tracecmd;
			agent->unproven_count -= !agent_peer_may_trace(peer);
			free_peer(peer);
		}
	}
}

void agent_peer_end_all(struct agent *agent)
{
	while (agent->first) {
		struct agent_peer *peer = agent->first;

		if (peer->state == PEER_GREETING) {
			drop_greeting(peer);
		} else {
			pthread_join(peer->thread, NULL);
			free_peer(peer);
		}
	}
}
