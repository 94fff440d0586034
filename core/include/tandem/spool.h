/* SPDX-License-Identifier: MIT */
/*
 * spool.h - bytes that cannot be sought in, kept in a file without a name: it is gone with the last descriptor.
 */
#ifndef TANDEM_SPOOL_H
#define TANDEM_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/status.h>

/** Makes one in the folder that TMPDIR names, else in /var/tmp, else /tmp. @return Its descriptor, or -1 with @p err filled. */
int tdm_spool_create(struct tdm_error *err);

/** @retval TDM_ERR_IO  The disk is full, for example. */
enum tdm_status tdm_spool_write(int fd, const void *bytes, size_t count, struct tdm_error *err);

/** Whether a path is what can be read but once: "-" (the standard input) or a FIFO. */
bool tdm_pipe_is_one(const char *path);

/**
 * Reads a pipe to its end, if that was not done before, and keeps what came until the process ends. Who opened the FIFO
 * first does not take its content from who opens it next: a path is opened to be probed and again to be read.
 *
 * Waits 10 seconds for a FIFO's writer, and for the end as long as it takes; a signal ends the wait.
 *
 * @retval TDM_ERR_IO  No writer came, or it cannot be read or kept; @p err names the path.
 */
enum tdm_status tdm_pipe_keep(const char *path, struct tdm_error *err);

/** A descriptor of what was kept, owned by the caller; -1: nothing was. */
int tdm_pipe_open_kept(const char *path);

#endif
