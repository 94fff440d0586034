/* SPDX-License-Identifier: MIT */
#include <tandem/cursor.h>

/* The one place where input is indexed: NULL where fewer than count bytes are left. */
static const uint8_t *step(struct tdm_cursor *in, uint64_t count)
{
	if (in->failed || count > in->size - in->pos) {
		in->failed = true;
		return NULL;
	}

	const uint8_t *at = in->bytes + in->pos;

	in->pos += (size_t)count;
	return at;
}

uint8_t tdm_cursor_u8(struct tdm_cursor *in)
{
	const uint8_t *at = step(in, 1);

	return at ? *at : 0;
}

uint16_t tdm_cursor_u16(struct tdm_cursor *in)
{
	const uint8_t *at = step(in, 2);

	return at ? tdm_load_u16(at, in->big_endian) : 0;
}

uint32_t tdm_cursor_u32(struct tdm_cursor *in)
{
	const uint8_t *at = step(in, 4);

	return at ? tdm_load_u32(at, in->big_endian) : 0;
}

uint64_t tdm_cursor_u64(struct tdm_cursor *in)
{
	const uint8_t *at = step(in, 8);

	return at ? tdm_load_u64(at, in->big_endian) : 0;
}

void tdm_cursor_skip(struct tdm_cursor *in, uint64_t count)
{
	step(in, count);
}

struct tdm_cursor tdm_cursor_take(struct tdm_cursor *in, uint64_t count)
{
	const uint64_t base = tdm_cursor_offset(in);
	const uint8_t *at = step(in, count);
	struct tdm_cursor part = tdm_cursor_over(at, at ? (size_t)count : 0, base, in->big_endian);

	part.failed = !at;
	return part;
}

const char *tdm_cursor_string(struct tdm_cursor *in, size_t max_bytes)
{
	const size_t left = tdm_cursor_left(in);
	const size_t limit = left < max_bytes ? left : max_bytes;
	const uint8_t *start = in->bytes + in->pos;
	const uint8_t *nul = limit ? memchr(start, 0, limit) : NULL;

	if (!nul) {
		in->failed = true;
		return NULL;
	}
	in->pos += (size_t)(nul - start) + 1;
	return (const char *)start;
}

bool tdm_cursor_expect(struct tdm_cursor *in, const void *wanted, size_t count)
{
	const uint8_t *at = step(in, count);

	if (!at || memcmp(at, wanted, count) != 0) {
		in->failed = true;
		return false;
	}
	return true;
}

uint64_t tdm_load_uint(const void *at, size_t size_bytes, bool big_endian)
{
	const uint8_t *bytes = at;
	uint64_t value = 0;

	switch (size_bytes) {
	case 1:
		return bytes[0];
	case 2:
		return tdm_load_u16(at, big_endian);
	case 4:
		return tdm_load_u32(at, big_endian);
	case 8:
		return tdm_load_u64(at, big_endian);
	default:
		for (size_t i = 0; i < size_bytes; i++) {
			value = value << 8 | bytes[big_endian ? i : size_bytes - 1 - i];
		}
		return value;
	}
}

int64_t tdm_load_int(const void *at, size_t size_bytes, bool big_endian)
{
	const uint64_t value = tdm_load_uint(at, size_bytes, big_endian);
	const unsigned int spare_bits = 64 - 8 * (unsigned int)size_bytes;

	return spare_bits >= 64 ? 0 : (int64_t)(value << spare_bits) >> spare_bits;
}
