/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <string.h>

void section_header(struct writer *w, enum section_id id, uint16_t flags, uint64_t size_bytes)
{
	sink_u16(&w->sink, (uint16_t)id);
	sink_u16(&w->sink, flags);
	sink_u32(&w->sink, (uint32_t)NO_DESCRIPTION);
	sink_u64(&w->sink, size_bytes);
}

/* Writes w->body as a section of metadata and remembers where. */
static void write_section(struct writer *w, enum section_id id)
{
	w->section_offsets[id] = w->sink.offset;
	if (w->version == 6) {
		/* One behind the other: there is no index. */
		sink_bytes(&w->sink, w->body.bytes, w->body.size);
		w->body.size = 0;
		return;
	}
	if (w->packer && w->body.size &&
		w->packer->pack(w->body.bytes, w->body.size, &w->packed, &w->sink.err) == TDM_OK) {
		section_header(w, id, FLAG_COMPRESSED, 8 + w->packed.size);
		sink_u32(&w->sink, (uint32_t)w->packed.size);
		sink_u32(&w->sink, (uint32_t)w->body.size);
		sink_bytes(&w->sink, w->packed.bytes, w->packed.size);
	} else {
		section_header(w, id, 0, w->body.size);
		sink_bytes(&w->sink, w->body.bytes, w->body.size);
	}
	w->body.size = 0;
}

void body_bytes(struct writer *w, const void *bytes, size_t count)
{
	w->failed |= tdm_buffer_append(&w->body, bytes, count) != TDM_OK;
}

void body_u32(struct writer *w, uint32_t value)
{
	put_u32(&w->body, w->sink.big_endian, value, &w->failed);
}

void body_u64(struct writer *w, uint64_t value)
{
	put_u64(&w->body, w->sink.big_endian, value, &w->failed);
}

static void header_text(struct writer *w, const char *title, enum tdm_meta_kind kind)
{
	const struct tdm_meta_text *text = tdm_trace_meta_find(w->plan->meta, kind);

	body_bytes(w, title, strlen(title) + 1);
	body_u64(w, text ? text->text.size : 0);
	if (text) {
		body_bytes(w, text->text.bytes, text->text.size);
	}
}

static bool is_event_of(const struct tdm_meta_text *text, const char *system)
{
	return text->kind == TDM_META_EVENT_FORMAT && strcmp(text->name, system) == 0;
}

static uint32_t count_events(const struct tdm_trace_meta *meta, const char *system)
{
	uint32_t count = 0;

	for (size_t i = 0; i < meta->text_count; i++) {
		count += is_event_of(&meta->texts[i], system);
	}
	return count;
}

static void event_texts(struct writer *w, const char *system)
{
	const struct tdm_trace_meta *meta = w->plan->meta;

	for (size_t i = 0; i < meta->text_count; i++) {
		if (is_event_of(&meta->texts[i], system)) {
			body_u64(w, meta->texts[i].text.size);
			body_bytes(w, meta->texts[i].text.bytes, meta->texts[i].text.size);
		}
	}
}

/* True for the first text of its system, "ftrace" left out: it has a section of its own. */
static bool opens_system(const struct tdm_trace_meta *meta, size_t index)
{
	const struct tdm_meta_text *text = &meta->texts[index];

	if (text->kind != TDM_META_EVENT_FORMAT || strcmp(text->name, "ftrace") == 0) {
		return false;
	}
	for (size_t i = 0; i < index; i++) {
		if (is_event_of(&meta->texts[i], text->name)) {
			return false;
		}
	}
	return true;
}

static void write_event_formats(struct writer *w)
{
	const struct tdm_trace_meta *meta = w->plan->meta;
	uint32_t systems = 0;

	body_u32(w, count_events(meta, "ftrace"));
	event_texts(w, "ftrace");
	write_section(w, SECTION_FTRACE_EVENTS);

	for (size_t i = 0; i < meta->text_count; i++) {
		systems += opens_system(meta, i);
	}
	body_u32(w, systems);
	for (size_t i = 0; i < meta->text_count; i++) {
		if (opens_system(meta, i)) {
			const char *system = meta->texts[i].name;

			body_bytes(w, system, strlen(system) + 1);
			body_u32(w, count_events(meta, system));
			event_texts(w, system);
		}
	}
	write_section(w, SECTION_EVENT_FORMATS);
}

/* Sections that hold one text behind its size. */
static void write_text_section(struct writer *w, enum section_id id, enum tdm_meta_kind kind,
	unsigned int size_width_bytes)
{
	const struct tdm_meta_text *text = tdm_trace_meta_find(w->plan->meta, kind);
	const size_t size_bytes = text ? text->text.size : 0;

	if (size_width_bytes == 8) {
		body_u64(w, size_bytes);
	} else {
		body_u32(w, (uint32_t)size_bytes);
	}
	if (size_bytes) {
		body_bytes(w, text->text.bytes, size_bytes);
	}
	write_section(w, id);
}

void write_texts(struct writer *w)
{
	header_text(w, "header_page", TDM_META_HEADER_PAGE);
	header_text(w, "header_event", TDM_META_HEADER_EVENT);
	write_section(w, SECTION_HEADER_INFO);
	write_event_formats(w);
	write_text_section(w, SECTION_KALLSYMS, TDM_META_KALLSYMS, 4);
	write_text_section(w, SECTION_PRINTK, TDM_META_PRINTK, 4);
	write_text_section(w, SECTION_CMDLINES, TDM_META_CMDLINES, 8);
}
