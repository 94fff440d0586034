/* SPDX-License-Identifier: MIT */
/*
 * path_priv.h - what carries exchange messages: the connection itself, or datagrams beside it.
 */
#ifndef TANDEM_PATH_PRIV_H
#define TANDEM_PATH_PRIV_H

#include <sodium.h>
#include <stdbool.h>
#include <tandem/sync_link.h>

enum {
	TDM_DATAGRAM_BYTES = TDM_MESSAGE_BYTES + TDM_TAG_BYTES
};

/* Datagrams beside a link, once both ends know the other's port. */
struct tdm_path {
	struct tdm_link *link; /* borrowed */
	int datagrams;         /* descriptor, -1 = none */
	bool is_tagged;
	bool has_stamps; /* of the datagrams */
	uint32_t stamped_count;
	crypto_generichash_state tag_sent, tag_received;
	uint8_t out[TDM_DATAGRAM_BYTES];
	uint8_t in[TDM_DATAGRAM_BYTES + 1]; /* one more: a longer datagram is seen to be longer */
	uint64_t received_ns;
};

void tdm_path_init(struct tdm_path *path, struct tdm_link *link, enum tdm_role role);

/** Makes the datagram socket; false where the link has none beside it. */
bool tdm_path_bind(struct tdm_path *path, uint16_t *port);
bool tdm_path_connect(struct tdm_path *path, uint16_t peer_port);
void tdm_path_release(struct tdm_path *path);

/** Where to write the next message to. */
uint8_t *tdm_path_message(struct tdm_path *path, bool by_datagram);
enum tdm_status tdm_path_send(struct tdm_path *path, bool by_datagram, struct tdm_error *err);

/**
 * Receives one datagram into in[], without waiting. Its tag is not checked yet: clocks are read first.
 * @retval TDM_AGAIN  None there (or an ICMP error, which means nothing for the session).
 */
enum tdm_status tdm_path_fill_datagram(struct tdm_path *path, size_t *got);

/** True where a datagram of that size is one message of the peer's. */
bool tdm_path_check_datagram(struct tdm_path *path, size_t got);

/* Kernel stamps on whichever carries the burst. */
bool tdm_path_can_stamp(const struct tdm_path *path, bool by_datagram);
enum tdm_status tdm_path_stamps_begin(
	struct tdm_path *path, bool by_datagram, struct tdm_error *err);
void tdm_path_stamps_end(struct tdm_path *path);
uint64_t tdm_path_received_ns(const struct tdm_path *path, bool by_datagram);
bool tdm_path_sent_ns(
	struct tdm_path *path, bool by_datagram, uint32_t *number, uint64_t *stamp_ns);

#endif
