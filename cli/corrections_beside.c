/* SPDX-License-Identifier: MIT */
#include "corrections_beside.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool corrections_beside(const char *beside, const char *name, char found[PATH_MAX])
{
	size_t end = strlen(beside);
	struct stat about;
	const int levels = stat(beside, &about) == 0 && S_ISDIR(about.st_mode) ? 2 : 1;

	for (int up = 0; up < levels; up++) {
		while (end > 1 && beside[end - 1] == '/') {
			end--;
		}
		while (end > 0 && beside[end - 1] != '/') {
			end--;
		}
		if (snprintf(found, PATH_MAX, "%.*s%s.corrections", (int)end, beside, name) <
				PATH_MAX &&
			access(found, R_OK) == 0) {
			return true;
		}
		/* ".../guest/kernel" given: the file lies beside "guest". */
		if (end == 0) {
			break;
		}
	}
	*found = '\0';
	return false;
}
