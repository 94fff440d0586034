/* SPDX-License-Identifier: MIT */
#include "stamp_priv.h"
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_SLOTS = 256,
	CHUNK_HEADER_BYTES = 8,
	/* Writers put 10 pages in a chunk. */
	MAX_CHUNK_PAGES = 64,
	MAX_CHUNK_BYTES = 16 << 20,
	/* trace-cmd up to 3.1 leaves the chunk count out of the size it stores. */
	SIZE_SLACK = 4
};

/*
 * A stream is read through a window of some pages. Uncompressed, the window moves over the file; compressed, it is
 * one chunk, inflated, or a part of one where there are so many streams or so large pages that whole chunks would take
 * too much memory: then a chunk is inflated once for each part.
 */
struct tracedat_reader {
	struct tdm_reader base;
	struct tracedat *dat;
	const struct tracedat_data *data;
	struct stamp_plan plan;
	const char *buffer_name;
	uint32_t cpu;
	uint32_t page_bytes;
	uint64_t next_offset; /* in the file, of what comes after the window */
	uint64_t end_offset;
	bool is_started;
	bool is_past_count; /* the chunks that were announced are read, and there is more */
	uint32_t chunks_left;
	size_t chunk_done; /* bytes of the chunk at next_offset that went through the window already */

	uint8_t *window;
	size_t window_room;
	size_t window_size, window_pos; /* bytes in it, next page */
	uint64_t window_offset; /* in the file: of the window, or of the chunk it came from */

	bool in_page;
	uint64_t page_offset; /* for messages */
	struct ring_page page;
	struct tdm_slot slots[BATCH_SLOTS];
};

/* The same kind of damage in the same stream is one fault; scope 0 belongs to the file. */
static uint64_t scope_of(const struct tracedat_reader *reader)
{
	return reader->base.stream_index + 1;
}

static void lose(struct tracedat_reader *reader, uint64_t pages, uint64_t bytes)
{
	reader->base.counts.unreadable_pages += pages;
	reader->base.counts.unreadable_bytes += bytes;
}

static bool make_window(struct tracedat_reader *reader, size_t size)
{
	if (size <= reader->window_room) {
		return true;
	}
	free(reader->window);
	reader->window = malloc(size);
	reader->window_room = reader->window ? size : 0;
	return reader->window;
}

static enum tdm_status fail_memory(
	const struct tracedat_reader *reader, size_t size, struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "%s: buffer \"%.60s\", CPU %u: no memory for %zu bytes",
		reader->dat->file->path, reader->buffer_name, reader->cpu, size);
}

/* The rest of the stream is out of reach. */
static void give_up(struct tracedat_reader *reader)
{
	const uint64_t left = reader->end_offset - reader->next_offset;

	lose(reader, (left + reader->page_bytes - 1) / reader->page_bytes, left);
	reader->next_offset = reader->end_offset;
	reader->chunks_left = 0;
}

/* What a window may have, in whole pages; one at least. */
static size_t window_share(const struct tracedat_reader *reader, size_t limit)
{
	const size_t bytes = limit / reader->page_bytes * reader->page_bytes;

	return bytes ? bytes : reader->page_bytes;
}

/* Pages in a hole of the file are empty ones: whole such pages are passed over without being read. */
static void pass_hole(struct tracedat_reader *reader)
{
	const uint64_t next = tdm_input_file_next_data(reader->dat->file, reader->next_offset);
	const uint64_t end = next < reader->end_offset ? next : reader->end_offset;

	if (end > reader->next_offset) {
		const uint64_t hole = end - reader->next_offset;

		reader->next_offset += hole - hole % reader->page_bytes;
	}
}

static enum tdm_status load_pages(struct tracedat_reader *reader, struct tdm_error *err)
{
	pass_hole(reader);

	const uint64_t left = reader->end_offset - reader->next_offset;
	size_t size = window_share(reader, reader->dat->window_bytes);
	size_t got = 0;
	struct tdm_error read_err;

	if (!left) {
		return TDM_END;
	}
	if (size > left) {
		size = (size_t)left;
	}
	if (!make_window(reader, size)) {
		return fail_memory(reader, size, err);
	}

	const enum tdm_status status = tdm_input_file_read(
		reader->dat->file, reader->next_offset, reader->window, size, &got, &read_err);

	reader->window_offset = reader->next_offset;
	reader->window_size = got;
	reader->window_pos = 0;
	reader->next_offset += got;
	if (status != TDM_OK) {
		/* A bad spot of the disk: the page that holds it is lost, the next ones may be good. */
		const uint64_t page =
			reader->window_offset + got / reader->page_bytes * reader->page_bytes;
		const uint64_t skipped = reader->end_offset - page < reader->page_bytes
						 ? reader->end_offset - page
						 : reader->page_bytes;

		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: page at 0x%" PRIx64 " cannot be read: %s",
			reader->buffer_name, reader->cpu, page, read_err.text);
		reader->window_size = (size_t)(page - reader->window_offset);
		reader->next_offset = page + skipped;
		lose(reader, 1, skipped);
	} else if (got < size) {
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: %" PRIu64 " bytes are wanted at 0x%" PRIx64
			", the file ends after %zu: it was cut while it was read",
			reader->buffer_name, reader->cpu, left, reader->window_offset, got);
		give_up(reader);
	}
	return TDM_OK;
}

/* Reads the numbers before a chunk; what they say is checked by the caller. */
static bool read_numbers(
	struct tracedat_reader *reader, uint64_t offset, uint32_t *numbers, size_t count)
{
	uint8_t bytes[CHUNK_HEADER_BYTES];
	const size_t size = count * sizeof(uint32_t);
	size_t got = 0;

	if (reader->end_offset - offset < size ||
		tdm_input_file_read(reader->dat->file, offset, bytes, size, &got, NULL) != TDM_OK ||
		got < size) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		numbers[i] =
			tdm_load_u32(bytes + i * sizeof(uint32_t), reader->dat->layout.big_endian);
	}
	return true;
}

static void start_chunks(struct tracedat_reader *reader)
{
	const uint64_t at = reader->next_offset;

	if (!read_numbers(reader, at, &reader->chunks_left, 1)) {
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: a chunk count is wanted at 0x%" PRIx64
			", the data ends at 0x%" PRIx64,
			reader->buffer_name, reader->cpu, at, reader->end_offset);
		give_up(reader);
		return;
	}
	reader->next_offset += sizeof(uint32_t);
}

/* Keeps of an inflated chunk what the window may have; the rest is inflated again when it is its turn. */
static void keep_part(struct tracedat_reader *reader, uint64_t at, const uint8_t *bytes,
	size_t size, size_t share)
{
	const size_t left = size - reader->chunk_done;
	const size_t kept = left < share ? left : share;

	memcpy(reader->window, bytes + reader->chunk_done, kept);
	reader->window_size = kept;
	if (kept < left) {
		reader->chunk_done += kept;
		reader->next_offset = at;
		reader->chunks_left++;
	} else {
		reader->chunk_done = 0;
	}
}

/* The chunk at @p at, its sizes checked, next_offset behind it already. */
static enum tdm_status inflate_chunk(struct tracedat_reader *reader, uint64_t at, uint32_t in_size,
	uint32_t out_size, struct tdm_error *err)
{
	struct tracedat *dat = reader->dat;
	const size_t share = window_share(reader, dat->chunk_bytes);
	const bool is_whole = out_size <= share;
	struct inflate_context *context =
		inflate_take(dat->pool, in_size + (is_whole ? 0 : (size_t)out_size));
	const char *fault = "it cannot be read";
	size_t got = 0;

	if (!context || !make_window(reader, is_whole ? out_size : share)) {
		if (context) {
			inflate_give(dat->pool, context);
		}
		return fail_memory(reader, in_size + (size_t)out_size, err);
	}

	uint8_t *bytes = is_whole ? reader->window : context->bytes + in_size;

	if (tdm_input_file_read(dat->file, at + CHUNK_HEADER_BYTES, context->bytes, in_size, &got,
		    NULL) == TDM_OK &&
		got == in_size) {
		fault = inflate_block(
			context, dat->compression, context->bytes, in_size, bytes, out_size);
	}
	if (fault) {
		trace_fault(&dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: chunk at 0x%" PRIx64
			", %u bytes from %u: %s; it is passed over",
			reader->buffer_name, reader->cpu, at, out_size, in_size, fault);
		lose(reader, out_size / reader->page_bytes, in_size);
		reader->chunk_done = 0;
	} else {
		reader->window_offset = at;
		if (is_whole) {
			reader->window_size = out_size;
		} else {
			keep_part(reader, at, bytes, out_size, share);
		}
	}
	inflate_give(dat->pool, context);
	return TDM_OK;
}

/* A count that is too small must not lose the rest in silence: the size of the data says that there is more. */
static bool has_more(struct tracedat_reader *reader)
{
	const uint64_t end = reader->data->offset + reader->data->size;

	if (reader->next_offset + CHUNK_HEADER_BYTES >= end) {
		return false;
	}
	if (!reader->is_past_count) {
		reader->is_past_count = true;
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: the chunks that were announced end at 0x%" PRIx64
			", the data at 0x%" PRIx64 "; what is between is read, too",
			reader->buffer_name, reader->cpu, reader->next_offset, end);
	}
	return true;
}

/* One chunk into the window. What cannot be inflated is passed over. */
static enum tdm_status load_chunk(struct tracedat_reader *reader, struct tdm_error *err)
{
	const uint64_t at = reader->next_offset;
	uint32_t sizes[2];

	if (!reader->chunks_left && !has_more(reader)) {
		return TDM_END;
	}
	if (!read_numbers(reader, at, sizes, 2)) {
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: %u more chunks are announced, the data ends at 0x%" PRIx64,
			reader->buffer_name, reader->cpu, reader->chunks_left, reader->end_offset);
		give_up(reader);
		return TDM_END;
	}

	const uint32_t in_size = sizes[0], out_size = sizes[1];
	const uint64_t left = reader->end_offset - at - CHUNK_HEADER_BYTES;
	const uint64_t limit = (uint64_t)reader->page_bytes * MAX_CHUNK_PAGES < MAX_CHUNK_BYTES
				       ? (uint64_t)reader->page_bytes * MAX_CHUNK_PAGES
				       : MAX_CHUNK_BYTES;

	if (in_size > left || !in_size) {
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: chunk at 0x%" PRIx64
			" has %u packed bytes, wanted 1 to %" PRIu64
			"; the rest of the CPU is lost",
			reader->buffer_name, reader->cpu, at, in_size, left);
		give_up(reader);
		return TDM_END;
	}
	reader->next_offset = at + CHUNK_HEADER_BYTES + in_size;
	reader->chunks_left -= reader->chunks_left > 0;
	/* No compressor makes pages much larger: what says so is not believed with a buffer of that size. */
	if (in_size > limit + limit / 8 || out_size % reader->page_bytes || !out_size ||
		out_size > limit) {
		trace_fault(&reader->dat->base, scope_of(reader),
			"buffer \"%.60s\", CPU %u: chunk at 0x%" PRIx64
			" says %u unpacked bytes from %u, wanted pages of %u up to %" PRIu64
			"; it is passed over",
			reader->buffer_name, reader->cpu, at, out_size, in_size, reader->page_bytes,
			limit);
		lose(reader, 1, in_size);
		return TDM_OK;
	}

	return inflate_chunk(reader, at, in_size, out_size, err);
}

static enum tdm_status load_window(struct tracedat_reader *reader, struct tdm_error *err)
{
	reader->window_size = 0;
	reader->window_pos = 0;
	if (!reader->data->is_compressed) {
		return load_pages(reader, err);
	}
	if (!reader->is_started) {
		reader->is_started = true;
		start_chunks(reader);
	}
	return load_chunk(reader, err);
}

static void report_page(
	struct tracedat_reader *reader, const struct ring_fault *fault, uint64_t bytes_lost)
{
	trace_fault(&reader->dat->base, scope_of(reader),
		"buffer \"%.60s\", CPU %u: page at 0x%" PRIx64 "%s %s: read %" PRIu64
		" at +0x%x, limit %" PRIu64,
		reader->buffer_name, reader->cpu, reader->page_offset,
		reader->data->is_compressed ? " (of its chunk)" : "", fault->text, fault->read,
		fault->at, fault->want);
	if (bytes_lost) {
		lose(reader, 1, bytes_lost);
	}
}

/* Begins the next page of the window. */
static void begin_page(struct tracedat_reader *reader, struct tdm_batch *batch)
{
	const size_t left = reader->window_size - reader->window_pos;
	const size_t size = left < reader->page_bytes ? left : reader->page_bytes;
	struct ring_fault fault;

	reader->page_offset = reader->data->is_compressed
				      ? reader->window_offset
				      : reader->window_offset + reader->window_pos;
	reader->in_page = ring_page_begin(&reader->dat->layout, reader->window + reader->window_pos,
		size, &reader->page, &fault);
	reader->window_pos += size;
	if (fault.text) {
		report_page(reader, &fault, reader->in_page ? 0 : size);
	}
	if (reader->in_page && reader->page.lost) {
		batch->lost = true;
		batch->lost_count = reader->page.lost_count;
		batch->lost_raw_time = reader->page.time;
		reader->base.counts.lost_events += reader->page.lost_count;
		reader->base.counts.lost_unknown += reader->page.lost_count == 0;
	}
}

enum tdm_status tracedat_reader_next_batch(
	struct tdm_reader *base, struct tdm_batch *batch, struct tdm_error *err)
{
	struct tracedat_reader *reader = (struct tracedat_reader *)base;

	*batch = (struct tdm_batch){ .slots = reader->slots };
	for (;;) {
		if (!reader->in_page) {
			if (reader->window_pos >= reader->window_size) {
				const enum tdm_status status = load_window(reader, err);

				if (status != TDM_OK) {
					return status;
				}
				continue;
			}
			begin_page(reader, batch);
			if (!reader->in_page) {
				continue;
			}
		}

		struct ring_fault fault;
		const size_t count = ring_page_walk(
			&reader->dat->layout, &reader->page, reader->slots, BATCH_SLOTS, &fault);

		if (fault.text) {
			report_page(reader, &fault,
				reader->page.size + reader->dat->layout.header_bytes - fault.at);
		}
		if (count < BATCH_SLOTS) {
			reader->in_page = false;
		}
		batch->count = count;
		reader->base.counts.records += count;
		stamp_slots(&reader->plan, reader->slots, count);
		if (batch->lost) {
			if (count) {
				batch->lost_raw_time = reader->slots[0].raw_time;
				batch->lost_time_ns = reader->slots[0].time_ns;
			} else {
				batch->lost_time_ns =
					stamp_one(&reader->plan, batch->lost_raw_time);
			}
		}
		if (count || batch->lost) {
			return TDM_OK;
		}
	}
}

enum tdm_status tracedat_reader_rewind(struct tdm_reader *base, struct tdm_error *err)
{
	struct tracedat_reader *reader = (struct tracedat_reader *)base;
	const struct tdm_stream_info *stream = &reader->dat->base.info.streams[base->stream_index];
	const uint64_t left = reader->dat->file->size_bytes - reader->data->offset;
	uint64_t size = reader->data->size;

	(void)err;
	if (reader->data->is_compressed) {
		size = size > UINT64_MAX - SIZE_SLACK ? size : size + SIZE_SLACK;
	}
	reader->plan = stamp_plan_make(
		&reader->dat->base.info, &reader->dat->base.options, base->stream_index);
	reader->cpu = stream->cpu;
	reader->next_offset = reader->data->offset;
	reader->end_offset = reader->data->offset + (size < left ? size : left);
	if (reader->data->is_cut && !reader->data->is_compressed) {
		/* Said when the file was opened: what is left may be half a page or something else. */
		const uint64_t rest =
			(reader->end_offset - reader->next_offset) % reader->page_bytes;

		reader->end_offset -= rest;
		if (rest) {
			lose(reader, 1, rest);
		}
	}
	reader->is_started = false;
	reader->is_past_count = false;
	reader->chunks_left = 0;
	reader->chunk_done = 0;
	reader->window_size = 0;
	reader->window_pos = 0;
	reader->in_page = false;
	return TDM_OK;
}

struct tdm_reader *tracedat_reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err)
{
	struct tracedat *dat = (struct tracedat *)trace;
	const struct tdm_buffer_info *buffer =
		&trace->info.buffers[trace->info.streams[stream_index].buffer_index];
	struct tracedat_reader *reader = calloc(1, sizeof(*reader));

	if (!reader) {
		tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a reader", dat->file->path);
		return NULL;
	}
	reader->base.trace = trace;
	reader->base.stream_index = stream_index;
	reader->dat = dat;
	reader->data = &dat->data.items[stream_index];
	reader->buffer_name = buffer->name;
	reader->page_bytes = buffer->page_bytes;
	(void)tracedat_reader_rewind(&reader->base, err);
	return &reader->base;
}

void tracedat_reader_destroy(struct tdm_reader *base)
{
	struct tracedat_reader *reader = (struct tracedat_reader *)base;

	free(reader->window);
	free(reader);
}
