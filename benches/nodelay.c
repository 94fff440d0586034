/* SPDX-License-Identifier: MIT */
/*
 * nodelay.c - turns Nagle's algorithm off in a program that does not: LD_PRELOAD for trace-cmd, as its own fix of 2024 does.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	const int fd = next(domain, type, protocol);
	const int on = 1;

	/* Refused where it is no TCP socket. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int accept(int listener, struct sockaddr *restrict address, socklen_t *restrict size)
{
	int (*next)(int, struct sockaddr *restrict, socklen_t *restrict) = (int (*)(
		int, struct sockaddr *restrict, socklen_t *restrict))dlsym(RTLD_NEXT, "accept");
	const int fd = next(listener, address, size);
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}
