/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MARK_BYTES = 10,
	WINDOW_BYTES = 64 << 10,
	MAX_CLOCK_BYTES = 4096,
	MAX_OPTIONS_BYTES = 64 << 20 /* of an area without an end */
};

static const char options_mark[MARK_BYTES] = "options  ";
static const char flyrecord_mark[MARK_BYTES] = "flyrecord";
static const char latency_mark[MARK_BYTES] = "latency  ";

/* Reads numbers on the way through a file of which most is passed over. */
struct walker {
	struct tracedat *dat;
	uint64_t pos;
	bool failed; /* a read or a skip passed the end of the file */
	uint64_t window_at;
	size_t window_size;
	uint8_t window[WINDOW_BYTES];
};

static const uint8_t *walker_bytes(struct walker *walker, size_t size)
{
	static const uint8_t zeros[16];

	if (walker->failed) {
		return zeros;
	}
	if (walker->pos < walker->window_at ||
		walker->pos + size > walker->window_at + walker->window_size) {
		walker->window_at = walker->pos;
		walker->window_size = 0;
		(void)tdm_input_file_read(walker->dat->file, walker->pos, walker->window,
			WINDOW_BYTES, &walker->window_size, NULL);
	}
	if (size > walker->window_size ||
		walker->pos - walker->window_at > walker->window_size - size) {
		walker->failed = true;
		return zeros;
	}
	walker->pos += size;
	return walker->window + (walker->pos - size - walker->window_at);
}

static uint32_t walker_u16(struct walker *walker)
{
	return tdm_load_u16(walker_bytes(walker, 2), walker->dat->base.info.big_endian);
}

static uint32_t walker_u32(struct walker *walker)
{
	return tdm_load_u32(walker_bytes(walker, 4), walker->dat->base.info.big_endian);
}

static uint64_t walker_u64(struct walker *walker)
{
	return tdm_load_u64(walker_bytes(walker, 8), walker->dat->base.info.big_endian);
}

static void walker_skip(struct walker *walker, uint64_t size)
{
	const uint64_t file_bytes = walker->dat->file->size_bytes;

	if (walker->failed || walker->pos > file_bytes || size > file_bytes - walker->pos) {
		walker->failed = true;
		return;
	}
	walker->pos += size;
}

static void walker_skip_string(struct walker *walker)
{
	for (size_t i = 0; i < TRACEDAT_MAX_NAME && !walker->failed; i++) {
		if (*walker_bytes(walker, 1) == 0) {
			return;
		}
	}
	walker->failed = true;
}

static bool walker_expect(struct walker *walker, const char *mark, size_t size)
{
	const bool is_there = memcmp(walker_bytes(walker, size), mark, size) == 0;

	walker->failed = walker->failed || !is_there;
	return !walker->failed;
}

static void pass_header_info(struct walker *walker)
{
	if (walker_expect(walker, "header_page", 12)) {
		walker_skip(walker, walker_u64(walker));
	}
	if (walker_expect(walker, "header_event", 13)) {
		walker_skip(walker, walker_u64(walker));
	}
}

static void pass_formats(struct walker *walker)
{
	for (uint32_t left = walker_u32(walker); left && !walker->failed; left--) {
		walker_skip(walker, walker_u64(walker));
	}
}

static void pass_systems(struct walker *walker)
{
	for (uint32_t left = walker_u32(walker); left && !walker->failed; left--) {
		walker_skip_string(walker);
		pass_formats(walker);
	}
}

static void pass_u32_text(struct walker *walker)
{
	walker_skip(walker, walker_u32(walker));
}

static void pass_u64_text(struct walker *walker)
{
	walker_skip(walker, walker_u64(walker));
}

/* The sizes of a damaged block do not lead to the next one: looks for the mark that must come. */
static bool find_mark(struct walker *walker, uint64_t from)
{
	for (uint64_t at = from;;) {
		size_t got = 0;

		(void)tdm_input_file_read(
			walker->dat->file, at, walker->window, WINDOW_BYTES, &got, NULL);
		walker->window_size = 0;
		if (got < MARK_BYTES) {
			return false;
		}
		for (size_t i = 0; i + MARK_BYTES <= got; i++) {
			const uint8_t *here = walker->window + i;

			if ((*here == 'o' || *here == 'f' || *here == 'l') && at + i >= from + 4 &&
				(memcmp(here, options_mark, MARK_BYTES) == 0 ||
					memcmp(here, flyrecord_mark, MARK_BYTES) == 0 ||
					memcmp(here, latency_mark, MARK_BYTES) == 0)) {
				/* The CPU count stands before it. */
				walker->pos = at + i - 4;
				walker->failed = false;
				return true;
			}
		}
		at += got - MARK_BYTES + 1;
	}
}

static bool pass_blocks(struct walker *walker)
{
	struct tracedat *dat = walker->dat;

	const struct {
		const char *name;
		void (*pass)(struct walker *walker);
		struct tracedat_block *block;
	} blocks[] = {
		{ "header info", pass_header_info, &dat->header_info },
		{ "ftrace event formats", pass_formats, &dat->ftrace_events },
		{ "event formats", pass_systems, &dat->event_formats },
		{ "kallsyms", pass_u32_text, &dat->kallsyms },
		{ "printk formats", pass_u32_text, &dat->printk },
		{ "saved command lines", pass_u64_text, &dat->cmdlines },
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		const uint64_t start = walker->pos;

		blocks[i].pass(walker);
		if (walker->failed) {
			trace_fault(&dat->base, start,
				"%s at 0x%" PRIx64 ": its lengths pass the file's end at 0x%" PRIx64
				" or it does not begin as it must; the next blocks are looked for",
				blocks[i].name, start, dat->file->size_bytes);
			if (!find_mark(walker, start)) {
				return false;
			}
			/* What can be read of it: up to the mark at most. */
			*blocks[i].block = (struct tracedat_block){ start, walker->pos - start };
			return true;
		}
		*blocks[i].block = (struct tracedat_block){ start, walker->pos - start };
	}
	return true;
}

static enum tdm_status read_options(struct walker *walker, struct tdm_error *err)
{
	struct tracedat *dat = walker->dat;
	const uint64_t start = walker->pos;
	struct tdm_buffer bytes = { 0 };
	uint64_t next;

	while (!walker->failed && walker_u16(walker)) {
		walker_skip(walker, walker_u32(walker));
	}

	/* Cut or damaged: what comes before is taken, and the data is looked for behind. */
	if (walker->failed) {
		if (find_mark(walker, start)) {
			walker->pos += 4;
		} else {
			walker->pos = start + MAX_OPTIONS_BYTES;
			walker->failed = true;
		}
	}

	enum tdm_status status = tracedat_read(dat, start, walker->pos - start, &bytes, err);

	if (status == TDM_OK) {
		struct tdm_cursor in =
			tdm_cursor_over(bytes.bytes, bytes.size, start, dat->base.info.big_endian);
		struct tdm_error option_err;

		if (tracedat_options_parse(dat, &in, &next, &option_err) != TDM_OK) {
			trace_fault(&dat->base, start, "%s",
				option_err.text + strlen(dat->file->path) + 2);
		}
	}
	tdm_buffer_release(&bytes);
	return status;
}

/* The table of a buffer's data and its clock; the mark is passed. */
static void read_flyrecord(
	struct walker *walker, const char *name, uint32_t cpu_count, bool has_extra)
{
	struct tracedat *dat = walker->dat;
	const uint64_t table = walker->pos;
	struct tdm_error err;
	size_t index = 0;

	if (tracedat_buffer_add(dat, name, "", dat->page_bytes, &index, &err) != TDM_OK) {
		trace_fault(&dat->base, table, "%s", err.text);
		return;
	}
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		const uint64_t offset = walker_u64(walker);
		const uint64_t size = walker_u64(walker);

		if (walker->failed) {
			trace_fault(&dat->base, table,
				"buffer \"%.60s\": %u CPUs are announced, the file ends in the table at 0x%" PRIx64
				" after %u",
				name, cpu_count, table, cpu);
			return;
		}
		tracedat_stream_add(dat, index, cpu, offset, size, false);
	}
	if (has_extra) {
		walker_skip(walker, 16);
	}
	if (!dat->has_clock_option) {
		return;
	}

	/* Very old files lack it or have it damaged: nothing hangs on it but the name. */
	const uint64_t size = walker_u64(walker);

	if (walker->failed || size > MAX_CLOCK_BYTES) {
		walker->failed = false;
		return;
	}

	const char *text = (const char *)walker_bytes(walker, (size_t)size);
	const char *clock = walker->failed ? NULL : tracedat_clock_name(dat, text, (size_t)size);

	if (clock) {
		dat->buffers.items[index].clock = clock;
		if (!*name) {
			dat->base.info.clock = clock;
		}
	}
}

/* Whether the table of an instance lies where that of the top buffer, or of an instance before it, does. */
static bool is_in_other_table(
	const struct tracedat *dat, uint64_t top_offset, size_t index, uint64_t table_bytes)
{
	const uint64_t offset = dat->instances.items[index].offset;

	for (size_t i = 0; i <= index; i++) {
		const uint64_t other = i < index ? dat->instances.items[i].offset : top_offset;

		if (offset - other < table_bytes || other - offset < table_bytes) {
			return true;
		}
	}
	return false;
}

static enum tdm_status read_data(
	struct walker *walker, uint32_t cpu_count, bool has_extra, struct tdm_error *err)
{
	struct tracedat *dat = walker->dat;
	const uint64_t at = walker->pos;
	char mark[MARK_BYTES];

	memcpy(mark, walker_bytes(walker, MARK_BYTES), MARK_BYTES);
	if (memcmp(mark, latency_mark, MARK_BYTES) == 0) {
		dat->latency_count++;
		trace_fault(&dat->base, 0,
			"the data at 0x%" PRIx64
			" is a latency tracer's text: it has no records to read",
			at);
		return TDM_OK;
	}
	if (walker->failed || memcmp(mark, flyrecord_mark, MARK_BYTES) != 0) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: \"flyrecord\" or \"latency\" is wanted at 0x%" PRIx64
			", read \"%.9s\"",
			dat->file->path, at, mark);
	}
	read_flyrecord(walker, "", cpu_count, has_extra);
	for (size_t i = 0; i < dat->instances.count; i++) {
		const struct tracedat_instance *instance = &dat->instances.items[i];

		if (i >= TRACEDAT_MAX_BUFFERS) {
			trace_fault(&dat->base, 0,
				"%zu buffers: those from \"%.60s\" on are passed over",
				dat->instances.count, instance->name);
			break;
		}
		/* Tables that share their bytes would make any number of streams out of few. */
		if (is_in_other_table(dat, at, i, MARK_BYTES + 16 * (uint64_t)cpu_count)) {
			trace_fault(&dat->base, 0,
				"buffer \"%.60s\" at 0x%" PRIx64
				": another buffer's table of data lies there; it is passed over",
				instance->name, instance->offset);
			continue;
		}
		walker->pos = instance->offset;
		walker->failed = false;
		if (!walker_expect(walker, flyrecord_mark, MARK_BYTES)) {
			trace_fault(&dat->base, i,
				"buffer \"%.60s\": \"flyrecord\" is wanted at 0x%" PRIx64,
				instance->name, instance->offset);
			continue;
		}
		read_flyrecord(walker, instance->name, cpu_count, has_extra);
	}
	return TDM_OK;
}

enum tdm_status tracedat_v6_read(struct tracedat *dat, uint64_t offset, struct tdm_error *err)
{
	struct walker *walker = calloc(1, sizeof(*walker));
	enum tdm_status status = TDM_OK;

	if (!walker) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", dat->file->path);
	}
	walker->dat = dat;
	walker->pos = offset;
	if (!pass_blocks(walker)) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s: the file ends before its trace data: no \"options\" or \"flyrecord\" in its %" PRIu64
			" bytes",
			dat->file->path, dat->file->size_bytes);
		goto out;
	}

	const uint32_t table_count = walker_u32(walker);
	const uint64_t mark_at = walker->pos;

	if (memcmp(walker_bytes(walker, MARK_BYTES), options_mark, MARK_BYTES) == 0 &&
		!walker->failed) {
		status = read_options(walker, err);
	} else {
		walker->pos = mark_at;
	}
	if (status != TDM_OK) {
		goto out;
	}

	const uint32_t option_count = dat->base.info.cpu_count;
	uint32_t cpu_count = option_count ? option_count : table_count;

	if (cpu_count > TRACEDAT_MAX_CPU) {
		trace_fault(&dat->base, 0, "CPU count of %u, wanted at most %d", cpu_count,
			TRACEDAT_MAX_CPU);
		cpu_count = TRACEDAT_MAX_CPU;
	}
	dat->base.info.cpu_count = cpu_count;
	status = read_data(walker, cpu_count, option_count > table_count, err);
out:
	free(walker);
	return status;
}
