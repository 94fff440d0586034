/* SPDX-License-Identifier: MIT */
/*
 * socket_priv.h - what the socket files of this folder share.
 */
#ifndef TANDEM_SOCKET_PRIV_H
#define TANDEM_SOCKET_PRIV_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
/* After sys/socket.h: the kernel's header lacks what it needs from it. */
#include <linux/vm_sockets.h>

/* A socket address of any family that we speak. */
union tdm_sockaddr {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
	struct sockaddr_vm vsock;
	struct sockaddr_un path;
	struct sockaddr_storage storage;
};

/* SO_DOMAIN, or -1. */
int tdm_socket_domain(int fd);

#endif
