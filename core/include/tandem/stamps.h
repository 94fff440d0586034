/* SPDX-License-Identifier: MIT */
/*
 * stamps.h - packet stamps that the kernel makes below the scheduler, for one burst on one socket.
 *
 * Receive stamping is a switch of the whole machine: while any socket asks for it, every packet is stamped. So it is
 * on between tdm_stamps_begin() and tdm_stamps_end() only, by SO_TIMESTAMPING (the kernel lets go of it at once when
 * that is cleared, which it does not with SO_TIMESTAMP), and never on UNIX or vsock sockets, where it gives nothing.
 */
#ifndef TANDEM_STAMPS_H
#define TANDEM_STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

/** True for a TCP or UDP socket. */
bool tdm_stamps_possible(int fd);

/**
 * Begins to stamp what @p fd receives, and to report what it sends by tdm_stamps_send(). Whoever calls it calls
 * tdm_stamps_end() on every path. At most once a second: each turn patches kernel text on all CPUs.
 *
 * @retval TDM_ERR_UNSUPPORTED  Not TCP or UDP; nothing was set.
 */
enum tdm_status tdm_stamps_begin(int fd, struct tdm_error *err);

/** Ends it and throws away stamps that nobody fetched. Without effect on a socket that has no stamps. */
void tdm_stamps_end(int fd);

/**
 * Receives as tdm_socket_receive() does, with the kernel's stamp.
 *
 * @param stamp_ns  Receives CLOCK_REALTIME in ns at the arrival of the last packet in it; 0 = none.
 */
enum tdm_status tdm_stamps_receive(
	int fd, void *bytes, size_t room, size_t *got, uint64_t *stamp_ns, struct tdm_error *err);

/** Sends one message, all of it at once or not at all, and asks for its transmit stamp. */
enum tdm_status tdm_stamps_send(int fd, const void *bytes, size_t size, struct tdm_error *err);

/**
 * Fetches one transmit stamp, if one is there.
 *
 * @param id        Receives which send it belongs to: on UDP the count of stamped sends since begin, from 0; on TCP
 *                  the offset of its last byte since begin.
 * @param stamp_ns  Receives CLOCK_REALTIME in ns.
 */
bool tdm_stamps_fetch_sent(int fd, uint32_t *id, uint64_t *stamp_ns);

#endif
