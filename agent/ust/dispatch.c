/* SPDX-License-Identifier: MIT */
/*
 * The complete mode: Syscall User Dispatch sends the calls that no patched site makes (inline assembly
 * of any object, code made at run time) to a SIGSYS handler, which runs the same hooks.
 *
 * Calls from our own text pass, so the patched sites cost as before plus what the kernel takes for
 * looking; the others cost a signal. The mode is per thread and ends with fork, clone and exec:
 * threads arm themselves as they start.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <errno.h>
#include <linux/filter.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ucontext.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif

#define DISPATCH_ALLOW 0
#define DISPATCH_BLOCK 1

/* The kernel's structures: libc's differ. */
struct kernel_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define SA_RESTORER_KERNEL 0x04000000ul

/* What the program thinks is its handler of SIGSYS. */
static struct kernel_sigaction programs;
static _Atomic(int32_t) programs_set;

static void take_register_arguments(struct tdm_frame *frame, const greg_t *gregs)
{
	frame->args[0] = (uint64_t)gregs[REG_RDI];
	frame->args[1] = (uint64_t)gregs[REG_RSI];
	frame->args[2] = (uint64_t)gregs[REG_RDX];
	frame->args[3] = (uint64_t)gregs[REG_R10];
	frame->args[4] = (uint64_t)gregs[REG_R8];
	frame->args[5] = (uint64_t)gregs[REG_R9];
}

/* A SIGSYS that is not ours: of a seccomp filter, or sent. The program's handler gets it. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	if (atomic_load(&programs_set) && (uint64_t)(uintptr_t)programs.handler > 1) {
		programs.handler(signal_number, info, context);
		return;
	}
	if (atomic_load(&programs_set) && (uint64_t)(uintptr_t)programs.handler == 1) {
		return; /* ignored */
	}

	struct kernel_sigaction plain = { 0 };

	/* As without us: the signal ends the program. It comes again when the handler returns. */
	tdm_raw(__NR_rt_sigaction, SIGSYS, (long)(intptr_t)&plain, 0, 8, 0, 0);
	tdm_raw(__NR_tgkill, tdm_raw(__NR_getpid, 0, 0, 0, 0, 0, 0),
		tdm_raw(__NR_gettid, 0, 0, 0, 0, 0, 0), SIGSYS, 0, 0, 0);
}

#define SYS_USER_DISPATCH_CODE 2

static uint64_t without_sigsys(uint64_t mask)
{
	return mask & ~(UINT64_C(1) << (SIGSYS - 1));
}

static void on_sigsys(int signal_number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *gregs = context->uc_mcontext.gregs;
	struct tdm_frame frame = { 0 };
	unsigned int plan;

	if (info->si_code != SYS_USER_DISPATCH_CODE) {
		pass_on(signal_number, info, data);
		return;
	}
	frame.nr = (uint64_t)(uint32_t)info->si_syscall;
	take_register_arguments(&frame, gregs);
	frame.sp = (uint64_t)gregs[REG_RSP];
	frame.back = (uint64_t)gregs[REG_RIP];

	if (frame.nr == __NR_rt_sigreturn) {
		/* The program leaves a handler: its frame lies where its stack pointer points. It may have changed its mask. */
		uint64_t *const mask =
			(uint64_t *)(uintptr_t)(frame.sp + offsetof(ucontext_t, uc_sigmask));

		*mask = without_sigsys(*mask);
		tdm_patch_sigreturn(frame.sp);
	}
	plan = tdm_hook_plan(&frame);
	if (plan == TDM_PLAN_RECORD) {
		const unsigned int entry = tdm_hook_entry(&frame);

		if (entry == TDM_ENTRY_POST) {
			/* May return twice or on another stack: made outside this handler, at a stub. */
			const struct tdm_site *site = tdm_patch_site_for(frame.back);

			if (site) {
				gregs[REG_RIP] = (greg_t)site->bare_post;
				return;
			}
			/* As if the kernel had refused it: what was prepared for a child is undone. */
			static const struct tdm_site nowhere = { .nr = TDM_SITE_ANY };

			frame.site = &nowhere;
			frame.ret = -ENOMEM;
			tdm_hook_post(&frame);
			gregs[REG_RAX] = frame.ret;
			return;
		}
		if (entry == TDM_ENTRY_CALL) {
			frame.ret = tdm_raw((long)frame.nr, (long)frame.args[0],
				(long)frame.args[1], (long)frame.args[2], (long)frame.args[3],
				(long)frame.args[4], (long)frame.args[5]);
		}
		tdm_hook_exit(&frame);
	} else {
		frame.ret = tdm_raw((long)frame.nr, (long)frame.args[0], (long)frame.args[1],
			(long)frame.args[2], (long)frame.args[3], (long)frame.args[4],
			(long)frame.args[5]);
	}
	/* A child of fork comes here too: it is not armed, the hooks have armed it again. */
	gregs[REG_RAX] = frame.ret;
}

void tdm_dispatch_arm_thread(void)
{
	struct tdm_thread *thread = &tdm_thread;
	const uint64_t sigsys = UINT64_C(1) << (SIGSYS - 1);
	uint64_t start;
	uint64_t length;

	/* It may have been blocked before the program's exec. */
	tdm_raw(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)(intptr_t)&sigsys, 0, 8, 0, 0);
	tdm_patch_text_range(&start, &length);
	thread->selector = DISPATCH_BLOCK;
	thread->dispatching =
		tdm_raw(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, (long)start,
			(long)length, (long)(intptr_t)&thread->selector, 0) == 0;
}

void tdm_dispatch_pause(void)
{
	tdm_thread.selector = DISPATCH_ALLOW;
}

void tdm_dispatch_resume(void)
{
	if (tdm_thread.dispatching) {
		tdm_thread.selector = DISPATCH_BLOCK;
	}
}

int tdm_dispatch_start(void)
{
	struct kernel_sigaction action = {
		.handler = on_sigsys,
		.flags = SA_SIGINFO | SA_NODEFER | SA_RESTORER_KERNEL,
		.restorer = tdm_patch_restorer,
	};

	if (tdm_raw(__NR_rt_sigaction, SIGSYS, (long)(intptr_t)&action, (long)(intptr_t)&programs,
		    8, 0, 0) != 0) {
		return -1;
	}
	programs_set = (uint64_t)(uintptr_t)programs.handler > 1;
	tdm_special_add_waiting();
	tdm_process.complete = 1;
	tdm_dispatch_arm_thread();
	if (!tdm_thread.dispatching) {
		tdm_process.complete = 0;
		return -1;
	}
	return 0;
}

static bool is_readable(uint64_t address, uint64_t size_bytes)
{
	return tdm_user_readable(address) && tdm_user_readable(address + size_bytes - 1);
}

/* Asked of the kernel by a call that writes what is there: a handler's mask. What is written is overwritten next. */
static bool is_writable(uint64_t address, uint64_t size_bytes)
{
	const uint64_t ends[] = { address, address + size_bytes - 8 };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (tdm_raw(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)ends[i], 8, 0, 0) != 0) {
			return false;
		}
	}
	return true;
}

/* The program's own handler of SIGSYS: kept, and called for the signals that are its own. */
static int64_t set_own_handler(const struct tdm_frame *frame)
{
	const struct kernel_sigaction old = programs;
	struct kernel_sigaction action;

	if (frame->args[3] != 8) {
		return -EINVAL;
	}
	if (frame->args[1]) {
		if (!is_readable(frame->args[1], sizeof(action))) {
			return -EFAULT;
		}
		memcpy(&action, (const void *)(uintptr_t)frame->args[1], sizeof(action));
		programs = action;
		programs_set = 1;
	}
	if (frame->args[2]) {
		if (!is_writable(frame->args[2], sizeof(old))) {
			return -EFAULT;
		}
		memcpy((void *)(uintptr_t)frame->args[2], &old, sizeof(old));
	}
	return 0;
}

/* How calls that wait under another mask are told it. */
enum mask_way {
	MASK_NONE,
	MASK_PLAIN, /* a pointer; its size is the next argument */
	MASK_PAIR,  /* a pointer to a pointer and a size */
	MASK_RING   /* io_uring's: with a flag the same and more, else plain */
};

static enum mask_way mask_way_of(const struct tdm_frame *frame, unsigned int *at)
{
	switch (frame->nr) {
	case __NR_rt_sigsuspend:
		*at = 0;
		return MASK_PLAIN;
	case __NR_ppoll:
		*at = 3;
		return MASK_PLAIN;
	case __NR_epoll_pwait:
	case TDM_NR_EPOLL_PWAIT2:
		*at = 4;
		return MASK_PLAIN;
	case __NR_pselect6:
	case __NR_io_pgetevents:
		*at = 5;
		return MASK_PAIR;
	case __NR_io_uring_enter:
		*at = 4;
		return MASK_RING;
	default:
		return MASK_NONE;
	}
}

#define RING_EXTENDED 8u /* IORING_ENTER_EXT_ARG: { mask, its size in 32 bits, a timeout } */

/*
 * A handler that comes while a call waits runs under the call's mask: with SIGSYS in it the handler's first call would
 * end the program. The kernel gets a copy without it, in the frame: it lasts as long as the call, also when that restarts.
 */
static void send_own_mask(struct tdm_frame *frame)
{
	unsigned int at = 0;
	enum mask_way way = mask_way_of(frame, &at);
	uint64_t size_bytes = 0;
	uint64_t address;

	if (way == MASK_NONE) {
		return;
	}
	address = frame->args[at];
	frame->kept = address;
	if (way == MASK_RING) {
		size_bytes = frame->args[3] & RING_EXTENDED ? 24 : 0;
		way = size_bytes ? MASK_PAIR : MASK_PLAIN;
		if (size_bytes && frame->args[5] != size_bytes) {
			return; /* refused, or of a later kernel */
		}
	} else if (way == MASK_PAIR) {
		size_bytes = 16;
	}
	if (!address) {
		return;
	}
	if (way == MASK_PAIR) {
		if (!is_readable(address, size_bytes)) {
			return;
		}
		memcpy(&frame->sent[1], (const void *)(uintptr_t)address, size_bytes);
		address = frame->sent[1];
		if (!address || (uint32_t)frame->sent[2] != 8) {
			return;
		}
	} else if (frame->args[at + 1] != 8) {
		return;
	}
	if (!is_readable(address, 8)) {
		return;
	}
	memcpy(&frame->sent[0], (const void *)(uintptr_t)address, 8);
	frame->sent[0] = without_sigsys(frame->sent[0]);
	if (way == MASK_PAIR) {
		frame->sent[1] = (uint64_t)(uintptr_t)&frame->sent[0];
		frame->args[at] = (uint64_t)(uintptr_t)&frame->sent[1];
	} else {
		frame->args[at] = (uint64_t)(uintptr_t)&frame->sent[0];
	}
}

void tdm_dispatch_give_back(struct tdm_frame *frame)
{
	unsigned int at = 0;

	if (mask_way_of(frame, &at) != MASK_NONE) {
		frame->args[at] = frame->kept;
	}
}

bool tdm_dispatch_guard(struct tdm_frame *frame)
{
	if (frame->nr == __NR_rt_sigaction && frame->args[0] == SIGSYS) {
		frame->ret = set_own_handler(frame);
		return true;
	}
	if (frame->nr == __NR_rt_sigaction && frame->args[1] && frame->args[3] == 8 &&
		is_readable(frame->args[1], sizeof(struct kernel_sigaction))) {
		/* Nor may its handlers run with SIGSYS blocked: Go's block everything. */
		struct kernel_sigaction action;

		memcpy(&action, (const void *)(uintptr_t)frame->args[1], sizeof(action));
		if (action.mask >> (SIGSYS - 1) & 1) {
			action.mask = without_sigsys(action.mask);
			frame->ret = tdm_raw(__NR_rt_sigaction, (long)frame->args[0],
				(long)(intptr_t)&action, (long)frame->args[2], 8, 0, 0);
			return true;
		}
	}
	if (frame->nr == __NR_rt_sigprocmask && frame->args[0] != SIG_UNBLOCK && frame->args[1] &&
		frame->args[3] == 8 && is_readable(frame->args[1], 8)) {
		/* A thread that blocks SIGSYS dies at its next dispatched call. */
		uint64_t mask;

		memcpy(&mask, (const void *)(uintptr_t)frame->args[1], sizeof(mask));
		if (mask >> (SIGSYS - 1) & 1) {
			mask = without_sigsys(mask);
			frame->ret = tdm_raw(__NR_rt_sigprocmask, (long)frame->args[0],
				(long)(intptr_t)&mask, (long)frame->args[2], 8, 0, 0);
			return true;
		}
	}
	if (frame->nr == __NR_prctl && frame->args[0] == PR_SET_SYSCALL_USER_DISPATCH) {
		/* The program wants the mechanism for itself: this thread steps aside. */
		tdm_say("the program uses Syscall User Dispatch itself: complete mode ends in this thread",
			NULL, NULL);
		tdm_thread.dispatching = 0;
		tdm_thread.selector = DISPATCH_ALLOW;
	}
	send_own_mask(frame);
	return false;
}
