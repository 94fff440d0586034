/* SPDX-License-Identifier: MIT */
/*
 * corrections_beside.h - the corrections file that lies beside a trace.
 */
#ifndef CLI_CORRECTIONS_BESIDE_H
#define CLI_CORRECTIONS_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/**
 * NAME.corrections in the directory that holds a trace; for a trace that is a directory, also in the one above.
 *
 * @param beside  The trace.
 * @param name    Of its machine.
 * @param found   Receives the path; "" where there is none.
 */
bool corrections_beside(const char *beside, const char *name, char found[PATH_MAX]);

#endif
