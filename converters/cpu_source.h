/* SPDX-License-Identifier: MIT */
/*
 * cpu_source.h - the buffers of one CPU as sources of records, the earliest first.
 */
#ifndef TANDEM_CPU_SOURCE_H
#define TANDEM_CPU_SOURCE_H

#include "convert_priv.h"

/* One buffer of the CPU. */
struct tdm_cpu_source {
	struct tdm_reader *reader;
	struct tdm_task_names *names;
	size_t stream_index;
	struct tdm_batch batch;
	size_t at;        /* next slot of the batch */
	uint64_t ordinal; /* of that slot in the stream */
	bool is_done;
	/* The thread of the record before, and its name as it is written. */
	int32_t tid;
	uint8_t comm_bytes; /* with its NUL; 0 = not known yet */
	uint8_t comm[TDM_TASK_NAME_MAX * 4 + 1];
	uint64_t comm_until;         /* raw time */
	struct tdm_sync_point *sync; /* the next one in this stream; NULL = none */
};

struct tdm_cpu_sources {
	const struct tdm_convert_machine *conversion;
	struct tdm_cpu_source *of; /* owned */
	size_t count;
	uint64_t discard; /* losses since the last event, to be told by the next packet */
};

/** As the output has it. */
static inline uint64_t tdm_out_time(const struct tdm_convert_machine *conversion, uint64_t time_ns)
{
	return time_ns + conversion->bias_ns;
}

/** Opens all buffers of the job's CPU. @p sources is to be closed in either case. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_cpu_sources_open(
	struct tdm_cpu_job *job, struct tdm_cpu_sources *sources, struct tdm_error *err);

/** Closes them and gives their counts to the job. */
void tdm_cpu_sources_close(struct tdm_cpu_job *job, struct tdm_cpu_sources *sources);

/** The next batch of each source that has none; what it lost is told with its first record. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_cpu_sources_load(struct tdm_cpu_sources *sources, struct tdm_error *err);

/** The source whose next record is the earliest; NULL at the end. @param until  Receives when another one's turn comes. */
struct tdm_cpu_source *tdm_cpu_sources_choose(
	const struct tdm_cpu_sources *sources, uint64_t *until);

/** The next sync point of a stream at or behind an ordinal. */
struct tdm_sync_point *tdm_next_sync(
	const struct tdm_convert_machine *conversion, size_t stream_index, uint64_t ordinal);

#endif
