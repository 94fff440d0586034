/* SPDX-License-Identifier: MIT */
#include "ring_page_priv.h"
#include "stamp_priv.h"
#include "trace_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/live_trace.h>

enum {
	BATCH_SLOTS = 256,
	DEFAULT_QUEUE_BYTES = 32 << 20,
	PUMPS_PER_CALL = 4096,
	MAX_CPUS = 8192
};

struct live_page {
	struct live_page *next;
	uint64_t lost_pages;
	uint8_t bytes[];
};

struct live_queue {
	struct live_page *first, **last;
	size_t count;
	uint64_t lost_pages; /* dropped here since the page that was taken last */
};

struct live_comm {
	int32_t tid;
	const char *name;
};

struct live_trace {
	struct tdm_trace base;
	struct tdm_live_options options;
	struct tdm_trace_meta meta;
	char *name, *clock, *uname;
	struct ring_layout layout;
	struct tdm_buffer_info buffer;
	struct tdm_stream_info *streams;
	struct live_queue *queues;
	size_t queued_pages, most_pages;
	char *comm_text;
	struct live_comm *comms; /* by tid */
	size_t comm_count;
};

struct live_reader {
	struct tdm_reader base;
	struct live_trace *live;
	struct stamp_plan plan;
	struct live_page *current; /* owned while it is walked */
	struct ring_page page;
	bool has_progress;
	uint64_t progress_raw;
	struct tdm_slot slots[BATCH_SLOTS];
};

static int compare_comms(const void *a, const void *b)
{
	const struct live_comm *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static const char *live_saved_comm(const struct tdm_trace *trace, int32_t tid)
{
	const struct live_trace *live = (const struct live_trace *)trace;
	const struct live_comm key = { .tid = tid };
	const struct live_comm *found =
		live->comm_count
			? bsearch(&key, live->comms, live->comm_count, sizeof(key), compare_comms)
			: NULL;

	return found ? found->name : NULL;
}

/* Lines "TID NAME"; the text is cut into strings where it stands. */
static bool take_comms(struct live_trace *live)
{
	const struct tdm_meta_text *text = tdm_trace_meta_find(&live->meta, TDM_META_CMDLINES);
	size_t lines = 1;

	if (!text || !text->text.size) {
		return true;
	}
	live->comm_text = strndup((const char *)text->text.bytes, text->text.size);
	for (const char *at = live->comm_text; at && *at; at++) {
		lines += *at == '\n';
	}
	live->comms = calloc(lines, sizeof(*live->comms));
	if (!live->comm_text || !live->comms) {
		return false;
	}
	for (char *line = live->comm_text, *end; *line; line = end) {
		char *name;
		const long tid = strtol(line, &name, 10);

		end = strchrnul(line, '\n');
		if (*end) {
			*end++ = '\0';
		}
		if (*name == ' ') {
			live->comms[live->comm_count++] =
				(struct live_comm){ .tid = (int32_t)tid, .name = name + 1 };
		}
	}
	qsort(live->comms, live->comm_count, sizeof(*live->comms), compare_comms);
	return true;
}

static enum tdm_status live_read_text(struct tdm_trace *trace, enum tdm_trace_text which,
	struct tdm_buffer *text, struct tdm_error *err)
{
	static const enum tdm_meta_kind kinds[] = {
		[TDM_TEXT_HEADER_PAGE] = TDM_META_HEADER_PAGE,
		[TDM_TEXT_HEADER_EVENT] = TDM_META_HEADER_EVENT,
		[TDM_TEXT_KALLSYMS] = TDM_META_KALLSYMS,
		[TDM_TEXT_PRINTK_FORMATS] = TDM_META_PRINTK,
		[TDM_TEXT_SAVED_CMDLINES] = TDM_META_CMDLINES,
	};
	const struct live_trace *live = (const struct live_trace *)trace;
	const struct tdm_meta_text *found = tdm_trace_meta_find(&live->meta, kinds[which]);

	if (found && tdm_buffer_append(text, found->text.bytes, found->text.size) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a text", live->name);
	}
	return TDM_OK;
}

/* The oldest page of a queue, its losses told; NULL = empty. */
static struct live_page *take_page(struct live_trace *live, struct live_queue *queue)
{
	struct live_page *page = queue->first;

	if (page) {
		queue->first = page->next;
		queue->last = queue->first ? queue->last : &queue->first;
		queue->count--;
		live->queued_pages--;
		page->lost_pages += queue->lost_pages;
		queue->lost_pages = 0;
	}
	return page;
}

/* The streams are read as slowly as the slowest needs: what waits is bounded by losing the oldest of the fullest. */
static void make_room(struct live_trace *live)
{
	struct live_queue *fullest = &live->queues[0];

	for (size_t i = 1; i < live->base.info.stream_count; i++) {
		fullest = live->queues[i].count > fullest->count ? &live->queues[i] : fullest;
	}

	struct live_page *dropped = take_page(live, fullest);

	if (dropped) {
		fullest->lost_pages = dropped->lost_pages + 1;
		free(dropped);
	}
}

enum tdm_status tdm_live_trace_push(struct tdm_trace *trace, uint32_t cpu, const void *page,
	size_t page_bytes, uint64_t lost_pages, struct tdm_error *err)
{
	struct live_trace *live = (struct live_trace *)trace;

	if (cpu >= live->base.info.stream_count || page_bytes != live->buffer.page_bytes) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s: a page of CPU %" PRIu32
			" with %zu bytes, wanted a CPU below %zu and %" PRIu32 " bytes",
			live->name, cpu, page_bytes, live->base.info.stream_count,
			live->buffer.page_bytes);
	}
	if (live->queued_pages >= live->most_pages) {
		make_room(live);
	}

	struct live_page *made = malloc(sizeof(*made) + page_bytes);
	struct live_queue *queue = &live->queues[cpu];

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a page", live->name);
	}
	made->next = NULL;
	made->lost_pages = lost_pages;
	memcpy(made->bytes, page, page_bytes);
	*queue->last = made;
	queue->last = &made->next;
	queue->count++;
	live->queued_pages++;
	return TDM_OK;
}

static void note_progress(struct live_reader *reader, uint64_t raw_time)
{
	if (!reader->has_progress || raw_time > reader->progress_raw) {
		reader->has_progress = true;
		reader->progress_raw = raw_time;
	}
}

static void report_page(struct live_reader *reader, const struct ring_fault *fault)
{
	trace_fault(&reader->live->base, reader->base.stream_index + 1,
		"CPU %u: a page has %s: read %" PRIu64 " at +0x%x, limit %" PRIu64,
		reader->live->streams[reader->base.stream_index].cpu, fault->text, fault->read,
		fault->at, fault->want);
	reader->base.counts.unreadable_pages++;
}

static void drop_current(struct live_reader *reader)
{
	free(reader->current);
	reader->current = NULL;
}

/* Begins the next page that waits; false where none does. */
static bool begin_page(struct live_reader *reader, struct tdm_batch *batch)
{
	struct live_trace *live = reader->live;
	struct ring_fault fault;

	reader->current = take_page(live, &live->queues[reader->base.stream_index]);
	if (!reader->current) {
		return false;
	}
	if (!ring_page_begin(&live->layout, reader->current->bytes, live->buffer.page_bytes,
		    &reader->page, &fault)) {
		report_page(reader, &fault);
		drop_current(reader);
		return true;
	}
	if (reader->page.lost || reader->current->lost_pages) {
		const uint64_t count = reader->current->lost_pages ? 0 : reader->page.lost_count;

		batch->lost = true;
		batch->lost_count = count;
		batch->lost_raw_time = reader->page.time;
		reader->base.counts.lost_events += count;
		reader->base.counts.lost_unknown += count == 0;
	}
	note_progress(reader, reader->page.time);
	return true;
}

/*
 * Gets a page for this reader, and on the way all that is there for the others: whoever asked them next would have to wait for a
 * retry. TDM_AGAIN: nothing for this one is there.
 */
static enum tdm_status pump_for(struct live_reader *reader, struct tdm_error *err)
{
	struct live_trace *live = reader->live;
	const struct live_queue *queue = &live->queues[reader->base.stream_index];
	enum tdm_status status = TDM_OK;

	for (unsigned int i = 0; i < PUMPS_PER_CALL && status == TDM_OK && !queue->count; i++) {
		status = live->options.pump(live->options.user, err);
	}
	if (queue->count) {
		return TDM_OK;
	}
	return status == TDM_OK ? TDM_AGAIN : status;
}

static enum tdm_status live_next_batch(
	struct tdm_reader *base, struct tdm_batch *batch, struct tdm_error *err)
{
	struct live_reader *reader = (struct live_reader *)base;
	struct live_trace *live = reader->live;

	*batch = (struct tdm_batch){ .slots = reader->slots };
	for (;;) {
		if (!reader->current && !begin_page(reader, batch)) {
			const enum tdm_status status = pump_for(reader, err);

			if (status != TDM_OK) {
				return status;
			}
			continue;
		}
		if (!reader->current) {
			continue;
		}

		struct ring_fault fault;
		const size_t count = ring_page_walk(
			&live->layout, &reader->page, reader->slots, BATCH_SLOTS, &fault);

		if (fault.text) {
			report_page(reader, &fault);
		}
		batch->count = count;
		base->counts.records += count;
		stamp_slots(&reader->plan, reader->slots, count);
		if (count) {
			note_progress(reader, reader->slots[count - 1].raw_time);
		}
		if (batch->lost) {
			batch->lost_raw_time =
				count ? reader->slots[0].raw_time : batch->lost_raw_time;
			batch->lost_time_ns = stamp_one(&reader->plan, batch->lost_raw_time);
		}
		/* Payloads lie in the page: it stays until the next call when it gave records. */
		if (count) {
			return TDM_OK;
		}
		drop_current(reader);
		if (batch->lost) {
			return TDM_OK;
		}
	}
}

static struct tdm_reader *live_reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err)
{
	struct live_reader *reader = calloc(1, sizeof(*reader));

	if (!reader) {
		tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for a reader", trace->info.path);
		return NULL;
	}
	reader->base.trace = trace;
	reader->base.stream_index = stream_index;
	reader->live = (struct live_trace *)trace;
	reader->plan = stamp_plan_make(&trace->info, &trace->options, stream_index);
	return &reader->base;
}

static void live_reader_destroy(struct tdm_reader *base)
{
	struct live_reader *reader = (struct live_reader *)base;

	drop_current(reader);
	free(reader);
}

static enum tdm_status live_rewind(struct tdm_reader *base, struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_UNSUPPORTED, "%s: a live trace has no beginning to go back to",
		base->trace->info.path);
}

static void live_close(struct tdm_trace *trace)
{
	struct live_trace *live = (struct live_trace *)trace;

	for (size_t i = 0; live->queues && i < trace->info.stream_count; i++) {
		struct live_page *page;

		while ((page = take_page(live, &live->queues[i]))) {
			free(page);
		}
	}
	free(live->queues);
	free(live->streams);
	free(live->comms);
	free(live->comm_text);
	free(live->name);
	free(live->clock);
	free(live->uname);
	tdm_trace_meta_release(&live->meta);
	trace_release(trace);
	free(live);
}

static const struct trace_ops live_ops = {
	.close = live_close,
	.saved_comm = live_saved_comm,
	.read_text = live_read_text,
	.reader_create = live_reader_create,
	.reader_destroy = live_reader_destroy,
	.next_batch = live_next_batch,
	.rewind = live_rewind,
};

bool tdm_reader_progress(const struct tdm_reader *base, uint64_t *time_ns)
{
	if (base->trace->ops != &live_ops) {
		return false;
	}

	const struct live_reader *reader = (const struct live_reader *)base;
	struct stamp_plan plan = reader->plan;

	if (!reader->has_progress) {
		return false;
	}
	*time_ns = stamp_one(&plan, reader->progress_raw);
	return true;
}

/* A text as a string; "" where there is none. NULL without memory. */
static char *text_of(const struct live_trace *live, enum tdm_meta_kind kind)
{
	const struct tdm_meta_text *text = tdm_trace_meta_find(&live->meta, kind);

	return text ? strndup((const char *)text->text.bytes, text->text.size) : strdup("");
}

/* "Linux NODE RELEASE MACHINE": cut into its words where it stands. */
static void take_uname(struct live_trace *live)
{
	char *rest = live->uname;

	strsep(&rest, " ");
	live->base.info.hostname = strsep(&rest, " ");
	live->base.info.kernel_release = strsep(&rest, " ");
	live->base.info.architecture = strsep(&rest, " \n");
}

/* The name in brackets of "local [mono] boot"; the text is cut where it stands. */
static void take_clock(struct live_trace *live)
{
	char *open = strchr(live->clock, '[');
	char *shut = open ? strchr(open, ']') : NULL;

	if (shut) {
		*shut = '\0';
		memmove(live->clock, open + 1, strlen(open + 1) + 1);
	}
	live->base.info.clock = live->clock;
}

static void add_formats(struct live_trace *live)
{
	for (size_t i = 0; i < live->meta.text_count; i++) {
		const struct tdm_meta_text *text = &live->meta.texts[i];
		struct tdm_error err;

		if (text->kind == TDM_META_EVENT_FORMAT &&
			tdm_schema_add(live->base.schema, text->name,
				(const char *)text->text.bytes, text->text.size, &err) != TDM_OK) {
			trace_fault(&live->base, i, "system %s: %s", text->name, err.text);
		}
	}
}

static enum tdm_status fill(struct live_trace *live, struct tdm_error *err)
{
	const struct tdm_trace_meta *meta = &live->meta;
	const size_t queue_bytes =
		live->options.queue_bytes ? live->options.queue_bytes : DEFAULT_QUEUE_BYTES;
	struct tdm_trace_info *info = &live->base.info;

	live->name = strdup(live->options.name);
	live->clock = text_of(live, TDM_META_CLOCK);
	live->uname = text_of(live, TDM_META_UNAME);
	live->streams = calloc(meta->cpu_count, sizeof(*live->streams));
	live->queues = calloc(meta->cpu_count, sizeof(*live->queues));
	live->base.schema = tdm_schema_create(meta->big_endian, meta->long_bytes);
	if (!live->name || !live->clock || !live->uname || !live->streams || !live->queues ||
		!live->base.schema || !take_comms(live)) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a live trace");
	}
	live->layout = (struct ring_layout){
		.big_endian = meta->big_endian,
		.commit_bytes = (uint8_t)meta->long_bytes,
		.header_bytes = (uint16_t)(8 + meta->long_bytes),
	};
	live->most_pages = queue_bytes / meta->page_bytes + meta->cpu_count;
	for (uint32_t cpu = 0; cpu < meta->cpu_count; cpu++) {
		live->streams[cpu] = (struct tdm_stream_info){ .cpu = cpu };
		live->queues[cpu].last = &live->queues[cpu].first;
	}
	take_uname(live);
	take_clock(live);
	live->buffer = (struct tdm_buffer_info){
		.name = "", .clock = live->clock, .page_bytes = meta->page_bytes
	};
	info->format = TDM_FORMAT_LIVE;
	info->path = live->name;
	info->compression = "none";
	info->big_endian = meta->big_endian;
	info->long_bytes = meta->long_bytes;
	info->cpu_count = meta->cpu_count;
	info->has_trace_id = true;
	info->trace_id = live->options.trace_id;
	info->buffers = &live->buffer;
	info->buffer_count = 1;
	info->streams = live->streams;
	info->stream_count = meta->cpu_count;
	add_formats(live);
	return TDM_OK;
}

static bool is_usable(const struct tdm_trace_meta *meta)
{
	return meta->cpu_count > 0 && meta->cpu_count <= MAX_CPUS && meta->page_bytes >= 4096 &&
	       (meta->page_bytes & (meta->page_bytes - 1)) == 0 &&
	       (meta->long_bytes == 4 || meta->long_bytes == 8);
}

enum tdm_status tdm_live_trace_create(const struct tdm_live_options *options,
	struct tdm_trace_meta *meta, const struct tdm_log *log, struct tdm_trace **trace,
	struct tdm_error *err)
{
	static const struct tdm_stamp_options plain = { 0 };
	struct live_trace *live = calloc(1, sizeof(*live));
	enum tdm_status status;

	if (!live || !is_usable(meta)) {
		status = live ? tdm_fail(err, TDM_ERR_FORMAT,
					"%s: %" PRIu32 " CPUs with pages of %" PRIu32
					" bytes cannot be",
					options->name, meta->cpu_count, meta->page_bytes)
			      : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a live trace");
		free(live);
		tdm_trace_meta_release(meta);
		return status;
	}
	live->options = *options;
	live->meta = *meta;
	*meta = (struct tdm_trace_meta){ 0 };
	status = trace_init(&live->base, &live_ops, &plain, log, err);
	if (status == TDM_OK) {
		status = fill(live, err);
	}
	if (status != TDM_OK) {
		tdm_trace_close(&live->base);
		return status;
	}
	*trace = &live->base;
	return TDM_OK;
}
