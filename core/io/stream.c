/* SPDX-License-Identifier: MIT */
/* Making stream sockets: connect, listen, accept. */
#include "socket_priv.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/socket.h>
#include <unistd.h>

enum {
	BACKLOG = 1024,
	ADDRESS_TEXT = 320
};

/* Fills a socket address; its size, or 0 where the host is no numeric address. */
static socklen_t to_sockaddr(const struct tdm_address *address, union tdm_sockaddr *to)
{
	memset(to, 0, sizeof(*to));
	switch (address->kind) {
	case TDM_ADDRESS_TCP:
		if (inet_pton(AF_INET, address->host, &to->inet.sin_addr) == 1) {
			to->inet.sin_family = AF_INET;
			to->inet.sin_port = htons((uint16_t)address->port);
			return sizeof(to->inet);
		}
		if (inet_pton(AF_INET6, address->host, &to->inet6.sin6_addr) == 1) {
			to->inet6.sin6_family = AF_INET6;
			to->inet6.sin6_port = htons((uint16_t)address->port);
			return sizeof(to->inet6);
		}
		return 0;
	case TDM_ADDRESS_VSOCK:
		to->vsock.svm_family = AF_VSOCK;
		to->vsock.svm_cid = address->cid;
		to->vsock.svm_port = address->port ? address->port : VMADDR_PORT_ANY;
		return sizeof(to->vsock);
	case TDM_ADDRESS_UNIX:
		to->path.sun_family = AF_UNIX;
		memcpy(to->path.sun_path, address->path, sizeof(address->path));
		return sizeof(to->path);
	}
	return 0;
}

bool tdm_address_is_local(const struct tdm_address *address)
{
	union tdm_sockaddr to;

	if (address->kind != TDM_ADDRESS_TCP) {
		return address->kind == TDM_ADDRESS_UNIX;
	}
	if (to_sockaddr(address, &to) == 0) {
		return false;
	}
	return to.any.sa_family == AF_INET ? ntohl(to.inet.sin_addr.s_addr) >> 24 == 127
					   : IN6_IS_ADDR_LOOPBACK(&to.inet6.sin6_addr);
}

/* Before the first byte; the one option without which an exchange takes 40 ms. */
static bool set_undelayed(int fd, int family)
{
	const int on = 1;

	if (family != AF_INET && family != AF_INET6) {
		return true;
	}
	return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

/*
 * A peer whose machine or network has gone never says so: after two minutes of silence on a connection where nothing is
 * said, or of data that is not acknowledged, the connection ends, and with it what was done for the peer.
 */
static void watch_over(int fd)
{
	enum {
		IDLE_S = 30,
		PROBE_S = 10,
		PROBES = 9,
		UNACKNOWLEDGED_MS = 120000
	};

	const int family = tdm_socket_domain(fd);
	const int on = 1, idle_s = IDLE_S, probe_s = PROBE_S, probes = PROBES;
	const unsigned int unacknowledged_ms = UNACKNOWLEDGED_MS;

	if (family != AF_INET && family != AF_INET6) {
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(
		fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof(unacknowledged_ms));
}

static enum tdm_status finish_connect(
	int fd, const char *text, uint64_t deadline_ns, int stop_fd, struct tdm_error *err)
{
	while (tdm_socket_wait(fd, TDM_WAIT_WRITE, stop_fd, deadline_ns) != TDM_OK) {
		if (tdm_now_ns() >= deadline_ns) {
			return tdm_fail(
				err, TDM_ERR_IO, "connecting to %s: no answer in time", text);
		}
	}
	if (tdm_socket_is_stopped(stop_fd)) {
		return tdm_fail(err, TDM_AGAIN, "connecting to %s: interrupted", text);
	}

	int failure = 0;
	socklen_t size = sizeof(failure);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) {
		failure = errno;
	}
	return failure ? tdm_fail_errno(err, failure, "connecting to %s", text) : TDM_OK;
}

enum tdm_status tdm_socket_connect(const struct tdm_address *address, uint64_t deadline_ns,
	int stop_fd, int *fd, struct tdm_error *err)
{
	union tdm_sockaddr to;
	const socklen_t size = to_sockaddr(address, &to);
	char text[ADDRESS_TEXT];
	enum tdm_status status = TDM_OK;

	*fd = -1;
	tdm_address_print(address, text, sizeof(text));
	if (size == 0) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: a numeric address is wanted", text);
	}

	const int made = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (made < 0) {
		return tdm_fail_errno(err, errno, "making a socket for %s", text);
	}
	if (!set_undelayed(made, to.any.sa_family)) {
		status = tdm_fail_errno(err, errno, "setting TCP_NODELAY for %s", text);
	} else if (connect(made, &to.any, size) != 0) {
		/* A full queue of a UNIX listener gives EAGAIN: nothing to wait on, so ask again. */
		while (errno == EAGAIN && to.any.sa_family == AF_UNIX &&
			tdm_now_ns() < deadline_ns && !tdm_socket_is_stopped(stop_fd)) {
			usleep(2000);
			if (connect(made, &to.any, size) == 0) {
				errno = 0;
			}
		}
		if (errno == EINPROGRESS || errno == EINTR) {
			status = finish_connect(made, text, deadline_ns, stop_fd, err);
		} else if (errno == EAGAIN && tdm_socket_is_stopped(stop_fd)) {
			status = tdm_fail(err, TDM_AGAIN, "connecting to %s: interrupted", text);
		} else if (errno != 0) {
			status = tdm_fail_errno(err, errno, "connecting to %s", text);
		}
	}
	if (status != TDM_OK) {
		close(made);
		return status;
	}
	*fd = made;
	return TDM_OK;
}

/* A path whose listener is gone refuses connections and may be replaced. */
static void remove_stale_path(const union tdm_sockaddr *at)
{
	struct stat info;

	if (lstat(at->path.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
		return;
	}

	const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (probe < 0) {
		return;
	}
	if (connect(probe, &at->any, sizeof(at->path)) != 0 && errno == ECONNREFUSED) {
		unlink(at->path.sun_path);
	}
	close(probe);
}

static void learn_port(int fd, struct tdm_address *address)
{
	union tdm_sockaddr at;
	socklen_t size = sizeof(at);

	if (address->port != 0 || getsockname(fd, &at.any, &size) != 0) {
		return;
	}
	if (at.any.sa_family == AF_INET) {
		address->port = ntohs(at.inet.sin_port);
	} else if (at.any.sa_family == AF_INET6) {
		address->port = ntohs(at.inet6.sin6_port);
	} else if (at.any.sa_family == AF_VSOCK) {
		address->port = at.vsock.svm_port;
	}
}

enum tdm_status tdm_socket_listen(struct tdm_address *address, int *fd, struct tdm_error *err)
{
	union tdm_sockaddr at;
	const socklen_t size = to_sockaddr(address, &at);
	char text[ADDRESS_TEXT];
	const int on = 1;

	*fd = -1;
	tdm_address_print(address, text, sizeof(text));
	if (size == 0) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: a numeric address is wanted", text);
	}

	const int made = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (made < 0) {
		return tdm_fail_errno(err, errno, "making a socket for %s", text);
	}
	if (at.any.sa_family == AF_UNIX) {
		remove_stale_path(&at);
	} else if (at.any.sa_family != AF_VSOCK) {
		setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	}
	if (at.any.sa_family == AF_INET6) {
		/* "::" means IPv6 alone, so that 0.0.0.0 can be given beside it. */
		setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	}
	if (!set_undelayed(made, at.any.sa_family) || bind(made, &at.any, size) != 0 ||
		listen(made, BACKLOG) != 0) {
		const int failure = errno;

		close(made);
		return tdm_fail_errno(err, failure, "listening on %s", text);
	}
	learn_port(made, address);
	*fd = made;
	return TDM_OK;
}

enum tdm_status tdm_socket_own_address(int fd, struct tdm_address *address, struct tdm_error *err)
{
	union tdm_sockaddr at;
	socklen_t size = sizeof(at);

	memset(address, 0, sizeof(*address));
	if (getsockname(fd, &at.any, &size) != 0) {
		return tdm_fail_errno(err, errno, "asking for the address of a connection");
	}
	switch (at.any.sa_family) {
	case AF_INET:
		address->kind = TDM_ADDRESS_TCP;
		address->port = ntohs(at.inet.sin_port);
		inet_ntop(AF_INET, &at.inet.sin_addr, address->host, sizeof(address->host));
		return TDM_OK;
	case AF_INET6:
		address->kind = TDM_ADDRESS_TCP;
		address->port = ntohs(at.inet6.sin6_port);
		inet_ntop(AF_INET6, &at.inet6.sin6_addr, address->host, sizeof(address->host));
		return TDM_OK;
	case AF_VSOCK:
		address->kind = TDM_ADDRESS_VSOCK;
		address->cid = at.vsock.svm_cid;
		address->port = at.vsock.svm_port;
		return TDM_OK;
	default:
		return tdm_fail(err, TDM_ERR_UNSUPPORTED, "the connection has no port");
	}
}

static void describe_peer(int fd, const union tdm_sockaddr *from, struct tdm_peer *peer)
{
	char host[INET6_ADDRSTRLEN] = "";

	memset(peer, 0, sizeof(*peer));
	switch (from->any.sa_family) {
	case AF_INET:
		peer->kind = TDM_ADDRESS_TCP;
		peer->port = ntohs(from->inet.sin_port);
		peer->is_loopback = ntohl(from->inet.sin_addr.s_addr) >> 24 == 127;
		peer->address[10] = peer->address[11] = 0xff;
		memcpy(peer->address + 12, &from->inet.sin_addr, 4);
		inet_ntop(AF_INET, &from->inet.sin_addr, host, sizeof(host));
		snprintf(peer->text, sizeof(peer->text), "tcp:%s:%u", host, peer->port);
		break;
	case AF_INET6:
		peer->kind = TDM_ADDRESS_TCP;
		peer->port = ntohs(from->inet6.sin6_port);
		peer->is_loopback = IN6_IS_ADDR_LOOPBACK(&from->inet6.sin6_addr);
		memcpy(peer->address, &from->inet6.sin6_addr, 16);
		inet_ntop(AF_INET6, &from->inet6.sin6_addr, host, sizeof(host));
		snprintf(peer->text, sizeof(peer->text), "tcp:[%s]:%u", host, peer->port);
		break;
	case AF_VSOCK:
		peer->kind = TDM_ADDRESS_VSOCK;
		peer->cid = from->vsock.svm_cid;
		peer->port = from->vsock.svm_port;
		snprintf(peer->text, sizeof(peer->text), "vsock:%u:%u", peer->cid, peer->port);
		break;
	default: {
		struct ucred who = { .uid = UINT32_MAX };
		socklen_t size = sizeof(who);

		/* Where the kernel does not say who it is, it is nobody. */
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
			who.uid = UINT32_MAX;
		}
		peer->kind = TDM_ADDRESS_UNIX;
		peer->is_loopback = true;
		peer->uid = who.uid;
		snprintf(peer->text, sizeof(peer->text), "unix:uid=%u,pid=%d", who.uid,
			(int)who.pid);
		break;
	}
	}
}

enum tdm_status tdm_socket_accept(
	int listener, int *fd, struct tdm_peer *peer, struct tdm_error *err)
{
	union tdm_sockaddr from;
	socklen_t size = sizeof(from);

	*fd = -1;
	memset(&from, 0, sizeof(from));

	const int taken = accept4(listener, &from.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (taken < 0) {
		switch (errno) {
		case EMFILE:
		case ENFILE:
		case ENOBUFS:
		case ENOMEM:
			tdm_fail_errno(err, errno, "accepting a connection");
			if (err) {
				err->status = TDM_ERR_NOMEM;
			}
			return TDM_ERR_NOMEM;
		case EBADF:
		case EINVAL:
		case ENOTSOCK:
			return tdm_fail_errno(err, errno, "accepting a connection");
		default: /* nobody waits, or whoever did broke the connection */
			return TDM_AGAIN;
		}
	}
	/* A listener's option is inherited; it is set here all the same, so that nothing depends on it. */
	if (!set_undelayed(taken, tdm_socket_domain(taken))) {
		close(taken);
		return TDM_AGAIN;
	}
	watch_over(taken);
	describe_peer(taken, &from, peer);
	*fd = taken;
	return TDM_OK;
}
