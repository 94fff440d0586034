/* SPDX-License-Identifier: MIT */
/*
 * ir_table.h - from the address of an input object to what we made of it: open addressing, no allocation per lookup.
 */
#ifndef TANDEM_IR_TABLE_H
#define TANDEM_IR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ir_table_slot {
	const void *key; /* NULL = free */
	void *value;
};

struct ir_table {
	struct ir_table_slot *slots; /* owned; a power of two of them */
	size_t room, count;
};

/** The value of @p key, or NULL. */
void *ir_table_find(const struct ir_table *table, const void *key);

/** Adds a key that is not there yet. @return False without memory. */
bool ir_table_add(struct ir_table *table, const void *key, void *value);

/** Takes a key out; nothing happens where it is not there. */
void ir_table_remove(struct ir_table *table, const void *key);

/** Frees the slots; the values are the caller's. */
void ir_table_release(struct ir_table *table);

#endif
