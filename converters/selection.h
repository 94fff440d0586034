/* SPDX-License-Identifier: MIT */
/*
 * selection.h - which part of the input is wanted, and what of that the input turned out not to have.
 */
#ifndef TANDEM_SELECTION_H
#define TANDEM_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/log.h>
#include <tandem/nearest.h>

/* Zero-initialised: all. */
struct tdm_convert_selection {
	bool has_begin, has_end;
	int64_t begin_ns, end_ns; /* as the output shows time; end included */
	const char *const
		*globs; /* of event names, shown or the tracer's own or SYSTEM:NAME; any fits */
	size_t glob_count;
	const uint32_t *cpu_ranges; /* pairs first, last */
	size_t cpu_range_count;
	/* Set where an event of the output fits one; glob_count and cpu_range_count long. NULL: nobody wants to know. */
	bool *glob_fits, *cpu_range_fits;
	struct tdm_nearest
		*glob_nearest; /* glob_count of them: the names nearest to each; NULL likewise */
};

bool tdm_selection_is_all(const struct tdm_convert_selection *selection);

/** Whether an event is wanted by one of its names; any may be NULL. */
bool tdm_selection_has_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count);

bool tdm_selection_has_cpu(const struct tdm_convert_selection *selection, uint32_t cpu);

/** Looks at names of events that the input knows, whether it has such events or not. */
void tdm_selection_near_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count);

/** Notes that an event with these names is in the output; and a CPU with an event. */
void tdm_selection_note_event(
	const struct tdm_convert_selection *selection, const char *const *names, size_t name_count);
void tdm_selection_note_cpu(const struct tdm_convert_selection *selection, uint32_t cpu);

/** Warns of each pattern and each range that no event of the output fits, and of what may be meant. */
void tdm_selection_tell_unused(
	const struct tdm_convert_selection *selection, const struct tdm_log *log);

#endif
