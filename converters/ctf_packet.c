/* SPDX-License-Identifier: MIT */
#include "ctf_packet.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1 << 20)

enum tdm_status tdm_ctf_stream_init(struct tdm_ctf_stream *stream,
	const struct tdm_ctf_layout *layout, const char *path, uint32_t cpu, uint64_t reserve_bytes)
{
	*stream = (struct tdm_ctf_stream){
		.layout = layout, .fd = -1, .cpu = cpu, .reserve_bytes = reserve_bytes
	};
	stream->path = strdup(path);
	stream->bytes = malloc(TDM_CTF_PACKET_ROOM_BYTES);
	if (!stream->path || !stream->bytes) {
		tdm_ctf_stream_release(stream);
		return TDM_ERR_NOMEM;
	}
	stream->at = stream->bytes + TDM_CTF_PACKET_HEAD_BYTES;
	stream->full = stream->bytes + TDM_CTF_PACKET_FULL_BYTES;
	stream->limit = stream->bytes + TDM_CTF_PACKET_ROOM_BYTES;
	return TDM_OK;
}

void tdm_ctf_stream_release(struct tdm_ctf_stream *stream)
{
	if (stream->fd >= 0) {
		close(stream->fd);
	}
	free(stream->path);
	free(stream->bytes);
	*stream = (struct tdm_ctf_stream){ .fd = -1 };
}

static enum tdm_status write_at(const struct tdm_ctf_stream *stream, const uint8_t *bytes,
	size_t size, uint64_t offset, struct tdm_error *err)
{
	while (size) {
		const ssize_t count = pwrite(stream->fd, bytes, size, (off_t)offset);

		if (count < 0) {
			if (errno == EINTR) {
				continue;
			}
			return tdm_fail_errno(err, errno,
				"%s: cannot write %zu bytes at offset %llu", stream->path, size,
				(unsigned long long)offset);
		}
		bytes += count;
		size -= (size_t)count;
		offset += (uint64_t)count;
	}
	return TDM_OK;
}

static void put_head(const struct tdm_ctf_stream *stream, uint8_t *at, uint64_t begin_time,
	uint64_t end_time, uint64_t content_bytes, uint64_t packet_bytes, uint64_t discarded)
{
	const bool big_endian = stream->layout->big_endian;

	at = tdm_ctf_put_u32(at, TDM_CTF_MAGIC, big_endian);
	memcpy(at, stream->layout->trace_uuid, 16);
	at = tdm_ctf_put_u32(at + 16, 0, big_endian);
	at = tdm_ctf_put_u64(at, stream->cpu, big_endian);
	at = tdm_ctf_put_u64(at, begin_time, big_endian);
	at = tdm_ctf_put_u64(at, end_time, big_endian);
	at = tdm_ctf_put_u64(at, content_bytes * 8, big_endian);
	at = tdm_ctf_put_u64(at, packet_bytes * 8, big_endian);
	at = tdm_ctf_put_u64(at, discarded, big_endian);
	tdm_ctf_put_u32(at, stream->cpu, big_endian);
}

static enum tdm_status open_file(struct tdm_ctf_stream *stream, struct tdm_error *err)
{
	if (stream->fd < 0) {
		stream->fd = open(stream->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (stream->fd < 0) {
			return tdm_fail_errno(err, errno, "%s: cannot create", stream->path);
		}
	}
	return TDM_OK;
}

enum tdm_status tdm_ctf_stream_flush(struct tdm_ctf_stream *stream, struct tdm_error *err)
{
	const size_t size = (size_t)(stream->at - stream->bytes);
	enum tdm_status status;

	if (!stream->is_open) {
		return TDM_OK;
	}
	status = open_file(stream, err);
	if (status != TDM_OK) {
		return status;
	}
	if (stream->packet_count == 0) {
		stream->file_bytes = stream->reserve_bytes;
	}
	put_head(stream, stream->bytes, stream->begin_time, stream->last_time, size, size,
		stream->discarded);
	status = write_at(stream, stream->bytes, size, stream->file_bytes, err);
	stream->file_bytes += size;
	stream->packet_count++;
	stream->is_open = false;
	stream->at = stream->bytes + TDM_CTF_PACKET_HEAD_BYTES;
	return status;
}

enum tdm_status tdm_ctf_stream_finish(struct tdm_ctf_stream *stream, struct tdm_error *err)
{
	if (stream->packet_count == 0) {
		stream->reserve_bytes =
			0; /* one packet: moved at no cost, so that small files stay small */
	}

	const enum tdm_status status = tdm_ctf_stream_flush(stream, err);
	const int fd = stream->fd;

	stream->fd = -1;
	if (fd >= 0 && close(fd) != 0 && status == TDM_OK) {
		return tdm_fail_errno(err, errno, "%s: cannot close", stream->path);
	}
	return status;
}

/* Moves all that follows the reserved room back by @p by_bytes, from the end on: a block is read before it is written. */
static enum tdm_status move_back(
	struct tdm_ctf_stream *stream, uint64_t by_bytes, struct tdm_error *err)
{
	uint8_t *const block = malloc(COPY_BYTES);
	uint64_t end = stream->file_bytes;
	enum tdm_status status = TDM_OK;

	if (!block) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", stream->path);
	}
	while (end > stream->reserve_bytes && status == TDM_OK) {
		const uint64_t left = end - stream->reserve_bytes;
		const size_t size = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
		size_t got = 0;

		end -= size;
		while (got < size) {
			const ssize_t count =
				pread(stream->fd, block + got, size - got, (off_t)(end + got));

			if (count < 0 && errno == EINTR) {
				continue;
			}
			if (count <= 0) {
				status = tdm_fail_errno(err, count ? errno : EIO,
					"%s: cannot read back %zu bytes at offset %llu",
					stream->path, size, (unsigned long long)end);
				break;
			}
			got += (size_t)count;
		}
		if (status == TDM_OK) {
			status = write_at(stream, block, size, end + by_bytes, err);
		}
	}
	free(block);
	stream->file_bytes += by_bytes;
	stream->reserve_bytes += by_bytes;
	return status;
}

enum tdm_status tdm_ctf_stream_put_head(struct tdm_ctf_stream *stream, const uint8_t *content,
	size_t content_bytes, uint64_t time, struct tdm_error *err)
{
	const uint64_t wanted = TDM_CTF_PACKET_HEAD_BYTES + content_bytes;
	uint8_t head[TDM_CTF_PACKET_HEAD_BYTES];
	enum tdm_status status = TDM_OK;

	stream->fd = open(stream->path, O_RDWR | O_CLOEXEC);
	if (stream->fd < 0) {
		return tdm_fail_errno(err, errno, "%s: cannot open again", stream->path);
	}
	if (wanted > stream->reserve_bytes) {
		status = move_back(stream, wanted - stream->reserve_bytes, err);
	}
	put_head(stream, head, time, time, wanted, stream->reserve_bytes, 0);
	if (status == TDM_OK) {
		status = write_at(stream, head, sizeof(head), 0, err);
	}
	if (status == TDM_OK) {
		status = write_at(stream, content, content_bytes, sizeof(head), err);
	}
	if (close(stream->fd) != 0 && status == TDM_OK) {
		status = tdm_fail_errno(err, errno, "%s: cannot close", stream->path);
	}
	stream->fd = -1;
	return status;
}
