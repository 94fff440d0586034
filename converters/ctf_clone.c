/* SPDX-License-Identifier: MIT */
#include "ctf_clone.h"
#include "ctf_walk.h"
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

enum {
	MAX_DEPTH = 10,
	HEAD_BYTES = 4096 /* of a packet: header and context lie in it */
};

/* ---- the traces below a folder ---- */

enum tdm_status tdm_ctf_list_add(struct tdm_ctf_list *list, const char *path, struct tdm_error *err)
{
	char **paths = realloc(list->paths, (list->count + 1) * sizeof(*paths));

	if (paths) {
		list->paths = paths;
		paths[list->count] = strdup(path);
	}
	if (!paths || !paths[list->count]) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a list of traces");
	}
	list->count++;
	return TDM_OK;
}

static enum tdm_status find_below(
	const char *dir, unsigned int depth, struct tdm_ctf_list *list, struct tdm_error *err)
{
	char path[PATH_MAX];
	struct stat about;
	struct dirent **entries = NULL;
	enum tdm_status status = TDM_OK;

	if (snprintf(path, sizeof(path), "%s/metadata", dir) < (int)sizeof(path) &&
		stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
		return tdm_ctf_list_add(list, dir, err);
	}

	const int count = depth < MAX_DEPTH ? scandir(dir, &entries, NULL, alphasort) : 0;

	for (int i = 0; i < count; i++) {
		if (status == TDM_OK && entries[i]->d_name[0] != '.' &&
			snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name) <
				(int)sizeof(path) &&
			lstat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
			status = find_below(path, depth + 1, list, err);
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

enum tdm_status tdm_ctf_list_find(
	const char *root, struct tdm_ctf_list *list, struct tdm_error *err)
{
	return find_below(root, 0, list, err);
}

void tdm_ctf_list_release(struct tdm_ctf_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->paths[i]);
	}
	free(list->paths);
	*list = (struct tdm_ctf_list){ 0 };
}

/* ---- packets ---- */

/* What the head of a packet tells. */
struct packet {
	uint64_t offset, bytes;
	bool has_events;
	bool has_number;
	uint32_t number_at; /* byte of packet_seq_num from the packet's start */
	uint64_t number, discarded;
};

/* One stream file on its way. */
struct clone {
	const char *from_path, *to_path;
	int from_fd, to_fd;
	uint64_t file_bytes;
	const struct tsdl_metadata *metadata;
	uint8_t head[HEAD_BYTES];
	struct tdm_error *err;
};

static uint64_t value_of(const struct ctf_walk *walk, const char *name, uint64_t otherwise)
{
	uint64_t value;

	return ctf_walk_find(walk, name, &value) ? value : otherwise;
}

/* The byte at which a 64-bit, byte-aligned member of the context lies; false where it is none such. */
static bool find_number(const struct ctf_walk *start, const struct tsdl_type *context,
	bool big_endian, uint32_t *at)
{
	struct ctf_walk walk = *start;

	for (uint32_t i = 0; i < context->field_count; i++) {
		const struct tsdl_field *const field = &context->fields[i];
		const struct tsdl_type *const type = field->type;
		const char *const name = field->name[0] == '_' ? field->name + 1 : field->name;

		if (strcmp(name, "packet_seq_num") == 0) {
			const uint64_t align = type->align_bits ? type->align_bits : 1;
			const uint64_t bit = (walk.at_bits + align - 1) / align * align;

			*at = (uint32_t)(bit / 8);
			return type->kind == TSDL_INTEGER && type->size_bits == 64 &&
			       bit % 8 == 0 && type->is_big_endian == big_endian;
		}
		if (!ctf_walk_over(&walk, type)) {
			return false;
		}
	}
	return false;
}

static const struct tsdl_stream *stream_of(
	const struct tsdl_metadata *metadata, const struct ctf_walk *walk)
{
	uint64_t id;

	if (!ctf_walk_find(walk, "stream_id", &id)) {
		return metadata->stream_count ? &metadata->streams[0] : NULL;
	}
	for (size_t i = 0; i < metadata->stream_count; i++) {
		if (metadata->streams[i].id == id) {
			return &metadata->streams[i];
		}
	}
	return NULL;
}

/* Reads the head of the packet at an offset. False where none can be there. */
static bool read_packet(struct clone *clone, uint64_t offset, struct packet *packet)
{
	const struct tsdl_metadata *metadata = clone->metadata;
	const ssize_t got = pread(clone->from_fd, clone->head, HEAD_BYTES, (off_t)offset);
	struct ctf_walk *walk = calloc(1, sizeof(*walk));
	bool is_good = false;

	*packet = (struct packet){ .offset = offset };
	if (got > 0 && walk) {
		walk->bytes = clone->head;
		walk->end_bits = 8 * (uint64_t)got;

		const struct tsdl_stream *stream = NULL;

		if (!metadata->packet_header || ctf_walk_over(walk, metadata->packet_header)) {
			stream = stream_of(metadata, walk);
		}
		if (stream && stream->packet_context) {
			packet->has_number = find_number(walk, stream->packet_context,
				metadata->is_big_endian, &packet->number_at);
			is_good = ctf_walk_over(walk, stream->packet_context);
		}
		if (is_good) {
			const uint64_t left_bits = 8 * (clone->file_bytes - offset);
			const uint64_t bits = value_of(walk, "packet_size", left_bits);
			const uint64_t content = value_of(walk, "content_size", bits);

			packet->bytes = bits / 8;
			packet->discarded = value_of(walk, "events_discarded", 0);
			packet->number = value_of(walk, "packet_seq_num", 0);
			packet->has_events = content > walk->at_bits;
			is_good = bits % 8 == 0 && bits && bits <= left_bits && content <= bits &&
				  walk->at_bits <= content;
		}
	}
	free(walk);
	return is_good;
}

/* ---- copying ---- */

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

static enum tdm_status copy_packets(struct clone *clone, const struct packet *packets, size_t count)
{
	uint64_t to = 0;
	uint64_t number = count ? packets[0].number : 0;
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		const struct packet *packet = &packets[i];

		status = copy_range(clone, packet->offset, to, packet->bytes);
		if (status == TDM_OK && packet->has_number && packet->number != number) {
			/* Numbers without a gap: a gap would say that packets were lost. */
			uint8_t bytes[8];

			tdm_store_u64(bytes, number, clone->metadata->is_big_endian);
			if (pwrite(clone->to_fd, bytes, sizeof(bytes),
				    (off_t)(to + packet->number_at)) != (ssize_t)sizeof(bytes)) {
				status = tdm_fail_errno(
					clone->err, errno, "%s: writing", clone->to_path);
			}
		}
		number++;
		/* A gap that the tracer left stays one. */
		if (i + 1 < count && packets[i + 1].number > packet->number + 1 &&
			packets[i + 1].offset == packet->offset + packet->bytes) {
			number += packets[i + 1].number - packet->number - 1;
		}
		to += packet->bytes;
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

/* The packets that are kept. Those without events go, but a last one that tells of a loss stays. */
static enum tdm_status list_packets(struct clone *clone, struct packet **packets, size_t *count,
	struct tdm_ctf_clone_report *report, uint64_t *whole_bytes)
{
	uint64_t offset = 0, discarded = 0;
	size_t room = 0;
	struct packet packet;
	bool was_empty = false;

	*packets = NULL;
	*count = 0;
	while (offset < clone->file_bytes && read_packet(clone, offset, &packet)) {
		offset += packet.bytes;

		const bool is_last_word =
			offset >= clone->file_bytes && packet.discarded > discarded;

		was_empty = !packet.has_events && !is_last_word;
		if (was_empty) {
			report->empty_packets++;
			continue;
		}
		if (*count == room) {
			struct packet *more;

			room = room ? room * 2 : 64;
			more = realloc(*packets, room * sizeof(*more));
			if (!more) {
				return tdm_fail(clone->err, TDM_ERR_NOMEM, "%s: no memory",
					clone->from_path);
			}
			*packets = more;
		}
		discarded = packet.discarded;
		(*packets)[(*count)++] = packet;
	}
	*whole_bytes = offset;
	return TDM_OK;
}

static enum tdm_status clone_stream(struct clone *clone, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, bool *is_same)
{
	struct packet *packets = NULL;
	size_t count = 0;
	uint64_t whole_bytes = 0, kept_bytes = 0;
	enum tdm_status status = list_packets(clone, &packets, &count, report, &whole_bytes);

	*is_same = false;
	if (whole_bytes < clone->file_bytes) {
		TDM_WARNING(log,
			"%s at 0x%" PRIx64 ": no packet can be there: the last %" PRIu64
			" bytes are left out",
			clone->from_path, whole_bytes, clone->file_bytes - whole_bytes);
		report->damaged_bytes += clone->file_bytes - whole_bytes;
	}
	for (size_t i = 0; i < count; i++) {
		kept_bytes += packets[i].bytes;
	}
	if (status == TDM_OK && count == 0) {
		report->idle_streams++;
	} else if (status == TDM_OK) {
		clone->to_fd = open(clone->to_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		*is_same = kept_bytes == clone->file_bytes;
		status = clone->to_fd < 0 ? tdm_fail_errno(clone->err, errno, "%s", clone->to_path)
			 : *is_same       ? copy_whole(clone)
					  : copy_packets(clone, packets, count);
		if (clone->to_fd >= 0 && close(clone->to_fd) != 0 && status == TDM_OK) {
			status = tdm_fail_errno(clone->err, errno, "%s: closing", clone->to_path);
		}
		report->stream_count++;
		report->packets += count;
		report->bytes += kept_bytes;
	}
	free(packets);
	return status;
}

/* LTTng's index of a stream tells offsets and the clock's own readings: right as long as the stream is the same. */
static enum tdm_status copy_index(
	const char *from, const char *to, const char *name, struct tdm_error *err)
{
	char from_path[PATH_MAX], to_path[PATH_MAX], dir[PATH_MAX];
	struct clone clone = { .err = err, .to_fd = -1 };
	struct stat about;
	enum tdm_status status = TDM_OK;

	if (snprintf(from_path, sizeof(from_path), "%s/index/%s.idx", from, name) >=
			(int)sizeof(from_path) ||
		snprintf(to_path, sizeof(to_path), "%s/index/%s.idx", to, name) >=
			(int)sizeof(to_path) ||
		snprintf(dir, sizeof(dir), "%s/index", to) >= (int)sizeof(dir)) {
		return TDM_OK;
	}
	clone.from_fd = open(from_path, O_RDONLY | O_CLOEXEC);
	if (clone.from_fd < 0 || fstat(clone.from_fd, &about) != 0 || !S_ISREG(about.st_mode)) {
		if (clone.from_fd >= 0) {
			close(clone.from_fd);
		}
		return TDM_OK; /* an index is an extra */
	}
	clone.from_path = from_path;
	clone.to_path = to_path;
	clone.file_bytes = (uint64_t)about.st_size;
	if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
		status = tdm_fail_errno(err, errno, "%s", dir);
	} else {
		clone.to_fd = open(to_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		status = clone.to_fd < 0 ? tdm_fail_errno(err, errno, "%s", to_path)
					 : copy_whole(&clone);
	}
	if (clone.to_fd >= 0 && close(clone.to_fd) != 0 && status == TDM_OK) {
		status = tdm_fail_errno(err, errno, "%s: closing", to_path);
	}
	close(clone.from_fd);
	return status;
}

enum tdm_status tdm_ctf_clone(const char *from, const char *to,
	const struct tsdl_metadata *metadata, const struct tdm_log *log,
	struct tdm_ctf_clone_report *report, struct tdm_error *err)
{
	struct dirent **entries = NULL;
	const int count = scandir(from, &entries, NULL, alphasort);
	struct clone *clone = calloc(1, sizeof(*clone));
	enum tdm_status status = count < 0 ? tdm_fail_errno(err, errno, "%s", from)
				 : !clone  ? tdm_fail(err, TDM_ERR_NOMEM, "no memory")
					   : TDM_OK;

	for (int i = 0; i < count; i++) {
		const char *const name = entries[i]->d_name;
		char from_path[PATH_MAX], to_path[PATH_MAX];
		struct stat about;
		bool is_same = false;

		if (status == TDM_OK && name[0] != '.' && strcmp(name, "metadata") != 0 &&
			snprintf(from_path, sizeof(from_path), "%s/%s", from, name) <
				(int)sizeof(from_path) &&
			snprintf(to_path, sizeof(to_path), "%s/%s", to, name) <
				(int)sizeof(to_path) &&
			stat(from_path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size) {
			*clone = (struct clone){ .from_path = from_path,
				.to_path = to_path,
				.from_fd = open(from_path, O_RDONLY | O_CLOEXEC),
				.to_fd = -1,
				.file_bytes = (uint64_t)about.st_size,
				.metadata = metadata,
				.err = err };
			if (clone->from_fd < 0) {
				status = tdm_fail_errno(err, errno, "%s", from_path);
			} else {
				status = clone_stream(clone, log, report, &is_same);
				close(clone->from_fd);
			}
			if (status == TDM_OK && is_same) {
				status = copy_index(from, to, name, err);
			}
		}
		free(entries[i]);
	}
	free(entries);
	free(clone);
	return status;
}
