/* SPDX-License-Identifier: MIT */
/*
 * causality.h - tandem info --causality: contradictions between a host and its guests.
 */
#ifndef CLI_CAUSALITY_H
#define CLI_CAUSALITY_H

#include "view_options.h"

/**
 * Reads the inputs as tandem view does, corrected, and prints what contradicts causality.
 *
 * @param options  inputs, corrections and offsets are looked at.
 * @return An exit status.
 */
int causality_run(const struct cli_command *command, const struct view_options *options, bool json);

#endif
