/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <tandem/wire.h>

/* Castagnoli's polynomial, bits reversed. */
#define POLYNOMIAL 0x82f63b78u

static uint32_t by_table(uint32_t crc, const uint8_t *bytes, size_t size)
{
	static uint32_t table[256];
	static _Atomic int is_made;

	if (!is_made) {
		/* Several threads may make it at once: they write the same numbers. */
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t value = i;

			for (int bit = 0; bit < 8; bit++) {
				value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
			}
			__atomic_store_n(&table[i], value, __ATOMIC_RELAXED);
		}
		is_made = 1;
	}
	for (size_t i = 0; i < size; i++) {
		crc = crc >> 8 ^ __atomic_load_n(&table[(crc ^ bytes[i]) & 0xff], __ATOMIC_RELAXED);
	}
	return crc;
}

#if defined(__x86_64__)
/* The instruction does 8 bytes in 3 cycles: the checksum stands between a clock reading and its sending. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t crc, const uint8_t *bytes, size_t size)
{
	uint64_t wide = crc;

	for (; size >= 8; size -= 8, bytes += 8) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; size > 0; size--, bytes++) {
		crc = __builtin_ia32_crc32qi(crc, *bytes);
	}
	return crc;
}
#endif

uint32_t tdm_crc32c(const void *bytes, size_t size)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2")) {
		return ~by_instruction(~0u, bytes, size);
	}
#endif
	return ~by_table(~0u, bytes, size);
}
