/* SPDX-License-Identifier: MIT */
/* The beginning of a file: prefix, texts and options. Alone it is what an agent sends ahead of its pages. */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The clock's name out of "local [mono] boot". */
static void current_clock(const struct tdm_trace_meta *meta, char *name, size_t room)
{
	const struct tdm_meta_text *clock = tdm_trace_meta_find(meta, TDM_META_CLOCK);
	const char *open = clock ? memchr(clock->text.bytes, '[', clock->text.size) : NULL;
	const char *end = clock ? (const char *)clock->text.bytes + clock->text.size : NULL;
	const char *shut = open ? memchr(open, ']', (size_t)(end - open)) : NULL;

	snprintf(name, room, "%.*s", shut ? (int)(shut - open - 1) : 0, shut ? open + 1 : "");
}

enum tdm_status check_page_size(const struct writer *w, struct tdm_error *err)
{
	if (w->page_bytes < 4096 || (w->page_bytes & (w->page_bytes - 1))) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"page size %" PRIu32 ", wanted a power of two from 4096", w->page_bytes);
	}
	return TDM_OK;
}

enum tdm_status take_meta(struct writer *w, struct tdm_error *err)
{
	const struct tdm_trace_meta *meta = w->plan->meta;

	w->sink.big_endian = meta->big_endian;
	w->page_bytes = meta->page_bytes;
	current_clock(meta, w->clock, sizeof(w->clock));
	if (!tdm_trace_meta_find(meta, TDM_META_HEADER_PAGE)) {
		return tdm_fail(err, TDM_ERR_RANGE, "no header_page text");
	}
	return check_page_size(w, err);
}

void write_head(struct writer *w)
{
	const struct tdm_trace_meta *meta = w->plan->meta;
	const uint8_t order_and_long[] = { meta->big_endian, (uint8_t)meta->long_bytes };

	sink_bytes(&w->sink, "\x17\x08\x44tracing", 10);
	sink_string(&w->sink, w->version == 6 ? "6" : "7");
	sink_bytes(&w->sink, order_and_long, sizeof(order_and_long));
	sink_u32(&w->sink, w->page_bytes);
	if (w->version == 6) {
		return;
	}
	sink_string(&w->sink, w->packer ? w->packer->name : "none");
	sink_string(&w->sink, w->packer ? w->packer->version() : "");
	w->first_options_patch = w->sink.offset;
	sink_u64(&w->sink, 0);
}

enum tdm_status tdm_tracedat_begin(const struct tdm_trace_meta *meta, unsigned int version,
	uint64_t trace_id, struct tdm_buffer *bytes, struct tdm_error *err)
{
	const struct tdm_tracedat_plan plan = {
		.path = "texts", .meta = meta, .trace_id = trace_id
	};
	struct writer w = {
		.plan = &plan, .version = version, .sink = { .fd = -1, .path = plan.path }
	};
	enum tdm_status status = take_meta(&w, err);

	if (status == TDM_OK) {
		write_head(&w);
		write_texts(&w);
		if (version == 6) {
			sink_u32(&w.sink, meta->cpu_count);
			sink_string(&w.sink, "options  ");
		}
		write_first_options(&w);
		if (w.failed) {
			tdm_fail(&w.sink.err, TDM_ERR_NOMEM, "no memory for texts");
		}
		status = w.sink.err.status;
		if (status != TDM_OK && err) {
			*err = w.sink.err;
		}
	}
	if (status == TDM_OK &&
		tdm_buffer_append(bytes, w.sink.pending.bytes, w.sink.pending.size) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for texts");
	}
	tdm_buffer_release(&w.sink.pending);
	tdm_buffer_release(&w.body);
	tdm_buffer_release(&w.packed);
	return status;
}
