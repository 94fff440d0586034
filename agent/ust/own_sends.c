/* SPDX-License-Identifier: MIT */
/*
 * What lttng-ust sends to the session daemon, in fewer pieces.
 *
 * It tells the daemon of each event by three writes to a stream socket and then waits for the answer: 640
 * writes at each exec with a session active, each of which wakes the daemon. A write of a thread that is
 * lttng-ust's is kept here until the thread makes any other call, which is before it can wait for anything.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Its two listeners, and the thread that loads it. */
#define SENDERS 3
/* A message of 20 fields has 19 KB. */
#define KEPT_BYTES 32768u

static struct sender {
	_Atomic(struct tdm_thread *) owner; /* NULL: free */
	int32_t fd;
	uint32_t length_bytes; /* 0: nothing is kept */
	uint8_t bytes[KEPT_BYTES];
} senders[SENDERS];

static struct sender *find(struct tdm_thread *thread, bool may_take)
{
	for (size_t i = 0; i < SENDERS; i++) {
		if (atomic_load_explicit(&senders[i].owner, memory_order_relaxed) == thread) {
			return &senders[i];
		}
	}
	for (size_t i = 0; may_take && i < SENDERS; i++) {
		struct tdm_thread *nobody = NULL;

		if (atomic_compare_exchange_strong(&senders[i].owner, &nobody, thread)) {
			senders[i].length_bytes = 0;
			return &senders[i];
		}
	}
	return NULL;
}

/* A peer that is gone or does not take it: lttng-ust learns it from the answer that does not come. */
static void send_kept(struct sender *sender)
{
	uint32_t at = 0;

	while (at < sender->length_bytes) {
		const long sent =
			tdm_raw(__NR_sendto, sender->fd, (long)(intptr_t)(sender->bytes + at),
				(long)(sender->length_bytes - at), MSG_NOSIGNAL, 0, 0);

		if (sent <= 0 && sent != -EINTR) {
			break;
		}
		at += sent > 0 ? (uint32_t)sent : 0;
	}
	sender->length_bytes = 0;
}

/* One plain piece without a name or descriptors, whose size is returned; 0: anything else. */
static uint32_t plain_bytes(const struct tdm_frame *frame)
{
	const struct msghdr *message = (const struct msghdr *)(uintptr_t)frame->args[1];

	if (frame->nr != __NR_sendmsg || frame->args[2] != MSG_NOSIGNAL || message->msg_name ||
		message->msg_controllen || message->msg_iovlen != 1 ||
		message->msg_iov->iov_len > KEPT_BYTES) {
		return 0;
	}
	return (uint32_t)message->msg_iov->iov_len;
}

bool tdm_sends_own_call(struct tdm_thread *thread, struct tdm_frame *frame)
{
	const uint32_t bytes = plain_bytes(frame);
	struct sender *sender = find(thread, bytes != 0);

	if (frame->nr == __NR_exit) {
		tdm_sends_end(thread);
		return false;
	}
	if (!sender) {
		return false;
	}
	if (sender->length_bytes && (!bytes || sender->fd != (int32_t)frame->args[0] ||
					    sender->length_bytes + bytes > KEPT_BYTES)) {
		send_kept(sender);
	}
	if (!bytes) {
		return false;
	}
	sender->fd = (int32_t)frame->args[0];
	memcpy(sender->bytes + sender->length_bytes,
		((const struct msghdr *)(uintptr_t)frame->args[1])->msg_iov->iov_base, bytes);
	sender->length_bytes += bytes;
	frame->ret = bytes;
	return true;
}

void tdm_sends_end(struct tdm_thread *thread)
{
	struct sender *sender = find(thread, false);

	if (sender) {
		send_kept(sender);
		atomic_store(&sender->owner, NULL);
	}
}

void tdm_sends_forget(void)
{
	for (size_t i = 0; i < SENDERS; i++) {
		senders[i].length_bytes = 0;
		atomic_store(&senders[i].owner, NULL);
	}
}
