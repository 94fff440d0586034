/* SPDX-License-Identifier: MIT */
/*
 * The LTTng side: a daemon when none answers, the session, its end.
 */
#include "syscalls_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <lttng/lttng.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DAEMON_WAIT_MS 15000
#define STEP_MS        20

static void sleep_step(void)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };

	nanosleep(&step, NULL);
}

static enum tdm_status lttng_fail(struct tdm_error *err, int code, const char *doing)
{
	return tdm_fail(err, TDM_ERR_PEER, "LTTng: %s: %s", doing, lttng_strerror(code));
}

static void become_daemon(const char *log_path)
{
	sigset_t none;
	const int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	/* Ctrl-C is for the command; the daemon ends when we end, even when we are killed. */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (log >= 0) {
		dup2(log, 1);
		dup2(log, 2);
	}
	execlp("lttng-sessiond", "lttng-sessiond", "--no-kernel", (char *)NULL);
	_exit(127);
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

enum tdm_status syscalls_daemon_need(struct syscalls_session *session, const char *scratch,
	const struct tdm_log *log, struct tdm_error *err)
{
	char log_path[PATH_MAX + 32];
	char words[400];

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

	const pid_t pid = fork();

	if (pid < 0) {
		return tdm_fail_errno(err, errno, "fork for lttng-sessiond");
	}
	if (pid == 0) {
		become_daemon(log_path);
	}
	session->daemon_pid = pid;
	for (int waited_ms = 0; waited_ms < DAEMON_WAIT_MS; waited_ms += STEP_MS) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid) {
			session->daemon_pid = 0;
			if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
				return tdm_fail(err, TDM_ERR_IO,
					"lttng-sessiond cannot be started: is the package lttng-tools installed?");
			}
			/* The log goes with its folder. */
			last_words(log_path, words, sizeof(words));
			return tdm_fail(err, TDM_ERR_PEER,
				"lttng-sessiond ended at once; it said: %s", words);
		}
		if (lttng_session_daemon_alive() == 1) {
			return TDM_OK;
		}
		sleep_step();
	}
	syscalls_daemon_stop(session);
	return tdm_fail(err, TDM_ERR_PEER, "lttng-sessiond does not answer after %d s",
		DAEMON_WAIT_MS / 1000);
}

void syscalls_daemon_stop(struct syscalls_session *session)
{
	if (!session->daemon_pid) {
		return;
	}
	kill(session->daemon_pid, SIGTERM);
	for (int waited_ms = 0; waited_ms < DAEMON_WAIT_MS; waited_ms += STEP_MS) {
		if (waitpid(session->daemon_pid, NULL, WNOHANG) != 0) {
			session->daemon_pid = 0;
			return;
		}
		sleep_step();
	}
	kill(session->daemon_pid, SIGKILL);
	waitpid(session->daemon_pid, NULL, 0);
	session->daemon_pid = 0;
}

static enum tdm_status add_snapshot_output(
	const struct syscalls_session *session, const char *output_url, struct tdm_error *err)
{
	struct lttng_snapshot_output *output = lttng_snapshot_output_create();
	int code = -LTTNG_ERR_NOMEM;

	if (output) {
		code = lttng_snapshot_output_set_name("tandem", output);
		if (code == 0) {
			code = lttng_snapshot_output_set_ctrl_url(output_url, output);
		}
		if (code == 0) {
			code = lttng_snapshot_add_output(session->name, output);
		}
		lttng_snapshot_output_destroy(output);
	}
	return code < 0 ? lttng_fail(err, code, "the snapshot's output") : TDM_OK;
}

enum tdm_status syscalls_session_start(struct syscalls_session *session, const char *session_file,
	const struct syscalls_profile *profile, const char *output_url, struct tdm_error *err)
{
	struct lttng_load_session_attr *attr = lttng_load_session_attr_create();
	int code;

	if (!attr) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for LTTng's load");
	}
	session->is_snapshot = profile->is_snapshot;
	snprintf(session->name, sizeof(session->name), "tandem-syscalls-%d", (int)getpid());
	code = lttng_load_session_attr_set_input_url(attr, session_file);
	/* Before the names: liblttng-ctl 2.13 frees the session name when it is given a url. */
	if (code == 0 && !profile->is_snapshot) {
		code = lttng_load_session_attr_set_override_url(attr, output_url);
	}
	if (code == 0) {
		code = lttng_load_session_attr_set_session_name(attr, profile->name);
	}
	if (code == 0) {
		code = lttng_load_session_attr_set_override_session_name(attr, session->name);
	}
	if (code == 0) {
		code = lttng_load_session(attr);
	}
	lttng_load_session_attr_destroy(attr);
	if (code != 0) {
		return lttng_fail(err, code, "loading the session");
	}
	session->created = true;
	if (profile->is_snapshot) {
		const enum tdm_status status = add_snapshot_output(session, output_url, err);

		if (status != TDM_OK) {
			return status;
		}
	}
	code = lttng_start_tracing(session->name);
	/* A profile may say <started>true</started>. */
	if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STARTED) {
		return lttng_fail(err, code, "starting the session");
	}
	return TDM_OK;
}

enum tdm_status syscalls_session_stop(struct syscalls_session *session, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;
	int code;

	if (!session->created) {
		return TDM_OK;
	}
	session->created = false;
	code = lttng_stop_tracing(session->name); /* waits until what was recorded is written */
	if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STOPPED) {
		status = lttng_fail(err, code, "stopping the session");
	}
	if (status == TDM_OK && session->is_snapshot) {
		code = lttng_snapshot_record(session->name, NULL, 0);
		if (code < 0) {
			status = lttng_fail(err, code, "writing the snapshot");
		}
	}
	code = lttng_destroy_session(session->name);
	if (code < 0 && status == TDM_OK) {
		status = lttng_fail(err, code, "removing the session");
	}
	return status;
}

/* Has this channel an enabled rule that our events match? */
static bool records_ours(struct lttng_handle *handle, const char *channel)
{
	struct lttng_event *events = NULL;
	const int count = lttng_list_events(handle, channel, &events);
	bool found = false;

	for (int i = 0; i < count; i++) {
		found |= events[i].enabled && (strncmp(events[i].name, "tandem:", 7) == 0 ||
						      strcmp(events[i].name, "*") == 0);
	}
	free(events);
	return found;
}

enum tdm_status syscalls_session_check(const char *name, struct tdm_error *err)
{
	struct lttng_session *sessions = NULL;
	struct lttng_domain domain = { .type = LTTNG_DOMAIN_UST, .buf_type = LTTNG_BUFFER_PER_UID };
	struct lttng_channel *channels = NULL;
	struct lttng_handle *handle;
	bool is_there = false;
	bool is_active = false;
	bool records = false;
	int count = lttng_list_sessions(&sessions);

	if (count < 0) {
		return lttng_fail(err, count, "listing the sessions");
	}
	for (int i = 0; i < count; i++) {
		if (strcmp(sessions[i].name, name) == 0) {
			is_there = true;
			is_active = sessions[i].enabled;
		}
	}
	free(sessions);
	if (!is_there) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"there is no session \"%s\": lttng list shows those there are", name);
	}
	handle = lttng_create_handle(name, &domain);
	count = handle ? lttng_list_channels(handle, &channels) : 0;
	for (int i = 0; i < count; i++) {
		records |= channels[i].enabled && records_ours(handle, channels[i].name);
	}
	free(channels);
	lttng_destroy_handle(handle);
	if (!records) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"session \"%s\" records no system call: lttng enable-event -s %s -u 'tandem:*'",
			name, name);
	}
	if (!is_active) {
		return tdm_fail(err, TDM_ERR_RANGE, "session \"%s\" is not started: lttng start %s",
			name, name);
	}
	return TDM_OK;
}
