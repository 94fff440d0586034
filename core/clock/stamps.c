/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <string.h>

/* Clocks that stay a constant away from CLOCK_REALTIME while nobody sets it; where no name is said, the checks decide. */
static bool keeps_step_with_real(const char *clock)
{
	static const char *const names[] = { "mono", "boot", "tai", "real", "realtime" };

	for (size_t i = 0; clock && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], clock) == 0) {
			return true;
		}
	}
	return clock == NULL;
}

bool stamps_from_kernel(const struct tdm_exchange_log_info *info,
	const struct tdm_exchange_record *record, struct tdm_exchange *stamps, uint64_t *slack_ns)
{
	const struct tdm_epoch_offset *host = &info->epoch[TDM_SIDE_HOST];
	const struct tdm_epoch_offset *guest = &info->epoch[TDM_SIDE_GUEST];
	const struct tdm_exchange *user = &record->trace;
	tdm_i128 moved[4];

	if (!host->is_known || !guest->is_known || info->host_unit_hz != 1000000000 ||
		info->guest_unit_hz != 1000000000 || !keeps_step_with_real(info->host_clock) ||
		!keeps_step_with_real(info->guest_clock)) {
		return false;
	}
	for (size_t i = 0; i < 4; i++) {
		moved[i] = (tdm_i128)record->kernel[i] -
			   (i == 0 || i == 3 ? host->offset_ns : guest->offset_ns);
		if (!record->kernel[i] || moved[i] <= 0 || moved[i] > (tdm_i128)TDM_READING_MAX) {
			return false;
		}
	}

	/* The kernel's points lie between ours, by no more than the constants may be off. */
	const tdm_i128 host_slack = (tdm_i128)host->width_ns;
	const tdm_i128 guest_slack = (tdm_i128)guest->width_ns;

	if (moved[0] + host_slack < (tdm_i128)user->host_sent || moved[3] <= moved[0] ||
		moved[3] > (tdm_i128)user->host_got + host_slack ||
		moved[1] > (tdm_i128)user->guest_got + guest_slack ||
		moved[2] + guest_slack < (tdm_i128)user->guest_sent) {
		return false;
	}
	*stamps = (struct tdm_exchange){ (uint64_t)moved[0], (uint64_t)moved[1], (uint64_t)moved[2],
		(uint64_t)moved[3] };
	*slack_ns = host->width_ns + guest->width_ns;
	return true;
}
