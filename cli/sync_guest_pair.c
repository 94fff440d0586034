/* SPDX-License-Identifier: MIT */
#include "sync_guest_priv.h"
#include "sync_pair.h"
#include <string.h>
#include <unistd.h>

enum {
	PAIRS = 8,
	APART_MS =
		40 /* behind a burst: what is further than 20 ms from it is a window of its own */
};

static size_t place_all(struct sync_guest *guest, const struct tdm_requester_answer *answer,
	struct tdm_exchange_sample samples[PAIRS])
{
	const bool is_tsc = guest->clock.raw == TDM_CLOCK_TSC;
	const uint64_t host_hz = is_tsc ? guest->outcome.host_unit_hz : 1000000000;
	const uint64_t guest_hz =
		is_tsc ? tdm_requester_peer(guest->requester)->unit_hz : 1000000000;
	const char *line = answer->notes;
	const char *const end = line + answer->notes_bytes;
	size_t count = 0;

	while (line < end && count < PAIRS) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const size_t length = (size_t)((newline ? newline : end) - line);
		struct sync_pair pair;
		char text[128];

		if (length < sizeof(text)) {
			memcpy(text, line, length);
			text[length] = '\0';
			if (sync_pair_parse(text, &pair)) {
				if (sync_pair_place(&pair, answer, host_hz, guest_hz,
					    guest->clock.trace == guest->clock.raw,
					    &samples[count])) {
					samples[count++].sequence =
						tdm_requester_take_sequence(guest->requester);
				} else {
					guest->pairs_refused++;
				}
			}
		}
		line += length + 1;
	}
	return count;
}

enum tdm_status sync_guest_take_pairs(
	struct sync_guest *guest, bool *is_lost, struct tdm_error *err)
{
	struct tdm_requester_answer answer;
	struct tdm_exchange_sample samples[PAIRS];
	bool saw_step = false;

	/* Over vsock this host is the one that runs the guest; over other ways it may be any. */
	if (!guest->requester || !guest->has_info || guest->is_steered ||
		guest->options.address.kind != TDM_ADDRESS_VSOCK ||
		!tdm_requester_peer(guest->requester)->has_host_clock ||
		sync_log_count(guest->log) > TDM_EXCHANGE_LOG_MAX / 2) {
		return TDM_OK;
	}
	usleep(APART_MS * 1000);
	if (tdm_requester_ask(guest->requester, &answer, err) != TDM_OK) {
		*is_lost = true;
		return TDM_OK;
	}
	sync_guest_take_notes(guest, answer.notes, answer.notes_bytes, &saw_step);

	const size_t count = place_all(guest, &answer, samples);

	if (guest->pairs_refused > 0 && !guest->pairs_told) {
		guest->pairs_told = true;
		GUEST_WARNING(guest,
			"%s: what it reads as its host's clock was not read between the asking and the answer: left out",
			guest->options.name);
	}
	if (count == 0 || saw_step) {
		return TDM_OK;
	}
	guest->outcome.pairs += count;

	const struct tdm_burst_result result = { .samples = samples, .sample_count = count };

	return sync_log_add_burst(guest->log, &result, false, err);
}
