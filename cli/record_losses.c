/* SPDX-License-Identifier: MIT */
#include "record_spool_priv.h"
#include <tandem/cursor.h>
#include <unistd.h>

/* Of a page's second word, source: kernel/trace/ring_buffer.c. */
#define COMMIT_SIZE_MASK   ((1u << 27) - 1)
#define COMMIT_LOST_STORED (1u << 30)
#define COMMIT_LOST        (1u << 31)

enum {
	TIME_BYTES = 8,
	LONG_BYTES_MAX = 8
};

/* The page at an offset of a CPU's file; one that is cut off or damaged says nothing. */
static void add_page(const struct record_spool *spool, uint32_t cpu, uint64_t offset,
	struct record_losses *losses)
{
	const uint32_t long_bytes = spool->meta.long_bytes;
	const uint32_t header_bytes = TIME_BYTES + long_bytes;
	uint8_t bytes[TIME_BYTES + LONG_BYTES_MAX];

	if (pread(spool->fds[cpu], bytes, header_bytes, (off_t)offset) != (ssize_t)header_bytes) {
		return;
	}

	/* The flags and the size are in the low half, whatever the size of a long. */
	const uint32_t commit =
		(uint32_t)tdm_load_uint(bytes + TIME_BYTES, long_bytes, spool->meta.big_endian);
	const uint32_t end = header_bytes + (commit & COMMIT_SIZE_MASK);

	if (!(commit & COMMIT_LOST)) {
		return;
	}
	if ((commit & COMMIT_LOST_STORED) && end + long_bytes <= spool->meta.page_bytes &&
		pread(spool->fds[cpu], bytes, long_bytes, (off_t)(offset + end)) ==
			(ssize_t)long_bytes) {
		losses->events += tdm_load_uint(bytes, long_bytes, spool->meta.big_endian);
	} else {
		losses->uncounted++;
	}
}

struct record_losses record_spool_losses(const struct record_spool *spool)
{
	const uint32_t page_bytes = spool->meta.page_bytes;
	struct record_losses losses = { 0 };

	if (page_bytes < TIME_BYTES + LONG_BYTES_MAX ||
		(spool->meta.long_bytes != 4 && spool->meta.long_bytes != 8)) {
		return losses;
	}
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		const uint64_t size_bytes =
			spool->fds[cpu] < 0 ? 0 : record_spool_cpu_bytes(spool, cpu);

		for (uint64_t at = 0; at < size_bytes; at += page_bytes) {
			add_page(spool, cpu, at, &losses);
		}
	}
	return losses;
}
