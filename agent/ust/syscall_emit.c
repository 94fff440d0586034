/* SPDX-License-Identifier: MIT */
/*
 * The provider's other half: the probes that write the events, and the door for the hooks.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "syscall_emit.h"
#include "syscall_tp.h"
#include <asm/unistd.h>
#include <lttng/ust-fork.h>
#include <lttng/ust-thread.h>

static void identity_changed(int32_t nr)
{
	switch (nr) {
	case __NR_setuid:
		lttng_ust_after_setuid();
		break;
	case __NR_setgid:
		lttng_ust_after_setgid();
		break;
	case __NR_setreuid:
		lttng_ust_after_setreuid();
		break;
	case __NR_setregid:
		lttng_ust_after_setregid();
		break;
	case __NR_setresuid:
		lttng_ust_after_setresuid();
		break;
	case __NR_setresgid:
		lttng_ust_after_setresgid();
		break;
	case __NR_unshare:
		lttng_ust_after_unshare();
		break;
	case __NR_setns:
		lttng_ust_after_setns();
		break;
	case __NR_prctl:
		lttng_ust_context_procname_reset();
		break;
	default:
		break;
	}
}

extern struct tdm_provider tdm_provider;

__attribute__((visibility("default"))) struct tdm_provider tdm_provider = {
	.version = TDM_PROVIDER_VERSION,
	.rows = tdm_rows,
	.generic = &tdm_generic_row,
	.before_fork = lttng_ust_before_fork,
	.after_fork_parent = lttng_ust_after_fork_parent,
	.after_fork_child = lttng_ust_after_fork_child,
	.choose = tdm_rows_choose,
	.init_thread = lttng_ust_init_thread,
	.identity_changed = identity_changed,
	.process_start = tdm_emit_process_start,
	.process_end = tdm_emit_process_end,
	.declined = tdm_emit_declined,
};

__attribute__((constructor)) static void fill(void)
{
	tdm_rows_fill();
}
