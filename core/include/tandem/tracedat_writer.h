/* SPDX-License-Identifier: MIT */
/*
 * tracedat_writer.h - writes a trace.dat, version 7, that trace-cmd, KernelShark and this library open.
 */
#ifndef TANDEM_TRACEDAT_WRITER_H
#define TANDEM_TRACEDAT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/log.h>
#include <tandem/status.h>
#include <tandem/timeline.h>
#include <tandem/trace.h>
#include <tandem/trace_meta.h>

/* The pages of one CPU, whole ones one after the other, in a file of their own. */
struct tdm_page_spool {
	uint32_t cpu;
	int fd;              /* borrowed; read with pread from its start */
	uint64_t size_bytes; /* what follows the last whole page is left out */
	bool give_back;      /* punch what was copied out of the spool, for disks that are full */
};

struct tdm_shift_cpu {
	const struct tdm_shift_sample *samples;
	size_t sample_count;
};

/* What becomes a file. Everything is borrowed for the call. */
struct tdm_tracedat_plan {
	const char *path;                  /* final name; appears only when complete */
	const struct tdm_trace_meta *meta; /* NULL with prefix */
	const struct tdm_buffer
		*prefix;   /* the beginning of a version 7 file that another program made, with
					      all its texts and options; NULL = made from meta */
	bool compress;     /* zstd, in chunks of ten pages as trace-cmd makes them */
	uint64_t trace_id; /* TRACEID */
	const struct tdm_guest_info *guests; /* GUEST options of a host's file */
	size_t guest_count;
	bool has_shift; /* TIME_SHIFT of a guest's file, interpolating */
	uint64_t peer_trace_id;
	const struct tdm_shift_cpu *shift_cpus; /* by guest CPU id */
	size_t shift_cpu_count;
	bool has_tsc2nsec; /* of the host */
	uint32_t tsc_mult, tsc_shift;
	const struct tdm_page_spool *spools; /* each CPU at most once */
	size_t spool_count;
};

/**
 * Writes the file: to a temporary name beside the final one, synced, then renamed.
 *
 * On failure the temporary file is removed; a file of the final name stays what it was.
 *
 * @param plan  What to write. Borrowed.
 * @retval TDM_ERR_IO     The file system refused something; @p err says what.
 * @retval TDM_ERR_FORMAT The prefix is no beginning of a version 7 file.
 * @retval TDM_ERR_RANGE  The plan contradicts itself (page size, CPU twice, no header_page text).
 */
enum tdm_status tdm_tracedat_write(const struct tdm_tracedat_plan *plan, struct tdm_error *err);

/**
 * The beginning of a file in memory: all texts and options, not compressed, no pages. A plan's prefix elsewhere.
 *
 * @param version   7, or 6 for readers of before 2022.
 * @param trace_id  TRACEID.
 * @param bytes     Appended to.
 * @retval TDM_ERR_RANGE  No header_page text, or an impossible page size.
 */
enum tdm_status tdm_tracedat_begin(const struct tdm_trace_meta *meta, unsigned int version,
	uint64_t trace_id, struct tdm_buffer *bytes, struct tdm_error *err);

#endif
