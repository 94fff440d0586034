/* SPDX-License-Identifier: MIT */
/* A datagram socket beside a TCP connection, for exchanges that the kernel stamps. */
#include "socket_priv.h"
#include <errno.h>
#include <tandem/socket.h>
#include <unistd.h>

static bool set_port(union tdm_sockaddr *address, uint16_t port)
{
	if (address->any.sa_family == AF_INET) {
		address->inet.sin_port = htons(port);
	} else if (address->any.sa_family == AF_INET6) {
		address->inet6.sin6_port = htons(port);
	} else {
		return false;
	}
	return true;
}

enum tdm_status tdm_socket_datagram_beside(
	int stream, uint16_t *port, int *fd, struct tdm_error *err)
{
	union tdm_sockaddr own;
	socklen_t size = sizeof(own);

	*fd = -1;
	if (getsockname(stream, &own.any, &size) != 0) {
		return tdm_fail_errno(err, errno, "asking for the address of a connection");
	}
	if (!set_port(&own, 0)) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED, "datagrams go beside TCP only");
	}

	const int made = socket(own.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (made < 0) {
		return tdm_fail_errno(err, errno, "making a datagram socket");
	}
	if (bind(made, &own.any, size) != 0 || getsockname(made, &own.any, &size) != 0) {
		const int failure = errno;

		close(made);
		return tdm_fail_errno(err, failure, "binding a datagram socket");
	}
	*port = ntohs(own.any.sa_family == AF_INET ? own.inet.sin_port : own.inet6.sin6_port);
	*fd = made;
	return TDM_OK;
}

enum tdm_status tdm_socket_datagram_connect(
	int fd, int stream, uint16_t peer_port, struct tdm_error *err)
{
	union tdm_sockaddr peer;
	socklen_t size = sizeof(peer);

	if (getpeername(stream, &peer.any, &size) != 0) {
		return tdm_fail_errno(err, errno, "asking for the peer of a connection");
	}
	if (!set_port(&peer, peer_port)) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED, "datagrams go beside TCP only");
	}
	if (connect(fd, &peer.any, size) != 0) {
		return tdm_fail_errno(err, errno, "connecting a datagram socket");
	}
	return TDM_OK;
}
