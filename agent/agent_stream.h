/* SPDX-License-Identifier: MIT */
/*
 * agent_stream.h - trace sessions that hosts have asked for: one control connection each, and its page connections.
 */
#ifndef AGENT_STREAM_H
#define AGENT_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tandem/clocks.h>
#include <tandem/stream.h>
#include <tandem/tap.h>

enum stream_state {
	STREAM_PREPARED, /* tracing is off */
	STREAM_RUNNING,
	STREAM_STOPPED, /* what is left goes out */
	STREAM_BROKEN,  /* the host has gone: nothing goes out any more */
};

/* One session. Lives until its control connection and all its page connections are done. */
struct stream_session {
	struct stream_session *next;
	char token[2 * TDM_STREAM_TOKEN_BYTES + 1];
	struct tdm_tap *tap;
	bool sealed;
	bool live;            /* also pages that are not full, and empty ones that tell the time */
	enum tdm_clock clock; /* of its stamps; for live */
	unsigned int users;   /* connections that hold it; guarded by the list's lock */
	_Atomic int state;
	int control_fd; /* of the control connection, for tdm_socket_abort() */
	int wake_fd;    /* eventfd: readable once the state has left RUNNING, for good */
	_Atomic unsigned int open_pages; /* page connections that still send */
	_Atomic uint64_t sent_bytes;
	uint8_t *cpu_taken; /* by CPU; guarded by the list's lock */
};

/* All sessions of an agent. */
struct stream_list {
	pthread_mutex_t lock;
	struct stream_session *first;
};

void stream_list_init(struct stream_list *list);
void stream_list_release(struct stream_list *list);

/** Makes a session and holds it once. The tap is taken. NULL without memory; then the tap is destroyed. */
struct stream_session *stream_session_create(
	struct stream_list *list, struct tdm_tap *tap, bool sealed, struct tdm_error *err);

/** Finds the session of a token and holds it for the pages of a CPU; NULL with @p err: unknown, or the CPU is taken. */
struct stream_session *stream_session_join(
	struct stream_list *list, const char *token, uint64_t cpu, struct tdm_error *err);

/** Changes the state, and wakes whoever waits when it leaves RUNNING. */
void stream_session_set_state(
	struct stream_list *list, struct stream_session *session, enum stream_state state);

/** Ends the control connection of a session that still runs: its host has gone and it may never notice by itself. */
void stream_session_abort(struct stream_list *list, struct stream_session *session);

/** Gives a hold back; the last one removes the trace instance. */
void stream_session_leave(struct stream_list *list, struct stream_session *session);

/* ring_tap.c */

/**
 * Sends the pages of a CPU until the session stops: in its own thread, on a socket that carries nothing else any more.
 *
 * @param fd       Borrowed; finished at the end.
 * @param key      To seal them with; NULL = they go bare. Borrowed.
 * @param stop_fd  Readable when the agent ends.
 */
enum tdm_status ring_tap_run(struct stream_session *session, int fd, const uint8_t *key,
	uint32_t cpu, int stop_fd, struct tdm_error *err);

#endif
