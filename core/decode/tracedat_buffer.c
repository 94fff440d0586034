/* SPDX-License-Identifier: MIT */
#include "stamp_priv.h"
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Windows of all readers of a trace together; see tracedat_stream.c. */
	ALL_WINDOWS_BYTES = 16 << 20,
	ALL_CHUNKS_BYTES = 24 << 20,
	MAX_WINDOW_BYTES = 128 << 10,
	OVERLAPS_MAX = 4 /* times the file's size, of data that several streams claim */
};

bool tracedat_grow(void **items, size_t *room, size_t count, size_t item_size)
{
	if (count < *room) {
		return true;
	}

	const size_t wanted = *room ? *room * 2 : 16;
	void *grown = reallocarray(*items, wanted, item_size);

	if (!grown) {
		return false;
	}
	*items = grown;
	*room = wanted;
	return true;
}

enum tdm_status tracedat_buffer_add(struct tracedat *dat, const char *name, const char *clock,
	uint32_t page_bytes, size_t *index, struct tdm_error *err)
{
	for (size_t i = 0; i < dat->buffers.count; i++) {
		if (strcmp(dat->buffers.items[i].name, name) == 0) {
			return tdm_fail(
				err, TDM_ERR_FORMAT, "a second buffer of the name \"%.60s\"", name);
		}
	}
	if (dat->buffers.count >= TRACEDAT_MAX_BUFFERS) {
		return tdm_fail(err, TDM_ERR_FORMAT, "buffer \"%.60s\": more than %d buffers", name,
			TRACEDAT_MAX_BUFFERS);
	}

	const char *bracketed = tracedat_clock_name(dat, clock, strlen(clock));
	struct tdm_buffer_info buffer = {
		.name = tdm_arena_text(&dat->arena, name, strlen(name)),
		.clock = bracketed ? bracketed : tdm_arena_text(&dat->arena, clock, strlen(clock)),
		.page_bytes = page_bytes,
	};

	*index = dat->buffers.count;
	if (!buffer.name || !buffer.clock || !TRACEDAT_PUSH(&dat->buffers, buffer)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "buffer \"%.60s\": no memory", name);
	}
	if (!*name && *buffer.clock && !dat->has_clock_option) {
		dat->base.info.clock = buffer.clock;
	}
	memset(dat->cpus_seen, 0, sizeof(dat->cpus_seen));
	return TDM_OK;
}

void tracedat_stream_add(struct tracedat *dat, size_t buffer_index, uint32_t cpu, uint64_t offset,
	uint64_t size, bool is_compressed)
{
	const char *name = dat->buffers.items[buffer_index].name;
	const uint64_t scope = buffer_index << 16 | cpu;
	const uint64_t file_bytes = dat->file->size_bytes;
	bool is_cut = false;

	if (cpu >= TRACEDAT_MAX_CPU) {
		trace_fault(&dat->base, buffer_index,
			"buffer \"%.60s\": CPU id %u, wanted below %d; its %" PRIu64
			" bytes at 0x%" PRIx64 " are passed over",
			name, cpu, TRACEDAT_MAX_CPU, size, offset);
		return;
	}
	if (dat->cpus_seen[cpu / 8] & 1 << cpu % 8) {
		trace_fault(&dat->base, scope,
			"buffer \"%.60s\" lists CPU %u twice: its %" PRIu64 " bytes at 0x%" PRIx64
			" are passed over",
			name, cpu, size, offset);
		return;
	}
	dat->cpus_seen[cpu / 8] |= (uint8_t)(1 << cpu % 8);
	if (!size) {
		return;
	}
	if (offset >= file_bytes) {
		trace_fault(&dat->base, scope,
			"buffer \"%.60s\", CPU %u: %" PRIu64 " bytes at 0x%" PRIx64
			" lie behind the file's end at 0x%" PRIx64,
			name, cpu, size, offset, file_bytes);
		return;
	}
	if (!is_compressed && offset % TRACEDAT_MIN_PAGE) {
		trace_fault(&dat->base, scope,
			"buffer \"%.60s\", CPU %u: data at 0x%" PRIx64
			", wanted a multiple of %d; its %" PRIu64 " bytes are passed over",
			name, cpu, offset, TRACEDAT_MIN_PAGE, size);
		return;
	}
	if (size > file_bytes - offset) {
		trace_fault(&dat->base, scope,
			"buffer \"%.60s\", CPU %u: %" PRIu64 " bytes at 0x%" PRIx64
			" are announced, the file ends after %" PRIu64,
			name, cpu, size, offset, file_bytes - offset);
		size = file_bytes - offset;
		is_cut = true;
	}

	const struct tdm_stream_info stream = {
		.cpu = cpu,
		.buffer_index = (uint32_t)buffer_index,
		.data_bytes = size,
	};
	const struct tracedat_data data = { offset, size, is_compressed, is_cut };

	if (!TRACEDAT_PUSH(&dat->data, data) || !TRACEDAT_PUSH(&dat->streams, stream)) {
		dat->data.count = dat->streams.count;
		trace_fault(&dat->base, 0, "buffer \"%.60s\", CPU %u: no memory", name, cpu);
	}
}

/* One stream with what is known of its place, to be sorted. */
struct sorted_stream {
	struct tdm_stream_info stream;
	struct tracedat_data data;
};

static int compare_streams(const void *a, const void *b)
{
	const struct sorted_stream *left = a, *right = b;

	if (left->stream.buffer_index != right->stream.buffer_index) {
		return left->stream.buffer_index < right->stream.buffer_index ? -1 : 1;
	}
	return left->stream.cpu < right->stream.cpu ? -1 : 1;
}

static int compare_offsets(const void *a, const void *b)
{
	const struct sorted_stream *left = a, *right = b;

	return (left->data.offset > right->data.offset) - (left->data.offset < right->data.offset);
}

/*
 * Tells data that several streams claim. All of it is read, as nothing says whose it is, up to so much that a table cannot
 * make hours of work out of a short file. @return How many streams stay; they are in the order of their data.
 */
static size_t tell_overlaps(struct tracedat *dat, struct sorted_stream *sorted, size_t count)
{
	const uint64_t most_bytes = OVERLAPS_MAX * dat->file->size_bytes;
	const struct sorted_stream *reaching = NULL; /* furthest of those before */
	uint64_t total_bytes = 0;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sorted_stream *const stream = &sorted[i];
		const char *const name = dat->buffers.items[stream->stream.buffer_index].name;
		const bool overlaps =
			reaching &&
			reaching->data.size > stream->data.offset - reaching->data.offset;

		if (overlaps && total_bytes > most_bytes) {
			trace_fault(&dat->base, 1,
				"buffer \"%.60s\", CPU %u: its data at 0x%" PRIx64
				" is claimed by others too, and so is %d times what the file has: it is passed over",
				name, stream->stream.cpu, stream->data.offset, OVERLAPS_MAX);
			continue;
		}
		if (overlaps) {
			trace_fault(&dat->base, 0,
				"buffer \"%.60s\", CPU %u: its data at 0x%" PRIx64
				" overlaps buffer \"%.60s\", CPU %u: %" PRIu64
				" bytes at 0x%" PRIx64,
				name, stream->stream.cpu, stream->data.offset,
				dat->buffers.items[reaching->stream.buffer_index].name,
				reaching->stream.cpu, reaching->data.size, reaching->data.offset);
		}
		total_bytes += stream->data.size;
		sorted[kept] = *stream;
		if (!reaching || sorted[kept].data.offset + sorted[kept].data.size >
					 reaching->data.offset + reaching->data.size) {
			reaching = &sorted[kept];
		}
		kept++;
	}
	return kept;
}

static enum tdm_status sort_streams(struct tracedat *dat, struct tdm_error *err)
{
	const size_t count = dat->streams.count;
	struct sorted_stream *sorted = count ? calloc(count, sizeof(*sorted)) : NULL;

	if (!count) {
		return TDM_OK;
	}
	if (!sorted) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", dat->file->path);
	}
	for (size_t i = 0; i < count; i++) {
		sorted[i].stream = dat->streams.items[i];
		sorted[i].data = dat->data.items[i];
	}
	qsort(sorted, count, sizeof(*sorted), compare_offsets);
	dat->streams.count = tell_overlaps(dat, sorted, count);
	dat->data.count = dat->streams.count;
	qsort(sorted, dat->streams.count, sizeof(*sorted), compare_streams);
	for (size_t i = 0; i < dat->streams.count; i++) {
		dat->streams.items[i] = sorted[i].stream;
		dat->data.items[i] = sorted[i].data;
	}
	free(sorted);
	return TDM_OK;
}

static bool gives_ns(const struct tracedat *dat, const struct tdm_buffer_info *buffer)
{
	const struct tdm_stamp_options *options = &dat->base.options;
	const bool is_tsc =
		!tdm_clock_counts_ns(buffer->clock) && stamp_clocks_equal(buffer->clock, "x86-tsc");

	if (options->raw) {
		return tdm_clock_counts_ns(buffer->clock) && strcmp(buffer->clock, "tsc2nsec") != 0;
	}
	return options->clock_hz || tdm_clock_counts_ns(buffer->clock) ||
	       (is_tsc && dat->base.info.has_tsc2nsec) || (buffer->shifted && options->corrections);
}

/* The file's own page size is known only when all metadata has been read. */
static uint32_t settle_page_bytes(
	struct tracedat *dat, const char *name, uint32_t page_bytes, size_t index)
{
	if (page_bytes == dat->page_bytes || dat->base.info.version == 6) {
		return dat->page_bytes;
	}

	const bool is_sane = page_bytes >= TRACEDAT_MIN_PAGE && page_bytes <= TRACEDAT_MAX_PAGE &&
			     (page_bytes & (page_bytes - 1)) == 0;

	/* Instances may have sub-buffers of their own size; the top buffer's is the prefix's. */
	if (is_sane && *name) {
		return page_bytes;
	}
	trace_fault(&dat->base, index,
		"buffer \"%.60s\" says a page size of %u, the file's is %u: that one is taken",
		name, page_bytes, dat->page_bytes);
	return dat->page_bytes;
}

static void settle_buffers(struct tracedat *dat)
{
	const struct tdm_trace_info *info = &dat->base.info;

	for (size_t i = 0; i < dat->buffers.count; i++) {
		struct tdm_buffer_info *buffer = &dat->buffers.items[i];

		if (!*buffer->name || !*buffer->clock) {
			buffer->clock = info->clock;
		}
		buffer->shifted = (info->has_peer || dat->base.options.corrections) &&
				  stamp_clocks_equal(buffer->clock, info->clock);
		buffer->is_ns = gives_ns(dat, buffer);
		buffer->page_bytes = settle_page_bytes(dat, buffer->name, buffer->page_bytes, i);
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct tdm_buffer_info *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* CPUSTAT options came before the buffers that they speak of. */
static void settle_stats(struct tracedat *dat)
{
	const struct tdm_buffer_info **const by_name =
		calloc(dat->buffers.count + 1, sizeof(struct tdm_buffer_info *));
	size_t kept = 0;

	for (size_t i = 0; by_name && i < dat->buffers.count; i++) {
		by_name[i] = &dat->buffers.items[i];
	}
	if (by_name && dat->buffers.count) {
		qsort(by_name, dat->buffers.count, sizeof(*by_name), compare_names);
	}
	for (size_t i = 0; by_name && i < dat->stats.count; i++) {
		struct tdm_cpu_stats stats = dat->stats.items[i];
		const struct tdm_buffer_info wanted = {
			.name = stats.buffer_index ? dat->stats_names.items[stats.buffer_index - 1]
						   : "",
		};
		const struct tdm_buffer_info *const key = &wanted;
		const struct tdm_buffer_info *const *const found =
			dat->buffers.count ? bsearch(&key, by_name, dat->buffers.count,
						     sizeof(*by_name), compare_names)
					   : NULL;

		if (found) {
			stats.buffer_index = (uint32_t)(*found - dat->buffers.items);
			dat->stats.items[kept++] = stats;
		}
	}
	dat->stats.count = kept;
	free(by_name);
}

static void settle_windows(struct tracedat *dat)
{
	const size_t streams = dat->streams.count ? dat->streams.count : 1;
	const size_t share = ALL_WINDOWS_BYTES / streams;

	dat->window_bytes = share < MAX_WINDOW_BYTES ? share : MAX_WINDOW_BYTES;
	dat->chunk_bytes = ALL_CHUNKS_BYTES / streams;
}

enum tdm_status tracedat_settle(struct tracedat *dat, struct tdm_error *err)
{
	struct tdm_trace_info *info = &dat->base.info;
	const enum tdm_status status = sort_streams(dat, err);

	if (status != TDM_OK) {
		return status;
	}
	if (!info->clock) {
		info->clock = "local";
	}
	settle_buffers(dat);
	settle_stats(dat);
	settle_windows(dat);
	info->buffers = dat->buffers.items;
	info->buffer_count = dat->buffers.count;
	info->streams = dat->streams.items;
	info->stream_count = dat->streams.count;
	info->guests = dat->guests.items;
	info->guest_count = dat->guests.count;
	info->stats = dat->stats.items;
	info->stats_count = dat->stats.count;
	return TDM_OK;
}
