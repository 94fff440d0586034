/* SPDX-License-Identifier: MIT */
/*
 * A whole trace session with a stranger at the other end: the recorder (or viewer) with an agent, or the agent with a
 * recorder, by the parts that the programs are made of. The agent's tracer is made up.
 *
 * Input: a byte for who is who, a byte of flags, then pieces, each behind its u16 length (the last one may be cut off).
 *   the recorder's agent: what it says on the control connection, then on each page connection
 *   the agent's recorder: lines of OPEN, lines of a page connection's OPEN, bytes on control, bytes on pages
 */
#include "agent.h"
#include "fake_tap.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <tandem/stream.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	PIECES = 4,
	TIMEOUT_MS = 5000,
	FLAG_VIEWER = 1,
	FLAG_LIST = 2,
	FLAG_UNTRUSTED = 4
};

struct piece {
	const uint8_t *bytes;
	size_t size;
};

static void cut_pieces(const uint8_t *data, size_t size, struct piece pieces[PIECES])
{
	for (unsigned int i = 0; i < PIECES; i++) {
		size_t length = size >= 2 ? (size_t)(data[0] | data[1] << 8) : 0;

		data += size >= 2 ? 2 : size;
		size -= size >= 2 ? 2 : size;
		length = length < size ? length : size;
		pieces[i] = (struct piece){ data, length };
		data += length;
		size -= length;
	}
}

static void send_piece(int fd, const struct piece *piece)
{
	for (size_t at = 0; at < piece->size;) {
		const ssize_t done = send(fd, piece->bytes + at, piece->size - at, MSG_NOSIGNAL);

		if (done <= 0) {
			break;
		}
		at += (size_t)done;
	}
	shutdown(fd, SHUT_WR);
}

/* ---- the recorder, and an agent that says one piece to each connection ---- */

struct false_agent {
	const struct piece *pieces;
	int listener, stop_fd;
};

static void *be_agent(void *user)
{
	const struct false_agent *agent = user;
	struct pollfd polls[] = { { .fd = agent->listener, .events = POLLIN },
		{ .fd = agent->stop_fd, .events = POLLIN } };
	int fds[16];
	unsigned int count = 0;

	while (poll(polls, 2, TIMEOUT_MS) > 0 && !polls[1].revents && count < 16) {
		const int fd = accept(agent->listener, NULL, NULL);

		if (fd >= 0) {
			send_piece(fd, &agent->pieces[count < PIECES ? count : PIECES - 1]);
			fds[count++] = fd;
		}
	}
	while (count) {
		close(fds[--count]);
	}
	return NULL;
}

static void move_pages(struct tdm_page_link *link, int out_fd)
{
	uint64_t moved_bytes;
	enum tdm_status status;

	do {
		struct pollfd polls = { .fd = tdm_page_link_fd(link), .events = POLLIN };

		status = tdm_page_link_move(link, out_fd, &moved_bytes, NULL);
		if (status == TDM_AGAIN && poll(&polls, 1, TIMEOUT_MS) <= 0) {
			break;
		}
	} while (status == TDM_OK || status == TDM_AGAIN);
}

static void record(struct tdm_stream *stream, int out_fd)
{
	struct tdm_page_link *links[2] = { NULL };
	struct tdm_trace_meta meta = { 0 };
	struct tdm_stream_end end;
	struct tdm_error err;

	if (tdm_stream_receive_texts(stream, &meta, &err) == TDM_OK) {
		for (uint32_t cpu = 0; cpu < 2 && cpu < tdm_stream_get_facts(stream).cpu_count;
			cpu++) {
			links[cpu] = tdm_page_link_create(stream, cpu, &err);
		}
		if (tdm_stream_start(stream, &err) == TDM_OK) {
			for (unsigned int i = 0; i < 2; i++) {
				if (links[i]) {
					move_pages(links[i], out_fd);
				}
			}
			tdm_stream_stop(stream, &err);
			tdm_stream_receive_end(stream, &meta, &end, &err);
		}
	}
	tdm_page_link_destroy(links[0]);
	tdm_page_link_destroy(links[1]);
	tdm_trace_meta_release(&meta);
}

static void view(struct tdm_stream *stream)
{
	struct tdm_trace_meta meta = { 0 };
	struct tdm_stream_page page;
	uint32_t sum = 0;

	if (tdm_stream_receive_texts(stream, &meta, NULL) == TDM_OK &&
		tdm_stream_start(stream, NULL) == TDM_OK) {
		enum tdm_status status;

		while ((status = tdm_stream_next_page(stream, &page, NULL)) == TDM_OK ||
			status == TDM_AGAIN) {
			struct pollfd polls = { .fd = tdm_stream_fd(stream), .events = POLLIN };

			if (status == TDM_OK) {
				sum += page.bytes[tdm_stream_get_facts(stream).page_bytes - 1];
			} else if (poll(&polls, 1, TIMEOUT_MS) <= 0) {
				break;
			}
		}
	}
	__asm__ volatile("" : : "r"(sum));
	tdm_trace_meta_release(&meta);
}

static char listener_path[64];

static void remove_listener(void)
{
	unlink(listener_path);
}

static void attack_recorder(const struct piece *pieces, uint8_t flags)
{
	static struct tdm_address address;
	static int listener = -1, out_fd = -1;
	const struct tdm_stream_event event = { .pattern = "sched" };
	const struct tdm_stream_request request = {
		.machine = flags & FLAG_VIEWER ? "host" : NULL,
		.events = &event,
		.event_count = 1,
		.clock = "mono",
	};
	const struct tdm_stream_options options = { .address = &address, .timeout_ms = TIMEOUT_MS };
	struct false_agent agent = { .pieces = pieces, .stop_fd = eventfd(0, EFD_CLOEXEC) };
	const uint64_t one = 1;
	pthread_t thread;

	if (listener < 0) {
		char text[80];

		snprintf(listener_path, sizeof(listener_path), "/tmp/fuzz-session-%d",
			(int)getpid());
		snprintf(text, sizeof(text), "unix:%s", listener_path);
		atexit(remove_listener);
		out_fd = open("/dev/null", O_WRONLY);
		if (tdm_address_parse(text, TDM_ADDRESS_LISTEN, &address, NULL) != TDM_OK ||
			tdm_socket_listen(&address, &listener, NULL) != TDM_OK) {
			abort();
		}
	}
	agent.listener = listener;
	if (pthread_create(&thread, NULL, be_agent, &agent) != 0) {
		abort();
	}
	if (flags & FLAG_LIST) {
		struct tdm_buffer names = { .cap = 1 << 16 };

		tdm_stream_list(&options, &names, NULL);
		tdm_buffer_release(&names);
	} else {
		struct tdm_stream *stream = tdm_stream_create(&options, &request, NULL);

		if (stream && request.machine) {
			view(stream);
		} else if (stream) {
			record(stream, out_fd);
		}
		tdm_stream_destroy(stream);
	}
	if (write(agent.stop_fd, &one, sizeof(one)) != sizeof(one)) {
		abort();
	}
	pthread_join(thread, NULL);
	close(agent.stop_fd);
	/* Whoever waits in the listener's queue is not the next input's. */
	for (int fd; poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 0) > 0 &&
		     (fd = accept(listener, NULL, NULL)) >= 0;) {
		close(fd);
	}
}

/* ---- the agent, and a recorder that may do as it likes ---- */

struct session {
	struct agent_peer peer;
	struct tdm_open open;
	struct tdm_buffer body;
	pthread_t thread;
	int far_fd;
	bool runs;
};

static void *run_session(void *user)
{
	struct session *session = user;
	struct tdm_error err = { 0 };

	agent_stream_session(&session->peer, &session->open, &err);
	/* As the agent does once the thread is joined. */
	tdm_link_destroy(session->peer.link);
	session->peer.link = NULL;
	return NULL;
}

/* A connection behind its greeting, with the lines of an OPEN. */
static bool start_session(struct session *session, struct agent *agent, const char *prefix,
	const struct piece *lines, const struct tdm_link_options *options)
{
	uint8_t hello[TDM_FRAME_HEADER_BYTES + TDM_HELLO_BYTES];
	int fds[2];

	memset(session, 0, sizeof(*session));
	session->body.cap = TDM_FRAME_MAX_BYTES;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		abort();
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	session->far_fd = fds[1];
	session->peer.agent = agent;
	session->peer.fd = fds[0];
	session->peer.who.kind = TDM_ADDRESS_UNIX;
	session->peer.is_trusted = true;
	session->peer.link = tdm_link_create(fds[0], TDM_ROLE_SERVER, options, NULL);
	if (!session->peer.link ||
		recv(session->far_fd, hello, sizeof(hello), MSG_WAITALL) != sizeof(hello)) {
		abort();
	}
	/* Its own greeting sent back serves as the other's. */
	if (send(session->far_fd, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
		tdm_link_fill(session->peer.link, NULL) != TDM_OK ||
		tdm_link_next(session->peer.link, &(struct tdm_frame){ 0 }, NULL) != TDM_AGAIN) {
		abort();
	}
	if (tdm_open_put(&session->body, TDM_PURPOSE_STREAM, 1) != TDM_OK ||
		tdm_buffer_append(&session->body, prefix, strlen(prefix)) != TDM_OK ||
		tdm_buffer_append(&session->body, lines->bytes, lines->size) != TDM_OK ||
		tdm_open_get(session->body.bytes, session->body.size, &session->open, NULL) !=
			TDM_OK) {
		return false;
	}
	session->runs = pthread_create(&session->thread, NULL, run_session, session) == 0;
	return session->runs;
}

static void end_session(struct session *session)
{
	if (session->far_fd > 0) {
		close(session->far_fd);
	}
	if (session->runs) {
		pthread_join(session->thread, NULL);
	}
	tdm_link_destroy(session->peer.link);
	tdm_buffer_release(&session->body);
}

/* The token of OPENED, as the line that joins its session; empty where it was refused. */
static void read_token(int fd, char *line, size_t room)
{
	uint8_t frame[TDM_FRAME_HEADER_BYTES + 4096];
	struct pollfd polls = { .fd = fd, .events = POLLIN };
	const ssize_t got = poll(&polls, 1, TIMEOUT_MS) > 0 ? recv(fd, frame, sizeof(frame), 0) : 0;
	char token[TDM_VALUE_MAX + 1];

	line[0] = '\0';
	if (got > TDM_FRAME_HEADER_BYTES + TDM_OPEN_FIXED_BYTES &&
		tdm_record_find((const char *)frame + TDM_FRAME_HEADER_BYTES + TDM_OPEN_FIXED_BYTES,
			(size_t)got - TDM_FRAME_HEADER_BYTES - TDM_OPEN_FIXED_BYTES,
			TDM_STREAM_KEY_TOKEN, 0, token)) {
		snprintf(line, room, TDM_STREAM_KEY_TOKEN " %s\n", token);
	}
}

static void attack_agent(const struct piece *pieces, uint8_t flags)
{
	static const struct agent_options options = {
		.allow = { "sched:*" },
		.allow_count = 1,
		.max_buffer_kib = 64,
	};
	const struct tdm_link_options link_options = { .capabilities = TDM_CAN_STREAM };
	struct agent agent = { .options = &options, .stop_fd = eventfd(0, EFD_CLOEXEC) };
	struct session control, pages = { .far_fd = -1 };
	const uint64_t one = 1;
	char token[300] = "";

	stream_list_init(&agent.streams);
	if (start_session(&control, &agent, "", &pieces[0], &link_options)) {
		read_token(control.far_fd, token, sizeof(token));
		if (start_session(&pages, &agent, flags & FLAG_UNTRUSTED ? "" : token, &pieces[1],
			    &link_options)) {
			send_piece(pages.far_fd, &pieces[3]);
		}
		send_piece(control.far_fd, &pieces[2]);
		/* A recorder that goes on reading: what is left finds its way out. */
		for (char bytes[1 << 16];
			pages.far_fd >= 0 &&
			recv(pages.far_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0;) {
		}
	}
	if (write(agent.stop_fd, &one, sizeof(one)) != sizeof(one)) {
		abort();
	}
	end_session(&pages);
	end_session(&control);
	if (agent.streams.first) {
		abort(); /* a session that nobody holds */
	}
	stream_list_release(&agent.streams);
	close(agent.stop_fd);
}

/* Peers' faults go to a log elsewhere. */
void agent_log_peer(struct agent *agent, const struct agent_peer *peer, const char *text)
{
	(void)agent;
	(void)peer;
	(void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct piece pieces[PIECES];

	if (size < 2) {
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	cut_pieces(data + 2, size - 2, pieces);
	if (data[0] & 1) {
		attack_agent(pieces, data[1]);
	} else {
		attack_recorder(pieces, data[1]);
	}
	return 0;
}
