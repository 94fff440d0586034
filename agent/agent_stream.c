/* SPDX-License-Identifier: MIT */
#include "agent_stream.h"
#include "agent.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SEND_MS = 10000,
	PREPARED_MS =
		3600000, /* from OPENED to START: a host may wait for another tracer to begin */
	DRAIN_STEP_MS = 5,
	DRAIN_MAX_MS = 120000 /* for the page connections to send what is left */
};

/* The request of a control connection, checked. Strings stand in the arrays. */
struct request {
	struct tdm_tap_event events[TDM_STREAM_MAX_EVENTS];
	char patterns[TDM_STREAM_MAX_EVENTS][TDM_VALUE_MAX + 1];
	char filters[TDM_STREAM_MAX_EVENTS][TDM_VALUE_MAX + 1];
	size_t event_count;
	char clock[TDM_VALUE_MAX + 1];
	uint64_t buffer_kib, kallsyms, may_miss, plain, live;
};

static bool is_allowed(void *user, const char *system, const char *event)
{
	return agent_options_allow(user, system, event);
}

static enum tdm_status parse_request(
	const struct tdm_open *open, struct request *request, struct tdm_error *err)
{
	const char *text = open->text;
	const size_t size = open->text_bytes;

	for (unsigned int i = 0; i < TDM_STREAM_MAX_EVENTS; i++) {
		if (!tdm_record_find(text, size, TDM_STREAM_KEY_EVENT, i, request->patterns[i])) {
			break;
		}
		request->events[i].pattern = request->patterns[i];
		if (tdm_record_find(text, size, TDM_STREAM_KEY_FILTER, i, request->filters[i]) &&
			strcmp(request->filters[i], "-") != 0) {
			request->events[i].filter = request->filters[i];
		}
		request->event_count++;
	}
	tdm_record_find_number(text, size, TDM_STREAM_KEY_BUFFER, 0, &request->buffer_kib);
	tdm_record_find_number(text, size, TDM_STREAM_KEY_KALLSYMS, 0, &request->kallsyms);
	tdm_record_find_number(text, size, TDM_STREAM_KEY_MAY_MISS, 0, &request->may_miss);
	tdm_record_find_number(text, size, TDM_STREAM_KEY_LIVE, 0, &request->live);
	tdm_record_find_number(text, size, TDM_STREAM_KEY_PLAIN, 0, &request->plain);
	if (!request->event_count ||
		!tdm_record_find(text, size, TDM_STREAM_KEY_CLOCK, 0, request->clock)) {
		return tdm_fail(
			err, TDM_ERR_PEER, "a stream without events or clock was asked for");
	}
	return TDM_OK;
}

static enum tdm_status make_tap(struct agent_peer *peer, const struct request *request,
	struct tdm_tap **tap, struct tdm_error *err)
{
	const struct agent_options *options = peer->agent->options;
	const struct tdm_tap_options tap_options = {
		.label = "stream",
		.events = request->events,
		.event_count = request->event_count,
		.clock = request->clock,
		/* The command line has the last word on memory. */
		.buffer_kib = request->buffer_kib && request->buffer_kib < options->max_buffer_kib
				      ? (uint32_t)request->buffer_kib
				      : options->max_buffer_kib,
		.may_miss = request->may_miss != 0,
		.allow = is_allowed,
		.allow_user = (void *)options,
	};

	return tdm_tap_create(&tap_options, &peer->agent->log, tap, err);
}

/* Pages go bare where nobody listens in: on this machine, on vsock, or where the host wants it so. */
static bool must_seal(const struct agent_peer *peer, const struct request *request)
{
	return peer->who.kind == TDM_ADDRESS_TCP && !request->plain &&
	       tdm_link_is_proven(peer->link);
}

static enum tdm_status send_opened(
	struct agent_peer *peer, const struct stream_session *session, struct tdm_error *err)
{
	struct tdm_stream_facts facts = {
		.cpu_count = tdm_tap_cpu_count(session->tap),
		.page_bytes = tdm_tap_page_bytes(session->tap),
		.sealed = session->sealed,
		.left_out = tdm_tap_left_out(session->tap),
	};

	while (facts.trace_id == 0) {
		tdm_random(&facts.trace_id, sizeof(facts.trace_id));
	}
	return tdm_stream_send_opened(peer->link, &facts, session->token, SEND_MS, err);
}

/* Waits for one frame of a type; TDM_END also where the agent ends. */
static enum tdm_status wait_frame(struct agent_peer *peer, enum tdm_stream_frame type,
	uint64_t deadline_ns, struct tdm_error *err)
{
	struct tdm_frame frame;
	const enum tdm_status status =
		tdm_link_receive(peer->link, &frame, deadline_ns, peer->agent->stop_fd, err);

	if (status == TDM_AGAIN) {
		return TDM_END;
	}
	if (status == TDM_OK && frame.type != type) {
		tdm_link_refuse(peer->link, "not now");
		return tdm_fail(
			err, TDM_ERR_PEER, "frame type %u came, %d was wanted", frame.type, type);
	}
	return status;
}

/* The page connections send what is left; whoever is stuck is given up. */
static void wait_for_drain(const struct stream_session *session)
{
	for (unsigned int waited_ms = 0; session->open_pages && waited_ms < DRAIN_MAX_MS;
		waited_ms += DRAIN_STEP_MS) {
		usleep(DRAIN_STEP_MS * 1000);
	}
}

static enum tdm_status send_end(
	struct agent_peer *peer, struct stream_session *session, struct tdm_error *err)
{
	struct tdm_trace_meta meta = { 0 };
	struct tdm_tap_stats sum = { 0 };
	char text[160];

	for (uint32_t cpu = 0; cpu < tdm_tap_cpu_count(session->tap); cpu++) {
		struct tdm_tap_stats stats = { 0 };

		tdm_tap_get_stats(session->tap, cpu, &stats, NULL);
		sum.overrun_events += stats.overrun_events;
		sum.dropped_events += stats.dropped_events;
	}

	const int length = snprintf(text, sizeof(text),
		"overrun %" PRIu64 "\ndropped %" PRIu64 "\nsent-bytes %" PRIu64 "\n",
		sum.overrun_events, sum.dropped_events, session->sent_bytes);
	enum tdm_status status = tdm_link_send(peer->link, (enum tdm_frame_type)TDM_STREAM_END,
		text, (size_t)length, tdm_deadline_ns(SEND_MS), err);

	meta.cpu_count = tdm_tap_cpu_count(session->tap);
	meta.page_bytes = tdm_tap_page_bytes(session->tap);
	meta.long_bytes = sizeof(long);
	meta.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	if (status == TDM_OK) {
		status = tdm_tap_collect_end(session->tap, &meta, err);
	}
	if (status == TDM_OK) {
		status = tdm_stream_send_texts(peer->link, &meta, SEND_MS, err);
	}
	tdm_trace_meta_release(&meta);
	return status;
}

/* From OPENED to the end. */
static enum tdm_status serve(struct agent_peer *peer, struct stream_session *session, bool kallsyms,
	struct tdm_error *err)
{
	struct tdm_trace_meta meta = { 0 };
	enum tdm_status status = send_opened(peer, session, err);

	if (status == TDM_OK) {
		status = tdm_tap_collect(session->tap, kallsyms, &meta, err);
	}
	if (status == TDM_OK) {
		status = tdm_stream_send_texts(peer->link, &meta, SEND_MS, err);
	}
	tdm_trace_meta_release(&meta);
	if (status == TDM_OK) {
		status = wait_frame(peer, TDM_STREAM_START, tdm_deadline_ns(PREPARED_MS), err);
	}
	if (status == TDM_OK) {
		status = tdm_tap_start(session->tap, err);
	}
	if (status == TDM_OK) {
		stream_session_set_state(&peer->agent->streams, session, STREAM_RUNNING);
		status = tdm_link_send(peer->link, (enum tdm_frame_type)TDM_STREAM_STARTED, NULL, 0,
			tdm_deadline_ns(SEND_MS), err);
	}
	if (status == TDM_OK) {
		status = wait_frame(peer, TDM_STREAM_STOP, UINT64_MAX, err);
	}
	tdm_tap_stop(session->tap, NULL);
	if (status != TDM_OK) {
		return status;
	}
	stream_session_set_state(&peer->agent->streams, session, STREAM_STOPPED);
	wait_for_drain(session);
	return send_end(peer, session, err);
}

static enum tdm_status control_session(
	struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err)
{
	/* Too large for a session's stack. */
	struct request *request = calloc(1, sizeof(*request));
	struct stream_session *session = NULL;
	struct tdm_tap *tap = NULL;
	enum tdm_status status = request ? parse_request(open, request, err)
					 : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request");

	if (status == TDM_OK) {
		status = make_tap(peer, request, &tap, err);
	}
	if (status == TDM_OK) {
		session = stream_session_create(
			&peer->agent->streams, tap, must_seal(peer, request), err);
		status = session ? TDM_OK : err->status;
	}
	if (session) {
		session->control_fd = peer->fd;
		session->live = request->live != 0;
		if (tdm_clock_by_name(request->clock, &session->clock, NULL) != TDM_OK) {
			session->clock = TDM_CLOCK_MARKER;
		}
	}
	if (status != TDM_OK) {
		tdm_link_refuse(peer->link, err->text);
	} else {
		status = serve(peer, session, request->kallsyms != 0, err);
	}
	if (session) {
		stream_session_set_state(&peer->agent->streams, session, STREAM_BROKEN);
		stream_session_leave(&peer->agent->streams, session);
	}
	free(request);
	return status;
}

static enum tdm_status page_session(struct agent_peer *peer, const struct tdm_open *open,
	const char *token, struct tdm_error *err)
{
	struct stream_list *streams = &peer->agent->streams;
	struct tdm_buffer body = { 0 };
	uint64_t cpu = UINT64_MAX;

	tdm_record_find_number(open->text, open->text_bytes, TDM_STREAM_KEY_CPU, 0, &cpu);

	struct stream_session *session = stream_session_join(streams, token, cpu, err);

	if (!session) {
		tdm_link_refuse(peer->link, err->text);
		return err->status;
	}

	enum tdm_status status = tdm_opened_put(&body, 0, 0);

	if (status == TDM_OK) {
		status = tdm_link_send(peer->link, TDM_FRAME_OPENED, body.bytes, body.size,
			tdm_deadline_ns(SEND_MS), err);
	}
	tdm_buffer_release(&body);
	if (status == TDM_OK) {
		uint8_t key[TDM_KEY_BYTES];

		if (session->sealed) {
			tdm_link_derive(peer->link, TDM_ROLE_SERVER, "pages", key);
		}
		status = ring_tap_run(session, tdm_link_fd(peer->link),
			session->sealed ? key : NULL, (uint32_t)cpu, peer->agent->stop_fd, err);
	}
	if (status != TDM_OK) {
		stream_session_abort(streams, session);
	}
	session->open_pages--;
	stream_session_leave(streams, session);
	return status;
}

enum tdm_status agent_stream_session(
	struct agent_peer *peer, const struct tdm_open *open, struct tdm_error *err)
{
	char token[TDM_VALUE_MAX + 1];

	return tdm_record_find(open->text, open->text_bytes, TDM_STREAM_KEY_TOKEN, 0, token)
		       ? page_session(peer, open, token, err)
		       : control_session(peer, open, err);
}
