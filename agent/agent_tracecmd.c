/* SPDX-License-Identifier: MIT */
#include "agent.h"
#include "tracecmd_arguments.h"
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/local_clock.h>
#include <tandem/tracecmd_agent.h>
#include <tandem/tracedat_writer.h>
#include <unistd.h>

enum {
	PAGES_STACK_BYTES = 128 * 1024,
	SYNC_STACK_BYTES = 256 * 1024,
	SYNC_END_MS = 60000, /* from our farewell to the host's last word on the clock */
	SYNC_STEP_MS = 20
};

struct tracecmd_session;

/* The thread that sends the pages of a CPU. */
struct page_thread {
	struct tracecmd_session *session;
	uint32_t cpu;
	int fd;
	pthread_t thread;
	bool runs;
};

/* One "trace-cmd record -A". */
struct tracecmd_session {
	struct agent_peer *peer;
	struct tdm_tracecmd_agent *link;
	struct tracecmd_wish wish;
	struct stream_session *stream;
	struct tdm_local_clock clock;
	bool has_clock;
	struct page_thread *pages;
	uint32_t cpu_count;
	pthread_t sync_thread;
	bool sync_runs;
	atomic_bool sync_over;
};

static bool is_allowed(void *user, const char *system, const char *event)
{
	return agent_options_allow(user, system, event);
}

static enum tdm_status make_stream(struct tracecmd_session *session, struct tdm_error *err)
{
	const struct agent_options *options = session->peer->agent->options;
	const struct tracecmd_wish *wish = &session->wish;
	const bool is_function = wish->tracer && strcmp(wish->tracer, "function") == 0;
	const struct tdm_tap_options tap_options = {
		.label = "trace-cmd",
		.events = wish->events,
		.event_count = wish->event_count,
		.settings = wish->settings,
		.setting_count = wish->setting_count,
		.clock = wish->clock,
		.buffer_kib = wish->buffer_kib && wish->buffer_kib < options->max_buffer_kib
				      ? wish->buffer_kib
				      : options->max_buffer_kib,
		.pids = wish->pids,
		.pid_count = wish->pid_count,
		.follow_children = wish->follow_children,
		.may_miss = wish->may_miss,
		.allow = is_allowed,
		.allow_user = (void *)options,
	};
	struct tdm_tap *tap = NULL;

	if (wish->tracer && !agent_options_allow(options, "ftrace",
				    is_function ? "function" : "funcgraph_entry")) {
		return tdm_fail(err, TDM_ERR_PEER,
			"tracer \"%s\" is not allowed to be used on this machine: see --allow",
			wish->tracer);
	}

	const enum tdm_status status =
		tdm_tap_create(&tap_options, &session->peer->agent->log, &tap, err);

	if (status != TDM_OK) {
		return status;
	}
	session->cpu_count = tdm_tap_cpu_count(tap);
	session->stream = stream_session_create(&session->peer->agent->streams, tap, false, err);
	if (!session->stream) {
		return err->status;
	}
	session->stream->control_fd = session->peer->fd;
	session->pages = calloc(session->cpu_count, sizeof(*session->pages));
	return session->pages ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for pages");
}

static enum tdm_status answer(struct tracecmd_session *session, bool offers_ptp, uint64_t *trace_id,
	struct tdm_error *err)
{
	const struct tdm_log *log = &session->peer->agent->log;
	struct tdm_error reason = { 0 };

	*trace_id = 0;
	while (*trace_id == 0) {
		tdm_random(trace_id, sizeof(*trace_id));
	}
	/* Clocks that no program can read ("counter") are recorded all the same, unrelated. */
	session->has_clock = offers_ptp && tdm_local_clock_init(&session->clock,
						   session->wish.clock, log, &reason) == TDM_OK;
	if (offers_ptp && !session->has_clock) {
		TDM_WARNING(log, "%s: no time synchronisation: %s", session->peer->who.text,
			reason.text);
	}

	const struct tdm_tracecmd_answer what = {
		.trace_id = *trace_id,
		.cpu_count = session->cpu_count,
		.page_bytes = tdm_tap_page_bytes(session->stream->tap),
		.syncs = session->has_clock,
	};

	return tdm_tracecmd_agent_answer(session->link, &what, err);
}

/* The thread's stamps are of the CPU that the host asks for; one that is offline leaves it where it is. */
static void enter_cpu(void *user, uint32_t cpu)
{
	struct tracecmd_session *session = user;
	struct tdm_sandwich ignored;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	tdm_local_clock_sample(&session->clock, &ignored, NULL);
}

static uint64_t read_clock(void *user)
{
	const struct tracecmd_session *session = user;

	return tdm_local_clock_arrival(&session->clock).trace;
}

static void *run_sync(void *user)
{
	struct tracecmd_session *session = user;
	const struct tdm_tracecmd_sync sync = {
		.enter_cpu = enter_cpu,
		.read_clock = read_clock,
		.user = session,
	};
	struct tdm_error err = { 0 };
	const enum tdm_status status = tdm_tracecmd_agent_serve_sync(session->link, &sync, &err);

	if (status != TDM_OK && status != TDM_AGAIN) {
		agent_log_peer(session->peer->agent, session->peer, err.text);
	}
	session->sync_over = true;
	return NULL;
}

static int start_thread(pthread_t *thread, size_t stack_bytes, void *(*run)(void *user), void *user)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);

	const int failure = pthread_create(thread, &attr, run, user);

	pthread_attr_destroy(&attr);
	return failure;
}

static enum tdm_status start_sync(struct tracecmd_session *session, struct tdm_error *err)
{
	const enum tdm_status status =
		session->has_clock ? tdm_tracecmd_agent_accept_sync(session->link, err) : TDM_END;

	if (status != TDM_OK) {
		return status == TDM_END ? TDM_OK : status;
	}

	const int failure =
		start_thread(&session->sync_thread, SYNC_STACK_BYTES, run_sync, session);

	session->sync_runs = failure == 0;
	return failure ? tdm_fail_errno(err, failure, "starting a thread") : TDM_OK;
}

static enum tdm_status send_texts(
	struct tracecmd_session *session, uint64_t trace_id, struct tdm_error *err)
{
	struct tdm_trace_meta meta = { 0 };
	struct tdm_buffer bytes = { 0 };
	enum tdm_status status = tdm_tap_collect(session->stream->tap, true, &meta, err);

	if (status == TDM_OK) {
		status = tdm_tap_collect_names(&meta, err);
	}
	if (status == TDM_OK) {
		status = tdm_tracedat_begin(
			&meta, session->wish.file_version, trace_id, &bytes, err);
	}
	if (status == TDM_OK) {
		status = tdm_tracecmd_agent_send_texts(session->link, bytes.bytes, bytes.size, err);
	}
	tdm_buffer_release(&bytes);
	tdm_trace_meta_release(&meta);
	return status;
}

static void *run_pages(void *user)
{
	struct page_thread *page = user;
	struct tracecmd_session *session = page->session;
	struct agent *agent = session->peer->agent;
	struct tdm_error err = { 0 };
	const enum tdm_status status =
		ring_tap_run(session->stream, page->fd, NULL, page->cpu, agent->stop_fd, &err);

	close(page->fd);
	if (status != TDM_OK) {
		agent_log_peer(agent, session->peer, err.text);
		stream_session_abort(&agent->streams, session->stream);
	}
	return NULL;
}

static enum tdm_status start_pages(struct tracecmd_session *session, struct tdm_error *err)
{
	for (uint32_t cpu = 0; cpu < session->cpu_count; cpu++) {
		struct page_thread *page = &session->pages[cpu];

		*page = (struct page_thread){ .session = session, .cpu = cpu };

		const enum tdm_status status =
			tdm_tracecmd_agent_accept_pages(session->link, cpu, &page->fd, err);

		if (status != TDM_OK) {
			return status;
		}

		const int failure = start_thread(&page->thread, PAGES_STACK_BYTES, run_pages, page);

		if (failure) {
			close(page->fd);
			return tdm_fail_errno(err, failure, "starting a thread");
		}
		page->runs = true;
	}
	return TDM_OK;
}

static void join_pages(struct tracecmd_session *session)
{
	for (uint32_t cpu = 0; session->pages && cpu < session->cpu_count; cpu++) {
		if (session->pages[cpu].runs) {
			pthread_join(session->pages[cpu].thread, NULL);
			session->pages[cpu].runs = false;
		}
	}
}

/* The host runs its last rounds and says STOP; one that does neither is left. */
static void join_sync(struct tracecmd_session *session, bool at_once)
{
	if (!session->sync_runs) {
		return;
	}
	for (unsigned int waited_ms = 0; !at_once && !session->sync_over && waited_ms < SYNC_END_MS;
		waited_ms += SYNC_STEP_MS) {
		usleep(SYNC_STEP_MS * 1000);
	}
	tdm_tracecmd_agent_abort_sync(session->link);
	pthread_join(session->sync_thread, NULL);
	session->sync_runs = false;
}

/* From the answer to the farewell. */
static enum tdm_status serve(
	struct tracecmd_session *session, uint64_t trace_id, struct tdm_error *err)
{
	struct stream_list *streams = &session->peer->agent->streams;
	enum tdm_status status = start_sync(session, err);

	if (status == TDM_OK) {
		status = send_texts(session, trace_id, err);
	}
	/* From its last text on the host may run its command: what that does is to be recorded from the beginning. */
	if (status == TDM_OK) {
		status = tdm_tap_start(session->stream->tap, err);
	}
	if (status == TDM_OK) {
		status = tdm_tracecmd_agent_end_texts(session->link, err);
	}
	if (status == TDM_OK) {
		status = start_pages(session, err);
	}
	if (status == TDM_OK) {
		stream_session_set_state(streams, session->stream, STREAM_RUNNING);
		status = tdm_tracecmd_agent_wait_close(session->link, err);
	}
	tdm_tap_stop(session->stream->tap, NULL);
	stream_session_set_state(
		streams, session->stream, status == TDM_OK ? STREAM_STOPPED : STREAM_BROKEN);
	join_pages(session);
	if (status == TDM_OK) {
		status = tdm_tracecmd_agent_farewell(session->link, err);
	}
	return status;
}

enum tdm_status agent_tracecmd_session(struct agent_peer *peer, struct tdm_error *err)
{
	struct tracecmd_session session = { .peer = peer };
	struct tdm_tracecmd_request request;
	uint64_t trace_id = 0;

	session.link = tdm_tracecmd_agent_create(peer->fd, &peer->who, peer->agent->stop_fd, err);
	if (!session.link) {
		return err->status;
	}

	enum tdm_status status = tdm_tracecmd_agent_receive_request(session.link, &request, err);

	/* From here on its descriptor is this thread's alone. */
	pthread_mutex_lock(&peer->agent->tracecmd_lock);
	peer->is_silent = false;
	pthread_mutex_unlock(&peer->agent->tracecmd_lock);

	if (status == TDM_OK) {
		status = tracecmd_wish_parse(
			request.arguments, request.argument_count, &session.wish, err);
	}
	if (status == TDM_OK) {
		status = make_stream(&session, err);
	}
	if (status == TDM_OK) {
		status = answer(&session, request.offers_ptp, &trace_id, err);
	}
	/* Refused by closing: trace-cmd 3.1.6 says what happened then, and crashes at "not supported". */
	if (status == TDM_OK) {
		status = serve(&session, trace_id, err);
	}
	join_sync(&session, status != TDM_OK);
	if (session.stream) {
		stream_session_set_state(&peer->agent->streams, session.stream, STREAM_BROKEN);
		stream_session_leave(&peer->agent->streams, session.stream);
	}
	if (session.has_clock) {
		tdm_local_clock_release(&session.clock);
	}
	tracecmd_wish_release(&session.wish);
	free(session.pages);
	tdm_tracecmd_agent_destroy(session.link);
	/* A connection that said nothing was somebody who looked. */
	return status == TDM_AGAIN ? TDM_END : status;
}
