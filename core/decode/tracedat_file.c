/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PREFIX_BYTES = 512, /* more than the longest prefix with its strings */
	MAX_CHAIN = 4096,
	MAX_VERSION_TEXT = 256
};

static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };

/* What stands at the beginning of both versions; @p first_options stays 0 for version 6. */
static enum tdm_status read_prefix(
	struct tracedat *dat, struct tdm_cursor *in, uint64_t *first_options, struct tdm_error *err)
{
	struct tdm_trace_info *info = &dat->base.info;
	const char *path = dat->file->path;

	if (!dat->file->size_bytes) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: the file is empty", path);
	}
	if (!tdm_cursor_expect(in, magic, sizeof(magic))) {
		const char *const words = tdm_trace_foreign(path);

		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: neither a trace.dat nor a perf.data file, but %s", path,
			words ? words : "something whose first bytes are not known");
	}

	const char *version = tdm_cursor_string(in, 16);
	char *end = NULL;
	const unsigned long number = version ? strtoul(version, &end, 10) : 0;

	if (!version || end == version || *end || number < 6 || number > 7) {
		return tdm_fail(err, version ? TDM_ERR_UNSUPPORTED : TDM_ERR_FORMAT,
			"%s: trace.dat version \"%s\" at 0xa, wanted 6 or 7", path,
			version ? version : "");
	}
	info->version = (unsigned int)number;
	info->big_endian = tdm_cursor_u8(in) != 0;
	dat->user_long_bytes = tdm_cursor_u8(in);
	in->big_endian = info->big_endian;
	dat->page_bytes = tdm_cursor_u32(in);
	info->compression = "none";
	if (number == 7) {
		const char *name = tdm_cursor_string(in, MAX_VERSION_TEXT);

		(void)tdm_cursor_string(in, MAX_VERSION_TEXT);
		*first_options = tdm_cursor_u64(in);
		if (!in->failed && strcmp(name, "zstd") == 0) {
			dat->compression = INFLATE_ZSTD;
			info->compression = "zstd";
		} else if (!in->failed && strcmp(name, "zlib") == 0) {
			dat->compression = INFLATE_ZLIB;
			info->compression = "zlib";
		} else if (!in->failed && strcmp(name, "none") != 0 && *name) {
			return tdm_fail(err, TDM_ERR_UNSUPPORTED,
				"%s: compression \"%.40s\" at 0x12, wanted none, zlib or zstd",
				path, name);
		}
	}
	if (in->failed) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: the prefix is cut: the file has %" PRIu64 " bytes", path,
			dat->file->size_bytes);
	}
	return TDM_OK;
}

/* Follows the chain of OPTIONS sections. Damage ends it and becomes a fault: what came before stays. True: to its end. */
static bool read_options_chain(struct tracedat *dat, uint64_t offset)
{
	uint64_t *visited = calloc(MAX_CHAIN, sizeof(*visited));
	size_t count = 0;
	bool is_whole = false;
	/* Sections that overlap could be parsed again and again. */
	uint64_t bytes_left = 4 * dat->file->size_bytes + (1 << 20);

	while (offset && visited) {
		struct tdm_buffer bytes = { 0 };
		struct tdm_cursor in;
		struct tdm_error err;
		uint64_t next = 0;

		for (size_t i = 0; i < count; i++) {
			if (visited[i] == offset) {
				trace_fault(&dat->base, 0,
					"options section at 0x%" PRIx64
					": the chain of options leads back to it",
					offset);
				goto out;
			}
		}
		if (count == MAX_CHAIN) {
			trace_fault(&dat->base, 0,
				"more than %d options sections; the one at 0x%" PRIx64
				" and what follows is not read",
				MAX_CHAIN, offset);
			goto out;
		}
		visited[count++] = offset;

		enum tdm_status status =
			tracedat_section_read(dat, offset, SECTION_OPTIONS, &bytes, &in, &err);

		if (status == TDM_OK) {
			status = bytes.size <= bytes_left
					 ? tracedat_options_parse(dat, &in, &next, &err)
					 : tdm_fail(&err, TDM_ERR_FORMAT,
						   "%s: options section at 0x%" PRIx64
						   ": its %zu bytes overlap others",
						   dat->file->path, offset, bytes.size);
			bytes_left -= bytes.size <= bytes_left ? bytes.size : bytes_left;
		}
		tdm_buffer_release(&bytes);
		if (status != TDM_OK) {
			trace_fault(
				&dat->base, offset, "%s", err.text + strlen(dat->file->path) + 2);
			goto out;
		}
		offset = next;
	}
	is_whole = count > 0;
out:
	free(visited);
	return is_whole;
}

/* Reads one block of metadata and gives it to its parser. Damage loses that block only. */
static void take_block(struct tracedat *dat, const struct tracedat_block *block,
	unsigned int section_id, void (*take)(struct tracedat *dat, struct tdm_cursor *in))
{
	struct tdm_buffer bytes = { 0 };
	struct tdm_cursor body;
	struct tdm_error err;

	if (tracedat_block_read(dat, block, section_id, &bytes, &body, &err) == TDM_OK) {
		take(dat, &body);
	} else {
		trace_fault(&dat->base, section_id, "%s", err.text + strlen(dat->file->path) + 2);
		if (section_id == SECTION_HEADER_INFO) {
			body = tdm_cursor_over(NULL, 0, block->offset, false);
			take(dat, &body);
		}
	}
	tdm_buffer_release(&bytes);
}

static enum tdm_status read_metadata(struct tracedat *dat, struct tdm_error *err)
{
	struct tdm_trace *base = &dat->base;

	take_block(dat, &dat->header_info, SECTION_HEADER_INFO, tracedat_take_header_info);
	dat->layout.big_endian = base->info.big_endian;
	base->info.long_bytes = dat->layout.commit_bytes;
	base->schema = tdm_schema_create(base->info.big_endian, base->info.long_bytes);
	if (!base->schema) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", dat->file->path);
	}
	if (dat->ftrace_events.offset) {
		take_block(dat, &dat->ftrace_events, SECTION_FTRACE_EVENTS,
			tracedat_take_ftrace_events);
	}
	if (dat->event_formats.offset) {
		take_block(dat, &dat->event_formats, SECTION_EVENT_FORMATS,
			tracedat_take_event_formats);
	}
	if (dat->cmdlines.offset) {
		take_block(dat, &dat->cmdlines, SECTION_CMDLINES, tracedat_take_cmdlines);
	}
	if (tdm_schema_count(base->schema)) {
		const struct tdm_field *type =
			tdm_event_class_field(tdm_schema_at(base->schema, 0), "common_type");

		if (type && type->size_bytes == 2 && type->offset_bytes <= TRACEDAT_MIN_PAGE) {
			dat->layout.id_offset = (uint16_t)type->offset_bytes;
		}
	}
	return TDM_OK;
}

static void close_tracedat(struct tdm_trace *trace)
{
	struct tracedat *dat = (struct tracedat *)trace;

	trace_release(trace);
	inflate_pool_destroy(dat->pool);
	free(dat->buffers.items);
	free(dat->streams.items);
	free(dat->data.items);
	free(dat->instances.items);
	free(dat->buffer_sections.items);
	free(dat->guests.items);
	free(dat->stats.items);
	free(dat->stats_names.items);
	tdm_arena_release(&dat->arena);
	tdm_input_file_close(dat->file);
	free(dat);
}

static const char *saved_comm(const struct tdm_trace *trace, int32_t tid)
{
	const struct tracedat *dat = (const struct tracedat *)trace;
	size_t low = 0, high = dat->comm_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (dat->comms[middle].tid < tid) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < dat->comm_count && dat->comms[low].tid == tid ? dat->comms[low].name : NULL;
}

/* A length of 4 or 8 bytes, then so many bytes, or what there is of them. */
static enum tdm_status append_sized(struct tdm_cursor *in, bool is_u64, struct tdm_buffer *text)
{
	const uint64_t size = is_u64 ? tdm_cursor_u64(in) : tdm_cursor_u32(in);
	const size_t left = tdm_cursor_left(in);
	const size_t used = size < left ? (size_t)size : left;

	return used ? tdm_buffer_append(text, in->bytes + in->pos, used) : TDM_OK;
}

static enum tdm_status append_header(
	struct tdm_cursor *in, enum tdm_trace_text which, struct tdm_buffer *text)
{
	if (!tdm_cursor_expect(in, "header_page", 12)) {
		return TDM_OK;
	}
	if (which == TDM_TEXT_HEADER_PAGE) {
		return append_sized(in, true, text);
	}
	tdm_cursor_skip(in, tdm_cursor_u64(in));
	if (!tdm_cursor_expect(in, "header_event", 13)) {
		return TDM_OK;
	}
	return append_sized(in, true, text);
}

static enum tdm_status read_text(struct tdm_trace *trace, enum tdm_trace_text which,
	struct tdm_buffer *text, struct tdm_error *err)
{
	struct tracedat *dat = (struct tracedat *)trace;

	const struct {
		const struct tracedat_block *block;
		unsigned int id;
	} blocks[] = {
		[TDM_TEXT_HEADER_PAGE] = { &dat->header_info, SECTION_HEADER_INFO },
		[TDM_TEXT_HEADER_EVENT] = { &dat->header_info, SECTION_HEADER_INFO },
		[TDM_TEXT_KALLSYMS] = { &dat->kallsyms, SECTION_KALLSYMS },
		[TDM_TEXT_PRINTK_FORMATS] = { &dat->printk, SECTION_PRINTK },
		[TDM_TEXT_SAVED_CMDLINES] = { &dat->cmdlines, SECTION_CMDLINES },
	};
	struct tdm_buffer bytes = { 0 };
	struct tdm_cursor body;
	enum tdm_status status =
		tracedat_block_read(dat, blocks[which].block, blocks[which].id, &bytes, &body, err);

	if (status == TDM_OK) {
		if (blocks[which].id == SECTION_HEADER_INFO) {
			status = append_header(&body, which, text);
		} else {
			status = append_sized(&body, which == TDM_TEXT_SAVED_CMDLINES, text);
		}
		if (status != TDM_OK) {
			(void)tdm_fail(err, status, "%s: no memory", dat->file->path);
		}
	}
	tdm_buffer_release(&bytes);
	return status;
}

static const struct trace_ops tracedat_ops = {
	.close = close_tracedat,
	.saved_comm = saved_comm,
	.read_text = read_text,
	.reader_create = tracedat_reader_create,
	.reader_destroy = tracedat_reader_destroy,
	.next_batch = tracedat_reader_next_batch,
	.rewind = tracedat_reader_rewind,
};

static enum tdm_status read_file(struct tracedat *dat, struct tdm_error *err)
{
	uint8_t bytes[PREFIX_BYTES];
	uint64_t first_options = 0;
	bool has_all_options = true;
	size_t got = 0;
	enum tdm_status status = tdm_input_file_read(dat->file, 0, bytes, sizeof(bytes), &got, err);

	if (status != TDM_OK) {
		return status;
	}

	struct tdm_cursor prefix = tdm_cursor_over(bytes, got, 0, false);

	status = read_prefix(dat, &prefix, &first_options, err);
	if (status != TDM_OK) {
		return status;
	}
	dat->layout.commit_bytes = dat->user_long_bytes == 4 ? 4 : 8;
	if (dat->base.info.version == 6) {
		status = tracedat_v6_read(dat, tdm_cursor_offset(&prefix), err);
	} else {
		has_all_options = read_options_chain(dat, first_options);
	}
	if (status == TDM_OK) {
		status = read_metadata(dat, err);
	}
	if (status == TDM_OK && !has_all_options) {
		tracedat_salvage(dat, tdm_cursor_offset(&prefix));
	}
	if (status == TDM_OK) {
		status = tracedat_settle(dat, err);
	}
	if (status != TDM_OK || dat->buffers.count) {
		return status;
	}
	if (dat->latency_count) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: a latency tracer's text, no records: read it with trace-cmd report",
			dat->file->path);
	}
	if (tdm_trace_fault_count(&dat->base)) {
		const char *first = tdm_trace_fault_at(&dat->base, 0).text;

		return tdm_fail(err, TDM_ERR_FORMAT, "%s; no buffer can be read", first);
	}
	return tdm_fail(err, TDM_ERR_FORMAT, "%s: no BUFFER option: the file holds no trace data",
		dat->file->path);
}

enum tdm_status tracedat_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err)
{
	struct tdm_error ignored;
	struct tracedat *dat = calloc(1, sizeof(*dat));

	if (!err) {
		err = &ignored;
	}
	if (!dat) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	dat->base.info.format = TDM_FORMAT_TRACEDAT;

	enum tdm_status status = trace_init(&dat->base, &tracedat_ops, options, log, err);

	if (status == TDM_OK) {
		dat->pool = inflate_pool_create();
		status = dat->pool ? tdm_input_file_open(path, &dat->file, err)
				   : tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	if (status == TDM_OK) {
		dat->base.info.path = dat->file->path;
		status = read_file(dat, err);
	}
	if (status != TDM_OK) {
		close_tracedat(&dat->base);
		return status;
	}
	*trace = &dat->base;
	return TDM_OK;
}
