/* SPDX-License-Identifier: MIT */
#include "tracecmd_priv.h"
#include <inttypes.h>
#include <string.h>

/*
 * The agent leads: it stamps, sends a probe, we send it back, it stamps again; 339 times. Then we tell our readings and it
 * answers with one pair, (its mid stamp, offset), of the probe that came back fastest. Its other readings it keeps.
 */
struct series_state {
	struct tdm_tracecmd *session;
	uint64_t (*read_clock)(void *user);
	void *user;
	uint64_t got; /* reading when the first bytes of a message arrived; 0 = none yet */
	uint32_t series_id;
};

static void note_arrival(void *user)
{
	struct series_state *state = user;

	/* The agent sends a message in two halves; its stamp is older than either. */
	if (!state->got) {
		state->got = state->read_clock(state->user);
	}
}

/* CPU numbers of the outer probe are in the order of the sender: the reference does not convert them. */
static enum tdm_status ask_for_series(
	struct tdm_tracecmd *session, uint32_t cpu, struct tdm_error *err)
{
	const uint16_t number = (uint16_t)cpu;
	struct message_out out;

	message_begin(&out, COMMAND_TIME_SYNC, PROTOCOL_NAME_BYTES + 4);
	message_name(&out, "none");
	message_u32(&out, OUTER_PROBE);
	message_bytes(&out, &number, sizeof(number));
	return message_send(session->sync_fd, &out, session->timeout_ms, err);
}

/* Receives a message of the ptp protocol; which receives its id. */
static enum tdm_status receive_ptp(
	struct series_state *state, uint32_t *which, struct tdm_error *err)
{
	struct message_in *in = &state->session->sync;

	state->got = 0;

	const enum tdm_status status = message_receive(
		state->session->sync_fd, in, state->session->timeout_ms, note_arrival, state, err);

	if (status == TDM_END) {
		return tdm_fail(err, TDM_ERR_PEER, "trace-cmd's agent closed the sync connection");
	}
	if (status != TDM_OK) {
		return status;
	}

	const struct tdm_cursor name = tdm_cursor_take(&in->fixed, PROTOCOL_NAME_BYTES);

	*which = tdm_cursor_u32(&in->fixed);
	if (in->command != COMMAND_TIME_SYNC || in->fixed.failed ||
		memcmp(name.bytes, "ptp", 4) != 0) {
		return tdm_fail(err, TDM_ERR_PEER,
			"trace-cmd's agent sent command %" PRIu32 " on the sync connection",
			in->command);
	}
	return TDM_OK;
}

/* Sends a message back as it came. */
static enum tdm_status echo(struct series_state *state, struct tdm_error *err)
{
	struct message_out out = { .size = 0 };

	message_bytes(&out, state->session->sync.whole, state->session->sync.whole_bytes);
	return message_send(state->session->sync_fd, &out, state->session->timeout_ms, err);
}

static enum tdm_status answer_probe(
	struct series_state *state, struct tdm_tracecmd_series *series, struct tdm_error *err)
{
	const uint64_t got = state->got;
	const uint32_t count = tdm_cursor_u32(&state->session->sync.payload);

	if (count != series->probe_count + 1 || count > TDM_TRACECMD_PROBES) {
		return tdm_fail(err, TDM_ERR_PEER,
			"trace-cmd's agent sent probe %" PRIu32 ", wanted %" PRIu32, count,
			series->probe_count + 1);
	}
	series->probes[series->probe_count++] = (struct tdm_tracecmd_probe){
		.host_got = got,
		.host_sent = state->read_clock(state->user),
	};
	return echo(state, err);
}

static enum tdm_status send_results(
	struct series_state *state, const struct tdm_tracecmd_series *series, struct tdm_error *err)
{
	struct message_out out;

	message_begin(&out, COMMAND_TIME_SYNC, PROTOCOL_NAME_BYTES + 4);
	message_name(&out, "ptp");
	message_u32(&out, PTP_RESULTS);
	message_u32(&out, state->series_id);
	message_u32(&out, series->probe_count);
	for (uint32_t i = 0; i < PTP_RESULT_ENTRIES; i++) {
		message_u64(&out, i < series->probe_count ? series->probes[i].host_got : 0);
		message_u32(&out, i < series->probe_count ? i + 1 : 0);
	}
	return message_send(state->session->sync_fd, &out, state->session->timeout_ms, err);
}

/*
 * Finds the probe that the agent chose: offset + mid is our reading of it. Its first stamp fell between our sending of the
 * probe before and our receiving of this one, its second between our sending of this one and our receiving of the next.
 */
static void bracket_best(struct tdm_tracecmd_series *series)
{
	const uint64_t host = (uint64_t)series->guest_mid + (uint64_t)series->offset;

	for (uint32_t i = 1; i + 1 < series->probe_count; i++) {
		const struct tdm_tracecmd_probe *probes = series->probes;

		if (probes[i].host_got == host) {
			series->has_best = true;
			series->best = i;
			series->host_least = probes[i - 1].host_sent +
					     (probes[i].host_sent - probes[i - 1].host_sent) / 2;
			series->host_most = probes[i].host_got +
					    (probes[i + 1].host_got - probes[i].host_got + 1) / 2;
			return;
		}
	}
}

enum tdm_status tdm_tracecmd_sync(struct tdm_tracecmd *session, uint32_t cpu,
	uint64_t (*read_clock)(void *user), void *user, struct tdm_tracecmd_series *series,
	struct tdm_error *err)
{
	struct series_state state = { .session = session, .read_clock = read_clock, .user = user };

	memset(series, 0, sizeof(*series));
	if (session->sync_fd < 0) {
		return tdm_fail(
			err, TDM_ERR_UNSUPPORTED, "trace-cmd's agent agreed on no synchronisation");
	}

	enum tdm_status status = ask_for_series(session, cpu, err);

	while (status == TDM_OK) {
		uint32_t which = 0;

		status = receive_ptp(&state, &which, err);
		if (status != TDM_OK) {
			break;
		}

		struct tdm_cursor *payload = &session->sync.payload;

		switch (which) {
		case PTP_START:
			state.series_id = tdm_cursor_u32(payload);
			status = echo(&state, err);
			break;
		case PTP_PROBE:
			status = answer_probe(&state, series, err);
			break;
		case PTP_END:
			status = send_results(&state, series, err);
			break;
		case PTP_OFFSET:
			series->guest_mid = (int64_t)tdm_cursor_u64(payload);
			series->offset = (int64_t)tdm_cursor_u64(payload);
			bracket_best(series);
			return TDM_OK;
		default:
			status = tdm_fail(err, TDM_ERR_PEER,
				"trace-cmd's agent sent sync message %" PRIu32, which);
		}
	}
	return status;
}
