/* SPDX-License-Identifier: MIT */
#include "burst_priv.h"
#include "path_priv.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tandem/responder.h>

enum {
	NOTES_MAX_BYTES = 32768,
	SEND_MS = 5000
};

struct tdm_responder {
	struct tdm_path path;
	struct tdm_responder_options options;
	struct tdm_burst_mode mode;
	bool in_burst;
	bool by_datagram; /* this burst's exchanges */
	bool has_stamps;
	uint64_t burst_ends_ns; /* when a client that forgot it loses the burst */
	uint64_t tick_ns;       /* the next one */
	uint32_t left;          /* exchanges that this burst may still have */
	struct tdm_message reply;

	/* The reply whose transmit stamp is awaited. */
	uint64_t last_sequence;
	uint32_t last_number, sent_count;
	bool awaits_stamp;
	uint64_t highest_sequence;
	bool has_sequence;
};

/* What arrived, and when: clocks are read right behind the receiving call. */
struct arrival {
	struct tdm_reading at;
	bool is_datagram;
	size_t datagram_bytes;
};

struct tdm_responder *tdm_responder_create(struct tdm_link *link,
	const struct tdm_responder_options *options, uint16_t *datagram_port, struct tdm_error *err)
{
	struct tdm_responder *responder =
		aligned_alloc(_Alignof(struct tdm_responder), sizeof(*responder));

	*datagram_port = 0;
	if (!responder) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a session");
		return NULL;
	}
	memset(responder, 0, sizeof(*responder));
	responder->options = *options;
	tdm_path_init(&responder->path, link, TDM_ROLE_SERVER);
	if (options->peer_port != 0 &&
		(!tdm_path_bind(&responder->path, datagram_port) ||
			!tdm_path_connect(&responder->path, options->peer_port))) {
		*datagram_port = 0;
	}
	/* A page that has to be fetched in a burst would be path delay. Where it is not allowed, so be it. */
	(void)mlock(responder, sizeof(*responder));
	return responder;
}

static void end_burst(struct tdm_responder *responder)
{
	if (!responder->in_burst) {
		return;
	}
	if (responder->has_stamps) {
		tdm_path_stamps_end(&responder->path);
		responder->has_stamps = false;
	}
	tdm_burst_leave(&responder->mode);
	responder->in_burst = false;
}

void tdm_responder_destroy(struct tdm_responder *responder)
{
	if (!responder) {
		return;
	}
	end_burst(responder);
	tdm_path_release(&responder->path);
	munlock(responder, sizeof(*responder));
	free(responder);
}

/* One try to receive, on whichever carries the burst, and now and then on the connection too. */
static enum tdm_status try_receive(struct tdm_responder *responder, bool also_link,
	struct arrival *arrival, struct tdm_error *err)
{
	enum tdm_status status;

	if (responder->in_burst && responder->by_datagram) {
		status = tdm_path_fill_datagram(&responder->path, &arrival->datagram_bytes);
		if (status == TDM_OK) {
			arrival->at = tdm_local_clock_arrival(responder->options.clock);
			arrival->is_datagram = true;
			return TDM_OK;
		}
		if (!also_link) {
			return TDM_AGAIN;
		}
	}
	status = tdm_link_fill(responder->path.link, err);
	if (status == TDM_OK) {
		arrival->at = tdm_local_clock_arrival(responder->options.clock);
		arrival->is_datagram = false;
	}
	return status;
}

static void note_sent_stamps(struct tdm_responder *responder)
{
	uint32_t number;
	uint64_t stamp_ns;

	while (tdm_path_sent_ns(&responder->path, responder->by_datagram, &number, &stamp_ns)) {
		if (responder->awaits_stamp && number == responder->last_number) {
			responder->reply.sent_ns = stamp_ns;
			responder->reply.sent_sequence = (uint32_t)responder->last_sequence;
			responder->awaits_stamp = false;
		}
	}
}

/* When a wait has to end at the latest; ticks that are due happen here. */
static uint64_t wake_at(struct tdm_responder *responder, uint64_t now_ns, uint64_t idle_until_ns)
{
	const struct tdm_responder_options *options = &responder->options;

	if (responder->in_burst) {
		return responder->burst_ends_ns < idle_until_ns ? responder->burst_ends_ns
								: idle_until_ns;
	}
	if (options->tick_ms == 0 || !options->hooks.tick) {
		return idle_until_ns;
	}
	if (now_ns >= responder->tick_ns) {
		options->hooks.tick(options->hooks.user);
		responder->tick_ns = now_ns + (uint64_t)options->tick_ms * 1000000;
	}
	return responder->tick_ns < idle_until_ns ? responder->tick_ns : idle_until_ns;
}

/* Waits for something to arrive: awake while the burst's allowance lasts, then asleep. */
static enum tdm_status receive(
	struct tdm_responder *responder, struct arrival *arrival, struct tdm_error *err)
{
	const uint64_t idle_until_ns = tdm_deadline_ns(responder->options.idle_ms);
	const int link_fd = tdm_link_fd(responder->path.link);
	uint64_t since_ns = responder->in_burst ? tdm_now_ns() : 0;
	bool spins = responder->in_burst && tdm_burst_wait_begins(&responder->mode);

	for (unsigned int tries = 0;; tries++) {
		enum tdm_status status =
			try_receive(responder, !spins || tries % 16 == 15, arrival, err);

		if (status != TDM_AGAIN) {
			return status;
		}
		if (spins) {
			const uint64_t now_ns = tdm_now_ns();

			spins = tdm_burst_spin(&responder->mode, now_ns - since_ns);
			since_ns = now_ns;
			continue;
		}

		/* A stamp that is left in its queue would end every wait at once. */
		if (responder->has_stamps) {
			note_sent_stamps(responder);
		}

		const uint64_t now_ns = tdm_now_ns();

		if (responder->in_burst && now_ns >= responder->burst_ends_ns) {
			end_burst(responder);
		}
		if (now_ns >= idle_until_ns) {
			tdm_link_refuse(responder->path.link, "idle for too long");
			return TDM_END;
		}

		/* Between a packet and its reading nothing may stand: so what else there is to see comes first. */
		if (responder->options.stop_fd >= 0 && !responder->in_burst &&
			tdm_socket_wait(responder->options.stop_fd, TDM_WAIT_READ, -1, 0) ==
				TDM_OK) {
			return TDM_END;
		}

		const uint64_t until_ns = wake_at(responder, now_ns, idle_until_ns);

		/* A burst is short: the end of the program waits for it, and one descriptor less is looked at. */
		tdm_socket_wait(link_fd, TDM_WAIT_READ,
			!responder->in_burst     ? responder->options.stop_fd
			: responder->by_datagram ? responder->path.datagrams
						 : -1,
			until_ns);
	}
}

/* Answers one probe. From here to the sending call: no allocation, no lock, no log. */
static enum tdm_status answer(struct tdm_responder *responder, const uint8_t *bytes, size_t size,
	const struct tdm_reading *at, bool by_datagram, struct tdm_error *err)
{
	struct tdm_message *reply = &responder->reply;
	struct tdm_message probe;
	enum tdm_status status = tdm_message_get(bytes, size, &probe, by_datagram ? NULL : err);

	if (status == TDM_OK &&
		(probe.type != TDM_MESSAGE_PROBE || probe.session != responder->options.session)) {
		status = tdm_fail(err, TDM_ERR_PEER,
			"exchange message %llu: no probe of this session",
			(unsigned long long)probe.sequence);
	}
	/* Replayed datagrams are dropped; on the connection they cannot be, so there it is a fault. */
	if (status == TDM_OK && responder->has_sequence &&
		probe.sequence <= responder->highest_sequence) {
		status = tdm_fail(err, TDM_ERR_PEER, "exchange message %llu came again",
			(unsigned long long)probe.sequence);
	}
	if (status != TDM_OK) {
		return by_datagram ? TDM_OK : status;
	}
	if (responder->left == 0) {
		return by_datagram
			       ? TDM_OK
			       : tdm_fail(err, TDM_ERR_PEER, "more probes than BURST announced");
	}
	responder->left--;
	responder->has_sequence = true;
	responder->highest_sequence = probe.sequence;
	if (responder->has_stamps) {
		note_sent_stamps(responder);
		reply->received_ns = tdm_path_received_ns(&responder->path, by_datagram);
	}

	const bool has_raw = responder->options.clock->trace != responder->options.clock->raw;

	reply->type = TDM_MESSAGE_REPLY;
	reply->flags =
		(uint16_t)((probe.flags & (TDM_MESSAGE_FIRST_OF_PAIR | TDM_MESSAGE_SECOND_OF_PAIR |
						  TDM_MESSAGE_BURST_START)) |
			   (has_raw ? TDM_MESSAGE_HAS_RAW : 0) |
			   (responder->options.clock->raw == TDM_CLOCK_TSC ? TDM_MESSAGE_HAS_TSC
									   : 0) |
			   (reply->received_ns || reply->sent_ns ? TDM_MESSAGE_STAMPED : 0));
	reply->session = probe.session;
	reply->sequence = probe.sequence;
	reply->h1 = probe.h1;
	reply->g2 = at->trace;
	reply->g2_raw = at->raw;
	reply->cpu = (uint16_t)sched_getcpu();

	const struct tdm_reading leaves = tdm_local_clock_departure(responder->options.clock);

	reply->g3 = leaves.trace;
	reply->g3_raw = leaves.raw;
	tdm_message_put(tdm_path_message(&responder->path, by_datagram), reply);
	status = tdm_path_send(&responder->path, by_datagram, err);

	responder->last_sequence = probe.sequence;
	responder->last_number = responder->sent_count++;
	responder->awaits_stamp = responder->has_stamps;
	reply->received_ns = 0;
	reply->sent_ns = 0;
	reply->sent_sequence = 0;
	return status;
}

static enum tdm_status begin_burst(
	struct tdm_responder *responder, const struct tdm_frame *frame, struct tdm_error *err)
{
	const struct tdm_responder_hooks *hooks = &responder->options.hooks;
	struct tdm_burst_frame burst;
	uint8_t ready[TDM_BURST_BYTES];
	struct tdm_sandwich sandwich;
	enum tdm_status status = tdm_burst_get(frame->body, frame->size_bytes, &burst, err);

	if (status != TDM_OK) {
		return status;
	}
	end_burst(responder);
	responder->by_datagram =
		burst.flags & TDM_BURST_DATAGRAMS && responder->path.datagrams >= 0;
	responder->left = burst.count;
	memset(&responder->reply, 0, sizeof(responder->reply));
	responder->reply.epoch = hooks->epoch ? hooks->epoch(hooks->user) : 0;
	responder->reply.frequency = tdm_clock_steering();
	responder->reply.clocks = (uint16_t)((unsigned int)responder->options.clock->trace << 8 |
					     (unsigned int)responder->options.clock->raw);
	responder->sent_count = 0;
	responder->awaits_stamp = false;
	if (responder->options.clock->trace == TDM_CLOCK_MARKER &&
		tdm_local_clock_sample(responder->options.clock, &sandwich, err) != TDM_OK) {
		return err ? err->status : TDM_ERR_IO;
	}

	const bool stamps = burst.flags & TDM_BURST_STAMPS &&
			    tdm_path_can_stamp(&responder->path, responder->by_datagram) &&
			    (!hooks->may_stamp || hooks->may_stamp(hooks->user));
	const struct tdm_burst_frame granted = { .count = burst.count,
		.flags = (stamps ? TDM_BURST_STAMPS : 0u) |
			 (responder->by_datagram ? TDM_BURST_DATAGRAMS : 0u) };

	tdm_burst_put(ready, &granted);
	status = tdm_link_send(responder->path.link, TDM_FRAME_READY, ready, sizeof(ready),
		tdm_deadline_ns(SEND_MS), err);
	if (status != TDM_OK) {
		return status;
	}
	responder->in_burst = true;
	/* Behind READY, so that on the connection the stamps count nothing but messages. */
	responder->has_stamps = stamps && tdm_path_stamps_begin(&responder->path,
						  responder->by_datagram, NULL) == TDM_OK;
	tdm_burst_enter(&responder->mode, burst.count);
	responder->burst_ends_ns =
		responder->mode.began_ns + (uint64_t)TDM_BURST_MAX_MS * 1000000 + TDM_LOST_AFTER_NS;
	return TDM_OK;
}

static enum tdm_status send_notes(struct tdm_responder *responder, struct tdm_error *err)
{
	const struct tdm_responder_hooks *hooks = &responder->options.hooks;
	struct tdm_buffer notes = { .cap = NOTES_MAX_BYTES };

	/* What finds no room stays with the program for the next time. */
	if (hooks->notes) {
		hooks->notes(hooks->user, &notes);
	}

	const enum tdm_status status = tdm_link_send(responder->path.link, TDM_FRAME_NOTES,
		notes.bytes, notes.size, tdm_deadline_ns(SEND_MS), err);

	tdm_buffer_release(&notes);
	return status;
}

static enum tdm_status take_frame(struct tdm_responder *responder, const struct tdm_frame *frame,
	const struct arrival *arrival, struct tdm_error *err)
{
	switch (frame->type) {
	case TDM_FRAME_EXCHANGE:
		if (!responder->in_burst || responder->by_datagram) {
			/* The burst may just have run out of time: no fault, no answer. */
			return TDM_OK;
		}
		return answer(responder, frame->body, frame->size_bytes, &arrival->at, false, err);
	case TDM_FRAME_BURST:
		return begin_burst(responder, frame, err);
	case TDM_FRAME_QUERY:
		end_burst(responder);
		return send_notes(responder, err);
	default:
		return tdm_fail(err, TDM_ERR_PEER,
			"a frame of type %u has no place in an exchange session", frame->type);
	}
}

enum tdm_status tdm_responder_run(struct tdm_responder *responder, struct tdm_error *err)
{
	struct tdm_link *link = responder->path.link;
	/* What came in one read with OPEN is there already. */
	struct arrival arrival = { .at = tdm_local_clock_arrival(responder->options.clock) };
	enum tdm_status status = TDM_OK;

	while (status == TDM_OK) {
		struct tdm_frame frame;

		if (arrival.is_datagram) {
			if (tdm_path_check_datagram(&responder->path, arrival.datagram_bytes)) {
				status = answer(responder, responder->path.in, TDM_MESSAGE_BYTES,
					&arrival.at, true, err);
			}
		} else {
			while ((status = tdm_link_next(link, &frame, err)) == TDM_OK) {
				status = take_frame(responder, &frame, &arrival, err);
				if (status != TDM_OK) {
					break;
				}
			}
			if (status != TDM_AGAIN && status != TDM_END && err) {
				tdm_link_refuse(link, err->text);
			}
		}
		if (status == TDM_OK || status == TDM_AGAIN) {
			status = receive(responder, &arrival, err);
			if (status == TDM_END && tdm_link_is_ready(link) &&
				(responder->options.stop_fd < 0 ||
					tdm_socket_wait(responder->options.stop_fd, TDM_WAIT_READ,
						-1, 0) != TDM_OK)) {
				status = tdm_fail(
					err, TDM_ERR_PEER, "the peer closed the connection");
			}
		}
	}
	end_burst(responder);
	return status;
}
