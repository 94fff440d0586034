/* SPDX-License-Identifier: MIT */
/* What is made of a burst once it is over. */
#include "requester_priv.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tandem/wide.h>

enum {
	/* A delayed acknowledgement is 40 ms on Linux; one or two of them to a round trip. */
	DELAYED_LOW_NS = 36000000,
	DELAYED_HIGH_NS = 50000000,
	SLOW_NS = 20000000,
	QUICK_PATH_US = 10000
};

enum tdm_status requester_reserve(
	struct tdm_requester *requester, size_t count, struct tdm_error *err)
{
	if (count <= requester->sample_room) {
		return TDM_OK;
	}

	struct tdm_exchange_sample *samples = malloc(count * sizeof(*samples));

	if (!samples) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu samples", count);
	}
	memset(samples, 0, count * sizeof(*samples));
	(void)mlock(samples, count * sizeof(*samples));
	free(requester->samples);
	requester->samples = samples;
	requester->sample_room = count;
	return TDM_OK;
}

static uint64_t gap(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* True where the second left 100 us behind the first but did not arrive so: one of them stood in a queue. */
static bool met_queue(
	const struct tdm_exchange_sample *first, const struct tdm_exchange_sample *second)
{
	const uint64_t left = gap(first->h1_raw, second->h1_raw);
	const uint64_t arrived = gap(first->g2_raw, second->g2_raw);

	return gap(left, arrived) * 20 > left || gap(arrived, left) * 20 > left;
}

static void judge_pairs(struct tdm_requester *requester, uint32_t warm_up, uint32_t sent)
{
	for (uint32_t i = warm_up; i + 1 < sent; i += 2) {
		struct tdm_exchange_sample *first = &requester->samples[i];
		struct tdm_exchange_sample *second = &requester->samples[i + 1];

		if (first->h4 != 0 && second->h4 != 0 && met_queue(first, second)) {
			first->flags |= TDM_SAMPLE_QUEUED;
			second->flags |= TDM_SAMPLE_QUEUED;
		}
	}
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Round trips less the guest's own time, sorted; the caller frees them. NULL without memory or samples. */
static uint64_t *round_trips_ns(const struct tdm_requester *requester, size_t count)
{
	uint64_t *trips = count ? malloc(count * sizeof(*trips)) : NULL;

	for (size_t i = 0; trips && i < count; i++) {
		const struct tdm_exchange_sample *sample = &requester->samples[i];
		const uint64_t trip = gap(
			gap(sample->g2_raw, sample->g3_raw), gap(sample->h1_raw, sample->h4_raw));

		trips[i] = (uint64_t)((tdm_u128)trip * 1000000000 /
				      (requester->raw_hz ? requester->raw_hz : 1000000000));
	}
	if (trips) {
		qsort(trips, count, sizeof(*trips), compare_u64);
	}
	return trips;
}

/* Replies that wait for an acknowledgement, on a path whose segments do not: Nagle's algorithm at the other end. */
static bool is_delayed(const struct tdm_requester *requester, const uint64_t *trips, size_t count)
{
	size_t delayed = 0;

	if (trips[count / 2] < SLOW_NS) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		delayed += (trips[i] >= DELAYED_LOW_NS && trips[i] <= DELAYED_HIGH_NS) ||
			   (trips[i] >= 2 * DELAYED_LOW_NS && trips[i] <= 2 * DELAYED_HIGH_NS);
	}

	const uint32_t path_us = tdm_socket_min_rtt_us(tdm_link_fd(requester->link));

	return delayed * 2 >= count && path_us > 0 && path_us < QUICK_PATH_US;
}

void requester_finish(struct tdm_requester *requester, uint32_t sent, uint32_t warm_up, bool pairs,
	bool by_datagram, struct tdm_burst_result *result)
{
	size_t kept = 0;

	result->sent = sent > warm_up ? sent - warm_up : 0;
	requester->warmed_up += sent < warm_up ? sent : warm_up;
	if (pairs) {
		judge_pairs(requester, warm_up, sent);
	}
	for (uint32_t i = warm_up; i < sent; i++) {
		struct tdm_exchange_sample *sample = &requester->samples[i];

		if (sample->h4 == 0) {
			continue;
		}
		if (sample->k1_ns && sample->k2_ns && sample->k3_ns && sample->k4_ns) {
			sample->flags |= TDM_SAMPLE_STAMPED;
		}
		sample->sequence -= requester->warmed_up;
		requester->samples[kept++] = *sample;
	}
	result->samples = requester->samples;
	result->sample_count = kept;

	uint64_t *trips = round_trips_ns(requester, kept);

	if (trips) {
		result->median_round_trip_ns = trips[kept / 2];
		if (!by_datagram && is_delayed(requester, trips, kept)) {
			result->is_delayed = true;
			requester->is_peer_delayed = true;
		}
		free(trips);
	}
}
