/* SPDX-License-Identifier: MIT */
/* The guest's part of ptp: it leads, stamps each probe as it goes and as it comes back, and tells the host the result. */
#include "tracecmd_agent_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PTP_FLAGS =
		3, /* the fastest probe, stamps of the trace clock: what trace-cmd always asks for */
	ANSWER_MS = 30000, /* of a host in the middle of a series */
	RESULT_MS = 60000, /* it reads its ring buffer first */
};

struct series {
	struct tdm_tracecmd_agent *agent;
	const struct tdm_tracecmd_sync *sync;
	uint64_t got; /* reading when the first bytes of an answer arrived; 0 = none yet */
	uint64_t sent_at[TDM_TRACECMD_PROBES], back_at[TDM_TRACECMD_PROBES];
};

static void note_arrival(void *user)
{
	struct series *series = user;

	/* trace-cmd sends a message in two halves, and what lies between them would be taken for the way back. */
	if (!series->got) {
		series->got = series->sync->read_clock(series->sync->user);
	}
}

/* Begins a message of the sync connection. */
static void begin(struct message_out *out, uint32_t which)
{
	message_begin(out, COMMAND_TIME_SYNC, PROTOCOL_NAME_BYTES + 4);
	message_name(out, "ptp");
	message_u32(out, which);
}

/* The next message, which has to be ptp's of this id. */
static enum tdm_status expect(
	struct series *series, uint32_t wanted, uint32_t timeout_ms, struct tdm_error *err)
{
	struct message_in *in = &series->agent->sync;
	const enum tdm_status status =
		message_receive(series->agent->sync_fd, in, timeout_ms, note_arrival, series, err);

	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_PEER, "the host closed the sync connection");
	}
	if (status != TDM_OK) {
		return status;
	}

	const struct tdm_cursor name = tdm_cursor_take(&in->fixed, PROTOCOL_NAME_BYTES);
	const uint32_t which = tdm_cursor_u32(&in->fixed);

	if (in->command != COMMAND_TIME_SYNC || in->fixed.failed ||
		memcmp(name.bytes, "ptp", 4) != 0 || which != wanted) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the host sent command %" PRIu32 ", sync message %" PRIu32
			", wanted %" PRIu32,
			in->command, which, wanted);
	}
	return TDM_OK;
}

static enum tdm_status start_series(struct series *series, struct tdm_error *err)
{
	struct message_out out;

	begin(&out, PTP_START);
	message_u32(&out, ++series->agent->series);
	message_u32(&out, PTP_FLAGS);

	const enum tdm_status status = message_send(series->agent->sync_fd, &out, ANSWER_MS, err);

	return status == TDM_OK ? expect(series, PTP_START, ANSWER_MS, err) : status;
}

static enum tdm_status probe(struct series *series, uint32_t number, struct tdm_error *err)
{
	struct message_out out;

	begin(&out, PTP_PROBE);
	message_u32(&out, number);
	series->got = 0;
	series->sent_at[number - 1] = series->sync->read_clock(series->sync->user);

	enum tdm_status status = message_send(series->agent->sync_fd, &out, ANSWER_MS, err);

	if (status == TDM_OK) {
		status = expect(series, PTP_PROBE, ANSWER_MS, err);
	}
	series->back_at[number - 1] = series->got;
	if (status == TDM_OK && tdm_cursor_u32(&series->agent->sync.payload) != number) {
		return tdm_fail(
			err, TDM_ERR_PEER, "the host answered another probe than %" PRIu32, number);
	}
	return status;
}

/* The probe that took least; its middle is taken for the moment of the host's stamp. */
static void find_fastest(struct series *series, int64_t *time, int64_t *offset)
{
	struct tdm_cursor *in = &series->agent->sync.payload;
	const uint32_t id = tdm_cursor_u32(in);
	const uint32_t there = tdm_cursor_u32(in);
	uint64_t least = UINT64_MAX;

	*time = *offset = 0;
	for (uint32_t i = 0; i < there && i < TDM_TRACECMD_PROBES && !in->failed; i++) {
		const uint64_t host = tdm_cursor_u64(in);
		const uint32_t number = tdm_cursor_u32(in);
		const uint64_t took = series->back_at[i] - series->sent_at[i];

		if (in->failed || id != series->agent->series || host == 0 || number != i + 1 ||
			took >= least) {
			continue;
		}
		least = took;
		*time = (int64_t)(series->sent_at[i] + took / 2);
		*offset = (int64_t)(host - (uint64_t)*time);
		/* Exactly 0 is dropped by trace-cmd, and a guest without samples stays uncorrected. */
		*offset = *offset ? *offset : 1;
	}
}

static enum tdm_status run_series(struct series *series, uint32_t cpu, struct tdm_error *err)
{
	struct message_out out;
	int64_t time, offset;

	series->sync->enter_cpu(series->sync->user, cpu);

	enum tdm_status status = start_series(series, err);

	for (uint32_t number = 1; number <= TDM_TRACECMD_PROBES && status == TDM_OK; number++) {
		status = probe(series, number, err);
	}
	if (status == TDM_OK) {
		begin(&out, PTP_END);
		status = message_send(series->agent->sync_fd, &out, ANSWER_MS, err);
	}
	if (status == TDM_OK) {
		status = expect(series, PTP_RESULTS, RESULT_MS, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	find_fastest(series, &time, &offset);
	begin(&out, PTP_OFFSET);
	message_u64(&out, (uint64_t)time);
	message_u64(&out, (uint64_t)offset);
	return message_send(series->agent->sync_fd, &out, ANSWER_MS, err);
}

enum tdm_status tdm_tracecmd_agent_serve_sync(struct tdm_tracecmd_agent *agent,
	const struct tdm_tracecmd_sync *sync, struct tdm_error *err)
{
	/* Too large for the stack of a session. */
	struct series *series = calloc(1, sizeof(*series));
	enum tdm_status status =
		series ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for probes");

	while (status == TDM_OK) {
		struct message_in *in = &agent->sync;
		uint16_t cpu = 0;

		status = message_receive(agent->sync_fd, in, 0, NULL, NULL, err);
		if (status == TDM_END) {
			status = tdm_fail(err, TDM_ERR_PEER, "the host closed the sync connection");
		}
		if (status != TDM_OK) {
			break;
		}

		const struct tdm_cursor name = tdm_cursor_take(&in->fixed, PROTOCOL_NAME_BYTES);
		const uint32_t which = tdm_cursor_u32(&in->fixed);

		if (in->command != COMMAND_TIME_SYNC || in->fixed.failed ||
			memcmp(name.bytes, "none", 5) != 0) {
			status = tdm_fail(err, TDM_ERR_PEER,
				"the host sent command %" PRIu32 " between its rounds",
				in->command);
		} else if (which == OUTER_STOP) {
			break;
		} else if (which != OUTER_PROBE || in->payload.size < sizeof(cpu)) {
			status = tdm_fail(err, TDM_ERR_PEER,
				"the host sent sync message %" PRIu32
				" of %zu bytes between its rounds",
				which, in->payload.size);
		} else {
			/* In the host's own order: the reference does not convert it. */
			memcpy(&cpu, in->payload.bytes, sizeof(cpu));
			*series = (struct series){ .agent = agent, .sync = sync };
			status = run_series(series, cpu, err);
		}
	}
	free(series);
	return status;
}
