/* SPDX-License-Identifier: MIT */
/*
 * encode_priv.h - what the files of core/encode share.
 */
#ifndef ENCODE_PRIV_H
#define ENCODE_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/status.h>
#include <tandem/tracedat_writer.h>

/* A file that is written front to back, with patches behind; fails once, then stays failed. */
struct byte_sink {
	int fd;           /* borrowed; -1 = everything stays in pending */
	const char *path; /* for messages; borrowed */
	bool big_endian;
	uint64_t offset; /* of the next byte in the file, buffered ones counted */
	struct tdm_buffer pending;
	struct tdm_error err; /* status TDM_OK while all went well */
};

void sink_bytes(struct byte_sink *sink, const void *bytes, size_t count);
void sink_u16(struct byte_sink *sink, uint16_t value);
void sink_u32(struct byte_sink *sink, uint32_t value);
void sink_u64(struct byte_sink *sink, uint64_t value);
void sink_string(struct byte_sink *sink, const char *text); /* with its NUL */
void sink_pad_to(struct byte_sink *sink, uint64_t alignment);
enum tdm_status sink_flush(struct byte_sink *sink);

/* Overwrites 8 bytes that were written before. */
void sink_patch_u64(struct byte_sink *sink, uint64_t offset, uint64_t value);

/* Integers appended to a buffer in the order of the file; sets *failed when memory is out. */
void put_u16(struct tdm_buffer *out, bool big_endian, uint16_t value, bool *failed);
void put_u32(struct tdm_buffer *out, bool big_endian, uint32_t value, bool *failed);
void put_u64(struct tdm_buffer *out, bool big_endian, uint64_t value, bool *failed);

/*
 * Copies the whole pages of a spool to the sink, compressed in chunks on all cores or as they are.
 * written_bytes receives what it took in the file.
 */
enum tdm_status copy_pages(struct byte_sink *sink, const struct tdm_page_spool *spool,
	uint32_t page_bytes, bool compress, uint64_t *written_bytes);

/* A way to compress texts. Behind a pointer, so that who writes them plain does without its library. */
struct text_packer {
	const char *name; /* as the file's prefix has it */
	const char *(*version)(void);

	/* One frame as the format wants it: without content size. Empty result on failure. */
	enum tdm_status (*pack)(
		const void *text, size_t text_bytes, struct tdm_buffer *out, struct tdm_error *err);
};

extern const struct text_packer zstd_packer;

/* What the beginning of a file says of the rest. */
struct prefix_facts {
	bool big_endian;
	bool is_zstd;
	uint32_t page_bytes;
	uint64_t
		done_offset; /* of the value of the last DONE option: where the next OPTIONS section's offset goes */
	char clock[64]; /* of TRACECLOCK; "" where it is missing */
};

/* Reads the beginning of a version 7 file; every offset and size is checked. */
enum tdm_status read_prefix(
	const struct tdm_buffer *prefix, struct prefix_facts *facts, struct tdm_error *err);

#endif
