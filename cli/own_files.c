/* SPDX-License-Identifier: MIT */
#include "own_files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_folder_with(const char *folder, const char *file)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return access(path, R_OK) == 0;
}

bool own_files_find(const char *const *beside, size_t count, const char *configured,
	const char *file, char folder[PATH_MAX])
{
	char program[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length > 0) {
		program[length] = '\0';

		char *const slash = strrchr(program, '/');

		if (slash) {
			*slash = '\0';
		}
		for (size_t i = 0; i < count; i++) {
			char joined[2 * PATH_MAX];

			snprintf(joined, sizeof(joined), "%s/%s", program, beside[i]);
			if (realpath(joined, folder) && is_folder_with(folder, file)) {
				return true;
			}
		}
	}
	snprintf(folder, PATH_MAX, "%s", configured);
	return is_folder_with(folder, file);
}
