/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <unistd.h>

enum {
	PIPE_PAGES = 256 /* the most that a pipe of an ordinary user may hold */
};

struct tdm_ring {
	int fd; /* trace_pipe_raw, non-blocking */
	int pipe_read, pipe_write;
	uint32_t cpu;
	uint32_t page_bytes, header_bytes;
	size_t pipe_bytes; /* what one splice may take */
	bool splices;      /* false once the kernel refused: then pages are copied */
	uint8_t *page;     /* for copies */
};

struct tdm_ring *tdm_ring_open(struct tdm_tap *tap, uint32_t cpu, struct tdm_error *err)
{
	char path[512];
	struct tdm_ring *ring = calloc(1, sizeof(*ring));
	int ends[2] = { -1, -1 };

	if (!ring) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a ring");
		return NULL;
	}
	*ring = (struct tdm_ring){
		.fd = -1,
		.pipe_read = -1,
		.pipe_write = -1,
		.cpu = cpu,
		.page_bytes = tap->page_bytes,
		.header_bytes = tap->header_bytes,
		.page = malloc(tap->page_bytes),
	};
	snprintf(path, sizeof(path), "%s/per_cpu/cpu%" PRIu32 "/trace_pipe_raw", tap->path, cpu);
	ring->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (ring->fd < 0 || !ring->page) {
		tdm_fail_errno(err, ring->fd < 0 ? errno : ENOMEM, "%s", path);
		tdm_ring_close(ring);
		return NULL;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		ring->pipe_read = ends[0];
		ring->pipe_write = ends[1];
		/* A wider pipe moves more pages a call; the default is fine where this is refused. */
		fcntl(ring->pipe_write, F_SETPIPE_SZ, (int)(PIPE_PAGES * tap->page_bytes));

		const int room = fcntl(ring->pipe_write, F_GETPIPE_SZ);

		ring->pipe_bytes = room > 0 ? (size_t)room : tap->page_bytes;
		/* A pipe slot holds one system page: larger sub-buffers do not fit whole and are copied. */
		ring->splices = tap->page_bytes == (uint32_t)sysconf(_SC_PAGESIZE);
	}
	return ring;
}

void tdm_ring_close(struct tdm_ring *ring)
{
	if (!ring) {
		return;
	}
	const int fds[] = { ring->fd, ring->pipe_read, ring->pipe_write };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0) {
			close(fds[i]);
		}
	}
	free(ring->page);
	free(ring);
}

int tdm_ring_poll_fd(const struct tdm_ring *ring)
{
	return ring->fd;
}

/* Waits until out_fd takes bytes again. However long all of it takes: only standing still is a fault. */
static enum tdm_status wait_writable(int out_fd, unsigned int timeout_ms, struct tdm_error *err)
{
	struct pollfd poll_fd = { .fd = out_fd, .events = POLLOUT };
	const int ready = poll(&poll_fd, 1, (int)timeout_ms);

	if (ready == 0) {
		return tdm_fail(err, TDM_ERR_PEER, "the receiver of the pages takes none for %u ms",
			timeout_ms);
	}
	return ready < 0 && errno != EINTR ? tdm_fail_errno(err, errno, "poll") : TDM_OK;
}

static enum tdm_status drain_pipe(struct tdm_ring *ring, int out_fd, size_t count,
	unsigned int timeout_ms, struct tdm_error *err)
{
	while (count) {
		const ssize_t done =
			splice(ring->pipe_read, NULL, out_fd, NULL, count, SPLICE_F_MOVE);

		if (done > 0) {
			count -= (size_t)done;
		} else if (done < 0 && errno == EAGAIN) {
			const enum tdm_status status = wait_writable(out_fd, timeout_ms, err);

			if (status != TDM_OK) {
				return status;
			}
		} else if (done == 0 || errno != EINTR) {
			return tdm_fail_errno(
				err, done ? errno : EIO, "moving pages of CPU %" PRIu32, ring->cpu);
		}
	}
	return TDM_OK;
}

static enum tdm_status write_page(
	struct tdm_ring *ring, int out_fd, unsigned int timeout_ms, struct tdm_error *err)
{
	for (size_t sent = 0; sent < ring->page_bytes;) {
		const ssize_t done = write(out_fd, ring->page + sent, ring->page_bytes - sent);

		if (done > 0) {
			sent += (size_t)done;
		} else if (done < 0 && errno == EAGAIN) {
			const enum tdm_status status = wait_writable(out_fd, timeout_ms, err);

			if (status != TDM_OK) {
				return status;
			}
		} else if (done == 0 || errno != EINTR) {
			return tdm_fail_errno(err, done ? errno : EIO,
				"writing pages of CPU %" PRIu32, ring->cpu);
		}
	}
	return TDM_OK;
}

/* Copying stands in for splice; it also takes the page that is being filled, so it stops after that one. */
static enum tdm_status move_by_copy(struct tdm_ring *ring, int out_fd, unsigned int timeout_ms,
	uint64_t *moved_bytes, struct tdm_error *err)
{
	for (;;) {
		enum tdm_status status = tdm_ring_read(ring, ring->page, err);

		if (status == TDM_AGAIN) {
			return TDM_OK;
		}
		if (status == TDM_OK) {
			status = write_page(ring, out_fd, timeout_ms, err);
		}
		if (status != TDM_OK) {
			return status;
		}
		*moved_bytes += ring->page_bytes;
	}
}

enum tdm_status tdm_ring_move(struct tdm_ring *ring, int out_fd, unsigned int timeout_ms,
	uint64_t *moved_bytes, struct tdm_error *err)
{
	*moved_bytes = 0;
	while (ring->splices) {
		const ssize_t taken = splice(ring->fd, NULL, ring->pipe_write, NULL,
			ring->pipe_bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (taken == 0 || (taken < 0 && (errno == EAGAIN || errno == EINTR))) {
			return TDM_OK;
		}
		if (taken < 0) {
			/* Not every file takes part in splice; copying always works. */
			ring->splices = false;
			break;
		}

		const enum tdm_status status =
			drain_pipe(ring, out_fd, (size_t)taken, timeout_ms, err);

		if (status != TDM_OK) {
			return status;
		}
		*moved_bytes += (uint64_t)taken;
		/* Not to run after a busy tracer page by page: what is filled meanwhile waits until it is much again. */
		if ((size_t)taken < ring->pipe_bytes) {
			return TDM_OK;
		}
	}
	return move_by_copy(ring, out_fd, timeout_ms, moved_bytes, err);
}

/* What a splice put into the pipe. */
static enum tdm_status read_pipe(
	struct tdm_ring *ring, uint8_t *to, size_t count, struct tdm_error *err)
{
	while (count) {
		const ssize_t done = read(ring->pipe_read, to, count);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(
				err, done ? errno : EIO, "taking pages of CPU %" PRIu32, ring->cpu);
		}
		to += done;
		count -= (size_t)done;
	}
	return TDM_OK;
}

enum tdm_status tdm_ring_take(
	struct tdm_ring *ring, void *pages, size_t room, size_t *got_bytes, struct tdm_error *err)
{
	uint8_t *to = pages;

	*got_bytes = 0;
	room -= room % ring->page_bytes;
	while (ring->splices && *got_bytes < room) {
		const size_t wanted = room - *got_bytes;
		const ssize_t taken = splice(ring->fd, NULL, ring->pipe_write, NULL, wanted,
			SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (taken == 0 || (taken < 0 && (errno == EAGAIN || errno == EINTR))) {
			return TDM_OK;
		}
		if (taken < 0) {
			ring->splices = false;
			break;
		}

		const enum tdm_status status = read_pipe(ring, to + *got_bytes, (size_t)taken, err);

		if (status != TDM_OK) {
			return status;
		}
		*got_bytes += (size_t)taken;
		if ((size_t)taken < wanted && (size_t)taken < ring->pipe_bytes) {
			return TDM_OK;
		}
	}
	while (!ring->splices && *got_bytes < room) {
		const enum tdm_status status = tdm_ring_read(ring, to + *got_bytes, err);

		if (status == TDM_AGAIN) {
			return TDM_OK;
		}
		if (status != TDM_OK) {
			return status;
		}
		*got_bytes += ring->page_bytes;
	}
	return TDM_OK;
}

enum tdm_status tdm_ring_read(struct tdm_ring *ring, void *page, struct tdm_error *err)
{
	ssize_t done;

	do {
		done = read(ring->fd, page, ring->page_bytes);
	} while (done < 0 && errno == EINTR);

	if (done == 0 || (done < 0 && errno == EAGAIN)) {
		return TDM_AGAIN;
	}
	if (done < 0) {
		return tdm_fail_errno(err, errno, "reading the ring of CPU %" PRIu32, ring->cpu);
	}
	if ((uint32_t)done < ring->header_bytes) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"ring of CPU %" PRIu32 ": %zd bytes, a page header has %" PRIu32, ring->cpu,
			done, ring->header_bytes);
	}
	/* Behind the commit lies whatever the kernel page held before, and behind that nothing of ours. */
	memset((uint8_t *)page + done, 0, ring->page_bytes - (size_t)done);
	return TDM_OK;
}

void tdm_ring_empty_page(const struct tdm_ring *ring, void *page, uint64_t time)
{
	memset(page, 0, ring->page_bytes);
	memcpy(page, &time, sizeof(time));
}
