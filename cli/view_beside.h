/* SPDX-License-Identifier: MIT */
/*
 * view_beside.h - what lies beside the files that the user named: the corrections of their guests, the files of a recording.
 */
#ifndef CLI_VIEW_BESIDE_H
#define CLI_VIEW_BESIDE_H

#include "options.h"

/**
 * Puts the trace files of a recording in the place of a directory that holds them (host.dat first, no CTF in it). What is not
 * such a directory, or has a name of its own, stays.
 *
 * @retval TDM_ERR_NOMEM  The list is as it was.
 */
enum tdm_status view_beside_expand(struct cli_named_list *inputs, struct tdm_error *err);

/* The trace.dat and perf.data files among the inputs. */
struct view_beside_files {
	const struct tdm_machine_input *items;
	size_t count;
	bool host_is_elsewhere; /* the host is none of them */
	const char *host_path;  /* where that is; NULL = not known */
};

/**
 * Adds to @p corrections NAME.corrections of each guest among files that has neither one nor an offset, where such a file lies
 * beside the guest's file or the host's and fits: tdm_machine_corrections_fit(). Says on @p log what does not. A file that is
 * alone is a guest where it has a name.
 *
 * @retval TDM_ERR_NOMEM  Some may be missing.
 */
enum tdm_status view_beside_find(const struct view_beside_files *files,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err);

/** The same for inputs all of which are trace.dat files (or perf.data, where @p perf_too); nothing for others. */
enum tdm_status view_beside_find_all(const struct cli_named_list *inputs, bool perf_too,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err);

#endif
