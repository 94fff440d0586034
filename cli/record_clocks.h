/* SPDX-License-Identifier: MIT */
/*
 * record_clocks.h - tandem record --clocks-only: the same command line, done by tandem sync.
 */
#ifndef CLI_RECORD_CLOCKS_H
#define CLI_RECORD_CLOCKS_H

#include "record_options.h"

/** Keeps the clocks of the guests; options that are about events have no effect. @return The exit status. */
int record_clocks_only(const struct record_options *options, bool quiet);

#endif
