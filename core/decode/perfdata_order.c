/* SPDX-License-Identifier: MIT */
/*
 * The items of one CPU in the order of their times.
 *
 * Chunks come by their least time. One that is in order and overlaps no other is read straight through: nearly all of
 * them. Else its items go to a heap, and one of them may leave when no chunk that is not loaded yet can have an
 * earlier one. So the order is exact whatever the file's is (rounds, per-thread files, rings that are read backwards),
 * and equal times keep the order of the file. What is loaded is bounded: beyond that, items leave as they are.
 */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_HELD_BYTES = 8 << 20
};

/* The bytes of one chunk, loaded. */
struct block {
	struct block *next;
	uint8_t *bytes;
	size_t room;
	size_t waiting; /* items in the heap */
};

/* One item that waits. */
struct waiting {
	uint64_t time, offset;
	const uint8_t *bytes;
	struct block *block;
};

struct perfdata_order {
	struct perfdata_straight in; /* the first member: perfdata_order_quick() */
	struct block *in_block;      /* its bytes */
	struct perfdata *pd;
	struct perfdata_cpu *cpu;
	size_t next_chunk;

	struct waiting *heap;
	size_t heap_count, heap_room;
	struct block *used, *spare;
	size_t held_bytes; /* of the used blocks */
};

struct perfdata_order *perfdata_order_create(
	struct perfdata *pd, size_t cpu_index, struct tdm_error *err)
{
	struct perfdata_order *order = calloc(1, sizeof(*order));

	if (!order) {
		tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory to read a CPU's records", pd->path);
		return NULL;
	}
	order->pd = pd;
	order->cpu = &pd->cpus[cpu_index];
	order->in.cpu = order->cpu->cpu;
	return order;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block->bytes);
		free(block);
		block = next;
	}
}

void perfdata_order_destroy(struct perfdata_order *order)
{
	if (order) {
		free_blocks(order->used);
		free_blocks(order->spare);
		free(order->heap);
		free(order);
	}
}

void perfdata_order_rewind(struct perfdata_order *order)
{
	free_blocks(order->used);
	order->used = NULL;
	order->held_bytes = 0;
	order->in_block = NULL;
	order->in.pos = 0;
	order->in.count = 0;
	order->heap_count = 0;
	order->next_chunk = 0;
	order->in.last_time = 0;
}

/* Gives back blocks that nobody waits in. */
static void retire(struct perfdata_order *order)
{
	struct block **link = &order->used;

	while (*link) {
		struct block *block = *link;

		if (block->waiting ||
			(block == order->in_block && order->in.pos < order->in.count)) {
			link = &block->next;
			continue;
		}
		*link = block->next;
		order->held_bytes -= block->room;
		/* One spare is kept: the usual case is one block at a time. */
		if (order->spare) {
			free(block->bytes);
			free(block);
		} else {
			block->next = NULL;
			order->spare = block;
		}
	}
}

static struct block *load(
	struct perfdata_order *order, const struct perfdata_chunk *chunk, struct tdm_error *err)
{
	struct block *block = order->spare;

	order->spare = NULL;
	if (!block) {
		block = calloc(1, sizeof(*block));
	}
	if (block && block->room < chunk->bytes) {
		free(block->bytes);
		block->room = 0;
		block->bytes = malloc(chunk->bytes);
		block->room = block->bytes ? chunk->bytes : 0;
	}
	if (!block || block->room < chunk->bytes) {
		free(block);
		tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for %" PRIu32 " bytes of records",
			order->pd->path, chunk->bytes);
		return NULL;
	}
	if (perfdata_store_read(order->pd, chunk->offset, block->bytes, chunk->bytes, err) !=
		TDM_OK) {
		block->next = order->spare;
		order->spare = block;
		return NULL;
	}
	block->waiting = 0;
	block->next = order->used;
	order->used = block;
	order->held_bytes += block->room;
	return block;
}

/*
 * The next item of this CPU inside a loaded chunk; *pos moves behind it. False at the chunk's end. The walk has seen
 * the same bytes before, but the file may have changed since: everything is checked again.
 */
static bool next_inside(struct perfdata_order *order, const uint8_t *bytes, uint64_t offset,
	uint32_t count, uint32_t *pos, uint64_t before, struct perfdata_item *item)
{
	const bool big_endian = order->pd->big_endian;

	while (count - *pos >= PERF_RECORD_HEADER_BYTES) {
		const uint8_t *at = bytes + *pos;
		struct perfdata_record *record = &item->record;
		uint32_t cpu;

		record->bytes = at;
		record->offset = offset + *pos;
		record->type = tdm_load_u32(at, big_endian);
		record->misc = tdm_load_u16(at + 4, big_endian);
		record->size = tdm_load_u16(at + 6, big_endian);
		if (record->size < PERF_RECORD_HEADER_BYTES || record->size > count - *pos) {
			break;
		}
		*pos += record->size;
		if (perfdata_item(order->pd, record, &cpu, &item->time)) {
			if (cpu == order->cpu->cpu) {
				if (item->time == PERF_TIME_UNKNOWN) {
					item->time = before;
				}
				return true;
			}
			continue;
		}

		const uint64_t payload = perfdata_payload_bytes(order->pd, record);

		if (payload > count - *pos) {
			break;
		}
		*pos += (uint32_t)payload;
	}
	*pos = count;
	return false;
}

static bool is_before(const struct waiting *a, const struct waiting *b)
{
	return a->time < b->time || (a->time == b->time && a->offset < b->offset);
}

static void sift_up(struct perfdata_order *order, size_t at)
{
	struct waiting *heap = order->heap;
	const struct waiting item = heap[at];

	while (at && is_before(&item, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = item;
}

static struct waiting heap_pop(struct perfdata_order *order)
{
	struct waiting *heap = order->heap;
	const struct waiting top = heap[0];
	const struct waiting item = heap[--order->heap_count];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= order->heap_count) {
			break;
		}
		if (child + 1 < order->heap_count && is_before(&heap[child + 1], &heap[child])) {
			child++;
		}
		if (!is_before(&heap[child], &item)) {
			break;
		}
		heap[at] = heap[child];
		at = child;
	}
	if (order->heap_count) {
		heap[at] = item;
	}
	return top;
}

/* Puts the items of a loaded chunk on the heap. */
static enum tdm_status wait_all(struct perfdata_order *order, const struct perfdata_chunk *chunk,
	struct block *block, struct tdm_error *err)
{
	const size_t first = order->heap_count;
	struct perfdata_item item;
	uint32_t pos = 0;
	uint64_t before = chunk->min_time;

	while (next_inside(order, block->bytes, chunk->offset, chunk->bytes, &pos, before, &item)) {
		if (order->heap_count == order->heap_room) {
			const size_t room = order->heap_room ? order->heap_room * 2 : 2048;
			struct waiting *heap = realloc(order->heap, room * sizeof(*heap));

			if (!heap) {
				return tdm_fail(err, TDM_ERR_NOMEM,
					"%s: no memory to sort a CPU's records", order->pd->path);
			}
			order->heap = heap;
			order->heap_room = room;
		}
		order->heap[order->heap_count++] = (struct waiting){ .time = item.time,
			.offset = item.record.offset,
			.bytes = item.record.bytes,
			.block = block };
		block->waiting++;
		before = item.time;
	}
	/*
	 * The kernel stamps a loss when it makes room for the next sample, whose own stamp is older. The loss stays in
	 * front of it.
	 */
	for (size_t i = order->heap_count; i-- > first;) {
		struct waiting *waiting = &order->heap[i];

		if (i + 1 < order->heap_count &&
			tdm_load_u32(waiting->bytes, order->pd->big_endian) == PERF_RECORD_LOST &&
			waiting[1].time < waiting->time) {
			waiting->time = waiting[1].time;
		}
	}
	for (size_t i = first; i < order->heap_count; i++) {
		sift_up(order, i);
	}
	return TDM_OK;
}

/* Whether the first of those that wait can no longer be preceded by one that is not loaded. */
static bool may_leave(const struct perfdata_order *order)
{
	if (order->next_chunk >= order->cpu->count || order->held_bytes > MAX_HELD_BYTES) {
		return true;
	}

	const struct perfdata_chunk *next = &order->cpu->chunks[order->next_chunk];
	const struct waiting *first = &order->heap[0];

	return first->time < next->min_time ||
	       (first->time == next->min_time && first->offset < next->offset);
}

static enum tdm_status load_next(struct perfdata_order *order, struct tdm_error *err)
{
	const struct perfdata_chunk *chunk = &order->cpu->chunks[order->next_chunk];

	retire(order);

	struct block *block = load(order, chunk, err);

	if (!block) {
		return err ? err->status : TDM_ERR_IO;
	}
	order->next_chunk++;
	if (chunk->is_alone && !order->heap_count) {
		order->in_block = block;
		order->in.bytes = block->bytes;
		order->in.offset = chunk->offset;
		order->in.pos = 0;
		order->in.count = chunk->bytes;
		order->in.time = chunk->min_time;
		return TDM_OK;
	}
	return wait_all(order, chunk, block, err);
}

enum tdm_status perfdata_order_next(struct perfdata_order *order, bool may_load,
	struct perfdata_item *item, struct tdm_error *err)
{
	if (may_load && order->held_bytes > MAX_HELD_BYTES) {
		retire(order);
	}
	for (;;) {
		if (order->in.pos < order->in.count) {
			if (next_inside(order, order->in_block->bytes, order->in.offset,
				    order->in.count, &order->in.pos, order->in.time, item)) {
				order->in.time = item->time;
				break;
			}
			continue;
		}
		if (order->heap_count && may_leave(order)) {
			const struct waiting waiting = heap_pop(order);
			const bool big_endian = order->pd->big_endian;

			waiting.block->waiting--;
			item->time = waiting.time;
			item->record = (struct perfdata_record){
				.bytes = waiting.bytes,
				.offset = waiting.offset,
				.type = tdm_load_u32(waiting.bytes, big_endian),
				.misc = tdm_load_u16(waiting.bytes + 4, big_endian),
				.size = tdm_load_u16(waiting.bytes + 6, big_endian),
			};
			break;
		}
		if (order->next_chunk >= order->cpu->count) {
			return TDM_END;
		}
		if (!may_load) {
			return TDM_AGAIN;
		}

		const enum tdm_status status = load_next(order, err);

		if (status != TDM_OK) {
			return status;
		}
	}
	item->is_late = item->time < order->in.last_time;
	if (!item->is_late) {
		order->in.last_time = item->time;
	}
	return TDM_OK;
}
