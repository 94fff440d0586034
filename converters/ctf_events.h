/* SPDX-License-Identifier: MIT */
/*
 * ctf_events.h - the events of a CTF packet, passed at speed to learn how far they make sense and when they happened.
 */
#ifndef TANDEM_CTF_EVENTS_H
#define TANDEM_CTF_EVENTS_H

#include "ctf_walk.h"

struct tdm_ctf_event_plan; /* opaque: how one event class is passed */

/* The event classes of one stream class. */
struct tdm_ctf_events {
	const struct tsdl_stream *stream;
	struct tdm_ctf_event_plan **by_id; /* by_id_count of them; NULL = no such event */
	size_t by_id_count;
	/* Headers as LTTng writes them: an id and a short stamp in one little-endian word, or an escape and both whole. */
	bool is_short_header;
	uint32_t id_bits, stamp_bits;
};

/** Makes the plans. @p events is to be released in either case. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_events_plan(const struct tsdl_metadata *metadata,
	const struct tsdl_stream *stream, struct tdm_ctf_events *events);
void tdm_ctf_events_release(struct tdm_ctf_events *events);

/* What the events of a packet are like. */
struct tdm_ctf_passed {
	uint64_t count;
	uint64_t good_bits;   /* end of the last event that makes sense, from the packet's start */
	uint64_t first, last; /* their stamps, as the clock counts */
	const char *fault;    /* why the one behind makes none; NULL: all do */
};

/**
 * Passes all events of a packet.
 *
 * @param walk   At the first event, its clock at the packet's beginning; end_bits is how far the bytes may be read.
 * @param until_bits   No event begins from here on.
 * @param begin, end   What the packet says of its times. Tracers let events be later than its end; but where such events
 *                     are followed by earlier ones, theirs are the times that make no sense.
 * @param limit        No event is later than this.
 */
void tdm_ctf_events_pass(const struct tdm_ctf_events *events, struct ctf_walk *walk,
	uint64_t until_bits, uint64_t begin, uint64_t end, uint64_t limit,
	struct tdm_ctf_passed *passed);

#endif
