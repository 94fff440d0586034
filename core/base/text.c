/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/text.h>
#include <unistd.h>

enum {
	READ_STEP = 1 << 16
};

enum tdm_status tdm_text_read_file(
	const char *path, size_t cap_bytes, struct tdm_buffer *out, struct tdm_error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s: cannot be opened", path);
	}

	const size_t start = out->size;
	enum tdm_status status = TDM_OK;
	struct stat st;

	/* Room for all of it at once, and to see its end; a pipe's size is not known. */
	if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size < cap_bytes) {
		(void)tdm_buffer_reserve_exact(out, (size_t)st.st_size + READ_STEP);
	}

	for (;;) {
		if (tdm_buffer_reserve(out, READ_STEP) != TDM_OK) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its text", path);
			break;
		}

		const ssize_t got = read(fd, out->bytes + out->size, READ_STEP);

		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			status = tdm_fail_errno(err, errno, "%s: cannot be read", path);
			break;
		}
		if (got == 0) {
			break;
		}
		out->size += (size_t)got;
		if (out->size - start > cap_bytes) {
			status = tdm_fail(
				err, TDM_ERR_RANGE, "%s: larger than %zu bytes", path, cap_bytes);
			break;
		}
	}
	close(fd);
	return status;
}

static enum tdm_status write_all(int fd, const char *bytes, size_t count)
{
	while (count) {
		const ssize_t put = write(fd, bytes, count);

		if (put < 0 && errno == EINTR) {
			continue;
		}
		if (put <= 0) {
			return TDM_ERR_IO;
		}
		bytes += put;
		count -= (size_t)put;
	}
	return TDM_OK;
}

enum tdm_status tdm_text_write_file(
	const char *path, const void *bytes, size_t count, struct tdm_error *err)
{
	struct stat st;
	const bool is_file = stat(path, &st) != 0 || S_ISREG(st.st_mode);
	char *beside = NULL;
	int fd = -1;
	enum tdm_status status = TDM_OK;

	/* A pipe or terminal cannot be renamed over: /dev/stdout is written as it is. */
	if (!is_file) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write_all(fd, bytes, count) != TDM_OK) {
			status = tdm_fail_errno(err, errno, "%s: cannot be written", path);
		}
		goto out;
	}
	if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
		beside = NULL;
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its name", path);
	}
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0) {
		status = tdm_fail_errno(err, errno, "%s: cannot be created", path);
		goto out;
	}

	const mode_t mask = umask(0);

	umask(mask);
	if (write_all(fd, bytes, count) != TDM_OK || fchmod(fd, 0666 & ~mask) != 0 ||
		rename(beside, path) != 0) {
		status = tdm_fail_errno(err, errno, "%s: cannot be written", path);
		unlink(beside);
	}
out:
	if (fd >= 0) {
		close(fd);
	}
	free(beside);
	return status;
}

struct tdm_text tdm_text_over(const char *name, const char *text, size_t text_bytes)
{
	const struct tdm_text walk = { .name = name, .next = text, .left = text_bytes };

	return walk;
}

enum tdm_status tdm_text_next(struct tdm_text *text, struct tdm_error *err)
{
	if (!text->left) {
		return TDM_END;
	}

	const char *newline = memchr(text->next, '\n', text->left);
	const size_t bytes = newline ? (size_t)(newline - text->next) : text->left;

	text->line_number++;
	if (bytes > TDM_LINE_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s:%" PRIu64 ": a line of %zu bytes, at most %d are allowed", text->name,
			text->line_number, bytes, TDM_LINE_BYTES);
	}
	if (bytes && memchr(text->next, '\0', bytes)) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s:%" PRIu64 ": a NUL byte in the text",
			text->name, text->line_number);
	}
	if (bytes) {
		memcpy(text->line, text->next, bytes);
	}
	text->line[bytes] = '\0';
	text->line_bytes = bytes;
	text->whole = newline != NULL;
	text->next += bytes + text->whole;
	text->left -= bytes + text->whole;
	return TDM_OK;
}

enum tdm_status tdm_text_skip(struct tdm_text *text)
{
	const char *newline = text->left ? memchr(text->next, '\n', text->left) : NULL;
	const size_t bytes = newline ? (size_t)(newline - text->next) + 1 : text->left;

	text->next += bytes;
	text->left -= bytes;
	return TDM_OK;
}

size_t tdm_text_split(char *line, char *fields[TDM_LINE_FIELDS])
{
	size_t count = 0;

	while (line && (count || *line) && count < TDM_LINE_FIELDS) {
		fields[count++] = line;
		line = strchr(line, ' ');
		if (line) {
			*line++ = '\0';
		}
	}
	return count;
}

bool tdm_text_u64(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t sum = 0;

	if (!*text) {
		return false;
	}
	for (; *text; text++) {
		const unsigned int digit = (unsigned int)(*text - '0');

		if (digit > 9 || sum > (UINT64_MAX - digit) / 10) {
			return false;
		}
		sum = sum * 10 + digit;
	}
	if (sum > max) {
		return false;
	}
	*value = sum;
	return true;
}

bool tdm_text_i64(const char *text, int64_t max, int64_t *value)
{
	const bool negative = *text == '-';
	uint64_t magnitude;

	if (!tdm_text_u64(text + negative, (uint64_t)max, &magnitude)) {
		return false;
	}
	*value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	return true;
}
