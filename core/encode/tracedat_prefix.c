/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <string.h>

enum {
	MAGIC_BYTES = 10,
	NAME_MAX_BYTES = 64,
	SECTION_HEADER_BYTES = 16
};

static enum tdm_status read_head(struct tdm_cursor *in, struct prefix_facts *facts,
	uint64_t *options_offset, struct tdm_error *err)
{
	const bool magic_fits = tdm_cursor_expect(in, "\x17\x08\x44tracing", MAGIC_BYTES);
	const char *version = tdm_cursor_string(in, NAME_MAX_BYTES);
	const uint8_t order = tdm_cursor_u8(in);

	in->big_endian = order == 1;
	tdm_cursor_skip(in, 1);
	facts->big_endian = in->big_endian;
	facts->page_bytes = tdm_cursor_u32(in);

	const char *compression = tdm_cursor_string(in, NAME_MAX_BYTES);

	tdm_cursor_string(in, NAME_MAX_BYTES);
	*options_offset = tdm_cursor_u64(in);
	if (in->failed || !magic_fits || strcmp(version, "7") != 0 || order > 1) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"beginning of a trace.dat: version \"%s\", wanted \"7\" behind its magic",
			version ? version : "");
	}
	facts->is_zstd = strcmp(compression, "zstd") == 0;
	return TDM_OK;
}

/* The name in brackets of "local [mono] boot". */
static void take_clock(struct prefix_facts *facts, const struct tdm_cursor *text)
{
	const char *open = memchr(text->bytes, '[', text->size);
	const char *end = (const char *)text->bytes + text->size;
	const char *shut = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
	const size_t length = shut ? (size_t)(shut - open - 1) : 0;

	if (length && length < sizeof(facts->clock)) {
		memcpy(facts->clock, open + 1, length);
		facts->clock[length] = '\0';
	}
}

/* Walks one OPTIONS section. next receives where DONE points to, 0 at the end. */
static enum tdm_status walk_section(const struct tdm_buffer *prefix, uint64_t offset,
	struct prefix_facts *facts, uint64_t *next, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(prefix->bytes, prefix->size, 0, facts->big_endian);

	tdm_cursor_skip(&in, offset);

	const uint16_t id = tdm_cursor_u16(&in);
	const uint16_t flags = tdm_cursor_u16(&in);

	tdm_cursor_skip(&in, 4);

	struct tdm_cursor body = tdm_cursor_take(&in, tdm_cursor_u64(&in));

	if (body.failed || id != SECTION_OPTIONS || (flags & FLAG_COMPRESSED)) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"section at offset %" PRIu64
			": id %u, flags %u, wanted plain options inside %zu bytes",
			offset, id, flags, prefix->size);
	}
	while (tdm_cursor_left(&body)) {
		const uint16_t option_id = tdm_cursor_u16(&body);
		const struct tdm_cursor payload = tdm_cursor_take(&body, tdm_cursor_u32(&body));

		if (payload.failed || (option_id == OPTION_DONE && payload.size != 8)) {
			break;
		}
		if (option_id == OPTION_TRACECLOCK) {
			take_clock(facts, &payload);
		}
		if (option_id == OPTION_DONE) {
			facts->done_offset = payload.base;
			*next = tdm_load_u64(payload.bytes, facts->big_endian);
			return TDM_OK;
		}
	}
	return tdm_fail(
		err, TDM_ERR_FORMAT, "options at offset %" PRIu64 " have no end mark", offset);
}

enum tdm_status read_prefix(
	const struct tdm_buffer *prefix, struct prefix_facts *facts, struct tdm_error *err)
{
	struct tdm_cursor in = tdm_cursor_over(prefix->bytes, prefix->size, 0, false);
	uint64_t offset = 0;

	*facts = (struct prefix_facts){ 0 };

	enum tdm_status status = read_head(&in, facts, &offset, err);

	while (status == TDM_OK && offset) {
		uint64_t next = 0;

		status = walk_section(prefix, offset, facts, &next, err);
		/* A chain that goes back could go round. */
		if (status == TDM_OK && next && next <= offset) {
			status = tdm_fail(err, TDM_ERR_FORMAT,
				"options at offset %" PRIu64 " point back to %" PRIu64, offset,
				next);
		}
		offset = next;
	}
	if (status == TDM_OK && !facts->done_offset) {
		status = tdm_fail(err, TDM_ERR_FORMAT, "beginning of a trace.dat without options");
	}
	return status;
}
