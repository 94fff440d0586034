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

/**
 * Adds to @p corrections NAME.corrections of each guest among trace files that has neither one nor an offset, where such a
 * file lies beside the guest's file or the host's, is of the clock that was recorded and no second away from the file's time shift. Says on @p log what does not fit.
 *
 * @retval TDM_ERR_NOMEM  Some may be missing.
 */
enum tdm_status view_beside_find(const struct cli_named_list *inputs,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err);

#endif
