/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <string.h>

void option(struct writer *w, enum option_id id, const void *bytes, size_t count)
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
void write_options(struct writer *w)
{
	const uint64_t start = w->sink.offset;

	if (w->version == 6) {
		/* The end mark is the id alone. */
		put_u16(&w->body, w->sink.big_endian, OPTION_DONE, &w->failed);
		sink_bytes(&w->sink, w->body.bytes, w->body.size);
		w->body.size = 0;
		return;
	}
	option_u64(w, OPTION_DONE, 0);

	const uint64_t done_value = start + 16 + w->body.size - 8;

	section_header(w, SECTION_OPTIONS, 0, w->body.size);
	sink_bytes(&w->sink, w->body.bytes, w->body.size);
	w->body.size = 0;
	sink_patch_u64(&w->sink, w->done_patch ? w->done_patch : w->first_options_patch, start);
	w->done_patch = done_value;
}

/* What ties the file to others: guests, the scale and the shift. */
static void put_ties(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;

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
}

void write_first_options(struct writer *w)
{
	const struct tdm_tracedat_plan *plan = w->plan;
	const struct tdm_trace_meta *meta = plan->meta;
	const struct tdm_meta_text *clock = tdm_trace_meta_find(meta, TDM_META_CLOCK);
	const struct tdm_meta_text *uname_text = tdm_trace_meta_find(meta, TDM_META_UNAME);

	for (enum section_id id = SECTION_HEADER_INFO; w->version > 6 && id <= SECTION_CMDLINES;
		id++) {
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
	put_ties(w);
	option_u32(w, OPTION_CPUCOUNT, meta->cpu_count);
	write_options(w);
}

void write_added_options(struct writer *w)
{
	put_ties(w);
	write_options(w);
}
