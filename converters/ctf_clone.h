/* SPDX-License-Identifier: MIT */
/*
 * ctf_clone.h - the stream files of a CTF trace, copied at the speed of files: shared blocks where the file system
 * can, else copied inside the kernel.
 *
 * Packets without events are left out, for a viewer stops reading a file at one; so is what cannot be read. An index stays
 * only where its stream was copied as it is and where it fits.
 */
#ifndef TANDEM_CTF_CLONE_H
#define TANDEM_CTF_CLONE_H

#include "tsdl.h"
#include <tandem/log.h>

struct tdm_ctf_clone_report {
	uint64_t stream_count, bytes; /* written */
	uint64_t packets, events;
	uint64_t empty_packets;   /* left out */
	uint64_t idle_streams;    /* without any event: left out */
	uint64_t damaged_packets; /* left out, in part or whole, or set right */
	uint64_t damaged_bytes;   /* that make no sense: left out */
	uint64_t unread_files;    /* that could not be opened: left out */
	uint64_t stale_indexes;   /* left out */
};

/** Fields whose values it needs: for tsdl_parse(). */
extern const char *const tdm_ctf_clone_fields[];

/**
 * Copies everything of a trace but its metadata.
 *
 * @param from, to  Folders; @p to exists.
 * @retval TDM_ERR_IO, TDM_ERR_NOMEM  @p to is incomplete: it could not be written.
 */
enum tdm_status tdm_ctf_clone(const char *from, const char *to,
	const struct tsdl_metadata *metadata, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, struct tdm_error *err);

#endif
