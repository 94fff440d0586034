/* SPDX-License-Identifier: MIT */
/*
 * syscall_emit.h - what the files of the tracepoint provider share.
 */
#ifndef TDM_SYSCALL_EMIT_H
#define TDM_SYSCALL_EMIT_H

#include "syscall_event.h"

/* The path that argument i is. */
static inline const char *tdm_path(const struct tdm_call *call, unsigned int i)
{
	return call->path[call->path_at != i];
}

extern struct tdm_call_row tdm_rows[TDM_SYSCALL_NR_MAX];
extern const struct tdm_call_row tdm_generic_row;
void tdm_rows_fill(void);
void tdm_rows_choose(const uint64_t numbers[TDM_SYSCALL_NR_MAX / 64]);
bool tdm_emit_process_start(
	const char *mode, uint64_t image_id, uint32_t sites, uint32_t unpatched);
bool tdm_emit_process_end(const char *why, uint64_t image_id, const struct tdm_call_counts *counts);
bool tdm_emit_declined(const char *path, const char *why);

#endif
