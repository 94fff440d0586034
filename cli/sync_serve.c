/* SPDX-License-Identifier: MIT */
#include "sync_serve.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <tandem/buffer.h>
#include <tandem/socket.h>
#include <unistd.h>

enum {
	READER_MAX = 1024,
	GREETING_MAX = 128, /* connections that have not said OPEN; the oldest makes room */
	ACCEPT_BATCH = 64,  /* then those that are there have their turn */
	PAUSE_US = 20000,
	GREETING_MS = 10000,
	WAIT_MS = 1000,     /* "wait" where nothing is new */
	CHUNK_BYTES = 8192, /* of one frame */
	FEED_MAX_BYTES = 64 << 20,
	DRAIN_MS = 2000,
	EVENTS = 64
};

struct feed {
	char name[65];
	struct tdm_buffer text;
};

/* One connection: greeting until it has said OPEN, then a place in a feed. */
struct reader {
	struct reader *next;
	struct tdm_link *link;
	struct feed *feed; /* NULL while greeting */
	char who[96];
	bool is_root; /* on this machine */
	size_t at;
	struct tdm_buffer out; /* one frame on its way */
	size_t out_at;
	uint64_t since_ns; /* of the connection, then of the last thing said */
	bool is_gone, sent_end, wants_write;
};

struct sync_serve {
	const struct tdm_secret *secret;
	const struct tdm_log *log;
	struct tdm_address address;
	int listener, epoll_fd, wake_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* feeds' texts and is_ending */
	struct feed *feeds;
	size_t feed_count;
	bool is_ending;
	struct reader *readers;
	size_t reader_count;
	struct tdm_log_limit log_limit; /* of what strangers do */
	void (*take_stream)(void *user, struct tdm_link *link, const char *who, bool may_view,
		const struct tdm_open *open);
	void *take_user;
};

static void watch(struct sync_serve *serve, struct reader *reader, int operation)
{
	struct epoll_event event = { .events = EPOLLIN |
					       (reader->wants_write ? (uint32_t)EPOLLOUT : 0u),
		.data.u64 = (uintptr_t)reader };

	epoll_ctl(serve->epoll_fd, operation, tdm_link_fd(reader->link), &event);
}

/* Whoever has been silent longest goes: a viewer that means it needs a millisecond to say OPEN. */
static bool drop_oldest_greeting(struct sync_serve *serve, size_t allowed)
{
	struct reader *oldest = NULL;
	size_t count = 0;

	/* The newest comes first in the list. */
	for (struct reader *reader = serve->readers; reader; reader = reader->next) {
		if (!reader->feed && !reader->is_gone) {
			oldest = reader;
			count++;
		}
	}
	if (!oldest || count < allowed) {
		return false;
	}
	tdm_log_limited(&serve->log_limit, serve->log,
		"%s: closed: too many connections that do nothing", oldest->who);
	/* Freed with its descriptor once all events have been looked at. */
	oldest->is_gone = true;
	return true;
}

static void accept_readers(struct sync_serve *serve)
{
	struct tdm_peer peer;
	struct tdm_error err;
	int fd;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		const enum tdm_status status = tdm_socket_accept(serve->listener, &fd, &peer, &err);

		if (status == TDM_ERR_NOMEM && !drop_oldest_greeting(serve, 1)) {
			/* No descriptors, and none of them ours to give: the listener stays readable. */
			usleep(PAUSE_US);
		}
		if (status != TDM_OK) {
			return;
		}
		drop_oldest_greeting(serve, GREETING_MAX);

		const struct tdm_link_options options = { .secret = serve->secret,
			.capabilities =
				TDM_CAN_CORRECTIONS | (serve->take_stream ? TDM_CAN_STREAM : 0),
			/* Whoever is on this machine may read how its clocks run. */
			.wants_proof = serve->secret && !peer.is_loopback };
		struct reader *reader = calloc(1, sizeof(*reader));

		if (!reader || serve->reader_count >= READER_MAX) {
			free(reader);
			close(fd);
			continue;
		}
		reader->link = tdm_link_create(fd, TDM_ROLE_SERVER, &options, &err);
		if (!reader->link) {
			free(reader);
			continue;
		}
		snprintf(reader->who, sizeof(reader->who), "%s", peer.text);
		reader->is_root = peer.kind == TDM_ADDRESS_UNIX && peer.uid == 0;
		reader->since_ns = tdm_now_ns();
		reader->next = serve->readers;
		serve->readers = reader;
		serve->reader_count++;
		watch(serve, reader, EPOLL_CTL_ADD);
	}
}

/* OPEN: which guest? Without a name the only one. */
static const char *open_feed(
	struct sync_serve *serve, struct reader *reader, const struct tdm_frame *frame)
{
	struct tdm_buffer opened = { .cap = 1024 };
	char name[TDM_VALUE_MAX + 1];
	struct tdm_open open;

	if (frame->type != TDM_FRAME_OPEN ||
		tdm_open_get(frame->body, frame->size_bytes, &open, NULL) != TDM_OK ||
		open.purpose != TDM_PURPOSE_CORRECTIONS) {
		return "this service serves corrections, OPEN was for something else";
	}
	if (tdm_record_find(open.text, open.text_bytes, "guest", 0, name)) {
		for (size_t i = 0; i < serve->feed_count; i++) {
			if (strcmp(serve->feeds[i].name, name) == 0) {
				reader->feed = &serve->feeds[i];
			}
		}
		if (!reader->feed) {
			return "no guest of that name";
		}
	} else if (serve->feed_count == 1) {
		reader->feed = &serve->feeds[0];
	} else {
		return "there are several guests: name one";
	}
	tdm_opened_put(&opened, open.session, 0);
	tdm_record_add(&opened, "guest", reader->feed->name);

	const enum tdm_status status = tdm_link_pack(
		reader->link, TDM_FRAME_OPENED, opened.bytes, opened.size, &reader->out);

	tdm_buffer_release(&opened);
	return status == TDM_OK ? NULL : "no memory";
}

/* OPEN for a stream is somebody else's; the reader is left without its link. */
static bool hand_over(
	struct sync_serve *serve, struct reader *reader, const struct tdm_frame *frame)
{
	struct tdm_open open;

	if (!serve->take_stream || frame->type != TDM_FRAME_OPEN ||
		tdm_open_get(frame->body, frame->size_bytes, &open, NULL) != TDM_OK ||
		open.purpose != TDM_PURPOSE_STREAM) {
		return false;
	}
	epoll_ctl(serve->epoll_fd, EPOLL_CTL_DEL, tdm_link_fd(reader->link), NULL);
	serve->take_stream(serve->take_user, reader->link, reader->who,
		reader->is_root || tdm_link_is_proven(reader->link), &open);
	reader->link = NULL;
	return true;
}

static void read_from(struct sync_serve *serve, struct reader *reader)
{
	struct tdm_error err = { 0 };
	struct tdm_frame frame;
	enum tdm_status status = reader->is_gone ? TDM_AGAIN : tdm_link_fill(reader->link, &err);

	if (status == TDM_OK) {
		status = tdm_link_next(reader->link, &frame, &err);
	}
	if (status == TDM_AGAIN) {
		return;
	}
	if (status == TDM_OK && !reader->feed && hand_over(serve, reader, &frame)) {
		reader->is_gone = true;
		return;
	}
	if (status == TDM_OK && !reader->feed) {
		const char *reason = open_feed(serve, reader, &frame);

		if (!reason) {
			return;
		}
		tdm_link_refuse(reader->link, reason);
		tdm_log_limited(
			&serve->log_limit, serve->log, "%s: refused: %s", reader->who, reason);
	} else if (status == TDM_OK) {
		tdm_link_refuse(reader->link, "nothing is wanted after OPEN");
		tdm_log_limited(&serve->log_limit, serve->log,
			"%s: sent a frame of type %u after OPEN", reader->who, frame.type);
	} else if (status != TDM_END && !reader->feed) {
		tdm_log_limited(&serve->log_limit, serve->log, "%s: %s", reader->who, err.text);
	}
	reader->is_gone = true;
}

/* The next whole lines of the feed from the reader's place on, as one frame. The lock is held. */
static void pack_lines(struct sync_serve *serve, struct reader *reader, uint64_t now_ns)
{
	const char *text = (const char *)reader->feed->text.bytes + reader->at;
	size_t size = reader->feed->text.size - reader->at;

	if (size > CHUNK_BYTES) {
		const char *last = memrchr(text, '\n', CHUNK_BYTES);

		size = last ? (size_t)(last - text) + 1 : size;
	}
	reader->out.size = 0;
	reader->out_at = 0;
	if (size > 0) {
		if (tdm_link_pack(reader->link, TDM_FRAME_LINES, text, size, &reader->out) ==
			TDM_OK) {
			reader->at += size;
		}
	} else if (serve->is_ending && !reader->sent_end) {
		tdm_link_pack(reader->link, TDM_FRAME_LINES, "end\n", 4, &reader->out);
		reader->sent_end = true;
	} else if (!serve->is_ending && now_ns - reader->since_ns >= (uint64_t)WAIT_MS * 1000000) {
		tdm_link_pack(reader->link, TDM_FRAME_LINES, "wait\n", 5, &reader->out);
	} else {
		return;
	}
	reader->since_ns = now_ns;
}

/* Sends what the reader's socket takes now. */
static void write_to(struct sync_serve *serve, struct reader *reader, uint64_t now_ns)
{
	bool blocked = false;

	while (!reader->is_gone && !blocked) {
		size_t sent;

		if (reader->out_at == reader->out.size && reader->feed) {
			pthread_mutex_lock(&serve->lock);
			pack_lines(serve, reader, now_ns);
			pthread_mutex_unlock(&serve->lock);
		}
		if (reader->out_at == reader->out.size) {
			break;
		}

		const enum tdm_status status = tdm_socket_send_some(tdm_link_fd(reader->link),
			reader->out.bytes + reader->out_at, reader->out.size - reader->out_at,
			&sent, NULL);

		reader->out_at += sent;
		blocked = status == TDM_AGAIN;
		reader->is_gone |= status != TDM_OK && status != TDM_AGAIN;
	}
	if (blocked != reader->wants_write && !reader->is_gone) {
		reader->wants_write = blocked;
		watch(serve, reader, EPOLL_CTL_MOD);
	}
}

static bool is_done(const struct reader *reader)
{
	return reader->is_gone || (reader->sent_end && reader->out_at == reader->out.size);
}

static void free_reader(struct reader *reader)
{
	tdm_link_destroy(reader->link);
	tdm_buffer_release(&reader->out);
	free(reader);
}

/* Serves all readers once; drops those that are done. @return False once it ends and nobody is left. */
static bool serve_all(struct sync_serve *serve, uint64_t end_ns)
{
	const uint64_t now_ns = tdm_now_ns();

	for (struct reader **at = &serve->readers; *at;) {
		struct reader *reader = *at;

		if (!reader->feed && now_ns - reader->since_ns > (uint64_t)GREETING_MS * 1000000) {
			tdm_link_refuse(reader->link, "too slow: OPEN was wanted within 10 s");
			reader->is_gone = true;
		}
		write_to(serve, reader, now_ns);
		if (is_done(reader) || (end_ns && (!reader->feed || now_ns >= end_ns))) {
			*at = reader->next;
			serve->reader_count--;
			free_reader(reader);
		} else {
			at = &reader->next;
		}
	}
	return !end_ns || serve->readers;
}

static void *serve_main(void *user)
{
	struct sync_serve *serve = user;
	uint64_t end_ns = 0;

	do {
		struct epoll_event events[EVENTS];
		/* Nobody reads: nothing wakes us but news. */
		const int count = epoll_wait(serve->epoll_fd, events, EVENTS,
			end_ns           ? 50
			: serve->readers ? WAIT_MS / 4
					 : -1);
		uint64_t news;

		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 == 0) {
				accept_readers(serve);
			} else if (events[i].data.u64 == 1) {
				(void)!read(serve->wake_fd, &news, sizeof(news));
			} else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
				read_from(serve, (struct reader *)(uintptr_t)events[i].data.u64);
			}
		}
		pthread_mutex_lock(&serve->lock);
		if (serve->is_ending && !end_ns) {
			end_ns = tdm_deadline_ns(DRAIN_MS);
		}
		pthread_mutex_unlock(&serve->lock);
	} while (serve_all(serve, end_ns));
	return NULL;
}

static enum tdm_status start(struct sync_serve *serve, struct tdm_error *err)
{
	struct epoll_event listening = { .events = EPOLLIN, .data.u64 = 0 };
	struct epoll_event waking = { .events = EPOLLIN, .data.u64 = 1 };
	enum tdm_status status = tdm_socket_listen(&serve->address, &serve->listener, err);

	if (status != TDM_OK) {
		return status;
	}
	serve->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	serve->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, serve->listener, &listening) != 0 ||
		epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, serve->wake_fd, &waking) != 0 ||
		pthread_create(&serve->thread, NULL, serve_main, serve) != 0) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no descriptors or threads for the service");
	}
	return TDM_OK;
}

static void release(struct sync_serve *serve)
{
	const int fds[] = { serve->listener, serve->epoll_fd, serve->wake_fd };

	for (size_t i = 0; i < 3; i++) {
		if (fds[i] >= 0) {
			close(fds[i]);
		}
	}
	if (serve->listener >= 0 && serve->address.kind == TDM_ADDRESS_UNIX) {
		unlink(serve->address.path);
	}
	for (size_t i = 0; i < serve->feed_count; i++) {
		tdm_buffer_release(&serve->feeds[i].text);
	}
	pthread_mutex_destroy(&serve->lock);
	tdm_log_limit_release(&serve->log_limit);
	free(serve->feeds);
	free(serve);
}

struct sync_serve *sync_serve_create(struct tdm_address *address, const char *const *names,
	size_t name_count, const struct tdm_secret *secret, const struct tdm_log *log,
	struct tdm_error *err)
{
	const bool has_secret = secret && secret->is_set;

	if (!tdm_address_is_local(address) && !has_secret) {
		char text[320];

		tdm_address_print(address, text, sizeof(text));
		tdm_fail(err, TDM_ERR_RANGE,
			"%s can be reached from other machines: --secret-file is needed", text);
		return NULL;
	}

	struct sync_serve *serve = calloc(1, sizeof(*serve));

	if (!serve) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for the service");
		return NULL;
	}
	serve->secret = has_secret ? secret : NULL;
	serve->log = log;
	serve->address = *address;
	serve->listener = serve->epoll_fd = serve->wake_fd = -1;
	pthread_mutex_init(&serve->lock, NULL);
	tdm_log_limit_init(&serve->log_limit);
	serve->feeds = calloc(name_count, sizeof(*serve->feeds));
	serve->feed_count = serve->feeds ? name_count : 0;
	for (size_t i = 0; i < serve->feed_count; i++) {
		snprintf(serve->feeds[i].name, sizeof(serve->feeds[i].name), "%s", names[i]);
		serve->feeds[i].text.cap = FEED_MAX_BYTES;
	}
	if (!serve->feeds) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for the service");
	} else if (start(serve, err) == TDM_OK) {
		*address = serve->address;
		return serve;
	}
	release(serve);
	return NULL;
}

static void wake(struct sync_serve *serve)
{
	const uint64_t one = 1;

	if (write(serve->wake_fd, &one, sizeof(one)) < 0) {
		return; /* it is awake */
	}
}

void sync_serve_set_streams(struct sync_serve *serve,
	void (*take)(void *user, struct tdm_link *link, const char *who, bool may_view,
		const struct tdm_open *open),
	void *user)
{
	serve->take_user = user;
	serve->take_stream = take;
}

void sync_serve_lines(struct sync_serve *serve, size_t guest, const char *text, size_t text_bytes)
{
	pthread_mutex_lock(&serve->lock);
	if (tdm_buffer_append(&serve->feeds[guest].text, text, text_bytes) != TDM_OK) {
		TDM_ERROR(serve->log, "The corrections of %s no longer fit into memory",
			serve->feeds[guest].name);
	}
	pthread_mutex_unlock(&serve->lock);
	wake(serve);
}

void sync_serve_destroy(struct sync_serve *serve)
{
	if (!serve) {
		return;
	}
	pthread_mutex_lock(&serve->lock);
	serve->is_ending = true;
	pthread_mutex_unlock(&serve->lock);
	wake(serve);
	pthread_join(serve->thread, NULL);
	release(serve);
}
