/* SPDX-License-Identifier: MIT */
#include "plugin_find.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_FILE "babeltrace-plugin-tandem.so"

static bool has_plugin(const char *folder)
{
	char path[PATH_MAX + sizeof(PLUGIN_FILE) + 1];

	snprintf(path, sizeof(path), "%s/" PLUGIN_FILE, folder);
	return access(path, R_OK) == 0;
}

bool plugin_find_folder(char folder[PATH_MAX])
{
	static const char *const beside[] = { "../plugin", "../lib/babeltrace2/plugins",
		"../" TANDEM_LIBDIR "/babeltrace2/plugins" };
	char program[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length > 0) {
		program[length] = '\0';

		char *const slash = strrchr(program, '/');

		if (slash) {
			*slash = '\0';
		}
		for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
			char joined[2 * PATH_MAX];

			snprintf(joined, sizeof(joined), "%s/%s", program, beside[i]);
			if (realpath(joined, folder) && has_plugin(folder)) {
				return true;
			}
		}
	}
	snprintf(folder, PATH_MAX, "%s", TANDEM_PLUGIN_DIR);
	return has_plugin(folder);
}
