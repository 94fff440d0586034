/* SPDX-License-Identifier: MIT */
#include "record_guest.h"
#include "guest_address.h"
#include "run_command.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	TIMEOUT_MS = 10000,
	DRAIN_MS = 30000, /* without a byte after the stop was asked for: the guest has gone */
	POLL_MS = 500
};

struct record_guest {
	struct record_guest_options options;
	struct tdm_stream *stream;
	struct tdm_trace_meta meta;
	struct record_spool *spool;
	struct tdm_page_link **links; /* NULL once its pages have all come */
	uint32_t link_count;
	struct pollfd *polls;
	pthread_t thread;
	bool runs;
	atomic_bool
		started; /* STARTED was received: what the control connection says now is its end */
	atomic_bool stopping;
	int stop_fd; /* eventfd: wakes the thread when stopping is set */
	_Atomic uint64_t bytes;
	struct tdm_error failure; /* of the thread; read after it was joined */
};

static enum tdm_status open_links(struct record_guest *guest, struct tdm_error *err)
{
	guest->links = calloc(guest->link_count, sizeof(struct tdm_page_link *));
	guest->polls = calloc(guest->link_count + 2, sizeof(*guest->polls));
	if (!guest->links || !guest->polls) {
		return tdm_fail(
			err, TDM_ERR_NOMEM, "no memory for %" PRIu32 " CPUs", guest->link_count);
	}
	for (uint32_t cpu = 0; cpu < guest->link_count; cpu++) {
		guest->links[cpu] = tdm_page_link_create(guest->stream, cpu, err);
		if (!guest->links[cpu]) {
			return tdm_error_prefix(err, "CPU %" PRIu32, cpu);
		}
	}
	return TDM_OK;
}

static enum tdm_status prepare(struct record_guest *guest, struct tdm_error *err)
{
	const struct record_guest_options *options = &guest->options;
	const struct tdm_stream_options stream_options = {
		.address = options->address,
		.secret = options->secret,
		.timeout_ms = TIMEOUT_MS,
		.stop_fd = options->interrupt_fd,
	};

	guest->stream = tdm_stream_create(&stream_options, options->request, err);
	if (!guest->stream) {
		guest_address_hint(options->name, options->address, err);
		return err->status;
	}

	struct record_ties ties = *options->host_ties;

	ties.trace_id = tdm_stream_get_facts(guest->stream).trace_id;
	ties.host_trace_id = options->host_trace_id;
	guest->link_count = tdm_stream_get_facts(guest->stream).cpu_count;

	enum tdm_status status = tdm_stream_receive_texts(guest->stream, &guest->meta, err);

	if (status != TDM_OK) {
		return status;
	}
	guest->spool = record_spool_create(options->dir, options->name, &ties, options->force, err);
	if (!guest->spool) {
		return err->status;
	}
	status = record_spool_set_cpus(guest->spool, guest->link_count, err);
	if (status == TDM_OK) {
		status = record_spool_save_meta(guest->spool, &guest->meta, err);
	}
	return status == TDM_OK ? open_links(guest, err) : status;
}

enum tdm_status record_guest_create(const struct record_guest_options *options,
	struct record_guest **guest, struct tdm_error *err)
{
	struct record_guest *made = calloc(1, sizeof(*made));

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a guest");
	}
	made->options = *options;
	made->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	const enum tdm_status status = prepare(made, err);

	if (status != TDM_OK) {
		if (made->spool) {
			record_spool_remove(made->spool);
		}
		record_guest_destroy(made);
		return tdm_error_prefix(err, "guest \"%s\"", options->name);
	}
	*guest = made;
	return TDM_OK;
}

/* The first fault is the one that is told. */
static void note_failure(struct record_guest *guest, const struct tdm_error *err)
{
	if (guest->failure.status == TDM_OK) {
		guest->failure = *err;
	}
}

/* Moves what one CPU's link has; drops the link when it is done. */
static void move_link(struct record_guest *guest, uint32_t cpu)
{
	struct tdm_error err = { 0 };
	uint64_t moved_bytes = 0;
	const enum tdm_status status = tdm_page_link_move(
		guest->links[cpu], record_spool_fd(guest->spool, cpu), &moved_bytes, &err);

	guest->bytes += moved_bytes;
	if (status == TDM_OK || status == TDM_AGAIN) {
		return;
	}
	if (status != TDM_END) {
		note_failure(guest, &err);
	} else if (!guest->stopping) {
		tdm_fail(&err, TDM_ERR_PEER,
			"the agent closed the pages of CPU %" PRIu32 " while it was recorded", cpu);
		note_failure(guest, &err);
	}
	tdm_page_link_destroy(guest->links[cpu]);
	guest->links[cpu] = NULL;
}

static unsigned int fill_polls(struct record_guest *guest)
{
	unsigned int count = 0;

	for (uint32_t cpu = 0; cpu < guest->link_count; cpu++) {
		guest->polls[cpu] = (struct pollfd){
			/* poll() passes over negative descriptors. */
			.fd = guest->links[cpu] ? tdm_page_link_fd(guest->links[cpu]) : -1,
			.events = POLLIN,
		};
		count += guest->links[cpu] != NULL;
	}
	guest->polls[guest->link_count] = (struct pollfd){
		.fd = guest->stopping ? -1 : guest->stop_fd,
		.events = POLLIN,
	};
	guest->polls[guest->link_count + 1] = (struct pollfd){
		.fd = guest->started && !guest->stopping ? tdm_stream_fd(guest->stream) : -1,
		.events = POLLIN,
	};
	return count;
}

static void *run_guest(void *user)
{
	struct record_guest *guest = user;
	unsigned int silent_ms = 0;

	while (fill_polls(guest)) {
		const int ready = poll(guest->polls, guest->link_count + 2, POLL_MS);

		silent_ms = ready > 0 || !guest->stopping ? 0 : silent_ms + POLL_MS;
		if (silent_ms && run_command_interrupt_waits(guest->options.interrupt_fd)) {
			struct tdm_error err;

			tdm_fail(&err, TDM_ERR_PEER,
				"interrupted: its last pages were not waited for");
			note_failure(guest, &err);
			break;
		}
		if (silent_ms >= DRAIN_MS) {
			struct tdm_error err;

			tdm_fail(&err, TDM_ERR_PEER,
				"the agent sent no pages for %d s after the stop", DRAIN_MS / 1000);
			note_failure(guest, &err);
			break;
		}
		for (uint32_t cpu = 0; cpu < guest->link_count; cpu++) {
			if (guest->links[cpu] && guest->polls[cpu].revents) {
				move_link(guest, cpu);
			}
		}
		if (guest->polls[guest->link_count + 1].revents && !guest->stopping) {
			struct tdm_error err;

			tdm_fail(&err, TDM_ERR_PEER, "the agent ended the recording");
			note_failure(guest, &err);
			break;
		}
	}
	return NULL;
}

enum tdm_status record_guest_start(struct record_guest *guest, struct tdm_error *err)
{
	const int failure = pthread_create(&guest->thread, NULL, run_guest, guest);

	if (failure) {
		return tdm_fail_errno(
			err, failure, "starting a thread for guest \"%s\"", guest->options.name);
	}
	guest->runs = true;

	const enum tdm_status status = tdm_stream_start(guest->stream, err);

	guest->started = status == TDM_OK;
	return status == TDM_OK ? status
				: tdm_error_prefix(err, "guest \"%s\"", guest->options.name);
}

void record_guest_ask_stop(struct record_guest *guest)
{
	const uint64_t one = 1;

	guest->stopping = true;
	(void)!write(guest->stop_fd, &one, sizeof(one));
	/* A guest that has gone shows in record_guest_wait(). */
	tdm_stream_stop(guest->stream, NULL);
}

static void join(struct record_guest *guest)
{
	if (guest->runs) {
		pthread_join(guest->thread, NULL);
		guest->runs = false;
	}
}

struct record_guest_result record_guest_wait(struct record_guest *guest)
{
	struct tdm_stream_end end = { 0 };
	struct tdm_error err = { 0 };

	join(guest);
	if (guest->failure.status == TDM_OK) {
		if (tdm_stream_receive_end(guest->stream, &guest->meta, &end, &err) != TDM_OK) {
			note_failure(guest, &err);
		} else if (end.sent_bytes != guest->bytes) {
			tdm_fail(&err, TDM_ERR_PEER,
				"the agent sent %" PRIu64 " bytes of pages, %" PRIu64 " came",
				end.sent_bytes, (uint64_t)guest->bytes);
			note_failure(guest, &err);
		}
	}
	if (record_spool_save_meta(guest->spool, &guest->meta, &err) != TDM_OK) {
		note_failure(guest, &err);
	}
	return (struct record_guest_result){
		.failure = guest->failure,
		.received_bytes = guest->bytes,
		.sent_bytes = end.sent_bytes,
		.lost_events = end.overrun_events + end.dropped_events,
	};
}

uint64_t record_guest_bytes(const struct record_guest *guest)
{
	return guest->bytes;
}

struct record_spool *record_guest_spool(struct record_guest *guest)
{
	return guest->spool;
}

struct tdm_stream_facts record_guest_facts(const struct record_guest *guest)
{
	return tdm_stream_get_facts(guest->stream);
}

void record_guest_destroy(struct record_guest *guest)
{
	if (!guest) {
		return;
	}
	if (guest->runs) {
		record_guest_ask_stop(guest);
		join(guest);
	}
	for (uint32_t cpu = 0; guest->links && cpu < guest->link_count; cpu++) {
		tdm_page_link_destroy(guest->links[cpu]);
	}
	free(guest->links);
	free(guest->polls);
	tdm_stream_destroy(guest->stream);
	record_spool_close(guest->spool);
	tdm_trace_meta_release(&guest->meta);
	if (guest->stop_fd >= 0) {
		close(guest->stop_fd);
	}
	free(guest);
}
