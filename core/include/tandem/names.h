/* SPDX-License-Identifier: MIT */
/*
 * names.h - under which names and with which values events are shown: the kernel's own, or those of LTTng.
 *
 * One table serves everybody who shows events, so that all ways out of Tandem agree. The table itself, with who needs
 * which line of it, is in core/names/names_lttng.c and docs/trace-compass.md.
 */
#ifndef TANDEM_NAMES_H
#define TANDEM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/schema.h>
#include <tandem/status.h>

enum tdm_names_style {
	TDM_NAMES_LTTNG,  /* names and values as LTTng's kernel tracer has them */
	TDM_NAMES_FTRACE, /* names and values as the tracer wrote them */
};

/* How the shown value follows from the field's bytes. */
enum tdm_conversion {
	TDM_CONVERT_NONE, /* as it is */
	TDM_CONVERT_PRIO, /* an integer, 100 less: LTTng counts priorities from the lowest real-time one */
	TDM_CONVERT_RWBS, /* text of block flags becomes LTTng's flags: tdm_names_rwbs(), an unsigned 32-bit integer */
};

/* One field as it is shown. */
struct tdm_shown_field {
	/* Where its bytes are and what they are, ready for tdm_field_span(); name and unique_name are the shown ones. Of a
	 * converted field this tells the bytes before conversion. */
	struct tdm_field field;
	enum tdm_conversion conversion;
};

/* One event class as it is shown. One class of the tracer can be shown as many (a system call for each number). */
struct tdm_shown_class {
	uint32_t index; /* dense, in order of creation: the place in tdm_names_at() */
	const char *name;
	const struct tdm_event_class *source;
	const struct tdm_shown_field *fields; /* without the common fields, in the order shown */
	uint32_t field_count;
};

struct tdm_names; /* opaque */

/**
 * Makes the shown classes of all classes that a schema has now.
 *
 * @param schema        Borrowed; must outlive the result.
 * @param architecture  Machine of the trace as uname has it ("x86_64", "aarch64", "i686"); chooses the table of system
 *                      calls. NULL: by the length of the kernel's long.
 * @return Owned by the caller; NULL without memory.
 */
struct tdm_names *tdm_names_create(
	const struct tdm_schema *schema, enum tdm_names_style style, const char *architecture);
void tdm_names_destroy(struct tdm_names *names);

/**
 * The shown class of a record. O(1), any number of threads.
 *
 * @param event_class    Of the record.
 * @param payload        The record; decides which system call it is.
 * @return NULL where the schema got the class later, or it has a fault.
 */
const struct tdm_shown_class *tdm_names_class(const struct tdm_names *names,
	const struct tdm_event_class *event_class, const uint8_t *payload, uint32_t payload_bytes);

size_t tdm_names_count(const struct tdm_names *names);
const struct tdm_shown_class *tdm_names_at(const struct tdm_names *names, size_t index);

/* How the records of one class of the tracer are told apart: by a number in them. */
struct tdm_names_choice {
	bool by_number;                          /* false: all are shown as fallback */
	uint32_t offset_bytes, size_bytes;       /* of the number, signed */
	const struct tdm_shown_class *const *by; /* table_count classes, NULL = fallback */
	size_t table_count;
	const struct tdm_shown_class *fallback; /* NULL: not shown (a fault, or unknown) */
};

/** The choice that tdm_names_class() makes, for who wants to compile it. */
struct tdm_names_choice tdm_names_get_choice(
	const struct tdm_names *names, const struct tdm_event_class *event_class);

enum {
	TDM_MEMBER_NAME_BYTES = 256, /* with the NUL */
	TDM_COMMON_FIELDS_MAX = 8    /* kernels have two to four beside the pid */
};

/**
 * What a member of a structure is called: PREFIX WANTED SUFFIX as a C identifier, numbered as often as @p is_taken says
 * yes. Readers of CTF take no other names, and babeltrace2 ends a program that gives one twice. A name made with the
 * prefix "_" and the suffix "_length" is never the same as the name that it was made of.
 *
 * @param wanted    Any bytes; "field" where it is empty.
 * @param is_taken  Asked with @p user for each name that is tried.
 */
void tdm_member_name(const char *prefix, const char *wanted, const char *suffix,
	bool (*is_taken)(const void *user, const char *name), const void *user,
	char name[TDM_MEMBER_NAME_BYTES]);

/* One of the fields that all events of a kernel have, as a member of the events' context. */
struct tdm_common_field {
	char name[TDM_MEMBER_NAME_BYTES]; /* unique in the context */
	const struct tdm_field
		*field; /* of the first class that has some: its type and size are the member's */
};

/**
 * The common fields that are shown: integers at fixed places, without the pid, which is the context's "tid".
 * @return How many; the first that the schema has, where it has more than @p fields holds.
 */
size_t tdm_common_fields(
	const struct tdm_schema *schema, struct tdm_common_field fields[TDM_COMMON_FIELDS_MAX]);

/** The same field of another class; NULL where it has none, or one of another size: it is shown as 0. */
const struct tdm_field *tdm_common_field_of(
	const struct tdm_event_class *event_class, const struct tdm_common_field *common);

/** Whether a field is the address of a format text, which is shown in its place: "fmt" of bprint and bputs. */
bool tdm_shown_is_printk(
	const struct tdm_shown_class *shown_class, const struct tdm_shown_field *shown);

/** LTTng's integer for the text of block flags ("WS", "RA", "FWFS"): bit 0 write, 1 discard, 2 read, 3 read-ahead,
 * 5 sync, 6 metadata, 7 secure, 8 flush, 9 FUA, 10 preflush. */
uint32_t tdm_names_rwbs(const uint8_t *text, size_t text_bytes);

/** Name of a system call by number, or NULL. @p architecture as for tdm_names_create(), not NULL. */
const char *tdm_names_syscall(const char *architecture, uint64_t number);

/** Arguments of a call by name, or NULL: a kind letter (d int, u unsigned, D long, U unsigned long, p pointer) and the
 * name each, a blank between. */
const char *tdm_names_syscall_arguments(const char *name);

#endif
