/* SPDX-License-Identifier: MIT */
#include "order.h"
#include <stdint.h>

int compare_doubles(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;

	return (left > right) - (left < right);
}

static void swap(double *a, double *b)
{
	const double held = *a;

	*a = *b;
	*b = held;
}

/* The middle one of first, middle and last goes to the middle: sorted input is split in halves. */
static double pivot(double *values, size_t low, size_t high)
{
	const size_t middle = low + (high - low) / 2;

	if (values[middle] < values[low]) {
		swap(&values[middle], &values[low]);
	}
	if (values[high] < values[low]) {
		swap(&values[high], &values[low]);
	}
	if (values[high] < values[middle]) {
		swap(&values[high], &values[middle]);
	}
	return values[middle];
}

double order_nth(double *values, size_t count, size_t n)
{
	size_t low = 0;
	size_t high = count - 1;

	/* Hoare's selection: on return all before n are at most values[n], all behind at least. */
	while (low < high) {
		const double middle = pivot(values, low, high);
		size_t i = low;
		size_t j = high;

		while (i <= j) {
			while (values[i] < middle) {
				i++;
			}
			while (middle < values[j]) {
				j--;
			}
			if (i <= j) {
				swap(&values[i], &values[j]);
				i++;
				if (j == 0) {
					break;
				}
				j--;
			}
		}
		if (n <= j) {
			high = j;
		} else if (n >= i) {
			low = i;
		} else {
			break;
		}
	}
	return values[n];
}

int compare_u64(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}
