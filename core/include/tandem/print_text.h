/* SPDX-License-Identifier: MIT */
/*
 * print_text.h - events as people read them, by libtraceevent: the text that trace-cmd prints, and names of values.
 *
 * Opt-in: the library parses the "print fmt" of the input's format texts, which nothing else here looks at. Where it
 * fails on one, nothing is lost but its text: each is tried in a child process first, and records whose values it would not
 * survive are not given to it. The library never writes to the standard error stream.
 */
#ifndef TANDEM_PRINT_TEXT_H
#define TANDEM_PRINT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/schema.h>
#include <tandem/trace.h>

struct tdm_print_text; /* opaque; not thread-safe */

/**
 * @param trace  Borrowed; must outlive the result. Its kallsyms, printk formats and command lines are read when the first
 *               text is asked for.
 * @return Owned by the caller; NULL without memory.
 */
struct tdm_print_text *tdm_print_text_create(struct tdm_trace *trace);
void tdm_print_text_destroy(struct tdm_print_text *print);

/**
 * The text of a record as "trace-cmd report" shows it behind the event's name, kernel addresses resolved.
 *
 * @param size_bytes  Receives the length, without NUL. Bytes may be any.
 * @return The text, valid until the next call; NULL where the library cannot print the event.
 */
const char *tdm_print_text_of(struct tdm_print_text *print,
	const struct tdm_event_class *event_class, const uint8_t *payload, uint32_t payload_bytes,
	uint32_t cpu, uint64_t time_ns, size_t *size_bytes);

/* A value that the kernel names. */
struct tdm_value_name {
	uint64_t value; /* of flags: the bits */
	const char *name;
};

/**
 * The names that the format gives to values of a field (__print_symbolic, __print_flags).
 *
 * @param field_name  As in the format text.
 * @param names       Receives the names; they live as long as @p print.
 * @return Their number; 0 where the field has none.
 */
size_t tdm_print_text_value_names(struct tdm_print_text *print,
	const struct tdm_event_class *event_class, const char *field_name,
	const struct tdm_value_name **names);

#endif
