/* SPDX-License-Identifier: MIT */
/*
 * The first look at a call, before the vector registers are saved: this file is compiled for general
 * registers only.
 */
#include "hook_priv.h"
#include <asm/unistd.h>

#define BIT(nr)      (UINT64_C(1) << ((nr)&63))
#define IN(word, nr) (((nr) >> 6) == (word) ? BIT(nr) : 0)
#define WORD(w)                                                                          \
	(IN(w, __NR_fork) | IN(w, __NR_vfork) | IN(w, __NR_clone) | IN(w, __NR_clone3) | \
		IN(w, __NR_execve) | IN(w, __NR_execveat) | IN(w, __NR_exit) |           \
		IN(w, __NR_exit_group) | IN(w, __NR_close) | IN(w, __NR_close_range) |   \
		IN(w, __NR_prctl) | IN(w, __NR_seccomp) | IN(w, __NR_setuid) |           \
		IN(w, __NR_setgid) | IN(w, __NR_setreuid) | IN(w, __NR_setregid) |       \
		IN(w, __NR_setresuid) | IN(w, __NR_setresgid) | IN(w, __NR_unshare) |    \
		IN(w, __NR_setns) | IN(w, __NR_rt_sigaction) | IN(w, __NR_rt_sigprocmask))
/* That wait under a mask of their own: of interest where SIGSYS has to be kept out of it. */
#define WAIT_WORD(w)                                                                               \
	(IN(w, __NR_rt_sigsuspend) | IN(w, __NR_ppoll) | IN(w, __NR_pselect6) |                    \
		IN(w, __NR_epoll_pwait) | IN(w, TDM_NR_EPOLL_PWAIT2) | IN(w, __NR_io_pgetevents) | \
		IN(w, __NR_io_uring_enter))

uint64_t tdm_special_calls[8] = { WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6),
	WORD(7) };

static const uint64_t waiting_calls[8] = { WAIT_WORD(0), WAIT_WORD(1), WAIT_WORD(2), WAIT_WORD(3),
	WAIT_WORD(4), WAIT_WORD(5), WAIT_WORD(6), WAIT_WORD(7) };

void tdm_special_add_waiting(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		tdm_special_calls[i] |= waiting_calls[i];
	}
}

/* Words of stack that are looked at for a signal frame: lttng-ust's own depth and one frame. */
#define LOOK_WORDS 4096

/* Words of the kernel's rt_sigframe: uc_flags, uc_link, REG_RSP and REG_CSGSFS of the context. */
#define FRAME_FLAGS 1
#define FRAME_LINK  2
#define FRAME_SP    21
#define FRAME_CS    24
#define USER_CS     0x33

/*
 * A call comes from inside the recording of this thread. Is it lttng-ust's own, or one of a signal
 * handler that interrupted it? In the second case a signal frame, which begins with the address of
 * the restorer, lies between.
 */
static bool is_handlers_call(const struct tdm_frame *frame, uint64_t inside_sp)
{
	const uint64_t *at = (const uint64_t *)(uintptr_t)(frame->sp & ~7ull);
	const uint64_t *const end = (const uint64_t *)(uintptr_t)inside_sp;

	for (size_t i = 0; at < end && i < LOOK_WORDS; at++, i++) {
		/*
		 * The address also stands in every struct that was given to rt_sigaction, so what follows must look
		 * like a ucontext: flags, no link, the stack pointer above the frame itself, the code segment.
		 */
		if (*at == tdm_process.restorer && at[FRAME_FLAGS] <= 7 && at[FRAME_LINK] == 0 &&
			at[FRAME_SP] > (uint64_t)(uintptr_t)at && at[FRAME_SP] <= inside_sp &&
			(at[FRAME_CS] & 0xffff) == USER_CS) {
			return true;
		}
	}
	return false;
}

static unsigned int plan_slowly(struct tdm_frame *frame)
{
	struct tdm_thread *thread = &tdm_thread;

	if (thread->state >= TDM_THREAD_EXCLUDED || thread->excluded_depth) {
		/* The entry hook looks after descriptors; children are made as if we were not here. */
		switch (frame->nr) {
		case __NR_clone:
		case __NR_clone3:
		case __NR_vfork:
		case __NR_fork:
			return TDM_PLAN_BARE;
		default:
			return TDM_PLAN_RECORD;
		}
	}
	if (thread->inside_sp) {
		if (frame->sp >= thread->inside_sp) {
			thread->inside_sp = 0; /* left by longjmp */
		} else if (!is_handlers_call(frame, thread->inside_sp)) {
			return TDM_PLAN_CALL;
		}
	}
	return TDM_PLAN_RECORD;
}

unsigned int tdm_hook_plan(struct tdm_frame *frame)
{
	const struct tdm_thread *thread = &tdm_thread;

	frame->scratch = TDM_SCRATCH_LOOK;
	if (__builtin_expect(thread->state != TDM_THREAD_READY || thread->inside_sp ||
				     thread->excluded_depth || tdm_process.fork_in_flight,
		    0)) {
		return plan_slowly(frame);
	}
	if (frame->nr == __NR_rt_sigreturn) {
		return TDM_PLAN_BARE; /* its frame is found by the stack pointer */
	}

	const struct tdm_call_row *row = tdm_row(frame->nr);

	if (tdm_is_special(frame->nr)) {
		return TDM_PLAN_RECORD;
	}
	if (*(volatile const int *)row->entry_state | *(volatile const int *)row->exit_state) {
		frame->row = row;
		frame->scratch = TDM_SCRATCH_QUICK;
		return TDM_PLAN_RECORD;
	}
	TDM_COUNT(calls);
	TDM_COUNT(not_chosen);
	return TDM_PLAN_CALL;
}
