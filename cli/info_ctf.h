/* SPDX-License-Identifier: MIT */
/*
 * info_ctf.h - tandem info for directories with CTF.
 */
#ifndef CLI_INFO_CTF_H
#define CLI_INFO_CTF_H

#include "json_writer.h"
#include "options.h"

/** True for a directory that holds CTF, itself or below it, and no recording of perf. */
bool info_ctf_is_one(const char *path);

/**
 * Reads each trace below the directories to its end and tells what is in it.
 *
 * @param dirs  What info_ctf_is_one() said yes to. Borrowed.
 * @param json  Receives an item for each trace, inside of an array; NULL: text on the standard output.
 * @return Exit status: 0 all done, 1 nothing could be read, 3 something could not.
 */
int info_ctf_report(const struct cli_command *command, const struct cli_named_list *dirs,
	struct json_writer *json);

#endif
