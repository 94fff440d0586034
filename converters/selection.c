/* SPDX-License-Identifier: MIT */
#include "selection.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>

bool tdm_selection_is_all(const struct tdm_convert_selection *selection)
{
	return !selection->has_begin && !selection->has_end && selection->glob_count == 0 &&
	       selection->cpu_range_count == 0;
}

static bool fits(const char *glob, const char *const *names, size_t name_count)
{
	for (size_t i = 0; i < name_count; i++) {
		if (names[i] && fnmatch(glob, names[i], 0) == 0) {
			return true;
		}
	}
	return false;
}

bool tdm_selection_has_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count)
{
	for (size_t i = 0; i < selection->glob_count; i++) {
		if (fits(selection->globs[i], names, name_count)) {
			return true;
		}
	}
	return selection->glob_count == 0;
}

static bool is_in_range(const struct tdm_convert_selection *selection, size_t range, uint32_t cpu)
{
	return cpu >= selection->cpu_ranges[2 * range] &&
	       cpu <= selection->cpu_ranges[2 * range + 1];
}

bool tdm_selection_has_cpu(const struct tdm_convert_selection *selection, uint32_t cpu)
{
	for (size_t i = 0; i < selection->cpu_range_count; i++) {
		if (is_in_range(selection, i, cpu)) {
			return true;
		}
	}
	return selection->cpu_range_count == 0;
}

void tdm_selection_near_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count)
{
	for (size_t i = 0; selection->glob_nearest && i < selection->glob_count; i++) {
		/* One that chose something is not mistyped. */
		if (selection->glob_fits && selection->glob_fits[i]) {
			continue;
		}
		for (size_t k = 0; k < name_count; k++) {
			tdm_nearest_try(&selection->glob_nearest[i], names[k]);
		}
	}
}

void tdm_selection_note_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count)
{
	for (size_t i = 0; selection->glob_fits && i < selection->glob_count; i++) {
		if (!selection->glob_fits[i]) {
			selection->glob_fits[i] = fits(selection->globs[i], names, name_count);
		}
	}
}

void tdm_selection_note_cpu(const struct tdm_convert_selection *selection, uint32_t cpu)
{
	for (size_t i = 0; selection->cpu_range_fits && i < selection->cpu_range_count; i++) {
		selection->cpu_range_fits[i] |= is_in_range(selection, i, cpu);
	}
}

void tdm_selection_tell_unused(
	const struct tdm_convert_selection *selection, const struct tdm_log *log)
{
	for (size_t i = 0; selection->glob_fits && i < selection->glob_count; i++) {
		if (!selection->glob_fits[i]) {
			TDM_WARNING(log, "--events \"%s\" chose no event%s", selection->globs[i],
				selection->glob_nearest
					? tdm_nearest_text(&selection->glob_nearest[i])
					: "");
		}
	}
	for (size_t i = 0; selection->cpu_range_fits && i < selection->cpu_range_count; i++) {
		const uint32_t first = selection->cpu_ranges[2 * i];
		const uint32_t last = selection->cpu_ranges[2 * i + 1];
		char words[32];

		if (selection->cpu_range_fits[i]) {
			continue;
		}
		if (first == last) {
			snprintf(words, sizeof(words), "%" PRIu32, first);
		} else {
			snprintf(words, sizeof(words), "%" PRIu32 "-%" PRIu32, first, last);
		}
		TDM_WARNING(log, "--cpus %s chose no event", words);
	}
}
