/* SPDX-License-Identifier: MIT */
/*
 * view_fit.h - do the corrections of an input belong to it, where the inputs are of several kinds?
 */
#ifndef CLI_VIEW_FIT_H
#define CLI_VIEW_FIT_H

#include "view_inputs.h"

/** Whether the file in input->corrections, which was found and not named, is to be used; says on @p log why not. */
bool view_fit_found(const struct view_inputs *inputs, const struct view_input *input,
	const struct tdm_log *log);

/** Warns where the file in input->corrections does not fit its input or the host's, and no filter looks at it. */
void view_fit_tell(const struct view_inputs *inputs, const struct view_input *input,
	const struct tdm_timeline *timeline, const struct tdm_log *log);

#endif
