/* SPDX-License-Identifier: MIT */
/*
 * responder_thread.h - a real responder in a thread, for tests and benches of the asking end.
 */
#ifndef RESPONDER_THREAD_H
#define RESPONDER_THREAD_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/responder.h>
#include <unistd.h>

struct responder_thread {
	struct tdm_address address; /* where it listens; port filled in */
	struct tdm_secret secret;
	const char *clock;
	int cpu; /* to run on; -1 = any */
	struct tdm_responder_hooks hooks;
	int listener, stop_fds[2];
	pthread_t thread;
	struct tdm_error err; /* why the session ended */
	enum tdm_status status;
	bool is_undelayed; /* the accepted socket */
};

static inline void responder_thread_serve(struct responder_thread *server, struct tdm_link *link)
{
	struct tdm_local_clock clock;
	struct tdm_frame frame;
	struct tdm_open open;
	struct tdm_buffer opened = { 0 };
	uint16_t port = 0;

	server->status = tdm_link_receive(
		link, &frame, tdm_deadline_ns(5000), server->stop_fds[0], &server->err);
	while (server->status == TDM_AGAIN && tdm_link_is_ready(link)) {
		server->status = tdm_link_receive(
			link, &frame, tdm_deadline_ns(5000), server->stop_fds[0], &server->err);
		if (server->status == TDM_AGAIN) {
			break;
		}
	}
	if (server->status != TDM_OK || frame.type != TDM_FRAME_OPEN ||
		tdm_open_get(frame.body, frame.size_bytes, &open, &server->err) != TDM_OK ||
		tdm_local_clock_init(&clock, server->clock, NULL, &server->err) != TDM_OK) {
		return;
	}

	struct tdm_responder_options options = { .session = open.session,
		.clock = &clock,
		.idle_ms = 10000,
		.stop_fd = server->stop_fds[0],
		.hooks = server->hooks };
	uint64_t peer_port = 0;

	if (tdm_record_find_number(open.text, open.text_bytes, "udp-port", 0, &peer_port)) {
		options.peer_port = (uint16_t)peer_port;
	}

	struct tdm_responder *responder = tdm_responder_create(link, &options, &port, &server->err);

	tdm_opened_put(&opened, open.session, 0);
	tdm_record_add(&opened, "boot", "0f0f0f0f-1111-2222-3333-444444444444");
	tdm_record_add(&opened, "clock", server->clock);
	if (port) {
		tdm_buffer_printf(&opened, "udp-port %u\n", port);
	}
	tdm_link_send(link, TDM_FRAME_OPENED, opened.bytes, opened.size, tdm_deadline_ns(1000),
		&server->err);
	tdm_buffer_release(&opened);
	server->status = tdm_responder_run(responder, &server->err);
	tdm_responder_destroy(responder);
	tdm_local_clock_release(&clock);
}

static inline void *responder_thread_main(void *user)
{
	struct responder_thread *server = user;
	struct tdm_peer peer;
	int fd;

	if (server->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(server->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	for (;;) {
		tdm_socket_wait(server->listener, TDM_WAIT_READ, server->stop_fds[0],
			tdm_deadline_ns(60000));
		if (tdm_socket_wait(server->stop_fds[0], TDM_WAIT_READ, -1, 0) == TDM_OK) {
			return NULL;
		}
		if (tdm_socket_accept(server->listener, &fd, &peer, &server->err) != TDM_OK) {
			continue;
		}
		server->is_undelayed = tdm_socket_is_undelayed(fd);

		const struct tdm_link_options options = { .secret = &server->secret,
			.capabilities = TDM_CAN_EXCHANGE | TDM_CAN_DATAGRAMS,
			.wants_proof = server->secret.is_set };
		struct tdm_link *link =
			tdm_link_create(fd, TDM_ROLE_SERVER, &options, &server->err);

		if (link) {
			responder_thread_serve(server, link);
			tdm_link_destroy(link);
		}
	}
}

/* Fills what is not set and starts; false where it cannot listen. */
static inline bool responder_thread_start(struct responder_thread *server, const char *address)
{
	if (!server->clock) {
		server->clock = "mono";
	}
	return tdm_address_parse(address, TDM_ADDRESS_LISTEN, &server->address, &server->err) ==
		       TDM_OK &&
	       tdm_socket_listen(&server->address, &server->listener, &server->err) == TDM_OK &&
	       pipe(server->stop_fds) == 0 &&
	       pthread_create(&server->thread, NULL, responder_thread_main, server) == 0;
}

static inline void responder_thread_stop(struct responder_thread *server)
{
	if (write(server->stop_fds[1], "x", 1) != 1) {
		abort();
	}
	pthread_join(server->thread, NULL);
	close(server->stop_fds[0]);
	close(server->stop_fds[1]);
	close(server->listener);
	if (server->address.kind == TDM_ADDRESS_UNIX) {
		unlink(server->address.path);
	}
}

#endif
