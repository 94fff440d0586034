/* SPDX-License-Identifier: MIT */
/*
 * convert_trace.h - machines with their traces become one directory each, a CTF trace that Trace Compass analyses.
 */
#ifndef TANDEM_CONVERT_TRACE_H
#define TANDEM_CONVERT_TRACE_H

#include "selection.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/log.h>
#include <tandem/machines.h>
#include <tandem/names.h>
#include <tandem/status.h>

struct tdm_convert_options {
	const char *out_dir; /* exists */
	enum tdm_names_style style;
	bool synthetic; /* add the state dump and the sync pair that viewers need */
	bool force;     /* replace traces that are there */
	struct tdm_convert_selection selection;
	unsigned int thread_count; /* 0 = one a core */
	const volatile sig_atomic_t
		*stop; /* becomes non-zero: give up, leave nothing; may be NULL */
	/* Called some times a second from one thread; may be NULL. */
	void (*progress)(void *user, uint64_t event_count, size_t cpus_done, size_t cpu_count);
	void *user;
	const char *command; /* for the environment of the trace; may be NULL */
};

/* What became of one machine. */
struct tdm_convert_report {
	const struct tdm_machine *machine;
	char *path;            /* of the directory; owned; NULL where nothing was written */
	uint64_t records;      /* read */
	uint64_t events;       /* written, made-up ones not counted */
	uint64_t synthetic;    /* made up */
	uint64_t left_out;     /* not selected */
	uint64_t lost;         /* by the tracer, as far as it counted */
	uint64_t lost_unknown; /* losses that it did not count: one each in the trace's counter */
	uint64_t unreadable_pages, unreadable_bytes;
	uint64_t
		unconverted; /* records of unknown ids, undecodable formats, too short or too long */
	uint64_t bad_fields;   /* outside their records: written empty */
	uint64_t clamped;      /* times that went back: raised to the one before */
	uint64_t out_of_range; /* times that no clock of CTF can show: given the one before */
	int64_t bound_ns; /* how well the corrections know its clock at worst; -1 = nobody says; 0 = exact, or the host */
	size_t cpu_count;   /* stream files */
	bool has_sync_pair; /* of a guest: vmsync events were made up for it */
};

/**
 * Converts. All or nothing: where one machine fails, no directory appears.
 *
 * @param reports  Receives one for each machine, tdm_machines_count() of them, in order; the caller releases each.
 * @retval TDM_END     Stopped by options->stop.
 * @retval TDM_ERR_*   As @p err says.
 */
enum tdm_status tdm_convert_run(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_convert_report *reports, struct tdm_error *err);

void tdm_convert_report_release(struct tdm_convert_report *report);

#endif
