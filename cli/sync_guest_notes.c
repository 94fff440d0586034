/* SPDX-License-Identifier: MIT */
/* What an agent tells of its machine's clocks, and what becomes of it in the files. */
#include "sync_guest_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	RAW_PPB = 100,        /* two raw clocks, on whatever machines */
	SHARED_PPB = 10,      /* two raw clocks of one oscillator */
	STEERED_PPB = 100000, /* a clock that a daemon may steer */
	JUMPS_TOLD = 3        /* a peer that tells of more is not listened to so closely */
};

/* One line of what the agent tells of its own clocks. */
static void take_note(struct sync_guest *guest, const char *line, bool *saw_step)
{
	struct tdm_sandwich local;
	uint64_t number, at, bound;
	int64_t ticks;
	char word[24];

	if (sscanf(line, "l %" SCNu64 " %" SCNu64 " %" SCNu64, &local.outer, &local.inner,
		    &local.width) == 3) {
		if (local.outer < TDM_READING_MAX && local.inner < TDM_READING_MAX &&
			local.width < TDM_READING_MAX) {
			sync_log_add_local(guest->log, TDM_SIDE_GUEST, &local);
		}
	} else if (sscanf(line, "e %" SCNu64 " %" SCNu64 " %23s", &number, &at, word) == 3) {
		char reason[24];

		/* From the peer: no control characters to a terminal, no more lines than help. */
		tdm_text_clean(reason, sizeof(reason), (const uint8_t *)word, strlen(word));
		if (guest->jumps_told++ < JUMPS_TOLD) {
			GUEST_WARNING(guest, "%s: its clock jumped: reason=\"%s\"",
				guest->options.name, reason);
		}
		guest->epoch = (uint32_t)number;
		if (at < TDM_READING_MAX) {
			sync_log_add_epoch(guest->log, at, reason);
		}
	} else if (sscanf(line, "unix %" SCNd64 " %" SCNu64, &ticks, &bound) == 2) {
		guest->unix_offset = (uint64_t)ticks;
		guest->unix_width = bound;
		guest->has_unix = true;
	} else if (sscanf(line, "cpu %" SCNu64 " %" SCNd64 " %" SCNu64, &number, &ticks, &bound) ==
		   3) {
		if (number < UINT32_MAX && bound < TDM_READING_MAX) {
			sync_log_add_cpu(guest->log, (uint32_t)number, ticks, bound);
		}
	} else if (strncmp(line, "wall-clock-step ", 16) == 0) {
		*saw_step = true;
	} else if (strncmp(line, "tsc-unstable ", 13) == 0 && !guest->outcome.is_unstable) {
		guest->outcome.is_unstable = true;
		GUEST_WARNING(guest,
			"%s: its CPUs' TSCs drift apart (tsc-unstable): take another clock, e.g. -C mono",
			guest->options.name);
	}
}

void sync_guest_take_notes(struct sync_guest *guest, const char *notes, size_t size, bool *saw_step)
{
	while (size > 0) {
		const char *newline = memchr(notes, '\n', size);
		const size_t length = newline ? (size_t)(newline - notes) : size;
		char line[128];

		if (length < sizeof(line)) {
			memcpy(line, notes, length);
			line[length] = '\0';
			take_note(guest, line, saw_step);
		}
		notes += newline ? length + 1 : size;
		size -= newline ? length + 1 : size;
	}
}

/*
 * True where one oscillator drives both raw clocks: over vsock guest and host are one machine, and the TSC that a guest reads is
 * the host's, with an offset and a factor that stay. Where they do not, the exchanges show it and the estimate goes by RAW_PPB.
 */
static bool shares_oscillator(const struct sync_guest *guest)
{
	return guest->options.address.kind == TDM_ADDRESS_VSOCK &&
	       strcmp(tdm_clock_source(guest->clock.raw), "tsc") == 0 &&
	       strcmp(tdm_requester_peer(guest->requester)->raw_source, "tsc") == 0;
}

enum tdm_status sync_guest_set_info(struct sync_guest *guest, bool stamps, struct tdm_error *err)
{
	const struct tdm_requester_peer *peer = tdm_requester_peer(guest->requester);
	struct tdm_exchange_log_info info = { .host_clock = guest->options.clock,
		.guest_uuid = peer->boot_id[0] ? peer->boot_id : NULL,
		.guest_clock = guest->options.clock,
		.host_unit_hz = tdm_local_clock_hz(&guest->clock),
		.guest_unit_hz = peer->unit_hz,
		.stamps = stamps ? "kernel" : "user",
		.rate_ppb = guest->is_steered          ? STEERED_PPB
			    : shares_oscillator(guest) ? SHARED_PPB
						       : RAW_PPB };
	char boot_id[37], made[32];
	const time_t now = time(NULL);
	struct tm parts;

	tdm_clock_boot_id(boot_id);
	info.host_uuid = boot_id;
	strftime(made, sizeof(made), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
	info.made = made;
	if (guest->clock.trace != TDM_CLOCK_TSC && guest->clock.trace != TDM_CLOCK_MARKER) {
		const struct tdm_sandwich now_unix =
			tdm_clock_sandwich(guest->clock.trace, TDM_CLOCK_REAL);

		info.epoch[TDM_SIDE_HOST] = (struct tdm_epoch_offset){ .is_known = true,
			.offset_ns = (int64_t)(now_unix.inner - now_unix.outer),
			.width_ns = now_unix.width };
	}
	if (guest->has_unix) {
		info.epoch[TDM_SIDE_GUEST] = (struct tdm_epoch_offset){ .is_known = true,
			.offset_ns = (int64_t)guest->unix_offset,
			.width_ns = guest->unix_width };
	}
	guest->outcome.host_unit_hz = info.host_unit_hz;
	guest->outcome.guest_unit_hz = info.guest_unit_hz;
	if (guest->is_steered) {
		GUEST_INFO(guest,
			"%s: its agent tells no raw clock beside \"%s\", which may be steered: the bound would be smaller with -C mono_raw or x86-tsc",
			guest->options.name, guest->options.clock);
	}

	const enum tdm_status status = sync_log_set_info(guest->log, &info, err);

	guest->has_info = status == TDM_OK;
	return status;
}
