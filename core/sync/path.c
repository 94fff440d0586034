/* SPDX-License-Identifier: MIT */
#include "path_priv.h"
#include <string.h>
#include <tandem/stamps.h>
#include <unistd.h>

static void key_tag(struct tdm_path *path, enum tdm_role sender, crypto_generichash_state *state)
{
	uint8_t key[TDM_KEY_BYTES];

	tdm_link_derive(path->link, sender, "datagrams", key);
	crypto_generichash_init(state, key, sizeof(key), TDM_TAG_BYTES);
	sodium_memzero(key, sizeof(key));
}

/* The message's own sequence, type and session stand for its place: they are never used twice. */
static void make_tag(const crypto_generichash_state *keyed, const uint8_t *message, uint8_t *tag)
{
	crypto_generichash_state state = *keyed;

	crypto_generichash_update(&state, message, TDM_MESSAGE_BYTES);
	crypto_generichash_final(&state, tag, TDM_TAG_BYTES);
}

void tdm_path_init(struct tdm_path *path, struct tdm_link *link, enum tdm_role role)
{
	memset(path, 0, sizeof(*path));
	path->link = link;
	path->datagrams = -1;
	path->is_tagged = tdm_link_is_proven(link);
	if (path->is_tagged) {
		const bool is_client = role == TDM_ROLE_CLIENT;

		key_tag(path, role, &path->tag_sent);
		key_tag(path, is_client ? TDM_ROLE_SERVER : TDM_ROLE_CLIENT, &path->tag_received);
	}
}

bool tdm_path_bind(struct tdm_path *path, uint16_t *port)
{
	return tdm_socket_datagram_beside(tdm_link_fd(path->link), port, &path->datagrams, NULL) ==
	       TDM_OK;
}

bool tdm_path_connect(struct tdm_path *path, uint16_t peer_port)
{
	if (peer_port != 0 && tdm_socket_datagram_connect(path->datagrams, tdm_link_fd(path->link),
				      peer_port, NULL) == TDM_OK) {
		return true;
	}
	close(path->datagrams);
	path->datagrams = -1;
	return false;
}

void tdm_path_release(struct tdm_path *path)
{
	if (!path->link) {
		return;
	}
	tdm_path_stamps_end(path);
	if (path->datagrams >= 0) {
		close(path->datagrams);
	}
	sodium_memzero(path, sizeof(*path));
	path->datagrams = -1;
}

uint8_t *tdm_path_message(struct tdm_path *path, bool by_datagram)
{
	return by_datagram ? path->out : tdm_link_message(path->link);
}

enum tdm_status tdm_path_send(struct tdm_path *path, bool by_datagram, struct tdm_error *err)
{
	if (!by_datagram) {
		return tdm_link_send_message(path->link, err);
	}

	size_t size = TDM_MESSAGE_BYTES;
	size_t sent;

	if (path->is_tagged) {
		make_tag(&path->tag_sent, path->out, path->out + TDM_MESSAGE_BYTES);
		size = TDM_DATAGRAM_BYTES;
	}
	/* A datagram may be lost anyway: what cannot be sent is lost here. */
	if (path->has_stamps) {
		if (tdm_stamps_send(path->datagrams, path->out, size, NULL) == TDM_OK) {
			path->stamped_count++;
		}
	} else {
		tdm_socket_send_some(path->datagrams, path->out, size, &sent, NULL);
	}
	return TDM_OK;
}

enum tdm_status tdm_path_fill_datagram(struct tdm_path *path, size_t *got)
{
	const enum tdm_status status =
		path->has_stamps ? tdm_stamps_receive(path->datagrams, path->in, sizeof(path->in),
					   got, &path->received_ns, NULL)
				 : tdm_socket_receive(
					   path->datagrams, path->in, sizeof(path->in), got, NULL);

	return status == TDM_OK ? TDM_OK : TDM_AGAIN;
}

bool tdm_path_check_datagram(struct tdm_path *path, size_t got)
{
	uint8_t tag[TDM_TAG_BYTES];

	if (!path->is_tagged) {
		return got == TDM_MESSAGE_BYTES;
	}
	if (got != TDM_DATAGRAM_BYTES) {
		return false;
	}
	make_tag(&path->tag_received, path->in, tag);
	return sodium_memcmp(tag, path->in + TDM_MESSAGE_BYTES, sizeof(tag)) == 0;
}

bool tdm_path_can_stamp(const struct tdm_path *path, bool by_datagram)
{
	return by_datagram || tdm_stamps_possible(tdm_link_fd(path->link));
}

enum tdm_status tdm_path_stamps_begin(
	struct tdm_path *path, bool by_datagram, struct tdm_error *err)
{
	if (!by_datagram) {
		return tdm_link_stamps_begin(path->link, err);
	}

	const enum tdm_status status = tdm_stamps_begin(path->datagrams, err);

	path->has_stamps = status == TDM_OK;
	path->stamped_count = 0;
	path->received_ns = 0;
	return status;
}

void tdm_path_stamps_end(struct tdm_path *path)
{
	tdm_link_stamps_end(path->link);
	if (path->has_stamps) {
		tdm_stamps_end(path->datagrams);
		path->has_stamps = false;
		path->received_ns = 0;
	}
}

uint64_t tdm_path_received_ns(const struct tdm_path *path, bool by_datagram)
{
	return by_datagram ? path->received_ns : tdm_link_received_ns(path->link);
}

bool tdm_path_sent_ns(struct tdm_path *path, bool by_datagram, uint32_t *number, uint64_t *stamp_ns)
{
	if (!by_datagram) {
		return tdm_link_sent_ns(path->link, number, stamp_ns);
	}
	while (path->has_stamps && tdm_stamps_fetch_sent(path->datagrams, number, stamp_ns)) {
		if (*stamp_ns != 0) {
			return true;
		}
	}
	return false;
}
