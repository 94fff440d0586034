/* SPDX-License-Identifier: MIT */
/*
 * ctf_dir.h - the directory of one trace: filled under a temporary name, renamed when complete.
 */
#ifndef TANDEM_CTF_DIR_H
#define TANDEM_CTF_DIR_H

#include <stdbool.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

struct tdm_ctf_dir {
	char *final_path; /* OUT/NAME; owned */
	char *work_path;  /* OUT/NAME.partial while it is being filled; owned */
	int lock_fd;      /* holds the lock on it */
	bool force;
};

/**
 * Makes OUT/NAME.partial. One that a converter left behind when it was killed is emptied and taken over; one that is
 * being written by another is refused.
 *
 * @param force  OUT/NAME may exist, if it is a trace (or empty): it is replaced in the end.
 * @retval TDM_ERR_RANGE  OUT/NAME exists and force is off, or is no trace.
 * @retval TDM_ERR_IO, TDM_ERR_NOMEM
 */
enum tdm_status tdm_ctf_dir_begin(struct tdm_ctf_dir *dir, const char *out, const char *name,
	bool force, struct tdm_error *err);

/** Writes a file in it. */
enum tdm_status tdm_ctf_dir_put(struct tdm_ctf_dir *dir, const char *name,
	const struct tdm_buffer *content, struct tdm_error *err);

/** Gives it its final name. */
enum tdm_status tdm_ctf_dir_commit(struct tdm_ctf_dir *dir, struct tdm_error *err);

/** Frees; a directory that was not committed is removed with all that is in it. */
void tdm_ctf_dir_release(struct tdm_ctf_dir *dir);

#endif
