/* SPDX-License-Identifier: MIT */
/*
 * ring_page_priv.h - pages of the kernel's ring buffer: time deltas, records, lost events.
 */
#ifndef TANDEM_RING_PAGE_PRIV_H
#define TANDEM_RING_PAGE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/trace.h>

/* What is the same for every page of a trace. */
struct ring_layout {
	bool big_endian;
	uint8_t commit_bytes;  /* 8 or 4: the kernel's long */
	uint16_t header_bytes; /* where the records begin: 16 or 12 */
	uint16_t id_offset;    /* of common_type, 2 bytes, in a record */
};

/* One page while it is walked. */
struct ring_page {
	const uint8_t *data; /* behind the header; borrowed */
	uint32_t pos, size;  /* next record, end of the records */
	uint64_t time;       /* of the last record met; of the page before the first */
	bool lost;           /* events were lost before the page */
	uint64_t lost_count; /* 0 = not known */
};

/* Why a page, or the rest of it, cannot be read. text is a constant. */
struct ring_fault {
	const char *text;    /* NULL = none */
	uint32_t at;         /* offset in the page */
	uint64_t read, want; /* the number that was read and its limit */
};

/**
 * Begins a page.
 *
 * @param bytes  The page, size_bytes long: shorter than a page at the end of a file that was cut.
 * @return False with @p fault filled where the header makes no sense; the page has no records then.
 */
bool ring_page_begin(const struct ring_layout *layout, const uint8_t *bytes, size_t size_bytes,
	struct ring_page *page, struct ring_fault *fault);

/**
 * Walks on: up to @p max records. 0 = the end of the page, or a fault.
 *
 * @param fault  Filled at damage; the rest of the page is given up, the records before it are good.
 */
size_t ring_page_walk(const struct ring_layout *layout, struct ring_page *page,
	struct tdm_slot *slots, size_t max, struct ring_fault *fault);

#endif
