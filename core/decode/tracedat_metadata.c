/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_HEADER_TEXT = 64 << 10
};

/* Number after key in the line of the field name: "\tfield: local_t commit;\toffset:8;\tsize:8;". */
static bool field_number(
	const char *text, const char *field, const char *key, unsigned long *number)
{
	const char *at = strstr(text, field);
	const size_t line = at ? strcspn(at, "\n") : 0;
	const char *value = at ? strstr(at, key) : NULL;

	if (!value || value >= at + line) {
		return false;
	}
	*number = strtoul(value + strlen(key), NULL, 10);
	return true;
}

static bool is_page_size(unsigned long bytes)
{
	return bytes >= TRACEDAT_MIN_PAGE && bytes <= TRACEDAT_MAX_PAGE &&
	       (bytes & (bytes - 1)) == 0;
}

static void take_header_page(struct tracedat *dat, const char *text)
{
	unsigned long number = 0, offset = 0;

	if (field_number(text, " timestamp;", "size:", &number) && number != 8) {
		trace_fault(
			&dat->base, 0, "header_page: time stamps of %lu bytes, wanted 8", number);
	}
	if (field_number(text, " commit;", "size:", &number)) {
		if (number == 4 || number == 8) {
			dat->layout.commit_bytes = (uint8_t)number;
		} else {
			trace_fault(&dat->base, 0,
				"header_page: commit of %lu bytes, wanted 4 or 8", number);
		}
	}
	dat->layout.header_bytes = 8 + dat->layout.commit_bytes;
	if (field_number(text, " data;", "offset:", &offset) &&
		offset != dat->layout.header_bytes) {
		trace_fault(&dat->base, 0, "header_page: data at offset %lu, wanted %u", offset,
			dat->layout.header_bytes);
	}
	if (!is_page_size(dat->page_bytes)) {
		const bool is_told = field_number(text, " data;", "size:", &number) &&
				     is_page_size(offset + number);
		const uint32_t taken = is_told ? (uint32_t)(offset + number) : TRACEDAT_MIN_PAGE;

		trace_fault(&dat->base, 0,
			"page size of %u bytes, wanted a power of two from %d to %d: %u taken",
			dat->page_bytes, TRACEDAT_MIN_PAGE, TRACEDAT_MAX_PAGE, taken);
		dat->page_bytes = taken;
	}
}

static void take_header_event(struct tracedat *dat, const char *text)
{
	static const struct {
		const char *line, *key;
		unsigned long wanted;
	} constants[] = {
		{ "type_len ", ":", 5 },
		{ "time_delta ", ":", 27 },
		{ "array ", ":", 32 },
		{ "padding ", "==", 29 },
		{ "time_extend ", "==", 30 },
		{ "time_stamp ", "==", 31 },
		{ "data max type_len ", "==", 28 },
	};

	unsigned long number = 0;

	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (field_number(text, constants[i].line, constants[i].key, &number) &&
			number != constants[i].wanted) {
			trace_fault(&dat->base, i,
				"header_event: %s is %lu, wanted %lu; records are read as if it were",
				constants[i].line, number, constants[i].wanted);
		}
	}
}

static char *take_named_text(struct tdm_cursor *in, const char *name)
{
	if (!tdm_cursor_expect(in, name, strlen(name) + 1)) {
		return NULL;
	}

	const uint64_t size = tdm_cursor_u64(in);
	const struct tdm_cursor text = tdm_cursor_take(in, size);

	if (in->failed || text.size > MAX_HEADER_TEXT) {
		return NULL;
	}
	return strndup(text.size ? (const char *)text.bytes : "", text.size);
}

void tracedat_take_header_info(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	char *page = take_named_text(in, "header_page");
	char *event = page ? take_named_text(in, "header_event") : NULL;

	if (!event) {
		trace_fault(&dat->base, at,
			"header info at 0x%" PRIx64
			" of %zu bytes: header_page and header_event are wanted; a long of %u bytes is assumed",
			at, in->size, dat->layout.commit_bytes);
	}
	if (page && !*page) {
		trace_fault(&dat->base, at,
			"header_page at 0x%" PRIx64
			" is empty: a kernel before 2.6.31, whose records cannot be read",
			at);
	}
	take_header_page(dat, page ? page : "");
	take_header_event(dat, event ? event : "");
	free(page);
	free(event);
}

static void take_format(struct tracedat *dat, const char *system, const struct tdm_cursor *text)
{
	const size_t before = tdm_schema_count(dat->base.schema);
	struct tdm_error err;

	if (tdm_schema_add(dat->base.schema, system, (const char *)text->bytes, text->size, &err) !=
		TDM_OK) {
		trace_fault(&dat->base, text->base, "system %s: %s", system, err.text);
	} else if (tdm_schema_count(dat->base.schema) > before) {
		const struct tdm_event_class *added = tdm_schema_at(dat->base.schema, before);

		if (added->fault) {
			trace_fault(&dat->base, text->base, "event %s:%s: %s", added->system,
				added->name, added->fault);
		}
	}
}

/* u64 length and text, count times. */
static void take_formats(
	struct tracedat *dat, struct tdm_cursor *in, const char *system, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t at = tdm_cursor_offset(in);
		const uint64_t size = tdm_cursor_u64(in);
		const size_t left = tdm_cursor_left(in);
		const struct tdm_cursor text = tdm_cursor_take(in, size);

		if (in->failed) {
			trace_fault(&dat->base, 0,
				"event formats at 0x%" PRIx64
				", system %s, format %u of %u: %" PRIu64
				" bytes are announced, %zu are left",
				at, system, i + 1, count, size, left);
			return;
		}
		take_format(dat, system, &text);
	}
}

void tracedat_take_ftrace_events(struct tracedat *dat, struct tdm_cursor *in)
{
	take_formats(dat, in, "ftrace", tdm_cursor_u32(in));
}

void tracedat_take_event_formats(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint32_t systems = tdm_cursor_u32(in);

	for (uint32_t i = 0; i < systems && !in->failed; i++) {
		const uint64_t at = tdm_cursor_offset(in);
		const char *system = tdm_cursor_string(in, TRACEDAT_MAX_NAME);
		const uint32_t count = tdm_cursor_u32(in);

		if (in->failed) {
			trace_fault(&dat->base, 0,
				"event formats at 0x%" PRIx64
				": system %u of %u: a name and a count are wanted, the block ends",
				at, i + 1, systems);
			return;
		}
		take_formats(dat, in, system, count);
	}
}

static int compare_comms(const void *a, const void *b)
{
	const struct tracedat_comm *left = a, *right = b;

	if (left->tid != right->tid) {
		return left->tid < right->tid ? -1 : 1;
	}
	return left->order < right->order ? -1 : 1;
}

void tracedat_take_cmdlines(struct tracedat *dat, struct tdm_cursor *in)
{
	const uint64_t at = tdm_cursor_offset(in);
	const uint64_t size = tdm_cursor_u64(in);
	const size_t left = tdm_cursor_left(in);

	if (in->failed || size > left) {
		trace_fault(&dat->base, 0,
			"saved command lines at 0x%" PRIx64 ": %" PRIu64
			" bytes are announced, %zu are there",
			at, size, left);
	}

	const size_t used = size < left ? (size_t)size : left;
	char *text = used ? tdm_arena_text(&dat->arena, in->bytes + in->pos, used) : NULL;
	size_t lines = 1;

	if (!text) {
		return;
	}
	for (const char *scan = text; (scan = strchr(scan, '\n')); scan++) {
		lines++;
	}
	dat->comms = tdm_arena_array(&dat->arena, lines, sizeof(*dat->comms));
	for (char *rest = text; dat->comms && rest;) {
		char *line = strsep(&rest, "\n");
		char *name;
		const long tid = strtol(line, &name, 10);

		/* The name is all behind one blank: it may have blanks itself. */
		if (name != line && *name == ' ' && name[1] && tid >= 0 && tid <= INT32_MAX) {
			dat->comms[dat->comm_count] = (struct tracedat_comm){
				.tid = (int32_t)tid,
				.order = (uint32_t)dat->comm_count,
				.name = name + 1,
			};
			dat->comm_count++;
		}
	}
	if (dat->comms && dat->comm_count) {
		qsort(dat->comms, dat->comm_count, sizeof(*dat->comms), compare_comms);
	}
}
