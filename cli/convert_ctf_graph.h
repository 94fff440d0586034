/* SPDX-License-Identifier: MIT */
/*
 * convert_ctf_graph.h - one CTF trace through the clock filter: source.ctf.fs, muxer, filter.tandem.clock, sink.ctf.fs.
 */
#ifndef TANDEM_CLI_CONVERT_CTF_GRAPH_H
#define TANDEM_CLI_CONVERT_CTF_GRAPH_H

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

struct convert_ctf_filter {
	const char *corrections; /* a file */
	const char *guest;
	int64_t epoch_ns; /* host reading + this = Unix time */
};

/**
 * @param from      Folder of the trace.
 * @param to        Folder that exists and is empty; receives metadata and streams.
 * @param report    Receives what was written.
 * @param metadata  Of @p from.
 */
enum tdm_status convert_ctf_graph(const struct cli_command *command, const char *from,
	const char *to, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, const struct tsdl_metadata *metadata,
	struct tdm_error *err);

#endif
