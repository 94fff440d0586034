/* SPDX-License-Identifier: MIT */
#include "tracedat_builder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
	CHUNK_PAGES = 10,
	TICK_ID = 10
};

const char dat_tick_format[] =
	"name: tick\n"
	"ID: 10\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:u64 value;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\n"
	"print fmt: \"%llu\", REC->value\n";

static void must(bool condition)
{
	if (!condition) {
		abort();
	}
}

void dat_bytes(struct tdm_buffer *out, const void *bytes, size_t size)
{
	must(tdm_buffer_append(out, bytes, size) == TDM_OK);
}

void dat_u8(struct tdm_buffer *out, uint8_t value)
{
	dat_bytes(out, &value, 1);
}

void dat_u16(struct tdm_buffer *out, const struct dat_layout *layout, uint16_t value)
{
	const uint16_t stored = layout->big_endian ? __builtin_bswap16(value) : value;

	dat_bytes(out, &stored, sizeof(stored));
}

void dat_u32(struct tdm_buffer *out, const struct dat_layout *layout, uint32_t value)
{
	const uint32_t stored = layout->big_endian ? __builtin_bswap32(value) : value;

	dat_bytes(out, &stored, sizeof(stored));
}

void dat_u64(struct tdm_buffer *out, const struct dat_layout *layout, uint64_t value)
{
	const uint64_t stored = layout->big_endian ? __builtin_bswap64(value) : value;

	dat_bytes(out, &stored, sizeof(stored));
}

void dat_text(struct tdm_buffer *out, const char *text)
{
	dat_bytes(out, text, strlen(text) + 1);
}

void dat_patch_u32(
	struct tdm_buffer *out, const struct dat_layout *layout, size_t at, uint32_t value)
{
	const uint32_t stored = layout->big_endian ? __builtin_bswap32(value) : value;

	must(at + sizeof(stored) <= out->size);
	memcpy(out->bytes + at, &stored, sizeof(stored));
}

void dat_patch_u64(
	struct tdm_buffer *out, const struct dat_layout *layout, size_t at, uint64_t value)
{
	const uint64_t stored = layout->big_endian ? __builtin_bswap64(value) : value;

	must(at + sizeof(stored) <= out->size);
	memcpy(out->bytes + at, &stored, sizeof(stored));
}

static void pad_to(struct tdm_buffer *out, size_t multiple)
{
	while (out->size % multiple) {
		dat_u8(out, 0);
	}
}

/* An unsigned long of the kernel that records. */
static void dat_long(struct tdm_buffer *out, const struct dat_layout *layout, uint64_t value)
{
	if (layout->long_bytes == 8) {
		dat_u64(out, layout, value);
	} else {
		dat_u32(out, layout, (uint32_t)value);
	}
}

void page_begin(struct dat_pages *pages, uint64_t time)
{
	pages->page_at = pages->bytes.size;
	pages->lost = false;
	pages->lost_count = 0;
	dat_u64(&pages->bytes, pages->layout, time);
	dat_long(&pages->bytes, pages->layout, 0);
}

void page_word(struct dat_pages *pages, uint32_t type, uint32_t delta)
{
	dat_u32(&pages->bytes, pages->layout,
		pages->layout->big_endian ? type << 27 | delta : delta << 5 | type);
}

void page_record(
	struct dat_pages *pages, uint32_t delta, const void *payload, uint32_t size, bool is_long)
{
	const uint32_t padded = (size + 3) & ~3u;

	if (is_long || padded > 28 * 4) {
		page_word(pages, 0, delta);
		dat_u32(&pages->bytes, pages->layout, padded + 4);
	} else {
		page_word(pages, padded / 4, delta);
	}
	dat_bytes(&pages->bytes, payload, size);
	pad_to(&pages->bytes, 4);
}

void page_tick(struct dat_pages *pages, uint32_t delta, int32_t tid, uint64_t value)
{
	struct tdm_buffer payload = { 0 };

	dat_u16(&payload, pages->layout, TICK_ID);
	dat_u16(&payload, pages->layout, 0);
	dat_u32(&payload, pages->layout, (uint32_t)tid);
	dat_u64(&payload, pages->layout, value);
	page_record(pages, delta, payload.bytes, (uint32_t)payload.size, false);
	tdm_buffer_release(&payload);
}

void page_extend(struct dat_pages *pages, uint64_t delta)
{
	page_word(pages, 30, delta & ((1u << 27) - 1));
	dat_u32(&pages->bytes, pages->layout, (uint32_t)(delta >> 27));
}

void page_stamp(struct dat_pages *pages, uint64_t time)
{
	page_word(pages, 31, time & ((1u << 27) - 1));
	dat_u32(&pages->bytes, pages->layout, (uint32_t)(time >> 27));
}

void page_discarded(struct dat_pages *pages, uint32_t delta, uint32_t bytes)
{
	page_word(pages, 29, delta);
	dat_u32(&pages->bytes, pages->layout, bytes + 4);
	for (uint32_t i = 0; i < bytes; i++) {
		dat_u8(&pages->bytes, 0xee);
	}
}

void page_null(struct dat_pages *pages)
{
	page_word(pages, 29, 0);
}

void page_end(struct dat_pages *pages)
{
	const struct dat_layout *layout = pages->layout;
	const size_t header = 8 + layout->long_bytes;
	const size_t size = pages->bytes.size - pages->page_at - header;
	int64_t commit = (int64_t)size;

	must(size <= layout->page_bytes - header);
	if (pages->lost) {
		/* As the kernel does it: a negative int is added to the long. */
		commit += INT32_MIN;
		if (pages->lost_count) {
			commit += 1 << 30;
			dat_long(&pages->bytes, layout, pages->lost_count);
		}
	}
	if (layout->long_bytes == 8) {
		dat_patch_u64(&pages->bytes, layout, pages->page_at + 8, (uint64_t)commit);
	} else {
		dat_patch_u32(&pages->bytes, layout, pages->page_at + 8, (uint32_t)commit);
	}
	while (pages->bytes.size < pages->page_at + layout->page_bytes) {
		dat_u8(&pages->bytes, 0);
	}
	must(pages->bytes.size == pages->page_at + layout->page_bytes);
}

void pages_of_ticks(struct dat_pages *pages, size_t count, size_t per_page, uint64_t first)
{
	for (size_t page = 0; page < count; page++) {
		page_begin(pages, first);
		for (size_t i = 0; i < per_page; i++) {
			page_tick(pages, i != 0, 1, first++);
		}
		page_end(pages);
	}
}

static void put_header_info(struct tdm_buffer *out, const struct dat_layout *layout)
{
	static const char event[] =
		"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
		"\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
		"\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
	const unsigned int header = 8 + layout->long_bytes;
	char page[512];
	const int size = snprintf(page, sizeof(page),
		"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		"\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		"\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:1;\n",
		layout->long_bytes, header, layout->page_bytes - header);

	dat_text(out, "header_page");
	dat_u64(out, layout, (uint64_t)size);
	dat_bytes(out, page, (size_t)size);
	dat_text(out, "header_event");
	dat_u64(out, layout, sizeof(event) - 1);
	dat_bytes(out, event, sizeof(event) - 1);
}

static void put_formats(
	struct tdm_buffer *out, const struct dat_layout *layout, const char *formats)
{
	dat_u32(out, layout, formats ? 2 : 1);
	dat_text(out, "test");
	dat_u32(out, layout, 1);
	dat_u64(out, layout, sizeof(dat_tick_format) - 1);
	dat_bytes(out, dat_tick_format, sizeof(dat_tick_format) - 1);
	if (formats) {
		dat_text(out, "extra");
		dat_u32(out, layout, 1);
		dat_u64(out, layout, strlen(formats));
		dat_bytes(out, formats, strlen(formats));
	}
}

static void put_sized(
	struct tdm_buffer *out, const struct dat_layout *layout, const char *text, bool is_u64)
{
	const size_t size = text ? strlen(text) : 0;

	if (is_u64) {
		dat_u64(out, layout, size);
	} else {
		dat_u32(out, layout, (uint32_t)size);
	}
	dat_bytes(out, text ? text : "", size);
}

static void put_packed(
	struct tdm_buffer *out, const struct dat_layout *layout, const void *bytes, size_t size)
{
	const bool is_zstd = strcmp(layout->compression, "zstd") == 0;
	uLongf room = is_zstd ? ZSTD_compressBound(size) : compressBound(size);
	uint8_t *packed = malloc(room + 1);

	must(packed);
	if (is_zstd) {
		room = ZSTD_compress(packed, room, bytes, size, 1);
		must(!ZSTD_isError(room));
	} else {
		must(compress(packed, &room, bytes, size) == Z_OK);
	}
	dat_u32(out, layout, (uint32_t)room);
	dat_u32(out, layout, (uint32_t)size);
	dat_bytes(out, packed, room);
	free(packed);
}

static bool is_packed(const struct dat_layout *layout)
{
	return layout->version >= 7 && strcmp(layout->compression, "none") != 0;
}

/* Returns the place of the section's header. */
static size_t put_section(struct tdm_buffer *out, const struct dat_layout *layout, uint16_t id,
	struct tdm_buffer *body)
{
	const size_t at = out->size;
	const bool packs = is_packed(layout) && id != 0;

	dat_u16(out, layout, id);
	dat_u16(out, layout, packs);
	dat_u32(out, layout, UINT32_MAX);
	dat_u64(out, layout, body->size);
	if (packs) {
		put_packed(out, layout, body->bytes, body->size);
		dat_patch_u64(out, layout, at + 8, out->size - at - 16);
	} else {
		dat_bytes(out, body->bytes, body->size);
	}
	tdm_buffer_release(body);
	return at;
}

static void put_option(struct tdm_buffer *out, const struct dat_layout *layout, uint16_t id,
	const void *value, size_t size)
{
	dat_u16(out, layout, id);
	dat_u32(out, layout, (uint32_t)size);
	dat_bytes(out, value, size);
}

static void put_place(
	struct tdm_buffer *out, const struct dat_layout *layout, uint16_t id, uint64_t offset)
{
	dat_u16(out, layout, id);
	dat_u32(out, layout, 8);
	dat_u64(out, layout, offset);
}

/* One CPU's pages; returns its size as the BUFFER option has it. */
static size_t put_data(
	struct tdm_buffer *out, const struct dat_layout *layout, const struct tdm_buffer *pages)
{
	const size_t start = out->size;
	const size_t chunk = (size_t)CHUNK_PAGES * layout->page_bytes;

	if (!is_packed(layout)) {
		dat_bytes(out, pages->bytes, pages->size);
		return pages->size;
	}
	dat_u32(out, layout, (uint32_t)((pages->size + chunk - 1) / chunk));
	for (size_t at = 0; at < pages->size; at += chunk) {
		put_packed(out, layout, pages->bytes + at,
			pages->size - at < chunk ? pages->size - at : chunk);
	}
	/* Without the chunk count, as trace-cmd 3.1 stores it. */
	return out->size - start - 4;
}

/* The first CPUs only: more are for tests that damage nothing. */
static void mark_data(struct dat_marks *marks, size_t buffer, size_t cpu, size_t at)
{
	if (cpu < sizeof(marks->data[0]) / sizeof(marks->data[0][0])) {
		marks->data[buffer][cpu] = at;
	}
}

static void build_v7(const struct dat_spec *spec, struct tdm_buffer *out, struct dat_marks *marks)
{
	const struct dat_layout *layout = &spec->layout;
	struct tdm_buffer body = { 0 }, options = { 0 }, buffers = { 0 };

	dat_text(out, layout->compression);
	dat_text(out, strcmp(layout->compression, "none") ? "1.0" : "");

	const size_t first_at = out->size;

	dat_u64(out, layout, 0);
	put_header_info(&body, layout);
	marks->header_info = put_section(out, layout, 16, &body);
	put_place(&options, layout, 16, marks->header_info);
	dat_u32(&body, layout, 0);
	put_place(&options, layout, 17, put_section(out, layout, 17, &body));
	put_formats(&body, layout, spec->formats);
	marks->event_formats = put_section(out, layout, 18, &body);
	put_place(&options, layout, 18, marks->event_formats);
	put_sized(&body, layout, spec->kallsyms, false);
	put_place(&options, layout, 19, put_section(out, layout, 19, &body));
	put_sized(&body, layout, spec->printk, false);
	put_place(&options, layout, 20, put_section(out, layout, 20, &body));
	put_sized(&body, layout, spec->cmdlines, true);
	put_place(&options, layout, 21, put_section(out, layout, 21, &body));
	for (size_t i = 0; i < spec->option_count; i++) {
		put_option(&options, layout, spec->options[i].id, spec->options[i].value->bytes,
			spec->options[i].value->size);
	}

	const size_t done_at = options.size;

	put_place(&options, layout, 0, 0);
	marks->first_options = put_section(out, layout, 0, &options);
	marks->first_done = marks->first_options + 16 + done_at;
	dat_patch_u64(out, layout, first_at, marks->first_options);
	for (size_t b = 0; b < spec->buffer_count; b++) {
		const struct dat_buffer *buffer = &spec->buffers[b];
		struct dat_layout inner = *layout;
		struct tdm_buffer option = { 0 };
		const size_t section = out->size;

		inner.page_bytes = buffer->page_bytes ? buffer->page_bytes : layout->page_bytes;
		marks->buffer_section[b] = section;
		dat_u16(out, layout, 3);
		dat_u16(out, layout, is_packed(layout));
		dat_u32(out, layout, UINT32_MAX);
		dat_u64(out, layout, 0);
		dat_u64(&option, layout, section);
		dat_text(&option, buffer->name);
		dat_text(&option, buffer->clock);
		dat_u32(&option, layout, inner.page_bytes);
		dat_u32(&option, layout, (uint32_t)buffer->cpu_count);
		for (size_t c = 0; c < buffer->cpu_count; c++) {
			pad_to(out, inner.page_bytes);
			mark_data(marks, b, c, out->size);
			dat_u32(&option, layout, buffer->cpus[c].cpu);
			dat_u64(&option, layout, out->size);
			dat_u64(&option, layout, put_data(out, &inner, buffer->cpus[c].pages));
		}
		dat_patch_u64(out, layout, section + 8, out->size - section - 16);
		marks->buffer_option[b] = 16 + buffers.size + 6;
		put_option(&buffers, layout, 3, option.bytes, option.size);
		tdm_buffer_release(&option);
	}
	put_place(&buffers, layout, 0, 0);
	marks->buffer_options = put_section(out, layout, 0, &buffers);
	for (size_t b = 0; b < spec->buffer_count; b++) {
		marks->buffer_option[b] += marks->buffer_options;
	}
	dat_patch_u64(out, layout, marks->first_done + 6, marks->buffer_options);
}

/* The mark, the table and the data of one buffer; every buffer has as many CPUs as the machine. */
static void put_flyrecord(const struct dat_spec *spec, size_t b, uint32_t cpu_count,
	struct tdm_buffer *out, struct dat_marks *marks)
{
	const struct dat_layout *layout = &spec->layout;
	const struct dat_buffer *buffer = &spec->buffers[b];
	char clock[64];
	const int clock_size = snprintf(clock, sizeof(clock), "local [%s]", buffer->clock);

	dat_bytes(out, "flyrecord", 10);

	const size_t table = out->size;

	if (!b) {
		marks->cpu_table = table;
	}
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		dat_u64(out, layout, 0);
		dat_u64(out, layout, 0);
	}
	dat_u64(out, layout, (uint64_t)clock_size);
	dat_bytes(out, clock, (size_t)clock_size);
	for (size_t c = 0; c < buffer->cpu_count; c++) {
		pad_to(out, layout->page_bytes);
		mark_data(marks, b, c, out->size);
		dat_patch_u64(out, layout, table + buffer->cpus[c].cpu * 16, out->size);
		dat_patch_u64(out, layout, table + buffer->cpus[c].cpu * 16 + 8,
			buffer->cpus[c].pages->size);
		dat_bytes(out, buffer->cpus[c].pages->bytes, buffer->cpus[c].pages->size);
	}
}

static void build_v6(const struct dat_spec *spec, struct tdm_buffer *out, struct dat_marks *marks)
{
	const struct dat_layout *layout = &spec->layout;
	size_t places[8] = { 0 };
	uint32_t cpu_count = 1;

	for (size_t b = 0; b < spec->buffer_count; b++) {
		for (size_t c = 0; c < spec->buffers[b].cpu_count; c++) {
			if (spec->buffers[b].cpus[c].cpu >= cpu_count) {
				cpu_count = spec->buffers[b].cpus[c].cpu + 1;
			}
		}
	}
	marks->header_info = out->size;
	put_header_info(out, layout);
	dat_u32(out, layout, 0);
	marks->event_formats = out->size;
	put_formats(out, layout, spec->formats);
	put_sized(out, layout, spec->kallsyms, false);
	put_sized(out, layout, spec->printk, false);
	put_sized(out, layout, spec->cmdlines, true);
	dat_u32(out, layout, cpu_count);
	dat_bytes(out, "options  ", 10);
	marks->options_start = out->size;
	put_option(out, layout, 4, "local [mono]", 13);
	for (size_t i = 0; i < spec->option_count; i++) {
		put_option(out, layout, spec->options[i].id, spec->options[i].value->bytes,
			spec->options[i].value->size);
	}
	for (size_t b = 1; b < spec->buffer_count; b++) {
		dat_u16(out, layout, 3);
		dat_u32(out, layout, (uint32_t)(8 + strlen(spec->buffers[b].name) + 1));
		places[b] = out->size;
		dat_u64(out, layout, 0);
		dat_text(out, spec->buffers[b].name);
	}
	dat_u16(out, layout, 0);
	for (size_t b = 0; b < spec->buffer_count; b++) {
		if (b) {
			dat_patch_u64(out, layout, places[b], out->size);
		}
		put_flyrecord(spec, b, cpu_count, out, marks);
	}
}

void dat_build(const struct dat_spec *spec, struct tdm_buffer *out, struct dat_marks *marks)
{
	const struct dat_layout *layout = &spec->layout;
	struct dat_marks unwanted;

	marks = marks ? marks : &unwanted;
	*marks = (struct dat_marks){ 0 };
	dat_bytes(out, "\x17\x08\x44tracing", 10);
	dat_text(out, layout->version == 6 ? "6" : "7");
	dat_u8(out, layout->big_endian);
	dat_u8(out, (uint8_t)layout->long_bytes);
	dat_u32(out, layout, layout->page_bytes);
	if (layout->version == 6) {
		build_v6(spec, out, marks);
	} else {
		build_v7(spec, out, marks);
	}
}

char *dat_save(const struct tdm_buffer *bytes)
{
	const char *folder = getenv("TMPDIR");
	char *path = NULL;

	must(asprintf(&path, "%s/tandem-test-XXXXXX", folder ? folder : "/tmp") > 0);

	const int fd = mkstemp(path);

	must(fd >= 0 && write(fd, bytes->bytes, bytes->size) == (ssize_t)bytes->size);
	close(fd);
	return path;
}
