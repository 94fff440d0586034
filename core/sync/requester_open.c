/* SPDX-License-Identifier: MIT */
/* A session's beginning and end; requester.c has its bursts. */
#include "requester_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	OPEN_MS = 5000
};

static void add_u64(struct tdm_buffer *to, const char *key, uint64_t value)
{
	tdm_buffer_printf(to, "%s %" PRIu64 "\n", key, value);
}

static void learn_peer(
	struct tdm_requester *requester, const struct tdm_opened *opened, uint16_t *peer_port)
{
	struct tdm_requester_peer *peer = &requester->peer;
	char value[TDM_VALUE_MAX + 1];
	uint64_t number;

	memset(peer, 0, sizeof(*peer));
	peer->epoch = opened->epoch;
	peer->unit_hz = 1000000000;
	if (tdm_record_find(opened->text, opened->text_bytes, "boot", 0, value)) {
		snprintf(peer->boot_id, sizeof(peer->boot_id), "%.36s", value);
	}
	if (tdm_record_find(opened->text, opened->text_bytes, "clock", 0, value)) {
		snprintf(peer->clock, sizeof(peer->clock), "%.15s", value);
	}
	if (tdm_record_find(opened->text, opened->text_bytes, "raw", 0, value)) {
		snprintf(peer->raw_clock, sizeof(peer->raw_clock), "%.15s", value);
	}
	if (tdm_record_find(opened->text, opened->text_bytes, "raw-source", 0, value)) {
		snprintf(peer->raw_source, sizeof(peer->raw_source), "%.15s", value);
	}
	if (tdm_record_find_number(opened->text, opened->text_bytes, "unit-hz", 0, &number) &&
		number > 0) {
		peer->unit_hz = number;
	}
	if (tdm_record_find_number(opened->text, opened->text_bytes, "cpus", 0, &number)) {
		peer->cpus = number;
	}
	peer->has_host_clock =
		tdm_record_find(opened->text, opened->text_bytes, "host-clock", 0, value);
	*peer_port = 0;
	if (tdm_record_find_number(opened->text, opened->text_bytes, "udp-port", 0, &number) &&
		number <= UINT16_MAX) {
		*peer_port = (uint16_t)number;
	}
}

/* Datagrams need a port in OPEN, but the socket can only be bound once there is a connection: so OPEN goes second. */
static enum tdm_status open_session(struct tdm_requester *requester, struct tdm_error *err)
{
	const struct tdm_requester_options *options = &requester->options;
	const uint64_t deadline_ns =
		tdm_deadline_ns(options->timeout_ms ? options->timeout_ms : OPEN_MS);
	const struct tdm_link_options link_options = { .secret = options->secret,
		.capabilities = TDM_CAN_EXCHANGE | TDM_CAN_DATAGRAMS,
		.stop_fd = options->stop_fd };
	struct tdm_buffer open = { .cap = 4096 };
	struct tdm_opened opened;
	uint16_t own_port = 0, peer_port;
	enum tdm_status status = tdm_link_greet(
		&options->address, &link_options, deadline_ns, &requester->link, err);

	if (status != TDM_OK) {
		return status;
	}
	tdm_path_init(&requester->path, requester->link, TDM_ROLE_CLIENT);
	tdm_random(&requester->session, sizeof(requester->session));
	tdm_open_put(&open, TDM_PURPOSE_EXCHANGE, requester->session);
	tdm_record_add(&open, "clock", options->clock);
	if (options->datagrams && tdm_path_bind(&requester->path, &own_port)) {
		add_u64(&open, "udp-port", own_port);
	}
	status = tdm_link_request(requester->link, &open, deadline_ns,
		options->stop_fd > 0 ? options->stop_fd : -1, &opened, err);
	tdm_buffer_release(&open);
	if (status != TDM_OK) {
		return status;
	}
	learn_peer(requester, &opened, &peer_port);
	requester->has_datagrams = own_port && tdm_path_connect(&requester->path, peer_port);
	return TDM_OK;
}

struct tdm_requester *tdm_requester_create(
	const struct tdm_requester_options *options, struct tdm_error *err)
{
	struct tdm_requester *requester =
		aligned_alloc(_Alignof(struct tdm_requester), sizeof(*requester));

	if (!requester) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a session");
		return NULL;
	}
	memset(requester, 0, sizeof(*requester));
	requester->options = *options;
	requester->path.datagrams = -1;
	requester->sequence = options->first_sequence;
	requester->raw_hz = options->local->raw == TDM_CLOCK_TSC ? tdm_clock_tsc_hz() : 1000000000;
	if (open_session(requester, err) != TDM_OK) {
		char text[320];

		tdm_requester_destroy(requester);
		tdm_address_print(&options->address, text, sizeof(text));
		/* Where connecting failed, the address is said already. */
		if (err && !strstr(err->text, text)) {
			tdm_error_prefix(err, "%s", text);
		}
		return NULL;
	}
	requester->options.clock = NULL; /* was borrowed for this call */
	(void)mlock(requester, sizeof(*requester));
	return requester;
}

void tdm_requester_destroy(struct tdm_requester *requester)
{
	if (!requester) {
		return;
	}
	tdm_path_release(&requester->path);
	tdm_link_destroy(requester->link);
	munlock(requester, sizeof(*requester));
	free(requester->samples);
	tdm_buffer_release(&requester->notes);
	free(requester);
}

const struct tdm_requester_peer *tdm_requester_peer(const struct tdm_requester *requester)
{
	return &requester->peer;
}

uint64_t tdm_requester_next_sequence(const struct tdm_requester *requester)
{
	return requester->sequence - requester->warmed_up;
}

uint64_t tdm_requester_take_sequence(struct tdm_requester *requester)
{
	return requester->sequence++ - requester->warmed_up;
}

int tdm_requester_fd(const struct tdm_requester *requester)
{
	return tdm_link_fd(requester->link);
}
