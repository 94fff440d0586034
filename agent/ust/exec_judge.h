/* SPDX-License-Identifier: MIT */
/*
 * exec_judge.h - can the provider be loaded into a program? Asked before it runs: by the provider at each
 * exec, by the front end for its command.
 */
#ifndef TDM_EXEC_JUDGE_H
#define TDM_EXEC_JUDGE_H

#include <stddef.h>

#define TDM_SCRIPTS_MAX 4 /* as the kernel */

/* One system call; returns what the kernel returns: -errno on failure. */
typedef long (*tdm_raw_call)(long nr, long a, long b, long c, long d, long e, long f);

/**
 * Looks at one file.
 *
 * @param call             Makes the system calls: the provider's must not be recorded.
 * @param path             As exec gets it. Borrowed.
 * @param next, next_room  Receives the interpreter of a script, to be looked at next; "" where there is none.
 * @return Why not, in words without an end; NULL: it can, or exec itself will tell.
 */
const char *tdm_exec_judge(tdm_raw_call call, const char *path, char *next, size_t next_room);

#endif
