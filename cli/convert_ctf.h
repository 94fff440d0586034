/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf.h - CTF traces as inputs of tandem convert.
 *
 * A trace whose clock needs no correction, or one constant, is copied file by file and only its metadata is written
 * anew. Where the correction bends, every stamp goes through the clock filter of a babeltrace2 graph.
 */
#ifndef TANDEM_CLI_CONVERT_CTF_H
#define TANDEM_CLI_CONVERT_CTF_H

#include "convert_options.h"

/** Whether an input is a folder with CTF traces in it. */
bool convert_ctf_is_input(const char *path);

/**
 * Converts those inputs of a command line that are CTF.
 *
 * @param dir  The output directory.
 * @return An exit status: done, failed (said) or incomplete (said).
 */
int convert_ctf_run(
	const struct cli_command *command, const struct convert_options *options, const char *dir);

#endif
