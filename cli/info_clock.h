/* SPDX-License-Identifier: MIT */
/*
 * info_clock.h - tandem info for exchange logs and corrections files.
 */
#ifndef CLI_INFO_CLOCK_H
#define CLI_INFO_CLOCK_H

#include "options.h"
#include <stdio.h>

/** True where the file begins like an exchange log or a corrections file. */
bool info_clock_is_one(const char *path);

/**
 * Reports such files, as text or as the items of a JSON array.
 *
 * @param files  What info_clock_is_one() said yes to; their names, where given, stand in the report. Borrowed.
 * @param plot   Picture to draw, of the log and the corrections among the files; NULL for none.
 * @return Exit status: 0 all done, 1 nothing could be read, 3 something could not.
 */
int info_clock_report(const struct cli_command *command, const struct cli_named_list *files,
	bool json, const char *plot);

#endif
