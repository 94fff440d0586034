/* SPDX-License-Identifier: MIT */
#include "ring_page_priv.h"
#include <tandem/cursor.h>

/* Source: kernel/trace/ring_buffer.c and include/linux/ring_buffer.h. */
enum {
	TYPE_LONG = 0, /* the length is in the next word */
	TYPE_DATA_MAX = 28,
	TYPE_PADDING = 29,
	TYPE_TIME_EXTEND = 30,
	TYPE_TIME_STAMP = 31,
	DELTA_BITS = 27,
	STAMP_BITS = 59,
	TIME_BYTES = 8, /* of the page header */
};

#define COMMIT_SIZE_MASK   ((1u << 27) - 1)
#define COMMIT_LOST_STORED (1u << 30)
#define COMMIT_LOST        (1u << 31)

bool ring_page_begin(const struct ring_layout *layout, const uint8_t *bytes, size_t size_bytes,
	struct ring_page *page, struct ring_fault *fault)
{
	*page = (struct ring_page){ 0 };
	*fault = (struct ring_fault){ 0 };
	if (size_bytes < layout->header_bytes) {
		*fault = (struct ring_fault){ "is shorter than a page header", 0, size_bytes,
			layout->header_bytes };
		return false;
	}

	/* Only the low half counts: the kernel adds the flags as a negative int. */
	const uint8_t *low = bytes + TIME_BYTES +
			     (layout->big_endian ? layout->commit_bytes - sizeof(uint32_t) : 0);
	const uint32_t commit = tdm_load_u32(low, layout->big_endian);
	const uint32_t size = commit & COMMIT_SIZE_MASK;
	const size_t room = size_bytes - layout->header_bytes;

	page->time = tdm_load_u64(bytes, layout->big_endian);
	if (size > room) {
		*fault = (struct ring_fault){ "says that it holds more bytes than fit", TIME_BYTES,
			size, room };
		return false;
	}
	page->data = bytes + layout->header_bytes;
	page->size = size;
	page->lost = commit & COMMIT_LOST;
	if (page->lost && (commit & COMMIT_LOST_STORED)) {
		if (room - size < layout->commit_bytes) {
			/* The loss stands, only its number is nowhere; the records are good. */
			fault->text = "stores a count of lost events behind its end";
			fault->at = layout->header_bytes + size;
			fault->read = layout->commit_bytes;
			fault->want = room - size;
		} else {
			page->lost_count = tdm_load_uint(
				page->data + size, layout->commit_bytes, layout->big_endian);
		}
	}
	return true;
}

static inline bool stop_at(struct ring_page *page, const struct ring_layout *layout,
	struct ring_fault *fault, const char *text, uint64_t read, uint64_t want)
{
	*fault = (struct ring_fault){ text, layout->header_bytes + page->pos, read, want };
	return false;
}

/* What is not plain data; false = the end of the page or damage. */
static bool pass_special(const struct ring_layout *layout, bool big_endian, struct ring_page *page,
	uint32_t type, uint64_t delta, struct ring_fault *fault)
{
	const uint32_t left = page->size - page->pos;

	if (type == TYPE_PADDING && delta == 0) {
		/* The null event: the rest of the page is unused. */
		page->pos = page->size;
		return false;
	}
	if (left < 8) {
		return stop_at(
			page, layout, fault, "ends inside a time record or padding", left, 8);
	}

	const uint32_t word = tdm_load_u32(page->data + page->pos + 4, big_endian);

	if (type == TYPE_PADDING) {
		/* Discarded: at least its own length word, and whole words. */
		if (word < 4 || word > left - 4) {
			return stop_at(page, layout, fault,
				"has a discarded record of an impossible length", word, left - 4);
		}
		page->time += delta;
		page->pos += 4 + ((word + 3) & ~3u);
		if (page->pos > page->size) {
			page->pos = page->size;
		}
		return true;
	}
	if (type == TYPE_TIME_EXTEND) {
		page->time += ((uint64_t)word << DELTA_BITS) + delta;
	} else {
		const uint64_t mask = (1ull << STAMP_BITS) - 1;

		page->time =
			(page->time & ~mask) | ((((uint64_t)word << DELTA_BITS) + delta) & mask);
	}
	page->pos += 8;
	return true;
}

static inline __attribute__((always_inline)) size_t walk(const struct ring_layout *layout,
	const bool big_endian, struct ring_page *page, struct tdm_slot *slots, size_t max,
	struct ring_fault *fault)
{
	const uint8_t *const data = page->data;
	const uint32_t size = page->size;
	const uint32_t id_offset = layout->id_offset;
	uint32_t pos = page->pos;
	uint64_t time = page->time;
	size_t count = 0;

	while (count < max && size - pos >= 4) {
		const uint32_t head = tdm_load_u32(data + pos, big_endian);
		const uint32_t type = big_endian ? head >> DELTA_BITS : head & 31;
		const uint32_t delta =
			big_endian ? head & ((1u << DELTA_BITS) - 1) : head >> (32 - DELTA_BITS);
		uint32_t skip = 4, length = type * 4;

		if (__builtin_expect(type - 1 >= TYPE_DATA_MAX, 0)) {
			if (type != TYPE_LONG) {
				page->pos = pos;
				page->time = time;
				if (!pass_special(layout, big_endian, page, type, delta, fault)) {
					return count;
				}
				pos = page->pos;
				time = page->time;
				continue;
			}

			const uint32_t left = size - pos;
			const uint32_t word =
				left < 8 ? 0 : tdm_load_u32(data + pos + 4, big_endian);

			if (word < 4 || word > left - 4) {
				page->pos = pos;
				page->time = time;
				stop_at(page, layout, fault, "has a record of an impossible length",
					word, left - 4);
				return count;
			}
			skip = 8;
			length = (word - 4 + 3) & ~3u;
		}
		if (__builtin_expect(length > size - pos - skip || length < id_offset + 2, 0)) {
			page->pos = pos;
			page->time = time;
			stop_at(page, layout, fault,
				length < id_offset + 2 ? "has a record too short for its type"
						       : "ends inside a record",
				length, length < id_offset + 2 ? id_offset + 2 : size - pos - skip);
			return count;
		}
		time += delta;

		const uint8_t *payload = data + pos + skip;
		struct tdm_slot *slot = &slots[count++];

		slot->raw_time = time;
		slot->payload = payload;
		slot->payload_bytes = length;
		slot->event_id = big_endian ? tdm_load_u16(payload + id_offset, true)
					    : tdm_load_u16(payload + id_offset, false);
		pos += skip + length;
	}
	page->pos = pos;
	page->time = time;
	if (count < max && size != pos) {
		stop_at(page, layout, fault, "ends inside a record's head", size - pos, 4);
	}
	return count;
}

size_t ring_page_walk(const struct ring_layout *layout, struct ring_page *page,
	struct tdm_slot *slots, size_t max, struct ring_fault *fault)
{
	size_t count;

	fault->text = NULL;
	if (layout->big_endian) {
		count = walk(layout, true, page, slots, max, fault);
	} else {
		count = walk(layout, false, page, slots, max, fault);
	}
	if (fault->text) {
		page->pos = page->size;
	}
	return count;
}
