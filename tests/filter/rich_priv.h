/* SPDX-License-Identifier: MIT */
/*
 * rich_priv.h - what the parts of source.tandemtest.rich share.
 */
#ifndef TESTS_RICH_PRIV_H
#define TESTS_RICH_PRIV_H

#include "test_plugin.h"
#include <stdio.h>
#include <stdlib.h>

struct rich {
	bt_self_component *self;
	uint64_t mip;
	bt_message *messages[512];
	size_t count;
	size_t at;
};

#define CHECK(expression)                                                            \
	do {                                                                         \
		if (!(expression)) {                                                 \
			fprintf(stderr, "%s: line %d failed\n", __FILE__, __LINE__); \
			abort();                                                     \
		}                                                                    \
	} while (0)

/* A link: protocol version 0 wants the class, 1 a place. */
struct target {
	bt_field_class *fc; /* borrowed */
	int scope;          /* of bt_field_location_scope */
	const char *items[3];
	uint64_t count;
};

/* The classes that links of one event class lead to. */
struct scopes {
	struct target packet_length, flag, unsigned_selector, signed_selector;
};

enum {
	PACKET,
	COMMON,
	SPECIFIC,
	PAYLOAD
}; /* in the order of bt_field_location_scope */

/* rich_class.c */
bt_value *rich_attributes(const char *what);
void rich_append(bt_field_class *structure, const char *name, bt_field_class *member);
bt_field_class *rich_number(bt_trace_class *tc, uint64_t bits, int base);
bt_field_class *rich_unsigned_enumeration(bt_trace_class *tc);
bt_field_class *rich_dynamic_array(struct rich *rich, bt_trace_class *tc, bt_field_class *element,
	const struct target *length);
bt_field_class *rich_option(struct rich *rich, bt_trace_class *tc, int kind,
	const struct target *selector, bool reversed);
bt_field_class *rich_last_member(bt_field_class *structure);
bt_field_class *rich_make_payload(struct rich *rich, bt_trace_class *tc, struct scopes *scopes);

/* rich_field.c */
void rich_fill(bt_field *field, unsigned int round, const char *name, uint64_t links);

#endif
