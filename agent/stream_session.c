/* SPDX-License-Identifier: MIT */
#include "agent_stream.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void stream_list_init(struct stream_list *list)
{
	pthread_mutex_init(&list->lock, NULL);
	list->first = NULL;
}

void stream_list_release(struct stream_list *list)
{
	pthread_mutex_destroy(&list->lock);
}

static void free_session(struct stream_session *session)
{
	tdm_tap_destroy(session->tap);
	if (session->wake_fd >= 0) {
		close(session->wake_fd);
	}
	free(session->cpu_taken);
	free(session);
}

static void make_token(char *token)
{
	uint8_t bytes[TDM_STREAM_TOKEN_BYTES];

	tdm_random(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	}
}

struct stream_session *stream_session_create(
	struct stream_list *list, struct tdm_tap *tap, bool sealed, struct tdm_error *err)
{
	struct stream_session *session = calloc(1, sizeof(*session));

	if (!session) {
		tdm_tap_destroy(tap);
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a session");
		return NULL;
	}
	session->tap = tap;
	session->sealed = sealed;
	session->users = 1;
	session->state = STREAM_PREPARED;
	session->cpu_taken = calloc(tdm_tap_cpu_count(tap), 1);
	session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!session->cpu_taken || session->wake_fd < 0) {
		tdm_fail_errno(err, session->cpu_taken ? errno : ENOMEM, "making a session");
		free_session(session);
		return NULL;
	}
	make_token(session->token);
	pthread_mutex_lock(&list->lock);
	session->next = list->first;
	list->first = session;
	pthread_mutex_unlock(&list->lock);
	return session;
}

struct stream_session *stream_session_join(
	struct stream_list *list, const char *token, uint64_t cpu, struct tdm_error *err)
{
	struct stream_session *found = NULL;

	pthread_mutex_lock(&list->lock);
	for (struct stream_session *session = list->first; session; session = session->next) {
		/* Whoever comes this far has proven the secret; the token only tells sessions apart. */
		if (strcmp(session->token, token) == 0) {
			found = session;
			break;
		}
	}
	if (!found) {
		tdm_fail(err, TDM_ERR_PEER, "pages of a session that is not here");
	} else if (cpu >= tdm_tap_cpu_count(found->tap) || found->cpu_taken[cpu] ||
		   found->state != STREAM_PREPARED) {
		tdm_fail(err, TDM_ERR_PEER,
			"pages of CPU %" PRIu64 ": no such CPU, taken already, or too late", cpu);
		found = NULL;
	} else {
		found->cpu_taken[cpu] = 1;
		found->users++;
		found->open_pages++;
	}
	pthread_mutex_unlock(&list->lock);
	return found;
}

void stream_session_set_state(
	struct stream_list *list, struct stream_session *session, enum stream_state state)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&list->lock);
	session->state = state;
	pthread_mutex_unlock(&list->lock);
	if (state > STREAM_RUNNING) {
		/* Nobody reads it: it stays readable for all page threads. */
		(void)!write(session->wake_fd, &one, sizeof(one));
	}
}

void stream_session_abort(struct stream_list *list, struct stream_session *session)
{
	pthread_mutex_lock(&list->lock);
	/* While it runs its control connection is open, and so its descriptor is still that one. */
	if (session->state == STREAM_RUNNING) {
		tdm_socket_abort(session->control_fd);
	}
	pthread_mutex_unlock(&list->lock);
}

void stream_session_leave(struct stream_list *list, struct stream_session *session)
{
	pthread_mutex_lock(&list->lock);

	const bool is_last = --session->users == 0;

	for (struct stream_session **at = &list->first; is_last && *at; at = &(*at)->next) {
		if (*at == session) {
			*at = session->next;
			break;
		}
	}
	pthread_mutex_unlock(&list->lock);
	if (is_last) {
		free_session(session);
	}
}
