/* SPDX-License-Identifier: MIT */
/*
 * requester_priv.h - the requester's object, for the two files that it is made of.
 */
#ifndef TANDEM_REQUESTER_PRIV_H
#define TANDEM_REQUESTER_PRIV_H

#include "burst_priv.h"
#include "path_priv.h"
#include <tandem/requester.h>

struct tdm_requester {
	struct tdm_link *link;
	struct tdm_path path;
	struct tdm_requester_options options;
	struct tdm_requester_peer peer;
	uint32_t session;
	uint64_t sequence; /* of the next probe */
	uint64_t
		warmed_up; /* probes so far that no sample is made of: samples are numbered without them */
	uint64_t raw_hz; /* of the local raw clock */
	struct tdm_burst_mode mode;
	bool has_datagrams;
	bool is_peer_delayed;                /* it has Nagle's algorithm on */
	uint64_t pair_ns;                    /* when the first of a pair went out */
	uint64_t stamps_again_ns;            /* kernel stamps are at rest until then */
	struct tdm_exchange_sample *samples; /* of the last burst; touched and locked */
	size_t sample_room;
	struct tdm_buffer notes;
};

/* Makes room for so many samples, before the burst. */
enum tdm_status requester_reserve(
	struct tdm_requester *requester, size_t count, struct tdm_error *err);

/* Throws away what warmed up and what was not answered, judges pairs and stamps, and fills the result. */
void requester_finish(struct tdm_requester *requester, uint32_t sent, uint32_t warm_up, bool pairs,
	bool by_datagram, struct tdm_burst_result *result);

#endif
