/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void join(char *path, size_t room, const char *root, const char *name)
{
	snprintf(path, room, name ? "%s/%s" : "%s", root, name);
}

const char *tdm_tap_find_tracefs(struct tdm_error *err)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[PATH_MAX];
	int first_errno = 0;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			join(path, sizeof(path), places[i], "trace_clock");
			if (access(path, R_OK) == 0) {
				return places[i];
			}
			if (!first_errno && errno != ENOENT) {
				first_errno = errno;
			}
		}
		if (round == 0 && mount("tracefs", places[0], "tracefs", 0, NULL) != 0) {
			break;
		}
	}
	if (first_errno) {
		tdm_fail_errno(err, first_errno, "tracefs at %s", places[0]);
	} else {
		tdm_fail(err, TDM_ERR_IO, "no tracefs: mount -t tracefs tracefs %s (as root)",
			places[0]);
	}
	return NULL;
}

enum tdm_status tracefs_read(const char *root, const char *name, size_t max_bytes,
	struct tdm_buffer *text, struct tdm_error *err)
{
	enum {
		STEP_BYTES = 1 << 16
	};

	const size_t start = text->size;
	char path[PATH_MAX];

	join(path, sizeof(path), root, name);

	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s", path);
	}

	enum tdm_status status = TDM_OK;

	for (;;) {
		if (text->size - start > max_bytes ||
			tdm_buffer_reserve(text, STEP_BYTES) != TDM_OK) {
			status =
				tdm_fail(err, TDM_ERR_NOMEM, "%s: over %zu bytes", path, max_bytes);
			break;
		}

		const ssize_t done = read(fd, text->bytes + text->size, STEP_BYTES);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done < 0) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
		if (done <= 0) {
			break;
		}
		text->size += (size_t)done;
	}
	close(fd);
	return status;
}

enum tdm_status tracefs_write(
	const char *root, const char *name, const char *value, bool append, struct tdm_error *err)
{
	char path[PATH_MAX];

	join(path, sizeof(path), root, name);

	const int fd = open(path, O_WRONLY | O_CLOEXEC | (append ? O_APPEND : O_TRUNC));

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s", path);
	}

	const ssize_t done = write(fd, value, strlen(value));
	const int write_errno = errno;

	close(fd);
	if (done < 0) {
		return tdm_fail_errno(err, write_errno, "writing \"%s\" to %s", value, path);
	}
	return TDM_OK;
}
