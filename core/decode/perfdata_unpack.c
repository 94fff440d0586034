/* SPDX-License-Identifier: MIT */
/*
 * Compressed records. All of a store's compressed records together are one zstd stream, which can only be read front
 * to back: its records go to a spool, in their order, so that each CPU's can then be read on their own.
 */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/spool.h>
#include <unistd.h>
#include <zstd.h>

enum {
	OUT_ROOM = 128 << 10,
	FLUSH_AT = 256 << 10,
	BLOCK_HEADER_BYTES = 3, /* what zstd asks for between two blocks */
	MAX_BURST_BYTES = 256 << 20
};

struct unpacker {
	struct perfdata *pd;
	ZSTD_DCtx *zstd;
	int spool_fd;
	uint64_t spool_bytes;
	struct tdm_buffer out;  /* whole records, to be written */
	struct tdm_buffer tail; /* decoded bytes that are no whole record yet */
	uint8_t *room;
	uint64_t compressed_records;
};

static enum tdm_status flush(struct unpacker *un, size_t least, struct tdm_error *err)
{
	if (un->out.size <= least) {
		return TDM_OK;
	}

	const enum tdm_status status =
		tdm_spool_write(un->spool_fd, un->out.bytes, un->out.size, err);

	un->spool_bytes += un->out.size;
	un->out.size = 0;
	return status;
}

static enum tdm_status put(
	struct unpacker *un, const void *bytes, size_t count, struct tdm_error *err)
{
	if (tdm_buffer_append(&un->out, bytes, count) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory to decompress", un->pd->path);
	}
	return flush(un, FLUSH_AT, err);
}

/* Moves what is whole from the decoded bytes to the output. @retval TDM_END  A record that makes no sense follows. */
static enum tdm_status take_whole(struct unpacker *un, struct tdm_error *err)
{
	uint16_t size = PERF_RECORD_HEADER_BYTES;
	size_t pos = 0;

	while (un->tail.size - pos >= PERF_RECORD_HEADER_BYTES) {
		size = tdm_load_u16(un->tail.bytes + pos + 6, un->pd->big_endian);
		if (size < PERF_RECORD_HEADER_BYTES || size > un->tail.size - pos) {
			break;
		}
		pos += size;
	}

	const enum tdm_status status = put(un, un->tail.bytes, pos, err);

	if (status == TDM_OK && size < PERF_RECORD_HEADER_BYTES) {
		trace_fault(&un->pd->trace, 0,
			"decoded byte 0x%" PRIx64
			": a record says it has %u bytes: nothing can be read from here on",
			un->spool_bytes + un->out.size, size);
		un->tail.size = 0;
		return TDM_END;
	}
	if (pos) {
		memmove(un->tail.bytes, un->tail.bytes + pos, un->tail.size - pos);
		un->tail.size -= pos;
	}
	return status;
}

/* Decodes one piece. @p hint receives what zstd wants next. @retval TDM_END  The stream is damaged. */
static enum tdm_status decode(struct unpacker *un, const struct perfdata_record *record,
	size_t from, size_t count, uint64_t *burst_bytes, size_t *hint, struct tdm_error *err)
{
	ZSTD_inBuffer in = { record->bytes + from, count, 0 };
	bool is_full = true;
	char place[300];

	while (in.pos < in.size || is_full) {
		ZSTD_outBuffer out = { un->room, OUT_ROOM, 0 };

		*hint = ZSTD_decompressStream(un->zstd, &out, &in);
		if (ZSTD_isError(*hint)) {
			trace_fault(&un->pd->trace, 0,
				"at %s: compressed record cannot be decoded (%s): nothing behind it can be",
				perfdata_place(un->pd, record->offset, place, sizeof(place)),
				ZSTD_getErrorName(*hint));
			return TDM_END;
		}
		*burst_bytes += out.pos;
		if (*burst_bytes > MAX_BURST_BYTES) {
			trace_fault(&un->pd->trace, 0,
				"at %s: compressed record of %" PRIu32
				" bytes gives more than %d MiB: not believed",
				perfdata_place(un->pd, record->offset, place, sizeof(place)),
				record->size, MAX_BURST_BYTES >> 20);
			return TDM_END;
		}
		is_full = out.pos == out.size;
		if (tdm_buffer_append(&un->tail, un->room, out.pos) != TDM_OK) {
			return tdm_fail(
				err, TDM_ERR_NOMEM, "%s: no memory to decompress", un->pd->path);
		}

		const enum tdm_status status = take_whole(un, err);

		if (status != TDM_OK) {
			return status;
		}
		if (!out.pos && in.pos == in.size) {
			break;
		}
	}
	return TDM_OK;
}

static enum tdm_status unpack_one(
	struct unpacker *un, const struct perfdata_record *record, struct tdm_error *err)
{
	size_t from = PERF_RECORD_HEADER_BYTES;
	size_t count = record->size - from;
	size_t rest = 0;
	uint64_t burst_bytes = 0;
	size_t hint = 0;

	un->compressed_records++;
	if (record->type == PERF_RECORD_COMPRESSED2) {
		if (count < 8) {
			trace_fault(&un->pd->trace, 0,
				"a compressed record of %" PRIu32 " bytes has no length",
				record->size);
			return TDM_END;
		}

		const uint64_t said = tdm_load_u64(record->bytes + from, un->pd->big_endian);

		from += 8;
		count -= 8;
		if (said < count) {
			rest = count - (size_t)said;
			count = (size_t)said;
		}
	}

	enum tdm_status status = decode(un, record, from, count, &burst_bytes, &hint, err);

	/*
	 * Padding is less than 8 bytes, and a record ends with a block of zstd's. Some releases of perf wrote a length
	 * that is too short: then the missing bytes are where the padding should be.
	 */
	if (status == TDM_OK && rest && hint > BLOCK_HEADER_BYTES) {
		trace_fault(&un->pd->trace, 0,
			"the length of compressed records is too short: the size of the record is used");
	}
	while (status == TDM_OK && rest && hint > BLOCK_HEADER_BYTES) {
		/* zstd asks for the rest of its block and the header of the next, which is not here: that is padding. */
		const size_t wanted = hint - BLOCK_HEADER_BYTES;
		const size_t more = wanted < rest ? wanted : rest;

		from += count;
		count = more;
		rest -= more;
		status = decode(un, record, from, count, &burst_bytes, &hint, err);
	}
	return status;
}

static enum tdm_status unpack_all(struct unpacker *un, size_t store_index, struct tdm_error *err)
{
	struct perfdata *pd = un->pd;
	struct perfdata_walk walk;
	struct perfdata_record record;
	bool is_damaged = false;
	enum tdm_status status = perfdata_walk_start(&walk, &pd->stores[store_index], err);

	while (status == TDM_OK) {
		status = perfdata_walk_next(pd, &walk, &record, err);
		if (status != TDM_OK) {
			break;
		}
		switch (record.type) {
		case PERF_RECORD_COMPRESSED:
		case PERF_RECORD_COMPRESSED2:
			if (!is_damaged) {
				status = unpack_one(un, &record, err);
			}
			if (status == TDM_END) {
				/* The plain records behind it (names, losses) can still be had. */
				is_damaged = true;
				status = TDM_OK;
			}
			break;
		case PERF_RECORD_AUXTRACE:
		case PERF_RECORD_TRACING_DATA:
			/* Metadata of pipes has been read before; nobody wants hardware traces. */
			status = perfdata_walk_skip(
				pd, &walk, perfdata_payload_bytes(pd, &record), err);
			break;
		default:
			status = put(un, record.bytes, record.size, err);
			break;
		}
	}
	perfdata_walk_end(&walk);
	if (status != TDM_END) {
		return status;
	}
	if (un->tail.size && !is_damaged) {
		trace_fault(&pd->trace, 0,
			"the compressed data ends inside a record: its last %zu bytes are lost",
			un->tail.size);
	}
	return flush(un, 0, err);
}

enum tdm_status perfdata_unpack(struct perfdata *pd, size_t store_index, struct tdm_error *err)
{
	struct unpacker un = { .pd = pd,
		.zstd = ZSTD_createDCtx(),
		.spool_fd = tdm_spool_create(err),
		.room = malloc(OUT_ROOM) };
	enum tdm_status status = TDM_ERR_IO;

	if (un.spool_fd < 0) {
		goto out;
	}
	if (!un.zstd || !un.room) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory to decompress", pd->path);
		goto out;
	}
	status = unpack_all(&un, store_index, err);
	if (status == TDM_OK) {
		struct perfdata_store *store = &pd->stores[store_index];

		close(store->fd);
		store->fd = un.spool_fd;
		un.spool_fd = -1;
		store->is_spool = true;
		store->file_at = 0;
		store->bytes = un.spool_bytes;
		pd->was_compressed = true;
		/* The stores behind this one move, so that none overlaps. Nothing points into them yet. */
		for (size_t i = store_index + 1; i < pd->store_count; i++) {
			pd->stores[i].start =
				pd->stores[i - 1].start + pd->stores[i - 1].bytes + (1 << 20);
		}
	}
out:
	if (un.spool_fd >= 0) {
		close(un.spool_fd);
	}
	ZSTD_freeDCtx(un.zstd);
	free(un.room);
	tdm_buffer_release(&un.out);
	tdm_buffer_release(&un.tail);
	return status;
}
