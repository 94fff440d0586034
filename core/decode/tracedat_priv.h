/* SPDX-License-Identifier: MIT */
/*
 * tracedat_priv.h - one trace.dat file while it is open. Format: docs/trace-formats.
 */
#ifndef TANDEM_TRACEDAT_PRIV_H
#define TANDEM_TRACEDAT_PRIV_H

#include "inflate_priv.h"
#include "ring_page_priv.h"
#include "trace_priv.h"
#include <tandem/arena.h>
#include <tandem/cursor.h>
#include <tandem/input_file.h>

enum {
	TRACEDAT_MIN_PAGE = 4096,
	TRACEDAT_MAX_PAGE = 8 << 20, /* 128 pages of 64 KiB in a sub-buffer */
	TRACEDAT_MAX_CPU = 8192,     /* ids are below: the most that a kernel can be built for */
	TRACEDAT_MAX_NAME = 4096,
	TRACEDAT_MAX_BUFFERS = 4096,
};

/* Where a block of metadata lies. Read when it is needed. */
struct tracedat_block {
	uint64_t
		offset; /* of the section header (version 7) or of the first byte (version 6); 0 = absent */
	uint64_t size; /* version 6 only */
};

/* Where the records of one stream lie. */
struct tracedat_data {
	uint64_t offset, size;
	bool is_compressed;
	bool is_cut; /* the size was more than the file has: the last page may be no page */
};

/* Where a version 6 instance begins. */
struct tracedat_instance {
	uint64_t offset;
	const char *name;
};

/* A list of T that grows while the file is read. */
#define TRACEDAT_LIST(type)   \
	struct {              \
		type *items;  \
		size_t count; \
		size_t room;  \
	}

struct tracedat {
	struct tdm_trace base;
	struct tdm_input_file *file;
	struct tdm_arena arena; /* what info points to */
	enum inflate_kind compression;
	struct inflate_pool *pool;
	unsigned int user_long_bytes;
	uint32_t page_bytes; /* as the prefix has it, or what stands in for it */
	struct ring_layout layout;
	struct tracedat_block header_info, ftrace_events, event_formats, kallsyms, printk, cmdlines;
	/* Of each reader, so that all of them together stay small: pages read at once, and of an inflated chunk. */
	size_t window_bytes, chunk_bytes;
	TRACEDAT_LIST(struct tdm_buffer_info) buffers;
	TRACEDAT_LIST(struct tdm_stream_info) streams;
	TRACEDAT_LIST(struct tracedat_data) data; /* one for each stream */
	TRACEDAT_LIST(struct tracedat_instance)
	instances; /* version 6, to be read after the top buffer */
	TRACEDAT_LIST(struct tdm_guest_info) guests;
	TRACEDAT_LIST(struct tdm_cpu_stats) stats;
	uint32_t stats_buffer;                   /* that CPUSTAT options speak of */
	uint8_t cpus_seen[TRACEDAT_MAX_CPU / 8]; /* of the buffer that was added last */
	TRACEDAT_LIST(const char *) stats_names; /* of buffers, before these are known */
	TRACEDAT_LIST(uint64_t) buffer_sections; /* version 7: that a BUFFER option has led to */
	bool has_clock_option;
	uint64_t metadata_left; /* bytes of metadata that may still be unpacked */
	/* saved_cmdlines, by pid */
	struct tracedat_comm *comms;
	size_t comm_count;
	size_t latency_count; /* buffers that are text */
};

struct tracedat_comm {
	int32_t tid;
	uint32_t order;
	const char *name;
};

/** Room for one more item. */
bool tracedat_grow(void **items, size_t *room, size_t count, size_t item_size);

#define TRACEDAT_PUSH(list, ...)                                                                   \
	(tracedat_grow(                                                                            \
		 (void **)&(list)->items, &(list)->room, (list)->count, sizeof(*(list)->items)) && \
		((list)->items[(list)->count++] = (__VA_ARGS__), true))

/** Reads @p size bytes at @p offset into memory that the caller frees; short at the end of the file. */
enum tdm_status tracedat_read(struct tracedat *dat, uint64_t offset, uint64_t size,
	struct tdm_buffer *out, struct tdm_error *err);

/* tracedat_section.c */

/** A section of version 7, unpacked. @p body receives its bytes, @p bytes owns them. */
enum tdm_status tracedat_section_read(struct tracedat *dat, uint64_t offset, unsigned int wanted_id,
	struct tdm_buffer *bytes, struct tdm_cursor *body, struct tdm_error *err);

/** A block of metadata of either version. */
enum tdm_status tracedat_block_read(struct tracedat *dat, const struct tracedat_block *block,
	unsigned int wanted_id, struct tdm_buffer *bytes, struct tdm_cursor *body,
	struct tdm_error *err);

enum {
	SECTION_OPTIONS = 0,
	SECTION_BUFFER = 3,
	SECTION_STRINGS = 15,
	SECTION_HEADER_INFO = 16,
	SECTION_FTRACE_EVENTS = 17,
	SECTION_EVENT_FORMATS = 18,
	SECTION_KALLSYMS = 19,
	SECTION_PRINTK = 20,
	SECTION_CMDLINES = 21,
	SECTION_BUFFER_TEXT = 22,
};

/** Flags of a section header at @p offset. */
enum tdm_status tracedat_section_flags(struct tracedat *dat, uint64_t offset,
	unsigned int wanted_id, bool *is_compressed, struct tdm_error *err);

/* tracedat_option.c */

/**
 * Takes one options block.
 *
 * @param next  Receives the offset of the next one (version 7), 0 = none.
 */
enum tdm_status tracedat_options_parse(
	struct tracedat *dat, struct tdm_cursor *in, uint64_t *next, struct tdm_error *err);

/** The name in brackets in the text of trace_clock, in the arena; NULL without one. */
const char *tracedat_clock_name(struct tracedat *dat, const char *text, size_t size);

/* tracedat_metadata.c: what the blocks hold */

/** Constants of the ring buffer; sets dat->layout and dat->page_bytes. Never fails: says what it takes instead. */
void tracedat_take_header_info(struct tracedat *dat, struct tdm_cursor *in);
void tracedat_take_ftrace_events(struct tracedat *dat, struct tdm_cursor *in);
void tracedat_take_event_formats(struct tracedat *dat, struct tdm_cursor *in);
void tracedat_take_cmdlines(struct tracedat *dat, struct tdm_cursor *in);

/* tracedat_buffer.c */

/** Adds a buffer; index receives its place. A second one of the same name is refused. */
enum tdm_status tracedat_buffer_add(struct tracedat *dat, const char *name, const char *clock,
	uint32_t page_bytes, size_t *index, struct tdm_error *err);

/** Adds a stream, its place in the file checked; what is wrong becomes a fault. */
void tracedat_stream_add(struct tracedat *dat, size_t buffer_index, uint32_t cpu, uint64_t offset,
	uint64_t size, bool is_compressed);

/** When all is read: sorts, looks for overlaps, sets the rest of info. */
enum tdm_status tracedat_settle(struct tracedat *dat, struct tdm_error *err);

/* tracedat_salvage.c */

/** Version 7, where options are lost: looks for trace data that no option leads to, from the first section on. */
void tracedat_salvage(struct tracedat *dat, uint64_t first_section);

/* tracedat_v6.c */

enum tdm_status tracedat_v6_read(struct tracedat *dat, uint64_t offset, struct tdm_error *err);

/* tracedat_stream.c */

struct tdm_reader *tracedat_reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err);
void tracedat_reader_destroy(struct tdm_reader *reader);
enum tdm_status tracedat_reader_next_batch(
	struct tdm_reader *reader, struct tdm_batch *batch, struct tdm_error *err);
enum tdm_status tracedat_reader_rewind(struct tdm_reader *reader, struct tdm_error *err);

#endif
