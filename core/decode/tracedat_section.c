/* SPDX-License-Identifier: MIT */
#include "tracedat_priv.h"
#include <inttypes.h>

enum {
	HEADER_BYTES = 16,
	FLAG_COMPRESSED = 1,
	/* The largest blocks of real files are kallsyms of 12 MB and time shifts of 32 MB. */
	MAX_BLOCK_BYTES = 256 << 20,
	/* Kernel texts shrink to a 40th at most; a block that claims more than this is no text of a kernel. */
	MAX_RATIO = 256,
	FREE_BYTES = 256 << 10
};

struct header {
	unsigned int id, flags;
	uint64_t size; /* of the body, in the file */
};

enum tdm_status tracedat_read(struct tracedat *dat, uint64_t offset, uint64_t size,
	struct tdm_buffer *out, struct tdm_error *err)
{
	const uint64_t file_bytes = dat->file->size_bytes;
	const uint64_t left = offset < file_bytes ? file_bytes - offset : 0;
	size_t got = 0;

	if (size > left) {
		size = left;
	}
	if (!size) {
		return TDM_OK;
	}
	if (size > MAX_BLOCK_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: a block of metadata of %" PRIu64 " bytes at 0x%" PRIx64
			", wanted at most %d",
			dat->file->path, size, offset, MAX_BLOCK_BYTES);
	}
	if (tdm_buffer_reserve(out, (size_t)size) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM,
			"%s: no memory for the %" PRIu64 " bytes at 0x%" PRIx64, dat->file->path,
			size, offset);
	}

	const enum tdm_status status = tdm_input_file_read(
		dat->file, offset, out->bytes + out->size, (size_t)size, &got, err);

	out->size += got;
	return status;
}

static enum tdm_status read_header(struct tracedat *dat, uint64_t offset, unsigned int wanted_id,
	struct header *header, struct tdm_error *err)
{
	uint8_t bytes[HEADER_BYTES];
	size_t got = 0;
	const enum tdm_status status =
		tdm_input_file_read(dat->file, offset, bytes, sizeof(bytes), &got, err);

	if (status != TDM_OK) {
		return status;
	}

	struct tdm_cursor in = tdm_cursor_over(bytes, got, offset, dat->base.info.big_endian);

	header->id = tdm_cursor_u16(&in);
	header->flags = tdm_cursor_u16(&in);
	(void)tdm_cursor_u32(&in);
	header->size = tdm_cursor_u64(&in);
	if (in.failed) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: a section header of 16 bytes is wanted at 0x%" PRIx64
			", the file has %" PRIu64 " bytes",
			dat->file->path, offset, dat->file->size_bytes);
	}
	if (header->id != wanted_id) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: section at 0x%" PRIx64 " has id %u, wanted %u", dat->file->path,
			offset, header->id, wanted_id);
	}
	return TDM_OK;
}

enum tdm_status tracedat_section_flags(struct tracedat *dat, uint64_t offset,
	unsigned int wanted_id, bool *is_compressed, struct tdm_error *err)
{
	struct header header;
	const enum tdm_status status = read_header(dat, offset, wanted_id, &header, err);

	if (status == TDM_OK) {
		*is_compressed = header.flags & FLAG_COMPRESSED;
	}
	return status;
}

static enum tdm_status unpack(struct tracedat *dat, struct tdm_cursor *packed,
	struct tdm_buffer *bytes, struct tdm_error *err)
{
	const uint64_t at = tdm_cursor_offset(packed);
	const uint32_t in_size = tdm_cursor_u32(packed);
	const uint32_t out_size = tdm_cursor_u32(packed);
	const struct tdm_cursor in = tdm_cursor_take(packed, in_size);

	if (packed->failed) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: compressed section at 0x%" PRIx64 ": %u packed bytes pass its end",
			dat->file->path, at, in_size);
	}
	if (out_size > (uint64_t)in_size * MAX_RATIO + FREE_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: compressed section at 0x%" PRIx64
			": %u bytes cannot come out of %u packed ones",
			dat->file->path, at, out_size, in_size);
	}
	if (tdm_buffer_reserve(bytes, (size_t)out_size + 1) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for %u bytes", dat->file->path,
			out_size);
	}

	struct inflate_context *context = inflate_take(dat->pool, 0);

	if (!context) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", dat->file->path);
	}

	const char *fault =
		inflate_block(context, dat->compression, in.bytes, in.size, bytes->bytes, out_size);

	inflate_give(dat->pool, context);
	if (fault) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: compressed section at 0x%" PRIx64 ", %u bytes from %u: %s",
			dat->file->path, at, out_size, in_size, fault);
	}
	bytes->size = out_size;
	return TDM_OK;
}

enum tdm_status tracedat_section_read(struct tracedat *dat, uint64_t offset, unsigned int wanted_id,
	struct tdm_buffer *bytes, struct tdm_cursor *body, struct tdm_error *err)
{
	const bool big_endian = dat->base.info.big_endian;
	struct header header;
	struct tdm_buffer packed = { 0 };
	enum tdm_status status = read_header(dat, offset, wanted_id, &header, err);

	if (status != TDM_OK) {
		return status;
	}

	const uint64_t start = offset + HEADER_BYTES;
	const bool is_packed = header.flags & FLAG_COMPRESSED;

	status = tracedat_read(dat, start, header.size, is_packed ? &packed : bytes, err);
	if (status != TDM_OK) {
		goto out;
	}

	const size_t got = is_packed ? packed.size : bytes->size;

	if (got < header.size) {
		trace_fault(&dat->base, offset,
			"section %u at 0x%" PRIx64 " has %" PRIu64
			" bytes, the file ends after %zu of them",
			header.id, offset, header.size, got);
	}
	if (is_packed) {
		struct tdm_cursor in =
			tdm_cursor_over(packed.bytes, packed.size, start, big_endian);

		status = unpack(dat, &in, bytes, err);
	}
	*body = tdm_cursor_over(bytes->bytes, bytes->size, start, big_endian);
out:
	tdm_buffer_release(&packed);
	return status;
}

enum tdm_status tracedat_block_read(struct tracedat *dat, const struct tracedat_block *block,
	unsigned int wanted_id, struct tdm_buffer *bytes, struct tdm_cursor *body,
	struct tdm_error *err)
{
	*body = tdm_cursor_over(NULL, 0, block->offset, dat->base.info.big_endian);
	if (!block->offset) {
		return TDM_OK;
	}
	if (dat->base.info.version >= 7) {
		return tracedat_section_read(dat, block->offset, wanted_id, bytes, body, err);
	}

	const enum tdm_status status = tracedat_read(dat, block->offset, block->size, bytes, err);

	*body = tdm_cursor_over(
		bytes->bytes, bytes->size, block->offset, dat->base.info.big_endian);
	return status;
}
