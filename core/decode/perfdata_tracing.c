/* SPDX-License-Identifier: MIT */
/*
 * The tracing data block of a perf.data file: what a trace.dat of version 0.6 begins with.
 */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_FORMATS = 65536,
	MAX_NAME = 256
};

/* Passes "NAME" NUL u64 size, data. */
static void skip_named(struct tdm_cursor *in, const char *name)
{
	if (tdm_cursor_expect(in, name, strlen(name) + 1)) {
		tdm_cursor_skip(in, tdm_cursor_u64(in));
	}
}

static void add_format(struct perfdata *pd, const char *system, struct tdm_cursor *in)
{
	const uint64_t size = tdm_cursor_u64(in);
	const uint64_t at = tdm_cursor_offset(in);
	const struct tdm_cursor text = tdm_cursor_take(in, size);
	struct tdm_error err;

	if (text.failed) {
		return;
	}
	if (tdm_schema_add(pd->trace.schema, system, (const char *)text.bytes, text.size, &err) !=
		TDM_OK) {
		trace_fault(&pd->trace, at, "tracing data at 0x%" PRIx64 ": %s", at, err.text);
	}
}

static void read_formats(struct perfdata *pd, struct tdm_cursor *in)
{
	/* Formats of ftrace's own events come first, without a system. */
	const uint32_t own_count = tdm_cursor_u32(in);

	for (uint32_t i = 0; i < own_count && !in->failed && i < MAX_FORMATS; i++) {
		add_format(pd, "ftrace", in);
	}

	const uint32_t system_count = tdm_cursor_u32(in);

	for (uint32_t i = 0; i < system_count && !in->failed; i++) {
		const char *system = tdm_cursor_string(in, MAX_NAME);
		const uint32_t count = tdm_cursor_u32(in);

		for (uint32_t j = 0; j < count && !in->failed && j < MAX_FORMATS; j++) {
			add_format(pd, system, in);
		}
	}
}

/* Lines of "TID NAME". */
static void read_comms(struct perfdata *pd, struct tdm_cursor *in)
{
	const char *at = (const char *)in->bytes;
	const char *const end = at + in->size;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = newline ? newline : end;
		int64_t tid = 0;
		bool has_digit = false;

		while (at < line_end && *at >= '0' && *at <= '9' && tid <= INT32_MAX) {
			tid = tid * 10 + (*at++ - '0');
			has_digit = true;
		}
		if (has_digit && tid <= INT32_MAX && at < line_end && *at == ' ') {
			at++;
			perfdata_task_comm(pd, -1, (int32_t)tid, 0, at, (size_t)(line_end - at));
		}
		at = line_end + 1;
	}
}

enum tdm_status perfdata_tracing_read(struct perfdata *pd, struct tdm_error *err)
{
	struct tdm_cursor in =
		tdm_cursor_over(pd->tracing.bytes, pd->tracing.size, 0, pd->big_endian);
	unsigned int long_bytes = 8;
	bool big_endian = pd->big_endian;
	bool is_block = false;
	unsigned int minor = 0;

	if (pd->has_tracing) {
		const char *version = NULL;

		if (tdm_cursor_expect(&in, "\x17\x08\x44tracing", 10)) {
			version = tdm_cursor_string(&in, 16);
		}
		big_endian = tdm_cursor_u8(&in) != 0;
		long_bytes = tdm_cursor_u8(&in);
		tdm_cursor_skip(&in, 4); /* page size: of no use, samples are no pages */
		is_block = version && !in.failed && (long_bytes == 4 || long_bytes == 8);
		if (version && strncmp(version, "0.", 2) == 0) {
			minor = (unsigned int)strtoul(version + 2, NULL, 10);
		}
		if (!is_block) {
			trace_fault(&pd->trace, 0,
				"the tracing data does not begin as such: the fields of its events are unknown");
			long_bytes = 8;
			big_endian = pd->big_endian;
		}
	}
	in.big_endian = big_endian;
	pd->trace.info.long_bytes = long_bytes;
	pd->trace.schema = tdm_schema_create(big_endian, long_bytes);
	if (!pd->trace.schema) {
		return tdm_fail(
			err, TDM_ERR_NOMEM, "%s: no memory for its event formats", pd->path);
	}
	if (!is_block) {
		return TDM_OK;
	}
	skip_named(&in, "header_page");
	skip_named(&in, "header_event");
	read_formats(pd, &in);
	tdm_cursor_skip(&in, tdm_cursor_u32(&in)); /* kallsyms */
	tdm_cursor_skip(&in, tdm_cursor_u32(&in)); /* printk formats */
	if (in.failed) {
		trace_fault(&pd->trace, 0,
			"the tracing data is cut short or damaged: %zu event formats could be read",
			tdm_schema_count(pd->trace.schema));
		return TDM_OK;
	}
	if (minor >= 6 && tdm_cursor_left(&in)) {
		struct tdm_cursor comms = tdm_cursor_take(&in, tdm_cursor_u64(&in));

		if (!comms.failed) {
			read_comms(pd, &comms);
		}
	}
	return TDM_OK;
}
