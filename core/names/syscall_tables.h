/* SPDX-License-Identifier: MIT */
/*
 * syscall_tables.h - numbers and names of system calls, and their arguments.
 */
#ifndef TANDEM_SYSCALL_TABLES_H
#define TANDEM_SYSCALL_TABLES_H

#include <stddef.h>

struct tdm_syscall_table {
	const char *architecture;
	const char *const *names; /* by number; NULL where there is none */
	size_t count;
};

/* Ends with an architecture of NULL. */
extern const struct tdm_syscall_table tdm_syscall_tables[];

/* "dfd:" the arguments in order, a blank between; the first letter is the kind: d int, u unsigned int, D long,
 * U unsigned long, p pointer. */
struct tdm_syscall_arguments {
	const char *name;
	const char *arguments;
};

extern const struct tdm_syscall_arguments tdm_syscall_arguments[];
extern const size_t tdm_syscall_arguments_count;

#endif
