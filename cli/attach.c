/* SPDX-License-Identifier: MIT */
#include "attach.h"
#include <errno.h>
#include <limits.h>
#include <lttng/lttng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/buffer.h>
#include <time.h>
#include <unistd.h>

enum {
	PERIOD_US = 100000,
	ANSWER_S = 5, /* of the session daemon, to the first question */
	END_S = 2
};

/* What one look at the session daemon says. */
enum look {
	LOOK_NOBODY, /* no daemon, or it refuses */
	LOOK_ABSENT, /* no such session */
	LOOK_STOPPED,
	LOOK_ACTIVE
};

struct attach {
	char name[NAME_MAX + 1];
	char path[PATH_MAX]; /* set before the first look is told */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_looked;
	enum look first;
	struct tdm_error err; /* of the first look */
	_Atomic int state;
	atomic_bool stopping;
};

static enum look look(struct attach *attach, struct tdm_error *err)
{
	struct lttng_session *sessions = NULL;
	const int count = lttng_list_sessions(&sessions);
	struct tdm_buffer known = { 0 };
	enum look seen = LOOK_ABSENT;

	if (count < 0) {
		tdm_fail(err, TDM_ERR_PEER, "LTTng's session daemon: %s", lttng_strerror(count));
		return LOOK_NOBODY;
	}
	for (int i = 0; i < count; i++) {
		tdm_buffer_printf(&known, "%s\"%s\"", i ? ", " : "", sessions[i].name);
		if (strcmp(sessions[i].name, attach->name) == 0) {
			seen = sessions[i].enabled ? LOOK_ACTIVE : LOOK_STOPPED;
			if (!attach->has_looked && sessions[i].path[0] == '/') {
				snprintf(
					attach->path, sizeof(attach->path), "%s", sessions[i].path);
			}
		}
	}
	if (seen == LOOK_ABSENT) {
		tdm_fail(err, TDM_ERR_RANGE, "LTTng has no session \"%s\"; it has %.*s",
			attach->name, known.size ? (int)known.size : 4,
			known.size ? (const char *)known.bytes : "none");
	}
	tdm_buffer_release(&known);
	free(sessions);
	return seen;
}

static void tell_first(struct attach *attach, enum look seen, const struct tdm_error *err)
{
	pthread_mutex_lock(&attach->lock);
	attach->first = seen;
	attach->err = *err;
	attach->has_looked = true;
	pthread_cond_signal(&attach->changed);
	pthread_mutex_unlock(&attach->lock);
}

static void *follow(void *user)
{
	struct attach *attach = user;
	struct tdm_error err = { 0 };
	enum look seen = look(attach, &err);

	attach->state = seen == LOOK_ACTIVE ? ATTACH_RUNNING : ATTACH_WAITING;
	tell_first(attach, seen, &err);
	while (!attach->stopping && attach->state != ATTACH_ENDED) {
		usleep(PERIOD_US);
		seen = look(attach, NULL);
		if (seen == LOOK_ACTIVE) {
			attach->state = ATTACH_RUNNING;
		} else if (seen != LOOK_STOPPED || attach->state == ATTACH_RUNNING) {
			attach->state = ATTACH_ENDED;
		}
	}
	return NULL;
}

static struct timespec in_seconds(unsigned int seconds)
{
	struct timespec when;

	clock_gettime(CLOCK_REALTIME, &when);
	when.tv_sec += seconds;
	return when;
}

/* Waits for the first answer. */
static enum tdm_status await_first(struct attach *attach, struct tdm_error *err)
{
	const struct timespec until = in_seconds(ANSWER_S);
	enum tdm_status status = TDM_OK;
	int failure = 0;

	pthread_mutex_lock(&attach->lock);
	while (!attach->has_looked && !failure) {
		failure = pthread_cond_timedwait(&attach->changed, &attach->lock, &until);
	}
	if (!attach->has_looked) {
		status = tdm_fail(err, TDM_ERR_PEER,
			"LTTng's session daemon does not answer in %d s", ANSWER_S);
	} else if (attach->first == LOOK_NOBODY || attach->first == LOOK_ABSENT) {
		*err = attach->err;
		status = err->status;
	}
	pthread_mutex_unlock(&attach->lock);
	return status;
}

struct attach *attach_create(const char *text, struct tdm_error *err)
{
	static const char prefix[] = "lttng:";
	const char *name = text + sizeof(prefix) - 1;
	struct attach *attach;

	if (strncmp(text, prefix, sizeof(prefix) - 1) != 0 || !*name || strlen(name) > NAME_MAX) {
		tdm_fail(err, TDM_ERR_FORMAT, "--attach \"%s\": wanted lttng:SESSION", text);
		return NULL;
	}
	attach = calloc(1, sizeof(*attach));
	if (!attach) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory to follow a session");
		return NULL;
	}
	snprintf(attach->name, sizeof(attach->name), "%s", name);
	pthread_mutex_init(&attach->lock, NULL);
	pthread_cond_init(&attach->changed, NULL);

	const int failure = pthread_create(&attach->thread, NULL, follow, attach);

	if (failure) {
		tdm_fail_errno(err, failure, "starting a thread");
		free(attach);
		return NULL;
	}
	if (await_first(attach, err) != TDM_OK) {
		attach_destroy(attach);
		return NULL;
	}
	return attach;
}

enum attach_state attach_get_state(const struct attach *attach)
{
	return (enum attach_state)attach->state;
}

const char *attach_path(const struct attach *attach)
{
	return *attach->path ? attach->path : NULL;
}

const char *attach_name(const struct attach *attach)
{
	return attach->name;
}

void attach_destroy(struct attach *attach)
{
	if (!attach) {
		return;
	}

	const struct timespec until = in_seconds(END_S);

	attach->stopping = true;
	if (pthread_timedjoin_np(attach->thread, NULL, &until) != 0) {
		/* It waits for a daemon that hangs: it keeps what it uses, and the process ends soon. */
		pthread_detach(attach->thread);
		return;
	}
	pthread_cond_destroy(&attach->changed);
	pthread_mutex_destroy(&attach->lock);
	free(attach);
}
