/* SPDX-License-Identifier: MIT */
#include "out_dir.h"
#include "record_spool_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Kept free from the start, so that texts and options find room on a disk that the pages filled. */
#define RESERVE_NAME "reserve"

enum {
	RESERVE_BYTES = 8 << 20
};

enum {
	MAX_CPUS = 8192,
	MAX_META_FILE_BYTES = 300 << 20
};

static char *spool_file(const struct record_spool *spool, const char *name)
{
	return out_dir_path(spool->path, name, "");
}

static char *pages_file(const struct record_spool *spool, uint32_t cpu)
{
	char name[32];

	snprintf(name, sizeof(name), "cpu%" PRIu32, cpu);
	return spool_file(spool, name);
}

static struct record_spool *allocate(const char *dir, const char *name, struct tdm_error *err)
{
	struct record_spool *spool = calloc(1, sizeof(*spool));

	if (spool) {
		spool->lock_fd = -1;
		spool->dir = strdup(dir);
		spool->name = strdup(name);
		spool->path = out_dir_path(dir, name, ".recording");
	}
	if (!spool || !spool->dir || !spool->name || !spool->path) {
		record_spool_close(spool);
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for the spool of \"%s\"", name);
		return NULL;
	}
	return spool;
}

/* Writes a small file as a whole: a reader sees the old one or the new one. */
static enum tdm_status write_file(const struct record_spool *spool, const char *name,
	const void *bytes, size_t size_bytes, struct tdm_error *err)
{
	char *path = spool_file(spool, name);
	char *temporary = out_dir_path(spool->path, name, ".part");
	enum tdm_status status = TDM_OK;
	int fd = -1;

	if (!path || !temporary) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory");
		goto out;
	}
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		status = tdm_fail_errno(err, errno, "%s", temporary);
		goto out;
	}
	for (size_t done = 0; done < size_bytes;) {
		const ssize_t step = write(fd, (const char *)bytes + done, size_bytes - done);

		if (step < 0 && errno != EINTR) {
			status = tdm_fail_errno(err, errno, "writing %s", temporary);
			goto out;
		}
		done += step > 0 ? (size_t)step : 0;
	}
	if (rename(temporary, path) != 0) {
		status = tdm_fail_errno(err, errno, "renaming %s", temporary);
	}
out:
	if (fd >= 0) {
		close(fd);
	}
	free(path);
	free(temporary);
	return status;
}

static enum tdm_status save_ties(const struct record_spool *spool, struct tdm_error *err)
{
	char text[256];
	const int length = snprintf(text, sizeof(text),
		"tandem-session 1\ntrace-id %" PRIu64 "\nhost-trace-id %" PRIu64
		"\ntsc2nsec %d %" PRIu32 " %" PRIu32 "\n",
		spool->ties.trace_id, spool->ties.host_trace_id, spool->ties.has_tsc2nsec,
		spool->ties.tsc_mult, spool->ties.tsc_shift);

	return write_file(spool, "session", text, (size_t)length, err);
}

/* A disk without room for it will say so soon enough. */
static void reserve_space(const struct record_spool *spool)
{
	char *path = spool_file(spool, RESERVE_NAME);
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		if (fallocate(fd, 0, 0, RESERVE_BYTES) != 0) {
			unlink(path);
		}
		close(fd);
	}
	free(path);
}

void record_spool_release_reserve(const struct record_spool *spool)
{
	char *path = spool_file(spool, RESERVE_NAME);

	if (path) {
		unlink(path);
	}
	free(path);
}

/* The lock tells a folder that is being written from one that was left behind. */
static enum tdm_status lock(struct record_spool *spool, struct tdm_error *err)
{
	const int fd = open(spool->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s", spool->path);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		const int failure = errno;

		close(fd);
		return failure == EWOULDBLOCK
			       ? tdm_fail(err, TDM_ERR_RANGE,
					 "%s: another tandem record writes there now", spool->path)
			       : tdm_fail_errno(err, failure, "locking %s", spool->path);
	}
	spool->lock_fd = fd;
	return TDM_OK;
}

static void empty(const struct record_spool *spool)
{
	DIR *dir = opendir(spool->path);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (entry->d_name[0] != '.') {
			unlinkat(dirfd(dir), entry->d_name, 0);
		}
	}
	if (dir) {
		closedir(dir);
	}
}

/* A folder of ours, locked and empty. */
static enum tdm_status make_folder(struct record_spool *spool, bool force, struct tdm_error *err)
{
	const bool is_new = mkdir(spool->path, 0700) == 0;
	enum tdm_status status;

	if (!is_new && errno != EEXIST) {
		return tdm_fail_errno(err, errno, "%s", spool->path);
	}
	status = lock(spool, err);
	if (status == TDM_OK && !is_new && !force) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"%s was left by a recorder that was killed: tandem record --finish %s completes it, --force overwrites it",
			spool->path, spool->dir);
	}
	if (status == TDM_OK && !is_new) {
		empty(spool);
	}
	return status;
}

struct record_spool *record_spool_create(const char *dir, const char *name,
	const struct record_ties *ties, bool force, struct tdm_error *err)
{
	struct record_spool *spool = allocate(dir, name, err);

	if (!spool) {
		return NULL;
	}
	spool->ties = *ties;
	if (make_folder(spool, force, err) != TDM_OK) {
		record_spool_close(spool);
		return NULL;
	}
	if (save_ties(spool, err) != TDM_OK) {
		record_spool_close(spool);
		return NULL;
	}
	reserve_space(spool);
	return spool;
}

static enum tdm_status load_file(const struct record_spool *spool, const char *name,
	struct tdm_buffer *out, struct tdm_error *err)
{
	char *path = spool_file(spool, name);
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	enum tdm_status status =
		fd < 0 ? tdm_fail_errno(err, errno, "%s/%s", spool->path, name) : TDM_OK;

	while (status == TDM_OK) {
		enum {
			STEP_BYTES = 1 << 16
		};

		if (out->size > MAX_META_FILE_BYTES ||
			tdm_buffer_reserve(out, STEP_BYTES) != TDM_OK) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "%s is too large", path);
			break;
		}

		const ssize_t step = read(fd, out->bytes + out->size, STEP_BYTES);

		if (step < 0 && errno != EINTR) {
			status = tdm_fail_errno(err, errno, "%s", path);
		}
		if (step == 0) {
			break;
		}
		out->size += step > 0 ? (size_t)step : 0;
	}
	if (fd >= 0) {
		close(fd);
	}
	free(path);
	return status;
}

static enum tdm_status load_ties(struct record_spool *spool, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status = load_file(spool, "session", &text, err);
	int has_tsc2nsec = 0;

	if (status == TDM_OK && tdm_buffer_append(&text, "", 1) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory");
	}
	if (status == TDM_OK &&
		sscanf((const char *)text.bytes,
			"tandem-session 1 trace-id %" SCNu64 " host-trace-id %" SCNu64
			" tsc2nsec %d %" SCNu32 " %" SCNu32,
			&spool->ties.trace_id, &spool->ties.host_trace_id, &has_tsc2nsec,
			&spool->ties.tsc_mult, &spool->ties.tsc_shift) != 5) {
		status = tdm_fail(
			err, TDM_ERR_FORMAT, "%s/session cannot be understood", spool->path);
	}
	spool->ties.has_tsc2nsec = has_tsc2nsec;
	tdm_buffer_release(&text);
	return status;
}

static enum tdm_status open_pages(struct record_spool *spool, int flags, struct tdm_error *err)
{
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		char *path = pages_file(spool, cpu);

		spool->fds[cpu] = path ? open(path, O_RDWR | O_CLOEXEC | flags, 0600) : -1;
		if (spool->fds[cpu] < 0 && (flags & O_CREAT)) {
			const enum tdm_status status =
				tdm_fail_errno(err, errno, "%s", path ? path : "");

			free(path);
			return status;
		}
		free(path);
	}
	return TDM_OK;
}

static enum tdm_status allocate_cpus(
	struct record_spool *spool, uint32_t cpu_count, struct tdm_error *err)
{
	if (cpu_count == 0 || cpu_count > MAX_CPUS) {
		return tdm_fail(err, TDM_ERR_RANGE, "\"%s\": %" PRIu32 " CPUs, wanted 1 to %d",
			spool->name, cpu_count, MAX_CPUS);
	}
	spool->fds = malloc(cpu_count * sizeof(*spool->fds));
	if (!spool->fds) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %" PRIu32 " CPUs", cpu_count);
	}
	spool->cpu_count = cpu_count;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		spool->fds[cpu] = -1;
	}
	return TDM_OK;
}

enum tdm_status record_spool_set_cpus(
	struct record_spool *spool, uint32_t cpu_count, struct tdm_error *err)
{
	const enum tdm_status status = allocate_cpus(spool, cpu_count, err);

	return status == TDM_OK ? open_pages(spool, O_CREAT | O_TRUNC, err) : status;
}

/* Byte order, the size of a long and that of a page stand at fixed places in a version 7 file. */
static enum tdm_status take_prefix(struct record_spool *spool, struct tdm_error *err)
{
	enum {
		ORDER_OFFSET = 12,
		LONG_OFFSET = 13,
		PAGE_OFFSET = 14,
		LEAST_BYTES = 18
	};

	if (spool->prefix.size < LEAST_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT, "texts of \"%s\": %zu bytes are no trace.dat",
			spool->name, spool->prefix.size);
	}
	spool->meta.big_endian = spool->prefix.bytes[ORDER_OFFSET] == 1;
	spool->meta.long_bytes = spool->prefix.bytes[LONG_OFFSET];
	spool->meta.page_bytes =
		tdm_load_u32(spool->prefix.bytes + PAGE_OFFSET, spool->meta.big_endian);
	return TDM_OK;
}

static bool has_file(const struct record_spool *spool, const char *name)
{
	char *path = spool_file(spool, name);
	const bool there = path && access(path, F_OK) == 0;

	free(path);
	return there;
}

/* CPUs whose pages have a file: they are made all at once, without gaps. */
static uint32_t count_pages_files(const struct record_spool *spool)
{
	uint32_t count = 0;
	char name[32];

	do {
		snprintf(name, sizeof(name), "cpu%" PRIu32, count);
	} while (has_file(spool, name) && ++count < MAX_CPUS);
	return count;
}

/* The texts, packed or as the beginning of a file. */
static enum tdm_status load_texts(struct record_spool *spool, struct tdm_error *err)
{
	struct tdm_buffer bytes = { 0 };
	enum tdm_status status;

	if (has_file(spool, "prefix")) {
		status = load_file(spool, "prefix", &spool->prefix, err);
		return status == TDM_OK ? take_prefix(spool, err) : status;
	}
	status = load_file(spool, "texts", &bytes, err);
	if (status == TDM_OK) {
		struct tdm_cursor in = tdm_cursor_over(bytes.bytes, bytes.size, 0, false);

		status = tdm_trace_meta_unpack(&in, &spool->meta, err);
		if (status != TDM_OK) {
			tdm_error_prefix(err, "%s/texts", spool->path);
		}
	}
	tdm_buffer_release(&bytes);
	return status;
}

struct record_spool *record_spool_open(const char *dir, const char *name, struct tdm_error *err)
{
	struct record_spool *spool = allocate(dir, name, err);
	enum tdm_status status = spool ? lock(spool, err) : TDM_ERR_NOMEM;

	if (status == TDM_OK) {
		status = load_ties(spool, err);
	}
	if (status == TDM_OK) {
		status = load_texts(spool, err);
	}
	if (status == TDM_OK) {
		status = allocate_cpus(spool, count_pages_files(spool), err);
	}
	if (status == TDM_OK) {
		status = open_pages(spool, 0, err);
	}
	if (status != TDM_OK) {
		record_spool_close(spool);
		return NULL;
	}
	return spool;
}

uint64_t record_spool_cpu_bytes(const struct record_spool *spool, uint32_t cpu)
{
	struct stat status;

	return spool->fds[cpu] >= 0 && fstat(spool->fds[cpu], &status) == 0
		       ? (uint64_t)status.st_size
		       : 0;
}

const struct tdm_trace_meta *record_spool_meta(const struct record_spool *spool)
{
	return &spool->meta;
}

uint32_t record_spool_cpus(const struct record_spool *spool)
{
	return spool->cpu_count;
}

void record_spool_close(struct record_spool *spool)
{
	if (!spool) {
		return;
	}
	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		if (spool->fds[cpu] >= 0) {
			close(spool->fds[cpu]);
		}
	}
	if (spool->lock_fd >= 0) {
		close(spool->lock_fd);
	}
	tdm_trace_meta_release(&spool->meta);
	tdm_buffer_release(&spool->prefix);
	free(spool->fds);
	free(spool->dir);
	free(spool->name);
	free(spool->path);
	free(spool);
}

void record_spool_remove(struct record_spool *spool)
{
	empty(spool);
	rmdir(spool->path);
}

int record_spool_fd(const struct record_spool *spool, uint32_t cpu)
{
	return cpu < spool->cpu_count ? spool->fds[cpu] : -1;
}

enum tdm_status record_spool_save_meta(
	struct record_spool *spool, const struct tdm_trace_meta *meta, struct tdm_error *err)
{
	struct tdm_buffer bytes = { 0 };
	enum tdm_status status = tdm_trace_meta_pack(meta, &bytes);

	if (status == TDM_OK) {
		struct tdm_cursor in = tdm_cursor_over(bytes.bytes, bytes.size, 0, false);

		tdm_trace_meta_release(&spool->meta);
		status = tdm_trace_meta_unpack(&in, &spool->meta, err);
	} else {
		tdm_fail(err, status, "no memory for the texts of \"%s\"", spool->name);
	}
	if (status == TDM_OK) {
		status = write_file(spool, "texts", bytes.bytes, bytes.size, err);
		if (status == TDM_ERR_IO) {
			record_spool_release_reserve(spool);
			status = write_file(spool, "texts", bytes.bytes, bytes.size, err);
		}
	}
	tdm_buffer_release(&bytes);
	return status;
}

enum tdm_status record_spool_save_prefix(
	struct record_spool *spool, const struct tdm_buffer *prefix, struct tdm_error *err)
{
	spool->prefix.size = 0;
	if (tdm_buffer_append(&spool->prefix, prefix->bytes, prefix->size) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for texts");
	}

	const enum tdm_status status = take_prefix(spool, err);

	return status == TDM_OK ? write_file(spool, "prefix", prefix->bytes, prefix->size, err)
				: status;
}

uint64_t record_spool_bytes(const struct record_spool *spool)
{
	uint64_t sum_bytes = 0;

	for (uint32_t cpu = 0; cpu < spool->cpu_count; cpu++) {
		sum_bytes += record_spool_cpu_bytes(spool, cpu);
	}
	return sum_bytes;
}

const char *record_spool_name(const struct record_spool *spool)
{
	return spool->name;
}

const struct record_ties *record_spool_ties(const struct record_spool *spool)
{
	return &spool->ties;
}
