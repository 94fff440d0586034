/* SPDX-License-Identifier: MIT */
/*
 * kernel_stamps.h - is the kernel stamping every packet that arrives? Looked at from outside, without privileges.
 *
 * A datagram is sent to a socket that asks for no stamps; a while later it does ask, and reads. A stamp near the sending
 * shows that the kernel stamped at arrival, for somebody else's sake; one near the reading that it did not.
 */
#ifndef TANDEM_TESTS_KERNEL_STAMPS_H
#define TANDEM_TESTS_KERNEL_STAMPS_H

#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/requester.h>
#include <time.h>
#include <unistd.h>

enum {
	KERNEL_STAMPS_PAUSE_MS = 20,
	KERNEL_STAMPS_AGAIN_MS = 30
};

static inline void kernel_stamps_pause_ms(long ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static inline void kernel_stamps_fail(const char *what)
{
	fprintf(stderr, "kernel_stamps: %s\n", what);
	exit(1);
}

/* A datagram socket that asks for receive stamps: while it is open the kernel stamps for the whole machine. */
static inline int kernel_stamps_ask(void)
{
	const unsigned int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) != 0) {
		kernel_stamps_fail("no socket with stamps");
	}
	return fd;
}

/* True while receive stamping is on for the whole machine. */
static inline bool kernel_stamps_are_on(void)
{
	const unsigned int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	_Alignas(struct cmsghdr) char control[256];
	char byte = 1;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	const int to = socket(AF_INET, SOCK_DGRAM, 0);
	const int from = socket(AF_INET, SOCK_DGRAM, 0);
	uint64_t stamp_ns = 0;

	if (bind(to, (struct sockaddr *)&at, sizeof(at)) != 0 ||
		getsockname(to, (struct sockaddr *)&at, &size) != 0) {
		kernel_stamps_fail("no datagram socket");
	}

	const uint64_t sent_ns = tdm_clock_read(TDM_CLOCK_REAL);

	if (sendto(from, &byte, 1, 0, (struct sockaddr *)&at, sizeof(at)) != 1) {
		kernel_stamps_fail("no datagram");
	}
	kernel_stamps_pause_ms(KERNEL_STAMPS_PAUSE_MS);
	setsockopt(to, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));

	const uint64_t asked_ns = tdm_clock_read(TDM_CLOCK_REAL);

	if (recvmsg(to, &message, 0) != 1) {
		kernel_stamps_fail("no datagram came");
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
			struct timespec stamp;

			memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
			stamp_ns = (uint64_t)stamp.tv_sec * 1000000000 + (uint64_t)stamp.tv_nsec;
		}
	}
	close(to);
	close(from);
	/* No stamp at all, or one made at the reading: the key was off when the datagram came. */
	return stamp_ns != 0 && stamp_ns < sent_ns + (asked_ns - sent_ns) / 2;
}

/* Our own probe turns the key on for a moment, and the kernel turns it off in its own time. */
static inline bool kernel_stamps_become(bool wanted, long patience_ms)
{
	const uint64_t until_ns = tdm_deadline_ns((uint32_t)patience_ms);

	do {
		if (kernel_stamps_are_on() == wanted) {
			return true;
		}
		kernel_stamps_pause_ms(KERNEL_STAMPS_AGAIN_MS);
	} while (tdm_now_ns() < until_ns);
	return false;
}

#endif
