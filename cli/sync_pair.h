/* SPDX-License-Identifier: MIT */
/*
 * sync_pair.h - readings that a guest made of this host's clock, without a network in between, as exchanges.
 */
#ifndef CLI_SYNC_PAIR_H
#define CLI_SYNC_PAIR_H

#include <tandem/requester.h>

/* Our CLOCK_REALTIME, read by the guest between two readings of its own clocks. */
struct sync_pair {
	struct tdm_reading before; /* raw first */
	uint64_t host_ns;
	struct tdm_reading after; /* raw last */
};

/** Reads "p RAW TRACE HOST TRACE RAW". @return False where the line is another one, or no reading. */
bool sync_pair_parse(const char *line, struct sync_pair *pair);

/**
 * Places a pair between what the host read around the asking: the sample that an exchange would have given whose ways
 * take as long as the guest's reading did.
 *
 * @param host_hz, guest_hz  Of the raw clocks.
 * @param trace_is_raw       At the host.
 * @return False where the pair was not read between the two: it is of another clock, or this one was set meanwhile.
 */
bool sync_pair_place(const struct sync_pair *pair, const struct tdm_requester_answer *answer,
	uint64_t host_hz, uint64_t guest_hz, bool trace_is_raw, struct tdm_exchange_sample *sample);

#endif
