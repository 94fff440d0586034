/* SPDX-License-Identifier: MIT */
/*
 * schema_priv.h - the layout of a schema, for look-ups that happen once a record.
 */
#ifndef TANDEM_SCHEMA_PRIV_H
#define TANDEM_SCHEMA_PRIV_H

#include <tandem/arena.h>
#include <tandem/schema.h>

struct tdm_schema {
	struct tdm_arena arena;
	struct tdm_event_class **by_id; /* id_room pointers */
	uint32_t id_room;
	struct tdm_event_class **in_order;
	size_t count, room;
	bool big_endian;
	unsigned int long_bytes;
	uint16_t pid_offset;
};

/* tdm_schema_find() without a call. */
static inline const struct tdm_event_class *schema_find(
	const struct tdm_schema *schema, uint32_t id)
{
	return id < schema->id_room ? schema->by_id[id] : NULL;
}

#endif
