/* SPDX-License-Identifier: MIT */
/*
 * cursor.h - bounded reading of bytes that somebody else wrote.
 *
 * A short read gives zero and marks the cursor failed for good: read a whole structure, then ask once.
 * A length from the input becomes a smaller cursor, never a pointer.
 */
#ifndef TANDEM_CURSOR_H
#define TANDEM_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tdm_cursor {
	const uint8_t *bytes; /* borrowed */
	size_t size;          /* bytes that may be read */
	size_t pos;           /* next byte; never above size */
	uint64_t base;        /* offset of bytes[0] in the file, for messages */
	bool big_endian;      /* byte order of integers */
	bool failed;          /* a read passed the end */
};

/** A cursor over @p size bytes at @p bytes, which lie at file offset @p base. */
static inline struct tdm_cursor tdm_cursor_over(
	const void *bytes, size_t size, uint64_t base, bool big_endian)
{
	const struct tdm_cursor cursor = {
		/* Never NULL: even adding 0 to it is undefined. */
		.bytes = bytes ? bytes : (const void *)"",
		.size = size,
		.base = base,
		.big_endian = big_endian,
	};

	return cursor;
}

/** Bytes that are left. 0 once failed. */
static inline size_t tdm_cursor_left(const struct tdm_cursor *in)
{
	return in->failed ? 0 : in->size - in->pos;
}

/** Offset in the file of the next byte. */
static inline uint64_t tdm_cursor_offset(const struct tdm_cursor *in)
{
	return in->base + in->pos;
}

uint8_t tdm_cursor_u8(struct tdm_cursor *in);
uint16_t tdm_cursor_u16(struct tdm_cursor *in);
uint32_t tdm_cursor_u32(struct tdm_cursor *in);
uint64_t tdm_cursor_u64(struct tdm_cursor *in);

/** Passes over @p count bytes. */
void tdm_cursor_skip(struct tdm_cursor *in, uint64_t count);

/** The next @p count bytes as a cursor of their own; empty and failed where there are fewer. */
struct tdm_cursor tdm_cursor_take(struct tdm_cursor *in, uint64_t count);

/** A NUL-terminated string inside the input, its NUL passed; NULL and failed if no NUL comes within @p max_bytes. */
const char *tdm_cursor_string(struct tdm_cursor *in, size_t max_bytes);

/** Compares the next bytes with @p wanted and passes them; false and failed where they differ. */
bool tdm_cursor_expect(struct tdm_cursor *in, const void *wanted, size_t count);

/* One integer of 1, 2, 4 or 8 bytes at an address that the caller has checked. */

static inline uint16_t tdm_load_u16(const void *at, bool big_endian)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return big_endian ? __builtin_bswap16(value) : value;
}

static inline uint32_t tdm_load_u32(const void *at, bool big_endian)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return big_endian ? __builtin_bswap32(value) : value;
}

static inline uint64_t tdm_load_u64(const void *at, bool big_endian)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return big_endian ? __builtin_bswap64(value) : value;
}

static inline void tdm_store_u16(void *at, uint16_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap16(value) : value;
	memcpy(at, &value, sizeof(value));
}

static inline void tdm_store_u32(void *at, uint32_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap32(value) : value;
	memcpy(at, &value, sizeof(value));
}

static inline void tdm_store_u64(void *at, uint64_t value, bool big_endian)
{
	value = big_endian ? __builtin_bswap64(value) : value;
	memcpy(at, &value, sizeof(value));
}

/** An unsigned integer of 1 to 8 bytes (any width) at @p at. The caller has checked the bounds. */
uint64_t tdm_load_uint(const void *at, size_t size_bytes, bool big_endian);

/** The same, sign-extended. */
int64_t tdm_load_int(const void *at, size_t size_bytes, bool big_endian);

#endif
