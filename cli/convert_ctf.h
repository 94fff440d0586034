/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf.h - CTF traces as inputs of tandem convert.
 *
 * A trace whose clock needs no correction, or one constant, is copied file by file and only its metadata is written
 * anew. Where the correction bends, or a part is chosen, the events go through a babeltrace2 graph.
 */
#ifndef TANDEM_CLI_CONVERT_CTF_H
#define TANDEM_CLI_CONVERT_CTF_H

#include "convert_options.h"
#include <trace_event_json.h>

/** @param fault  Says why, for CONVERT_FOLDER. */
enum convert_kind convert_kind_of(const char *path, struct tdm_error *fault);

struct convert_ctf; /* opaque: the machines whose traces are CTF */

/**
 * Looks at those inputs of a command line that are CTF: names them, finds their corrections. What cannot be read is told and
 * left out.
 *
 * @param ctf  Receives them, owned by the caller; NULL where none of them can be read.
 * @retval TDM_ERR_*  None can be read, or a corrections file cannot.
 */
enum tdm_status convert_ctf_open(const struct cli_command *command,
	const struct convert_options *options, struct convert_ctf **ctf, struct tdm_error *err);
void convert_ctf_close(struct convert_ctf *ctf);

/**
 * What the other machines of the conversion are to know: which corrections are taken, whether the host is here and what
 * makes Unix time of its readings.
 * @param machines  Options of theirs; their lists of corrections and offsets are shortened in place.
 */
void convert_ctf_fill(const struct convert_ctf *ctf, struct tdm_machines_options *machines,
	struct tdm_correction_input *corrections, struct tdm_offset_input *offsets);

/** Tells of another machine of the conversion: its name is taken, and it may be the host. */
void convert_ctf_note_machine(struct convert_ctf *ctf, const struct tdm_machine *machine);

/**
 * Converts into one folder each.
 *
 * @param dir  The output directory.
 * @return An exit status: done, failed (said) or incomplete (said).
 */
int convert_ctf_run(struct convert_ctf *ctf, const char *dir);

/** Writes the events into one file in the trace-event format; else as convert_ctf_run(). */
int convert_ctf_put_json(struct convert_ctf *ctf, struct tdm_json_file *file);

#endif
