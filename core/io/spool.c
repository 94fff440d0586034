/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/spool.h>
#include <unistd.h>

int tdm_spool_create(struct tdm_error *err)
{
	const char *const wanted = getenv("TMPDIR");
	const char *const folders[] = { wanted && *wanted ? wanted : "/var/tmp", "/var/tmp",
		"/tmp" };
	int reason = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[4096];
		int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

		if (fd < 0) {
			/* Not every file system can do that: a name that is taken away at once serves too. */
			snprintf(path, sizeof(path), "%s/tandem-spool-XXXXXX", folders[i]);
			fd = mkostemp(path, O_CLOEXEC);
			if (fd >= 0) {
				unlink(path);
			}
		}
		if (fd >= 0) {
			return fd;
		}
		reason = errno;
	}
	tdm_fail_errno(err, reason,
		"no temporary file can be made (TMPDIR names its folder), and data that is compressed or "
		"comes through a pipe needs one");
	return -1;
}

enum tdm_status tdm_spool_write(int fd, const void *bytes, size_t count, struct tdm_error *err)
{
	const uint8_t *from = bytes;

	while (count) {
		const ssize_t done = write(fd, from, count);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done < 0) {
			return tdm_fail_errno(
				err, errno, "writing a temporary file (TMPDIR names its folder)");
		}
		from += done;
		count -= (size_t)done;
	}
	return TDM_OK;
}
