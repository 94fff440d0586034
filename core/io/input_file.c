/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/input_file.h>
#include <tandem/spool.h>
#include <unistd.h>

enum tdm_status tdm_input_file_open(
	const char *path, struct tdm_input_file **file, struct tdm_error *err)
{
	struct tdm_input_file *opened = calloc(1, sizeof(*opened));
	enum tdm_status status;
	struct stat about;

	if (!opened || !(opened->path = strdup(path))) {
		free(opened);
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory", path);
	}
	opened->fd = tdm_pipe_open_kept(path);
	if (opened->fd < 0) {
		/* A FIFO without a writer would block for ever: look at the type first. */
		opened->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (opened->fd < 0 || fstat(opened->fd, &about) != 0) {
		status = tdm_fail_errno(err, errno, "%s", path);
		goto out;
	}
	if (!S_ISREG(about.st_mode)) {
		status = tdm_fail(err, TDM_ERR_IO, "%s: not a regular file", path);
		goto out;
	}
	opened->size_bytes = (uint64_t)about.st_size;
	*file = opened;
	return TDM_OK;
out:
	tdm_input_file_close(opened);
	return status;
}

void tdm_input_file_close(struct tdm_input_file *file)
{
	if (!file) {
		return;
	}
	if (file->fd >= 0) {
		close(file->fd);
	}
	free(file->path);
	free(file);
}

enum tdm_status tdm_input_file_read(const struct tdm_input_file *file, uint64_t offset, void *bytes,
	size_t size, size_t *got, struct tdm_error *err)
{
	*got = 0;
	if (offset > INT64_MAX || size > INT64_MAX - offset) {
		return TDM_OK;
	}
	while (*got < size) {
		const ssize_t count = pread(
			file->fd, (uint8_t *)bytes + *got, size - *got, (off_t)(offset + *got));

		if (count == 0) {
			break;
		}
		if (count < 0) {
			if (errno == EINTR) {
				continue;
			}
			return tdm_fail_errno(err, errno, "%s: reading %zu bytes at 0x%" PRIx64,
				file->path, size, offset);
		}
		*got += (size_t)count;
	}
	return TDM_OK;
}

uint64_t tdm_input_file_next_data(const struct tdm_input_file *file, uint64_t offset)
{
	off_t found;

	if (offset >= file->size_bytes || offset > INT64_MAX) {
		return offset;
	}
	/* Moves the file's own position, which nobody uses: all reads are at offsets. */
	found = lseek(file->fd, (off_t)offset, SEEK_DATA);
	if (found < 0 && errno == ENXIO) {
		struct stat now;

		/* A hole up to the end; or the file was cut since it was opened, which reading tells. */
		return fstat(file->fd, &now) == 0 && (uint64_t)now.st_size >= file->size_bytes
			       ? file->size_bytes
			       : offset;
	}
	if (found < 0) {
		return offset;
	}
	return (uint64_t)found;
}
