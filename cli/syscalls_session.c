/* SPDX-License-Identifier: MIT */
/*
 * The LTTng side: the session, its place among those of other runs, its end.
 */
#include "syscalls_priv.h"
#include <errno.h>
#include <lttng/lttng.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DESTROY_MS = 10000
};

static enum tdm_status lttng_fail(struct tdm_error *err, int code, const char *doing)
{
	return tdm_fail(err, TDM_ERR_PEER, "LTTng: %s: %s", doing, lttng_strerror(code));
}

/* A session of another run: "tandem-syscalls-PID-LEVEL"; false: of somebody else. */
static bool is_of_run(const char *name, pid_t *pid, unsigned int *level)
{
	int number = 0;
	int end = 0;

	if (sscanf(name, "tandem-syscalls-%d-%u%n", &number, level, &end) != 2 || name[end] ||
		number <= 0) {
		return false;
	}
	*pid = (pid_t)number;
	return true;
}

/* A run that was killed leaves its session behind in a daemon that is not its own. */
static bool is_alive(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

bool syscalls_others_use_daemon(const char *own_name)
{
	struct lttng_session *sessions = NULL;
	const int count = lttng_list_sessions(&sessions);
	bool found = false;

	for (int i = 0; i < count; i++) {
		pid_t pid;
		unsigned int level;

		found |= strcmp(sessions[i].name, own_name) != 0 &&
			 (!is_of_run(sessions[i].name, &pid, &level) || is_alive(pid));
	}
	free(sessions);
	return found;
}

/* The runs that have each level, this one left out. */
static void count_runs(unsigned int counts[SYSCALLS_LEVELS])
{
	struct lttng_session *sessions = NULL;
	const int count = lttng_list_sessions(&sessions);

	memset(counts, 0, SYSCALLS_LEVELS * sizeof(*counts));
	for (int i = 0; i < count; i++) {
		pid_t pid;
		unsigned int level;

		if (is_of_run(sessions[i].name, &pid, &level) && level < SYSCALLS_LEVELS &&
			pid != getpid() && is_alive(pid)) {
			counts[level]++;
		}
	}
	free(sessions);
}

void syscalls_session_choose_level(struct syscalls_session *session)
{
	unsigned int counts[SYSCALLS_LEVELS];
	unsigned int best = SYSCALLS_LEVELS - 1;
	/* Runs that begin at once look at once: each begins at a place of its own. */
	const unsigned int from = (unsigned int)getpid();

	count_runs(counts);
	for (unsigned int i = 0; i < SYSCALLS_LEVELS; i++) {
		const unsigned int level = (from + i) % SYSCALLS_LEVELS;

		if (level != SYSCALLS_LEVEL_OF_OTHERS && counts[level] < counts[best]) {
			best = level;
		}
	}
	session->level = best;
	snprintf(
		session->name, sizeof(session->name), "tandem-syscalls-%d-%u", (int)getpid(), best);
}

bool syscalls_session_shares_level(const struct syscalls_session *session)
{
	unsigned int counts[SYSCALLS_LEVELS];

	count_runs(counts);
	return counts[session->level] != 0;
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

enum tdm_status syscalls_session_load(struct syscalls_session *session, const char *session_file,
	const struct syscalls_profile *profile, const char *output_url, struct tdm_error *err)
{
	struct lttng_load_session_attr *attr = lttng_load_session_attr_create();
	int code;

	if (!attr) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for LTTng's load");
	}
	session->is_snapshot = profile->is_snapshot;
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
	return profile->is_snapshot ? add_snapshot_output(session, output_url, err) : TDM_OK;
}

enum tdm_status syscalls_session_start(
	const struct syscalls_session *session, struct tdm_error *err)
{
	const int code = lttng_start_tracing(session->name);

	/* A profile may say <started>true</started>. */
	if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STARTED) {
		return lttng_fail(err, code, "starting the session");
	}
	return TDM_OK;
}

/*
 * What was recorded is written by now. The daemon's own end of a session can take for ever, where a program was killed while it
 * recorded: it is waited for, but not for ever.
 */
static int destroy(const char *name)
{
	struct lttng_destruction_handle *handle = NULL;
	const enum lttng_error_code code = lttng_destroy_session_ext(name, &handle);

	if (code == LTTNG_OK) {
		(void)lttng_destruction_handle_wait_for_completion(handle, DESTROY_MS);
		lttng_destruction_handle_destroy(handle);
		return 0;
	}
	return -(int)code;
}

void syscalls_session_discard(struct syscalls_session *session)
{
	session->created = false;
	destroy(session->name);
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
	code = destroy(session->name);
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
