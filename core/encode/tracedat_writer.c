/* SPDX-License-Identifier: MIT */
#include "encode_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Section ids are the ids of the options that point to them. */
enum section_id {
	SECTION_OPTIONS = 0,
	SECTION_BUFFER = 3,
	SECTION_HEADER_INFO = 16,
	SECTION_FTRACE_EVENTS = 17,
	SECTION_EVENT_FORMATS = 18,
	SECTION_KALLSYMS = 19,
	SECTION_PRINTK = 20,
	SECTION_CMDLINES = 21,
};

enum option_id {
	OPTION_DONE = 0,
	OPTION_CPUSTAT = 2,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_UNAME = 5,
	OPTION_CPUCOUNT = 8,
	OPTION_VERSION = 9,
	OPTION_TRACEID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_TSC2NSEC = 14,
};

enum {
	FLAG_COMPRESSED = 1,
	NO_DESCRIPTION = -1,
	TIME_SHIFT_INTERPOLATE = 1
};

struct writer {
	const struct tdm_tracedat_plan *plan;
	struct byte_sink sink;
	uint64_t section_offsets[SECTION_CMDLINES + 1];
	uint64_t first_options_patch, done_patch; /* where the next OPTIONS section's offset goes */
	struct tdm_buffer body, packed;
	bool failed; /* memory, while a body was put together */
};

static void section_header(
	struct writer *w, enum section_id id, uint16_t flags, uint64_t size_bytes)
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
	if (w->plan->compress && w->body.size &&
		compress_text(w->body.bytes, w->body.size, &w->packed, &w->sink.err) == TDM_OK) {
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

static void body_bytes(struct writer *w, const void *bytes, size_t count)
{
	w->failed |= tdm_buffer_append(&w->body, bytes, count) != TDM_OK;
}

static void body_u32(struct writer *w, uint32_t value)
{
	put_u32(&w->body, w->sink.big_endian, value, &w->failed);
}

static void body_u64(struct writer *w, uint64_t value)
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

static void write_metadata(struct writer *w)
{
	header_text(w, "header_page", TDM_META_HEADER_PAGE);
	header_text(w, "header_event", TDM_META_HEADER_EVENT);
	write_section(w, SECTION_HEADER_INFO);
	write_event_formats(w);
	write_text_section(w, SECTION_KALLSYMS, TDM_META_KALLSYMS, 4);
	write_text_section(w, SECTION_PRINTK, TDM_META_PRINTK, 4);
	write_text_section(w, SECTION_CMDLINES, TDM_META_CMDLINES, 8);
}

static void option(struct writer *w, enum option_id id, const void *bytes, size_t count)
{
	put_u16(&w->body, w->sink.big_endian, (uint16_t)id, &w->failed);
	body_u32(w, (uint32_t)count);
	body_bytes(w, bytes, count);
}

/* A text as a NUL-terminated string. */
static void option_string(struct writer *w, enum option_id id, const void *text, size_t text_bytes)
{
	put_u16(&w->body, w->sink.big_endian, (uint16_t)id, &w->failed);
	body_u32(w, (uint32_t)text_bytes + 1);
	body_bytes(w, text, text_bytes);
	body_bytes(w, "", 1);
}

static void option_u64(struct writer *w, enum option_id id, uint64_t value)
{
	const uint64_t ordered = w->sink.big_endian ? __builtin_bswap64(value) : value;

	option(w, id, &ordered, sizeof(ordered));
}

static void option_u32(struct writer *w, enum option_id id, uint32_t value)
{
	const uint32_t ordered = w->sink.big_endian ? __builtin_bswap32(value) : value;

	option(w, id, &ordered, sizeof(ordered));
}

static void option_section(struct writer *w, enum section_id id)
{
	option_u64(w, (enum option_id)id, w->section_offsets[id]);
}

static void put_guest(struct writer *w, const struct tdm_guest_info *guest)
{
	struct tdm_buffer out = { 0 };
	const bool big_endian = w->sink.big_endian;

	w->failed |= tdm_buffer_append(&out, guest->name, strlen(guest->name) + 1) != TDM_OK;
	put_u64(&out, big_endian, guest->trace_id, &w->failed);
	put_u32(&out, big_endian, (uint32_t)guest->vcpu_count, &w->failed);
	for (size_t i = 0; i < guest->vcpu_count; i++) {
		put_u32(&out, big_endian, guest->vcpus[i].vcpu, &w->failed);
		put_u32(&out, big_endian, (uint32_t)guest->vcpus[i].host_tid, &w->failed);
	}
	option(w, OPTION_GUEST, out.bytes, out.size);
	tdm_buffer_release(&out);
}

/* Arrays of a CPU: all times, all offsets, all scalings; the fractions of all CPUs come behind. */
static void put_time_shift(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;
	struct tdm_buffer out = { 0 };
	const bool big_endian = w->sink.big_endian;

	put_u64(&out, big_endian, plan->peer_trace_id, &w->failed);
	put_u32(&out, big_endian, TIME_SHIFT_INTERPOLATE, &w->failed);
	put_u32(&out, big_endian, (uint32_t)plan->shift_cpu_count, &w->failed);
	for (size_t cpu = 0; cpu < plan->shift_cpu_count; cpu++) {
		const struct tdm_shift_cpu *shift = &plan->shift_cpus[cpu];

		put_u32(&out, big_endian, (uint32_t)shift->sample_count, &w->failed);
		for (size_t i = 0; i < shift->sample_count; i++) {
			put_u64(&out, big_endian, (uint64_t)shift->samples[i].time, &w->failed);
		}
		for (size_t i = 0; i < shift->sample_count; i++) {
			put_u64(&out, big_endian, (uint64_t)shift->samples[i].offset, &w->failed);
		}
		for (size_t i = 0; i < shift->sample_count; i++) {
			put_u64(&out, big_endian, 1, &w->failed);
		}
	}
	for (size_t cpu = 0; cpu < plan->shift_cpu_count; cpu++) {
		for (size_t i = 0; i < plan->shift_cpus[cpu].sample_count; i++) {
			put_u64(&out, big_endian, 0, &w->failed);
		}
	}
	option(w, OPTION_TIME_SHIFT, out.bytes, out.size);
	tdm_buffer_release(&out);
}

static void put_tsc2nsec(struct writer *w)
{
	struct tdm_buffer out = { 0 };

	put_u32(&out, w->sink.big_endian, w->plan->tsc_mult, &w->failed);
	put_u32(&out, w->sink.big_endian, w->plan->tsc_shift, &w->failed);
	put_u64(&out, w->sink.big_endian, 0, &w->failed);
	option(w, OPTION_TSC2NSEC, out.bytes, out.size);
	tdm_buffer_release(&out);
}

/* Ends w->body with DONE and writes it as an OPTIONS section; the chain is patched by the next one. */
static void write_options(struct writer *w)
{
	const uint64_t start = w->sink.offset;

	option_u64(w, OPTION_DONE, 0);

	const uint64_t done_value = start + 16 + w->body.size - 8;

	section_header(w, SECTION_OPTIONS, 0, w->body.size);
	sink_bytes(&w->sink, w->body.bytes, w->body.size);
	w->body.size = 0;
	sink_patch_u64(&w->sink, w->done_patch ? w->done_patch : w->first_options_patch, start);
	w->done_patch = done_value;
}

static void write_first_options(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;
	const struct tdm_trace_meta *meta = plan->meta;
	const struct tdm_meta_text *clock = tdm_trace_meta_find(meta, TDM_META_CLOCK);
	const struct tdm_meta_text *uname_text = tdm_trace_meta_find(meta, TDM_META_UNAME);

	for (enum section_id id = SECTION_HEADER_INFO; id <= SECTION_CMDLINES; id++) {
		option_section(w, id);
	}
	if (clock) {
		option_string(w, OPTION_TRACECLOCK, clock->text.bytes, clock->text.size);
	}
	if (uname_text) {
		option_string(w, OPTION_UNAME, uname_text->text.bytes, uname_text->text.size);
	}
	option_string(w, OPTION_VERSION, "tandem", strlen("tandem"));
	option_u64(w, OPTION_TRACEID, plan->trace_id);
	for (size_t i = 0; i < meta->text_count; i++) {
		if (meta->texts[i].kind == TDM_META_CPUSTAT) {
			option_string(w, OPTION_CPUSTAT, meta->texts[i].text.bytes,
				meta->texts[i].text.size);
		}
	}
	for (size_t i = 0; i < plan->guest_count; i++) {
		put_guest(w, &plan->guests[i]);
	}
	/* The reference reader wants the scale before the shift it is applied after. */
	if (plan->has_tsc2nsec) {
		put_tsc2nsec(w);
	}
	if (plan->has_shift) {
		put_time_shift(w);
	}
	option_u32(w, OPTION_CPUCOUNT, meta->cpu_count);
	write_options(w);
}

/* The clock's name out of "local [mono] boot". */
static void current_clock(const struct tdm_trace_meta *meta, char *name, size_t room)
{
	const struct tdm_meta_text *clock = tdm_trace_meta_find(meta, TDM_META_CLOCK);
	const char *open = clock ? memchr(clock->text.bytes, '[', clock->text.size) : NULL;
	const char *end = clock ? (const char *)clock->text.bytes + clock->text.size : NULL;
	const char *shut = open ? memchr(open, ']', (size_t)(end - open)) : NULL;

	snprintf(name, room, "%.*s", shut ? (int)(shut - open - 1) : 0, shut ? open + 1 : "");
}

static void write_buffer(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;
	const uint32_t page_bytes = plan->meta->page_bytes;
	const uint64_t section = w->sink.offset;
	struct tdm_buffer cpus = { 0 };
	uint32_t cpu_count = 0;
	char clock[64];

	section_header(w, SECTION_BUFFER, plan->compress ? FLAG_COMPRESSED : 0, 0);
	for (size_t i = 0; i < plan->spool_count && w->sink.err.status == TDM_OK; i++) {
		const struct tdm_page_spool *spool = &plan->spools[i];
		uint64_t written_bytes = 0;

		if (spool->size_bytes < page_bytes) {
			continue;
		}
		sink_pad_to(&w->sink, page_bytes);

		const uint64_t offset = w->sink.offset;

		copy_pages(&w->sink, spool, page_bytes, plan->compress, &written_bytes);
		put_u32(&cpus, w->sink.big_endian, spool->cpu, &w->failed);
		put_u64(&cpus, w->sink.big_endian, offset, &w->failed);
		put_u64(&cpus, w->sink.big_endian, written_bytes, &w->failed);
		cpu_count++;
	}
	sink_patch_u64(&w->sink, section + 8, w->sink.offset - section - 16);

	struct tdm_buffer out = { 0 };

	current_clock(plan->meta, clock, sizeof(clock));
	put_u64(&out, w->sink.big_endian, section, &w->failed);
	w->failed |= tdm_buffer_append(&out, "", 1) != TDM_OK;
	w->failed |= tdm_buffer_append(&out, clock, strlen(clock) + 1) != TDM_OK;
	put_u32(&out, w->sink.big_endian, page_bytes, &w->failed);
	put_u32(&out, w->sink.big_endian, cpu_count, &w->failed);
	w->failed |= tdm_buffer_append(&out, cpus.bytes, cpus.size) != TDM_OK;
	option(w, OPTION_BUFFER, out.bytes, out.size);
	tdm_buffer_release(&out);
	tdm_buffer_release(&cpus);
	write_options(w);
}

static void write_prefix(struct writer *w)
{
	const struct tdm_trace_meta *meta = w->plan->meta;
	const uint8_t order_and_long[] = { meta->big_endian, (uint8_t)meta->long_bytes };

	sink_bytes(&w->sink, "\x17\x08\x44tracing", 10);
	sink_string(&w->sink, "7");
	sink_bytes(&w->sink, order_and_long, sizeof(order_and_long));
	sink_u32(&w->sink, meta->page_bytes);
	sink_string(&w->sink, w->plan->compress ? "zstd" : "none");
	sink_string(&w->sink, w->plan->compress ? ZSTD_versionString() : "");
	w->first_options_patch = w->sink.offset;
	sink_u64(&w->sink, 0);
}

static enum tdm_status check_plan(const struct tdm_tracedat_plan *plan, struct tdm_error *err)
{
	const struct tdm_trace_meta *meta = plan->meta;

	if (meta->page_bytes < 4096 || (meta->page_bytes & (meta->page_bytes - 1))) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s: page size %" PRIu32 ", wanted a power of two from 4096", plan->path,
			meta->page_bytes);
	}
	if (!tdm_trace_meta_find(meta, TDM_META_HEADER_PAGE)) {
		return tdm_fail(err, TDM_ERR_RANGE, "%s: no header_page text", plan->path);
	}
	for (size_t i = 0; i < plan->spool_count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (plan->spools[i].cpu == plan->spools[j].cpu) {
				return tdm_fail(err, TDM_ERR_RANGE, "%s: CPU %" PRIu32 " twice",
					plan->path, plan->spools[i].cpu);
			}
		}
	}
	return TDM_OK;
}

static enum tdm_status write_all(struct writer *w)
{
	write_prefix(w);
	write_metadata(w);
	write_first_options(w);
	write_buffer(w);
	sink_flush(&w->sink);
	if (w->failed && w->sink.err.status == TDM_OK) {
		tdm_fail(&w->sink.err, TDM_ERR_NOMEM, "%s: no memory", w->plan->path);
	}
	if (w->sink.err.status == TDM_OK && fsync(w->sink.fd) != 0) {
		tdm_fail_errno(&w->sink.err, errno, "%s: fsync", w->sink.path);
	}
	return w->sink.err.status;
}

enum tdm_status tdm_tracedat_write(const struct tdm_tracedat_plan *plan, struct tdm_error *err)
{
	struct writer w = { .plan = plan,
		.sink = { .fd = -1, .big_endian = plan->meta->big_endian } };
	enum tdm_status status = check_plan(plan, err);
	char *temporary = NULL;

	if (status != TDM_OK) {
		return status;
	}
	if (asprintf(&temporary, "%s.part", plan->path) < 0) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", plan->path);
	}
	w.sink.path = temporary;
	w.sink.fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (w.sink.fd < 0) {
		status = tdm_fail_errno(err, errno, "%s", temporary);
		goto out;
	}
	status = write_all(&w);
	if (status == TDM_OK && rename(temporary, plan->path) != 0) {
		status = tdm_fail_errno(
			&w.sink.err, errno, "renaming %s to %s", temporary, plan->path);
	}
	if (status != TDM_OK) {
		if (err) {
			*err = w.sink.err;
		}
		unlink(temporary);
	}
out:
	if (w.sink.fd >= 0) {
		close(w.sink.fd);
	}
	tdm_buffer_release(&w.sink.pending);
	tdm_buffer_release(&w.body);
	tdm_buffer_release(&w.packed);
	free(temporary);
	return status;
}
