/* SPDX-License-Identifier: MIT */
/*
 * convert_options.h - the command line of tandem convert.
 */
#ifndef TANDEM_CLI_CONVERT_OPTIONS_H
#define TANDEM_CLI_CONVERT_OPTIONS_H

#include "options.h"
#include <convert_trace.h>
#include <tandem/machines.h>

enum convert_kind {
	CONVERT_RECORDS, /* trace.dat, perf.data, or what cannot be told from them */
	CONVERT_CTF,     /* a folder with CTF traces in it */
	CONVERT_FOLDER   /* a folder with nothing that can be converted */
};

struct convert_options {
	const char *out_dir; /* NULL: by the time */
	bool to_json;
	bool as_kernel; /* for CTF of our own system-call recordings; other inputs are kernel traces anyway */
	bool has_target;
	uint64_t target_bound_ns;
	struct tdm_convert_options convert;
	struct tdm_machines_options machines;
	struct tdm_machine_input *inputs;
	enum convert_kind *kinds; /* of the inputs; set by convert.c */
	size_t input_count;
	/* Owners of what the above points at. */
	struct cli_named_list input_list, correction_list;
	struct tdm_correction_input *corrections;
	struct tdm_offset_input *offsets;
	char (*offset_names)[TDM_MACHINE_NAME_MAX + 1];
	const char **globs;
	uint32_t *cpu_ranges;
	bool *glob_fits, *cpu_range_fits;
	struct tdm_nearest *glob_nearest;
};

/** @return -1: go on; else the exit status. @p options is to be released in either case. */
int convert_options_parse(
	struct convert_options *options, struct cli_command *command, int argc, char **argv);
void convert_options_release(struct convert_options *options);

#endif
