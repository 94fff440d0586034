/* SPDX-License-Identifier: MIT */
#include "sync_pair.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEERED_RATE 600e-6 /* no clock is steered faster against its raw one */
#define BEND_RATE \
	250e-6 /* a quarter of what a rate may change by between two readings: how far from their chord */

bool sync_pair_parse(const char *line, struct sync_pair *pair)
{
	uint64_t *const fields[] = { &pair->before.raw, &pair->before.trace, &pair->host_ns,
		&pair->after.trace, &pair->after.raw };

	if (sscanf(line, "p %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, fields[0],
		    fields[1], fields[2], fields[3], fields[4]) != 5) {
		return false;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (*fields[i] == 0 || *fields[i] >= TDM_READING_MAX) {
			return false;
		}
	}
	return pair->after.raw >= pair->before.raw && pair->after.trace >= pair->before.trace;
}

static double apart(uint64_t to, uint64_t from)
{
	return to >= from ? (double)(to - from) : -(double)(from - to);
}

bool sync_pair_place(const struct sync_pair *pair, const struct tdm_requester_answer *answer,
	uint64_t host_hz, uint64_t guest_hz, bool trace_is_raw, struct tdm_exchange_sample *sample)
{
	const double unit_ns = 1e9 / (double)host_hz;
	const double real_ns = apart(answer->after.inner, answer->before.inner);
	const double raw_ns = apart(answer->after.outer, answer->before.outer) * unit_ns;
	const double width_ns =
		((double)answer->before.width + (double)answer->after.width) * unit_ns;
	const double at_ns = apart(pair->host_ns, answer->before.inner);

	if (real_ns <= 0 || raw_ns <= 0 ||
		fabs(real_ns - raw_ns) > raw_ns * STEERED_RATE + width_ns || at_ns < -width_ns ||
		at_ns > real_ns + width_ns) {
		return false;
	}

	/* Where the reading lies in our raw clock, how far it may be off that, and how long it took. */
	const double place_ns = at_ns / real_ns * raw_ns;
	const double bracket_ns = apart(pair->after.raw, pair->before.raw) * 1e9 / (double)guest_hz;
	const double slack_ns =
		width_ns / 2 + raw_ns * BEND_RATE + bracket_ns * (1 + STEERED_RATE) + 2;
	const double first = floor((place_ns - slack_ns) / unit_ns);
	const double last = ceil((place_ns + slack_ns) / unit_ns);

	memset(sample, 0, sizeof(*sample));
	sample->h1_raw = answer->before.outer + (uint64_t)(int64_t)first;
	sample->h4_raw = answer->before.outer + (uint64_t)(int64_t)last;
	sample->g2_raw = pair->before.raw;
	sample->g3_raw = pair->after.raw;
	sample->g2 = pair->before.trace;
	sample->g3 = pair->after.trace;
	if (trace_is_raw) {
		sample->h1 = sample->h1_raw;
		sample->h4 = sample->h4_raw;
		return true;
	}

	/* Our trace clock was read at either side of the asking; between, it ran nearly evenly. */
	const double run = apart(answer->got.raw, answer->sent.raw);
	const double rise = apart(answer->got.trace, answer->sent.trace);
	const double bend_ns = raw_ns * BEND_RATE + width_ns + 2;

	if (run <= 0 || rise < 0) {
		return false;
	}

	const double trace_first = apart(sample->h1_raw, answer->sent.raw) * rise / run - bend_ns;
	const double trace_last = apart(sample->h4_raw, answer->sent.raw) * rise / run + bend_ns;

	sample->flags = TDM_SAMPLE_HAS_RAW;
	sample->h1 = answer->sent.trace + (uint64_t)(int64_t)floor(trace_first);
	sample->h4 = answer->sent.trace + (uint64_t)(int64_t)ceil(trace_last);
	return true;
}
