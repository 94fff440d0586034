/* SPDX-License-Identifier: MIT */
#include "stamp_priv.h"
#include "tracedat_priv.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_DONE = 0,
	MAX_TEXT = 1 << 20
};

/* A text that ends with a NUL or with its option. NULL without memory. */
static char *take_text(struct tracedat *dat, struct tdm_cursor *in)
{
	const size_t left = tdm_cursor_left(in);
	const char *at = (const char *)in->bytes + in->pos;
	const size_t size = left ? strnlen(at, left < MAX_TEXT ? left : MAX_TEXT) : 0;

	tdm_cursor_skip(in, size < left ? size + 1 : size);
	return tdm_arena_text(&dat->arena, at, size);
}

static void parse_block(struct tracedat_block *block, struct tdm_cursor *in)
{
	const uint64_t offset = tdm_cursor_u64(in);

	if (!in->failed) {
		block->offset = offset;
	}
}

static void parse_header_info(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->header_info, in);
}

static void parse_ftrace_events(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->ftrace_events, in);
}

static void parse_event_formats(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->event_formats, in);
}

static void parse_kallsyms(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->kallsyms, in);
}

static void parse_printk(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->printk, in);
}

static void parse_cmdlines(struct tracedat *dat, struct tdm_cursor *in)
{
	parse_block(&dat->cmdlines, in);
}

/* As strtoll() with base 0 reads it; negative numbers too. */
static bool parse_signed(const char *text, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 0);
	return end != text && errno == 0;
}

static void add_offset(struct tracedat *dat, struct tdm_cursor *in, int64_t factor)
{
	const uint64_t at = tdm_cursor_offset(in);
	const char *text = take_text(dat, in);
	int64_t number;

	if (!text || !parse_signed(text, &number)) {
		trace_fault(&dat->base, at,
			"time offset at 0x%" PRIx64 ": a number is wanted, read \"%.40s\"", at,
			text ? text : "");
		return;
	}
	dat->base.info.date_offset_ns = (int64_t)((uint64_t)dat->base.info.date_offset_ns +
						  (uint64_t)number * (uint64_t)factor);
}

static void parse_date(struct tracedat *dat, struct tdm_cursor *in)
{
	add_offset(dat, in, 1000);
	dat->base.info.is_unix_time = true;
}

static void parse_offset(struct tracedat *dat, struct tdm_cursor *in)
{
	add_offset(dat, in, 1);
}

static uint64_t number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void parse_cpustat(struct tracedat *dat, struct tdm_cursor *in)
{
	static const char buffer_key[] = "\nBuffer: ";
	const char *text = take_text(dat, in);

	if (!text) {
		return;
	}

	const char *buffer = strstr(text, buffer_key);

	if (buffer) {
		buffer += strlen(buffer_key);

		const char *name = tdm_arena_text(&dat->arena, buffer, strcspn(buffer, "\n"));

		if (name && TRACEDAT_PUSH(&dat->stats_names, name)) {
			dat->stats_buffer = (uint32_t)dat->stats_names.count;
		}
	}

	const char *cpu = strstr(text, "CPU: ");

	if (!cpu) {
		return;
	}

	/* The first number of a key counts: "overrun" is also the end of "commit overrun". */
	(void)TRACEDAT_PUSH(
		&dat->stats, (struct tdm_cpu_stats){
				     .buffer_index = dat->stats_buffer,
				     .cpu = (uint32_t)number_after(cpu, "CPU: "),
				     .entries = number_after(cpu, "\nentries: "),
				     .overrun = number_after(cpu, "\noverrun: "),
				     .commit_overrun = number_after(cpu, "\ncommit overrun: "),
				     .dropped_events = number_after(cpu, "\ndropped events: "),
				     .read_events = number_after(cpu, "\nread events: "),
			     });
}

static void parse_buffer_v7(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	const uint64_t offset = tdm_cursor_u64(in);
	const char *name = tdm_cursor_string(in, TRACEDAT_MAX_NAME);
	const char *clock = tdm_cursor_string(in, TRACEDAT_MAX_NAME);
	const uint32_t page_bytes = tdm_cursor_u32(in);
	const uint32_t count = tdm_cursor_u32(in);
	struct tdm_error err;
	bool is_compressed = false;
	size_t index = 0;

	if (in->failed) {
		trace_fault(&dat->base, at,
			"BUFFER option at 0x%" PRIx64
			": %zu bytes hold no name, clock and CPU count",
			at, in->size);
		return;
	}
	if (tracedat_section_flags(dat, offset, SECTION_BUFFER, &is_compressed, &err) != TDM_OK) {
		/* Only the flags are lost. Data that reads as pages or as chunks shows which it is. */
		trace_fault(&dat->base, at, "buffer \"%.60s\": %s", name, err.text);
		is_compressed = dat->compression != INFLATE_NONE;
	}
	if (tracedat_buffer_add(dat, name, clock, page_bytes, &index, &err) != TDM_OK) {
		trace_fault(&dat->base, at, "BUFFER option at 0x%" PRIx64 ": %s", at, err.text);
		return;
	}
	(void)TRACEDAT_PUSH(&dat->buffer_sections, offset);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t cpu = tdm_cursor_u32(in);
		const uint64_t data_offset = tdm_cursor_u64(in);
		const uint64_t data_size = tdm_cursor_u64(in);

		if (in->failed) {
			trace_fault(&dat->base, at,
				"buffer \"%.60s\": %u CPUs are announced, its option ends after %u",
				name, count, i);
			return;
		}
		tracedat_stream_add(dat, index, cpu, data_offset, data_size, is_compressed);
	}
}

static void parse_buffer(struct tracedat *dat, struct tdm_cursor *in)
{
	if (dat->base.info.version >= 7) {
		parse_buffer_v7(dat, in);
		return;
	}

	const uint64_t at = tdm_cursor_offset(in);
	const uint64_t offset = tdm_cursor_u64(in);
	const char *name = take_text(dat, in);

	if (in->failed || !name) {
		trace_fault(&dat->base, at,
			"BUFFER option at 0x%" PRIx64 ": %zu bytes hold no offset", at, in->size);
	} else if (*name && !TRACEDAT_PUSH(&dat->instances,
				    (struct tracedat_instance){ .offset = offset, .name = name })) {
		trace_fault(&dat->base, at, "buffer \"%.60s\": no memory", name);
	}
}

static void parse_buffer_text(struct tracedat *dat, struct tdm_cursor *in)
{
	(void)tdm_cursor_u64(in);

	const char *name = tdm_cursor_string(in, TRACEDAT_MAX_NAME);

	dat->latency_count++;
	trace_fault(&dat->base, dat->latency_count,
		"buffer \"%.60s\" is a latency tracer's text: it has no records to read",
		name ? name : "");
}

const char *tracedat_clock_name(struct tracedat *dat, const char *text, size_t size)
{
	const char *open = size ? memchr(text, '[', size) : NULL;
	const char *close = open ? memchr(open, ']', size - (size_t)(open - text)) : NULL;

	if (!close || close == open + 1) {
		return NULL;
	}
	return tdm_arena_text(&dat->arena, open + 1, (size_t)(close - open - 1));
}

static void parse_trace_clock(struct tracedat *dat, struct tdm_cursor *in)
{
	const char *name =
		tracedat_clock_name(dat, (const char *)in->bytes + in->pos, tdm_cursor_left(in));

	dat->has_clock_option = true;
	if (name) {
		dat->base.info.clock = name;
	}
}

/* "sysname nodename release machine" */
static void parse_uname(struct tracedat *dat, struct tdm_cursor *in)
{
	char *rest = take_text(dat, in);
	const char *words[4] = { NULL };

	for (size_t i = 0; rest && i < 4; i++) {
		words[i] = strsep(&rest, " \n");
	}
	dat->base.info.hostname = words[1];
	dat->base.info.kernel_release = words[2];
	dat->base.info.architecture = words[3];
}

static void parse_cpucount(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	const uint32_t count = tdm_cursor_u32(in);

	if (in->failed || count > TRACEDAT_MAX_CPU) {
		trace_fault(&dat->base, at,
			"CPUCOUNT option at 0x%" PRIx64 " of %zu bytes: read %u, wanted at most %d",
			at, in->size, count, TRACEDAT_MAX_CPU);
		return;
	}
	dat->base.info.cpu_count = count;
}

static void parse_version(struct tracedat *dat, struct tdm_cursor *in)
{
	dat->base.info.recorder = take_text(dat, in);
}

static void parse_trace_id(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t id = tdm_cursor_u64(in);

	if (!in->failed) {
		dat->base.info.trace_id = id;
		dat->base.info.has_trace_id = true;
	}
}

static void parse_guest(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	const char *name = tdm_cursor_string(in, TRACEDAT_MAX_NAME);
	const uint64_t trace_id = tdm_cursor_u64(in);
	const uint32_t count = tdm_cursor_u32(in);
	uint32_t wrong = 0;

	if (in->failed || count > tdm_cursor_left(in) / 8) {
		trace_fault(&dat->base, at,
			"GUEST option at 0x%" PRIx64 ": %u vCPUs do not fit its %zu bytes", at,
			count, in->size);
		return;
	}

	struct tdm_vcpu *vcpus = tdm_arena_array(&dat->arena, count, sizeof(*vcpus));
	size_t used = 0;

	for (uint32_t i = 0; vcpus && i < count; i++) {
		const uint32_t vcpu = tdm_cursor_u32(in);
		const int32_t host_tid = (int32_t)tdm_cursor_u32(in);

		if (vcpu >= TRACEDAT_MAX_CPU) {
			wrong++;
			continue;
		}
		vcpus[used++] = (struct tdm_vcpu){ .vcpu = vcpu, .host_tid = host_tid };
	}
	if (wrong) {
		trace_fault(&dat->base, at,
			"GUEST option at 0x%" PRIx64 ": %u of its %u vCPU ids are not below %d", at,
			wrong, count, TRACEDAT_MAX_CPU);
	}
	(void)TRACEDAT_PUSH(
		&dat->guests, (struct tdm_guest_info){
				      .name = tdm_arena_text(&dat->arena, name, strlen(name)),
				      .trace_id = trace_id,
				      .vcpus = vcpus,
				      .vcpu_count = used,
			      });
}

static void parse_tsc2nsec(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	const uint32_t mult = tdm_cursor_u32(in);
	const uint32_t shift = tdm_cursor_u32(in);

	if (in->failed || shift > 63) {
		trace_fault(&dat->base, at,
			"TSC2NSEC option at 0x%" PRIx64
			" of %zu bytes: shift %u, wanted at most 63",
			at, in->size, shift);
		return;
	}
	dat->base.info.has_tsc2nsec = mult != 0;
	dat->base.info.tsc_mult = mult;
	dat->base.info.tsc_shift = shift;
}

static int compare_samples(const void *a, const void *b)
{
	const struct tdm_recorded_sample *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

/* By time, and of equal times the first. Insertion keeps equal ones in order; they are sorted nearly always. */
static uint32_t settle_samples(struct tdm_recorded_sample *samples, uint32_t count)
{
	uint32_t kept = 0;
	bool is_sorted = true;

	for (uint32_t i = 1; i < count; i++) {
		is_sorted = is_sorted && samples[i - 1].time <= samples[i].time;
	}
	if (!is_sorted) {
		/* glibc's qsort() is stable as long as it finds memory for its copy. */
		qsort(samples, count, sizeof(*samples), compare_samples);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!kept || samples[kept - 1].time != samples[i].time) {
			samples[kept++] = samples[i];
		}
	}
	return kept;
}

static void parse_time_shift(struct tracedat *dat, struct tdm_cursor *in)
{
	struct tdm_trace_info *info = &dat->base.info;
	const uint64_t at = tdm_cursor_offset(in);
	const uint64_t peer = tdm_cursor_u64(in);
	const uint32_t flags = tdm_cursor_u32(in);
	const uint32_t cpu_count = tdm_cursor_u32(in);

	if (in->failed || cpu_count > tdm_cursor_left(in) / 4) {
		trace_fault(&dat->base, at,
			"TIME_SHIFT option at 0x%" PRIx64 ": %u CPUs do not fit its %zu bytes", at,
			cpu_count, in->size);
		return;
	}

	struct tdm_recorded_shift *cpus = tdm_arena_array(&dat->arena, cpu_count, sizeof(*cpus));
	struct tdm_recorded_sample **samples =
		tdm_arena_array(&dat->arena, cpu_count, sizeof(struct tdm_recorded_sample *));
	uint32_t complete = 0;

	for (; cpus && samples && complete < cpu_count; complete++) {
		const uint32_t count = tdm_cursor_u32(in);

		if (in->failed || count > tdm_cursor_left(in) / 24) {
			trace_fault(&dat->base, at,
				"TIME_SHIFT option at 0x%" PRIx64
				": the %u samples of CPU %u do not fit its %zu bytes",
				at, count, complete, in->size);
			break;
		}
		samples[complete] =
			tdm_arena_array(&dat->arena, count, sizeof(struct tdm_recorded_sample));
		if (!samples[complete]) {
			break;
		}
		for (uint32_t i = 0; i < count; i++) {
			samples[complete][i].time = (int64_t)tdm_cursor_u64(in);
		}
		for (uint32_t i = 0; i < count; i++) {
			samples[complete][i].offset = (int64_t)tdm_cursor_u64(in);
		}
		for (uint32_t i = 0; i < count; i++) {
			samples[complete][i].scaling = (int64_t)tdm_cursor_u64(in);
		}
		cpus[complete].sample_count = count;
	}
	/* Writers put the wrong number of these: what is there is taken, what is not is 0. */
	for (uint32_t cpu = 0; cpu < complete; cpu++) {
		for (uint32_t i = 0; i < cpus[cpu].sample_count && tdm_cursor_left(in) >= 8; i++) {
			samples[cpu][i].fraction = (int64_t)tdm_cursor_u64(in);
		}
	}
	for (uint32_t cpu = 0; cpu < complete; cpu++) {
		cpus[cpu].sample_count = settle_samples(samples[cpu], cpus[cpu].sample_count);
		cpus[cpu].samples = samples[cpu];
	}
	info->has_peer = true;
	info->peer_trace_id = peer;
	info->shift_interpolates = flags & 1;
	info->shift_cpus = cpus;
	info->shift_cpu_count = complete;
}

/* An id that is not here is passed over: HOOK, PROCMAPS, BTF, modules, last boot, and what newer writers add. */
static const struct option_rule {
	uint16_t id;
	const char *name;
	void (*parse)(struct tracedat *dat, struct tdm_cursor *in);
} option_rules[] = {
	{ 1, "DATE", parse_date },
	{ 2, "CPUSTAT", parse_cpustat },
	{ 3, "BUFFER", parse_buffer },
	{ 4, "TRACECLOCK", parse_trace_clock },
	{ 5, "UNAME", parse_uname },
	{ 7, "OFFSET", parse_offset },
	{ 8, "CPUCOUNT", parse_cpucount },
	{ 9, "VERSION", parse_version },
	{ 11, "TRACEID", parse_trace_id },
	{ 12, "TIME_SHIFT", parse_time_shift },
	{ 13, "GUEST", parse_guest },
	{ 14, "TSC2NSEC", parse_tsc2nsec },
	{ SECTION_HEADER_INFO, "HEADER_INFO", parse_header_info },
	{ SECTION_FTRACE_EVENTS, "FTRACE_EVENTS", parse_ftrace_events },
	{ SECTION_EVENT_FORMATS, "EVENT_FORMATS", parse_event_formats },
	{ SECTION_KALLSYMS, "KALLSYMS", parse_kallsyms },
	{ SECTION_PRINTK, "PRINTK", parse_printk },
	{ SECTION_CMDLINES, "CMDLINES", parse_cmdlines },
	{ SECTION_BUFFER_TEXT, "BUFFER_TEXT", parse_buffer_text },
};

enum tdm_status tracedat_options_parse(
	struct tracedat *dat, struct tdm_cursor *in, uint64_t *next, struct tdm_error *err)
{
	const bool is_v7 = dat->base.info.version >= 7;

	*next = 0;
	for (;;) {
		const uint64_t at = tdm_cursor_offset(in);
		const uint16_t id = tdm_cursor_u16(in);

		if (id == OPTION_DONE && !is_v7 && !in->failed) {
			return TDM_OK;
		}

		const uint32_t size = tdm_cursor_u32(in);
		const size_t left = tdm_cursor_left(in);
		struct tdm_cursor value = tdm_cursor_take(in, size);

		if (in->failed) {
			return tdm_fail(err, TDM_ERR_FORMAT,
				"%s: option %u at 0x%" PRIx64
				": %u bytes are announced, %zu are left; wanted an end mark",
				dat->file->path, id, at, size, left);
		}
		if (id == OPTION_DONE) {
			*next = tdm_cursor_u64(&value);
			return TDM_OK;
		}
		for (size_t i = 0; i < sizeof(option_rules) / sizeof(option_rules[0]); i++) {
			if (option_rules[i].id != id) {
				continue;
			}
			option_rules[i].parse(dat, &value);
			if (value.failed) {
				trace_fault(&dat->base, id,
					"option %s at 0x%" PRIx64 " of %u bytes is too short",
					option_rules[i].name, at, size);
			}
		}
	}
}
