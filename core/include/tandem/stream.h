/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a trace from another machine: the recording side, and the frames that both sides use.
 *
 * One control connection (purpose stream) asks for a trace, carries the kernel's texts and the start and stop of tracing;
 * one connection for each CPU carries its pages, as bytes without frames: bare, so that both ends can splice, or sealed.
 */
#ifndef TANDEM_STREAM_H
#define TANDEM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/sync_link.h>
#include <tandem/trace_meta.h>

/* Frames of the control connection. */
enum tdm_stream_frame {
	TDM_STREAM_TEXTS =
		TDM_FRAME_STREAM, /* server: a part of the packed texts; empty = no more */
	TDM_STREAM_START,         /* client: begin to trace */
	TDM_STREAM_STARTED,       /* server: tracing is on */
	TDM_STREAM_STOP,          /* client: stop, send what is left */
	TDM_STREAM_END, /* server: text lines of what was lost; texts that are new follow */
	TDM_STREAM_PAGE, /* server, to a viewer: u32 CPU, u32 pages left out before it, the page; little endian */
};

enum {
	TDM_STREAM_MAX_EVENTS = 256,
	TDM_STREAM_MAX_CPUS = 4096,
	TDM_STREAM_TOKEN_BYTES = 16
};

/* Keys of the lines of OPEN and OPENED, see docs/sync-protocol. */
#define TDM_STREAM_KEY_EVENT "event" /* a pattern; may be repeated */
#define TDM_STREAM_KEY_MACHINE \
	"machine" /* viewers: whose recording; in OPENED of "*" one line each */
#define TDM_STREAM_KEY_LIVE \
	"live" /* 1 = also pages that are not full, and empty ones as time goes by */
#define TDM_STREAM_KEY_FILTER   "filter"     /* of the event of the same number; "-" = none */
#define TDM_STREAM_KEY_CLOCK    "clock"      /* ftrace's name */
#define TDM_STREAM_KEY_BUFFER   "buffer-kib" /* of each CPU */
#define TDM_STREAM_KEY_KALLSYMS "kallsyms"   /* 1 = send them */
#define TDM_STREAM_KEY_MAY_MISS "may-miss"   /* 1 = an event pattern may match nothing */
#define TDM_STREAM_KEY_PLAIN    "plain"      /* 1 = bare pages where the server allows it */
#define TDM_STREAM_KEY_TOKEN \
	"token" /* of a session, in hexadecimal; in OPENED, and in OPEN of page connections */
#define TDM_STREAM_KEY_CPU      "cpu" /* of a page connection */
#define TDM_STREAM_KEY_TRACE_ID "trace-id"
#define TDM_STREAM_KEY_CPUS     "cpus"
#define TDM_STREAM_KEY_PAGE     "page-bytes"
#define TDM_STREAM_KEY_SEALED   "sealed" /* 1 = pages are sealed */

/* OPENED also has the lines of tdm_tap_left_out(): patterns that are not recorded, and why. */

/* What to record there. */
struct tdm_stream_event {
	const char *pattern, *filter; /* filter NULL = none */
};

struct tdm_stream_request {
	const char *
		machine; /* view this machine of a recording that runs; then nothing else is looked at */
	const struct tdm_stream_event *events;
	size_t event_count;
	const char *clock;
	uint32_t buffer_kib; /* 0 = the agent's choice */
	bool kallsyms;
	bool may_miss; /* a pattern may match nothing there that is allowed, as long as one matches something */
	bool plain; /* pages unsealed over TCP too */
	bool live;  /* pages come several times a second, full or not */
};

struct tdm_stream_options {
	const struct tdm_address *address; /* numeric; borrowed for the stream's life */
	const struct tdm_secret *secret;   /* borrowed; may be NULL */
	uint32_t timeout_ms;               /* of every wait; 0 = 10000 */
	int stop_fd;                       /* readable: give up connecting (TDM_AGAIN); 0 = none */
};

struct tdm_stream; /* one thread at a time, page links apart */

struct tdm_stream_facts {
	uint64_t trace_id;
	uint32_t cpu_count;
	uint32_t page_bytes;
	bool sealed;
	const struct tdm_buffer *
		left_out; /* tdm_tap_left_out(); NULL = none. Owned by the stream or the server's tap */
};

/**
 * Asks an agent for a trace; nothing is recorded yet.
 *
 * @return Owned by the caller; NULL with @p err filled: refused, no such event, no answer.
 */
struct tdm_stream *tdm_stream_create(const struct tdm_stream_options *options,
	const struct tdm_stream_request *request, struct tdm_error *err);
void tdm_stream_destroy(struct tdm_stream *stream);

struct tdm_stream_facts tdm_stream_get_facts(const struct tdm_stream *stream);

/** Receives the kernel's texts. First thing after creation. @p meta: zero-initialised, released by the caller. */
enum tdm_status tdm_stream_receive_texts(
	struct tdm_stream *stream, struct tdm_trace_meta *meta, struct tdm_error *err);

/** Begins to trace. After the page links were made: what comes earlier has nowhere to go. */
enum tdm_status tdm_stream_start(struct tdm_stream *stream, struct tdm_error *err);

/** Asks the agent to stop and to send the rest through the page links; returns at once. */
enum tdm_status tdm_stream_stop(struct tdm_stream *stream, struct tdm_error *err);

/* What the agent says at the end. */
struct tdm_stream_end {
	uint64_t overrun_events, dropped_events; /* lost in the guest's rings */
	uint64_t sent_bytes;                     /* of pages, all CPUs */
};

/** Waits for the agent's farewell; texts that are only complete now replace those in @p meta. */
enum tdm_status tdm_stream_receive_end(struct tdm_stream *stream, struct tdm_trace_meta *meta,
	struct tdm_stream_end *end, struct tdm_error *err);

/* One page as a viewer receives it. */
struct tdm_stream_page {
	uint32_t cpu, lost_pages;
	const uint8_t *bytes; /* info's page_bytes; borrowed until the next call on the stream */
};

/**
 * Viewers, after tdm_stream_start(): the next page, without waiting.
 *
 * @retval TDM_AGAIN     None is there.
 * @retval TDM_END       The recording is over.
 * @retval TDM_ERR_PEER  The recorder went away or broke the protocol.
 */
enum tdm_status tdm_stream_next_page(
	struct tdm_stream *stream, struct tdm_stream_page *page, struct tdm_error *err);

/**
 * The serving side: says OPENED, with the facts of a stream.
 *
 * @param token  Of the session, for its page connections; "-" where there are none.
 */
enum tdm_status tdm_stream_send_opened(struct tdm_link *link, const struct tdm_stream_facts *facts,
	const char *token, uint32_t timeout_ms, struct tdm_error *err);

/** The serving side: sends packed texts in frames, an empty one behind them. */
enum tdm_status tdm_stream_send_texts(struct tdm_link *link, const struct tdm_trace_meta *meta,
	uint32_t timeout_ms, struct tdm_error *err);

/**
 * Takes "tandem://HOST[:PORT]/NAME" or "tandem://unix:PATH/NAME" apart.
 *
 * @param name  Receives where NAME begins inside @p url.
 * @retval TDM_ERR_FORMAT  It is neither.
 */
enum tdm_status tdm_stream_parse_url(
	const char *url, struct tdm_address *address, const char **name, struct tdm_error *err);

/**
 * Names of the machines that a recorder serves.
 *
 * @param names  Receives them, each ended by a newline. Appended.
 */
enum tdm_status tdm_stream_list(
	const struct tdm_stream_options *options, struct tdm_buffer *names, struct tdm_error *err);

/** The control connection's descriptor: readable when the agent has gone or has something to say. */
int tdm_stream_fd(const struct tdm_stream *stream);

/* Pages of one CPU; used by one thread. */
struct tdm_page_link;

struct tdm_page_link *tdm_page_link_create(
	struct tdm_stream *stream, uint32_t cpu, struct tdm_error *err);
void tdm_page_link_destroy(struct tdm_page_link *link);

/** Descriptor to poll. */
int tdm_page_link_fd(const struct tdm_page_link *link);

/**
 * Moves what has arrived to a file: by splice where pages are bare and the kernel lets us, else by copying.
 *
 * @param moved_bytes  Receives how many bytes of pages were written.
 * @retval TDM_AGAIN     Nothing more is there.
 * @retval TDM_END       All pages have come: in good order.
 * @retval TDM_ERR_PEER  The agent went away or sent what it did not seal: what came before is in the file.
 * @retval TDM_ERR_IO    The file refused it.
 */
enum tdm_status tdm_page_link_move(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err);

#endif
