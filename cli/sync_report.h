/* SPDX-License-Identifier: MIT */
/*
 * sync_report.h - how well a guest's clock is known, in words.
 */
#ifndef CLI_SYNC_REPORT_H
#define CLI_SYNC_REPORT_H

#include "options.h"
#include "sync_guest.h"

/** Prints the report of one guest to stdout, and each reason for less than was asked to stderr. @return Its share of the exit status. */
int sync_report(const struct cli_command *command, const char *name, const char *dir,
	uint64_t target_bound_ns, const struct sync_outcome *outcome);

/** Units of the host's trace clock in ns. */
uint64_t sync_report_ns(const struct sync_outcome *outcome, uint64_t units);

#endif
