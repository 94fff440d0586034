/* SPDX-License-Identifier: MIT */
/*
 * perf.data behind trace.h.
 */
#include "perfdata_priv.h"
#include "stamp_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_RECORDS = 256,
	MADE_BYTES = 32, /* a record made of a sample: common fields, ip, addr, period */
	PID_AT = 4,      /* of common_pid, on every kernel */
	MAX_BATCH_WORDS = 32 << 10,
	KNOWN_IDS = 64 /* a power of two */
};

struct perfdata_reader {
	struct tdm_reader reader;
	struct perfdata_order *order;
	struct stamp_plan plan;
	struct tdm_slot slots[BATCH_RECORDS];
	struct tdm_sample samples[BATCH_RECORDS];
	uint8_t made[BATCH_RECORDS][MADE_BYTES];
	uint64_t *words; /* call chains of a batch, in this machine's byte order */
	size_t word_count, word_room;

	/* The ids that were looked up last: a CPU has few. */
	struct {
		uint64_t number;
		const struct perfdata_attr *attr; /* NULL: nothing yet */
		const struct perfdata_id *id;
	} known[KNOWN_IDS];

	uint64_t late_records;
	uint64_t last_raw_time;
	bool has_loss; /* one that came behind the records of the last batch */
	uint64_t loss_count, loss_raw_time;
	bool at_end;
};

static struct perfdata *perfdata_of(struct tdm_trace *trace)
{
	return (struct perfdata *)(void *)trace;
}

static struct perfdata_reader *reader_of(struct tdm_reader *reader)
{
	return (struct perfdata_reader *)(void *)reader;
}

static void perfdata_close(struct tdm_trace *trace)
{
	struct perfdata *pd = perfdata_of(trace);

	perfdata_attrs_release(pd);
	perfdata_index_release(pd);
	perfdata_tasks_release(pd);
	perfdata_stores_release(pd);
	tdm_buffer_release(&pd->tracing);
	trace_release(trace);
	free((void *)(uintptr_t)pd->trace.info.streams);
	free((void *)(uintptr_t)pd->trace.info.recorder);
	free(pd->hostname);
	free(pd->release);
	free(pd->version);
	free(pd->arch);
	free(pd->path);
	free(pd);
}

static const char *saved_comm(const struct tdm_trace *trace, int32_t tid)
{
	const struct perfdata *pd = (const struct perfdata *)(const void *)trace;

	return perfdata_task_first_name(pd, tid);
}

static const char *comm_at(
	const struct tdm_trace *trace, int32_t tid, uint64_t raw_time, uint64_t *until)
{
	return perfdata_task_name(
		(const struct perfdata *)(const void *)trace, tid, raw_time, until);
}

static bool process_of(
	const struct tdm_trace *trace, int32_t tid, int32_t *pid, int32_t *parent_pid)
{
	return perfdata_task_process(
		(const struct perfdata *)(const void *)trace, tid, pid, parent_pid);
}

/* The text of saved_cmdlines: what each task is called first. */
static enum tdm_status read_text(struct tdm_trace *trace, enum tdm_trace_text which,
	struct tdm_buffer *text, struct tdm_error *err)
{
	const struct perfdata *pd = perfdata_of(trace);

	return which == TDM_TEXT_SAVED_CMDLINES ? perfdata_tasks_list(pd, text, err) : TDM_OK;
}

static struct tdm_reader *reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err)
{
	struct perfdata_reader *reader = calloc(1, sizeof(*reader));

	if (!reader) {
		tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a reader", trace->info.path);
		return NULL;
	}
	reader->order = perfdata_order_create(perfdata_of(trace), stream_index, err);
	if (!reader->order) {
		free(reader);
		return NULL;
	}

	struct tdm_stamp_options options = trace->options;

	options.clock_hz = 0; /* every clock of perf's counts ns */
	reader->plan = stamp_plan_make(&trace->info, &options, stream_index);
	return &reader->reader;
}

static void reader_destroy(struct tdm_reader *base)
{
	struct perfdata_reader *reader = reader_of(base);

	perfdata_order_destroy(reader->order);
	free(reader->words);
	free(reader);
}

static enum tdm_status reader_rewind(struct tdm_reader *base, struct tdm_error *err)
{
	struct perfdata_reader *reader = reader_of(base);

	(void)err;
	perfdata_order_rewind(reader->order);
	reader->plan.hint = (struct tdm_timeline_hint){ 0 };
	reader->late_records = 0;
	reader->last_raw_time = 0;
	reader->has_loss = false;
	reader->at_end = false;
	return TDM_OK;
}

static bool keep_chain(struct perfdata_reader *reader, const struct perfdata_sample *sample,
	struct tdm_sample *shown, bool big_endian)
{
	const size_t first = reader->word_count;

	if (first + sample->chain_count > reader->word_room) {
		return false;
	}
	for (uint32_t i = 0; i < sample->chain_count; i++) {
		reader->words[first + i] = tdm_load_u64(sample->chain + 8 * (size_t)i, big_endian);
	}
	reader->word_count += sample->chain_count;
	shown->callchain = reader->words + first;
	shown->callchain_count = sample->chain_count;
	return true;
}

/* The record of a sample that has none: what the sample itself says, as perfdata_attr.c describes its class. */
static void make_payload(struct perfdata_reader *reader, size_t index,
	const struct perfdata_sample *sample, struct tdm_slot *slot, bool big_endian)
{
	uint8_t *at = reader->made[index];
	const struct perfdata_attr *attr = sample->attr;
	const uint16_t id = (uint16_t)attr->made_class->id;
	const uint32_t tid = (uint32_t)sample->tid;
	const uint64_t words[3] = { sample->ip, attr->has_made_addr ? sample->addr : sample->period,
		sample->period };
	const unsigned int word_count = 1u + attr->has_made_addr + attr->has_made_period;

	tdm_store_u16(at, id, big_endian);
	tdm_store_u16(at + 2, 0, big_endian);
	tdm_store_u32(at + PID_AT, tid, big_endian);
	for (unsigned int i = 0; i < word_count; i++) {
		tdm_store_u64(at + 8 + 8 * (size_t)i, words[i], big_endian);
	}
	slot->payload = at;
	slot->payload_bytes = 8 + 8 * word_count;
	slot->event_id = id;
}

/* As perfdata_attr_of_sample(), with the last answers at hand. */
static inline const struct perfdata_attr *attr_of(struct perfdata_reader *reader,
	const struct perfdata *pd, const struct perfdata_record *record,
	const struct perfdata_id **id)
{
	uint64_t number;
	size_t at;

	if (!pd->has_id || record->size < (uint32_t)pd->id_at + 8) {
		return perfdata_attr_of_sample(pd, record->bytes, record->size, id);
	}
	number = tdm_load_u64(record->bytes + pd->id_at, pd->big_endian);
	at = number & (KNOWN_IDS - 1);
	if (!reader->known[at].attr || number != reader->known[at].number) {
		reader->known[at].number = number;
		reader->known[at].attr = perfdata_attr_of_sample(
			pd, record->bytes, record->size, &reader->known[at].id);
	}
	*id = reader->known[at].id;
	return reader->known[at].attr;
}

/*
 * The slot of a tracepoint's sample that is as nearly all are: its own record behind fields of fixed size. False where
 * something is out of the ordinary, or wrong.
 */
static inline bool fill_plain(const struct perfdata *pd, const struct perfdata_record *record,
	const struct perfdata_attr *attr, const struct perfdata_id *id, struct tdm_slot *slot,
	struct tdm_sample *shown)
{
	const struct perfdata_layout *const layout = &attr->layout;
	const uint8_t *const bytes = record->bytes;
	const bool big_endian = pd->big_endian;
	uint32_t raw_bytes;
	int32_t tid;

	if (!attr->is_plain || record->size < layout->fixed_end + 4) {
		return false;
	}
	raw_bytes = tdm_load_u32(bytes + layout->fixed_end, big_endian);
	tid = (int32_t)tdm_load_u32(bytes + layout->tid + 4, big_endian);
	if (raw_bytes > record->size - layout->fixed_end - 4 || raw_bytes < 2 || tid < 0) {
		return false;
	}
	slot->payload = bytes + layout->fixed_end + 4;
	slot->payload_bytes = raw_bytes;
	slot->event_id = tdm_load_u16(slot->payload, big_endian);
	if (attr->checks_config && slot->event_id != attr->config) {
		return false;
	}
	shown->pid = (int32_t)tdm_load_u32(bytes + layout->tid, big_endian);
	shown->tid = tid;
	shown->in_guest = perfdata_is_guest_mode(record->misc) || (id && id->of_guest);
	shown->callchain = NULL;
	shown->callchain_count = 0;
	return true;
}

/* Turns a sample into the slot at @p index. False where it cannot be delivered, which has then been counted. */
static bool fill_slot(
	struct perfdata_reader *reader, size_t index, const struct perfdata_item *item)
{
	struct tdm_trace *trace = reader->reader.trace;
	struct perfdata *pd = perfdata_of(trace);
	const struct perfdata_id *id = NULL;
	const struct perfdata_attr *const attr = attr_of(reader, pd, &item->record, &id);
	struct perfdata_sample sample;
	struct tdm_slot *slot = &reader->slots[index];
	struct tdm_sample *shown = &reader->samples[index];
	char place[300];

	slot->raw_time = item->time; /* time_ns comes with the whole batch */
	slot->sample = shown;
	if (attr && fill_plain(pd, &item->record, attr, id, slot, shown)) {
		return true;
	}
	if (!attr) {
		trace_fault(trace, reader->reader.stream_index + 1,
			"at %s: sample whose event id is not in the file; it was left out",
			perfdata_place(pd, item->record.offset, place, sizeof(place)));
		reader->reader.counts.unreadable_bytes += item->record.size;
		return false;
	}

	const char *fault = perfdata_sample_parse(pd, &item->record, attr, &sample);

	if (!fault && !attr->made_class && sample.raw_bytes < 2) {
		fault = "has no tracepoint record";
	}
	if (fault) {
		trace_fault(trace, reader->reader.stream_index + 1,
			"at %s: sample %s; it was left out",
			perfdata_place(pd, item->record.offset, place, sizeof(place)), fault);
		reader->reader.counts.unreadable_bytes += item->record.size;
		return false;
	}
	if (attr->made_class) {
		make_payload(reader, index, &sample, slot, pd->big_endian);
	} else {
		slot->payload = sample.raw;
		slot->payload_bytes = sample.raw_bytes;
		slot->event_id = tdm_load_u16(sample.raw, pd->big_endian);
		if (attr->checks_config && slot->event_id != attr->config) {
			trace_fault(trace, attr->config,
				"at %s: sample of tracepoint %" PRIu64 " holds a record of %" PRIu32
				": shown as what it holds",
				perfdata_place(pd, item->record.offset, place, sizeof(place)),
				attr->config, slot->event_id);
		}
		if (sample.tid < 0 && sample.raw_bytes >= PID_AT + 4) {
			/* A task that is being released has no number in perf's eyes; the kernel's record has it. */
			sample.tid = (int32_t)tdm_load_u32(sample.raw + PID_AT, pd->big_endian);
		}
	}
	shown->pid = sample.pid;
	shown->tid = sample.tid;
	shown->in_guest = sample.in_guest || (id && id->of_guest);
	shown->callchain = NULL;
	shown->callchain_count = 0;
	if (sample.chain) {
		keep_chain(reader, &sample, shown, pd->big_endian);
	}
	return true;
}

static void tell_loss(struct perfdata_reader *reader, struct tdm_batch *batch)
{
	batch->lost = true;
	batch->lost_count = reader->loss_count;
	batch->lost_raw_time = reader->loss_raw_time;
	batch->lost_time_ns = stamp_one(&reader->plan, reader->loss_raw_time);
	reader->reader.counts.lost_events += reader->loss_count;
	if (!reader->loss_count) {
		reader->reader.counts.lost_unknown++;
	}
	reader->has_loss = false;
	reader->loss_count = 0;
}

/* What the kernel counted beyond the LOST records: the ring was still full when the recording ended. */
static bool take_last_loss(struct perfdata_reader *reader)
{
	const struct perfdata *pd = perfdata_of(reader->reader.trace);
	const struct perfdata_cpu *cpu = &pd->cpus[reader->reader.stream_index];

	if (reader->at_end) {
		return false;
	}
	reader->at_end = true;
	if (reader->late_records) {
		trace_fault_count(reader->reader.trace, reader->reader.stream_index + 1,
			reader->late_records,
			"records of one CPU are too far out of order to be sorted: their times go back");
	}
	if (cpu->lost_total <= cpu->lost_events) {
		return false;
	}
	reader->has_loss = true;
	reader->loss_count = cpu->lost_total - cpu->lost_events;
	reader->loss_raw_time = reader->last_raw_time;
	return true;
}

/* Room for the call chains of a batch; they are kept where the batch needs them. */
static bool has_word_room(struct perfdata_reader *reader)
{
	const struct perfdata *pd = perfdata_of(reader->reader.trace);

	reader->word_count = 0;
	if (!pd->has_chains || reader->words) {
		return true;
	}
	reader->words = malloc(MAX_BATCH_WORDS * sizeof(*reader->words));
	reader->word_room = reader->words ? MAX_BATCH_WORDS : 0;
	return reader->words != NULL;
}

static enum tdm_status collect_batch(
	struct tdm_reader *base, struct tdm_batch *batch, struct tdm_error *err)
{
	struct perfdata_reader *reader = reader_of(base);
	struct perfdata *pd = perfdata_of(base->trace);
	/* A chain is shorter than its record; so many always fit. */
	const size_t chain_limit = MAX_BATCH_WORDS - PERF_RECORD_MAX_BYTES / 8;

	*batch = (struct tdm_batch){ .slots = reader->slots };
	if (!has_word_room(reader)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for call chains", pd->path);
	}
	if (reader->has_loss) {
		tell_loss(reader, batch);
	}
	while (batch->count < BATCH_RECORDS && reader->word_count <= chain_limit) {
		struct perfdata_item item;
		const enum tdm_status status =
			perfdata_order_quick(pd, reader->order, &item)
				? TDM_OK
				: perfdata_order_next(reader->order, batch->count == 0, &item, err);

		if (status == TDM_AGAIN) {
			break;
		}
		if (status == TDM_END) {
			if (take_last_loss(reader) && !batch->count && !batch->lost) {
				tell_loss(reader, batch);
			}
			break;
		}
		if (status != TDM_OK) {
			return batch->count || batch->lost ? TDM_OK : status;
		}
		reader->last_raw_time = item.time;
		if (item.record.type == PERF_RECORD_LOST) {
			reader->loss_raw_time = item.time;
			reader->loss_count += tdm_load_u64(item.record.bytes + 16, pd->big_endian);
			reader->has_loss = true;
			if (batch->count) {
				break;
			}
			continue;
		}
		if (reader->has_loss && !batch->count) {
			if (batch->lost) {
				reader->loss_count += batch->lost_count;
				base->counts.lost_events -= batch->lost_count;
			}
			tell_loss(reader, batch);
		}
		if (fill_slot(reader, batch->count, &item)) {
			batch->count++;
			base->counts.records++;
			reader->late_records += item.is_late;
		}
	}
	if (reader->has_loss && !batch->count && !batch->lost) {
		tell_loss(reader, batch);
	}
	return batch->count || batch->lost ? TDM_OK : TDM_END;
}

static enum tdm_status next_batch(
	struct tdm_reader *base, struct tdm_batch *batch, struct tdm_error *err)
{
	const enum tdm_status status = collect_batch(base, batch, err);

	stamp_slots(&reader_of(base)->plan, reader_of(base)->slots, batch->count);
	return status;
}

static const struct trace_ops perfdata_ops = {
	.close = perfdata_close,
	.saved_comm = saved_comm,
	.comm_at = comm_at,
	.process_of = process_of,
	.read_text = read_text,
	.reader_create = reader_create,
	.reader_destroy = reader_destroy,
	.next_batch = next_batch,
	.rewind = reader_rewind,
};

/* Names of ftrace's clocks where they are the same clock. */
static const char *clock_name(int32_t clockid)
{
	switch (clockid) {
	case 0:
		return "realtime";
	case 1:
		return "mono";
	case 4:
		return "mono_raw";
	case 7:
		return "boot";
	case 11:
		return "tai";
	default:
		return "perf"; /* perf's own, as ftrace's clock of that name */
	}
}

static enum tdm_status fill_info(struct perfdata *pd, struct tdm_error *err)
{
	struct tdm_trace_info *info = &pd->trace.info;
	struct tdm_stream_info *streams = calloc(pd->cpu_count + 1, sizeof(*streams));
	const int32_t clockid = pd->attrs[pd->sole_attr].clockid;

	info->streams = streams;
	if (!streams) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its streams", pd->path);
	}
	for (size_t i = 0; i < pd->cpu_count; i++) {
		streams[i] = (struct tdm_stream_info){ .cpu = pd->cpus[i].cpu,
			.data_bytes = pd->cpus[i].data_bytes };
	}
	info->stream_count = pd->cpu_count;
	info->version = 2;
	info->compression = pd->was_compressed ? "zstd" : "none";
	info->big_endian = pd->big_endian;
	info->hostname = pd->hostname;
	info->kernel_release = pd->release;
	info->architecture = pd->arch;
	info->clock = clock_name(clockid);
	info->cpu_count = pd->cpu_number;
	info->has_callchains = pd->has_chains;
	info->is_unix_time = clockid == 0;
	if (pd->has_clock_data && clockid != 0) {
		if (pd->clock_data_clock == clockid) {
			info->date_offset_ns = pd->wall_offset_ns;
			info->is_unix_time = true;
		} else {
			trace_fault(&pd->trace, 0,
				"the wall clock is given for clock %d, but the samples use %d: it is not used",
				pd->clock_data_clock, clockid);
		}
	}
	pd->buffer = (struct tdm_buffer_info){ .name = "",
		.clock = info->clock,
		.is_ns = true,
		.shifted = pd->trace.options.corrections != NULL };
	info->buffers = &pd->buffer;
	info->buffer_count = 1;
	if (pd->version) {
		char *recorder = NULL;

		if (asprintf(&recorder, "perf %s", pd->version) >= 0) {
			info->recorder = recorder;
		}
	}
	return TDM_OK;
}

enum tdm_status perfdata_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err)
{
	struct perfdata *pd = calloc(1, sizeof(*pd));
	enum tdm_status status = TDM_ERR_NOMEM;

	if (!pd) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	pd->path = strdup(path);
	pd->trace.info.path = pd->path;
	pd->trace.info.format = TDM_FORMAT_PERF;
	pd->tracing.cap = MAX_TRACING_BYTES;
	status = trace_init(&pd->trace, &perfdata_ops, options, log, err);
	if (status == TDM_OK && !pd->path) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	if (status == TDM_OK) {
		status = perfdata_file_read(pd, err);
	}
	if (status == TDM_OK) {
		status = perfdata_tracing_read(pd, err);
		tdm_buffer_release(&pd->tracing);
	}
	if (status == TDM_OK) {
		status = perfdata_attrs_settle(pd, err);
	}
	if (status == TDM_OK) {
		status = perfdata_index(pd, err);
	}
	if (status == TDM_OK) {
		status = fill_info(pd, err);
	}
	if (status != TDM_OK) {
		perfdata_close(&pd->trace);
		return status;
	}
	*trace = &pd->trace;
	return TDM_OK;
}
