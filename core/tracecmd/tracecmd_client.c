/* SPDX-License-Identifier: MIT */
#include "tracecmd_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/socket.h>
#include <unistd.h>

enum {
	TEXTS_MAX_BYTES = 256 << 20
};

static const char agent[] = "trace-cmd's agent";

static enum tdm_status connect_port(
	const struct tdm_tracecmd *session, uint32_t port, int *fd, struct tdm_error *err)
{
	struct tdm_address address = session->address;

	address.port = port;
	return tdm_socket_connect(
		&address, tdm_deadline_ns(session->timeout_ms), session->control.stop_fd, fd, err);
}

static enum tdm_status send_request(struct tdm_tracecmd *session,
	const struct tdm_tracecmd_options *options, struct tdm_error *err)
{
	static const char protocols[] = "ptp\0"; /* and the empty name that ends the list */
	struct message_out out;
	size_t arguments_bytes = 4;

	for (size_t i = 0; i < options->argument_count; i++) {
		arguments_bytes += strlen(options->arguments[i]) + 1;
	}
	message_begin(&out, COMMAND_TRACE_REQ, 16);
	message_u32(&out, 0); /* flags: no fifos */
	message_u32(&out, 0); /* the count stands inside the parameter */
	message_u64(&out, options->trace_id);
	message_u32(&out, PARAMETER_ARGUMENTS);
	message_u32(&out, (uint32_t)arguments_bytes);
	message_u32(&out, (uint32_t)options->argument_count);
	for (size_t i = 0; i < options->argument_count; i++) {
		message_bytes(&out, options->arguments[i], strlen(options->arguments[i]) + 1);
	}
	if (options->sync) {
		message_u32(&out, PARAMETER_SYNC_PROTOCOLS);
		message_u32(&out, sizeof(protocols));
		message_bytes(&out, protocols, sizeof(protocols));
	}
	return message_send(session->control_fd, &out, session->timeout_ms, err);
}

/* Decimal port strings, one a CPU. */
static enum tdm_status parse_ports(struct tdm_tracecmd *session, struct tdm_error *err)
{
	session->ports = calloc(session->info.cpu_count, sizeof(*session->ports));
	if (!session->ports) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %" PRIu32 " ports",
			session->info.cpu_count);
	}
	for (uint32_t cpu = 0; cpu < session->info.cpu_count; cpu++) {
		const char *text = tdm_cursor_string(&session->control.payload, 16);
		char *end = NULL;
		const unsigned long port = text ? strtoul(text, &end, 10) : 0;

		if (!text || *end || port == 0 || port > UINT32_MAX ||
			(session->address.kind == TDM_ADDRESS_TCP && port > UINT16_MAX)) {
			return tdm_fail(err, TDM_ERR_PEER,
				"trace-cmd's agent named no usable port for CPU %" PRIu32
				" of %" PRIu32,
				cpu, session->info.cpu_count);
		}
		session->ports[cpu] = (uint32_t)port;
	}
	return TDM_OK;
}

static enum tdm_status receive_response(struct tdm_tracecmd *session, struct tdm_error *err)
{
	const enum tdm_status status = message_receive(
		session->control_fd, &session->control, session->timeout_ms, NULL, NULL, err);
	struct tdm_cursor *fixed = &session->control.fixed;

	if (status == TDM_AGAIN) {
		return tdm_fail(err, TDM_AGAIN, "interrupted");
	}
	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_PEER,
			"trace-cmd's agent closed the connection: it serves another session, or refuses this host");
	}
	if (status != TDM_OK) {
		return status;
	}
	if (session->control.command != COMMAND_TRACE_RESP) {
		return tdm_fail(err, TDM_ERR_PEER,
			"trace-cmd's agent answered with command %" PRIu32
			", wanted %d: it refuses to trace",
			session->control.command, COMMAND_TRACE_RESP);
	}
	tdm_cursor_skip(fixed, 4);
	session->info.cpu_count = tdm_cursor_u32(fixed);
	session->info.page_bytes = tdm_cursor_u32(fixed);
	session->info.trace_id = tdm_cursor_u64(fixed);

	const struct tdm_cursor name = tdm_cursor_take(fixed, PROTOCOL_NAME_BYTES);
	const uint32_t sync_port = tdm_cursor_u32(fixed);
	const bool has_ptp = !fixed->failed && memcmp(name.bytes, "ptp", 4) == 0;

	if (fixed->failed || session->info.cpu_count == 0 ||
		session->info.cpu_count > TDM_TRACECMD_MAX_CPUS) {
		return tdm_fail(err, TDM_ERR_PEER,
			"trace-cmd's agent answered with %zu bytes and %" PRIu32
			" CPUs, wanted 40 and 1 to %d",
			fixed->size, session->info.cpu_count, TDM_TRACECMD_MAX_CPUS);
	}

	const enum tdm_status ports = parse_ports(session, err);

	if (ports != TDM_OK || !has_ptp) {
		return ports;
	}
	/* At once: the agent accepts this connection before it does anything else. */
	session->info.syncs = true;
	return connect_port(session, sync_port, &session->sync_fd, err);
}

struct tdm_tracecmd *tdm_tracecmd_open(const struct tdm_tracecmd_options *options,
	const struct tdm_log *log, struct tdm_error *err)
{
	struct tdm_tracecmd *session = calloc(1, sizeof(*session));

	if (!session) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a session");
		return NULL;
	}
	session->log = log;
	session->address = *options->address;
	session->timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	session->control_fd = -1;
	session->sync_fd = -1;
	session->control.peer = session->sync.peer = agent;
	session->control.stop_fd = options->stop_fd > 0 ? options->stop_fd : -1;
	session->sync.stop_fd = -1;

	enum tdm_status status =
		connect_port(session, session->address.port, &session->control_fd, err);

	if (status == TDM_OK) {
		status = send_request(session, options, err);
	}
	if (status == TDM_OK) {
		status = receive_response(session, err);
	}
	if (status != TDM_OK) {
		tdm_tracecmd_destroy(session);
		return NULL;
	}
	session->control.stop_fd =
		-1; /* from here on the agent traces: it is stopped in good order */
	return session;
}

void tdm_tracecmd_destroy(struct tdm_tracecmd *session)
{
	if (!session) {
		return;
	}
	if (session->control_fd >= 0) {
		close(session->control_fd);
	}
	if (session->sync_fd >= 0) {
		close(session->sync_fd);
	}
	free(session->ports);
	free(session);
}

struct tdm_tracecmd_info tdm_tracecmd_get_info(const struct tdm_tracecmd *session)
{
	return session->info;
}

enum tdm_status tdm_tracecmd_receive_texts(
	struct tdm_tracecmd *session, struct tdm_buffer *bytes, struct tdm_error *err)
{
	for (;;) {
		struct message_in *in = &session->control;
		const enum tdm_status status = message_receive(
			session->control_fd, in, session->timeout_ms, NULL, NULL, err);

		if (status == TDM_END) {
			return tdm_fail(err, TDM_ERR_PEER,
				"trace-cmd's agent went away after %zu bytes of texts",
				bytes->size);
		}
		if (status != TDM_OK) {
			return status;
		}
		if (in->command == COMMAND_FIN_DATA) {
			return TDM_OK;
		}
		if (in->command != COMMAND_SEND_DATA) {
			return tdm_fail(err, TDM_ERR_PEER,
				"trace-cmd's agent sent command %" PRIu32 " among its texts",
				in->command);
		}
		if (in->payload.size > TEXTS_MAX_BYTES - bytes->size ||
			tdm_buffer_append(bytes, in->payload.bytes, in->payload.size) != TDM_OK) {
			return tdm_fail(err, TDM_ERR_NOMEM,
				"trace-cmd's agent sends over %d bytes of texts", TEXTS_MAX_BYTES);
		}
	}
}

enum tdm_status tdm_tracecmd_connect_pages(
	struct tdm_tracecmd *session, uint32_t cpu, int *fd, struct tdm_error *err)
{
	return connect_port(session, session->ports[cpu], fd, err);
}

enum tdm_status tdm_tracecmd_stop(struct tdm_tracecmd *session, struct tdm_error *err)
{
	struct message_out out;

	message_begin(&out, COMMAND_CLOSE, 0);
	return message_send(session->control_fd, &out, session->timeout_ms, err);
}

enum tdm_status tdm_tracecmd_finish(struct tdm_tracecmd *session, struct tdm_error *err)
{
	if (session->sync_fd >= 0) {
		struct message_out out;

		message_begin(&out, COMMAND_TIME_SYNC, PROTOCOL_NAME_BYTES + 4);
		message_name(&out, "none");
		message_u32(&out, OUTER_STOP);
		/* An agent that has gone shows below. */
		message_send(session->sync_fd, &out, session->timeout_ms, NULL);
	}

	enum tdm_status status;

	do {
		status = message_receive(session->control_fd, &session->control,
			session->timeout_ms, NULL, NULL, err);
	} while (status == TDM_OK && session->control.command != COMMAND_CLOSE_RESP);
	if (status == TDM_END) {
		return tdm_fail(
			err, TDM_ERR_PEER, "trace-cmd's agent went away before its farewell");
	}
	return status;
}
