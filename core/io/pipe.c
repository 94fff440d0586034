/* SPDX-License-Identifier: MIT */
/*
 * pipe.c - inputs that can be read but once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/spool.h>
#include <unistd.h>

enum {
	KEPT_MAX = 64,
	PIECE_BYTES = 1 << 16,
	WRITER_WAIT_MS = 10000
};

static struct kept {
	dev_t device;
	ino_t inode;
	int fd;
} kept[KEPT_MAX];

static size_t kept_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_stdin(const char *path)
{
	return strcmp(path, "-") == 0;
}

bool tdm_pipe_is_one(const char *path)
{
	struct stat about;

	return is_stdin(path) || (stat(path, &about) == 0 && S_ISFIFO(about.st_mode));
}

static int find(const char *path)
{
	struct stat about;

	if (is_stdin(path) ? fstat(STDIN_FILENO, &about) != 0 : stat(path, &about) != 0) {
		return -1;
	}
	for (size_t i = 0; i < kept_count; i++) {
		if (kept[i].device == about.st_dev && kept[i].inode == about.st_ino) {
			return kept[i].fd;
		}
	}
	return -1;
}

/* Opens it where somebody writes to it. */
static int open_written(const char *path, struct tdm_error *err)
{
	/* Without a writer open() would wait for ever. */
	const int fd = is_stdin(path) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
				      : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		tdm_fail_errno(err, errno, "%s", path);
		return -1;
	}
	if (!is_stdin(path)) {
		struct pollfd writer = { .fd = fd, .events = POLLIN };
		const int ready = poll(&writer, 1, WRITER_WAIT_MS);
		const int flags = fcntl(fd, F_GETFL);

		if (ready <= 0 || flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
			tdm_fail(err, TDM_ERR_IO,
				"%s: not a regular file but a FIFO, to which nobody wrote for %d s",
				path, WRITER_WAIT_MS / 1000);
			close(fd);
			return -1;
		}
	}
	return fd;
}

static enum tdm_status copy(const char *path, int from, int to, struct tdm_error *err)
{
	uint8_t *const piece = malloc(PIECE_BYTES);
	enum tdm_status status =
		piece ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory to read it", path);

	while (status == TDM_OK) {
		const ssize_t got = read(from, piece, PIECE_BYTES);

		if (got == 0) {
			break;
		}
		status = got < 0 ? tdm_fail_errno(err, errno, "%s", path)
				 : tdm_spool_write(to, piece, (size_t)got, err);
	}
	free(piece);
	return status;
}

static enum tdm_status keep(const char *path, struct tdm_error *err)
{
	struct stat about;
	const int from = open_written(path, err);
	enum tdm_status status = TDM_ERR_IO;
	int fd = -1;

	if (from < 0) {
		return status;
	}
	if (fstat(from, &about) != 0) {
		status = tdm_fail_errno(err, errno, "%s", path);
	} else if (S_ISREG(about.st_mode)) {
		/* "< FILE" */
		fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
		status = fd >= 0 ? TDM_OK : tdm_fail_errno(err, errno, "%s", path);
	} else if (!S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode)) {
		status = tdm_fail(err, TDM_ERR_IO,
			"%s: the standard input is neither a file nor a pipe", path);
	} else {
		fd = tdm_spool_create(err);
		status = fd >= 0 ? copy(path, from, fd, err) : TDM_ERR_IO;
	}
	close(from);
	if (status == TDM_OK) {
		kept[kept_count++] = (struct kept){ about.st_dev, about.st_ino, fd };
	} else if (fd >= 0) {
		close(fd);
	}
	return status;
}

enum tdm_status tdm_pipe_keep(const char *path, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	pthread_mutex_lock(&lock);
	if (find(path) < 0) {
		status = kept_count < KEPT_MAX ? keep(path, err)
					       : tdm_fail(err, TDM_ERR_RANGE,
							 "%s: more than %d pipes", path, KEPT_MAX);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

int tdm_pipe_open_kept(const char *path)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = kept_count ? find(path) : -1;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}
