/* SPDX-License-Identifier: MIT */
/*
 * plugin_find.h - where this program's own babeltrace2 plugin lies: beside it in the build tree, else installed.
 */
#ifndef CLI_PLUGIN_FIND_H
#define CLI_PLUGIN_FIND_H

#include <limits.h>
#include <stdbool.h>

/**
 * The folder that holds babeltrace-plugin-tandem.so.
 *
 * Looked for in order: ../plugin beside the program (build tree), ../lib/babeltrace2/plugins and
 * ../lib/TRIPLET/babeltrace2/plugins beside it (any prefix), the folder that was configured.
 *
 * @param folder  Receives it, an absolute path.
 * @return False where there is none; @p folder then is the configured one.
 */
bool plugin_find_folder(char folder[PATH_MAX]);

#endif
