/* SPDX-License-Identifier: MIT */
/*
 * order.h - values in order.
 */
#ifndef TANDEM_ORDER_H
#define TANDEM_ORDER_H

#include <stddef.h>

/** The n-th smallest of @p count values, which are put in another order: those before it are no greater. n < count. */
double order_nth(double *values, size_t count, size_t n);

/** For qsort() of doubles. */
int compare_doubles(const void *a, const void *b);

/** For qsort() of readings and bounds, uint64_t. */
int compare_u64(const void *a, const void *b);

#endif
