/* SPDX-License-Identifier: MIT */
/*
 * view_inputs.h - the inputs of a view: what kind each is, whose machine, and which correction belongs to it.
 */
#ifndef CLI_VIEW_INPUTS_H
#define CLI_VIEW_INPUTS_H

#include "view_options.h"
#include <limits.h>

enum view_input_kind {
	VIEW_TRACEDAT,   /* trace.dat */
	VIEW_PERF,       /* perf.data */
	VIEW_CTF,        /* a directory with CTF traces in it */
	VIEW_LIVE_LTTNG, /* net://, net4://, net6:// */
	VIEW_LIVE_TANDEM /* tandem:// */
};

struct view_input {
	enum view_input_kind kind;
	char name[TDM_MACHINE_NAME_MAX + 1]; /* of its machine */
	const char *path;                    /* or URL; borrowed */
	bool is_named;                       /* by the user */
	bool is_host;
	char corrections[PATH_MAX]; /* file, service, or "offset:NS"; "" = none */
	bool is_found;              /* corrections: beside the traces, and held against them */
	bool is_unreadable;         /* told; the others are shown without it */
};

struct view_inputs {
	struct view_input *items; /* owned; in the user's order */
	size_t count;
	bool only_tracedat; /* source.tandem.tracedat relates them by itself */
};

/**
 * Reads inputs that are pipes to their ends; from then on they are files that can be opened again, by the plugin too, which
 * knows nothing of this program's memory. To be called when the list is complete.
 *
 * @retval TDM_ERR_IO  One cannot be read or kept.
 */
enum tdm_status view_inputs_keep_pipes(struct cli_named_list *inputs, struct tdm_error *err);

/**
 * Looks at the inputs. Corrections are those that the user named, else NAME.corrections beside the input or the host's, where
 * it fits both; what does not is told.
 *
 * @retval TDM_ERR_RANGE   Corrections for a machine that is not there.
 */
enum tdm_status view_inputs_read(const struct view_options *options, struct view_inputs *inputs,
	const struct tdm_log *log, struct tdm_error *err);

/** Opens a trace.dat or perf.data once, to say early whether that works; any other input is TDM_OK. */
enum tdm_status view_input_try(const struct view_input *input, struct tdm_error *err);
void view_inputs_release(struct view_inputs *inputs);

/* CTF traces below a directory, as babeltrace2's own command line finds them. */
struct view_ctf {
	bt_value *inputs;    /* an array of directories that are one trace; owned */
	char group[128];     /* of source.ctf.fs; "" = alone */
	uint64_t port_count; /* output ports of source.ctf.fs for it */
};

struct view_ctf_list {
	struct view_ctf *items; /* owned */
	size_t count;
};

/** Looks only, opens none. @retval TDM_ERR_FORMAT None: @p err says what is there instead. */
enum tdm_status view_ctf_is_there(const char *dir, struct tdm_error *err);

/** Finds them and opens each once to learn its ports. @retval TDM_ERR_FORMAT None, or one that cannot be read. */
enum tdm_status view_ctf_find(const char *dir, struct view_ctf_list *list, struct tdm_error *err);
void view_ctf_release(struct view_ctf_list *list);

/**
 * The parameters with which source.ctf.fs reads one trace.
 *
 * @param name  The trace is called so; NULL: as it calls itself.
 * @return Owned by the caller; NULL without memory.
 */
bt_value *view_ctf_params(const struct view_ctf *ctf, const char *name, int64_t clock_offset_ns);

#endif
