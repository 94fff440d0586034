/* SPDX-License-Identifier: MIT */
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/arena.h>

enum {
	BLOCK_BYTES = 16384
};

struct tdm_arena_block {
	struct tdm_arena_block *next;
	size_t used, room;
	alignas(max_align_t) uint8_t bytes[];
};

void *tdm_arena_alloc(struct tdm_arena *arena, size_t size)
{
	struct tdm_arena_block *block = arena->blocks;

	if (size > SIZE_MAX / 2) {
		return NULL;
	}
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (!block || size > block->room - block->used) {
		const size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = calloc(1, sizeof(*block) + room);
		if (!block) {
			return NULL;
		}
		block->room = room;
		/* A large one goes behind the newest, whose rest stays in use. */
		if (size > BLOCK_BYTES && arena->blocks) {
			block->next = arena->blocks->next;
			arena->blocks->next = block;
		} else {
			block->next = arena->blocks;
			arena->blocks = block;
		}
	}

	void *at = block->bytes + block->used;

	block->used += size;
	return at;
}

void *tdm_arena_array(struct tdm_arena *arena, size_t count, size_t element_size)
{
	size_t size;

	if (__builtin_mul_overflow(count, element_size, &size)) {
		return NULL;
	}
	return tdm_arena_alloc(arena, size);
}

char *tdm_arena_text(struct tdm_arena *arena, const void *bytes, size_t size)
{
	char *text = size < SIZE_MAX ? tdm_arena_alloc(arena, size + 1) : NULL;

	if (text && size) {
		memcpy(text, bytes, size);
	}
	return text;
}

void tdm_arena_release(struct tdm_arena *arena)
{
	while (arena->blocks) {
		struct tdm_arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}
