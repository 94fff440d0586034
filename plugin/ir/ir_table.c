/* SPDX-License-Identifier: MIT */
#include "ir/ir_table.h"
#include <stdlib.h>

static size_t home(const struct ir_table *table, const void *key)
{
	/* Objects are aligned: the low bits say nothing. The product spreads the others over the high half. */
	const uint64_t mixed = ((uint64_t)(uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(mixed >> 32) & (table->room - 1);
}

static size_t find_slot(const struct ir_table *table, const void *key)
{
	size_t at = home(table, key);

	while (table->slots[at].key && table->slots[at].key != key) {
		at = (at + 1) & (table->room - 1);
	}
	return at;
}

void *ir_table_find(const struct ir_table *table, const void *key)
{
	if (!table->room) {
		return NULL;
	}
	return table->slots[find_slot(table, key)].value;
}

static bool grow(struct ir_table *table)
{
	struct ir_table bigger = { .room = table->room ? table->room * 2 : 64 };

	bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
	if (!bigger.slots) {
		return false;
	}
	bigger.count = table->count;
	for (size_t i = 0; i < table->room; i++) {
		if (table->slots[i].key) {
			bigger.slots[find_slot(&bigger, table->slots[i].key)] = table->slots[i];
		}
	}
	free(table->slots);
	*table = bigger;
	return true;
}

bool ir_table_add(struct ir_table *table, const void *key, void *value)
{
	if ((table->count + 1) * 2 > table->room && !grow(table)) {
		return false;
	}
	table->slots[find_slot(table, key)] = (struct ir_table_slot){ key, value };
	table->count++;
	return true;
}

void ir_table_remove(struct ir_table *table, const void *key)
{
	if (!table->room) {
		return;
	}
	size_t hole = find_slot(table, key);

	if (!table->slots[hole].key) {
		return;
	}
	table->count--;
	/* Whoever stands behind the hole because its own place was taken moves up: no tombstones. */
	for (size_t at = (hole + 1) & (table->room - 1); table->slots[at].key;
		at = (at + 1) & (table->room - 1)) {
		const size_t distance =
			(at - home(table, table->slots[at].key)) & (table->room - 1);

		if (distance >= ((at - hole) & (table->room - 1))) {
			table->slots[hole] = table->slots[at];
			hole = at;
		}
	}
	table->slots[hole] = (struct ir_table_slot){ NULL, NULL };
}

void ir_table_release(struct ir_table *table)
{
	free(table->slots);
	*table = (struct ir_table){ NULL, 0, 0 };
}
