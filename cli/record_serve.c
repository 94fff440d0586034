/* SPDX-License-Identifier: MIT */
#include "record_serve.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stream.h>
#include <unistd.h>

enum {
	MAX_VIEWERS = 64,
	SEND_MS = 30000, /* a viewer that takes nothing for so long has gone */
	START_MS = 10000,
	TICK_MS = 50,
	PAGE_FIXED_BYTES = 8,
	PART_BYTES = TDM_FRAME_MAX_BYTES - TDM_TAG_BYTES
};

struct viewer {
	struct viewer *next;
	struct record_serve *serve;
	struct tdm_link *link;
	struct record_spool *spool;
	char who[96];
	pthread_t thread;
	uint64_t *offsets; /* by CPU: what was sent up to */
	atomic_bool is_over;
};

struct record_serve {
	const struct tdm_log *log;
	struct record_spool **spools;
	size_t spool_count;
	pthread_mutex_t lock; /* the list of viewers */
	struct viewer *viewers;
	size_t viewer_count;
	struct tdm_log_limit log_limit; /* of what strangers do */
	atomic_bool ending;             /* nothing more is recorded */
	atomic_bool closing;
};

struct record_serve *record_serve_create(const struct tdm_log *log)
{
	struct record_serve *serve = calloc(1, sizeof(*serve));

	if (serve) {
		serve->log = log;
		pthread_mutex_init(&serve->lock, NULL);
		tdm_log_limit_init(&serve->log_limit);
	}
	return serve;
}

enum tdm_status record_serve_add(
	struct record_serve *serve, struct record_spool *spool, struct tdm_error *err)
{
	struct record_spool **spools =
		realloc(serve->spools, (serve->spool_count + 1) * sizeof(struct record_spool *));

	if (!spools) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the service");
	}
	serve->spools = spools;
	spools[serve->spool_count++] = spool;
	return TDM_OK;
}

/* "*": the names of all machines, and that is all. */
static enum tdm_status send_names(struct viewer *viewer, struct tdm_error *err)
{
	struct tdm_buffer body = { 0 };
	bool failed = tdm_opened_put(&body, 0, 0) != TDM_OK;

	for (size_t i = 0; i < viewer->serve->spool_count; i++) {
		failed |= tdm_record_add(&body, TDM_STREAM_KEY_MACHINE,
				  record_spool_name(viewer->serve->spools[i])) != TDM_OK;
	}

	const enum tdm_status status =
		failed ? tdm_fail(err, TDM_ERR_NOMEM, "no memory for an answer")
		       : tdm_link_send(viewer->link, TDM_FRAME_OPENED, body.bytes, body.size,
				 tdm_deadline_ns(SEND_MS), err);

	tdm_buffer_release(&body);
	return status;
}

static void put_u32(uint8_t *to, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++) {
		to[i] = (uint8_t)(value >> (8 * i));
	}
}

/* The whole pages of one CPU that are on disk and not yet sent. sent receives whether there was one. */
static enum tdm_status send_pages(
	struct viewer *viewer, uint32_t cpu, uint8_t *body, bool *sent, struct tdm_error *err)
{
	const uint32_t page_bytes = record_spool_meta(viewer->spool)->page_bytes;
	const uint64_t size_bytes = record_spool_cpu_bytes(viewer->spool, cpu);

	while (viewer->offsets[cpu] + page_bytes <= size_bytes && !viewer->serve->closing) {
		put_u32(body, cpu);
		put_u32(body + 4, 0);
		if (pread(record_spool_fd(viewer->spool, cpu), body + PAGE_FIXED_BYTES, page_bytes,
			    (off_t)viewer->offsets[cpu]) != (ssize_t)page_bytes) {
			return tdm_fail(
				err, TDM_ERR_IO, "pages of CPU %" PRIu32 " cannot be read", cpu);
		}

		const enum tdm_status status =
			tdm_link_send(viewer->link, (enum tdm_frame_type)TDM_STREAM_PAGE, body,
				PAGE_FIXED_BYTES + page_bytes, tdm_deadline_ns(SEND_MS), err);

		if (status != TDM_OK) {
			return status;
		}
		viewer->offsets[cpu] += page_bytes;
		*sent = true;
	}
	return TDM_OK;
}

/* All CPUs once. */
static enum tdm_status send_news(
	struct viewer *viewer, uint8_t *body, bool *sent, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	*sent = false;
	for (uint32_t cpu = 0; cpu < record_spool_cpus(viewer->spool) && status == TDM_OK; cpu++) {
		status = send_pages(viewer, cpu, body, sent, err);
	}
	return status;
}

/* Waits a tick; a viewer that says CLOSE, or anything else, is done. */
static enum tdm_status wait_tick(struct viewer *viewer, struct tdm_error *err)
{
	struct tdm_frame frame;
	const enum tdm_status status =
		tdm_link_receive(viewer->link, &frame, tdm_deadline_ns(TICK_MS), -1, err);

	if (status == TDM_AGAIN) {
		return TDM_OK;
	}
	return status == TDM_OK ? tdm_fail(err, TDM_ERR_PEER,
					  "a frame of type %u came from a viewer", frame.type)
				: status;
}

/* From START on: what is recorded from now on. */
static enum tdm_status follow(struct viewer *viewer, struct tdm_error *err)
{
	const uint32_t page_bytes = record_spool_meta(viewer->spool)->page_bytes;
	uint8_t *body = malloc(PAGE_FIXED_BYTES + page_bytes);
	enum tdm_status status =
		body ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a page");
	bool ending = false, sent = false;

	for (uint32_t cpu = 0; cpu < record_spool_cpus(viewer->spool); cpu++) {
		const uint64_t size_bytes = record_spool_cpu_bytes(viewer->spool, cpu);

		viewer->offsets[cpu] = size_bytes - size_bytes % page_bytes;
	}
	while (status == TDM_OK && !viewer->serve->closing && !(ending && !sent)) {
		/* Looked at before the pages: what was written before it was set is among them. */
		ending = viewer->serve->ending;
		status = send_news(viewer, body, &sent, err);
		if (status == TDM_OK && !sent && !ending) {
			status = wait_tick(viewer, err);
		}
	}
	free(body);
	return status == TDM_OK ? tdm_link_send(viewer->link, (enum tdm_frame_type)TDM_STREAM_END,
					  NULL, 0, tdm_deadline_ns(SEND_MS), err)
				: status;
}

static enum tdm_status serve_machine(struct viewer *viewer, struct tdm_error *err)
{
	struct tdm_frame frame;
	const struct tdm_stream_facts facts = {
		.trace_id = record_spool_ties(viewer->spool)->trace_id,
		.cpu_count = record_spool_cpus(viewer->spool),
		.page_bytes = record_spool_meta(viewer->spool)->page_bytes,
	};
	enum tdm_status status = tdm_stream_send_opened(viewer->link, &facts, "-", SEND_MS, err);

	if (status == TDM_OK) {
		status = tdm_stream_send_texts(
			viewer->link, record_spool_meta(viewer->spool), SEND_MS, err);
	}
	if (status == TDM_OK) {
		status = tdm_link_receive(viewer->link, &frame, tdm_deadline_ns(START_MS), -1, err);
	}
	if (status != TDM_OK) {
		return status == TDM_AGAIN ? TDM_END : status;
	}
	if (frame.type != TDM_STREAM_START) {
		return tdm_fail(err, TDM_ERR_PEER, "a viewer sent frame type %u, wanted a start",
			frame.type);
	}
	status = tdm_link_send(viewer->link, (enum tdm_frame_type)TDM_STREAM_STARTED, NULL, 0,
		tdm_deadline_ns(SEND_MS), err);
	return status == TDM_OK ? follow(viewer, err) : status;
}

static void *viewer_main(void *user)
{
	struct viewer *viewer = user;
	struct tdm_error err = { 0 };
	const enum tdm_status status =
		viewer->spool ? serve_machine(viewer, &err) : send_names(viewer, &err);

	if (status != TDM_OK && status != TDM_END) {
		TDM_INFO(viewer->serve->log, "%s: viewer ends: %s", viewer->who, err.text);
	}
	tdm_link_destroy(viewer->link);
	viewer->link = NULL;
	viewer->is_over = true;
	return NULL;
}

static void free_viewer(struct viewer *viewer)
{
	tdm_link_destroy(viewer->link);
	free(viewer->offsets);
	free(viewer);
}

/* Joins the threads of viewers that are done, or of all. */
static void reap(struct record_serve *serve, bool all)
{
	pthread_mutex_lock(&serve->lock);
	for (struct viewer **at = &serve->viewers; *at;) {
		struct viewer *viewer = *at;

		if (!all && !viewer->is_over) {
			at = &viewer->next;
			continue;
		}
		*at = viewer->next;
		serve->viewer_count--;
		pthread_join(viewer->thread, NULL);
		free_viewer(viewer);
	}
	pthread_mutex_unlock(&serve->lock);
}

/* Finds what is asked for. NULL: found, or all with *spool NULL. */
static const char *find_machine(
	const struct record_serve *serve, const struct tdm_open *open, struct record_spool **spool)
{
	char name[TDM_VALUE_MAX + 1];

	*spool = NULL;
	if (!tdm_record_find(open->text, open->text_bytes, TDM_STREAM_KEY_MACHINE, 0, name)) {
		return "name a machine of the recording";
	}
	if (strcmp(name, "*") == 0) {
		return NULL;
	}
	for (size_t i = 0; i < serve->spool_count; i++) {
		if (strcmp(record_spool_name(serve->spools[i]), name) == 0) {
			*spool = serve->spools[i];
		}
	}
	if (!*spool) {
		return "no machine of that name is recorded";
	}
	if (record_spool_meta(*spool)->texts == NULL) {
		return "a guest of trace-cmd's agent cannot be viewed while it is recorded";
	}
	return record_spool_meta(*spool)->page_bytes + PAGE_FIXED_BYTES > PART_BYTES
		       ? "its ring-buffer pages are too large to be viewed while it is recorded"
		       : NULL;
}

static const char *start_viewer(struct record_serve *serve, struct tdm_link *link, const char *who,
	struct record_spool *spool)
{
	struct viewer *viewer = calloc(1, sizeof(*viewer));

	if (viewer && spool) {
		viewer->offsets = calloc(record_spool_cpus(spool), sizeof(*viewer->offsets));
	}
	if (!viewer || (spool && !viewer->offsets)) {
		free(viewer);
		return "no memory for a viewer";
	}
	viewer->serve = serve;
	viewer->link = link;
	viewer->spool = spool;
	snprintf(viewer->who, sizeof(viewer->who), "%s", who);
	pthread_mutex_lock(&serve->lock);

	const bool started = serve->viewer_count < MAX_VIEWERS &&
			     pthread_create(&viewer->thread, NULL, viewer_main, viewer) == 0;

	if (started) {
		viewer->next = serve->viewers;
		serve->viewers = viewer;
		serve->viewer_count++;
	}
	pthread_mutex_unlock(&serve->lock);
	if (!started) {
		viewer->link = NULL;
		free_viewer(viewer);
		return "too many viewers";
	}
	return NULL;
}

void record_serve_take(struct record_serve *serve, struct tdm_link *link, const char *who,
	bool may_view, const struct tdm_open *open)
{
	struct record_spool *spool = NULL;
	const char *reason =
		may_view ? find_machine(serve, open, &spool) : "not without the secret";

	reap(serve, false);
	if (!reason) {
		reason = start_viewer(serve, link, who, spool);
	}
	if (reason) {
		tdm_link_refuse(link, reason);
		tdm_link_destroy(link);
		tdm_log_limited(&serve->log_limit, serve->log, "%s: refused: %s", who, reason);
	}
}

void record_serve_end(struct record_serve *serve)
{
	enum {
		WAIT_MS = 3000
	};

	serve->ending = true;
	for (unsigned int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += TICK_MS) {
		reap(serve, false);
		if (!serve->viewer_count) {
			return;
		}
		usleep(TICK_MS * 1000);
	}
}

void record_serve_destroy(struct record_serve *serve)
{
	if (!serve) {
		return;
	}
	serve->closing = true;
	pthread_mutex_lock(&serve->lock);
	for (struct viewer *viewer = serve->viewers; viewer; viewer = viewer->next) {
		if (!viewer->is_over && viewer->link) {
			tdm_socket_abort(tdm_link_fd(viewer->link));
		}
	}
	pthread_mutex_unlock(&serve->lock);
	reap(serve, true);
	pthread_mutex_destroy(&serve->lock);
	tdm_log_limit_release(&serve->log_limit);
	free(serve->spools);
	free(serve);
}
