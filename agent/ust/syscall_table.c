/* SPDX-License-Identifier: MIT */
/*
 * From numbers to tracepoints: one row for each number, built from syscall_list.h.
 */
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "syscall_emit.h"
#include "syscall_tp.h"
#include <errno.h>

#define ROW_STATE(name) &lttng_ust_tracepoint_tandem___##name.state

#undef TDM_CALL
#undef INT
#undef HEX
#undef PATH
#undef FDS
#undef NONE

/* The emitters of one call. The hooks have looked at the state: no second look here. */
#define TDM_CALL(number, name, in, out)                                      \
	static void entry_##name(const struct tdm_call *call)                \
	{                                                                    \
		lttng_ust_do_tracepoint(tandem, syscall_entry_##name, call); \
	}                                                                    \
	static void exit_##name(const struct tdm_call *call)                 \
	{                                                                    \
		lttng_ust_do_tracepoint(tandem, syscall_exit_##name, call);  \
	}
#include "syscall_list.h"

TDM_CALL(-1, unknown, , )

#undef TDM_CALL
#define INT(type, name, i)
#define HEX(type, name, i)
#define PATH(name, i) | 1u << (i)
#define FDS(name, i)  | ((i) + 1u) << TDM_CALL_FDS_SHIFT
#define NONE
#define ROW(call, in, out)                                                           \
	{                                                                            \
		.name = #call, .entry_state = ROW_STATE(syscall_entry_##call),       \
		.exit_state = ROW_STATE(syscall_exit_##call), .entry = entry_##call, \
		.exit = exit_##call, .fields = 0u in out                             \
	}
#define TDM_CALL(number, call, in, out) [number] = ROW(call, in, out),

const struct tdm_call_row tdm_generic_row = ROW(unknown, , );

static const struct tdm_call_row typed_rows[TDM_SYSCALL_NR_MAX] = {
#include "syscall_list.h"
};

struct tdm_call_row tdm_rows[TDM_SYSCALL_NR_MAX];

void tdm_rows_fill(void)
{
	for (uint32_t nr = 0; nr < TDM_SYSCALL_NR_MAX; nr++) {
		tdm_rows[nr] = typed_rows[nr].name ? typed_rows[nr] : tdm_generic_row;
	}
}

void tdm_rows_choose(const uint64_t numbers[TDM_SYSCALL_NR_MAX / 64])
{
	static const int never = 0;

	for (uint32_t nr = 0; nr < TDM_SYSCALL_NR_MAX; nr++) {
		if (!(numbers[nr / 64] >> (nr % 64) & 1)) {
			tdm_rows[nr].entry_state = &never;
			tdm_rows[nr].exit_state = &never;
		}
	}
}

bool tdm_emit_process_start(const char *mode, uint64_t image_id, uint32_t sites, uint32_t unpatched)
{
	if (!lttng_ust_tracepoint_enabled(tandem, process_start)) {
		return false;
	}
	lttng_ust_do_tracepoint(tandem, process_start, mode, image_id, sites, unpatched,
		program_invocation_short_name);
	return true;
}

bool tdm_emit_process_end(const char *why, uint64_t image_id, const struct tdm_call_counts *counts)
{
	struct tdm_call_counts with_this = *counts;

	if (!lttng_ust_tracepoint_enabled(tandem, process_end)) {
		return false;
	}
	with_this.notes++;
	lttng_ust_do_tracepoint(tandem, process_end, why, image_id, &with_this);
	return true;
}

bool tdm_emit_declined(const char *path, const char *why)
{
	if (!lttng_ust_tracepoint_enabled(tandem, declined)) {
		return false;
	}
	lttng_ust_do_tracepoint(tandem, declined, path, why);
	return true;
}
