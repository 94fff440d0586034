/* SPDX-License-Identifier: MIT */
/*
 * A session daemon where none answers. A process of ours keeps it: it ends the daemon when this program has ended, killed or
 * not, and no other run or session uses it any more.
 */
#include "syscalls_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <lttng/lttng.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	DAEMON_WAIT_MS = 15000,
	DAEMON_END_MS = 10000, /* then it hangs, and is killed */
	KEEPER_SPARE_MS = 5000,
	STEP_MS = 20,
	OTHERS_MS = 500 /* between looks for others, once our own run is over */
};

static void sleep_step(void)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };

	nanosleep(&step, NULL);
}

/* Waits for a child to end; false: it did not. */
static bool wait_child(pid_t pid, int limit_ms, int *status)
{
	for (int waited_ms = 0; waited_ms < limit_ms; waited_ms += STEP_MS) {
		if (waitpid(pid, status, WNOHANG) != 0) {
			return true;
		}
		sleep_step();
	}
	return false;
}

static void become_daemon(const char *log_path)
{
	const int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	/* It ends with its keeper. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (log >= 0) {
		dup2(log, 1);
		dup2(log, 2);
	}
	execlp("lttng-sessiond", "lttng-sessiond", "--no-kernel", (char *)NULL);
	_exit(127);
}

static void end_daemon(pid_t daemon)
{
	int status;

	kill(daemon, SIGTERM);
	if (!wait_child(daemon, DAEMON_END_MS, &status)) {
		kill(daemon, SIGKILL);
		waitpid(daemon, &status, 0);
	}
}

/* Nothing of ours but the pipe: whoever waits for our output must not wait for the keeper. */
static void leave_terminal(int owner_fd)
{
	const int null_fd = open("/dev/null", O_RDWR);
	sigset_t none;

	/* Ctrl-C is for the command. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = 0; null_fd >= 0 && fd < 3; fd++) {
		dup2(null_fd, fd);
	}
	if (owner_fd > 3) {
		close_range(3, (unsigned int)owner_fd - 1, 0);
	}
	close_range((unsigned int)owner_fd + 1, ~0U, 0);
	prctl(PR_SET_NAME, "tandem-keeper");
}

/* Never returns. Its status is the daemon's where that ended by itself. */
static _Noreturn void keep_daemon(
	const struct syscalls_session *session, const char *log_path, int owner_fd)
{
	struct pollfd fds[2] = { { .fd = owner_fd, .events = POLLIN }, { .events = POLLIN } };
	const bool is_private = session->home[0] != '\0';
	int status = 0;

	leave_terminal(owner_fd);

	const pid_t daemon = fork();

	if (daemon == 0) {
		become_daemon(log_path);
	}
	if (daemon < 0) {
		_exit(1);
	}
	fds[1].fd = pidfd_open(daemon, 0);
	for (;;) {
		poll(fds, 2, fds[0].fd < 0 || fds[1].fd < 0 ? OTHERS_MS : -1);
		if (waitpid(daemon, &status, WNOHANG) == daemon) {
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
		if (fds[0].revents) {
			fds[0].fd = -1;
		}
		if (fds[0].fd < 0 && (is_private || !syscalls_others_use_daemon(""))) {
			end_daemon(daemon);
			_exit(0);
		}
	}
}

/* The end of what the daemon wrote, as one line; "nothing" where it wrote none. */
static void last_words(const char *log_path, char *words, size_t room)
{
	FILE *const in = fopen(log_path, "re");
	size_t got = 0;

	if (in) {
		if (fseek(in, -(long)(room - 1), SEEK_END) != 0) {
			rewind(in); /* it is shorter */
		}
		got = fread(words, 1, room - 1, in);
		fclose(in);
	}
	while (got && strchr(" \r\n", words[got - 1])) {
		got--;
	}
	words[got] = '\0';
	for (size_t i = 0; i < got; i++) {
		words[i] = words[i] == '\n' ? '|' : (unsigned char)words[i] < ' ' ? ' ' : words[i];
	}
	if (!got) {
		snprintf(words, room, "nothing");
	}
}

/* Root's daemon is one for all: another run may have started it at the same moment, and then ours ends at once. */
static bool is_another_there(const char *words)
{
	const bool may_come = strstr(words, "already running") || strstr(words, "is running");

	for (int waited_ms = 0; waited_ms < DAEMON_WAIT_MS; waited_ms += STEP_MS) {
		if (lttng_session_daemon_alive() == 1) {
			return true;
		}
		if (!may_come) {
			break;
		}
		sleep_step();
	}
	return false;
}

static enum tdm_status start_keeper(
	struct syscalls_session *session, const char *log_path, struct tdm_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return tdm_fail_errno(err, errno, "pipe for lttng-sessiond");
	}

	const pid_t pid = fork();

	if (pid == 0) {
		keep_daemon(session, log_path, ends[0]);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return tdm_fail_errno(err, errno, "fork for lttng-sessiond");
	}
	session->keeper_pid = pid;
	session->keeper_fd = ends[1];
	return TDM_OK;
}

enum tdm_status syscalls_daemon_need(struct syscalls_session *session, const char *scratch,
	const struct tdm_log *log, struct tdm_error *err)
{
	char log_path[PATH_MAX + 32];
	char words[400];
	enum tdm_status status;

	if (lttng_session_daemon_alive() == 1) {
		TDM_DEBUG(log, "A session daemon answers");
		return TDM_OK;
	}
	if (geteuid() != 0) {
		/* Its sockets go into our own folder: nothing of it is left in the user's home. */
		snprintf(session->home, sizeof(session->home), "%s", scratch);
		if (setenv("LTTNG_HOME", session->home, 1) != 0) {
			return tdm_fail_errno(err, errno, "LTTNG_HOME");
		}
	}
	snprintf(log_path, sizeof(log_path), "%s/sessiond.log", scratch);
	status = start_keeper(session, log_path, err);
	if (status != TDM_OK) {
		return status;
	}
	for (int waited_ms = 0; waited_ms < DAEMON_WAIT_MS; waited_ms += STEP_MS) {
		int ended;

		if (lttng_session_daemon_alive() == 1) {
			return TDM_OK;
		}
		if (waitpid(session->keeper_pid, &ended, WNOHANG) == session->keeper_pid) {
			session->keeper_pid = 0;
			syscalls_daemon_stop(session);
			if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127) {
				return tdm_fail(err, TDM_ERR_IO,
					"lttng-sessiond cannot be started: is the package lttng-tools installed?");
			}
			/* The log goes with its folder. */
			last_words(log_path, words, sizeof(words));
			if (is_another_there(words)) {
				return TDM_OK;
			}
			return tdm_fail(err, TDM_ERR_PEER,
				"lttng-sessiond ended at once; it said: %s", words);
		}
		sleep_step();
	}
	syscalls_daemon_stop(session);
	return tdm_fail(err, TDM_ERR_PEER, "lttng-sessiond does not answer after %d s",
		DAEMON_WAIT_MS / 1000);
}

void syscalls_daemon_stop(struct syscalls_session *session)
{
	int status;

	if (session->keeper_fd >= 0) {
		close(session->keeper_fd);
		session->keeper_fd = -1;
	}
	if (!session->keeper_pid) {
		return;
	}
	/*
	 * Where others use the daemon its keeper waits for them, and we do not wait for it. Else longer than the keeper waits
	 * before it kills a daemon that hangs: without its keeper that one would stay for ever.
	 */
	if ((session->home[0] || !syscalls_others_use_daemon(session->name)) &&
		!wait_child(session->keeper_pid, DAEMON_END_MS + KEEPER_SPARE_MS, &status)) {
		kill(session->keeper_pid, SIGKILL); /* and the daemon gets SIGTERM by that */
		waitpid(session->keeper_pid, &status, 0);
	}
	session->keeper_pid = 0;
}
