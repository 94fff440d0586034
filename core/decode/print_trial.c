/* SPDX-License-Identifier: MIT */
#include "print_trial_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* The kernel's longest formats take 1 ms. The second limit is for a machine that has no time for the child. */
	CPU_LIMIT_S = 10,
	ANSWER_LIMIT_MS = 120000
};

/* Only what the child needs stays open, and what the C library says of a damaged heap is not for the user. */
static void leave_files(int ask, int answer)
{
	const int first = ask < answer ? ask : answer;
	const int second = ask < answer ? answer : ask;
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; nothing >= 0 && fd < 3; fd++) {
		if (fd != ask && fd != answer) {
			(void)dup2(nothing, fd);
		}
	}
	if (first > 3) {
		(void)close_range(3, (unsigned int)first - 1, 0);
	}
	if (second > first + 1 && second > 3) {
		(void)close_range(
			first + 1 > 3 ? (unsigned int)first + 1 : 3, (unsigned int)second - 1, 0);
	}
	(void)close_range(second + 1 > 3 ? (unsigned int)second + 1 : 3, ~0U, 0);
}

static void __attribute__((noreturn))
serve(int ask, int answer, bool (*attempt)(void *user, const void *what), void *user)
{
	const struct rlimit no_core = { 0, 0 };
	const struct rlimit cpu = { CPU_LIMIT_S, CPU_LIMIT_S };
	const void *what;

	leave_files(ask, answer);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)setrlimit(RLIMIT_CPU, &cpu);
	signal(SIGINT, SIG_IGN);
	while (read(ask, &what, sizeof(what)) == (ssize_t)sizeof(what)) {
		const char came_back = attempt(user, what);

		if (write(answer, &came_back, 1) != 1) {
			break;
		}
	}
	_exit(0);
}

static bool start(struct print_trial *trial, bool (*attempt)(void *user, const void *what),
	void *user, size_t epoch)
{
	int ask[2], answer[2];

	if (pipe2(ask, O_CLOEXEC) != 0) {
		return false;
	}
	if (pipe2(answer, O_CLOEXEC) != 0) {
		close(ask[0]);
		close(ask[1]);
		return false;
	}

	const pid_t pid = fork();

	if (pid == 0) {
		/* The end of the asking process must be the end of the pipe. */
		close(ask[1]);
		close(answer[0]);
		serve(ask[0], answer[1], attempt, user);
	}
	close(answer[1]);
	if (pid < 0) {
		close(ask[0]);
		close(ask[1]);
		close(answer[0]);
		return false;
	}
	/* The reading end stays open here too: a question to a child that died is no SIGPIPE. */
	*trial = (struct print_trial){ pid, ask[0], ask[1], answer[0], epoch };
	return true;
}

void print_trial_end(struct print_trial *trial)
{
	if (!trial->pid) {
		return;
	}
	close(trial->ask_read);
	close(trial->ask_write);
	close(trial->answer_read);
	kill(trial->pid, SIGKILL);
	while (waitpid(trial->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	trial->pid = 0;
}

bool print_trial_passes(struct print_trial *trial, bool (*attempt)(void *user, const void *what),
	void *user, const void *what, size_t epoch)
{
	char came_back = 0;

	if (trial->pid && trial->epoch != epoch) {
		print_trial_end(trial);
	}
	/* Where no process can be made, nothing is tried. */
	if (!trial->pid && !start(trial, attempt, user, epoch)) {
		return false;
	}
	if (write(trial->ask_write, &what, sizeof(what)) == (ssize_t)sizeof(what)) {
		struct pollfd answer = { .fd = trial->answer_read, .events = POLLIN };
		int ready;

		do {
			ready = poll(&answer, 1, ANSWER_LIMIT_MS);
		} while (ready < 0 && errno == EINTR);
		if (ready == 1 && read(trial->answer_read, &came_back, 1) == 1) {
			return came_back == 1;
		}
	}
	print_trial_end(trial);
	return false;
}
