/* SPDX-License-Identifier: MIT */
/*
 * reading.h - what a clock reading may be.
 */
#ifndef TANDEM_READING_H
#define TANDEM_READING_H

#include <stdint.h>

/* No reading lies above: ten years of a 5 GHz counter, or Unix nanoseconds, stay far below; differences fit a signed integer. */
#define TDM_READING_MAX (UINT64_C(1) << 62)

#endif
