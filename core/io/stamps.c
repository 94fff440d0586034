/* SPDX-License-Identifier: MIT */
#include "socket_priv.h"
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <tandem/socket.h>
#include <tandem/stamps.h>
#include <time.h>

/* Since Linux 6.2; without it the first id on a stream may be off by what is not acknowledged yet. */
#ifndef SOF_TIMESTAMPING_OPT_ID_TCP
#define SOF_TIMESTAMPING_OPT_ID_TCP (1 << 16)
#endif

enum {
	CONTROL_ROOM = 512,
	/* As many as a burst can leave behind: a bound on draining, no tuning. */
	MAX_LEFT_STAMPS = 4096
};

bool tdm_stamps_possible(int fd)
{
	const int domain = tdm_socket_domain(fd);

	return domain == AF_INET || domain == AF_INET6;
}

static bool set_flags(int fd, unsigned int flags)
{
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0;
}

enum tdm_status tdm_stamps_begin(int fd, struct tdm_error *err)
{
	const unsigned int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
				   SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
	int type = 0;
	socklen_t size = sizeof(type);

	if (!tdm_stamps_possible(fd)) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"kernel stamps: only TCP and UDP sockets have useful ones");
	}
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
	if (type == SOCK_STREAM && set_flags(fd, flags | SOF_TIMESTAMPING_OPT_ID_TCP)) {
		return TDM_OK;
	}
	if (!set_flags(fd, flags)) {
		return tdm_fail_errno(err, errno, "turning kernel stamps on");
	}
	return TDM_OK;
}

void tdm_stamps_end(int fd)
{
	uint32_t id;
	uint64_t stamp_ns;

	if (!tdm_stamps_possible(fd)) {
		return;
	}
	set_flags(fd, 0);
	/* Stamps left in the error queue would wake every later poll() of this socket. */
	for (int i = 0; i < MAX_LEFT_STAMPS && tdm_stamps_fetch_sent(fd, &id, &stamp_ns); i++) {
	}
}

static uint64_t to_ns(const struct timespec *stamp)
{
	return (uint64_t)stamp->tv_sec * 1000000000 + (uint64_t)stamp->tv_nsec;
}

/* The software stamp among the control messages of one recvmsg(), or 0. */
static uint64_t find_stamp(struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
		part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPING &&
			part->cmsg_len >= CMSG_LEN(sizeof(struct timespec))) {
			struct timespec stamp;

			memcpy(&stamp, CMSG_DATA(part), sizeof(stamp));
			return to_ns(&stamp);
		}
	}
	return 0;
}

enum tdm_status tdm_stamps_receive(
	int fd, void *bytes, size_t room, size_t *got, uint64_t *stamp_ns, struct tdm_error *err)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_ROOM];
	struct iovec part = { .iov_base = bytes, .iov_len = room };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	const ssize_t done = recvmsg(fd, &message, MSG_DONTWAIT);

	*got = 0;
	*stamp_ns = 0;
	if (done > 0) {
		*got = (size_t)done;
		*stamp_ns = find_stamp(&message);
		return TDM_OK;
	}
	if (done == 0) {
		return TDM_END;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
		return TDM_AGAIN;
	}
	tdm_fail_errno(err, errno, "receiving");
	if (err) {
		err->status = TDM_ERR_PEER;
	}
	return TDM_ERR_PEER;
}

enum tdm_status tdm_stamps_send(int fd, const void *bytes, size_t size, struct tdm_error *err)
{
	const uint32_t want = SOF_TIMESTAMPING_TX_SOFTWARE;
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(want))] = { 0 };
	/* sendmsg() only reads it. */
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SO_TIMESTAMPING;
	header->cmsg_len = CMSG_LEN(sizeof(want));
	memcpy(CMSG_DATA(header), &want, sizeof(want));

	const ssize_t done = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (done == (ssize_t)size) {
		return TDM_OK;
	}
	if (done >= 0) {
		return tdm_fail(err, TDM_ERR_PEER, "the peer takes no data: %zd of %zu bytes sent",
			done, size);
	}
	tdm_fail_errno(err, errno, "sending");
	if (err) {
		err->status = TDM_ERR_PEER;
	}
	return TDM_ERR_PEER;
}

bool tdm_stamps_fetch_sent(int fd, uint32_t *id, uint64_t *stamp_ns)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_ROOM];
	struct msghdr message = { .msg_control = control, .msg_controllen = sizeof(control) };

	if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		return false;
	}
	*stamp_ns = find_stamp(&message);
	*id = 0;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part;
		part = CMSG_NXTHDR(&message, part)) {
		const bool is_report =
			(part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
			(part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);

		if (is_report && part->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err))) {
			struct sock_extended_err report;

			memcpy(&report, CMSG_DATA(part), sizeof(report));
			if (report.ee_origin == SO_EE_ORIGIN_TIMESTAMPING) {
				*id = report.ee_data;
				return true;
			}
		}
	}
	/* An ICMP error of a datagram: no stamp, but fetched. */
	*stamp_ns = 0;
	return true;
}
