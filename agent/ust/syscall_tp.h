/* SPDX-License-Identifier: MIT */
/*
 * syscall_tp.h - the tracepoints: one pair for each row of syscall_list.h, and the generic pair.
 *
 * lttng-ust includes this file many times, with other meanings of its macros each time.
 *
 * For the converter that makes a kernel trace of them (tandem convert --as-kernel) it is a renaming:
 *
 *   tandem:syscall_entry_NAME, tandem:syscall_exit_NAME   ->  the name without "tandem:"
 *   the same with NAME = unknown                          ->  the same; fields id, args; id, ret
 *   event context vpid, vtid, procname                    ->  pid, tid, procname
 *   tandem:process_start, :process_end, :declined         ->  not system calls: left out
 *   lttng_ust_statedump:procname                          ->  the process's name, where no context has it
 */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tandem

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "syscall_tp.h"

#if !defined(TDM_SYSCALL_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TDM_SYSCALL_TP_H

#include "syscall_event.h"
#include <lttng/tracepoint.h>

#undef TDM_CALL
#undef INT
#undef HEX
#undef PATH
#undef PATH_1
#undef PATH_2
#undef FDS
#undef NONE
#define INT(type, name, i) lttng_ust_field_integer(type, name, (type)tdm_call->args[i])
#define HEX(type, name, i) lttng_ust_field_integer_hex(type, name, (type)tdm_call->args[i])
#define PATH(name, i) lttng_ust_field_string(name, tdm_path(tdm_call, i))
#define FDS(name, i) lttng_ust_field_array(int, name, tdm_call->fds, 2)
#define NONE
#define TDM_CALL(number, name, in, out) \
	LTTNG_UST_TRACEPOINT_EVENT(tandem, syscall_entry_##name, \
		LTTNG_UST_TP_ARGS(const struct tdm_call *, tdm_call), LTTNG_UST_TP_FIELDS(in)) \
	LTTNG_UST_TRACEPOINT_EVENT(tandem, syscall_exit_##name, \
		LTTNG_UST_TP_ARGS(const struct tdm_call *, tdm_call), \
		LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, ret, tdm_call->ret) out))

#include "syscall_list.h"

LTTNG_UST_TRACEPOINT_EVENT(tandem, syscall_entry_unknown,
	LTTNG_UST_TP_ARGS(const struct tdm_call *, tdm_call),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, id, tdm_call->nr)
		lttng_ust_field_array_hex(unsigned long, args, tdm_call->args, 6)))

LTTNG_UST_TRACEPOINT_EVENT(tandem, syscall_exit_unknown,
	LTTNG_UST_TP_ARGS(const struct tdm_call *, tdm_call),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, id, tdm_call->nr)
		lttng_ust_field_integer(long, ret, tdm_call->ret)))

LTTNG_UST_TRACEPOINT_EVENT(tandem, process_start,
	LTTNG_UST_TP_ARGS(const char *, tdm_mode, unsigned long, tdm_image, unsigned int, tdm_sites,
		unsigned int, tdm_unpatched, const char *, tdm_name),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(mode, tdm_mode)
		lttng_ust_field_integer(unsigned long, image, tdm_image)
		lttng_ust_field_integer(unsigned int, sites, tdm_sites)
		lttng_ust_field_integer(unsigned int, unpatched, tdm_unpatched)
		lttng_ust_field_string(name, tdm_name)))

/*
 * What the calls of the process come to so far; "why" is exit or exec. An exec that fails is followed by
 * another one of the same image: the last of an image counts.
 */
LTTNG_UST_TRACEPOINT_EVENT(tandem, process_end,
	LTTNG_UST_TP_ARGS(const char *, tdm_why, unsigned long, tdm_image,
		const struct tdm_call_counts *, tdm_counts),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(why, tdm_why)
		lttng_ust_field_integer(unsigned long, image, tdm_image)
		lttng_ust_field_integer(unsigned long, calls, tdm_counts->calls)
		lttng_ust_field_integer(unsigned long, entries, tdm_counts->entries)
		lttng_ust_field_integer(unsigned long, exits, tdm_counts->exits)
		lttng_ust_field_integer(unsigned long, no_exit, tdm_counts->no_exit)
		lttng_ust_field_integer(unsigned long, missed, tdm_counts->missed)
		lttng_ust_field_integer(unsigned long, not_chosen, tdm_counts->not_chosen)
		lttng_ust_field_integer(unsigned long, notes, tdm_counts->notes)))

LTTNG_UST_TRACEPOINT_EVENT(tandem, declined,
	LTTNG_UST_TP_ARGS(const char *, tdm_path, const char *, tdm_why),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(path, tdm_path)
		lttng_ust_field_string(why, tdm_why)))

#endif

#include <lttng/tracepoint-event.h>
/* clang-format on */
