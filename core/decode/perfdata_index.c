/* SPDX-License-Identifier: MIT */
/*
 * One walk over all records: where each CPU's lie, what tasks are called, what was lost.
 *
 * perf writes the CPUs' buffers in turn, so a CPU's records come in runs. A run, or several with little between them,
 * is a chunk; a chunk knows the least and greatest time in it. So a CPU can later be read on its own, and sorted
 * exactly with little memory, whatever order the file has (perfdata_order.c).
 */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Reading what lies between two runs costs less than a chunk of its own up to about this many bytes. */
	FIRST_GAP_BYTES = 2 << 10,
	FIRST_SPAN_BYTES = 128 << 10,
	MAX_GAP_BYTES = 512 << 10, /* below the distance between stores */
	MAX_CHUNKS = 512 << 10     /* 16 MiB; then chunks are made larger */
};

bool perfdata_item_slowly(const struct perfdata *pd, const struct perfdata_record *record,
	uint32_t *cpu, uint64_t *time)
{
	const struct perfdata_id *id = NULL;
	const uint8_t *bytes = record->bytes;

	*cpu = UINT32_MAX;
	*time = PERF_TIME_UNKNOWN;
	if (record->type == PERF_RECORD_SAMPLE) {
		const struct perfdata_attr *attr = &pd->attrs[0];

		if (!pd->is_uniform) {
			attr = perfdata_attr_of_sample(pd, bytes, record->size, &id);
		}
		if (!attr || record->size < attr->layout.fixed_end) {
			return false;
		}
		if (attr->layout.cpu >= 0) {
			*cpu = tdm_load_u32(bytes + attr->layout.cpu, pd->big_endian);
		} else {
			perfdata_attr_of_sample(pd, bytes, record->size, &id);
		}
		if (attr->layout.time_at >= 0) {
			*time = tdm_load_u64(bytes + attr->layout.time_at, pd->big_endian);
		}
	} else if (record->type == PERF_RECORD_LOST) {
		const struct perfdata_attr *attr =
			perfdata_attr_of_other(pd, bytes, record->size, &id);

		if (record->size < PERF_RECORD_HEADER_BYTES + 16) {
			return false;
		}
		if (attr && attr->layout.trailer_cpu &&
			record->size >=
				PERF_RECORD_HEADER_BYTES + 16 + attr->layout.trailer_bytes) {
			*cpu = tdm_load_u32(
				bytes + record->size - attr->layout.trailer_cpu, pd->big_endian);
		}
		if (attr && attr->layout.trailer_time &&
			record->size >=
				PERF_RECORD_HEADER_BYTES + 16 + attr->layout.trailer_bytes) {
			*time = tdm_load_u64(
				bytes + record->size - attr->layout.trailer_time, pd->big_endian);
		}
		if (!id) {
			id = perfdata_ids_find(&pd->ids, tdm_load_u64(bytes + 8, pd->big_endian));
		}
	} else {
		return false;
	}
	if (*cpu >= PERF_CPU_NUMBER_END) {
		*cpu = id && id->cpu < PERF_CPU_NUMBER_END ? id->cpu : 0;
	}
	return true;
}

static struct perfdata_cpu *cpu_slot(struct perfdata *pd, uint32_t cpu)
{
	if (!pd->cpu_slots) {
		pd->cpu_slots = calloc(PERF_CPU_NUMBER_END, sizeof(*pd->cpu_slots));
		if (!pd->cpu_slots) {
			return NULL;
		}
	}
	if (pd->cpu_slots[cpu]) {
		return &pd->cpus[pd->cpu_slots[cpu] - 1];
	}
	if (pd->cpu_count >= PERF_MAX_CPUS) {
		trace_fault(&pd->trace, 0,
			"records of more than %d CPUs: those of CPU %" PRIu32
			" and others are left out",
			PERF_MAX_CPUS, cpu);
		return NULL;
	}

	struct perfdata_cpu *cpus = realloc(pd->cpus, (pd->cpu_count + 1) * sizeof(*cpus));

	if (!cpus) {
		return NULL;
	}
	pd->cpus = cpus;
	cpus[pd->cpu_count] = (struct perfdata_cpu){ .cpu = cpu };
	pd->cpu_slots[cpu] = (uint16_t)++pd->cpu_count;
	return &cpus[pd->cpu_count - 1];
}

/* True where b can become part of a. */
static bool joins(const struct perfdata *pd, const struct perfdata_chunk *a, uint64_t offset,
	uint64_t bytes, uint64_t records)
{
	return offset - (a->offset + a->bytes) <= pd->gap_limit_bytes &&
	       offset + bytes - a->offset <= pd->span_limit_bytes &&
	       a->records + records < 1u << 30;
}

static void join(struct perfdata_chunk *a, const struct perfdata_chunk *b)
{
	a->is_sorted = a->is_sorted && b->is_sorted && b->min_time >= a->max_time;
	a->bytes = (uint32_t)(b->offset + b->bytes - a->offset);
	a->records += b->records;
	a->min_time = a->min_time < b->min_time ? a->min_time : b->min_time;
	a->max_time = a->max_time > b->max_time ? a->max_time : b->max_time;
}

/* Halves the chunks at least, so that the table never grows beyond what is stated. */
static void coarsen(struct perfdata *pd)
{
	while (pd->chunk_count > MAX_CHUNKS / 2 && pd->span_limit_bytes < 1u << 30) {
		pd->span_limit_bytes *= 2;
		if (pd->gap_limit_bytes < MAX_GAP_BYTES) {
			pd->gap_limit_bytes *= 2;
		}
		pd->chunk_count = 0;
		for (size_t i = 0; i < pd->cpu_count; i++) {
			struct perfdata_cpu *cpu = &pd->cpus[i];
			size_t kept = 0;

			for (size_t j = 1; j < cpu->count; j++) {
				const struct perfdata_chunk *chunk = &cpu->chunks[j];

				if (joins(pd, &cpu->chunks[kept], chunk->offset, chunk->bytes,
					    chunk->records)) {
					join(&cpu->chunks[kept], chunk);
				} else {
					cpu->chunks[++kept] = *chunk;
				}
			}
			cpu->count = cpu->count ? kept + 1 : 0;
			pd->chunk_count += cpu->count;
		}
	}
}

static inline bool note_item(struct perfdata *pd, struct perfdata_cpu *cpu,
	const struct perfdata_record *record, uint64_t time)
{
	struct perfdata_chunk *last = cpu->count ? &cpu->chunks[cpu->count - 1] : NULL;

	if (time == PERF_TIME_UNKNOWN) {
		time = cpu->last_time;
	}
	if (last && joins(pd, last, record->offset, record->size, 1)) {
		last->bytes = (uint32_t)(record->offset + record->size - last->offset);
		last->records++;
		if (time < cpu->last_time) {
			last->is_sorted = 0;
		}
		last->min_time = time < last->min_time ? time : last->min_time;
		last->max_time = time > last->max_time ? time : last->max_time;
	} else {
		if (cpu->count == cpu->room) {
			const size_t room = cpu->room ? cpu->room * 2 : 64;
			struct perfdata_chunk *chunks =
				realloc(cpu->chunks, room * sizeof(*chunks));

			if (!chunks) {
				return false;
			}
			cpu->chunks = chunks;
			cpu->room = room;
		}
		cpu->chunks[cpu->count++] = (struct perfdata_chunk){
			.offset = record->offset,
			.min_time = time,
			.max_time = time,
			.bytes = record->size,
			.records = 1,
			.is_sorted = 1,
		};
		pd->chunk_count++;
	}
	cpu->last_time = time;
	cpu->data_bytes += record->size;
	if (pd->chunk_count > MAX_CHUNKS) {
		coarsen(pd);
	}
	return true;
}

/* Names and totals; anything else is passed over by its size. */
static void note_other(struct perfdata *pd, const struct perfdata_record *record)
{
	struct tdm_cursor in =
		tdm_cursor_over(record->bytes, record->size, record->offset, pd->big_endian);

	tdm_cursor_skip(&in, PERF_RECORD_HEADER_BYTES);
	if (record->type == PERF_RECORD_COMM) {
		const struct perfdata_id *id = NULL;
		const struct perfdata_attr *attr =
			perfdata_attr_of_other(pd, record->bytes, record->size, &id);
		const struct perfdata_layout *layout = attr ? &attr->layout : &pd->attrs[0].layout;
		uint64_t time = 0;

		if (id && id->of_guest) {
			return; /* a task of a guest, whose numbers are its own */
		}

		const int32_t process = (int32_t)tdm_cursor_u32(&in);
		const int32_t tid = (int32_t)tdm_cursor_u32(&in);
		size_t name_bytes = tdm_cursor_left(&in);

		if (layout->trailer_bytes <= name_bytes) {
			name_bytes -= layout->trailer_bytes;
			if (layout->trailer_time) {
				time = tdm_load_u64(
					record->bytes + record->size - layout->trailer_time,
					pd->big_endian);
			}
		}
		if (!in.failed) {
			perfdata_task_comm(pd, process, tid, time,
				(const char *)record->bytes + in.pos, name_bytes);
		}
	} else if (record->type == PERF_RECORD_FORK) {
		const struct perfdata_id *id = NULL;
		struct perfdata_fork fork;

		(void)perfdata_attr_of_other(pd, record->bytes, record->size, &id);
		if (id && id->of_guest) {
			return;
		}
		fork.pid = (int32_t)tdm_cursor_u32(&in);
		fork.parent_pid = (int32_t)tdm_cursor_u32(&in);
		fork.tid = (int32_t)tdm_cursor_u32(&in);
		fork.parent_tid = (int32_t)tdm_cursor_u32(&in);
		fork.time = tdm_cursor_u64(&in);
		if (!in.failed) {
			perfdata_task_fork(pd, &fork);
		}
	} else if (record->type == PERF_RECORD_LOST_SAMPLES) {
		const uint64_t count = tdm_cursor_u64(&in);
		const struct perfdata_id *id = NULL;
		const struct perfdata_attr *attr =
			perfdata_attr_of_other(pd, record->bytes, record->size, &id);
		uint32_t number = id ? id->cpu : UINT32_MAX;

		/* perf itself writes these at the end, with an id but no CPU in the trailer. */
		if (number >= PERF_CPU_NUMBER_END && attr && attr->layout.trailer_cpu &&
			record->size >= 16 + attr->layout.trailer_bytes) {
			number = tdm_load_u32(
				record->bytes + record->size - attr->layout.trailer_cpu,
				pd->big_endian);
		}
		if (in.failed || !count || record->misc >> 15) {
			return; /* bit 15: left out by a filter, as the user asked */
		}

		struct perfdata_cpu *cpu = cpu_slot(pd, number < PERF_CPU_NUMBER_END ? number : 0);

		if (cpu) {
			cpu->lost_total += count;
		}
	} else if (record->type == PERF_RECORD_ID_INDEX) {
		perfdata_id_index(pd, &in);
	}
}

static enum tdm_status index_store(
	struct perfdata *pd, size_t store_index, bool *is_compressed, struct tdm_error *err)
{
	struct perfdata_walk walk;
	struct perfdata_record record;
	enum tdm_status status = perfdata_walk_start(&walk, &pd->stores[store_index], err);
	const bool big_endian = pd->big_endian;
	struct perfdata_cpu *cpu = NULL; /* of the last item: a CPU's come in runs */

	while (status == TDM_OK) {
		uint32_t number;
		uint64_t time;

		if (!perfdata_walk_quick(&walk, big_endian, &record)) {
			status = perfdata_walk_next(pd, &walk, &record, err);
			if (status != TDM_OK) {
				break;
			}
		}
		if (perfdata_item(pd, &record, &number, &time)) {
			if (!cpu || cpu->cpu != number) {
				cpu = cpu_slot(pd, number);
			}
			if (cpu && !note_item(pd, cpu, &record, time)) {
				status = tdm_fail(err, TDM_ERR_NOMEM,
					"%s: no memory for the table of its records", pd->path);
			}
			if (cpu && record.type == PERF_RECORD_LOST) {
				cpu->lost_events += tdm_load_u64(record.bytes + 16, pd->big_endian);
			}
			continue;
		}
		switch (record.type) {
		case PERF_RECORD_COMPRESSED:
		case PERF_RECORD_COMPRESSED2:
			*is_compressed = true;
			status = TDM_END;
			break;
		case PERF_RECORD_SAMPLE:
		case PERF_RECORD_LOST:
			/* No attribute, or too short for one. */
			pd->unknown_records++;
			pd->unknown_bytes += record.size;
			break;
		case PERF_RECORD_TRACING_DATA:
		case PERF_RECORD_AUXTRACE:
			status = perfdata_walk_skip(
				pd, &walk, perfdata_payload_bytes(pd, &record), err);
			break;
		default:
			if (record.type > PERF_RECORD_COMPRESSED2) {
				trace_fault(&pd->trace, record.type,
					"records of type %" PRIu32
					" are not known and were passed over",
					record.type);
			}
			note_other(pd, &record);
			cpu = NULL; /* the table may have moved */
			break;
		}
	}
	perfdata_walk_end(&walk);
	return status == TDM_END ? TDM_OK : status;
}

static int by_min_time(const void *a, const void *b)
{
	const struct perfdata_chunk *left = a, *right = b;

	if (left->min_time != right->min_time) {
		return left->min_time < right->min_time ? -1 : 1;
	}
	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Chunks in the order in which they are wanted, and which of them need no company. */
static void settle_chunks(struct perfdata_cpu *cpu)
{
	bool is_ordered = true;

	for (size_t i = 1; i < cpu->count && is_ordered; i++) {
		is_ordered = by_min_time(&cpu->chunks[i - 1], &cpu->chunks[i]) <= 0;
	}
	if (!is_ordered) {
		qsort(cpu->chunks, cpu->count, sizeof(*cpu->chunks), by_min_time);
	}

	uint64_t greatest = 0;

	for (size_t i = 0; i < cpu->count; i++) {
		struct perfdata_chunk *chunk = &cpu->chunks[i];
		const bool is_clear_before =
			i == 0 || greatest < chunk->min_time ||
			(greatest == chunk->min_time && cpu->chunks[i - 1].offset < chunk->offset);
		const bool is_clear_behind = i + 1 == cpu->count ||
					     chunk->max_time < cpu->chunks[i + 1].min_time ||
					     (chunk->max_time == cpu->chunks[i + 1].min_time &&
						     chunk->offset < cpu->chunks[i + 1].offset);

		chunk->is_alone = chunk->is_sorted && is_clear_before && is_clear_behind;
		greatest = chunk->max_time > greatest ? chunk->max_time : greatest;
	}
}

static int by_number(const void *a, const void *b)
{
	const struct perfdata_cpu *left = a, *right = b;

	return left->cpu < right->cpu ? -1 : left->cpu > right->cpu;
}

/* Forgets a store's part, when it turns out in the middle that it must be unpacked first. */
static void forget(struct perfdata *pd, uint64_t from)
{
	for (size_t i = 0; i < pd->cpu_count; i++) {
		struct perfdata_cpu *cpu = &pd->cpus[i];

		while (cpu->count && cpu->chunks[cpu->count - 1].offset >= from) {
			cpu->data_bytes -= cpu->data_bytes < cpu->chunks[cpu->count - 1].bytes
						   ? cpu->data_bytes
						   : cpu->chunks[cpu->count - 1].bytes;
			cpu->count--;
			pd->chunk_count--;
		}
	}
}

enum tdm_status perfdata_index(struct perfdata *pd, struct tdm_error *err)
{
	pd->gap_limit_bytes = FIRST_GAP_BYTES;
	pd->span_limit_bytes = FIRST_SPAN_BYTES;
	for (size_t i = 0; i < pd->store_count; i++) {
		bool is_compressed = false;
		enum tdm_status status = index_store(pd, i, &is_compressed, err);

		if (status == TDM_OK && is_compressed) {
			forget(pd, pd->stores[i].start);
			status = perfdata_unpack(pd, i, err);
			if (status == TDM_OK) {
				status = index_store(pd, i, &is_compressed, err);
			}
		}
		if (status != TDM_OK) {
			return status;
		}
	}
	if (pd->unknown_records) {
		trace_fault_count(&pd->trace, 0, pd->unknown_records,
			"records whose event id is not in the file, or that are too short, were left out");
	}
	if (pd->cpu_count) {
		qsort(pd->cpus, pd->cpu_count, sizeof(*pd->cpus), by_number);
	}
	for (size_t i = 0; i < pd->cpu_count; i++) {
		settle_chunks(&pd->cpus[i]);
	}
	free(pd->cpu_slots);
	pd->cpu_slots = NULL;
	return perfdata_tasks_settle(pd, err);
}

void perfdata_index_release(struct perfdata *pd)
{
	for (size_t i = 0; i < pd->cpu_count; i++) {
		free(pd->cpus[i].chunks);
	}
	free(pd->cpus);
	free(pd->cpu_slots);
}
