/* SPDX-License-Identifier: MIT */
#include "socket_priv.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t tdm_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum tdm_status tdm_socket_wait(int fd, int events, int other, uint64_t deadline_ns)
{
	struct pollfd polls[2] = {
		{ .fd = fd,
			.events = (short)((events & TDM_WAIT_READ ? POLLIN : 0) |
					  (events & TDM_WAIT_WRITE ? POLLOUT : 0)) },
		{ .fd = other, .events = POLLIN },
	};
	const uint64_t now_ns = tdm_now_ns();
	const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	const struct timespec timeout = { .tv_sec = (time_t)(left_ns / 1000000000),
		.tv_nsec = (long)(left_ns % 1000000000) };
	const int ready = ppoll(polls, 2, &timeout, NULL);

	return ready > 0 ? TDM_OK : TDM_AGAIN;
}

bool tdm_socket_is_stopped(int stop_fd)
{
	return stop_fd >= 0 && tdm_socket_wait(stop_fd, TDM_WAIT_READ, -1, 0) == TDM_OK;
}

/* Peers come and go: what a connection can die of is the peer's, everything else is ours. */
static enum tdm_status connection_fault(struct tdm_error *err, int number, const char *what)
{
	tdm_fail_errno(err, number, "%s", what);
	if (number == ENOMEM || number == EBADF || number == ENOTSOCK) {
		return err ? err->status : TDM_ERR_IO;
	}
	if (err) {
		err->status = TDM_ERR_PEER;
	}
	return TDM_ERR_PEER;
}

enum tdm_status tdm_socket_send_some(
	int fd, const void *bytes, size_t size, size_t *sent, struct tdm_error *err)
{
	*sent = 0;
	for (;;) {
		const ssize_t done = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done >= 0) {
			*sent = (size_t)done;
			return TDM_OK;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return TDM_AGAIN;
		}
		if (errno != EINTR) {
			return connection_fault(err, errno, "sending");
		}
	}
}

enum tdm_status tdm_socket_send(
	int fd, const void *bytes, size_t size, uint64_t deadline_ns, struct tdm_error *err)
{
	const uint8_t *at = bytes;

	while (size > 0) {
		size_t sent;
		const enum tdm_status status = tdm_socket_send_some(fd, at, size, &sent, err);

		if (status == TDM_AGAIN) {
			if (tdm_now_ns() >= deadline_ns) {
				return tdm_fail(err, TDM_ERR_PEER,
					"the peer takes no data: %zu bytes wait to be sent", size);
			}
			tdm_socket_wait(fd, TDM_WAIT_WRITE, -1, deadline_ns);
		} else if (status != TDM_OK) {
			return status;
		}
		at += sent;
		size -= sent;
	}
	return TDM_OK;
}

enum tdm_status tdm_socket_receive(
	int fd, void *bytes, size_t room, size_t *got, struct tdm_error *err)
{
	*got = 0;
	for (;;) {
		const ssize_t done = recv(fd, bytes, room, MSG_DONTWAIT);

		if (done > 0) {
			*got = (size_t)done;
			return TDM_OK;
		}
		if (done == 0) {
			return TDM_END;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return TDM_AGAIN;
		}
		if (errno != EINTR) {
			return connection_fault(err, errno, "receiving");
		}
	}
}

int tdm_socket_domain(int fd)
{
	int domain = -1;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 ? domain : -1;
}

static bool is_inet(int fd)
{
	const int domain = tdm_socket_domain(fd);

	return domain == AF_INET || domain == AF_INET6;
}

bool tdm_socket_is_undelayed(int fd)
{
	int on = 0;
	socklen_t size = sizeof(on);

	if (!is_inet(fd)) {
		return true;
	}
	return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size) == 0 && on;
}

void tdm_socket_quick_ack(int fd)
{
	const int on = 1;

	if (is_inet(fd)) {
		setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
	}
}

uint32_t tdm_socket_min_rtt_us(int fd)
{
	/* The C library's struct tcp_info stops before this field; its place is fixed in the kernel's interface. */
	enum {
		MIN_RTT_OFFSET = 148
	};

	uint8_t info[256] = { 0 };
	socklen_t size = sizeof(info);
	uint32_t rtt_us = 0;

	if (is_inet(fd) && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0 &&
		size >= MIN_RTT_OFFSET + sizeof(rtt_us)) {
		memcpy(&rtt_us, info + MIN_RTT_OFFSET, sizeof(rtt_us));
	}
	return rtt_us;
}

void tdm_socket_finish(int fd)
{
	shutdown(fd, SHUT_WR);
}

void tdm_socket_abort(int fd)
{
	shutdown(fd, SHUT_RDWR);
}
