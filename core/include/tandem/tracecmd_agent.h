/* SPDX-License-Identifier: MIT */
/*
 * tracecmd_agent.h - the recorded side of trace-cmd's agent protocol (version 3), for an unmodified "trace-cmd record -A".
 *
 * The order is the protocol's: request, answer, sync connection, texts, page connections, close. There is neither
 * proof nor secrecy in it: who may connect, and what is recorded, is the caller's to decide. Every wait has a limit.
 */
#ifndef TANDEM_TRACECMD_AGENT_H
#define TANDEM_TRACECMD_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/socket.h>
#include <tandem/status.h>

enum {
	TDM_TRACECMD_MAX_ARGUMENTS = 1024
};

struct tdm_tracecmd_agent; /* one session */

/**
 * @param control_fd  A connection that was accepted; taken, also on failure.
 * @param who         Its peer: only the same machine gets the sync and page connections. Copied.
 * @param stop_fd     Readable when the program ends: waits then end with TDM_AGAIN. Borrowed.
 * @return Owned by the caller, or NULL with @p err filled.
 */
struct tdm_tracecmd_agent *tdm_tracecmd_agent_create(
	int control_fd, const struct tdm_peer *who, int stop_fd, struct tdm_error *err);

/** Closes all connections that are its own; NULL is fine. */
void tdm_tracecmd_agent_destroy(struct tdm_tracecmd_agent *agent);

/* What the host asked for. Strings live as long as the session. */
struct tdm_tracecmd_request {
	uint64_t host_trace_id;
	const char *const *arguments; /* of "trace-cmd record" */
	size_t argument_count;
	bool offers_ptp;
};

/** Waits at most 5 s for the request. @p request points into the session. */
enum tdm_status tdm_tracecmd_agent_receive_request(struct tdm_tracecmd_agent *agent,
	struct tdm_tracecmd_request *request, struct tdm_error *err);

/** What the answer says. */
struct tdm_tracecmd_answer {
	uint64_t trace_id; /* of this machine's trace */
	uint32_t cpu_count;
	uint32_t page_bytes;
	bool syncs; /* agree on ptp */
};

/** Listens, ports from 1500 upwards as trace-cmd's own agent, and sends the answer. */
enum tdm_status tdm_tracecmd_agent_answer(struct tdm_tracecmd_agent *agent,
	const struct tdm_tracecmd_answer *answer, struct tdm_error *err);

/** With syncs, next of all: takes the sync connection. */
enum tdm_status tdm_tracecmd_agent_accept_sync(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err);

/* How a sync thread reads its clock and goes to a CPU. */
struct tdm_tracecmd_sync {
	void (*enter_cpu)(void *user,
		uint32_t cpu); /* before a series; also relates clocks anew where need be */
	uint64_t (*read_clock)(void *user); /* the trace clock of this machine */
	void *user;
};

/**
 * Answers the host's rounds until it says STOP, in a thread of its own.
 *
 * @retval TDM_OK     The host said STOP.
 * @retval TDM_AGAIN  The program ends.
 */
enum tdm_status tdm_tracecmd_agent_serve_sync(struct tdm_tracecmd_agent *agent,
	const struct tdm_tracecmd_sync *sync, struct tdm_error *err);

/** Ends serve_sync() from another thread. */
void tdm_tracecmd_agent_abort_sync(struct tdm_tracecmd_agent *agent);

/** Sends texts, parts of the beginning of a version 7 trace.dat. */
enum tdm_status tdm_tracecmd_agent_send_texts(
	struct tdm_tracecmd_agent *agent, const void *bytes, size_t count, struct tdm_error *err);

/** Says that the texts are complete: the host goes on from here, so that by now events should be recorded. */
enum tdm_status tdm_tracecmd_agent_end_texts(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err);

/** Takes the connection for the pages of a CPU. @p fd is the caller's. */
enum tdm_status tdm_tracecmd_agent_accept_pages(
	struct tdm_tracecmd_agent *agent, uint32_t cpu, int *fd, struct tdm_error *err);

/** Waits, without limit, for the host's CLOSE. @retval TDM_ERR_PEER  The host went away without one. */
enum tdm_status tdm_tracecmd_agent_wait_close(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err);

/** Says that all pages have been sent. */
enum tdm_status tdm_tracecmd_agent_farewell(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err);

#endif
