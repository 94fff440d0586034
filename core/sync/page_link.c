/* SPDX-License-Identifier: MIT */
#include "stream_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIPE_BYTES = 1 << 20,
	MOVES_PER_CALL = 16 /* then the caller looks at its other links */
};

struct tdm_page_link {
	struct tdm_link *link;
	int fd; /* the link's, for bytes behind OPENED */
	uint32_t cpu;
	bool splices;
	int pipe_read, pipe_write;
	/* sealed pages */
	uint8_t key[TDM_KEY_BYTES];
	struct tdm_seal *seal; /* NULL until its header came */
	bool sealed, ended;
	uint8_t *received; /* room for one record */
	size_t received_bytes;
	uint8_t *plain;
};

static enum tdm_status open_link(
	struct tdm_page_link *made, struct tdm_stream *stream, struct tdm_error *err)
{
	struct tdm_buffer open = { 0 };
	char number[16];
	bool failed = tdm_open_put(&open, TDM_PURPOSE_STREAM, 0) != TDM_OK;

	snprintf(number, sizeof(number), "%" PRIu32, made->cpu);
	failed |= tdm_record_add(&open, TDM_STREAM_KEY_TOKEN, stream->token) != TDM_OK;
	failed |= tdm_record_add(&open, TDM_STREAM_KEY_CPU, number) != TDM_OK;

	const enum tdm_status status =
		failed ? tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request")
		       : tdm_link_open(&stream->address, &stream->link_options, &open,
				 tdm_deadline_ns(stream->timeout_ms), 0, &made->link, NULL, err);

	tdm_buffer_release(&open);
	return status;
}

static enum tdm_status make_buffers(struct tdm_page_link *link, struct tdm_error *err)
{
	int ends[2];

	if (link->sealed) {
		link->received = malloc(TDM_SEAL_RECORD_MAX_BYTES);
		link->plain = malloc(TDM_SEAL_PLAIN_MAX_BYTES);
	} else {
		link->plain = malloc(PIPE_BYTES);
		if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
			link->pipe_read = ends[0];
			link->pipe_write = ends[1];
			fcntl(link->pipe_write, F_SETPIPE_SZ, PIPE_BYTES);
			link->splices = true;
		}
	}
	return link->plain && (link->received || !link->sealed)
		       ? TDM_OK
		       : tdm_fail(err, TDM_ERR_NOMEM, "no memory for pages");
}

struct tdm_page_link *tdm_page_link_create(
	struct tdm_stream *stream, uint32_t cpu, struct tdm_error *err)
{
	struct tdm_page_link *link = calloc(1, sizeof(*link));

	if (!link) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a page link");
		return NULL;
	}
	link->cpu = cpu;
	link->sealed = stream->info.sealed;
	link->pipe_read = -1;
	link->pipe_write = -1;

	enum tdm_status status = open_link(link, stream, err);

	if (status == TDM_OK) {
		link->fd = tdm_link_fd(link->link);
		if (link->sealed) {
			tdm_link_derive(link->link, TDM_ROLE_SERVER, "pages", link->key);
		}
		status = make_buffers(link, err);
	}
	if (status != TDM_OK) {
		tdm_page_link_destroy(link);
		return NULL;
	}
	return link;
}

void tdm_page_link_destroy(struct tdm_page_link *link)
{
	if (!link) {
		return;
	}
	if (link->pipe_read >= 0) {
		close(link->pipe_read);
		close(link->pipe_write);
	}
	tdm_seal_destroy(link->seal);
	tdm_link_destroy(link->link);
	free(link->received);
	free(link->plain);
	free(link);
}

int tdm_page_link_fd(const struct tdm_page_link *link)
{
	return link->fd;
}

static enum tdm_status write_all(const struct tdm_page_link *link, int out_fd, const uint8_t *bytes,
	size_t count, struct tdm_error *err)
{
	while (count) {
		const ssize_t done = write(out_fd, bytes, count);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(err, done < 0 ? errno : ENOSPC,
				"writing pages of guest CPU %" PRIu32, link->cpu);
		}
		bytes += done;
		count -= (size_t)done;
	}
	return TDM_OK;
}

/* Pipe to file: a blocking file takes it all. */
static enum tdm_status pipe_to_file(
	const struct tdm_page_link *link, int out_fd, size_t count, struct tdm_error *err)
{
	while (count) {
		const ssize_t done =
			splice(link->pipe_read, NULL, out_fd, NULL, count, SPLICE_F_MOVE);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(err, done < 0 ? errno : ENOSPC,
				"writing pages of guest CPU %" PRIu32, link->cpu);
		}
		count -= (size_t)done;
	}
	return TDM_OK;
}

static enum tdm_status splice_once(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err)
{
	const ssize_t taken = splice(link->fd, NULL, link->pipe_write, NULL, PIPE_BYTES,
		SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (taken == 0) {
		return TDM_END;
	}
	if (taken < 0 && (errno == EAGAIN || errno == EINTR)) {
		return TDM_AGAIN;
	}
	if (taken < 0 && errno == EINVAL) {
		/* This kind of socket takes no part in splice. */
		link->splices = false;
		return TDM_OK;
	}
	if (taken < 0) {
		return tdm_fail(err, TDM_ERR_PEER, "pages of guest CPU %" PRIu32 ": %s", link->cpu,
			strerror(errno));
	}
	*moved_bytes += (uint64_t)taken;
	return pipe_to_file(link, out_fd, (size_t)taken, err);
}

static enum tdm_status copy_once(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err)
{
	size_t got = 0;
	const enum tdm_status status =
		tdm_socket_receive(link->fd, link->plain, PIPE_BYTES, &got, err);

	if (status != TDM_OK) {
		return status;
	}
	*moved_bytes += got;
	return write_all(link, out_fd, link->plain, got, err);
}

/* How many bytes are wanted next: the header, a length, or a record. 0 for a length that cannot be. */
static size_t wanted_bytes(const struct tdm_page_link *link)
{
	if (!link->seal) {
		return TDM_SEAL_HEADER_BYTES;
	}
	if (link->received_bytes < TDM_SEAL_LENGTH_BYTES) {
		return TDM_SEAL_LENGTH_BYTES;
	}

	const uint32_t length = tdm_load_u32(link->received, false);

	return length < TDM_SEAL_EXTRA_BYTES ||
			       length > TDM_SEAL_PLAIN_MAX_BYTES + TDM_SEAL_EXTRA_BYTES
		       ? 0
		       : TDM_SEAL_LENGTH_BYTES + length;
}

/* What was wanted is there: takes it. */
static enum tdm_status take_record(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err)
{
	const size_t size = link->received_bytes;

	link->received_bytes = 0;
	if (!link->seal) {
		link->seal = tdm_seal_open(link->key, link->received);
		return link->seal ? TDM_OK
				  : tdm_fail(err, TDM_ERR_PEER, "sealed pages begin with no seal");
	}

	const size_t plain_bytes = size - TDM_SEAL_LENGTH_BYTES - TDM_SEAL_EXTRA_BYTES;
	enum tdm_status status = tdm_seal_get(link->seal, link->received + TDM_SEAL_LENGTH_BYTES,
		size - TDM_SEAL_LENGTH_BYTES, link->plain, &link->ended, err);

	if (status == TDM_OK) {
		status = write_all(link, out_fd, link->plain, plain_bytes, err);
		*moved_bytes += plain_bytes;
	}
	return status == TDM_OK && link->ended ? TDM_END : status;
}

static enum tdm_status unseal_once(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err)
{
	const size_t wanted = wanted_bytes(link);
	size_t got = 0;

	if (!wanted) {
		return tdm_fail(err, TDM_ERR_PEER,
			"pages of guest CPU %" PRIu32 ": a record of %" PRIu32 " bytes cannot be",
			link->cpu, tdm_load_u32(link->received, false));
	}

	const enum tdm_status status = tdm_socket_receive(link->fd,
		link->received + link->received_bytes, wanted - link->received_bytes, &got, err);

	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_PEER,
			"pages of guest CPU %" PRIu32 ": cut off before their end", link->cpu);
	}
	if (status != TDM_OK) {
		return status;
	}
	link->received_bytes += got;
	/* A length is only the way to its record. */
	if (link->received_bytes < wanted ||
		(link->seal && link->received_bytes == TDM_SEAL_LENGTH_BYTES)) {
		return TDM_OK;
	}
	return take_record(link, out_fd, moved_bytes, err);
}

enum tdm_status tdm_page_link_move(
	struct tdm_page_link *link, int out_fd, uint64_t *moved_bytes, struct tdm_error *err)
{
	*moved_bytes = 0;
	if (link->ended) {
		return TDM_END;
	}
	for (unsigned int i = 0; i < MOVES_PER_CALL; i++) {
		const enum tdm_status status =
			link->sealed    ? unseal_once(link, out_fd, moved_bytes, err)
			: link->splices ? splice_once(link, out_fd, moved_bytes, err)
					: copy_once(link, out_fd, moved_bytes, err);

		if (status != TDM_OK) {
			link->ended = status == TDM_END;
			return status;
		}
	}
	return TDM_OK;
}
