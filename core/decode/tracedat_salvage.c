/* SPDX-License-Identifier: MIT */
/*
 * A version 7 file tells where its trace data lies in options at its end, so a file that was cut short has the data
 * and not the way to it. The sections are walked from the first one on; in those of trace data that no option leads
 * to, the CPUs follow one another in the order of their ids. What is found is the best guess, and said to be one.
 */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	HEADER_BYTES = 16,
	FLAG_COMPRESSED = 1,
	MAX_SECTIONS = 65536,
	MAX_SECTION_ID = 64,
	MAX_CHUNK_PAGES = 64,
	MAX_CHUNKS = 1 << 24
};

static bool read_at(const struct tracedat *dat, uint64_t offset, uint8_t *bytes, size_t size)
{
	size_t got = 0;

	return tdm_input_file_read(dat->file, offset, bytes, size, &got, NULL) == TDM_OK &&
	       got == size;
}

static uint64_t align_up(uint64_t offset, uint64_t multiple)
{
	return (offset + multiple - 1) / multiple * multiple;
}

/* CPUs of the buffer that the tracer's own counts say have data; the order of the data in the file. */
static uint32_t nth_cpu(const struct tracedat *dat, uint32_t stats_index, size_t n)
{
	for (size_t i = 0; i < dat->stats.count; i++) {
		const struct tdm_cpu_stats *stats = &dat->stats.items[i];

		if (stats->buffer_index == stats_index && (stats->entries || stats->read_events) &&
			n-- == 0) {
			return stats->cpu;
		}
	}
	return TRACEDAT_MAX_CPU;
}

struct search {
	struct tracedat *dat;
	size_t buffer_index;
	uint32_t stats_index;
	size_t found; /* streams of this buffer */
	uint64_t end; /* of the section */
	bool is_compressed;
};

static void add_stream(struct search *search, uint64_t offset, uint64_t size)
{
	uint32_t cpu = nth_cpu(search->dat, search->stats_index, search->found);

	if (cpu >= TRACEDAT_MAX_CPU) {
		cpu = (uint32_t)search->found;
	}
	search->found++;
	tracedat_stream_add(
		search->dat, search->buffer_index, cpu, offset, size, search->is_compressed);
}

/* A chunk count and so many chunks whose sizes make sense, for each CPU. */
static void find_chunked(struct search *search, uint64_t at)
{
	struct tracedat *dat = search->dat;
	const bool big_endian = dat->base.info.big_endian;
	uint8_t bytes[8];

	while (at < search->end && search->found < TRACEDAT_MAX_CPU) {
		const uint64_t start = at;

		if (!read_at(dat, at, bytes, 4)) {
			return;
		}

		const uint32_t count = tdm_load_u32(bytes, big_endian);
		uint32_t good = 0;

		at += 4;
		for (; good < count && good < MAX_CHUNKS; good++) {
			if (!read_at(dat, at, bytes, 8)) {
				break;
			}

			const uint32_t in_size = tdm_load_u32(bytes, big_endian);
			const uint32_t out_size = tdm_load_u32(bytes + 4, big_endian);

			if (!in_size || !out_size || out_size % dat->page_bytes ||
				out_size / dat->page_bytes > MAX_CHUNK_PAGES) {
				break;
			}
			at += 8 + (uint64_t)in_size;
			if (at > search->end) {
				break;
			}
		}
		/* The last one may be cut, but one whole chunk must be there. */
		if (!good) {
			return;
		}
		add_stream(search, start, (at < search->end ? at : search->end) - start);
		if (good < count) {
			return;
		}
		at = align_up(at, dat->page_bytes);
	}
}

/* Pages; a CPU's are in the order of time, so the next CPU begins where time goes back. */
static void find_plain(struct search *search, uint64_t at)
{
	struct tracedat *dat = search->dat;
	uint64_t start = at, last_time = 0;
	uint8_t bytes[16];

	for (; at + dat->page_bytes <= search->end; at += dat->page_bytes) {
		struct ring_page page;
		struct ring_fault fault;

		if (!read_at(dat, at, bytes, sizeof(bytes))) {
			break;
		}
		/* Only the time is wanted; a page that is damaged says so when it is read. */
		(void)ring_page_begin(&dat->layout, bytes, sizeof(bytes), &page, &fault);
		if (page.time < last_time && at > start) {
			add_stream(search, start, at - start);
			start = at;
		}
		last_time = page.time;
	}
	if (at > start) {
		add_stream(search, start, at - start);
	}
}

static bool is_known(const struct tracedat *dat, uint64_t section)
{
	for (size_t i = 0; i < dat->buffer_sections.count; i++) {
		if (dat->buffer_sections.items[i] == section) {
			return true;
		}
	}
	return false;
}

/* The index-th section of trace data; buffers are written in the order in which CPUSTAT options speak of them. */
static void salvage_section(
	struct tracedat *dat, uint64_t section, uint64_t size, bool is_compressed, uint32_t index)
{
	const uint64_t start = section + HEADER_BYTES;
	const uint64_t left = dat->file->size_bytes - start;
	struct search search = {
		.dat = dat,
		.stats_index = index,
		.end = start + (size < left ? size : left),
		.is_compressed = is_compressed,
	};
	char numbered[32];
	const char *name = "";
	struct tdm_error err;

	if (index && index <= dat->stats_names.count) {
		name = dat->stats_names.items[index - 1];
	} else if (index) {
		snprintf(numbered, sizeof(numbered), "buffer-%u", index);
		name = numbered;
	}
	if (tracedat_buffer_add(dat, name, "", dat->page_bytes, &search.buffer_index, &err) !=
		TDM_OK) {
		trace_fault(
			&dat->base, section, "trace data at 0x%" PRIx64 ": %s", section, err.text);
		return;
	}
	if (is_compressed) {
		find_chunked(&search, align_up(start, dat->page_bytes));
	} else {
		find_plain(&search, align_up(start, dat->page_bytes));
	}
	trace_fault(&dat->base, section,
		"trace data at 0x%" PRIx64
		": no option leads to it; %zu streams found in it are taken for buffer \"%.60s\", their CPUs guessed",
		section, search.found, name);
}

void tracedat_salvage(struct tracedat *dat, uint64_t first_section)
{
	const bool big_endian = dat->base.info.big_endian;
	uint64_t at = first_section;
	uint32_t buffers = 0;

	for (int count = 0; count < MAX_SECTIONS; count++) {
		uint8_t bytes[HEADER_BYTES];

		if (!read_at(dat, at, bytes, sizeof(bytes))) {
			return;
		}

		const unsigned int id = tdm_load_u16(bytes, big_endian);
		const unsigned int flags = tdm_load_u16(bytes + 2, big_endian);
		const uint64_t size = tdm_load_u64(bytes + 8, big_endian);

		if (id >= MAX_SECTION_ID) {
			return;
		}
		if (id == SECTION_BUFFER) {
			if (!is_known(dat, at)) {
				salvage_section(dat, at, size, flags & FLAG_COMPRESSED, buffers);
			}
			buffers++;
		}
		if (size > dat->file->size_bytes - at - HEADER_BYTES) {
			return;
		}
		at += HEADER_BYTES + size;
	}
}
