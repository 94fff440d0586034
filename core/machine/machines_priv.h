/* SPDX-License-Identifier: MIT */
/*
 * machines_priv.h - what machines.c and machine_tie.c share.
 */
#ifndef MACHINES_PRIV_H
#define MACHINES_PRIV_H

#include <tandem/machines.h>

struct entry {
	struct tdm_machine machine;
	char *path;
	char *guest_name; /* what its host's file calls it; NULL = nothing */
	struct tdm_timeline *timeline;
	char *corrections_path;
};

struct tdm_machines {
	const struct tdm_log *log;
	struct entry *entries;
	size_t count;
	size_t aside_count; /* entries behind those: not opened */
};

/** What the trace of an entry says of itself; NULL where it could not be opened. */
const struct tdm_trace_info *machines_info(const struct entry *entry);

/** Ties files by their ids and says which is the host: sets tie, is_host, reference and guest_name. */
void machines_choose_host(struct tdm_machines *machines, const struct tdm_machine_input *inputs,
	const struct tdm_machines_options *options);

/** Gives each machine the epoch offset of its host: corrections files tell it. */
void machines_spread_epoch(
	struct tdm_machines *machines, const struct tdm_machines_options *options);

/** Loads the corrections files, takes the offsets given by hand, and gives each to its machine. The traces are then to be opened again. */
enum tdm_status machines_load_corrections(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct tdm_error *err);

/** Says why the shift of a machine is not to be trusted, where its files show it. */
void machines_tell_doubt(const struct tdm_machines *machines, const struct entry *entry);

/** Says where the corrections that the user gave to a machine are of another clock, session or time than its trace. */
void machines_tell_misfit(const struct tdm_machines *machines, const struct entry *entry);

/** Says once what cannot be related, or fails where that was asked for. */
enum tdm_status machines_tell_unrelated(struct tdm_machines *machines,
	const struct tdm_machines_options *options, struct tdm_error *err);

#endif
