/* SPDX-License-Identifier: MIT */
/*
 * print_guard_priv.h - what libtraceevent must not be given: it trusts the files that it reads.
 *
 * Met with 1.7.1: nested parentheses end its stack, a divisor of 0 ends the process, a width of a thousand million takes hours,
 * lengths and indexes are not compared with the record. Files come from anywhere, so each is looked at before: the text of a
 * format once, its parsed arguments once, and the values of a record that they hang on each time.
 */
#ifndef TANDEM_PRINT_GUARD_PRIV_H
#define TANDEM_PRINT_GUARD_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/schema.h>

struct tep_print_arg;

enum {
	/* Bytes behind a record that must be there and zero, so that every offset and every length that pass the guard end
	 * in them: offset and length of a locator, and a count of PRINT_GUARD_COUNT_MAX elements of 8 bytes. */
	PRINT_GUARD_ROOM_BYTES = 1 << 20,
	PRINT_GUARD_COUNT_MAX = 65536,
	PRINT_GUARD_VALUES_MAX = 16
};

/* What must hold for the values of a record. */
struct print_guard {
	size_t count;

	struct print_guard_value {
		const struct tdm_field *field; /* borrowed */
		uint64_t most;
		bool is_divisor; /* neither 0 nor -1 */
	} values[PRINT_GUARD_VALUES_MAX];
};

/** Whether the text of an event's format may be parsed. */
bool print_guard_text(const char *text, size_t text_bytes);

/** Whether the formats of trace_printk() may be given to the library. */
bool print_guard_printk(const char *text, size_t text_bytes);

/** Whether what the text became may be printed, and what must hold for each record. */
bool print_guard_args(struct print_guard *guard, const struct tdm_event_class *event_class,
	const struct tep_print_arg *args);

/** Whether this record may be printed. */
bool print_guard_allows(const struct print_guard *guard, const uint8_t *payload,
	uint32_t payload_bytes, bool big_endian);

#endif
