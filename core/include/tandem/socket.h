/* SPDX-License-Identifier: MIT */
/*
 * socket.h - stream sockets over TCP, vsock and UNIX paths: never blocking, every wait with a deadline.
 *
 * Every descriptor from here is non-blocking and closed at exec. On TCP, Nagle's algorithm is off before the first
 * byte, on both connected and accepted sockets: a small write that the kernel holds back would be measured as delay.
 */
#ifndef TANDEM_SOCKET_H
#define TANDEM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/address.h>
#include <tandem/status.h>

/** CLOCK_MONOTONIC in ns: what deadlines are counted in. */
uint64_t tdm_now_ns(void);

/** The deadline @p ms milliseconds from now. */
static inline uint64_t tdm_deadline_ns(uint32_t ms)
{
	return tdm_now_ns() + (uint64_t)ms * 1000000;
}

/* Who is at the other end of an accepted connection. */
struct tdm_peer {
	enum tdm_address_kind kind;
	char text[96];       /* for messages, e.g. "tcp:127.0.0.1:40112" or "unix:uid=0,pid=17" */
	bool is_loopback;    /* TCP from this machine, or UNIX */
	uint32_t uid;        /* UNIX: of the process that connected */
	uint32_t cid, port;  /* VSOCK */
	uint8_t address[16]; /* TCP: IPv6, or IPv4 mapped into it; to tell peers apart */
};

/**
 * Connects. The host of a TCP address must be numeric (tdm_address_resolve()).
 *
 * @param deadline_ns  As tdm_now_ns() counts.
 * @param stop_fd      Becomes readable when nobody wants the connection any more; -1 = none.
 * @param fd           Receives the descriptor, owned by the caller.
 * @retval TDM_ERR_IO  Refused, unreachable or too late; @p err names the address.
 * @retval TDM_AGAIN   @p stop_fd became readable; @p err says so.
 */
enum tdm_status tdm_socket_connect(const struct tdm_address *address, uint64_t deadline_ns,
	int stop_fd, int *fd, struct tdm_error *err);

/**
 * Listens. A UNIX path left behind by a process that is gone is replaced; one that answers is not.
 *
 * @param address  The port that was chosen replaces port 0.
 * @param fd       Receives the descriptor, owned by the caller, who also unlinks a UNIX path.
 */
enum tdm_status tdm_socket_listen(struct tdm_address *address, int *fd, struct tdm_error *err);

/**
 * Takes one waiting connection.
 *
 * @param fd    Receives the descriptor, owned by the caller.
 * @param peer  Receives who it is.
 * @retval TDM_AGAIN      None is waiting, or the one that was has gone.
 * @retval TDM_ERR_NOMEM  No descriptor or memory is left: try again later.
 */
enum tdm_status tdm_socket_accept(
	int listener, int *fd, struct tdm_peer *peer, struct tdm_error *err);

/**
 * Sends all bytes, by one call unless the kernel takes only a part; waits for room up to the deadline.
 *
 * @retval TDM_ERR_PEER  The peer has gone, or takes nothing before the deadline.
 */
enum tdm_status tdm_socket_send(
	int fd, const void *bytes, size_t size, uint64_t deadline_ns, struct tdm_error *err);

/**
 * Sends what the kernel takes at once.
 *
 * @param sent  Receives the count, 0 with TDM_AGAIN.
 * @retval TDM_AGAIN     No room.
 * @retval TDM_ERR_PEER  The peer has gone.
 */
enum tdm_status tdm_socket_send_some(
	int fd, const void *bytes, size_t size, size_t *sent, struct tdm_error *err);

/**
 * Receives what is there, at most @p room bytes; one call, no wait.
 *
 * @retval TDM_AGAIN     Nothing is there.
 * @retval TDM_END       The peer has closed its side.
 * @retval TDM_ERR_PEER  The connection broke.
 */
enum tdm_status tdm_socket_receive(
	int fd, void *bytes, size_t room, size_t *got, struct tdm_error *err);

enum {
	TDM_WAIT_READ = 1,
	TDM_WAIT_WRITE = 2
};

/**
 * Waits until @p fd, or @p other (-1 = none), is ready or broken.
 *
 * @retval TDM_AGAIN  The deadline came first, or a signal.
 */
enum tdm_status tdm_socket_wait(int fd, int events, int other, uint64_t deadline_ns);

/** Is a descriptor readable that says by it that nobody wants to go on? -1 = there is none. */
bool tdm_socket_is_stopped(int stop_fd);

/** True where the socket is TCP with Nagle's algorithm off, or no TCP at all. */
bool tdm_socket_is_undelayed(int fd);

/** Acknowledges at once what comes next: of use against a peer that has Nagle's algorithm on. TCP only. */
void tdm_socket_quick_ack(int fd);

/** The shortest time from a segment to its acknowledgement that TCP has seen, in us; 0 where it is not known. */
uint32_t tdm_socket_min_rtt_us(int fd);

/** Tells the peer that no more comes; what it still sends can be read. */
void tdm_socket_finish(int fd);

/** Ends a connection from another thread than the one that uses it: that one sees its end. */
void tdm_socket_abort(int fd);

/** The address of this end of a TCP or vsock connection; to listen beside it. @retval TDM_ERR_UNSUPPORTED  UNIX. */
enum tdm_status tdm_socket_own_address(int fd, struct tdm_address *address, struct tdm_error *err);

/**
 * Which user's process is at the other end of a TCP connection over loopback, from /proc/net.
 *
 * @return False where it is not known: no such connection, or /proc is not readable.
 */
bool tdm_socket_loopback_uid(const struct tdm_peer *peer, uint32_t *uid);

/** True for an address that only this machine reaches: loopback, and UNIX. */
bool tdm_address_is_local(const struct tdm_address *address);

/**
 * A datagram socket at the same local address as the TCP connection @p stream, at any port.
 *
 * @param port  Receives its port.
 * @param fd    Receives the descriptor, owned by the caller.
 * @retval TDM_ERR_UNSUPPORTED  @p stream is no TCP connection.
 */
enum tdm_status tdm_socket_datagram_beside(
	int stream, uint16_t *port, int *fd, struct tdm_error *err);

/** Binds it to one peer, the host at the other end of @p stream: nobody else's datagrams are received. */
enum tdm_status tdm_socket_datagram_connect(
	int fd, int stream, uint16_t peer_port, struct tdm_error *err);

#endif
