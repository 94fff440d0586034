/* SPDX-License-Identifier: MIT */
#include "run_command.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CHECK_MS = 100,
	IDLE_MS = 10000, /* where only signals are waited for */
	GRACE_MS = 5000
};

/* Many guests of many CPUs, and viewers, need more than the usual 1024 descriptors. The command gets its own limit back. */
static void raise_file_limit(struct run_command *run)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &run->file_limit) == 0) {
		raised = run->file_limit;
		raised.rlim_cur = raised.rlim_max;
		run->has_file_limit = setrlimit(RLIMIT_NOFILE, &raised) == 0;
	}
}

static sigset_t interrupts(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

static sigset_t ending_signals(void)
{
	sigset_t set = interrupts();

	sigaddset(&set, SIGCHLD);
	return set;
}

enum tdm_status run_command_init(struct run_command *run, struct tdm_error *err)
{
	const sigset_t set = ending_signals();
	const sigset_t asking = interrupts();

	*run = (struct run_command)RUN_COMMAND_NONE;
	/* A peer that went away is an error of the call, not the end of us. */
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise_file_limit(run);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	run->interrupt_fd = signalfd(-1, &asking, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 || run->interrupt_fd < 0 ? tdm_fail_errno(err, errno, "signalfd")
							   : TDM_OK;
}

/* The child's part: never returns. */
static void become_command(const struct run_command *run, char **argv, int gate_fd, int report_fd)
{
	const sigset_t set = ending_signals();
	char byte;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (run->has_file_limit) {
		setrlimit(RLIMIT_NOFILE, &run->file_limit);
	}
	/* End of file instead of a byte: the parent gave up. */
	if (read(gate_fd, &byte, 1) == 1) {
		execvp(argv[0], argv);

		const int failure = errno;

		if (write(report_fd, &failure, sizeof(failure)) < 0) {
			_exit(127);
		}
	}
	_exit(127);
}

enum tdm_status run_command_fork(struct run_command *run, char **argv, struct tdm_error *err)
{
	int gate[2], report[2];

	if (pipe2(gate, O_CLOEXEC) != 0) {
		return tdm_fail_errno(err, errno, "pipe");
	}
	if (pipe2(report, O_CLOEXEC) != 0) {
		close(gate[0]);
		close(gate[1]);
		return tdm_fail_errno(err, errno, "pipe");
	}

	const pid_t pid = fork();

	if (pid == 0) {
		close(gate[1]);
		close(report[0]);
		become_command(run, argv, gate[0], report[1]);
	}
	close(gate[0]);
	close(report[1]);
	run->gate_fd = gate[1];
	run->report_fd = report[0];
	if (pid < 0) {
		return tdm_fail_errno(err, errno, "fork");
	}
	run->pid = pid;
	return TDM_OK;
}

enum tdm_status run_command_release(
	struct run_command *run, const char *name, struct tdm_error *err)
{
	int failure = 0;

	if (write(run->gate_fd, "", 1) != 1) {
		return tdm_fail_errno(err, errno, "starting \"%s\"", name);
	}
	close(run->gate_fd);
	run->gate_fd = -1;
	/* exec closes the pipe; else its errno comes through it. */
	if (read(run->report_fd, &failure, sizeof(failure)) == (ssize_t)sizeof(failure)) {
		return tdm_fail_errno(err, failure, "starting \"%s\"", name);
	}
	return TDM_OK;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool reap(struct run_command *run)
{
	if (run->pid > 0 && !run->ended &&
		waitpid(run->pid, &run->wait_status, WNOHANG) == run->pid) {
		run->ended = true;
	}
	return run->pid == 0 || run->ended;
}

/* Takes the signals that came; returns how many of them ask for an end. */
static unsigned int take_signals(struct run_command *run)
{
	struct signalfd_siginfo info;
	unsigned int asked = 0;

	while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD) {
			run->asked_by = (int)info.ssi_signo;
			run->asked_by_terminal = info.ssi_code == SI_KERNEL;
			asked++;
		}
	}
	return asked;
}

static void wait_signal(struct run_command *run, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = run->signal_fd, .events = POLLIN };

	poll(&poll_fd, 1, timeout_ms);
}

/* Waits for the child, which was asked to end, and kills it after a while or at a further Ctrl-C. */
static void await_child(struct run_command *run)
{
	const uint64_t deadline_ns = now_ns() + (uint64_t)GRACE_MS * 1000000;

	while (!reap(run)) {
		if (take_signals(run) || now_ns() > deadline_ns) {
			kill(run->pid, SIGKILL);
			waitpid(run->pid, &run->wait_status, 0);
			run->ended = true;
			return;
		}
		wait_signal(run, CHECK_MS);
	}
}

static void end_child(struct run_command *run, int first_signal)
{
	if (!reap(run)) {
		kill(run->pid, first_signal);
		await_child(run);
	}
}

/* A terminal signals its whole foreground group: a child in it has its Ctrl-C already, and a second one tells many programs to
 * give up what they do to end well. */
static void pass_signal_on(struct run_command *run)
{
	if (run->pid > 0 && run->asked_by_terminal && getpgid(run->pid) == getpgrp()) {
		await_child(run);
	} else {
		end_child(run, run->asked_by);
	}
}

/* A wait that passes no deadline. */
static uint64_t pause_ms(uint64_t deadline_ns, uint64_t most_ms)
{
	const uint64_t now = now_ns();
	const uint64_t left_ms = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0;

	return left_ms < most_ms ? left_ms : most_ms;
}

enum run_end run_command_wait(
	struct run_command *run, uint64_t deadline_ns, bool (*check)(void *user), void *user)
{
	for (;;) {
		if (take_signals(run)) {
			/* Not always SIGINT: shells let their background jobs ignore that. */
			pass_signal_on(run);
			return RUN_END_SIGNAL;
		}
		if (run->pid > 0 && reap(run)) {
			return RUN_END_COMMAND;
		}
		if (now_ns() >= deadline_ns) {
			end_child(run, SIGTERM);
			return RUN_END_TIME;
		}
		if (check && check(user)) {
			end_child(run, SIGTERM);
			return RUN_END_CHECK;
		}
		wait_signal(run, (int)pause_ms(deadline_ns, check ? CHECK_MS : IDLE_MS));
	}
}

bool run_command_interrupt_waits(int interrupt_fd)
{
	struct pollfd one = { .fd = interrupt_fd, .events = POLLIN };

	return interrupt_fd > 0 && poll(&one, 1, 0) == 1;
}

bool run_command_is_interrupted(const struct run_command *run)
{
	return run_command_interrupt_waits(run->interrupt_fd);
}

int run_command_exit_status(const struct run_command *run)
{
	if (run->pid == 0 || !run->ended) {
		return 0;
	}
	return WIFEXITED(run->wait_status) ? WEXITSTATUS(run->wait_status)
					   : 128 + WTERMSIG(run->wait_status);
}

void run_command_release_all(struct run_command *run)
{
	if (run->gate_fd >= 0) {
		close(run->gate_fd);
		run->gate_fd = -1;
	}
	if (run->pid > 0 && !run->ended) {
		end_child(run, SIGTERM);
	}
	if (run->report_fd >= 0) {
		close(run->report_fd);
	}
	if (run->signal_fd >= 0) {
		close(run->signal_fd);
	}
	if (run->interrupt_fd >= 0) {
		close(run->interrupt_fd);
	}
}
