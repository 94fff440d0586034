/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what "tandem doctor" finds: one line a check, with the remedy where something is amiss.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "options.h"
#include <limits.h>
#include <stdio.h>
#include <tandem/address.h>
#include <tandem/secret.h>

enum doctor_level {
	DOCTOR_OK,   /* works */
	DOCTOR_NOTE, /* works less well, or something that not everybody needs is not there */
	DOCTOR_BAD   /* a main thing does not work: the exit status says so, too */
};

struct doctor_finding {
	enum doctor_level level;
	const char *check;                      /* a word, static */
	char subject[TDM_MACHINE_NAME_MAX + 1]; /* the guest it is about; "" = this machine */
	char text[512];
	char remedy[320]; /* "" = none is needed */
};

struct doctor {
	struct cli_command command;
	const char *root;    /* where /proc, /sys and /dev are looked for: "" or --root */
	const char *subject; /* of findings that are added now; NULL = this machine */
	struct doctor_finding *findings; /* owned */
	size_t finding_count;
	bool lacks_memory; /* a finding was lost */
};

/** Adds a finding. @p remedy may be NULL, and is cut as the text is where it is too long. */
void doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
	const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

/** The path of a file of the machine that is looked at; @p path begins with '/'. */
const char *doctor_path(const struct doctor *doctor, const char *path, char room[PATH_MAX]);

/** Reads the begin of such a file, without its trailing newline. @return 0, or errno. */
int doctor_read(const struct doctor *doctor, const char *path, char *text, size_t room);

/** Is this the running machine, so that clocks and daemons can be asked themselves? */
static inline bool doctor_is_live(const struct doctor *doctor)
{
	return !*doctor->root;
}

/* The checks. */
void doctor_tracer(struct doctor *doctor);  /* tracefs, events, trace clocks */
void doctor_machine(struct doctor *doctor); /* clocksource, KVM, tsc-offset, vsock */
void doctor_tools(struct doctor *doctor);   /* plugin, LTTng, shared memory, privileges */

/**
 * A guest, by its agent: reached, round trips, Nagle's algorithm, quality of the clock. Takes some two seconds.
 *
 * @param clock  ftrace's name, for both ends.
 */
void doctor_guest(struct doctor *doctor, const struct tdm_address *address, const char *clock,
	const struct tdm_secret *secret);

/* What was found, in the order in which it was. */
void doctor_print_text(const struct doctor *doctor, FILE *out);
void doctor_print_json(const struct doctor *doctor, FILE *out);

#endif
