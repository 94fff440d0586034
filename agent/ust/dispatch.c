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

static void on_sigsys(int signal_number, siginfo_t *info, void *data)
{
	struct tdm_thread *thread = &tdm_thread;
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
		/* The program leaves a handler: its frame lies where its stack pointer points. */
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
			frame.ret = -ENOMEM;
		} else if (entry == TDM_ENTRY_CALL) {
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
	(void)thread;
	gregs[REG_RAX] = frame.ret;
}

void tdm_dispatch_arm_thread(void)
{
	struct tdm_thread *thread = &tdm_thread;
	uint64_t start;
	uint64_t length;

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
	tdm_process.complete = 1;
	tdm_dispatch_arm_thread();
	if (!tdm_thread.dispatching) {
		tdm_process.complete = 0;
		return -1;
	}
	return 0;
}

bool tdm_dispatch_guard(struct tdm_frame *frame)
{
	if (frame->nr == __NR_rt_sigaction && frame->args[0] == SIGSYS) {
		/* The program's own handler: kept, and called for the signals that are its own. */
		struct kernel_sigaction old = programs;

		if (frame->args[1]) {
			if (!tdm_user_readable(frame->args[1])) {
				frame->ret = -EFAULT;
				return true;
			}
			memcpy(&programs, (const void *)(uintptr_t)frame->args[1],
				sizeof(programs));
			programs_set = 1;
		}
		if (frame->args[2]) {
			memcpy((void *)(uintptr_t)frame->args[2], &old, sizeof(old));
		}
		frame->ret = 0;
		return true;
	}
	if (frame->nr == __NR_rt_sigaction && frame->args[1] && frame->args[3] == 8 &&
		tdm_user_readable(frame->args[1]) &&
		tdm_user_readable(frame->args[1] + sizeof(struct kernel_sigaction) - 8)) {
		/* Nor may its handlers run with SIGSYS blocked: Go's block everything. */
		struct kernel_sigaction action;

		memcpy(&action, (const void *)(uintptr_t)frame->args[1], sizeof(action));
		if (action.mask >> (SIGSYS - 1) & 1) {
			action.mask &= ~(UINT64_C(1) << (SIGSYS - 1));
			frame->ret = tdm_raw(__NR_rt_sigaction, (long)frame->args[0],
				(long)(intptr_t)&action, (long)frame->args[2], 8, 0, 0);
			return true;
		}
	}
	if (frame->nr == __NR_rt_sigprocmask && frame->args[0] != SIG_UNBLOCK && frame->args[1] &&
		frame->args[3] == 8 && tdm_user_readable(frame->args[1])) {
		/* A thread that blocks SIGSYS dies at its next dispatched call. */
		uint64_t mask;

		memcpy(&mask, (const void *)(uintptr_t)frame->args[1], sizeof(mask));
		if (mask >> (SIGSYS - 1) & 1) {
			mask &= ~(UINT64_C(1) << (SIGSYS - 1));
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
	return false;
}
