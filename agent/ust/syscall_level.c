/* SPDX-License-Identifier: MIT */
/*
 * Which run of "tandem syscalls" a program belongs to, as the log level of its events: a session daemon that several runs
 * share tells them apart by it, once when a program registers and not for each event.
 */
#include <stdlib.h>

/* LTTng's own default: programs that are preloaded by hand. */
static int level = 13;

/* The names are those that LTTNG_UST_TRACEPOINT_LOGLEVEL() makes; that macro wants a constant. */
#define EVENT(name)                                          \
	extern const int *const _loglevel___tandem___##name; \
	const int *const _loglevel___tandem___##name = &level;
#define TDM_CALL(number, name, in, out) EVENT(syscall_entry_##name) EVENT(syscall_exit_##name)
#include "syscall_list.h"

TDM_CALL(-1, unknown, , )
EVENT(process_start)
EVENT(process_end)
EVENT(declined)

/* Before the events are registered. */
__attribute__((constructor(101))) static void take_level(void)
{
	const char *const text = getenv("TANDEM_SYSCALLS_LEVEL");
	char *end = NULL;
	const long number = text ? strtol(text, &end, 10) : -1;

	if (text && end != text && !*end && number >= 0 && number <= 14) {
		level = (int)number;
	}
}
