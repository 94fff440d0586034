/* SPDX-License-Identifier: MIT */
/*
 * agent.h - the agent's state, and the parts it is made of: a loop that greets, and a thread for each session.
 */
#ifndef AGENT_H
#define AGENT_H

#include "agent_clock.h"
#include "agent_options.h"
#include "agent_stream.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tandem/log.h>
#include <tandem/sync_link.h>

enum {
	AGENT_GREETING_MAX = 512,   /* connections that have not said OPEN; the oldest makes room */
	AGENT_GREETING_MS = 10000,  /* to say OPEN */
	AGENT_SESSION_MAX = 4096,   /* a trace takes one for each CPU and one */
	AGENT_UNPROVEN_MAX = 64,    /* sessions of peers that nothing is known of */
	AGENT_EVICT_IDLE_MS = 5000, /* of those, one that was silent so long makes room */
	AGENT_SESSION_IDLE_MS = 90000,
	AGENT_TRACECMD_MAX =
		32 /* sessions of trace-cmd, those included that have not said what they want */
};

enum agent_peer_state {
	PEER_GREETING, /* in the loop */
	PEER_SESSION,  /* in its thread */
	PEER_OVER      /* its thread has ended: to be joined */
};

struct agent;

/* One connection. */
struct agent_peer {
	struct agent *agent;
	struct agent_peer *next, *previous; /* in order of arrival */
	struct tdm_peer who;
	struct tdm_link *link;
	bool is_trusted; /* by where it comes from: root on a UNIX socket, a privileged port of the vsock host */
	_Atomic int state;
	_Atomic uint64_t active_ns;
	uint64_t arrived_ns;
	pthread_t thread;
	int fd;           /* the link's, for shutdown() from the loop */
	bool is_tracecmd; /* speaks trace-cmd's protocol: no link */
	bool is_silent; /* of trace-cmd, has not asked yet; guarded by tracecmd_lock, and so is its fd until then */
	struct tdm_buffer open_body;
};

struct agent {
	const struct agent_options *options;
	struct tdm_log log;
	struct agent_clock clock;
	int epoll_fd;
	int signal_fd;
	int stop_fd; /* eventfd: readable once the agent ends */
	int reap_fd; /* eventfd: a session's thread has ended */
	int listeners[AGENT_LISTEN_MAX];
	struct agent_peer *first, *last;
	struct stream_list streams;
	unsigned int greeting_count, session_count, unproven_count, tracecmd_count;
	pthread_mutex_t tracecmd_lock;
	/* Peers' faults are said at most so often: a flood of them must not fill the log. */
	struct tdm_log_limit log_limit;
};

/* agent_loop.c */

/** Listens, then serves until a signal. @return The exit status. */
int agent_run(const struct agent_options *options);

/** Says what a peer did wrong, one line, at most ten in ten seconds. Thread-safe. */
void agent_log_peer(struct agent *agent, const struct agent_peer *peer, const char *text);

/* agent_peer.c */

/** Takes a connection into the loop. */
void agent_peer_add(struct agent *agent, int fd, const struct tdm_peer *who);

/** Takes a connection for trace-cmd's protocol and starts its thread, where its peer may have it. */
void agent_peer_add_tracecmd(struct agent *agent, int fd, const struct tdm_peer *who);

/** Goes on with a greeting whose socket is readable. */
void agent_peer_greet(struct agent_peer *peer);

/** Closes what took too long. @return When to look again, CLOCK_MONOTONIC ns; UINT64_MAX = no need. */
uint64_t agent_peer_expire(struct agent *agent);

/** Closes the oldest connection that has not said OPEN, because descriptors ran out. */
void agent_peer_shed(struct agent *agent);

/** Joins the threads of sessions that are over. */
void agent_peer_reap(struct agent *agent);

/** Closes everything; sessions' threads were told to stop. */
void agent_peer_end_all(struct agent *agent);

/** True where the peer may do more than ask for the time. */
bool agent_peer_may_trace(const struct agent_peer *peer);

/* agent_exchange.c: the session of purpose exchange, in its thread. */
enum tdm_status agent_exchange_session(
	struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err);

/* agent_stream.c: the sessions of purpose stream, control and pages, each in its thread. */
enum tdm_status agent_stream_session(
	struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err);

/* agent_tracecmd.c: one session of "trace-cmd record -A", in its thread; takes the peer's descriptor. */
enum tdm_status agent_tracecmd_session(struct agent_peer *peer, struct tdm_error *err);

#endif
