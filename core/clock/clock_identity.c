/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tandem/clock_identity.h>

enum {
	UUID_CHARACTERS = 36,
	UUID_VERSION_AT = 14,
	BEFORE_SECONDS = 60 /* a recording may begin so long before the first exchange */
};

/* Two names of one clock; NULL: no name of a clock that is known here. */
static const char *known_name(const char *clock)
{
	static const char *const names[][2] = { { "mono", "mono" }, { "monotonic", "mono" },
		{ "mono_raw", "mono_raw" }, { "boot", "boot" }, { "tai", "tai" },
		{ "local", "local" }, { "global", "global" }, { "perf", "perf" },
		{ "uptime", "uptime" }, { "x86-tsc", "x86-tsc" }, { "tsc2nsec", "x86-tsc" } };

	for (size_t i = 0; clock && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(clock, names[i][0]) == 0) {
			return names[i][1];
		}
	}
	return NULL;
}

static bool is_identity(const char *uuid)
{
	return uuid && strlen(uuid) == UUID_CHARACTERS && uuid[UUID_VERSION_AT] != '8';
}

bool tdm_clock_identity_fits(const struct tdm_timeline *timeline, enum tdm_side side,
	const char *uuid, const char *clock, char why[TDM_MISFIT_BYTES])
{
	const struct tdm_timeline_info said = tdm_timeline_get_info(timeline);
	const bool is_host = side == TDM_SIDE_HOST;
	const char *const whose = is_host ? "host" : "guest";
	const char *const said_uuid = is_host ? said.host_uuid : said.guest_uuid;
	const char *const said_clock = is_host ? said.host_clock : said.guest_clock;
	const char *const known = known_name(clock);
	const char *const said_known = known_name(said_clock);

	why[0] = '\0';
	if (is_identity(uuid) && is_identity(said_uuid) && strcasecmp(uuid, said_uuid) != 0) {
		snprintf(why, TDM_MISFIT_BYTES,
			"they are of another boot or machine as %s (%.40s) than the trace (%.40s)",
			whose, said_uuid, uuid);
	} else if (known && said_known && strcmp(known, said_known) != 0) {
		snprintf(why, TDM_MISFIT_BYTES,
			"they are of clock %.40s as %s's, and its trace is stamped by %.40s",
			said_clock, whose, clock);
	}
	return !why[0];
}

bool tdm_clock_range_fits(
	const struct tdm_timeline *timeline, uint64_t first_reading, char why[TDM_MISFIT_BYTES])
{
	const struct tdm_timeline_info said = tdm_timeline_get_info(timeline);
	const uint64_t unit_hz = said.guest_unit_hz;
	uint64_t from, to;

	why[0] = '\0';
	if ((said.method && strcmp(said.method, "exact") == 0) || said.rate_ppb == 0 || !unit_hz ||
		!tdm_timeline_range(timeline, &from, &to) || from == to) {
		return true;
	}
	if (first_reading > to) {
		snprintf(why, TDM_MISFIT_BYTES,
			"the last exchange was %" PRIu64
			" s before the first event: the relation is carried on from there, worse known with every second",
			(first_reading - to) / unit_hz);
	} else if (first_reading < from &&
		   (from - first_reading) / unit_hz > (to - from) / unit_hz + BEFORE_SECONDS) {
		snprintf(why, TDM_MISFIT_BYTES,
			"the first exchange was %" PRIu64
			" s after the first event: the relation is carried back from there, worse known with every second",
			(from - first_reading) / unit_hz);
	}
	return !why[0];
}
