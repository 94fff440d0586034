/* SPDX-License-Identifier: MIT */
/*
 * Bytes that hold records. Everything is read with pread() into small buffers: memory stays flat whatever the size of
 * the file, and a file that is cut short meanwhile gives an error, not a signal.
 */
#include "perfdata_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WALK_ROOM = 256 << 10
};

enum tdm_status perfdata_store_add(struct perfdata *pd, int fd, const char *path, uint64_t file_at,
	uint64_t bytes, bool is_spool, struct tdm_error *err)
{
	struct perfdata_store *stores =
		realloc(pd->stores, (pd->store_count + 1) * sizeof(*pd->stores));
	char *own_path = strdup(path);

	if (stores) {
		pd->stores = stores;
	}
	if (!stores || !own_path) {
		free(own_path);
		close(fd);
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its records", path);
	}

	uint64_t start = 0;

	if (pd->store_count) {
		/* A gap, so that no chunk ever spans two stores. */
		start = stores[pd->store_count - 1].start + stores[pd->store_count - 1].bytes +
			(1 << 20);
	}
	stores[pd->store_count++] = (struct perfdata_store){
		.fd = fd,
		.is_spool = is_spool,
		.start = start,
		.file_at = file_at,
		.bytes = bytes,
		.path = own_path,
	};
	return TDM_OK;
}

void perfdata_stores_release(struct perfdata *pd)
{
	for (size_t i = 0; i < pd->store_count; i++) {
		close(pd->stores[i].fd);
		free(pd->stores[i].path);
	}
	free(pd->stores);
	pd->stores = NULL;
	pd->store_count = 0;
}

static const struct perfdata_store *store_at(const struct perfdata *pd, uint64_t offset)
{
	for (size_t i = pd->store_count; i-- > 0;) {
		if (offset >= pd->stores[i].start) {
			return &pd->stores[i];
		}
	}
	return NULL;
}

const char *perfdata_place(
	const struct perfdata *pd, uint64_t offset, char *text, size_t text_bytes)
{
	const struct perfdata_store *store = store_at(pd, offset);

	if (!store) {
		snprintf(text, text_bytes, "0x%" PRIx64, offset);
	} else if (store->is_spool) {
		snprintf(text, text_bytes, "decoded byte 0x%" PRIx64, offset - store->start);
	} else if (strcmp(store->path, pd->path) == 0) {
		snprintf(text, text_bytes, "0x%" PRIx64, offset - store->start + store->file_at);
	} else {
		snprintf(text, text_bytes, "%s 0x%" PRIx64, store->path,
			offset - store->start + store->file_at);
	}
	return text;
}

static enum tdm_status read_at(const struct perfdata_store *store, uint64_t at, void *bytes,
	size_t count, struct tdm_error *err)
{
	uint8_t *to = bytes;
	size_t done = 0;

	while (done < count) {
		const ssize_t got = pread(
			store->fd, to + done, count - done, (off_t)(store->file_at + at + done));

		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return tdm_fail_errno(err, errno, "%s: reading at 0x%" PRIx64, store->path,
				store->file_at + at + done);
		}
		if (got == 0) {
			return tdm_fail(err, TDM_ERR_IO,
				"%s: ends at 0x%" PRIx64 " while it is read, wanted %zu more bytes",
				store->path, store->file_at + at + done, count - done);
		}
		done += (size_t)got;
	}
	return TDM_OK;
}

enum tdm_status perfdata_store_read(const struct perfdata *pd, uint64_t offset, void *bytes,
	size_t count, struct tdm_error *err)
{
	const struct perfdata_store *store = store_at(pd, offset);

	if (!store || offset - store->start > store->bytes ||
		count > store->bytes - (offset - store->start)) {
		return tdm_fail(err, TDM_ERR_RANGE, "%s: no %zu bytes of records at 0x%" PRIx64,
			pd->path, count, offset);
	}
	return read_at(store, offset - store->start, bytes, count, err);
}

enum tdm_status perfdata_walk_start(
	struct perfdata_walk *walk, const struct perfdata_store *store, struct tdm_error *err)
{
	*walk = (struct perfdata_walk){ .store = store,
		.bytes = malloc(WALK_ROOM),
		.room = WALK_ROOM,
		.offset = store->start };
	if (!walk->bytes) {
		return tdm_fail(
			err, TDM_ERR_NOMEM, "%s: no memory to read its records", store->path);
	}
	return TDM_OK;
}

void perfdata_walk_end(struct perfdata_walk *walk)
{
	free(walk->bytes);
	walk->bytes = NULL;
}

/* Has at least the next record in memory, or what is left of the store. */
static enum tdm_status fill(struct perfdata_walk *walk, struct tdm_error *err)
{
	const size_t kept = walk->size - walk->pos;

	memmove(walk->bytes, walk->bytes + walk->pos, kept);
	walk->offset += walk->pos;
	walk->pos = 0;
	walk->size = kept;

	const uint64_t left = walk->store->bytes - walk->read_to;
	const size_t wanted = left < walk->room - kept ? (size_t)left : walk->room - kept;
	const enum tdm_status status =
		read_at(walk->store, walk->read_to, walk->bytes + kept, wanted, err);

	if (status == TDM_OK) {
		walk->size += wanted;
		walk->read_to += wanted;
	}
	return status;
}

enum tdm_status perfdata_walk_next(struct perfdata *pd, struct perfdata_walk *walk,
	struct perfdata_record *record, struct tdm_error *err)
{
	char place[300];

	if (walk->size - walk->pos <= PERF_RECORD_MAX_BYTES && walk->read_to < walk->store->bytes) {
		const enum tdm_status status = fill(walk, err);

		if (status != TDM_OK) {
			return status;
		}
	}

	const size_t left = walk->size - walk->pos;
	const uint8_t *at = walk->bytes + walk->pos;

	if (!left) {
		return TDM_END;
	}
	if (left < PERF_RECORD_HEADER_BYTES) {
		trace_fault(&pd->trace, 0, "at %s: %zu bytes are left of a record's header",
			perfdata_place(pd, walk->offset + walk->pos, place, sizeof(place)), left);
		return TDM_END;
	}
	record->bytes = at;
	record->offset = walk->offset + walk->pos;
	record->type = tdm_load_u32(at, pd->big_endian);
	record->misc = tdm_load_u16(at + 4, pd->big_endian);
	record->size = tdm_load_u16(at + 6, pd->big_endian);
	if (record->size < PERF_RECORD_HEADER_BYTES || record->size > left) {
		/* Without a size that makes sense there is no way to the next record. */
		trace_fault(&pd->trace, 0,
			"at %s: record of type %" PRIu32 " says it has %" PRIu32 " bytes, %" PRIu64
			" are left: nothing can be read from here on",
			perfdata_place(pd, record->offset, place, sizeof(place)), record->type,
			record->size, left + (walk->store->bytes - walk->read_to));
		return TDM_END;
	}
	walk->pos += record->size;
	return TDM_OK;
}

uint64_t perfdata_payload_bytes(const struct perfdata *pd, const struct perfdata_record *record)
{
	const uint8_t *body = record->bytes + PERF_RECORD_HEADER_BYTES;

	if (record->type == PERF_RECORD_TRACING_DATA && record->size >= 12) {
		/* Padded to 8; the word counts the padding in. */
		return ((uint64_t)tdm_load_u32(body, pd->big_endian) + 7) & ~(uint64_t)7;
	}
	if (record->type == PERF_RECORD_AUXTRACE && record->size >= 16) {
		return tdm_load_u64(body, pd->big_endian);
	}
	return 0;
}

enum tdm_status perfdata_walk_skip(
	struct perfdata *pd, struct perfdata_walk *walk, uint64_t count, struct tdm_error *err)
{
	const size_t here = walk->size - walk->pos;
	char place[300];

	(void)err;
	if (count <= here) {
		walk->pos += (size_t)count;
		return TDM_OK;
	}

	const uint64_t beyond = count - here;

	if (beyond > walk->store->bytes - walk->read_to) {
		trace_fault(&pd->trace, 0,
			"at %s: %" PRIu64 " bytes follow a record, but only %" PRIu64 " are left",
			perfdata_place(pd, walk->offset + walk->pos, place, sizeof(place)), count,
			here + walk->store->bytes - walk->read_to);
		walk->read_to = walk->store->bytes;
	} else {
		walk->read_to += beyond;
	}
	walk->size = 0;
	walk->pos = 0;
	walk->offset = walk->store->start + walk->read_to;
	return TDM_OK;
}
