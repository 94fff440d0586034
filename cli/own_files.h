/* SPDX-License-Identifier: MIT */
/*
 * own_files.h - where files that belong to this program lie: beside it in the build tree or a prefix, else installed.
 */
#ifndef CLI_OWN_FILES_H
#define CLI_OWN_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * The folder that holds a file.
 *
 * @param beside      @p count folders, relative to the program's; looked at in order.
 * @param configured  The folder that comes last.
 * @param folder      Receives it, an absolute path.
 * @return False where there is none; @p folder then is the configured one.
 */
bool own_files_find(const char *const *beside, size_t count, const char *configured,
	const char *file, char folder[PATH_MAX]);

#endif
