/* SPDX-License-Identifier: MIT */
/*
 * names_priv.h - shared inside core/names: what the table answers.
 */
#ifndef TANDEM_NAMES_PRIV_H
#define TANDEM_NAMES_PRIV_H

#include <tandem/names.h>

/* Which machine's rules hold. */
enum tdm_machine {
	TDM_MACHINE_OTHER,
	TDM_MACHINE_X86_64,
	TDM_MACHINE_I386,
	TDM_MACHINE_ARM64
};

enum tdm_machine tdm_names_machine(const char *architecture, unsigned int long_bytes);

/* Table of system call names of a machine; NULL if there is none. */
const struct tdm_syscall_table *tdm_names_syscall_table(enum tdm_machine machine);

/**
 * LTTng's name of an event.
 * @param room  room_bytes for a name that has to be put together.
 * @return Either a constant, @p room, or @p event_class's own name.
 */
const char *tdm_lttng_event_name(const struct tdm_event_class *event_class,
	enum tdm_machine machine, char *room, size_t room_bytes);

/* What LTTng's names make of one field. */
struct tdm_lttng_field {
	const char *name;
	enum tdm_conversion conversion;
};

struct tdm_lttng_field tdm_lttng_field(
	const struct tdm_event_class *event_class, const struct tdm_field *field);

#endif
