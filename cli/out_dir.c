/* SPDX-License-Identifier: MIT */
#include "out_dir.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Makes each missing part of the path. */
static int make_dirs(const char *dir)
{
	char *path = strdup(dir);

	if (!path) {
		return ENOMEM;
	}
	for (char *at = path + 1; *at; at++) {
		if (*at == '/') {
			*at = '\0';
			if (mkdir(path, 0777) != 0 && errno != EEXIST) {
				break;
			}
			*at = '/';
		}
	}

	int failure = mkdir(path, 0777) == 0 ? 0 : errno;

	free(path);
	if (failure == EEXIST) {
		struct stat status;

		failure = stat(dir, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
	}
	return failure;
}

char *out_dir_create(const char *wanted, struct tdm_error *err)
{
	char by_time[64];

	if (!wanted) {
		const time_t now = time(NULL);
		struct tm local;

		localtime_r(&now, &local);
		strftime(by_time, sizeof(by_time), "tandem-%Y%m%d-%H%M%S", &local);
		wanted = by_time;
	}

	const int failure = *wanted ? make_dirs(wanted) : ENOENT;

	if (failure) {
		tdm_fail_errno(err, failure, "output directory \"%s\"", wanted);
		return NULL;
	}

	char *dir = strdup(wanted);

	if (!dir) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	return dir;
}

char *out_dir_path(const char *dir, const char *name, const char *suffix)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s%s", dir, name, suffix) < 0 ? NULL : path;
}

enum tdm_status out_dir_check_free(const char *path, bool force, struct tdm_error *err)
{
	struct stat status;

	if (force || lstat(path, &status) != 0) {
		return TDM_OK;
	}
	return tdm_fail(err, TDM_ERR_RANGE, "%s exists; --force overwrites it", path);
}

char *out_dir_create_beside(const char *wanted, const char *beside, struct tdm_error *err)
{
	char *path = NULL;
	char *made;

	if (!wanted && beside && asprintf(&path, "%s-tandem", beside) < 0) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a path");
		return NULL;
	}
	made = out_dir_create(path ? path : wanted, err);
	free(path);
	return made;
}
