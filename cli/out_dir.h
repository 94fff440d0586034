/* SPDX-License-Identifier: MIT */
/*
 * out_dir.h - the directory that -o names, and the rule that nothing in it is overwritten unasked.
 */
#ifndef TANDEM_CLI_OUT_DIR_H
#define TANDEM_CLI_OUT_DIR_H

#include <stdbool.h>
#include <tandem/status.h>

/**
 * The directory for a command's output: @p wanted, or "tandem-" and the local time. Made where it is missing.
 *
 * @param wanted  What -o said; NULL = nothing. Borrowed.
 * @return A path that the caller frees, or NULL with @p err filled.
 */
char *out_dir_create(const char *wanted, struct tdm_error *err);

/**
 * Where a command's output goes that follows another tracer's session: beside its output, "PATH-tandem".
 *
 * @param beside  Path of the session's output; NULL = on no disk of this machine.
 * @return As out_dir_create(), of which it is one with @p wanted or without @p beside.
 */
char *out_dir_create_beside(const char *wanted, const char *beside, struct tdm_error *err);

/**
 * DIR/NAMESUFFIX, e.g. "out/web" ".corrections".
 *
 * @return A path that the caller frees; NULL without memory.
 */
char *out_dir_path(const char *dir, const char *name, const char *suffix);

/**
 * Refuses where the path exists and @p force is off.
 *
 * @retval TDM_ERR_RANGE  It exists; @p err names it and --force.
 */
enum tdm_status out_dir_check_free(const char *path, bool force, struct tdm_error *err);

#endif
