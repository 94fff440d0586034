/* SPDX-License-Identifier: MIT */
/*
 * arena.h - many small allocations that live and die together.
 */
#ifndef TANDEM_ARENA_H
#define TANDEM_ARENA_H

#include <stddef.h>

struct tdm_arena_block;

/* Zero-initialised it is empty and usable. */
struct tdm_arena {
	struct tdm_arena_block *blocks; /* the newest first */
};

/** @return Zeroed memory, aligned for any type, that lives until tdm_arena_release(); NULL without memory. */
void *tdm_arena_alloc(struct tdm_arena *arena, size_t size);

/** As tdm_arena_alloc() for @p count elements; NULL too where the product does not fit. */
void *tdm_arena_array(struct tdm_arena *arena, size_t count, size_t element_size);

/** @return A NUL-terminated copy of @p size bytes; NULL without memory. */
char *tdm_arena_text(struct tdm_arena *arena, const void *bytes, size_t size);

/** Frees everything; the arena is empty and usable again. */
void tdm_arena_release(struct tdm_arena *arena);

#endif
