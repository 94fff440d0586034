/* SPDX-License-Identifier: MIT */
/*
 * wide.h - 128-bit products, for time that must not be rounded.
 */
#ifndef TANDEM_WIDE_H
#define TANDEM_WIDE_H

#include <stdint.h>

typedef __int128 tdm_i128; /* the one typedef: the type has no ISO name */
typedef unsigned __int128 tdm_u128;

/** floor(a * b / d) for d > 0, exact. The caller sees to it that the result fits. */
static inline int64_t tdm_mul_div_floor(int64_t a, int64_t b, uint64_t d)
{
	const tdm_i128 product = (tdm_i128)a * b;
	tdm_i128 quotient = product / (tdm_i128)d;

	if (product % (tdm_i128)d < 0) {
		quotient--;
	}
	return (int64_t)quotient;
}

/** (a * b) >> shift, with a 128-bit product. */
static inline uint64_t tdm_mul_shift(uint64_t a, uint64_t b, unsigned int shift)
{
	return (uint64_t)(((tdm_u128)a * b) >> shift);
}

#endif
