/* SPDX-License-Identifier: MIT */
#include "burst_priv.h"
#include "requester_priv.h"
#include <errno.h>
#include <string.h>
#include <tandem/requester.h>
#include <tandem/wide.h>
#include <time.h>
#include <unistd.h>

enum {
	ANSWER_MS = 1000,
	PAIR_SPACING_NS = 100000,
	LOST_IN_A_ROW = 3,
	HULL_WINDOW = 64,
	/* The kernel turns receive stamping on in its own time, some ms after it was asked. */
	STAMP_TRIES = 64,
	STAMP_PAUSE_US = 500
};

/* One burst while it runs. */
struct burst {
	const struct tdm_burst_plan *plan;
	struct tdm_burst_result *result;
	struct tdm_burst_mode *mode;
	bool by_datagram, has_stamps;
	uint64_t ends_ns;
	uint32_t pipeline;
	uint32_t sent;     /* messages, those that warm up included */
	uint32_t warm_up;  /* of those, so many are thrown away */
	uint32_t lost_row; /* lost one after the other */
	size_t open_count; /* outstanding */
	uint64_t first_sequence;

	/* Hulls of host minus guest: how far the gap has closed, for the adaptive stop. */
	tdm_i128 lower, upper;
	tdm_i128 lower_then, upper_then;
	uint32_t since_window;
};

static struct tdm_exchange_sample *sample_of(
	struct tdm_requester *requester, const struct burst *burst, uint64_t sequence)
{
	if (sequence < burst->first_sequence || sequence - burst->first_sequence >= burst->sent) {
		return NULL;
	}
	return &requester->samples[sequence - burst->first_sequence];
}

/* Sends one probe. The sample's place holds when it left; h4 = 0 marks it as outstanding. */
static enum tdm_status send_probe(
	struct tdm_requester *requester, struct burst *burst, uint16_t flags, struct tdm_error *err)
{
	struct tdm_exchange_sample *sample = &requester->samples[burst->sent];
	struct tdm_message probe = { .type = TDM_MESSAGE_PROBE,
		.flags = (uint16_t)(flags | (burst->sent == 0 ? TDM_MESSAGE_BURST_START : 0)),
		.session = requester->session,
		.sequence = requester->sequence,
		.clocks = (uint16_t)((unsigned int)requester->options.local->trace << 8 |
				     (unsigned int)requester->options.local->raw) };

	memset(sample, 0, sizeof(*sample));
	sample->sequence = requester->sequence++;
	burst->sent++;
	burst->open_count++;

	const struct tdm_reading leaves = tdm_local_clock_departure(requester->options.local);

	probe.h1 = leaves.trace;
	sample->h1 = leaves.trace;
	sample->h1_raw = leaves.raw;
	tdm_message_put(tdm_path_message(&requester->path, burst->by_datagram), &probe);
	return tdm_path_send(&requester->path, burst->by_datagram, err);
}

static void narrow_hull(struct burst *burst, const struct tdm_exchange_sample *sample)
{
	const tdm_i128 lower = (tdm_i128)sample->h1_raw - sample->g2_raw;
	const tdm_i128 upper = (tdm_i128)sample->h4_raw - sample->g3_raw;

	burst->lower = lower > burst->lower ? lower : burst->lower;
	burst->upper = upper < burst->upper ? upper : burst->upper;
}

/* True once the target is met and the last 64 exchanges moved neither hull by more than a hundredth of the gap. */
static bool is_settled(struct burst *burst)
{
	if (burst->plan->target_bound == 0 || ++burst->since_window < HULL_WINDOW) {
		return false;
	}

	const tdm_i128 gap = burst->upper - burst->lower;
	const bool settled = gap >= 0 && gap / 2 <= burst->plan->target_bound &&
			     burst->lower - burst->lower_then <= gap / 100 &&
			     burst->upper_then - burst->upper <= gap / 100;

	burst->since_window = 0;
	burst->lower_then = burst->lower;
	burst->upper_then = burst->upper;
	return settled;
}

/* Takes one reply that arrived at @p at. */
static void take_reply(struct tdm_requester *requester, struct burst *burst, const uint8_t *bytes,
	size_t size, const struct tdm_reading *at, uint64_t stamp_ns)
{
	struct tdm_message reply;
	struct tdm_exchange_sample *sample = NULL;

	if (tdm_message_get(bytes, size, &reply, NULL) == TDM_OK &&
		reply.type == TDM_MESSAGE_REPLY && reply.session == requester->session) {
		sample = sample_of(requester, burst, reply.sequence);
	}
	if (!sample || sample->h4 != 0 || reply.h1 != sample->h1) {
		burst->result->refused++;
		return;
	}
	sample->epoch = reply.epoch;
	sample->cpu = reply.cpu;
	sample->g2 = reply.g2;
	sample->g3 = reply.g3;
	sample->g2_raw = reply.flags & TDM_MESSAGE_HAS_RAW ? reply.g2_raw : reply.g2;
	sample->g3_raw = reply.flags & TDM_MESSAGE_HAS_RAW ? reply.g3_raw : reply.g3;
	sample->h4 = at->trace;
	sample->h4_raw = at->raw;
	sample->flags = (uint16_t)((burst->pipeline > 1 ? TDM_SAMPLE_PIPELINED : 0) |
				   (reply.flags & TDM_MESSAGE_HAS_RAW ? TDM_SAMPLE_HAS_RAW : 0));
	sample->k2_ns = reply.received_ns;
	/* On a stream the stamp is the last segment's: true only where one message was under way. */
	sample->k4_ns = burst->by_datagram || burst->open_count == 1 ? stamp_ns : 0;
	if (reply.sent_ns != 0) {
		struct tdm_exchange_sample *earlier = sample_of(requester, burst,
			(sample->sequence & ~(uint64_t)UINT32_MAX) | reply.sent_sequence);

		if (earlier && earlier->h4 != 0) {
			earlier->k3_ns = reply.sent_ns;
		}
	}
	burst->result->frequency = reply.frequency;
	burst->open_count--;
	burst->lost_row = 0;
	if (burst->sent > burst->warm_up) {
		narrow_hull(burst, sample);
	}
}

static void note_sent_stamps(struct tdm_requester *requester, struct burst *burst)
{
	uint32_t number;
	uint64_t stamp_ns;

	while (burst->has_stamps &&
		tdm_path_sent_ns(&requester->path, burst->by_datagram, &number, &stamp_ns)) {
		if (number < burst->sent) {
			requester->samples[number].k1_ns = stamp_ns;
		}
	}
}

/* One try to receive and all that came with it. TDM_AGAIN: nothing came. */
static enum tdm_status try_receive(
	struct tdm_requester *requester, struct burst *burst, struct tdm_error *err)
{
	struct tdm_path *path = &requester->path;

	if (burst->by_datagram) {
		size_t got;
		const enum tdm_status status = tdm_path_fill_datagram(path, &got);

		if (status != TDM_OK) {
			return status;
		}

		const struct tdm_reading at = tdm_local_clock_arrival(requester->options.local);

		if (tdm_path_check_datagram(path, got)) {
			take_reply(requester, burst, path->in, TDM_MESSAGE_BYTES, &at,
				tdm_path_received_ns(path, true));
		} else {
			burst->result->refused++;
		}
		return TDM_OK;
	}

	enum tdm_status status = tdm_link_fill(requester->link, err);

	if (status != TDM_OK) {
		return status == TDM_END
			       ? tdm_fail(err, TDM_ERR_PEER, "the peer closed the connection")
			       : status;
	}

	const struct tdm_reading at = tdm_local_clock_arrival(requester->options.local);
	struct tdm_frame frame;

	while ((status = tdm_link_next(requester->link, &frame, err)) == TDM_OK) {
		if (frame.type != TDM_FRAME_EXCHANGE) {
			tdm_link_refuse(requester->link, "EXCHANGE is wanted in a burst");
			return tdm_fail(err, TDM_ERR_PEER, "a frame of type %u came in a burst",
				frame.type);
		}
		take_reply(requester, burst, frame.body, frame.size_bytes, &at,
			tdm_path_received_ns(path, false));
	}
	return status == TDM_AGAIN ? TDM_OK
	       : status == TDM_END ? tdm_fail(err, TDM_ERR_PEER, "the peer ended the session")
				   : status;
}

/* Waits until fewer than @p wanted probes are outstanding or one is lost. */
static enum tdm_status await_replies(
	struct tdm_requester *requester, struct burst *burst, size_t wanted, struct tdm_error *err)
{
	uint64_t since_ns = tdm_now_ns();
	const uint64_t lost_ns = since_ns + TDM_LOST_AFTER_NS < burst->ends_ns
					 ? since_ns + TDM_LOST_AFTER_NS
					 : burst->ends_ns;
	bool spins = tdm_burst_wait_begins(burst->mode);

	while (burst->open_count > wanted) {
		enum tdm_status status = try_receive(requester, burst, err);

		if (status == TDM_OK) {
			continue;
		}
		if (status != TDM_AGAIN) {
			return status;
		}

		const uint64_t now_ns = tdm_now_ns();

		if (spins) {
			spins = tdm_burst_spin(burst->mode, now_ns - since_ns);
			since_ns = now_ns;
			continue;
		}
		if (now_ns >= lost_ns) {
			/* What is outstanding may still come; it is not waited for again. */
			burst->result->lost += (uint32_t)burst->open_count;
			burst->lost_row += (uint32_t)burst->open_count;
			burst->open_count = 0;
			break;
		}
		note_sent_stamps(requester, burst);
		if (requester->is_peer_delayed) {
			tdm_socket_quick_ack(tdm_link_fd(requester->link));
		}
		tdm_socket_wait(burst->by_datagram ? requester->path.datagrams
						   : tdm_link_fd(requester->link),
			TDM_WAIT_READ, -1, lost_ns);
	}
	return TDM_OK;
}

/* What is held against the arrival is when a probe left, not when it was due: it may be late. */
static void pause_until(uint64_t when_ns)
{
	const struct timespec when = { .tv_sec = (time_t)(when_ns / 1000000000),
		.tv_nsec = (long)(when_ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
	}
}

/* Exchanges until both ends get stamps, or it takes too long. They are thrown away. */
static enum tdm_status await_stamps(
	struct tdm_requester *requester, struct burst *burst, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (uint32_t i = 0; burst->has_stamps && status == TDM_OK && i < STAMP_TRIES; i++) {
		const struct tdm_exchange_sample *sample = &requester->samples[burst->sent];

		status = send_probe(requester, burst, 0, err);
		if (status == TDM_OK) {
			status = await_replies(requester, burst, 0, err);
		}
		note_sent_stamps(requester, burst);
		if (burst->lost_row > 0 || (sample->k2_ns && sample->k4_ns)) {
			break;
		}
		usleep(STAMP_PAUSE_US);
	}
	return status;
}

static enum tdm_status run_probes(
	struct tdm_requester *requester, struct burst *burst, struct tdm_error *err)
{
	const struct tdm_burst_plan *plan = burst->plan;
	enum tdm_status status = await_stamps(requester, burst, err);

	burst->warm_up += burst->sent;

	const uint32_t total = plan->count + burst->warm_up;

	while (status == TDM_OK && burst->sent < total && burst->lost_row < LOST_IN_A_ROW) {
		const uint64_t now_ns = tdm_now_ns();
		const bool is_second = plan->pairs && burst->sent >= burst->warm_up &&
				       (burst->sent - burst->warm_up) % 2 == 1;

		if (now_ns >= burst->ends_ns) {
			break;
		}
		if (is_second) {
			pause_until(requester->pair_ns + PAIR_SPACING_NS);
		} else if (plan->pairs) {
			requester->pair_ns = now_ns;
		}
		status = send_probe(requester, burst,
			plan->pairs && burst->sent >= burst->warm_up
				? (is_second ? TDM_MESSAGE_SECOND_OF_PAIR
					     : TDM_MESSAGE_FIRST_OF_PAIR)
				: 0,
			err);
		if (status == TDM_OK && (burst->open_count >= burst->pipeline)) {
			/* Pipelined probes go out together: wait for all before the next lot. */
			status = await_replies(requester, burst, 0, err);
		}
		note_sent_stamps(requester, burst);
		if (status == TDM_OK && is_settled(burst)) {
			break;
		}
	}
	if (status == TDM_OK && burst->open_count > 0) {
		status = await_replies(requester, burst, 0, err);
	}
	burst->result->is_hung = burst->lost_row >= LOST_IN_A_ROW;
	return status;
}

/* Waits for a frame of one type between bursts; replies that come late are dropped. */
static enum tdm_status await_frame(struct tdm_requester *requester, enum tdm_frame_type type,
	struct tdm_frame *frame, uint32_t ms, struct tdm_error *err)
{
	const uint64_t deadline_ns = tdm_deadline_ns(ms);

	for (;;) {
		const enum tdm_status status =
			tdm_link_receive(requester->link, frame, deadline_ns, -1, err);

		if (status == TDM_END) {
			return tdm_fail(err, TDM_ERR_PEER, "the peer ended the session");
		}
		if (status == TDM_AGAIN) {
			return tdm_fail(err, TDM_ERR_PEER, "no answer for %u ms", ms);
		}
		if (status != TDM_OK || frame->type == type) {
			return status;
		}
		if (frame->type != TDM_FRAME_EXCHANGE) {
			tdm_link_refuse(requester->link, "not what was asked for");
			return tdm_fail(err, TDM_ERR_PEER,
				"a frame of type %u came, type %d was asked for", frame->type,
				type);
		}
	}
}

/* QUERY and its NOTES, which the requester keeps until the next. */
static enum tdm_status query(struct tdm_requester *requester, const char **notes,
	size_t *notes_bytes, struct tdm_error *err)
{
	struct tdm_frame frame;
	enum tdm_status status = tdm_link_send(
		requester->link, TDM_FRAME_QUERY, "", 0, tdm_deadline_ns(ANSWER_MS), err);

	if (status == TDM_OK) {
		status = await_frame(requester, TDM_FRAME_NOTES, &frame, ANSWER_MS, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	requester->notes.size = 0;
	if (tdm_buffer_append(&requester->notes, frame.body, frame.size_bytes) == TDM_OK) {
		*notes = (const char *)requester->notes.bytes;
		*notes_bytes = requester->notes.size;
	}
	return TDM_OK;
}

static enum tdm_status begin_burst(
	struct tdm_requester *requester, struct burst *burst, struct tdm_error *err)
{
	const struct tdm_burst_plan *plan = burst->plan;
	const uint64_t now_ns = tdm_now_ns();
	const bool stamps = plan->stamps && now_ns >= requester->stamps_again_ns;
	struct tdm_burst_frame ask = { .count = plan->count + TDM_BURST_WARM_UP +
						(stamps ? (uint32_t)STAMP_TRIES : 0),
		.flags = (stamps ? TDM_BURST_STAMPS : 0u) |
			 (requester->has_datagrams ? TDM_BURST_DATAGRAMS : 0u) };
	struct tdm_frame frame;
	uint8_t body[TDM_BURST_BYTES];

	tdm_burst_put(body, &ask);

	enum tdm_status status = tdm_link_send(requester->link, TDM_FRAME_BURST, body, sizeof(body),
		tdm_deadline_ns(ANSWER_MS), err);

	if (status == TDM_OK) {
		status = await_frame(requester, TDM_FRAME_READY, &frame, ANSWER_MS, err);
	}
	if (status == TDM_OK) {
		status = tdm_burst_get(frame.body, frame.size_bytes, &ask, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	burst->by_datagram = requester->has_datagrams && ask.flags & TDM_BURST_DATAGRAMS;
	if (stamps && ask.flags & TDM_BURST_STAMPS) {
		burst->has_stamps =
			tdm_path_stamps_begin(&requester->path, burst->by_datagram, NULL) == TDM_OK;
		requester->stamps_again_ns = now_ns + 1000000000;
	}
	return TDM_OK;
}

static void pause_until_ns(uint64_t when_ns)
{
	while (tdm_now_ns() < when_ns) {
		usleep(10000);
	}
}

static enum tdm_status one_burst(struct tdm_requester *requester, const struct tdm_burst_plan *plan,
	struct tdm_burst_result *result, struct tdm_error *err)
{
	struct burst burst = { .plan = plan,
		.result = result,
		.mode = &requester->mode,
		.first_sequence = requester->sequence,
		.pipeline = plan->pipeline > 1 ? plan->pipeline : 1,
		.warm_up = TDM_BURST_WARM_UP,
		.lower = INT64_MIN,
		.upper = INT64_MAX,
		.lower_then = INT64_MIN,
		.upper_then = INT64_MAX };

	memset(result, 0, sizeof(*result));
	if (plan->count == 0 || plan->count > TDM_BURST_COUNT_MAX ||
		burst.pipeline > TDM_PIPELINE_MAX) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "a burst has 1 to %d exchanges", TDM_BURST_COUNT_MAX);
	}
	/* The other end stays in a burst no longer. */
	if (plan->max_ms > TDM_BURST_MAX_MS) {
		return tdm_fail(
			err, TDM_ERR_RANGE, "a burst takes at most %d ms", TDM_BURST_MAX_MS);
	}

	enum tdm_status status =
		requester_reserve(requester, plan->count + TDM_BURST_WARM_UP + STAMP_TRIES, err);

	if (status == TDM_OK) {
		status = begin_burst(requester, &burst, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	tdm_burst_enter(burst.mode, plan->count + TDM_BURST_WARM_UP);
	burst.ends_ns = burst.mode->began_ns +
			(plan->max_ms ? (uint64_t)plan->max_ms * 1000000 : TDM_BURST_MAX_NS);
	status = run_probes(requester, &burst, err);
	if (burst.has_stamps) {
		tdm_path_stamps_end(&requester->path);
	}
	tdm_burst_leave(burst.mode);
	requester_finish(
		requester, burst.sent, burst.warm_up, plan->pairs, burst.by_datagram, result);
	result->has_stamps = burst.has_stamps;

	/* Datagrams that a firewall eats: from now on the connection carries exchanges. */
	if (burst.by_datagram && result->sample_count == 0 && result->lost > 0) {
		requester->has_datagrams = false;
	}
	return status == TDM_OK ? query(requester, &result->notes, &result->notes_bytes, err)
				: status;
}

enum tdm_status tdm_requester_ask(
	struct tdm_requester *requester, struct tdm_requester_answer *answer, struct tdm_error *err)
{
	const struct tdm_local_clock *local = requester->options.local;

	memset(answer, 0, sizeof(*answer));
	answer->before = tdm_clock_sandwich(local->raw, TDM_CLOCK_REAL);
	answer->sent = tdm_local_clock_departure(local);

	const enum tdm_status status = query(requester, &answer->notes, &answer->notes_bytes, err);

	answer->got = tdm_local_clock_arrival(local);
	answer->after = tdm_clock_sandwich(local->raw, TDM_CLOCK_REAL);
	return status;
}

enum tdm_status tdm_requester_burst(struct tdm_requester *requester,
	const struct tdm_burst_plan *plan, struct tdm_burst_result *result, struct tdm_error *err)
{
	const bool by_datagrams = requester->has_datagrams;
	enum tdm_status status = one_burst(requester, plan, result, err);

	if (status == TDM_OK && by_datagrams && !requester->has_datagrams) {
		if (plan->stamps) {
			pause_until_ns(requester->stamps_again_ns);
		}
		status = one_burst(requester, plan, result, err);
	}
	return status;
}
