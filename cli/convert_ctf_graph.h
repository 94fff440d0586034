/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf_graph.h - one CTF trace through a graph: source.ctf.fs, muxer, filter.tandem.clock, the choice, sink.ctf.fs.
 */
#ifndef TANDEM_CLI_CONVERT_CTF_GRAPH_H
#define TANDEM_CLI_CONVERT_CTF_GRAPH_H

#include "ctf_select.h"
#include "options.h"
#include <ctf_clone.h>
#include <limits.h>
#include <stdio.h>

/** DIR/NAME; a path that is too long becomes "", which no call can open. */
static inline void convert_ctf_join(char path[PATH_MAX], const char *dir, const char *name)
{
	const int length = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	if (length < 0 || length >= PATH_MAX) {
		path[0] = '\0';
	}
}

/* How the events of a trace are shown. */
struct convert_ctf_filter {
	const char *guest;
	const char *corrections; /* a file; NULL: none is needed */
	int64_t epoch_ns;        /* for that: host reading + this = Unix time */
	int64_t shift_ns;        /* else: added to every stamp */
	const struct tdm_convert_selection *selection;
	struct ctf_threads *threads; /* as in struct ctf_select */
};

/**
 * @param from      Folder of the trace.
 * @param to        Folder that exists and is empty; receives metadata and streams.
 * @param report    Receives what was written.
 * @param counts    Receives how many events came and were chosen.
 * @param metadata  Of @p from.
 */
enum tdm_status convert_ctf_graph(const struct cli_command *command, const char *from,
	const char *to, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, struct convert_ctf_counts *counts,
	const struct tsdl_metadata *metadata, struct tdm_error *err);

/**
 * Gives each event of a trace that is chosen to @p each.
 *
 * @param copy  A folder to be made for a copy without what cannot be read, and to be removed again.
 */
enum tdm_status convert_ctf_feed(const struct cli_command *command, const char *from,
	const char *copy, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, const struct tsdl_metadata *metadata,
	bool (*each)(void *user, const bt_message *message), void *user, struct tdm_error *err);

#endif
