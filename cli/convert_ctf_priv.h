/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf_priv.h - shared by the parts of a conversion from CTF: its machines.
 */
#ifndef TANDEM_CLI_CONVERT_CTF_PRIV_H
#define TANDEM_CLI_CONVERT_CTF_PRIV_H

#include "convert_ctf.h"
#include "convert_ctf_graph.h"
#include <ctf_dir.h>
#include <ctf_list.h>
#include <limits.h>
#include <tandem/timeline.h>

#define NS_PER_S INT64_C(1000000000)

/* One machine whose traces are CTF. */
struct ctf_machine {
	char name[TDM_MACHINE_NAME_MAX + 1];
	const char *path;
	bool is_host;
	struct tdm_ctf_list traces;
	int64_t epoch_ns;    /* of its own clock */
	char uuid[37];       /* of its own clock; "" = none */
	char clock_name[64]; /* "" = none */
	char new_uuid[37];   /* "" = its own stays */
	struct tdm_timeline *timeline;
	const char *corrections; /* file of the timeline; NULL: given as an offset */
	char beside[PATH_MAX];   /* the same, where it was found and not named */
	struct tdm_ctf_dir dir;
	struct tdm_ctf_clone_report report;
	struct convert_ctf_counts counts;
	bool through_graph;
	bool has_user_calls; /* system calls that tandem recorded, left as they are */
	uint64_t bound_ns;
	uint64_t unread_traces; /* told */
};

struct convert_ctf {
	const struct cli_command *command;
	const struct convert_options *options;
	struct ctf_machine *machines;
	size_t count;
	char (*taken)[TDM_MACHINE_NAME_MAX + 1]; /* names of machines that are no CTF */
	size_t taken_count;
	bool has_host_epoch; /* a host is known, here or among the others */
	int64_t host_epoch_ns;
	bool has_host;         /* here */
	uint64_t unread_count; /* inputs that could not be read: told */
	bool is_mixed;         /* there are other machines */
};

/** The metadata of a trace as text and as types; both to be released in either case. */
enum tdm_status convert_ctf_metadata(const char *trace, struct tdm_buffer *text,
	struct tsdl_metadata *metadata, struct tdm_error *err);

/** The Unix time of a reading 0 of a clock, modulo 2^64, whatever a file says. */
int64_t convert_ctf_clock_epoch(const struct tsdl_clock *clock);

/** The Unix time of a reading 0 of the clock that this machine's stamps are put on. */
int64_t convert_ctf_epoch(const struct convert_ctf *ctf, const struct ctf_machine *machine);

/** How a graph is to show a trace of the machine. */
struct convert_ctf_filter convert_ctf_filter_of(const struct convert_ctf *ctf,
	const struct ctf_machine *machine, const struct tsdl_metadata *metadata);

/** Says why the result is not all of the input. @return Whether it is not. */
bool convert_ctf_say_faults(const struct convert_ctf *ctf, const struct ctf_machine *machine);

#endif
