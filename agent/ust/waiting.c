/* SPDX-License-Identifier: MIT */
#include "hook_priv.h"
#include <stdatomic.h>
#include <string.h>

#define CALLS      512
#define POOL_BYTES 16384

struct waiting {
	int64_t nr;
	uint64_t args[6];
	int64_t ret;
	uint16_t path[TDM_SYSCALL_PATHS]; /* in the pool; 0: none */
};

static struct waiting waiting[CALLS];
static _Atomic(uint32_t) count;
static char pool[POOL_BYTES] = ""; /* begins with an empty string */
static uint32_t pool_used = 1;

/* The rows say which arguments are paths; before the provider is loaded nobody knows: openat and the like. */
static uint32_t paths_of(uint64_t nr)
{
	if (tdm_process.provider) {
		return tdm_row(nr)->fields & TDM_CALL_PATHS;
	}
	switch (nr) {
	case 2:  /* open */
	case 4:  /* newstat */
	case 6:  /* newlstat */
	case 21: /* access */
	case 89: /* readlink */
		return 1;
	case 257: /* openat */
	case 262: /* newfstatat */
	case 267: /* readlinkat */
	case 269: /* faccessat */
	case 332: /* statx */
		return 2;
	default:
		return 0;
	}
}

static uint16_t keep(uint64_t address)
{
	const char *string = tdm_user_string(address);
	const size_t length = strlen(string);
	const uint32_t at = pool_used;

	if (length == 0 || at + length + 1 > POOL_BYTES) {
		return 0;
	}
	memcpy(pool + at, string, length + 1);
	pool_used = at + (uint32_t)length + 1;
	return (uint16_t)at;
}

void tdm_waiting_add(const struct tdm_frame *frame)
{
	const uint32_t at = atomic_fetch_add(&count, 1);
	struct waiting *call;
	uint32_t paths;

	if (at >= CALLS) {
		return; /* counted as missed by the replay */
	}
	call = &waiting[at];
	call->nr = (int64_t)frame->nr;
	memcpy(call->args, frame->args, sizeof(call->args));
	call->ret = frame->ret;
	call->path[0] = 0;
	call->path[1] = 0;
	paths = paths_of(frame->nr);
	for (int i = 0; paths && i < TDM_SYSCALL_PATHS; i++, paths &= paths - 1) {
		call->path[i] = keep(frame->args[__builtin_ctz(paths)]);
	}
}

void tdm_waiting_replay(void)
{
	const uint32_t all = atomic_exchange(&count, 0);

	for (uint32_t i = 0; i < all; i++) {
		TDM_COUNT(calls);
		if (i >= CALLS) {
			TDM_COUNT(missed);
			continue;
		}

		const struct waiting *kept = &waiting[i];
		const struct tdm_call_row *row = tdm_row((uint64_t)kept->nr);
		const uint32_t paths = row->fields & TDM_CALL_PATHS;
		struct tdm_call call = {
			.nr = (int32_t)kept->nr,
			.args = kept->args,
			.ret = kept->ret,
			.path = { pool + kept->path[0], pool + kept->path[1] },
			.path_at = paths ? (uint8_t)__builtin_ctz(paths) : 0,
			.fds = { -1, -1 },
		};

		if (*row->entry_state) {
			TDM_COUNT(entries);
			row->entry(&call);
		}
		if (*row->exit_state) {
			TDM_COUNT(exits);
			row->exit(&call);
		}
		if (!*row->entry_state && !*row->exit_state) {
			TDM_COUNT(not_chosen);
		}
	}
	pool_used = 1;
}
