/* SPDX-License-Identifier: MIT */
#include "encode_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

/* Chunks of a batch: enough to keep the cores busy, few enough to stay small. */
enum {
	PAGES_PER_CHUNK = 10,
	CHUNKS_PER_CORE = 8,
	MAX_CORES = 16,
	ZSTD_LEVEL = 1
};

struct chunk {
	uint8_t *input, *output;
	size_t input_bytes;
	size_t output_bytes; /* a zstd error code where it failed */
};

struct batch {
	struct chunk *chunks;
	size_t count;
	size_t output_room;
	_Atomic size_t next;
};

static size_t compress_frame(
	ZSTD_CCtx *context, void *out, size_t room, const void *in, size_t size)
{
	/* The container tells sizes; readers of the format do not expect them in the frame. */
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
	return ZSTD_compress2(context, out, room, in, size);
}

static enum tdm_status compress_text(
	const void *text, size_t text_bytes, struct tdm_buffer *out, struct tdm_error *err)
{
	const size_t room = ZSTD_compressBound(text_bytes);
	ZSTD_CCtx *context = ZSTD_createCCtx();
	enum tdm_status status = TDM_ERR_NOMEM;

	out->size = 0;
	if (context && tdm_buffer_reserve(out, room) == TDM_OK) {
		const size_t size = compress_frame(context, out->bytes, room, text, text_bytes);

		if (!ZSTD_isError(size)) {
			out->size = size;
			status = TDM_OK;
		}
	}
	ZSTD_freeCCtx(context);
	return status == TDM_OK
		       ? TDM_OK
		       : tdm_fail(err, status, "cannot compress %zu bytes of metadata", text_bytes);
}

static const char *zstd_version(void)
{
	return ZSTD_versionString();
}

const struct text_packer zstd_packer = {
	.name = "zstd", .version = zstd_version, .pack = compress_text
};

static void *compress_worker(void *argument)
{
	struct batch *batch = argument;
	ZSTD_CCtx *context = ZSTD_createCCtx();

	for (;;) {
		const size_t index = atomic_fetch_add(&batch->next, 1);

		if (index >= batch->count) {
			break;
		}

		struct chunk *chunk = &batch->chunks[index];

		chunk->output_bytes =
			context ? compress_frame(context, chunk->output, batch->output_room,
					  chunk->input, chunk->input_bytes)
				: (size_t)-1;
	}
	ZSTD_freeCCtx(context);
	return NULL;
}

/* Runs a batch on this thread and on as many others as there are further cores. */
static void compress_batch(struct batch *batch, unsigned int cores)
{
	pthread_t threads[MAX_CORES];
	unsigned int started = 0;

	atomic_store(&batch->next, 0);
	while (started + 1 < cores && started + 1 < batch->count &&
		pthread_create(&threads[started], NULL, compress_worker, batch) == 0) {
		started++;
	}
	compress_worker(batch);
	for (unsigned int i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
	}
}

static enum tdm_status read_spool(struct byte_sink *sink, const struct tdm_page_spool *spool,
	void *out, size_t count, uint64_t offset)
{
	uint8_t *at = out;

	while (count) {
		const ssize_t done = pread(spool->fd, at, count, (off_t)offset);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(&sink->err, done < 0 ? errno : EIO,
				"pages of CPU %" PRIu32 ": reading %zu bytes at offset %" PRIu64,
				spool->cpu, count, offset);
		}
		at += done;
		offset += (uint64_t)done;
		count -= (size_t)done;
	}
	if (spool->give_back) {
		/* A refusal only means that the space comes back later. */
		fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)offset);
	}
	return TDM_OK;
}

static void release_chunks(struct chunk *chunks, size_t count)
{
	for (size_t i = 0; chunks && i < count; i++) {
		free(chunks[i].input);
		free(chunks[i].output);
	}
	free(chunks);
}

static struct chunk *create_chunks(size_t count, size_t input_room, size_t output_room)
{
	struct chunk *chunks = calloc(count, sizeof(*chunks));

	for (size_t i = 0; chunks && i < count; i++) {
		chunks[i].input = malloc(input_room);
		chunks[i].output = malloc(output_room);
		if (!chunks[i].input || !chunks[i].output) {
			release_chunks(chunks, count);
			return NULL;
		}
	}
	return chunks;
}

static enum tdm_status write_batch(struct byte_sink *sink, const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct chunk *chunk = &batch->chunks[i];

		if (ZSTD_isError(chunk->output_bytes)) {
			return tdm_fail(
				&sink->err, TDM_ERR_NOMEM, "%s: compression failed", sink->path);
		}
		sink_u32(sink, (uint32_t)chunk->output_bytes);
		sink_u32(sink, (uint32_t)chunk->input_bytes);
		sink_bytes(sink, chunk->output, chunk->output_bytes);
	}
	return sink->err.status;
}

static enum tdm_status copy_compressed(struct byte_sink *sink, const struct tdm_page_spool *spool,
	uint32_t page_bytes, uint64_t size_bytes)
{
	const size_t chunk_bytes = (size_t)page_bytes * PAGES_PER_CHUNK;
	const uint64_t chunk_count = (size_bytes + chunk_bytes - 1) / chunk_bytes;
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned int cores = online < 1           ? 1
				   : online > MAX_CORES ? MAX_CORES
							: (unsigned int)online;
	const size_t batch_room = (size_t)cores * CHUNKS_PER_CORE;
	struct batch batch = { .output_room = ZSTD_compressBound(chunk_bytes) };

	if (chunk_count > UINT32_MAX) {
		return tdm_fail(&sink->err, TDM_ERR_RANGE,
			"%s: %" PRIu64 " chunks of CPU %" PRIu32 ", the format holds %" PRIu32,
			sink->path, chunk_count, spool->cpu, UINT32_MAX);
	}
	batch.chunks = create_chunks(batch_room, chunk_bytes, batch.output_room);
	if (!batch.chunks) {
		return tdm_fail(&sink->err, TDM_ERR_NOMEM, "%s: no memory for chunks", sink->path);
	}
	sink_u32(sink, (uint32_t)chunk_count);
	for (uint64_t offset = 0; offset < size_bytes && sink->err.status == TDM_OK;) {
		batch.count = 0;
		while (batch.count < batch_room && offset < size_bytes) {
			struct chunk *chunk = &batch.chunks[batch.count];
			const uint64_t left = size_bytes - offset;

			chunk->input_bytes = left < chunk_bytes ? (size_t)left : chunk_bytes;
			if (read_spool(sink, spool, chunk->input, chunk->input_bytes, offset) !=
				TDM_OK) {
				break;
			}
			offset += chunk->input_bytes;
			batch.count++;
		}
		if (sink->err.status == TDM_OK) {
			compress_batch(&batch, cores);
			write_batch(sink, &batch);
		}
	}
	release_chunks(batch.chunks, batch_room);
	return sink->err.status;
}

static enum tdm_status copy_plain(
	struct byte_sink *sink, const struct tdm_page_spool *spool, uint64_t size_bytes)
{
	enum {
		BLOCK_BYTES = 1 << 20
	};

	uint8_t *block = malloc(BLOCK_BYTES);

	if (!block) {
		return tdm_fail(&sink->err, TDM_ERR_NOMEM, "%s: no memory for a block", sink->path);
	}
	for (uint64_t offset = 0; offset < size_bytes && sink->err.status == TDM_OK;) {
		const uint64_t left = size_bytes - offset;
		const size_t part = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;

		if (read_spool(sink, spool, block, part, offset) == TDM_OK) {
			sink_bytes(sink, block, part);
		}
		offset += part;
	}
	free(block);
	return sink->err.status;
}

enum tdm_status copy_pages(struct byte_sink *sink, const struct tdm_page_spool *spool,
	uint32_t page_bytes, bool compress, uint64_t *written_bytes)
{
	const uint64_t size_bytes = spool->size_bytes - spool->size_bytes % page_bytes;
	const uint64_t start = sink->offset;

	if (compress) {
		copy_compressed(sink, spool, page_bytes, size_bytes);
	} else {
		copy_plain(sink, spool, size_bytes);
	}
	*written_bytes = sink->offset - start;
	return sink->err.status;
}
