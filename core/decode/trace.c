/* SPDX-License-Identifier: MIT */
#include "fault_list_priv.h"
#include "schema_priv.h"
#include "symbol_table_priv.h"
#include "trace_priv.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/cursor.h>
#include <tandem/spool.h>

enum tdm_status trace_init(struct tdm_trace *trace, const struct trace_ops *ops,
	const struct tdm_stamp_options *options, const struct tdm_log *log, struct tdm_error *err)
{
	trace->ops = ops;
	trace->log = log;
	if (options) {
		trace->options = *options;
	}
	trace->faults = fault_list_create();
	return trace->faults ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
}

void trace_release(struct tdm_trace *trace)
{
	tdm_schema_destroy(trace->schema);
	fault_list_destroy(trace->faults);
	symbol_table_destroy(trace->kallsyms);
	symbol_table_destroy(trace->printk);
}

static void __attribute__((format(printf, 4, 0)))
add_fault(struct tdm_trace *trace, uint64_t scope, uint64_t count, const char *format, va_list args)
{
	const char *text;

	fault_list_add(trace->faults, trace->info.path ? trace->info.path : "input", scope, count,
		format, args, &text);
	if (text) {
		TDM_WARNING(trace->log, "%s", text);
	}
}

void trace_fault(struct tdm_trace *trace, uint64_t scope, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_fault(trace, scope, 1, format, args);
	va_end(args);
}

void trace_fault_count(
	struct tdm_trace *trace, uint64_t scope, uint64_t count, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_fault(trace, scope, count, format, args);
	va_end(args);
}

enum tdm_status tdm_trace_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err)
{
	if (tdm_pipe_is_one(path)) {
		const enum tdm_status status = tdm_pipe_keep(path, err);

		if (status != TDM_OK) {
			return status;
		}
	}

	const enum tdm_trace_format format = tdm_trace_probe(path);
	struct stat about;

	if (format == TDM_FORMAT_UNKNOWN && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: %s", path, tdm_trace_foreign(path));
	}
	switch (format) {
	case TDM_FORMAT_PERF:
		return perfdata_open(path, options, log, trace, err);
	case TDM_FORMAT_TRACEDAT:
	case TDM_FORMAT_LIVE:
	case TDM_FORMAT_UNKNOWN:
		break;
	}
	/* It tells what is wrong with a file of no known kind, too. */
	return tracedat_open(path, options, log, trace, err);
}

void tdm_trace_close(struct tdm_trace *trace)
{
	if (trace) {
		trace->ops->close(trace);
	}
}

const struct tdm_trace_info *tdm_trace_get_info(const struct tdm_trace *trace)
{
	return &trace->info;
}

const struct tdm_schema *tdm_trace_get_schema(const struct tdm_trace *trace)
{
	return trace->schema;
}

size_t tdm_trace_fault_count(const struct tdm_trace *trace)
{
	return fault_list_count(trace->faults);
}

struct tdm_fault tdm_trace_fault_at(const struct tdm_trace *trace, size_t index)
{
	return fault_list_at(trace->faults, index);
}

const char *tdm_trace_saved_comm(const struct tdm_trace *trace, int32_t tid)
{
	return trace->ops->saved_comm ? trace->ops->saved_comm(trace, tid) : NULL;
}

const char *tdm_trace_comm_at(
	const struct tdm_trace *trace, int32_t tid, uint64_t raw_time, uint64_t *until)
{
	uint64_t ignored;

	until = until ? until : &ignored;
	*until = UINT64_MAX;
	return trace->ops->comm_at ? trace->ops->comm_at(trace, tid, raw_time, until)
				   : tdm_trace_saved_comm(trace, tid);
}

bool tdm_trace_process_of(
	const struct tdm_trace *trace, int32_t tid, int32_t *pid, int32_t *parent_pid)
{
	return trace->ops->process_of && trace->ops->process_of(trace, tid, pid, parent_pid);
}

bool tdm_trace_has_comms(const struct tdm_trace *trace)
{
	return trace->ops->comm_at != NULL;
}

enum tdm_status tdm_trace_read_text(struct tdm_trace *trace, enum tdm_trace_text which,
	struct tdm_buffer *text, struct tdm_error *err)
{
	return trace->ops->read_text ? trace->ops->read_text(trace, which, text, err) : TDM_OK;
}

/* One lock for all: a table is made once, and what is found in it is never moved. */
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct symbol_table *get_table(struct tdm_trace *trace, struct symbol_table **table,
	enum tdm_trace_text which, struct symbol_table *(*make)(struct tdm_buffer *))
{
	pthread_mutex_lock(&tables_lock);
	if (!*table) {
		struct tdm_buffer text = { 0 };
		struct tdm_error err;

		if (tdm_trace_read_text(trace, which, &text, &err) != TDM_OK) {
			trace_fault(trace, which, "%s", err.text);
			text.size = 0;
		}
		*table = make(&text);
		tdm_buffer_release(&text);
	}

	const struct symbol_table *made = *table;

	pthread_mutex_unlock(&tables_lock);
	return made;
}

const char *tdm_trace_symbol(struct tdm_trace *trace, uint64_t address, uint64_t *distance)
{
	const struct symbol_table *table =
		get_table(trace, &trace->kallsyms, TDM_TEXT_KALLSYMS, symbol_table_from_kallsyms);

	return table ? symbol_table_floor(table, address, distance) : NULL;
}

const char *tdm_trace_printk_format(struct tdm_trace *trace, uint64_t address)
{
	const struct symbol_table *table =
		get_table(trace, &trace->printk, TDM_TEXT_PRINTK_FORMATS, symbol_table_from_printk);

	return table ? symbol_table_exact(table, address) : NULL;
}

struct tdm_reader *tdm_reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err)
{
	if (stream_index >= trace->info.stream_count) {
		tdm_fail(err, TDM_ERR_RANGE, "stream %zu of %zu", stream_index,
			trace->info.stream_count);
		return NULL;
	}

	struct tdm_reader *reader = trace->ops->reader_create(trace, stream_index, err);

	if (reader) {
		reader->trace = trace;
		reader->stream_index = stream_index;
	}
	return reader;
}

void tdm_reader_destroy(struct tdm_reader *reader)
{
	if (reader) {
		reader->trace->ops->reader_destroy(reader);
	}
}

static void record_from_slot(
	const struct tdm_trace *trace, const struct tdm_slot *slot, struct tdm_record *record)
{
	const struct tdm_event_class *event_class = schema_find(trace->schema, slot->event_id);
	const uint16_t pid_offset =
		event_class ? event_class->pid_offset : trace->schema->pid_offset;

	/* Member by member: gcc clears a whole structure with a string instruction, which took most of the time. */
	record->kind = TDM_ITEM_RECORD;
	record->raw_time = slot->raw_time;
	record->time_ns = slot->time_ns;
	record->event_class = event_class;
	record->payload = slot->payload;
	record->payload_bytes = slot->payload_bytes;
	record->event_id = slot->event_id;
	record->tid = -1;
	record->lost_count = 0;
	record->pid = -1;
	record->in_guest = false;
	record->callchain = NULL;
	record->callchain_count = 0;
	if (slot->sample) {
		record->tid = slot->sample->tid;
		record->pid = slot->sample->pid;
		record->in_guest = slot->sample->in_guest;
		record->callchain = slot->sample->callchain;
		record->callchain_count = slot->sample->callchain_count;
	} else if (pid_offset + 4u <= slot->payload_bytes) {
		record->tid =
			(int32_t)tdm_load_u32(slot->payload + pid_offset, trace->info.big_endian);
	}
}

static enum tdm_status next_from_batch(
	struct tdm_reader *reader, struct tdm_record *record, struct tdm_error *err)
{
	struct tdm_batch *batch = &reader->batch;

	for (;;) {
		if (batch->lost) {
			batch->lost = false;
			*record = (struct tdm_record){
				.kind = TDM_ITEM_LOST,
				.raw_time = batch->lost_raw_time,
				.time_ns = batch->lost_time_ns,
				.lost_count = batch->lost_count,
				.tid = -1,
				.pid = -1,
			};
			return TDM_OK;
		}
		if (reader->batch_pos < batch->count) {
			record_from_slot(reader->trace, &batch->slots[reader->batch_pos++], record);
			return TDM_OK;
		}
		reader->batch_pos = 0;
		batch->count = 0;

		const enum tdm_status status = reader->trace->ops->next_batch(reader, batch, err);

		if (status != TDM_OK) {
			return status;
		}
	}
}

enum tdm_status tdm_reader_next(
	struct tdm_reader *reader, struct tdm_record *record, struct tdm_error *err)
{
	if (reader->trace->ops->next) {
		return reader->trace->ops->next(reader, record, err);
	}
	return next_from_batch(reader, record, err);
}

enum tdm_status tdm_reader_next_batch(
	struct tdm_reader *reader, struct tdm_batch *batch, struct tdm_error *err)
{
	if (reader->trace->ops->next_batch) {
		struct tdm_batch *rest = &reader->batch;

		if (!rest->lost && reader->batch_pos >= rest->count) {
			return reader->trace->ops->next_batch(reader, batch, err);
		}
		/* tdm_reader_next() has taken some of this one. */
		*batch = *rest;
		batch->slots += reader->batch_pos;
		batch->count -= reader->batch_pos;
		rest->lost = false;
		rest->count = 0;
		reader->batch_pos = 0;
		return TDM_OK;
	}

	struct tdm_record record;
	const enum tdm_status status = reader->trace->ops->next(reader, &record, err);

	if (status != TDM_OK) {
		return status;
	}
	*batch = (struct tdm_batch){ .slots = &reader->slot };
	if (record.kind == TDM_ITEM_LOST) {
		batch->lost = true;
		batch->lost_count = record.lost_count;
		batch->lost_raw_time = record.raw_time;
		batch->lost_time_ns = record.time_ns;
		return TDM_OK;
	}
	reader->slot = (struct tdm_slot){
		.raw_time = record.raw_time,
		.time_ns = record.time_ns,
		.payload = record.payload,
		.payload_bytes = record.payload_bytes,
		.event_id = record.event_id,
	};
	batch->count = 1;
	return TDM_OK;
}

enum tdm_status tdm_reader_rewind(struct tdm_reader *reader, struct tdm_error *err)
{
	reader->batch = (struct tdm_batch){ 0 };
	reader->batch_pos = 0;
	reader->counts = (struct tdm_reader_counts){ 0 };
	return reader->trace->ops->rewind(reader, err);
}

struct tdm_reader_counts tdm_reader_get_counts(const struct tdm_reader *reader)
{
	return reader->counts;
}
