/* SPDX-License-Identifier: MIT */
/*
 * tracedat_builder.h - makes trace.dat files that no machine at hand records: big endian, 4-byte longs, large
 * sub-buffers, every record type, and damage at a place that is known.
 */
#ifndef TDM_TRACEDAT_BUILDER_H
#define TDM_TRACEDAT_BUILDER_H

#include <stdbool.h>
#include <stdint.h>
#include <tandem/buffer.h>

/* How the numbers of a file are written. */
struct dat_layout {
	unsigned int version; /* 6 or 7 */
	bool big_endian;
	unsigned int long_bytes;
	uint32_t page_bytes;
	const char *compression; /* "none", "zlib", "zstd"; version 7 */
};

void dat_u8(struct tdm_buffer *out, uint8_t value);
void dat_u16(struct tdm_buffer *out, const struct dat_layout *layout, uint16_t value);
void dat_u32(struct tdm_buffer *out, const struct dat_layout *layout, uint32_t value);
void dat_u64(struct tdm_buffer *out, const struct dat_layout *layout, uint64_t value);
void dat_bytes(struct tdm_buffer *out, const void *bytes, size_t size);
/* With its NUL. */
void dat_text(struct tdm_buffer *out, const char *text);
/* Overwrites 4 or 8 bytes at a place. */
void dat_patch_u32(
	struct tdm_buffer *out, const struct dat_layout *layout, size_t at, uint32_t value);
void dat_patch_u64(
	struct tdm_buffer *out, const struct dat_layout *layout, size_t at, uint64_t value);

/*
 * Ring-buffer pages, one after the other in a buffer. page_begin() ... page_end(); what is written between goes to the
 * page begun last.
 */
struct dat_pages {
	const struct dat_layout *layout;
	struct tdm_buffer bytes;
	size_t page_at;
	bool lost;           /* set before page_end(): events were lost before this page */
	uint64_t lost_count; /* 0 = not stored */
};

void page_begin(struct dat_pages *pages, uint64_t time);
/* A record of the event "tick" (id 10): common fields with @p tid, then a u64. Short form. */
void page_tick(struct dat_pages *pages, uint32_t delta, int32_t tid, uint64_t value);
/* Any payload; the long form where it is asked for or needed. */
void page_record(
	struct dat_pages *pages, uint32_t delta, const void *payload, uint32_t size, bool is_long);
void page_extend(struct dat_pages *pages, uint64_t delta);
void page_stamp(struct dat_pages *pages, uint64_t time);
void page_discarded(struct dat_pages *pages, uint32_t delta, uint32_t bytes);
/* The null event, which ends a page early. */
void page_null(struct dat_pages *pages);
void page_word(struct dat_pages *pages, uint32_t type, uint32_t delta);
void page_end(struct dat_pages *pages);
/* count pages of per_page ticks each, tid 1, values and stamps counting on from first. */
void pages_of_ticks(struct dat_pages *pages, size_t count, size_t per_page, uint64_t first);

struct dat_cpu {
	uint32_t cpu;
	const struct tdm_buffer *pages;
};

struct dat_buffer {
	const char *name, *clock;
	uint32_t page_bytes; /* 0 = the file's */
	const struct dat_cpu *cpus;
	size_t cpu_count;
};

struct dat_option {
	uint16_t id;
	const struct tdm_buffer *value;
};

struct dat_spec {
	struct dat_layout layout;
	const char *formats; /* one more event format, system "extra"; NULL = only "tick" */
	const struct dat_buffer *buffers;
	size_t buffer_count;
	const struct dat_option *options;
	size_t option_count;
	const char *cmdlines, *kallsyms, *printk; /* NULL = empty */
};

/* Places in the file that was built, for tests that damage it. */
struct dat_marks {
	size_t first_options;     /* section header */
	size_t first_done;        /* its DONE option */
	size_t buffer_options;    /* section header of the options that hold the BUFFER options */
	size_t buffer_option[8];  /* first byte of the value */
	size_t event_formats;     /* section header */
	size_t header_info;       /* section header, or the block in version 6 */
	size_t data[8][8];        /* of each buffer and CPU */
	size_t buffer_section[8]; /* section header */
	size_t options_start;     /* version 6: first option */
	size_t cpu_table;         /* version 6: of the top buffer */
};

/* Builds a file; the caller frees out. */
void dat_build(const struct dat_spec *spec, struct tdm_buffer *out, struct dat_marks *marks);

/* Writes a file with a name of its own in $TMPDIR or /tmp; the caller unlinks and frees it. */
char *dat_save(const struct tdm_buffer *bytes);

extern const char dat_tick_format[];

#endif
