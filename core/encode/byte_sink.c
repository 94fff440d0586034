/* SPDX-License-Identifier: MIT */
#include "encode_priv.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
	FLUSH_BYTES = 1 << 20
};

static enum tdm_status write_at(
	struct byte_sink *sink, const void *bytes, size_t count, uint64_t offset)
{
	const uint8_t *at = bytes;

	while (count) {
		const ssize_t done = pwrite(sink->fd, at, count, (off_t)offset);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(&sink->err, done < 0 ? errno : EIO,
				"%s: writing %zu bytes at offset %" PRIu64, sink->path, count,
				offset);
		}
		at += done;
		offset += (uint64_t)done;
		count -= (size_t)done;
	}
	return TDM_OK;
}

enum tdm_status sink_flush(struct byte_sink *sink)
{
	if (sink->fd < 0) {
		return sink->err.status;
	}
	if (sink->err.status == TDM_OK && sink->pending.size) {
		write_at(sink, sink->pending.bytes, sink->pending.size,
			sink->offset - sink->pending.size);
	}
	sink->pending.size = 0;
	return sink->err.status;
}

void sink_bytes(struct byte_sink *sink, const void *bytes, size_t count)
{
	if (sink->err.status != TDM_OK) {
		return;
	}
	if (count >= FLUSH_BYTES && sink->fd >= 0) {
		if (sink_flush(sink) == TDM_OK &&
			write_at(sink, bytes, count, sink->offset) == TDM_OK) {
			sink->offset += count;
		}
		return;
	}
	if (tdm_buffer_append(&sink->pending, bytes, count) != TDM_OK) {
		tdm_fail(&sink->err, TDM_ERR_NOMEM, "%s: no memory for a write buffer", sink->path);
		return;
	}
	sink->offset += count;
	if (sink->pending.size >= FLUSH_BYTES) {
		sink_flush(sink);
	}
}

void sink_u16(struct byte_sink *sink, uint16_t value)
{
	const uint16_t ordered = sink->big_endian ? __builtin_bswap16(value) : value;

	sink_bytes(sink, &ordered, sizeof(ordered));
}

void sink_u32(struct byte_sink *sink, uint32_t value)
{
	const uint32_t ordered = sink->big_endian ? __builtin_bswap32(value) : value;

	sink_bytes(sink, &ordered, sizeof(ordered));
}

void sink_u64(struct byte_sink *sink, uint64_t value)
{
	const uint64_t ordered = sink->big_endian ? __builtin_bswap64(value) : value;

	sink_bytes(sink, &ordered, sizeof(ordered));
}

void sink_string(struct byte_sink *sink, const char *text)
{
	sink_bytes(sink, text, strlen(text) + 1);
}

void sink_pad_to(struct byte_sink *sink, uint64_t alignment)
{
	static const uint8_t zeros[4096];
	uint64_t missing = (alignment - sink->offset % alignment) % alignment;

	while (missing && sink->err.status == TDM_OK) {
		const uint64_t part = missing < sizeof(zeros) ? missing : sizeof(zeros);

		sink_bytes(sink, zeros, part);
		missing -= part;
	}
}

void sink_patch_u64(struct byte_sink *sink, uint64_t offset, uint64_t value)
{
	const uint64_t ordered = sink->big_endian ? __builtin_bswap64(value) : value;

	if (sink->fd < 0 && offset + sizeof(ordered) <= sink->pending.size) {
		memcpy(sink->pending.bytes + offset, &ordered, sizeof(ordered));
	} else if (sink_flush(sink) == TDM_OK) {
		write_at(sink, &ordered, sizeof(ordered), offset);
	}
}

void put_u16(struct tdm_buffer *out, bool big_endian, uint16_t value, bool *failed)
{
	const uint16_t ordered = big_endian ? __builtin_bswap16(value) : value;

	*failed |= tdm_buffer_append(out, &ordered, sizeof(ordered)) != TDM_OK;
}

void put_u32(struct tdm_buffer *out, bool big_endian, uint32_t value, bool *failed)
{
	const uint32_t ordered = big_endian ? __builtin_bswap32(value) : value;

	*failed |= tdm_buffer_append(out, &ordered, sizeof(ordered)) != TDM_OK;
}

void put_u64(struct tdm_buffer *out, bool big_endian, uint64_t value, bool *failed)
{
	const uint64_t ordered = big_endian ? __builtin_bswap64(value) : value;

	*failed |= tdm_buffer_append(out, &ordered, sizeof(ordered)) != TDM_OK;
}
