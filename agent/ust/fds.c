/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of lttng-ust in the traced process: kept out of the program's way, so that its own
 * numbers are those it has untraced, and safe from programs that close everything.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define FDS 4096u

static _Atomic(uint64_t) own[FDS / 64];

bool tdm_fds_is_own(uint64_t fd)
{
	const uint32_t number = (uint32_t)fd;

	return number < FDS &&
	       (atomic_load_explicit(&own[number / 64], memory_order_relaxed) >> (number % 64) & 1);
}

static void mark(long fd, bool is_own)
{
	if (fd < 0 || fd >= FDS) {
		return;
	}
	if (is_own) {
		atomic_fetch_or(&own[fd / 64], UINT64_C(1) << (fd % 64));
	} else {
		atomic_fetch_and(&own[fd / 64], ~(UINT64_C(1) << (fd % 64)));
	}
}

/* The lowest number for lttng-ust's: below the usual limit of 1024, above what programs use. */
static long lowest(void)
{
	struct rlimit limit = { 0 };

	tdm_raw(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)(intptr_t)&limit, 0, 0);
	return limit.rlim_cur >= 1024 ? 700 : (long)(limit.rlim_cur / 4 * 3);
}

static long move_up(long fd)
{
	const long flags = tdm_raw(__NR_fcntl, fd, F_GETFD, 0, 0, 0, 0);
	const long moved = tdm_raw(
		__NR_fcntl, fd, flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, lowest(), 0, 0, 0);

	if (moved < 0) {
		mark(fd, true);
		return fd;
	}
	tdm_raw(__NR_close, fd, 0, 0, 0, 0, 0);
	mark(moved, true);
	return moved;
}

static void received(const struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
		part = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len;
			at += sizeof(int)) {
			int fd;

			memcpy(&fd, (char *)part + at, sizeof(fd));
			fd = (int)move_up(fd);
			memcpy((char *)part + at, &fd, sizeof(fd));
		}
	}
}

void tdm_fds_own_call(struct tdm_frame *frame, bool may_move)
{
	if (frame->nr == __NR_close) {
		mark((int)frame->args[0], false);
		return;
	}
	if (frame->ret < 0 || !may_move) {
		return;
	}
	switch (frame->nr) {
	case __NR_socket:
	case __NR_open:
	case __NR_openat:
	case __NR_dup:
		frame->ret = move_up(frame->ret);
		break;
	case __NR_fcntl:
		if (frame->args[1] == F_DUPFD || frame->args[1] == F_DUPFD_CLOEXEC) {
			frame->ret = move_up(frame->ret);
		}
		break;
	case __NR_recvmsg:
		received((const struct msghdr *)(uintptr_t)frame->args[1]);
		break;
	case __NR_pipe:
	case __NR_pipe2: {
		int *ends = (int *)(uintptr_t)frame->args[0];

		ends[0] = (int)move_up(ends[0]);
		ends[1] = (int)move_up(ends[1]);
		break;
	}
	default:
		break;
	}
}

/*
 * close_range() of the program around lttng-ust's descriptors. True: done here, ret is set.
 */
bool tdm_fds_close_range(struct tdm_frame *frame)
{
	const uint32_t last = (uint32_t)frame->args[1];
	uint32_t from = (uint32_t)frame->args[0];
	bool met = false;

	if (frame->args[2] & 4) { /* CLOSE_RANGE_CLOEXEC: ours close on exec anyway */
		return false;
	}
	for (uint32_t fd = from; fd <= last && fd < FDS; fd++) {
		if (!tdm_fds_is_own(fd)) {
			continue;
		}
		met = true;
		if (fd > from) {
			tdm_raw(__NR_close_range, from, (long)fd - 1, (long)frame->args[2], 0, 0,
				0);
		}
		from = fd + 1;
	}
	if (!met) {
		return false;
	}
	frame->ret = from <= last
			     ? tdm_raw(__NR_close_range, from, last, (long)frame->args[2], 0, 0, 0)
			     : 0;
	return true;
}
