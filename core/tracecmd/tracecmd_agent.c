/* SPDX-License-Identifier: MIT */
#include "tracecmd_agent_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	REQUEST_MS = 10000,
	ACCEPT_MS = 60000,
	SEND_MS = 10000,
	/* trace-cmd reads no text before its first round of sync is done, for which it reads all formats of its kernel first. */
	TEXTS_MS = 300000,
	FIRST_PORT =
		1500, /* where trace-cmd's own agent begins: port forwardings are made for it */
	LAST_PORT = 6000,
	TEXT_PART_BYTES = MESSAGE_MAX_BYTES - MESSAGE_HEADER_BYTES
};

struct tdm_tracecmd_agent *tdm_tracecmd_agent_create(
	int control_fd, const struct tdm_peer *who, int stop_fd, struct tdm_error *err)
{
	struct tdm_tracecmd_agent *agent = calloc(1, sizeof(*agent));

	if (!agent) {
		close(control_fd);
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a session");
		return NULL;
	}
	agent->who = *who;
	agent->stop_fd = stop_fd;
	agent->control_fd = control_fd;
	agent->sync_fd = -1;
	agent->sync_listener = -1;
	agent->control.peer = agent->sync.peer = "the host";
	agent->control.stop_fd = agent->sync.stop_fd = stop_fd;
	return agent;
}

static void close_if_open(int fd)
{
	if (fd >= 0) {
		close(fd);
	}
}

void tdm_tracecmd_agent_destroy(struct tdm_tracecmd_agent *agent)
{
	if (!agent) {
		return;
	}
	for (uint32_t cpu = 0; cpu < agent->cpu_count; cpu++) {
		close_if_open(agent->page_listeners[cpu]);
	}
	close_if_open(agent->control_fd);
	close_if_open(agent->sync_fd);
	close_if_open(agent->sync_listener);
	free(agent->page_listeners);
	free(agent->argument_text);
	free(agent->arguments);
	free(agent);
}

/* A count, then as many strings. The parameter's own end bounds them, whatever the count says. */
static enum tdm_status take_arguments(struct tdm_tracecmd_agent *agent, struct tdm_cursor *in,
	struct tdm_tracecmd_request *request, struct tdm_error *err)
{
	const uint32_t count = tdm_cursor_u32(in);
	const size_t text_bytes = tdm_cursor_left(in);

	if (in->failed || count > TDM_TRACECMD_MAX_ARGUMENTS || agent->arguments) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the host sent %" PRIu32 " arguments in %zu bytes, wanted once at most %d",
			count, text_bytes, TDM_TRACECMD_MAX_ARGUMENTS);
	}
	agent->arguments = calloc(count + 1, sizeof(*agent->arguments));
	agent->argument_text = malloc(text_bytes + 1);
	if (!agent->arguments || !agent->argument_text) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for arguments");
	}
	memcpy(agent->argument_text, in->bytes + in->pos, text_bytes);

	struct tdm_cursor strings = tdm_cursor_over(agent->argument_text, text_bytes, 0, true);

	for (uint32_t i = 0; i < count; i++) {
		agent->arguments[i] = tdm_cursor_string(&strings, text_bytes);
		if (!agent->arguments[i]) {
			return tdm_fail(err, TDM_ERR_PEER,
				"the host announced %" PRIu32 " arguments, %" PRIu32
				" are there with their end",
				count, i);
		}
	}
	request->arguments = agent->arguments;
	request->argument_count = count;
	return TDM_OK;
}

static bool offers(struct tdm_cursor in, const char *name)
{
	while (tdm_cursor_left(&in)) {
		const char *offered = tdm_cursor_string(&in, tdm_cursor_left(&in));

		if (!offered || !*offered) {
			return false;
		}
		if (strcmp(offered, name) == 0) {
			return true;
		}
	}
	return false;
}

enum tdm_status tdm_tracecmd_agent_receive_request(struct tdm_tracecmd_agent *agent,
	struct tdm_tracecmd_request *request, struct tdm_error *err)
{
	enum tdm_status status =
		message_receive(agent->control_fd, &agent->control, REQUEST_MS, NULL, NULL, err);
	struct tdm_cursor *payload = &agent->control.payload;

	*request = (struct tdm_tracecmd_request){ 0 };
	if (status != TDM_OK) {
		return status;
	}
	if (agent->control.command != COMMAND_TRACE_REQ) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the host began with command %" PRIu32 ", wanted a trace request (%d)",
			agent->control.command, COMMAND_TRACE_REQ);
	}
	tdm_cursor_skip(&agent->control.fixed, 8);
	request->host_trace_id = tdm_cursor_u64(&agent->control.fixed);
	while (tdm_cursor_left(payload) && status == TDM_OK) {
		const uint32_t id = tdm_cursor_u32(payload);
		struct tdm_cursor value = tdm_cursor_take(payload, tdm_cursor_u32(payload));

		value.big_endian = true;
		if (payload->failed) {
			return tdm_fail(err, TDM_ERR_PEER,
				"the host's parameter %" PRIu32 " passes the end of its message",
				id);
		}
		if (id == PARAMETER_ARGUMENTS) {
			status = take_arguments(agent, &value, request, err);
		} else if (id == PARAMETER_SYNC_PROTOCOLS) {
			request->offers_ptp = offers(value, "ptp");
		}
	}
	return status;
}

/* Beside the control connection: what the host reached once it reaches again. */
static enum tdm_status listen_beside(const struct tdm_tracecmd_agent *agent, uint32_t *next_port,
	int *fd, uint32_t *port, struct tdm_error *err)
{
	struct tdm_address address;
	enum tdm_status status = tdm_socket_own_address(agent->control_fd, &address, err);

	if (status != TDM_OK) {
		return status;
	}
	if (address.kind == TDM_ADDRESS_VSOCK) {
		address.cid = TDM_CID_ANY;
	}
	do {
		address.port = (*next_port)++;
		status = tdm_socket_listen(&address, fd, err);
	} while (status != TDM_OK && *next_port <= LAST_PORT);
	*port = address.port;
	return status;
}

enum tdm_status tdm_tracecmd_agent_answer(struct tdm_tracecmd_agent *agent,
	const struct tdm_tracecmd_answer *answer, struct tdm_error *err)
{
	uint32_t next_port = FIRST_PORT, port = 0, sync_port = 0;
	enum tdm_status status = TDM_OK;
	struct message_out ports = { .size = 0 }, out;

	if (answer->cpu_count == 0 || answer->cpu_count > TDM_TRACECMD_MAX_CPUS) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%" PRIu32 " CPUs, the protocol has room for %d", answer->cpu_count,
			TDM_TRACECMD_MAX_CPUS);
	}
	agent->page_listeners = malloc(answer->cpu_count * sizeof(*agent->page_listeners));
	if (!agent->page_listeners) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for ports");
	}
	if (answer->syncs) {
		status = listen_beside(agent, &next_port, &agent->sync_listener, &sync_port, err);
	}
	while (status == TDM_OK && agent->cpu_count < answer->cpu_count) {
		char text[16];

		status = listen_beside(
			agent, &next_port, &agent->page_listeners[agent->cpu_count], &port, err);
		if (status == TDM_OK) {
			agent->cpu_count++;
			snprintf(text, sizeof(text), "%" PRIu32, port);
			message_bytes(&ports, text, strlen(text) + 1);
		}
	}
	if (status != TDM_OK) {
		return status;
	}
	message_begin(&out, COMMAND_TRACE_RESP, 40);
	message_u32(&out, 0);
	message_u32(&out, answer->cpu_count);
	message_u32(&out, answer->page_bytes);
	message_u64(&out, answer->trace_id);
	message_name(&out, answer->syncs ? "ptp" : "");
	message_u32(&out, sync_port);
	out.overflow |= ports.overflow;
	message_bytes(&out, ports.bytes, ports.size);
	return message_send(agent->control_fd, &out, SEND_MS, err);
}

static bool is_same_machine(const struct tdm_peer *a, const struct tdm_peer *b)
{
	return a->kind == b->kind && a->cid == b->cid &&
	       memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* One connection, of the machine that has the control connection; then the listener is closed. */
static enum tdm_status accept_one(const struct tdm_tracecmd_agent *agent, int *listener, int *fd,
	const char *what, struct tdm_error *err)
{
	const uint64_t deadline_ns = tdm_deadline_ns(ACCEPT_MS);
	struct tdm_peer who;

	for (;;) {
		enum tdm_status status = tdm_socket_accept(*listener, fd, &who, err);

		if (status == TDM_OK && is_same_machine(&who, &agent->who)) {
			close(*listener);
			*listener = -1;
			return TDM_OK;
		}
		if (status == TDM_OK) {
			close(*fd);
			continue;
		}
		if (status != TDM_AGAIN) {
			return status;
		}
		if (tdm_now_ns() >= deadline_ns) {
			return tdm_fail(err, TDM_ERR_PEER,
				"the host did not connect for %s in %d s", what, ACCEPT_MS / 1000);
		}
		tdm_socket_wait(*listener, TDM_WAIT_READ, agent->stop_fd, deadline_ns);
		if (tdm_socket_wait(agent->stop_fd, TDM_WAIT_READ, -1, 0) == TDM_OK) {
			return TDM_AGAIN;
		}
	}
}

enum tdm_status tdm_tracecmd_agent_accept_sync(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err)
{
	return accept_one(agent, &agent->sync_listener, &agent->sync_fd, "its clock", err);
}

enum tdm_status tdm_tracecmd_agent_accept_pages(
	struct tdm_tracecmd_agent *agent, uint32_t cpu, int *fd, struct tdm_error *err)
{
	char what[48];

	snprintf(what, sizeof(what), "the pages of CPU %" PRIu32, cpu);
	return accept_one(agent, &agent->page_listeners[cpu], fd, what, err);
}

static enum tdm_status wait_for_room(const struct tdm_tracecmd_agent *agent, struct tdm_error *err)
{
	const uint64_t deadline_ns = tdm_deadline_ns(TEXTS_MS);

	while (tdm_socket_wait(agent->control_fd, TDM_WAIT_WRITE, -1, 0) != TDM_OK) {
		if (tdm_socket_wait(agent->stop_fd, TDM_WAIT_READ, -1, 0) == TDM_OK) {
			return TDM_AGAIN;
		}
		if (tdm_now_ns() >= deadline_ns) {
			return tdm_fail(err, TDM_ERR_PEER, "the host took no texts for %d s",
				TEXTS_MS / 1000);
		}
		tdm_socket_wait(agent->control_fd, TDM_WAIT_WRITE, agent->stop_fd, deadline_ns);
	}
	return TDM_OK;
}

enum tdm_status tdm_tracecmd_agent_send_texts(
	struct tdm_tracecmd_agent *agent, const void *bytes, size_t count, struct tdm_error *err)
{
	const uint8_t *at = bytes;
	enum tdm_status status = TDM_OK;
	struct message_out out;

	while (count && status == TDM_OK) {
		status = wait_for_room(agent, err);
		if (status != TDM_OK) {
			return status;
		}

		const size_t part = count < TEXT_PART_BYTES ? count : TEXT_PART_BYTES;

		message_begin(&out, COMMAND_SEND_DATA, 0);
		message_bytes(&out, at, part);
		status = message_send(agent->control_fd, &out, SEND_MS, err);
		at += part;
		count -= part;
	}
	return status;
}

static enum tdm_status send_command(
	const struct tdm_tracecmd_agent *agent, enum message_command command, struct tdm_error *err)
{
	struct message_out out;

	message_begin(&out, command, 0);
	return message_send(agent->control_fd, &out, SEND_MS, err);
}

enum tdm_status tdm_tracecmd_agent_end_texts(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err)
{
	return send_command(agent, COMMAND_FIN_DATA, err);
}

enum tdm_status tdm_tracecmd_agent_wait_close(
	struct tdm_tracecmd_agent *agent, struct tdm_error *err)
{
	enum tdm_status status;

	do {
		status = message_receive(agent->control_fd, &agent->control, 0, NULL, NULL, err);
		if (status == TDM_OK && agent->control.command != COMMAND_CLOSE &&
			agent->control.command != COMMAND_NOT_SUPP) {
			status = send_command(agent, COMMAND_NOT_SUPP, err);
		}
	} while (status == TDM_OK && agent->control.command != COMMAND_CLOSE);
	return status == TDM_END
		       ? tdm_fail(err, TDM_ERR_PEER, "the host went away while it recorded")
		       : status;
}

void tdm_tracecmd_agent_abort_sync(struct tdm_tracecmd_agent *agent)
{
	if (agent->sync_fd >= 0) {
		tdm_socket_abort(agent->sync_fd);
	}
}

enum tdm_status tdm_tracecmd_agent_farewell(struct tdm_tracecmd_agent *agent, struct tdm_error *err)
{
	return send_command(agent, COMMAND_CLOSE_RESP, err);
}
