/* SPDX-License-Identifier: MIT */
/*
 * corrections_beside.h - the corrections file that lies beside a trace.
 */
#ifndef CLI_CORRECTIONS_BESIDE_H
#define CLI_CORRECTIONS_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/**
 * NAME.corrections in the directory that holds a trace, or in the one above it.
 *
 * @param beside  The trace: a file or a directory.
 * @param name    Of its machine.
 * @param found   Receives the path; "" where there is none.
 */
bool corrections_beside(const char *beside, const char *name, char found[PATH_MAX]);

#endif
