/* SPDX-License-Identifier: MIT */
/* One ring-buffer page; the first byte says its byte order and the size of a long. */
#include "decode/ring_page_priv.h"
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 16
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size) {
		return 0;
	}

	const bool is_small = data[0] & 2;
	const struct ring_layout layout = {
		.big_endian = data[0] & 1,
		.commit_bytes = is_small ? 4 : 8,
		.header_bytes = is_small ? 12 : 16,
		.id_offset = data[0] & 4 ? 6 : 0,
	};
	struct ring_page page;
	struct ring_fault fault;
	struct tdm_slot slots[SLOTS];
	size_t total = 0;

	data++;
	size--;
	if (!ring_page_begin(&layout, data, size, &page, &fault)) {
		return 0;
	}
	for (;;) {
		const size_t count = ring_page_walk(&layout, &page, slots, SLOTS, &fault);

		for (size_t i = 0; i < count; i++) {
			const uint8_t *end = slots[i].payload + slots[i].payload_bytes;

			if (slots[i].payload < data || end > data + size ||
				end < slots[i].payload) {
				abort();
			}
		}
		total += count;
		if (count < SLOTS) {
			break;
		}
	}
	/* A record takes 8 bytes at least. */
	if (total > size / 8 + 1 || page.pos > page.size) {
		abort();
	}
	return 0;
}
