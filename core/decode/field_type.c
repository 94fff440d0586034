/* SPDX-License-Identifier: MIT */
#include "field_type_priv.h"
#include <string.h>

enum {
	LONG = 0 /* as many bytes as the kernel's long */
};

static const struct {
	const char *name;
	uint32_t bytes;
} known_types[] = {
	{ "u8", 1 },
	{ "s8", 1 },
	{ "__u8", 1 },
	{ "__s8", 1 },
	{ "uint8_t", 1 },
	{ "int8_t", 1 },
	{ "uchar", 1 },
	{ "u_char", 1 },
	{ "u16", 2 },
	{ "s16", 2 },
	{ "__u16", 2 },
	{ "__s16", 2 },
	{ "__le16", 2 },
	{ "__be16", 2 },
	{ "uint16_t", 2 },
	{ "int16_t", 2 },
	{ "ushort", 2 },
	{ "u_short", 2 },
	{ "u32", 4 },
	{ "s32", 4 },
	{ "__u32", 4 },
	{ "__s32", 4 },
	{ "__le32", 4 },
	{ "__be32", 4 },
	{ "uint32_t", 4 },
	{ "int32_t", 4 },
	{ "uint", 4 },
	{ "u_int", 4 },
	{ "pid_t", 4 },
	{ "gfp_t", 4 },
	{ "dev_t", 4 },
	{ "float", 4 },
	{ "u64", 8 },
	{ "s64", 8 },
	{ "__u64", 8 },
	{ "__s64", 8 },
	{ "__le64", 8 },
	{ "__be64", 8 },
	{ "uint64_t", 8 },
	{ "int64_t", 8 },
	{ "loff_t", 8 },
	{ "sector_t", 8 },
	{ "ktime_t", 8 },
	{ "double", 8 },
	{ "size_t", LONG },
	{ "ssize_t", LONG },
	{ "uintptr_t", LONG },
	{ "ulong", LONG },
	{ "u_long", LONG },
	{ "__kernel_size_t", LONG },
};

static const char *const wide_types[] = { "__int128", "__int128_t", "__uint128_t", "u128", "s128",
	"__u128", "__s128", "uint128_t", "int128_t" };

static const char *const bool_types[] = { "bool", "_Bool" };

static bool is_word(const char *word, size_t size, const char *wanted)
{
	/* Nearly all differ in their first byte: thousands of fields are compared with dozens of words each. */
	return *word == *wanted && strncmp(wanted, word, size) == 0 && wanted[size] == '\0';
}

static bool is_any(const char *word, size_t size, const char *const *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_word(word, size, wanted[i])) {
			return true;
		}
	}
	return false;
}

struct field_type field_type_from_name(const char *name, unsigned int long_bytes)
{
	struct field_type type = { 0 };
	unsigned int longs = 0;
	bool is_char = false, is_short = false, is_int = false, has_sign = false;

	for (const char *at = name; *at;) {
		if (*at == '*') {
			type.is_pointer = true;
			at++;
			continue;
		}

		const size_t size = strcspn(at, " \t*");

		if (!size) {
			at++;
			continue;
		}
		is_char = is_char || is_word(at, size, "char");
		is_short = is_short || is_word(at, size, "short");
		is_int = is_int || is_word(at, size, "int") || is_word(at, size, "enum");
		has_sign = has_sign || is_word(at, size, "unsigned") || is_word(at, size, "signed");
		longs += is_word(at, size, "long");
		type.is_bool = type.is_bool || is_any(at, size, bool_types,
						       sizeof(bool_types) / sizeof(bool_types[0]));
		type.is_wide = type.is_wide || is_any(at, size, wide_types,
						       sizeof(wide_types) / sizeof(wide_types[0]));
		type.is_cpumask = type.is_cpumask || is_word(at, size, "cpumask_t") ||
				  is_word(at, size, "cpumask") ||
				  is_word(at, size, "cpumask_var_t");
		for (size_t i = 0; i < sizeof(known_types) / sizeof(known_types[0]); i++) {
			if (is_word(at, size, known_types[i].name)) {
				type.element_bytes =
					known_types[i].bytes ? known_types[i].bytes : long_bytes;
			}
		}
		at += size;
	}
	if (type.is_cpumask || type.is_pointer) {
		type.element_bytes = long_bytes;
	} else if (type.is_wide) {
		type.element_bytes = 16;
	} else if (is_char || type.is_bool) {
		type.element_bytes = 1;
	} else if (is_short) {
		type.element_bytes = 2;
	} else if (longs) {
		type.element_bytes = longs > 1 ? 8 : long_bytes;
	} else if (is_int || (has_sign && !type.element_bytes)) {
		type.element_bytes = 4;
	}
	/* "unsigned char" and "u8" are numbers, "char" is text. */
	type.is_char = is_char && !has_sign && !type.is_pointer;
	type.is_bool = type.is_bool && !type.is_pointer;
	type.is_wide = type.is_wide && !type.is_pointer;
	return type;
}
