/* SPDX-License-Identifier: MIT */
/*
 * trace_meta.h - the texts of a kernel that a reader needs to understand its ring-buffer pages.
 *
 * Collected from tracefs (core/tap), carried over a link, written into a trace.dat (core/encode).
 */
#ifndef TANDEM_TRACE_META_H
#define TANDEM_TRACE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/cursor.h>
#include <tandem/status.h>

/* What one text is. The numbers go over the wire: never renumber. */
enum tdm_meta_kind {
	TDM_META_HEADER_PAGE = 1,  /* events/header_page */
	TDM_META_HEADER_EVENT = 2, /* events/header_event */
	TDM_META_EVENT_FORMAT = 3, /* one events/SYSTEM/EVENT/format; name = SYSTEM */
	TDM_META_KALLSYMS = 4,     /* /proc/kallsyms */
	TDM_META_PRINTK = 5,       /* printk_formats */
	TDM_META_CMDLINES = 6,     /* saved_cmdlines */
	TDM_META_CLOCK = 7,        /* trace_clock, the current one in brackets */
	TDM_META_UNAME = 8,        /* "sysname nodename release machine" */
	TDM_META_CPUSTAT = 9,      /* per_cpu/cpuN/stats; name = decimal N */
	TDM_META_BOOT_ID = 10,     /* /proc/sys/kernel/random/boot_id */
	TDM_META_KIND_END
};

struct tdm_meta_text {
	enum tdm_meta_kind kind;
	char *name;             /* owned; "" where the kind needs none */
	struct tdm_buffer text; /* owned */
};

/* All texts of one machine, and the numbers that no text tells. Zero-initialise. */
struct tdm_trace_meta {
	struct tdm_meta_text *texts;
	size_t text_count, text_room;
	/* Where those are that a new one replaces: index + 1 by kind; for CPUSTAT a table by name, a power of two. */
	uint32_t place_of[TDM_META_KIND_END];
	uint32_t *stat_places;
	size_t stat_room, stat_count;
	size_t total_bytes;  /* of all texts; kept below TDM_META_MAX_BYTES */
	uint32_t cpu_count;  /* of the machine */
	uint32_t page_bytes; /* of a ring-buffer sub-buffer */
	uint32_t long_bytes;
	bool big_endian;
};

enum {
	TDM_META_MAX_BYTES = 256 << 20,
	TDM_META_MAX_TEXTS = 1 << 16
};

/**
 * Adds a text. A second one of a kind that a machine has once (all but EVENT_FORMAT and CPUSTAT) replaces the first,
 * and so does one of the same kind and name for CPUSTAT.
 *
 * @param name  System or CPU; NULL = "". Copied, as @p text is.
 * @retval TDM_ERR_RANGE  Unknown kind, or a name of over 255 bytes.
 * @retval TDM_ERR_NOMEM  Over TDM_META_MAX_BYTES or TDM_META_MAX_TEXTS, or no memory.
 */
enum tdm_status tdm_trace_meta_add(struct tdm_trace_meta *meta, enum tdm_meta_kind kind,
	const char *name, const void *text, size_t text_bytes, struct tdm_error *err);

/** The first text of a kind, or NULL. */
const struct tdm_meta_text *tdm_trace_meta_find(
	const struct tdm_trace_meta *meta, enum tdm_meta_kind kind);

/**
 * Appends the meta as bytes that tdm_trace_meta_unpack() understands on any machine: for a link or a file.
 *
 * Little endian: magic "TNDM", version u16 = 1, big_endian u8, 0 u8, cpu_count, page_bytes, long_bytes, text count u32;
 * for each text kind u32, name length u32, text length u64, name, text.
 */
enum tdm_status tdm_trace_meta_pack(const struct tdm_trace_meta *meta, struct tdm_buffer *out);

/**
 * Reads what tdm_trace_meta_pack() wrote; hostile bytes are refused.
 *
 * @param in    At its first byte. On success what follows stays unread.
 * @param meta  Zero-initialised; receives texts that the caller releases, also after a failure.
 * @retval TDM_ERR_FORMAT, TDM_ERR_NOMEM, TDM_ERR_RANGE  @p err says what was read and what was wanted.
 */
enum tdm_status tdm_trace_meta_unpack(
	struct tdm_cursor *in, struct tdm_trace_meta *meta, struct tdm_error *err);

/** Frees all texts; the meta is empty and usable again. */
void tdm_trace_meta_release(struct tdm_trace_meta *meta);

#endif
