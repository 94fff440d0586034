/* SPDX-License-Identifier: MIT */
#include "inflate_priv.h"
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

struct inflate_pool {
	pthread_mutex_t lock;
	struct inflate_context *idle;
};

struct inflate_pool *inflate_pool_create(void)
{
	struct inflate_pool *pool = calloc(1, sizeof(*pool));

	if (pool) {
		pthread_mutex_init(&pool->lock, NULL);
	}
	return pool;
}

static void destroy_context(struct inflate_context *context)
{
	ZSTD_freeDCtx(context->zstd);
	free(context->bytes);
	free(context);
}

void inflate_pool_destroy(struct inflate_pool *pool)
{
	if (!pool) {
		return;
	}
	while (pool->idle) {
		struct inflate_context *next = pool->idle->next;

		destroy_context(pool->idle);
		pool->idle = next;
	}
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

struct inflate_context *inflate_take(struct inflate_pool *pool, size_t room)
{
	pthread_mutex_lock(&pool->lock);

	struct inflate_context *context = pool->idle;

	if (context) {
		pool->idle = context->next;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!context) {
		context = calloc(1, sizeof(*context));
		if (!context) {
			return NULL;
		}
	}
	if (room > context->room) {
		free(context->bytes);
		context->bytes = malloc(room);
		context->room = context->bytes ? room : 0;
		if (!context->bytes) {
			inflate_give(pool, context);
			return NULL;
		}
	}
	return context;
}

void inflate_give(struct inflate_pool *pool, struct inflate_context *context)
{
	pthread_mutex_lock(&pool->lock);
	context->next = pool->idle;
	pool->idle = context;
	pthread_mutex_unlock(&pool->lock);
}

static const char *inflate_zstd(
	struct inflate_context *context, const void *in, size_t in_size, void *out, size_t out_size)
{
	if (!context->zstd) {
		context->zstd = ZSTD_createDCtx();
		if (!context->zstd) {
			return "no memory";
		}
	}

	const size_t got = ZSTD_decompressDCtx(context->zstd, out, out_size, in, in_size);

	if (ZSTD_isError(got)) {
		return ZSTD_getErrorName(got);
	}
	return got == out_size ? NULL : "fewer bytes came out than were announced";
}

static const char *inflate_zlib(const void *in, size_t in_size, void *out, size_t out_size)
{
	uLongf got = out_size;

	switch (uncompress(out, &got, in, in_size)) {
	case Z_OK:
		return got == out_size ? NULL : "fewer bytes came out than were announced";
	case Z_BUF_ERROR:
		return "more bytes came out than were announced, or the input ends early";
	case Z_MEM_ERROR:
		return "no memory";
	default:
		return "the compressed bytes are damaged";
	}
}

const char *inflate_block(struct inflate_context *context, enum inflate_kind kind, const void *in,
	size_t in_size, void *out, size_t out_size)
{
	switch (kind) {
	case INFLATE_ZSTD:
		return inflate_zstd(context, in, in_size, out, out_size);
	case INFLATE_ZLIB:
		return inflate_zlib(in, in_size, out, out_size);
	case INFLATE_NONE:
		break;
	}
	return "the file says that nothing in it is compressed";
}
