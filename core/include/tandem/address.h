/* SPDX-License-Identifier: MIT */
/*
 * address.h - where a peer is, as users write it: tcp:HOST:PORT, vsock:CID:PORT, unix:PATH.
 */
#ifndef TANDEM_ADDRESS_H
#define TANDEM_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>

enum {
	TDM_DEFAULT_PORT = 8990,
	TDM_HOST_MAX = 255, /* bytes of a host name */
	TDM_PATH_MAX = 107, /* bytes of a socket's path: what sockaddr_un holds less its NUL */
};

#define TDM_CID_ANY UINT32_MAX

enum tdm_address_kind {
	TDM_ADDRESS_TCP,
	TDM_ADDRESS_VSOCK,
	TDM_ADDRESS_UNIX
};

struct tdm_address {
	enum tdm_address_kind kind;
	char host[TDM_HOST_MAX + 1]; /* TCP: name or numeric address, without brackets */
	char path[TDM_PATH_MAX + 1]; /* UNIX */
	uint32_t cid;                /* VSOCK; TDM_CID_ANY to listen for every peer */
	uint32_t port; /* TCP (at most 65535) and VSOCK; 0 = any free one, to listen only */
	bool has_port; /* it was written, and is not the default */
};

/* What the address is for: some forms make sense for one use only. */
enum tdm_address_use {
	TDM_ADDRESS_CONNECT,
	TDM_ADDRESS_LISTEN
};

/**
 * Parses an address. A port that is not written is TDM_DEFAULT_PORT. Whether a host name exists is not asked here.
 *
 * @retval TDM_ERR_FORMAT  Not an address; @p err says what is wanted.
 */
enum tdm_status tdm_address_parse(const char *text, enum tdm_address_use use,
	struct tdm_address *address, struct tdm_error *err);

/** Does a text begin as an address does? What follows may still be none. */
bool tdm_address_is_one(const char *text);

/** Writes the address as tdm_address_parse() takes it. Cut where @p room is too small; 300 bytes hold any. */
void tdm_address_print(const struct tdm_address *address, char *text, size_t room);

/**
 * Replaces a TCP host name by its numeric address, the first that the system's resolver gives. May wait for the
 * resolver's own time limit. Only for commands: a statically linked program cannot use it.
 *
 * @retval TDM_ERR_IO  The name is not known.
 */
enum tdm_status tdm_address_resolve(struct tdm_address *address, struct tdm_error *err);

#endif
