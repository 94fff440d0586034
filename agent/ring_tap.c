/* SPDX-License-Identifier: MIT */
#include "agent_stream.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <tandem/page_seal.h>

enum {
	LIVE_MS = 100, /* for viewers */
	POLL_MS = 250, /* rings are also looked at this often, full or not; never for each event */
	STALL_MS = 120000, /* a host that takes nothing for so long has gone */
	TAKE_BYTES =
		61440, /* a multiple of any page size up to 4 KiB times 15; larger pages go one by one */
};

/* One CPU on its way out. */
struct ring_tap {
	struct stream_session *session;
	struct tdm_ring *ring;
	int fd; /* of the page connection */
	uint32_t cpu;
	uint32_t page_bytes;
	struct tdm_seal *seal; /* NULL = bare */
	uint8_t header[TDM_SEAL_HEADER_BYTES];
	bool header_sent;
	uint8_t *pages; /* sealed: room_bytes */
	uint8_t *record;
	size_t room_bytes;
};

/* Not before tracing began: until then the host reads frames, and could take the first bytes for some of theirs. */
static enum tdm_status send_sealed(
	struct ring_tap *tap, size_t count, bool last, struct tdm_error *err)
{
	const size_t size = tdm_seal_put(tap->seal, tap->pages, count, last, tap->record);
	enum tdm_status status = TDM_OK;

	if (!tap->header_sent) {
		tap->header_sent = true;
		status = tdm_socket_send(
			tap->fd, tap->header, sizeof(tap->header), tdm_deadline_ns(STALL_MS), err);
	}
	tap->session->sent_bytes += count;
	return status == TDM_OK
		       ? tdm_socket_send(tap->fd, tap->record, size, tdm_deadline_ns(STALL_MS), err)
		       : status;
}

/* The full pages that are there. */
static enum tdm_status send_full_pages(struct ring_tap *tap, struct tdm_error *err)
{
	if (!tap->seal) {
		uint64_t moved_bytes = 0;
		const enum tdm_status status =
			tdm_ring_move(tap->ring, tap->fd, STALL_MS, &moved_bytes, err);

		tap->session->sent_bytes += moved_bytes;
		return status;
	}
	for (;;) {
		size_t got_bytes = 0;
		enum tdm_status status =
			tdm_ring_take(tap->ring, tap->pages, tap->room_bytes, &got_bytes, err);

		if (status != TDM_OK || !got_bytes) {
			return status;
		}
		status = send_sealed(tap, got_bytes, false, err);
		if (status != TDM_OK || got_bytes < tap->room_bytes) {
			return status;
		}
	}
}

/* One page of tap->pages. */
static enum tdm_status send_page(struct ring_tap *tap, struct tdm_error *err)
{
	if (tap->seal) {
		return send_sealed(tap, tap->page_bytes, false, err);
	}
	tap->session->sent_bytes += tap->page_bytes;
	return tdm_socket_send(
		tap->fd, tap->pages, tap->page_bytes, tdm_deadline_ns(STALL_MS), err);
}

/* The pages that are not full. TDM_AGAIN: the ring is empty. */
static enum tdm_status send_partial_pages(struct ring_tap *tap, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	while (status == TDM_OK) {
		status = tdm_ring_read(tap->ring, tap->pages, err);
		if (status == TDM_OK) {
			status = send_page(tap, err);
		}
	}
	return status;
}

/* For viewers: everything up to now, and that it is everything. */
static enum tdm_status send_up_to_now(struct ring_tap *tap, struct tdm_error *err)
{
	const uint64_t now = tdm_clock_read(tap->session->clock);
	const enum tdm_status status = send_partial_pages(tap, err);

	if (status != TDM_AGAIN || now == 0) {
		return status == TDM_AGAIN ? TDM_OK : status;
	}
	tdm_ring_empty_page(tap->ring, tap->pages, now);
	return send_page(tap, err);
}

/* What is left once tracing is off; then the end. */
static enum tdm_status send_rest(struct ring_tap *tap, struct tdm_error *err)
{
	enum tdm_status status = send_full_pages(tap, err);

	if (status == TDM_OK) {
		status = send_partial_pages(tap, err);
	}
	if (status != TDM_AGAIN) {
		return status;
	}
	return tap->seal ? send_sealed(tap, 0, true, err) : TDM_OK;
}

static enum tdm_status prepare(struct ring_tap *tap, const uint8_t *key, struct tdm_error *err)
{
	tap->page_bytes = tdm_tap_page_bytes(tap->session->tap);
	tap->room_bytes = TAKE_BYTES - TAKE_BYTES % tap->page_bytes;
	if (tap->room_bytes == 0) {
		tap->room_bytes = tap->page_bytes;
	}
	tap->pages = malloc(tap->room_bytes);
	tap->record = malloc(tap->room_bytes + TDM_SEAL_LENGTH_BYTES + TDM_SEAL_EXTRA_BYTES);
	if (!tap->pages || !tap->record) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for pages");
	}
	tap->ring = tdm_ring_open(tap->session->tap, tap->cpu, err);
	if (!tap->ring) {
		return err->status;
	}
	if (!key) {
		return TDM_OK;
	}
	tap->seal = tdm_seal_create(key, tap->header);
	if (!tap->seal) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a seal");
	}
	return TDM_OK;
}

/*
 * Sleeps until the ring is half full, a quarter of a second passed, the session changes or the agent ends. Before tracing
 * is on there is nothing to time.
 */
static void wait_for_pages(const struct ring_tap *tap, int stop_fd)
{
	struct pollfd fds[] = {
		{ .fd = tap->session->wake_fd, .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN },
		{ .fd = tdm_ring_poll_fd(tap->ring), .events = POLLIN },
	};

	poll(fds, 3, tap->session->live ? LIVE_MS : POLL_MS);
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

enum tdm_status ring_tap_run(struct stream_session *session, int fd, const uint8_t *key,
	uint32_t cpu, int stop_fd, struct tdm_error *err)
{
	struct ring_tap tap = { .session = session, .fd = fd, .cpu = cpu };
	enum tdm_status status = prepare(&tap, key, err);

	while (status == TDM_OK && session->state <= STREAM_RUNNING && !is_readable(stop_fd)) {
		wait_for_pages(&tap, stop_fd);
		if (session->state == STREAM_RUNNING) {
			status = send_full_pages(&tap, err);
			if (status == TDM_OK && session->live) {
				status = send_up_to_now(&tap, err);
			}
		}
	}
	if (status == TDM_OK && session->state == STREAM_STOPPED) {
		status = send_rest(&tap, err);
	}
	tdm_socket_finish(tap.fd);
	tdm_ring_close(tap.ring);
	tdm_seal_destroy(tap.seal);
	free(tap.pages);
	free(tap.record);
	return status;
}
