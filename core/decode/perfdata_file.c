/* SPDX-License-Identifier: MIT */
#include "perfdata_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/spool.h>
#include <unistd.h>

enum {
	PIPE_HEADER_BYTES = 16,
	FILE_HEADER_BYTES = 104,
	MAX_ENTRY_BYTES = 4096,
	MAX_IDS_BYTES = 8 << 20,
	MAX_FEATURE_BYTES = 64 << 20,
	MAX_DIR_STORES = 8192,
	ATTR_LEAST_BYTES = 64,
	EVENT_UPDATE_NAME = 2
};

struct section {
	uint64_t offset, bytes;
};

/* A part of the file in memory; the caller frees *bytes. */
static enum tdm_status read_part(struct perfdata *pd, int fd, struct section part,
	uint64_t file_bytes, uint64_t most, const char *what, uint8_t **bytes,
	struct tdm_error *err)
{
	*bytes = NULL;
	if (part.offset > file_bytes || part.bytes > file_bytes - part.offset) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: %s at 0x%" PRIx64 " of %" PRIu64
			" bytes passes the file's end at 0x%" PRIx64,
			pd->path, what, part.offset, part.bytes, file_bytes);
	}
	if (part.bytes > most) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: %s at 0x%" PRIx64 " has %" PRIu64 " bytes, at most %" PRIu64
			" are read",
			pd->path, what, part.offset, part.bytes, most);
	}
	*bytes = malloc(part.bytes ? part.bytes : 1);
	if (!*bytes) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for %s", pd->path, what);
	}
	for (uint64_t done = 0; done < part.bytes;) {
		const ssize_t got =
			pread(fd, *bytes + done, part.bytes - done, (off_t)(part.offset + done));

		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got <= 0) {
			free(*bytes);
			*bytes = NULL;
			return tdm_fail_errno(
				err, got < 0 ? errno : EIO, "%s: reading %s", pd->path, what);
		}
		done += (uint64_t)got;
	}
	return TDM_OK;
}

static struct section read_section(struct tdm_cursor *in)
{
	const uint64_t offset = tdm_cursor_u64(in);

	return (struct section){ offset, tdm_cursor_u64(in) };
}

static enum tdm_status read_attrs(struct perfdata *pd, int fd, struct section table,
	uint64_t entry_bytes, uint64_t file_bytes, struct tdm_error *err)
{
	uint8_t *bytes = NULL;

	if (entry_bytes < ATTR_LEAST_BYTES + 16 || entry_bytes > MAX_ENTRY_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: entries of the attribute table have %" PRIu64
			" bytes, wanted %d to %d",
			pd->path, entry_bytes, ATTR_LEAST_BYTES + 16, MAX_ENTRY_BYTES);
	}

	enum tdm_status status = read_part(pd, fd, table, file_bytes,
		(uint64_t)PERF_MAX_ATTRS * MAX_ENTRY_BYTES, "the attribute table", &bytes, err);
	struct tdm_cursor in =
		tdm_cursor_over(bytes, bytes ? table.bytes : 0, table.offset, pd->big_endian);

	for (uint64_t i = 0; status == TDM_OK && i < table.bytes / entry_bytes; i++) {
		size_t index;

		status = perfdata_attr_add(pd, &in, entry_bytes - 16, &index, err);
		if (status != TDM_OK) {
			break;
		}

		const struct section ids = read_section(&in);
		uint8_t *id_bytes = NULL;
		struct tdm_error ids_err;

		if (read_part(pd, fd, ids, file_bytes, MAX_IDS_BYTES, "a table of event ids",
			    &id_bytes, &ids_err) != TDM_OK) {
			trace_fault(&pd->trace, index, "%s", ids_err.text);
			continue;
		}

		struct tdm_cursor id_in =
			tdm_cursor_over(id_bytes, ids.bytes, ids.offset, pd->big_endian);

		status = perfdata_ids_add(pd, &id_in, ids.bytes / 8, index, err);
		free(id_bytes);
	}
	free(bytes);
	return status;
}

static bool is_wanted(unsigned int feature)
{
	switch (feature) {
	case PERF_FEATURE_TRACING_DATA:
	case PERF_FEATURE_HOSTNAME:
	case PERF_FEATURE_OSRELEASE:
	case PERF_FEATURE_VERSION:
	case PERF_FEATURE_ARCH:
	case PERF_FEATURE_NRCPUS:
	case PERF_FEATURE_EVENT_DESC:
	case PERF_FEATURE_CLOCK_DATA:
		return true;
	default:
		return false;
	}
}

/* Features that cannot be read are named; the samples may still be. */
static void read_features(struct perfdata *pd, int fd, const uint64_t bitmap[4], uint64_t table_at,
	uint64_t file_bytes)
{
	struct section table = { table_at, 0 };
	struct tdm_error err;
	uint8_t *bytes = NULL;

	for (unsigned int i = 0; i < 4; i++) {
		table.bytes += 16 * (uint64_t)__builtin_popcountll(bitmap[i]);
	}
	if (read_part(pd, fd, table, file_bytes, 16 * PERF_FEATURE_COUNT, "the feature table",
		    &bytes, &err) != TDM_OK) {
		trace_fault(&pd->trace, 0, "%s", err.text);
		return;
	}

	struct tdm_cursor in = tdm_cursor_over(bytes, table.bytes, table_at, pd->big_endian);

	for (unsigned int feature = 0; feature < PERF_FEATURE_COUNT; feature++) {
		if (!(bitmap[feature / 64] >> feature % 64 & 1)) {
			continue;
		}

		const struct section section = read_section(&in);
		uint8_t *body = NULL;

		if (!is_wanted(feature)) {
			continue;
		}
		if (read_part(pd, fd, section, file_bytes, MAX_FEATURE_BYTES, "a feature section",
			    &body, &err) != TDM_OK) {
			trace_fault(&pd->trace, feature, "%s", err.text);
			continue;
		}

		struct tdm_cursor part =
			tdm_cursor_over(body, section.bytes, section.offset, pd->big_endian);

		perfdata_feature_read(pd, feature, &part);
		free(body);
	}
	free(bytes);
}

static enum tdm_status read_file_mode(
	struct perfdata *pd, int fd, uint64_t file_bytes, struct tdm_error *err)
{
	uint8_t *bytes = NULL;
	enum tdm_status status = read_part(pd, fd, (struct section){ 0, FILE_HEADER_BYTES },
		file_bytes, FILE_HEADER_BYTES, "the header", &bytes, err);

	if (status != TDM_OK) {
		return status;
	}

	struct tdm_cursor in = tdm_cursor_over(bytes, FILE_HEADER_BYTES, 0, pd->big_endian);

	tdm_cursor_skip(&in, 16);

	const uint64_t entry_bytes = tdm_cursor_u64(&in);
	const struct section attrs = read_section(&in);
	struct section data = read_section(&in);
	uint64_t bitmap[4];

	tdm_cursor_skip(&in, 16); /* event types: obsolete */
	for (unsigned int i = 0; i < 4; i++) {
		bitmap[i] = tdm_cursor_u64(&in);
	}
	free(bytes);
	status = read_attrs(pd, fd, attrs, entry_bytes, file_bytes, err);
	if (status != TDM_OK) {
		return status;
	}
	if (data.offset > file_bytes) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: the records begin at 0x%" PRIx64
			", behind the file's end at 0x%" PRIx64,
			pd->path, data.offset, file_bytes);
	}
	if (!data.bytes) {
		data.bytes = file_bytes - data.offset;
		if (data.bytes) {
			pd->is_killed = true;
			trace_fault(&pd->trace, 0,
				"the recorder did not finish this file (its header says 0 bytes of records): "
				"what is there is read to the end");
		}
	} else if (data.bytes > file_bytes - data.offset) {
		trace_fault(&pd->trace, 0,
			"the file ends at 0x%" PRIx64 ", %" PRIu64
			" bytes before the end of its records: it was cut short",
			file_bytes, data.bytes - (file_bytes - data.offset));
		data.bytes = file_bytes - data.offset;
	} else {
		read_features(pd, fd, bitmap, data.offset + data.bytes, file_bytes);
	}

	const int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own_fd < 0) {
		return tdm_fail_errno(err, errno, "%s", pd->path);
	}
	return perfdata_store_add(pd, own_fd, pd->path, data.offset, data.bytes, false, err);
}

/* The records that come before the first sample say what the samples are. */
static enum tdm_status read_pipe_record(struct perfdata *pd, struct perfdata_walk *walk,
	const struct perfdata_record *record, struct tdm_error *err)
{
	struct tdm_cursor in =
		tdm_cursor_over(record->bytes, record->size, record->offset, pd->big_endian);
	const uint64_t payload = perfdata_payload_bytes(pd, record);

	tdm_cursor_skip(&in, PERF_RECORD_HEADER_BYTES);
	if (record->type == PERF_RECORD_HEADER_ATTR) {
		struct tdm_cursor size_in = in;
		size_t index;

		tdm_cursor_skip(&size_in, 4);

		const uint32_t said = tdm_cursor_u32(&size_in);
		enum tdm_status status =
			perfdata_attr_add(pd, &in, said ? said : ATTR_LEAST_BYTES, &index, err);

		if (status == TDM_OK) {
			status = perfdata_ids_add(pd, &in, tdm_cursor_left(&in) / 8, index, err);
		}
		return status;
	}
	if (record->type == PERF_RECORD_FEATURE) {
		const uint64_t feature = tdm_cursor_u64(&in);

		if (!in.failed && feature < PERF_FEATURE_COUNT) {
			perfdata_feature_read(pd, (unsigned int)feature, &in);
		}
	} else if (record->type == PERF_RECORD_EVENT_UPDATE) {
		const uint64_t kind = tdm_cursor_u64(&in);
		const struct perfdata_id *id = perfdata_ids_find(&pd->ids, tdm_cursor_u64(&in));
		const size_t left = tdm_cursor_left(&in);

		if (kind == EVENT_UPDATE_NAME && id && left && !pd->attrs[id->attr_index].name) {
			pd->attrs[id->attr_index].name =
				strndup((const char *)record->bytes + in.pos, left);
		}
	} else if (record->type == PERF_RECORD_TRACING_DATA && !pd->has_tracing &&
		   payload <= MAX_FEATURE_BYTES) {
		const uint64_t at = record->offset + record->size;
		const struct perfdata_store *store = walk->store;

		if (payload > store->bytes - (at - store->start)) {
			return perfdata_walk_skip(pd, walk, payload, err);
		}
		if (tdm_buffer_reserve(&pd->tracing, (size_t)payload) != TDM_OK) {
			return tdm_fail(
				err, TDM_ERR_NOMEM, "%s: no memory for its tracing data", pd->path);
		}

		const enum tdm_status status =
			perfdata_store_read(pd, at, pd->tracing.bytes, (size_t)payload, err);

		if (status != TDM_OK) {
			return status;
		}
		pd->tracing.size = (size_t)payload;
		pd->has_tracing = true;
	}
	return payload ? perfdata_walk_skip(pd, walk, payload, err) : TDM_OK;
}

static enum tdm_status read_pipe_mode(
	struct perfdata *pd, int fd, uint64_t file_bytes, struct tdm_error *err)
{
	const int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct perfdata_walk walk;
	struct perfdata_record record;

	if (own_fd < 0) {
		return tdm_fail_errno(err, errno, "%s", pd->path);
	}
	pd->is_pipe = true;

	enum tdm_status status = perfdata_store_add(pd, own_fd, pd->path, PIPE_HEADER_BYTES,
		file_bytes - PIPE_HEADER_BYTES, false, err);

	if (status == TDM_OK) {
		status = perfdata_walk_start(&walk, &pd->stores[0], err);
	}
	if (status != TDM_OK) {
		return status;
	}

	const size_t faults = tdm_trace_fault_count(&pd->trace);

	do {
		status = perfdata_walk_next(pd, &walk, &record, err);
		if (status != TDM_OK || record.type == PERF_RECORD_SAMPLE ||
			record.type == PERF_RECORD_FINISHED_ROUND ||
			record.type == PERF_RECORD_COMPRESSED ||
			record.type == PERF_RECORD_COMPRESSED2) {
			break;
		}
		status = read_pipe_record(pd, &walk, &record, err);
	} while (status == TDM_OK);
	perfdata_walk_end(&walk);
	if (status == TDM_END && tdm_trace_fault_count(&pd->trace) == faults && !pd->attr_count) {
		return tdm_fail(err, TDM_ERR_FORMAT, "%s: a perf pipe without any event", pd->path);
	}
	return status == TDM_END ? TDM_OK : status;
}

static enum tdm_status read_main(struct perfdata *pd, int fd, struct tdm_error *err)
{
	struct stat about;
	uint8_t head[PIPE_HEADER_BYTES];
	enum tdm_status status;

	if (fstat(fd, &about) != 0) {
		return tdm_fail_errno(err, errno, "%s", pd->path);
	}
	if (!S_ISREG(about.st_mode)) {
		return tdm_fail(err, TDM_ERR_IO, "%s: not a regular file", pd->path);
	}

	const uint64_t file_bytes = (uint64_t)about.st_size;

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head)) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s: %" PRIu64 " bytes, too short for the header of a perf.data file",
			pd->path, file_bytes);
	} else if (memcmp(head, "PERFFILE", 8) == 0) {
		status = tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: perf.data of version 1 (before 2009) is not read", pd->path);
	} else if (memcmp(head, "PERFILE2", 8) != 0 && memcmp(head, "2ELIFREP", 8) != 0) {
		status = tdm_fail(err, TDM_ERR_FORMAT,
			"%s: does not begin with the magic of a perf.data file", pd->path);
	} else {
		pd->big_endian = head[0] == '2';

		const uint64_t header_bytes = tdm_load_u64(head + 8, pd->big_endian);

		if (header_bytes == PIPE_HEADER_BYTES) {
			status = read_pipe_mode(pd, fd, file_bytes, err);
		} else if (header_bytes == FILE_HEADER_BYTES) {
			status = read_file_mode(pd, fd, file_bytes, err);
		} else {
			status = tdm_fail(err, TDM_ERR_FORMAT,
				"%s: a header of %" PRIu64 " bytes, wanted %d (file) or %d (pipe)",
				pd->path, header_bytes, FILE_HEADER_BYTES, PIPE_HEADER_BYTES);
		}
	}
	return status;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	const unsigned long left = strtoul((*a)->d_name + 5, NULL, 10);
	const unsigned long right = strtoul((*b)->d_name + 5, NULL, 10);

	return left < right ? -1 : left > right;
}

static int is_thread_file(const struct dirent *entry)
{
	const char *at = entry->d_name + 5;

	if (strncmp(entry->d_name, "data.", 5) != 0 || !*at) {
		return 0;
	}
	return strspn(at, "0123456789") == strlen(at);
}

/* data.0, data.1, ...: records of one recorder thread each, without a header. */
static enum tdm_status add_thread_files(struct perfdata *pd, struct tdm_error *err)
{
	struct dirent **entries = NULL;
	const int count = scandir(pd->path, &entries, is_thread_file, by_number);
	enum tdm_status status = TDM_OK;

	if (count < 0) {
		return tdm_fail_errno(err, errno, "%s", pd->path);
	}
	for (int i = 0; i < count; i++) {
		char path[4096];
		struct stat about;

		snprintf(path, sizeof(path), "%s/%s", pd->path, entries[i]->d_name);
		free(entries[i]);
		if (status != TDM_OK || i >= MAX_DIR_STORES) {
			continue;
		}

		const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
			trace_fault(&pd->trace, 0, "%s cannot be read: %s", path,
				fd < 0 ? strerror(errno) : "not a file");
			if (fd >= 0) {
				close(fd);
			}
			continue;
		}
		status = perfdata_store_add(pd, fd, path, 0, (uint64_t)about.st_size, false, err);
	}
	free(entries);
	return status;
}

enum tdm_status perfdata_file_read(struct perfdata *pd, struct tdm_error *err)
{
	struct stat about;
	char path[4096];
	const bool is_dir = stat(pd->path, &about) == 0 && S_ISDIR(about.st_mode);

	snprintf(path, sizeof(path), "%s%s", pd->path, is_dir ? "/data" : "");

	const int kept_fd = tdm_pipe_open_kept(pd->path);
	const int fd = kept_fd >= 0 ? kept_fd : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		return tdm_fail_errno(err, errno, "%s", path);
	}

	enum tdm_status status = read_main(pd, fd, err);

	close(fd);
	if (status == TDM_OK && is_dir) {
		status = add_thread_files(pd, err);
	}
	return status;
}
