/* SPDX-License-Identifier: MIT */
/*
 * masks.c - calls that wait under another set of blocked signals, here all but one, whose handler makes a call of inline
 * assembly: under the complete mode SIGSYS must come through all the same. Prints what is wrong; exit 0: nothing.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define PWAIT2 441

static volatile int seen;
static volatile int blocks_in_frame;

static long inline_getppid(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getppid) : "rcx", "r11", "memory");
	return result;
}

static void on_alarm(int number, siginfo_t *info, void *data)
{
	ucontext_t *const context = data;

	(void)number;
	(void)info;
	seen += inline_getppid() == getppid();
	if (blocks_in_frame) {
		sigaddset(&context->uc_sigmask, SIGSYS);
	}
}

/* The next alarm comes while the call waits: it is blocked outside. */
static void alarm_soon(void)
{
	const struct itimerval soon = { .it_value.tv_usec = 20000 };

	setitimer(ITIMER_REAL, &soon, NULL);
}

static int faults;

static void check(const char *what, long result, int wanted_errno)
{
	if (result != -1 || errno != wanted_errno) {
		printf("%s: %ld, errno %d, wanted errno %d\n", what, result, errno, wanted_errno);
		faults++;
	}
}

int main(void)
{
	const struct sigaction action = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO };
	const struct timespec long_time = { .tv_sec = 60 };
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	sigset_t all_but_one, one;
	char unaligned[32];

	sigaction(SIGALRM, &action, NULL);
	sigfillset(&all_but_one);
	sigdelset(&all_but_one, SIGALRM);
	sigemptyset(&one);
	sigaddset(&one, SIGALRM);
	sigprocmask(SIG_BLOCK, &one, NULL);

	alarm_soon();
	check("ppoll", ppoll(NULL, 0, &long_time, &all_but_one), EINTR);
	alarm_soon();
	check("pselect", pselect(0, NULL, NULL, NULL, &long_time, &all_but_one), EINTR);
	alarm_soon();
	check("epoll_pwait", epoll_pwait(epoll, &event, 1, 60000, &all_but_one), EINTR);
	alarm_soon();
	check("epoll_pwait2", syscall(PWAIT2, epoll, &event, 1, &long_time, &all_but_one, 8),
		EINTR);
	alarm_soon();
	check("sigsuspend", sigsuspend(&all_but_one), EINTR);
	memcpy(unaligned + 3, &all_but_one, 8);
	alarm_soon();
	check("an unaligned mask", syscall(SYS_ppoll, NULL, 0, &long_time, unaligned + 3, 8),
		EINTR);
	check("a bad mask", syscall(SYS_ppoll, NULL, 0, &long_time, 16, 8), EFAULT);
	check("a mask of another size", syscall(SYS_ppoll, NULL, 0, &long_time, &all_but_one, 4),
		EINVAL);
	check("a bad place for the old handler", syscall(SYS_rt_sigaction, SIGSYS, NULL, 16, 8),
		EFAULT);
	check("a handler with a mask of another size",
		syscall(SYS_rt_sigaction, SIGSYS, NULL, NULL, 4), EINVAL);

	/* A handler that changes the mask to which the program returns. */
	blocks_in_frame = 1;
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	alarm_soon();
	pause();
	if (inline_getppid() != getppid() || seen != 7) {
		printf("%d of 7 handlers made their call\n", seen);
		faults++;
	}
	return faults != 0;
}
