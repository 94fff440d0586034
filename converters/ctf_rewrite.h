/* SPDX-License-Identifier: MIT */
/*
 * ctf_rewrite.h - the metadata of a CTF trace that somebody else wrote, with a few words changed and all else kept.
 */
#ifndef TANDEM_CTF_REWRITE_H
#define TANDEM_CTF_REWRITE_H

#include "ctf_metadata.h"

/* What is to be changed; zero-initialised: nothing. */
struct tdm_ctf_changes {
	bool sets_offset;
	int64_t clock_offset_ns; /* for clocks of 1 GHz */
	const char *clock_uuid;  /* NULL: stays */
	bool makes_absolute;     /* clocks say that they are set: babeltrace2 merges no others */
	/* System calls that were recorded in user space become the kernel's: "tandem:syscall_..." loses its prefix, vtid and
	 * vpid become tid and pid, the environment says what a kernel tracer's would. */
	bool as_kernel;
	bool one_clock; /* the first clock is everybody's: sink.ctf.fs writes one for each stream class */
	bool plain_cpu_id; /* "_cpu_id" of a packet context becomes "cpu_id", which some views look for */
	const struct tdm_ctf_env *env; /* to be added */
	size_t env_count;
};

/**
 * Appends the changed text, without packets, beginning with the line that tells CTF 1.8.
 * @retval TDM_ERR_NOMEM, TDM_ERR_FORMAT  No memory; or there is no clock whose offset could be set.
 */
enum tdm_status tdm_ctf_rewrite(const char *path, const struct tdm_buffer *text,
	const struct tdm_ctf_changes *changes, struct tdm_buffer *out, struct tdm_error *err);

#endif
