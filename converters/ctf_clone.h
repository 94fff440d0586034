/* SPDX-License-Identifier: MIT */
/*
 * ctf_clone.h - the stream files of a CTF trace, copied at the speed of files: shared blocks where the file system
 * can, else copied inside the kernel.
 *
 * Packets without events are left out: a viewer stops reading a file at one. An index stays only where its stream was
 * copied as it is.
 */
#ifndef TANDEM_CTF_CLONE_H
#define TANDEM_CTF_CLONE_H

#include "tsdl.h"
#include <tandem/log.h>

/* The traces below a folder, each the path of its own folder. */
struct tdm_ctf_list {
	char **paths; /* owned, as are the texts */
	size_t count;
};

/** Finds them, in order of their names. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_list_find(
	const char *root, struct tdm_ctf_list *list, struct tdm_error *err);
/** Adds one that is known to be a trace's. @retval TDM_ERR_NOMEM */
enum tdm_status tdm_ctf_list_add(
	struct tdm_ctf_list *list, const char *path, struct tdm_error *err);
void tdm_ctf_list_release(struct tdm_ctf_list *list);

struct tdm_ctf_clone_report {
	uint64_t stream_count, bytes; /* written */
	uint64_t packets;
	uint64_t empty_packets; /* left out */
	uint64_t idle_streams;  /* without any event: left out */
	uint64_t damaged_bytes; /* behind the last whole packet of a file: left out */
};

/**
 * Copies everything of a trace but its metadata.
 *
 * @param from, to  Folders; @p to exists.
 * @retval TDM_ERR_IO, TDM_ERR_NOMEM  @p to is incomplete.
 */
enum tdm_status tdm_ctf_clone(const char *from, const char *to,
	const struct tsdl_metadata *metadata, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, struct tdm_error *err);

#endif
