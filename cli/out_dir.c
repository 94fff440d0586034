/* SPDX-License-Identifier: MIT */
#include "out_dir.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	NUMBER_MAX = 1000
};

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

/* A new folder named after the time; the second one of the same second gets a number. */
static int make_by_time(char name[64])
{
	const time_t now = time(NULL);
	struct tm local;
	int failure = EEXIST;

	localtime_r(&now, &local);

	const size_t length = strftime(name, 48, "tandem-%Y%m%d-%H%M%S", &local);

	for (unsigned int number = 2; failure == EEXIST && number < NUMBER_MAX; number++) {
		failure = mkdir(name, 0777) == 0 ? 0 : errno;
		if (failure == EEXIST) {
			snprintf(name + length, 64 - length, "-%u", number);
		}
	}
	return failure;
}

char *out_dir_create(const char *wanted, struct tdm_error *err)
{
	char by_time[64];
	int failure;

	if (wanted) {
		failure = *wanted ? make_dirs(wanted) : ENOENT;
	} else {
		failure = make_by_time(by_time);
		wanted = by_time;
	}

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
