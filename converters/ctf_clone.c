/* SPDX-License-Identifier: MIT */
#include "ctf_clone.h"
#include "ctf_packets.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <tandem/cursor.h>
#include <unistd.h>

#define INDEX_MAGIC      0xc1f1dcc1u
#define INDEX_HEAD_BYTES 16u
#define INDEX_BYTES_MAX  (UINT64_C(1) << 30)

const char *const tdm_ctf_clone_fields[] = { "magic", "stream_id", "packet_size", "content_size",
	"timestamp_begin", "timestamp_end", "events_discarded", "packet_seq_num", "id", NULL };

/* One file on its way. */
struct clone {
	const char *from_path, *to_path;
	int from_fd, to_fd;
	uint64_t file_bytes;
	struct tdm_error *err;
};

static enum tdm_status copy_range(struct clone *clone, uint64_t from, uint64_t to, uint64_t bytes)
{
	off_t in = (off_t)from, out = (off_t)to;
	uint64_t left = bytes;

	while (left) {
		const ssize_t done = copy_file_range(clone->from_fd, &in, clone->to_fd, &out,
			left > 1 << 30 ? 1 << 30 : left, 0);

		if (done <= 0) {
			break;
		}
		left -= (uint64_t)done;
	}
	/* Some pairs of file systems know no such call. */
	while (left) {
		uint8_t piece[64 << 10];
		const size_t wanted = left < sizeof(piece) ? (size_t)left : sizeof(piece);
		const ssize_t got = pread(clone->from_fd, piece, wanted, in);

		if (got <= 0) {
			return tdm_fail_errno(clone->err, got ? errno : EIO,
				"%s: reading at 0x%" PRIx64, clone->from_path, (uint64_t)in);
		}

		/* A disk that fills takes a part, and says only with the next piece why it took no more. */
		const ssize_t put = pwrite(clone->to_fd, piece, (size_t)got, out);

		if (put <= 0) {
			return tdm_fail_errno(clone->err, put ? errno : ENOSPC,
				"%s: cannot write %zd bytes at offset %" PRId64, clone->to_path,
				got, (int64_t)out);
		}
		in += put;
		out += put;
		left -= (uint64_t)put;
	}
	return TDM_OK;
}

/* Sets the words of a copied packet right that are wrong or do not fit any more. */
static enum tdm_status put_words(struct clone *clone, const struct tdm_ctf_packet *packet,
	const uint8_t uuid[16], uint64_t to)
{
	const size_t head_bytes = (packet->first_event_bits + 7) / 8;
	uint8_t *head = NULL;
	enum tdm_status status = TDM_OK;
	bool is_changed = packet->uuid_at_bits != 0;

	for (size_t i = 0; i < TDM_CTF_WORD_COUNT; i++) {
		is_changed |= packet->words[i].is_changed;
	}
	if (!is_changed) {
		return TDM_OK;
	}
	head = malloc(head_bytes + 1);
	if (!head) {
		return tdm_fail(clone->err, TDM_ERR_NOMEM, "%s: no memory", clone->from_path);
	}
	if (pread(clone->from_fd, head, head_bytes, (off_t)packet->offset) != (ssize_t)head_bytes) {
		status = tdm_fail(clone->err, TDM_ERR_IO, "%s: reading at 0x%" PRIx64,
			clone->from_path, packet->offset);
	}
	for (size_t i = 0; status == TDM_OK && i < TDM_CTF_WORD_COUNT; i++) {
		if (packet->words[i].is_changed) {
			tdm_ctf_word_store(head, &packet->words[i]);
		}
	}
	if (packet->uuid_at_bits) {
		memcpy(head + packet->uuid_at_bits / 8, uuid, 16);
	}
	if (status == TDM_OK &&
		pwrite(clone->to_fd, head, head_bytes, (off_t)to) != (ssize_t)head_bytes) {
		status = tdm_fail_errno(clone->err, errno, "%s: writing", clone->to_path);
	}
	free(head);
	return status;
}

static enum tdm_status copy_packets(
	struct clone *clone, const struct tdm_ctf_packets *packets, const uint8_t uuid[16])
{
	uint64_t to = 0;
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < packets->count && status == TDM_OK; i++) {
		status = copy_range(clone, packets->of[i].offset, to, packets->of[i].bytes);
		if (status == TDM_OK) {
			status = put_words(clone, &packets->of[i], uuid, to);
		}
		to += packets->of[i].bytes;
	}
	return status;
}

/* Whole files share their blocks where the file system can. */
static enum tdm_status copy_whole(struct clone *clone)
{
	if (ioctl(clone->to_fd, FICLONE, clone->from_fd) == 0) {
		return TDM_OK;
	}
	return copy_range(clone, 0, 0, clone->file_bytes);
}

static enum tdm_status copy_stream(struct clone *clone, const struct tdm_ctf_packets *packets,
	const uint8_t uuid[16], struct tdm_ctf_clone_report *report)
{
	enum tdm_status status;

	clone->to_fd = open(clone->to_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	status = clone->to_fd < 0      ? tdm_fail_errno(clone->err, errno, "%s", clone->to_path)
		 : packets->is_changed ? copy_packets(clone, packets, uuid)
				       : copy_whole(clone);
	if (clone->to_fd >= 0 && close(clone->to_fd) != 0 && status == TDM_OK) {
		status = tdm_fail_errno(clone->err, errno, "%s: closing", clone->to_path);
	}
	report->stream_count++;
	report->packets += packets->count;
	report->events += packets->event_count;
	for (size_t i = 0; i < packets->count; i++) {
		report->bytes += packets->of[i].bytes;
	}
	return status;
}

/* ---- the index ---- */

/* LTTng's index tells where each packet is and when: right as long as it tells of these packets. */
static bool is_index_right(const uint8_t *bytes, size_t size, const struct tdm_ctf_packets *packets)
{
	const uint32_t entry_bytes = size >= INDEX_HEAD_BYTES ? tdm_load_u32(bytes + 12, true) : 0;

	if (entry_bytes < 56 || tdm_load_u32(bytes, true) != INDEX_MAGIC ||
		(size - INDEX_HEAD_BYTES) / entry_bytes != packets->count) {
		return false;
	}
	for (size_t i = 0; i < packets->count; i++) {
		const uint8_t *const entry = bytes + INDEX_HEAD_BYTES + i * (size_t)entry_bytes;
		const struct tdm_ctf_packet *const packet = &packets->of[i];

		static const enum tdm_ctf_word words[] = { TDM_CTF_PACKET_SIZE,
			TDM_CTF_CONTENT_SIZE, TDM_CTF_BEGIN, TDM_CTF_END };

		if (tdm_load_u64(entry, true) != packet->offset) {
			return false;
		}
		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
			const struct tdm_ctf_head_word *const word = &packet->words[words[j]];

			if (word->type && word->value != tdm_load_u64(entry + 8 * (j + 1), true)) {
				return false;
			}
		}
	}
	return true;
}

static uint8_t *read_index(const char *path, size_t *size)
{
	struct stat about;
	uint8_t *bytes = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*size = 0;
	if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
		(uint64_t)about.st_size <= INDEX_BYTES_MAX) {
		bytes = malloc((size_t)about.st_size + 1);
		while (bytes && *size < (size_t)about.st_size) {
			const ssize_t got = read(fd, bytes + *size, (size_t)about.st_size - *size);

			if (got <= 0) {
				break;
			}
			*size += (size_t)got;
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return bytes;
}

/* An index is an extra: where there is none, or none that fits, the stream does without. */
static enum tdm_status copy_index(const char *from, const char *to, const char *name,
	const struct tdm_ctf_packets *packets, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, struct tdm_error *err)
{
	char from_path[PATH_MAX], to_path[PATH_MAX], dir[PATH_MAX];
	enum tdm_status status = TDM_OK;
	uint8_t *bytes;
	size_t size = 0;
	FILE *file;

	if (snprintf(from_path, sizeof(from_path), "%s/index/%s.idx", from, name) >=
			(int)sizeof(from_path) ||
		snprintf(to_path, sizeof(to_path), "%s/index/%s.idx", to, name) >=
			(int)sizeof(to_path) ||
		snprintf(dir, sizeof(dir), "%s/index", to) >= (int)sizeof(dir)) {
		return TDM_OK;
	}
	bytes = read_index(from_path, &size);
	if (!bytes) {
		return TDM_OK;
	}
	if (packets->is_changed) {
		/* It told of packets that are not there any more. */
	} else if (!is_index_right(bytes, size, packets)) {
		TDM_WARNING(log, "%s does not fit its stream: left out", from_path);
		report->stale_indexes++;
	} else if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
		status = tdm_fail_errno(err, errno, "%s", dir);
	} else {
		file = fopen(to_path, "wbxe");
		if (!file || fwrite(bytes, 1, size, file) != size) {
			status = tdm_fail_errno(err, errno, "%s", to_path);
		}
		if (file && fclose(file) != 0 && status == TDM_OK) {
			status = tdm_fail_errno(err, errno, "%s", to_path);
		}
	}
	free(bytes);
	return status;
}

/* ---- a trace ---- */

struct job {
	const char *from, *to;
	const struct tdm_ctf_reading *reading;
	const struct tdm_log *log;
	struct tdm_ctf_clone_report *report;
	struct tdm_error *err;
};

static enum tdm_status clone_stream(const struct job *job, struct clone *clone, const char *name)
{
	struct tdm_ctf_packets packets;
	enum tdm_status status =
		tdm_ctf_packets_find(job->reading, clone->from_path, job->log, &packets, job->err);

	job->report->empty_packets += packets.empty_packets;
	job->report->damaged_packets += packets.damaged_packets;
	job->report->damaged_bytes += packets.lost_bytes;
	if (status == TDM_OK && packets.count == 0) {
		job->report->idle_streams++;
	} else if (status == TDM_OK) {
		status = copy_stream(clone, &packets, job->reading->uuid, job->report);
		if (status == TDM_OK) {
			status = copy_index(job->from, job->to, name, &packets, job->log,
				job->report, job->err);
		}
	}
	tdm_ctf_packets_release(&packets);
	return status;
}

static enum tdm_status clone_file(const struct job *job, const char *name)
{
	char from_path[PATH_MAX], to_path[PATH_MAX];
	struct clone clone = {
		.from_path = from_path, .to_path = to_path, .to_fd = -1, .err = job->err
	};
	struct stat about;
	enum tdm_status status = TDM_OK;

	if (name[0] == '.' || strcmp(name, "metadata") == 0 ||
		snprintf(from_path, sizeof(from_path), "%s/%s", job->from, name) >=
			(int)sizeof(from_path) ||
		snprintf(to_path, sizeof(to_path), "%s/%s", job->to, name) >=
			(int)sizeof(to_path) ||
		stat(from_path, &about) != 0 || !S_ISREG(about.st_mode) || !about.st_size) {
		return TDM_OK;
	}
	clone.file_bytes = (uint64_t)about.st_size;
	clone.from_fd = open(from_path, O_RDONLY | O_CLOEXEC);
	if (clone.from_fd < 0) {
		TDM_WARNING(job->log, "%s: %s: left out", from_path, strerror(errno));
		job->report->unread_files++;
		return TDM_OK;
	}
	status = clone_stream(job, &clone, name);
	close(clone.from_fd);
	return status;
}

enum tdm_status tdm_ctf_clone(const char *from, const char *to,
	const struct tsdl_metadata *metadata, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, struct tdm_error *err)
{
	struct tdm_ctf_reading reading;
	const struct job job = { from, to, &reading, log, report, err };
	struct dirent **entries = NULL;
	const int count = scandir(from, &entries, NULL, alphasort);
	enum tdm_status status = tdm_ctf_reading_begin(metadata, &reading);

	if (status != TDM_OK) {
		tdm_fail(err, status, "%s: no memory", from);
	} else if (count < 0) {
		status = tdm_fail_errno(err, errno, "%s", from);
	}
	for (int i = 0; i < count; i++) {
		if (status == TDM_OK) {
			status = clone_file(&job, entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	tdm_ctf_reading_end(&reading);
	return status;
}
