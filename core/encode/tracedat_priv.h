/* SPDX-License-Identifier: MIT */
/*
 * tracedat_priv.h - what the parts of the trace.dat writer share.
 */
#ifndef TRACEDAT_PRIV_H
#define TRACEDAT_PRIV_H

#include "encode_priv.h"

/* Section ids are the ids of the options that point to them. */
enum section_id {
	SECTION_OPTIONS = 0,
	SECTION_BUFFER = 3,
	SECTION_HEADER_INFO = 16,
	SECTION_FTRACE_EVENTS = 17,
	SECTION_EVENT_FORMATS = 18,
	SECTION_KALLSYMS = 19,
	SECTION_PRINTK = 20,
	SECTION_CMDLINES = 21,
};

enum option_id {
	OPTION_DONE = 0,
	OPTION_CPUSTAT = 2,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_UNAME = 5,
	OPTION_CPUCOUNT = 8,
	OPTION_VERSION = 9,
	OPTION_TRACEID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_TSC2NSEC = 14,
};

enum {
	FLAG_COMPRESSED = 1,
	NO_DESCRIPTION = -1,
	TIME_SHIFT_INTERPOLATE = 1
};

struct writer {
	const struct tdm_tracedat_plan *plan;
	struct byte_sink sink;
	unsigned int version; /* 7; 6 for a beginning only */
	uint32_t page_bytes;
	char clock[64];
	const struct text_packer *packer; /* NULL = plain */
	uint64_t section_offsets[SECTION_CMDLINES + 1];
	uint64_t first_options_patch, done_patch; /* where the next OPTIONS section's offset goes */
	struct tdm_buffer body, packed;
	bool failed; /* memory, while a body was put together */
};

void section_header(struct writer *w, enum section_id id, uint16_t flags, uint64_t size_bytes);
void body_bytes(struct writer *w, const void *bytes, size_t count);
void body_u32(struct writer *w, uint32_t value);
void body_u64(struct writer *w, uint64_t value);

/* The file's prefix, then all sections of texts; remembers where each is. */
void write_head(struct writer *w);
void write_texts(struct writer *w);

/* Page size and clock of a file that is made from a plan's meta. */
enum tdm_status take_meta(struct writer *w, struct tdm_error *err);
enum tdm_status check_page_size(const struct writer *w, struct tdm_error *err);

/* The options that a machine's own file begins with, and those that are added behind a prefix. */
void write_first_options(struct writer *w);
void write_added_options(struct writer *w);

/* Adds an option to the body; write_options() ends it with DONE and chains it to the OPTIONS section before. */
void option(struct writer *w, enum option_id id, const void *bytes, size_t count);
void write_options(struct writer *w);

#endif
