/* SPDX-License-Identifier: MIT */
/*
 * cpu_stream.c - the records of one CPU, of all buffers of a machine, become one stream file in order of time.
 */
#include "cpu_source.h"
#include <stdio.h>
#include <stdlib.h>

/* Room that an event needs at most before its payload: header, thread, its name, the common fields. */
#define CONTEXT_BYTES_MAX (4u + TDM_TASK_NAME_MAX * 4u + 1u + TDM_COMMON_FIELDS_MAX * 8u)
#define OVERHEAD_BYTES    (TDM_CTF_EVENT_HEADER_BYTES_MAX + CONTEXT_BYTES_MAX + 64u)

/* The job while it runs. */
struct run {
	struct tdm_cpu_job *job;
	const struct tdm_convert_machine *conversion;
	struct tdm_ctf_stream *stream;
	struct tdm_copy_state copy;
	uint64_t last_time; /* of the events written */
	struct tdm_cpu_sources sources;
	struct tdm_error *err;
};

static void learn(struct run *run, struct tdm_cpu_source *source, const struct tdm_id_plan *plan,
	const struct tdm_slot *slot, uint64_t time)
{
	struct tdm_cpu_job *const job = run->job;
	const bool big_endian = run->copy.big_endian;

	tdm_task_names_learn(source->names, plan->event_class, slot->payload, slot->payload_bytes);
	source->comm_bytes = 0;
	if (!run->conversion->options->synthetic) {
		return;
	}
	for (unsigned int i = 0; i < plan->lesson_count; i++) {
		const struct tdm_task_lesson *const lesson = &plan->lessons[i];
		struct tdm_span span = { 0 };
		int32_t tid;

		if (slot->payload_bytes < 4 || lesson->tid_offset_bytes > slot->payload_bytes - 4) {
			continue;
		}
		tid = (int32_t)tdm_load_u32(slot->payload + lesson->tid_offset_bytes, big_endian);
		if (tid == 0 || tdm_task_census_has(&job->census, tid)) {
			continue;
		}
		if (lesson->is_path || !tdm_field_span(lesson->comm, slot->payload,
					       slot->payload_bytes, big_endian, &span)) {
			span = (struct tdm_span){ 0 };
		}
		/* Without memory the state dump lacks a thread: no reason to stop. */
		(void)tdm_task_census_see(&job->census, tid, plan->firsts[i], job->cpu, time,
			(const char *)span.bytes, span.size_bytes);
	}
}

static void set_comm(struct run *run, struct tdm_cpu_source *source, const struct tdm_slot *slot,
	int32_t tid, uint64_t time)
{
	size_t length = 0;
	const char *const comm =
		tdm_task_names_find_at(source->names, slot->sample ? slot->sample->tid : tid,
			slot->raw_time, &length, &source->comm_until);
	const char *const shown = length ? comm : TDM_TASK_NAME_UNKNOWN;
	const uint8_t *const end = tdm_copy_text(&run->copy, (const uint8_t *)shown,
		length ? length : strlen(shown), source->comm, source->comm + sizeof(source->comm));

	source->tid = tid;
	if (!end) {
		source->comm[0] = '\0';
	}
	source->comm_bytes = end ? (uint8_t)(end - source->comm) : 1;
	if (run->conversion->options->synthetic && tid > 0 &&
		!tdm_task_census_has(&run->job->census, tid)) {
		const bool known = length && strcmp(comm, TDM_TASK_NAME_UNKNOWN) != 0;

		(void)tdm_task_census_see(&run->job->census, tid, TDM_FIRST_RUNNING, run->job->cpu,
			time, known ? comm : NULL, length);
	}
}

static inline uint8_t *put_context(const struct run *run, const struct tdm_cpu_source *source,
	const struct tdm_id_plan *plan, const struct tdm_slot *slot, uint8_t *out)
{
	const uint8_t *const payload = slot->payload;
	const uint32_t tid = (uint32_t)source->tid;

	out = tdm_ctf_put_u32(out, tid, run->copy.big_endian);
	/* More than is meant, so that the size is known when this is compiled. */
	memcpy(out, source->comm, 16);
	if (__builtin_expect(source->comm_bytes > 16, 0)) {
		memcpy(out, source->comm, sizeof(source->comm));
	}
	out += source->comm_bytes;
	for (uint32_t i = 0; i < plan->piece_count; i++) {
		const struct tdm_common_piece *const piece = &plan->pieces[i];

		if (piece->size_bytes == 4 && piece->from_bytes != UINT32_MAX) {
			/* type, flags and preempt count of every kernel there is */
			memcpy(out, payload + piece->from_bytes, 4);
		} else if (piece->from_bytes != UINT32_MAX) {
			memcpy(out, payload + piece->from_bytes, piece->size_bytes);
		} else {
			memset(out, 0, piece->size_bytes);
		}
		out += piece->size_bytes;
	}
	return run->conversion->has_samples
		       ? tdm_put_sample(slot->sample, run->conversion->info->has_callchains,
				 run->copy.big_endian, out)
		       : out;
}

uint8_t *tdm_put_made_up_context(const struct tdm_convert_machine *conversion, uint8_t *out,
	int32_t tid, const char *comm, size_t comm_bytes)
{
	out = tdm_ctf_put_u32(out, (uint32_t)tid, conversion->layout.big_endian);
	memcpy(out, comm, comm_bytes);
	out += comm_bytes;
	*out++ = '\0';
	for (size_t i = 2; i < conversion->context_count; i++) {
		memset(out, 0, conversion->context[i].size_bytes);
		out += conversion->context[i].size_bytes;
	}
	return out;
}

static struct tdm_class_plan *choose_class(
	const struct tdm_id_plan *plan, const struct tdm_slot *slot, bool big_endian)
{
	if (plan->by && plan->number_bytes <= slot->payload_bytes &&
		plan->number_offset <= slot->payload_bytes - plan->number_bytes) {
		const uint8_t *const at = slot->payload + plan->number_offset;
		const uint64_t number = plan->number_bytes == 8
						? tdm_load_u64(at, big_endian)
						: tdm_load_uint(at, plan->number_bytes, big_endian);

		if (number < plan->by_count && plan->by[number]) {
			return plan->by[number];
		}
	}
	return plan->fallback;
}

static void count_unknown(struct run *run, uint32_t id)
{
	run->job->unconverted++;
	if (id < TDM_IDS_MAX && run->conversion->unknown_ids) {
		atomic_fetch_add_explicit(
			&run->conversion->unknown_ids[id], 1, memory_order_relaxed);
	}
}

/* Closes the packet where a loss or its size asks for it, and tells the loss to the next. */
static enum tdm_status turn_packet(struct run *run)
{
	const enum tdm_status status = tdm_ctf_stream_flush(run->stream, run->err);

	run->stream->discarded += run->sources.discard;
	run->sources.discard = 0;
	return status;
}

/* Writes one event. @return Its end, or NULL where it does not fit behind what the packet has already. */
static inline uint8_t *put_event(struct run *run, const struct tdm_cpu_source *source,
	const struct tdm_id_plan *plan, const struct tdm_class_plan *class_plan,
	const struct tdm_slot *slot, uint64_t time)
{
	struct tdm_ctf_stream *const stream = run->stream;
	uint8_t *out;

	tdm_ctf_stream_begin_event(stream, time);
	if ((size_t)(stream->limit - stream->at) <
		(size_t)class_plan->copy.most_bytes + OVERHEAD_BYTES +
			(slot->sample ? tdm_sample_bytes(slot->sample) : 0)) {
		return NULL;
	}
	out = tdm_ctf_event_header(
		stream->layout, stream->at, class_plan->id, time, stream->last_time);
	out = put_context(run, source, plan, slot, out);
	return tdm_copy_plan_run(&class_plan->copy, &run->copy, slot->payload, slot->payload_bytes,
		out, stream->limit);
}

/* The rare ways of put_event(): a full packet; an event that fits into none. */
static enum tdm_status put_event_again(struct run *run, const struct tdm_cpu_source *source,
	const struct tdm_id_plan *plan, const struct tdm_class_plan *class_plan,
	const struct tdm_slot *slot, uint64_t time, uint8_t **end)
{
	struct tdm_ctf_stream *const stream = run->stream;
	enum tdm_status status = TDM_OK;

	*end = NULL;
	if (stream->at > stream->bytes + TDM_CTF_PACKET_HEAD_BYTES) {
		status = tdm_ctf_stream_flush(stream, run->err);
		*end = status == TDM_OK ? put_event(run, source, plan, class_plan, slot, time)
					: NULL;
	}
	if (!*end) {
		stream->is_open = false; /* nothing is in it */
	}
	return status;
}

static enum tdm_status put_slots(struct run *run, struct tdm_cpu_source *source, size_t count)
{
	const struct tdm_convert_machine *const conversion = run->conversion;
	struct tdm_cpu_job *const job = run->job;
	struct tdm_ctf_stream *const stream = run->stream;
	const bool big_endian = run->copy.big_endian;
	const struct tdm_id_plan *const by_id = conversion->by_id;
	const size_t id_count = conversion->id_count;
	const uint64_t begin_ns = conversion->begin_ns;
	const uint64_t end_ns = conversion->end_ns;
	const struct tdm_slot *slot = source->batch.slots + source->at;
	const struct tdm_slot *const slots_end = slot + count;
	enum tdm_status status = TDM_OK;

	if (source->at == 0 && source->batch.lost) {
		run->sources.discard += source->batch.lost_count ? source->batch.lost_count : 1;
	}
	source->at += count;
	source->ordinal += count;
	for (; slot != slots_end; slot++) {
		const struct tdm_id_plan *const plan =
			slot->event_id < id_count && by_id[slot->event_id].event_class
				? &by_id[slot->event_id]
				: NULL;
		struct tdm_class_plan *class_plan;
		uint64_t time = tdm_out_time(conversion, slot->time_ns);
		uint64_t bad_before;
		int32_t tid = -1;
		uint8_t *end;

		if (__builtin_expect(!plan, 0)) {
			count_unknown(run, slot->event_id);
			continue;
		}
		class_plan = choose_class(plan, slot, big_endian);
		if (__builtin_expect(!class_plan, 0)) {
			job->unconverted++;
			atomic_fetch_add_explicit(
				&conversion->undecodable[slot->event_id], 1, memory_order_relaxed);
			continue;
		}
		if (__builtin_expect(slot->payload_bytes < class_plan->copy.least_bytes, 0)) {
			job->unconverted++;
			atomic_fetch_add_explicit(&conversion->short_records[class_plan->id], 1,
				memory_order_relaxed);
			continue;
		}
		if (__builtin_expect(time > conversion->limit_ns, 0)) {
			time = run->last_time;
			job->out_of_range++;
		}
		if (plan->lesson_count) {
			learn(run, source, plan, slot, time);
		}
		if (__builtin_expect(plan->tid_offset != UINT32_MAX, 1)) {
			tid = (int32_t)tdm_load_u32(slot->payload + plan->tid_offset, big_endian);
		}
		if (tid != source->tid || !source->comm_bytes ||
			slot->raw_time >= source->comm_until) {
			set_comm(run, source, slot, tid, time);
		}
		if (!class_plan->is_wanted || time < begin_ns || time > end_ns) {
			job->left_out++;
			continue;
		}
		if (__builtin_expect(time < run->last_time, 0)) {
			time = run->last_time;
			job->clamped++;
		}
		if (__builtin_expect(run->sources.discard || stream->at >= stream->full, 0)) {
			status = turn_packet(run);
			if (status != TDM_OK) {
				return status;
			}
		}
		bad_before = run->copy.bad_locators;
		end = put_event(run, source, plan, class_plan, slot, time);
		if (__builtin_expect(!end, 0)) {
			run->copy.bad_locators = bad_before;
			status = put_event_again(run, source, plan, class_plan, slot, time, &end);
			if (status != TDM_OK) {
				return status;
			}
			if (!end) {
				job->unconverted++;
				atomic_fetch_add_explicit(&conversion->long_records[class_plan->id],
					1, memory_order_relaxed);
				continue;
			}
		}
		if (__builtin_expect(run->copy.bad_locators != bad_before, 0)) {
			atomic_fetch_add_explicit(&conversion->bad_fields[class_plan->id],
				run->copy.bad_locators - bad_before, memory_order_relaxed);
		}
		stream->at = end;
		stream->last_time = time;
		run->last_time = time;
		if (__builtin_expect(!job->has_first, 0)) {
			job->has_first = true;
			job->first_tid = tid;
		}
		job->used_here[class_plan->id] = true;
		job->events++;
	}
	return TDM_OK;
}

/* The host's end of a sync pair, behind the record that it belongs to. */
static enum tdm_status put_sync(struct run *run, struct tdm_cpu_source *source)
{
	const struct tdm_convert_machine *const conversion = run->conversion;
	struct tdm_ctf_stream *const stream = run->stream;
	const struct tdm_sync_point *const sync = source->sync;
	uint64_t time = sync->time > run->last_time ? sync->time : run->last_time;
	uint8_t *out;

	if (stream->at >= stream->full || run->sources.discard) {
		const enum tdm_status status = turn_packet(run);

		if (status != TDM_OK) {
			return status;
		}
	}
	tdm_ctf_stream_begin_event(stream, time);
	out = tdm_ctf_event_header(stream->layout, stream->at,
		tdm_made_up_id(conversion, TDM_MADE_VMSYNC_GH_HOST), time, stream->last_time);
	out = tdm_put_made_up_context(conversion, out, source->tid, (const char *)source->comm,
		source->comm_bytes ? source->comm_bytes - 1u : 0);
	stream->at = tdm_put_sync_fields(conversion, out, sync);
	stream->last_time = time;
	run->last_time = time;
	run->job->synthetic++;
	return TDM_OK;
}

/* Some slots of a source, with the sync points between them. */
static enum tdm_status put_run(struct run *run, struct tdm_cpu_source *source, size_t count)
{
	while (source->sync && source->sync->ordinal < source->ordinal + count) {
		const size_t first = (size_t)(source->sync->ordinal - source->ordinal) + 1;
		enum tdm_status status = put_slots(run, source, first);
		const uint64_t ordinal = source->sync->ordinal;

		/* Several guests can have chosen one record. */
		for (size_t i = 0; i < run->conversion->sync_count && status == TDM_OK; i++) {
			struct tdm_sync_point *const sync = &run->conversion->syncs[i];

			if (sync->is_set && sync->stream_index == source->stream_index &&
				sync->ordinal == ordinal) {
				source->sync = sync;
				status = put_sync(run, source);
			}
		}
		if (status != TDM_OK) {
			return status;
		}
		source->sync =
			tdm_next_sync(run->conversion, source->stream_index, source->ordinal);
		count -= first;
	}
	return count ? put_slots(run, source, count) : TDM_OK;
}

/* How well the time of a batch is known: asked once a batch, knots are further apart than that. */
static void note_bound(struct run *run, const struct tdm_cpu_source *source)
{
	const struct tdm_timeline *const corrections = run->conversion->machine->corrections;
	uint64_t minus = 0;
	uint64_t plus = 0;

	if (corrections && source->at < source->batch.count) {
		tdm_timeline_bound(corrections, source->batch.slots[source->at].raw_time,
			run->job->cpu, &minus, &plus);
		minus = minus > plus ? minus : plus;
		run->job->bound_ns = minus > run->job->bound_ns ? minus : run->job->bound_ns;
	}
}

static enum tdm_status merge_sources(struct run *run)
{
	const struct tdm_convert_options *const options = run->conversion->options;
	enum tdm_status status = TDM_OK;

	while (status == TDM_OK) {
		struct tdm_cpu_source *source;
		uint64_t until;
		size_t count;

		status = tdm_cpu_sources_load(&run->sources, run->err);
		source = status == TDM_OK ? tdm_cpu_sources_choose(&run->sources, &until) : NULL;
		if (!source) {
			return status;
		}
		if (atomic_load_explicit(run->job->failed, memory_order_relaxed)) {
			return TDM_END;
		}
		if (options->stop && *options->stop) {
			return TDM_END;
		}
		note_bound(run, source);
		count = source->batch.count - source->at;
		if (until != UINT64_MAX) {
			const struct tdm_slot *const slots = source->batch.slots + source->at;
			size_t i = 1;

			while (i < count &&
				tdm_out_time(run->conversion, slots[i].time_ns) < until) {
				i++;
			}
			count = i;
		}
		status = put_run(run, source, count);
		run->job->records += count;
		atomic_fetch_add_explicit(run->job->event_counter, count, memory_order_relaxed);
	}
	return status;
}

void tdm_cpu_job_run(struct tdm_cpu_job *job)
{
	struct tdm_convert_machine *const conversion = job->conversion;
	struct run run = {
		.job = job,
		.conversion = conversion,
		.stream = &job->stream,
		.copy = { .big_endian = conversion->layout.big_endian, .trace = conversion->trace },
		.err = &job->error,
	};
	char *path = NULL;

	job->used_here = calloc(conversion->plan_count + 1, sizeof(*job->used_here));
	if (asprintf(&path, "%s/cpu%u", conversion->dir.work_path, job->cpu) < 0) {
		path = NULL;
	}
	job->status = job->used_here && path
			      ? tdm_ctf_stream_init(&job->stream, &conversion->layout, path,
					job->cpu, job->head_bytes)
			      : TDM_ERR_NOMEM;
	free(path);
	if (job->status != TDM_OK) {
		tdm_fail(&job->error, TDM_ERR_NOMEM, "no memory for CPU %u", job->cpu);
		return;
	}
	job->status = tdm_cpu_sources_open(job, &run.sources, &job->error);
	if (job->status == TDM_OK) {
		job->status = merge_sources(&run);
	}
	if (job->status == TDM_OK) {
		/* A loss after the last event belongs to the packet that has it. */
		job->stream.discarded += run.sources.discard;
		job->status = tdm_ctf_stream_finish(&job->stream, &job->error);
	}
	tdm_cpu_sources_close(job, &run.sources);
	job->bad_fields = run.copy.bad_locators;
	tdm_buffer_release(&run.copy.scratch);
	/* The room is for those that still run; the path is needed for a packet at the start. */
	free(job->stream.bytes);
	job->stream.bytes = NULL;
	for (size_t i = 0; i < conversion->plan_count; i++) {
		if (job->used_here[i]) {
			atomic_store_explicit(&conversion->used[i], 1, memory_order_relaxed);
		}
	}
}

void tdm_cpu_job_release(struct tdm_cpu_job *job)
{
	tdm_ctf_stream_release(&job->stream);
	tdm_task_census_release(&job->census);
	free(job->used_here);
}
