/* SPDX-License-Identifier: MIT */
#include "plugin_find.h"
#include "own_files.h"

bool plugin_find_folder(char folder[PATH_MAX])
{
	static const char *const beside[] = { "../plugin", "../lib/babeltrace2/plugins",
		"../" TANDEM_LIBDIR "/babeltrace2/plugins" };

	return own_files_find(beside, sizeof(beside) / sizeof(beside[0]), TANDEM_PLUGIN_DIR,
		"babeltrace-plugin-tandem.so", folder);
}
