/* SPDX-License-Identifier: MIT */
/*
 * record_finish.h - completing what a killed recorder left behind.
 */
#ifndef TANDEM_CLI_RECORD_FINISH_H
#define TANDEM_CLI_RECORD_FINISH_H

#include "options.h"
#include <tandem/timeline.h>

/** The corrections of a guest in DIR, owned by the caller; NULL where there are none. */
struct tdm_timeline *record_load_corrections(const char *dir, const char *name);

/** Makes NAME.dat of each NAME.recording in @p dir. @return An exit status. */
int record_finish_left(const struct cli_command *command, const char *dir);

#endif
