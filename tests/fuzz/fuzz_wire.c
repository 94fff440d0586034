/* SPDX-License-Identifier: MIT */
/* Bytes of a stranger: first as the bodies of all messages, then as a connection at either end. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/sync_link.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_bodies(const uint8_t *data, size_t size)
{
	struct tdm_hello hello;
	struct tdm_open open;
	struct tdm_opened opened;
	struct tdm_burst_frame burst;
	struct tdm_message message;
	char value[TDM_VALUE_MAX + 1];
	uint64_t number;

	tdm_hello_get(data, size, &hello, NULL);
	if (tdm_open_get(data, size, &open, NULL) == TDM_OK) {
		for (unsigned int nth = 0; nth < 3; nth++) {
			tdm_record_find(open.text, open.text_bytes, "clock", nth, value);
			tdm_record_find_number(
				open.text, open.text_bytes, "udp-port", nth, &number);
		}
	}
	tdm_opened_get(data, size, &opened, NULL);
	tdm_burst_get(data, size, &burst, NULL);
	if (tdm_message_get(data, size, &message, NULL) == TDM_OK) {
		uint8_t again[TDM_MESSAGE_BYTES];

		tdm_message_put(again, &message);
		if (memcmp(again, data, sizeof(again)) != 0) {
			abort();
		}
	}
}

static void be_peer(const uint8_t *data, size_t size, enum tdm_role role, bool with_secret)
{
	static const struct tdm_secret secret = { .is_set = true, .key = { 1 } };
	const struct tdm_link_options options = { .secret = with_secret ? &secret : NULL,
		.wants_proof = with_secret };
	struct tdm_frame frame;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) {
		return;
	}

	struct tdm_link *link = tdm_link_create(fds[0], role, &options, NULL);

	for (size_t at = 0; link && at < size;) {
		const size_t piece = size - at < 8192 ? size - at : 8192;

		if (send(fds[1], data + at, piece, MSG_NOSIGNAL) < 0) {
			break;
		}
		at += piece;
		while (tdm_link_fill(link, NULL) == TDM_OK) {
			while (tdm_link_next(link, &frame, NULL) == TDM_OK) {
				parse_bodies(frame.body, frame.size_bytes);
			}
		}
	}
	tdm_link_destroy(link);
	close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse_bodies(data, size);
	be_peer(data, size, TDM_ROLE_SERVER, false);
	be_peer(data, size, TDM_ROLE_SERVER, true);
	be_peer(data, size, TDM_ROLE_CLIENT, false);
	be_peer(data, size, TDM_ROLE_CLIENT, true);
	return 0;
}
