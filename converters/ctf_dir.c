/* SPDX-License-Identifier: MIT */
#include "ctf_dir.h"
#include "ctf_list.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 3 /* of folders below: a trace of several, and its index */

static void remove_tree(int parent_fd, const char *name, unsigned int depth);

/* Empties an open directory of files; what lies deeper (an index directory) @p depth levels down. Takes the fd. */
static void empty_dir(int fd, unsigned int depth)
{
	DIR *const dir = fdopendir(fd);

	if (!dir) {
		close(fd);
		return;
	}
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
			continue;
		}
		if (unlinkat(fd, entry->d_name, 0) != 0 && depth > 0) {
			remove_tree(fd, entry->d_name, depth - 1);
		}
	}
	closedir(dir);
}

static void remove_tree(int parent_fd, const char *name, unsigned int depth)
{
	const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0) {
		empty_dir(fd, depth);
		unlinkat(parent_fd, name, AT_REMOVEDIR);
	}
}

static bool is_trace_or_empty(const char *path)
{
	struct tdm_ctf_list traces = { 0 };
	struct tdm_error err;
	DIR *const dir = opendir(path);
	bool is_empty = true;

	if (!dir) {
		return false;
	}
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		is_empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	}
	closedir(dir);

	const bool has_trace =
		!is_empty && tdm_ctf_list_find(path, &traces, &err) == TDM_OK && traces.count > 0;

	tdm_ctf_list_release(&traces);
	return is_empty || has_trace;
}

static enum tdm_status check_final(const struct tdm_ctf_dir *dir, struct tdm_error *err)
{
	struct stat st;

	if (lstat(dir->final_path, &st) != 0) {
		return errno == ENOENT
			       ? TDM_OK
			       : tdm_fail_errno(err, errno, "%s: cannot look", dir->final_path);
	}
	if (!dir->force) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s exists: choose another directory with -o, or replace it with --force",
			dir->final_path);
	}
	if (!S_ISDIR(st.st_mode) || !is_trace_or_empty(dir->final_path)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s is no CTF trace: it is left alone even with --force", dir->final_path);
	}
	return TDM_OK;
}

/* Opens and locks the working directory: the lock tells one that is being written from one that was left behind. */
static enum tdm_status lock_work(struct tdm_ctf_dir *dir, struct tdm_error *err)
{
	if (mkdir(dir->work_path, 0777) != 0 && errno != EEXIST) {
		return tdm_fail_errno(err, errno, "%s: cannot make the directory", dir->work_path);
	}
	dir->lock_fd = open(dir->work_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->lock_fd < 0) {
		return tdm_fail_errno(err, errno, "%s: cannot open", dir->work_path);
	}
	if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0) {
		const int fault = errno;

		close(dir->lock_fd);
		dir->lock_fd = -1;
		if (fault == EWOULDBLOCK) {
			return tdm_fail(err, TDM_ERR_IO, "%s: another conversion writes there now",
				dir->work_path);
		}
		return tdm_fail_errno(err, fault, "%s: cannot lock", dir->work_path);
	}
	return TDM_OK;
}

enum tdm_status tdm_ctf_dir_begin(struct tdm_ctf_dir *dir, const char *out, const char *name,
	bool force, struct tdm_error *err)
{
	enum tdm_status status;

	*dir = (struct tdm_ctf_dir){ .lock_fd = -1, .force = force };
	if (asprintf(&dir->final_path, "%s/%s", out, name) < 0) {
		dir->final_path = NULL;
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	status = check_final(dir, err);
	if (status == TDM_OK && asprintf(&dir->work_path, "%s.partial", dir->final_path) < 0) {
		dir->work_path = NULL;
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	if (status == TDM_OK) {
		status = lock_work(dir, err);
	}
	if (status == TDM_OK) {
		/* A descriptor of its own: reading the directory moves a position that fdopendir() owns. */
		const int fd = openat(dir->lock_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0) {
			empty_dir(fd, DEPTH_MAX); /* what a killed converter left */
		}
	}
	if (status != TDM_OK) {
		if (dir->lock_fd < 0) {
			free(dir->work_path); /* not ours: nothing of it is removed */
			dir->work_path = NULL;
		}
		tdm_ctf_dir_release(dir);
	}
	return status;
}

enum tdm_status tdm_ctf_dir_put(struct tdm_ctf_dir *dir, const char *name,
	const struct tdm_buffer *content, struct tdm_error *err)
{
	const int fd = openat(
		dir->lock_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	size_t done = 0;

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s/%s: cannot create", dir->work_path, name);
	}
	while (done < content->size) {
		const ssize_t count = write(fd, content->bytes + done, content->size - done);

		if (count < 0 && errno != EINTR) {
			const int fault = errno;

			close(fd);
			return tdm_fail_errno(
				err, fault, "%s/%s: cannot write", dir->work_path, name);
		}
		done += count > 0 ? (size_t)count : 0;
	}
	if (close(fd) != 0) {
		return tdm_fail_errno(err, errno, "%s/%s: cannot close", dir->work_path, name);
	}
	return TDM_OK;
}

enum tdm_status tdm_ctf_dir_commit(struct tdm_ctf_dir *dir, struct tdm_error *err)
{
	if (renameat2(AT_FDCWD, dir->work_path, AT_FDCWD, dir->final_path, RENAME_NOREPLACE) == 0) {
		free(dir->work_path);
		dir->work_path = NULL;
		return TDM_OK;
	}
	if (errno == EEXIST && dir->force) {
		const enum tdm_status status = check_final(dir, err);

		if (status != TDM_OK) {
			return status;
		}
		/* Swapped, so that there is a whole trace under the name at every moment. */
		if (renameat2(AT_FDCWD, dir->work_path, AT_FDCWD, dir->final_path,
			    RENAME_EXCHANGE) == 0) {
			remove_tree(AT_FDCWD, dir->work_path, DEPTH_MAX);
			free(dir->work_path);
			dir->work_path = NULL;
			return TDM_OK;
		}
		if (errno == EINVAL || errno == ENOSYS) {
			remove_tree(AT_FDCWD, dir->final_path, DEPTH_MAX);
		}
	}
	/* File systems that know no flags: the name was free when the work began, or was just made free. */
	if ((errno == EINVAL || errno == ENOSYS || dir->force) &&
		rename(dir->work_path, dir->final_path) == 0) {
		free(dir->work_path);
		dir->work_path = NULL;
		return TDM_OK;
	}
	return tdm_fail_errno(
		err, errno, "%s: cannot be renamed to %s", dir->work_path, dir->final_path);
}

void tdm_ctf_dir_release(struct tdm_ctf_dir *dir)
{
	if (dir->work_path) {
		remove_tree(AT_FDCWD, dir->work_path, DEPTH_MAX);
	}
	if (dir->lock_fd >= 0) {
		close(dir->lock_fd);
	}
	free(dir->final_path);
	free(dir->work_path);
	*dir = (struct tdm_ctf_dir){ .lock_fd = -1 };
}
