/* SPDX-License-Identifier: MIT */
/*
 * request_reply.c - two ends of a conversation whose messages are told apart by their length, so that each can be found in
 * a trace of system calls: request number i has FIRST + i bytes, and so has its reply.
 *
 * usage: request-reply serve PORT
 *        request-reply ask HOST PORT COUNT PAUSE_US   prints "asked COUNT"
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	FIRST = 300,
	MOST = 1400, /* one segment: a message is one call at both ends */
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static void undelay(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int serve(unsigned int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	const int one = 1;
	char message[1 << 16];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(listener, 8) != 0) {
		return fail("listen");
	}
	for (;;) {
		const int fd = accept(listener, NULL, NULL);
		ssize_t got;

		if (fd < 0) {
			return fail("accept");
		}
		undelay(fd);
		while ((got = recv(fd, message, sizeof(message), 0)) > 0) {
			if (send(fd, message, (size_t)got, MSG_NOSIGNAL) != got) {
				break;
			}
		}
		close(fd);
	}
}

static int ask(const char *host, unsigned int port, unsigned int count, unsigned int pause_us)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	char message[1 << 16] = { 0 };

	if (inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
		connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		return fail("connect");
	}
	undelay(fd);
	for (unsigned int i = 0; i < count; i++) {
		const ssize_t size = FIRST + i % (MOST - FIRST);

		if (send(fd, message, (size_t)size, MSG_NOSIGNAL) != size) {
			return fail("send");
		}
		/* A reply in pieces is no pair; the reader of the trace sees it by its length. */
		for (ssize_t got = 0; got < size;) {
			const ssize_t more = recv(fd, message, sizeof(message), 0);

			if (more <= 0) {
				return fail("recv");
			}
			got += more;
		}
		usleep(pause_us);
	}
	printf("asked %u\n", count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		return serve((unsigned int)atoi(argv[2]));
	}
	if (argc == 6 && strcmp(argv[1], "ask") == 0) {
		return ask(argv[2], (unsigned int)atoi(argv[3]), (unsigned int)atoi(argv[4]),
			(unsigned int)atoi(argv[5]));
	}
	fprintf(stderr, "usage: request-reply serve PORT | ask HOST PORT COUNT PAUSE_US\n");
	return 2;
}
