/* SPDX-License-Identifier: MIT */
/*
 * tracecmd.h - the recording side of the protocol that "trace-cmd agent" speaks (version 3), against any such agent.
 *
 * The order is the protocol's: open, sync rounds, texts, pages, close. The agent serves one session at a time and has
 * neither authentication nor time limits; here every wait has one.
 */
#ifndef TANDEM_TRACECMD_H
#define TANDEM_TRACECMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/address.h>
#include <tandem/buffer.h>
#include <tandem/log.h>
#include <tandem/status.h>

enum {
	TDM_TRACECMD_PROBES = 339, /* of one series: what fits the protocol's largest message */
	TDM_TRACECMD_DEFAULT_PORT = 823,
	TDM_TRACECMD_MAX_CPUS = 4096
};

struct tdm_tracecmd;

struct tdm_tracecmd_options {
	const struct tdm_address *address; /* numeric */
	uint64_t trace_id;                 /* of the host's file */
	const char *const
		*arguments; /* of the agent's "record": "-C", "mono", "-e", "sched", ... */
	size_t argument_count;
	bool sync;           /* offer ptp */
	uint32_t timeout_ms; /* of every wait; 0 = 10 s */
	int stop_fd;         /* readable: give up connecting (TDM_AGAIN); 0 = none */
};

/**
 * Connects, asks for a trace and takes the answer; with sync also connects to the agent's sync port.
 *
 * @return A session that the caller owns, or NULL with @p err filled: the agent is busy, refused, or is none.
 */
struct tdm_tracecmd *tdm_tracecmd_open(const struct tdm_tracecmd_options *options,
	const struct tdm_log *log, struct tdm_error *err);

/** Closes all connections; NULL is fine. */
void tdm_tracecmd_destroy(struct tdm_tracecmd *session);

/* What the agent answered. */
struct tdm_tracecmd_info {
	uint64_t trace_id;
	uint32_t cpu_count;
	uint32_t page_bytes;
	bool syncs; /* ptp was agreed on */
};

struct tdm_tracecmd_info tdm_tracecmd_get_info(const struct tdm_tracecmd *session);

/* Host readings of one probe and of its neighbours, in the unit of the caller's clock. */
struct tdm_tracecmd_probe {
	uint64_t host_got, host_sent;
};

/* One series. The agent keeps its own readings to itself but for the probe that it found best. */
struct tdm_tracecmd_series {
	struct tdm_tracecmd_probe probes[TDM_TRACECMD_PROBES];
	uint32_t probe_count;
	int64_t guest_mid; /* guest reading half way between its two stamps of the best probe */
	int64_t offset; /* host reading of that probe minus guest_mid, as the agent computed it */
	bool has_best;  /* best is known: offset and mid name one of our readings */
	uint32_t best;  /* index into probes */
	uint64_t host_least,
		host_most; /* with has_best: the host clock at guest_mid lies in here, whatever the path */
};

/**
 * Runs one series on a guest CPU. The first thing after opening: the agent waits for it before anything else.
 *
 * @param read_clock  Reads the host's trace clock; called right behind receiving and in front of sending.
 * @param series      Receives it.
 * @retval TDM_ERR_PEER  The agent broke off or is silent; no further series can be run.
 */
enum tdm_status tdm_tracecmd_sync(struct tdm_tracecmd *session, uint32_t cpu,
	uint64_t (*read_clock)(void *user), void *user, struct tdm_tracecmd_series *series,
	struct tdm_error *err);

/** Receives the texts: the beginning of a version 7 trace.dat. @p bytes is appended to. */
enum tdm_status tdm_tracecmd_receive_texts(
	struct tdm_tracecmd *session, struct tdm_buffer *bytes, struct tdm_error *err);

/** Connects to the pages of a CPU: whole ring-buffer pages until end of file. @p fd is owned by the caller. */
enum tdm_status tdm_tracecmd_connect_pages(
	struct tdm_tracecmd *session, uint32_t cpu, int *fd, struct tdm_error *err);

/** Tells the agent to stop tracing and to flush its rings into the page connections. */
enum tdm_status tdm_tracecmd_stop(struct tdm_tracecmd *session, struct tdm_error *err);

/** After the last series: ends the sync connection and waits for the agent's farewell. */
enum tdm_status tdm_tracecmd_finish(struct tdm_tracecmd *session, struct tdm_error *err);

#endif
