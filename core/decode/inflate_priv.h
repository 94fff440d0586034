/* SPDX-License-Identifier: MIT */
/*
 * inflate_priv.h - independent compressed blocks, of which the container tells both sizes.
 */
#ifndef TANDEM_INFLATE_PRIV_H
#define TANDEM_INFLATE_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

enum inflate_kind {
	INFLATE_NONE,
	INFLATE_ZLIB,
	INFLATE_ZSTD
};

/*
 * Scratch for one block at a time, handed out to whoever inflates just now: a trace with hundreds of streams needs
 * as many as there are threads.
 */
struct inflate_context {
	struct inflate_context *next;
	void *zstd; /* ZSTD_DCtx */
	uint8_t *bytes;
	size_t room;
};

struct inflate_pool; /* thread-safe */

struct inflate_pool *inflate_pool_create(void);
void inflate_pool_destroy(struct inflate_pool *pool);

/** @return A context with room for @p room bytes of scratch; NULL without memory. Goes back with inflate_give(). */
struct inflate_context *inflate_take(struct inflate_pool *pool, size_t room);
void inflate_give(struct inflate_pool *pool, struct inflate_context *context);

/**
 * Inflates one block.
 *
 * @return NULL where exactly @p out_size bytes came out; else what went wrong, a constant.
 */
const char *inflate_block(struct inflate_context *context, enum inflate_kind kind, const void *in,
	size_t in_size, void *out, size_t out_size);

#endif
