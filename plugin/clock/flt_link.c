/* SPDX-License-Identifier: MIT */
#include "clock/flt_link.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <tandem/address.h>
#include <tandem/sync_link.h>
#include <unistd.h>

enum {
	CONNECT_MS = 2000,     /* also how long destroying may take */
	SILENCE_MS = 10000,    /* a service says "wait" each second: after this it is gone */
	PAUSE_LEAST_MS = 100,  /* between attempts, doubled each time ... */
	PAUSE_MOST_MS = 5000,  /* ... up to this */
	QUEUE_MOST = 1 << 16,  /* lines; then the thread stops receiving until some are taken */
	LINE_MOST_BYTES = 512, /* twice what the format allows */
};

struct node {
	struct node *next;
	char *line; /* NULL: a new connection */
};

struct flt_link {
	struct tdm_address address;
	char *guest; /* NULL = the only one */
	struct tdm_secret secret;
	int stop_fd; /* readable once the thread must end */
	pthread_t thread;
	bool has_thread;
	/* Shared with the thread, under the lock. */
	pthread_mutex_t lock;
	struct node *first, *last;
	size_t count;
	struct flt_link_news news;
	/* The thread's own. */
	char partial[LINE_MOST_BYTES];
	size_t partial_bytes;
	bool complete; /* "end" came */
};

/* ---- the queue ---- */

static bool push(struct flt_link *link, char *line)
{
	struct node *node = malloc(sizeof(*node));

	if (!node) {
		free(line);
		return false;
	}
	*node = (struct node){ NULL, line };
	pthread_mutex_lock(&link->lock);
	if (link->last) {
		link->last->next = node;
	} else {
		link->first = node;
	}
	link->last = node;
	link->count++;
	pthread_mutex_unlock(&link->lock);
	return true;
}

bool flt_link_take(struct flt_link *link, char **line)
{
	pthread_mutex_lock(&link->lock);

	struct node *node = link->first;

	if (node) {
		link->first = node->next;
		link->last = link->first ? link->last : NULL;
		link->count--;
	}
	pthread_mutex_unlock(&link->lock);
	if (!node) {
		return false;
	}
	*line = node->line;
	free(node);
	return true;
}

void flt_link_get_news(struct flt_link *link, struct flt_link_news *news)
{
	pthread_mutex_lock(&link->lock);
	*news = link->news;
	link->news.came = false;
	link->news.went = false;
	pthread_mutex_unlock(&link->lock);
}

static void say_came(struct flt_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->news.came = true;
	link->news.went = false;
	pthread_mutex_unlock(&link->lock);
}

static void say_went(struct flt_link *link, const char *why)
{
	pthread_mutex_lock(&link->lock);
	link->news.went = true;
	snprintf(link->news.why, sizeof(link->news.why), "%.250s", why);
	pthread_mutex_unlock(&link->lock);
}

static bool is_full(struct flt_link *link)
{
	pthread_mutex_lock(&link->lock);

	const bool full = link->count >= QUEUE_MOST;

	pthread_mutex_unlock(&link->lock);
	return full;
}

/* ---- the thread ---- */

/* True where the thread must end. */
static bool pause_ms(struct flt_link *link, uint32_t ms)
{
	return tdm_socket_wait(link->stop_fd, TDM_WAIT_READ, -1, tdm_deadline_ns(ms)) == TDM_OK;
}

/* Cuts received bytes into lines; one may be spread over two frames. */
static enum tdm_status take_bytes(
	struct flt_link *link, const uint8_t *bytes, size_t size, struct tdm_error *err)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != '\n') {
			if (link->partial_bytes + 1 >= sizeof(link->partial)) {
				return tdm_fail(err, TDM_ERR_PEER,
					"the service sent a line of more than %d bytes",
					LINE_MOST_BYTES - 1);
			}
			link->partial[link->partial_bytes++] = (char)bytes[i];
			continue;
		}
		link->partial[link->partial_bytes] = '\0';
		link->partial_bytes = 0;
		if (strncmp(link->partial, "wait", 4) == 0) {
			continue;
		}
		link->complete = strcmp(link->partial, "end") == 0;

		char *line = strdup(link->partial);

		if (!line || !push(link, line)) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a line");
		}
	}
	return TDM_OK;
}

/* Receives until the service ends, goes, or the thread must stop. */
static enum tdm_status receive_lines(
	struct flt_link *link, struct tdm_link *connection, struct tdm_error *err)
{
	uint64_t deadline_ns = tdm_deadline_ns(SILENCE_MS);

	while (!link->complete) {
		struct tdm_frame frame;

		if (is_full(link)) {
			if (pause_ms(link, PAUSE_LEAST_MS)) {
				return TDM_END;
			}
			continue;
		}
		const enum tdm_status status =
			tdm_link_receive(connection, &frame, deadline_ns, link->stop_fd, err);

		if (status == TDM_AGAIN) {
			if (pause_ms(link, 0)) {
				return TDM_END;
			}
			if (tdm_now_ns() >= deadline_ns) {
				return tdm_fail(
					err, TDM_ERR_PEER, "silent for %d s", SILENCE_MS / 1000);
			}
			continue;
		}
		if (status == TDM_END) {
			return link->complete ? TDM_OK
					      : tdm_fail(err, TDM_ERR_PEER, "the service closed");
		}
		if (status != TDM_OK) {
			return status;
		}
		deadline_ns = tdm_deadline_ns(SILENCE_MS);
		if (frame.type != TDM_FRAME_LINES) {
			return tdm_fail(err, TDM_ERR_PEER,
				"the service sent a frame of type %u, wanted lines", frame.type);
		}
		const enum tdm_status taken = take_bytes(link, frame.body, frame.size_bytes, err);

		if (taken != TDM_OK) {
			return taken;
		}
	}
	return TDM_OK;
}

static enum tdm_status connect_once(
	struct flt_link *link, struct tdm_link **connection, struct tdm_error *err)
{
	const struct tdm_link_options options = { .secret = &link->secret };
	struct tdm_address address = link->address;
	struct tdm_buffer open = { .cap = 4096 };
	enum tdm_status status = TDM_OK;

	if (address.kind == TDM_ADDRESS_TCP) {
		status = tdm_address_resolve(&address, err);
	}
	if (status == TDM_OK) {
		status = tdm_open_put(&open, TDM_PURPOSE_CORRECTIONS, 0);
	}
	if (status == TDM_OK && link->guest) {
		status = tdm_record_add(&open, "guest", link->guest);
	}
	if (status == TDM_OK) {
		status = tdm_link_open(&address, &options, &open, tdm_deadline_ns(CONNECT_MS), 0,
			connection, NULL, err);
	}
	tdm_buffer_release(&open);
	return status;
}

static void *run(void *user)
{
	struct flt_link *link = user;
	uint32_t wait_ms = PAUSE_LEAST_MS;

	do {
		struct tdm_error err = { .status = TDM_OK };
		struct tdm_link *connection = NULL;

		if (connect_once(link, &connection, &err) == TDM_OK) {
			wait_ms = PAUSE_LEAST_MS;
			link->partial_bytes = 0;
			if (push(link, NULL)) {
				say_came(link);
				(void)receive_lines(link, connection, &err);
			}
			tdm_link_destroy(connection);
		}
		if (link->complete || pause_ms(link, 0)) {
			break;
		}
		say_went(link, err.text);
		if (pause_ms(link, wait_ms)) {
			break;
		}
		wait_ms = wait_ms * 2 < PAUSE_MOST_MS ? wait_ms * 2 : PAUSE_MOST_MS;
	} while (true);
	return NULL;
}

/* ---- life ---- */

static enum tdm_status start_thread(struct flt_link *link, struct tdm_error *err)
{
	sigset_t all, before;

	/* Signals are the graph's matter. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);

	const int fault = pthread_create(&link->thread, NULL, run, link);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (fault) {
		return tdm_fail_errno(err, fault, "cannot start a thread");
	}
	link->has_thread = true;
	return TDM_OK;
}

struct flt_link *flt_link_create(
	const char *address, const char *guest, const char *secret_file, struct tdm_error *err)
{
	struct flt_link *link = calloc(1, sizeof(*link));

	if (!link) {
		(void)tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		return NULL;
	}
	pthread_mutex_init(&link->lock, NULL);
	link->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	link->guest = guest ? strdup(guest) : NULL;
	if (link->stop_fd < 0 || (guest && !link->guest)) {
		(void)tdm_fail(err, TDM_ERR_NOMEM, "no descriptor or memory");
		goto fail;
	}
	if (tdm_address_parse(address, TDM_ADDRESS_CONNECT, &link->address, err) != TDM_OK ||
		(secret_file && tdm_secret_load(secret_file, &link->secret, err) != TDM_OK) ||
		start_thread(link, err) != TDM_OK) {
		goto fail;
	}
	return link;
fail:
	flt_link_destroy(link);
	return NULL;
}

void flt_link_destroy(struct flt_link *link)
{
	char *line;

	if (!link) {
		return;
	}
	if (link->has_thread) {
		const uint64_t one = 1;

		(void)!write(link->stop_fd, &one, sizeof(one));
		pthread_join(link->thread, NULL);
	}
	while (flt_link_take(link, &line)) {
		free(line);
	}
	if (link->stop_fd >= 0) {
		close(link->stop_fd);
	}
	tdm_secret_clear(&link->secret);
	pthread_mutex_destroy(&link->lock);
	free(link->guest);
	free(link);
}
