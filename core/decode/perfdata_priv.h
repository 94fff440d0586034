/* SPDX-License-Identifier: MIT */
/*
 * perfdata_priv.h - what the files of the perf.data reader share.
 *
 * The way of the bytes: perfdata_file.c reads header and features, perfdata_attr.c says how samples are laid out,
 * perfdata_store.c gives records (plain, spooled or decompressed), perfdata_index.c walks them once and notes where
 * each CPU's records lie, perfdata_order.c gives them CPU by CPU in the order of their times, perfdata_sample.c
 * takes one sample apart, perfdata_task.c knows the names of tasks.
 */
#ifndef TANDEM_PERFDATA_PRIV_H
#define TANDEM_PERFDATA_PRIV_H

#include "trace_priv.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/cursor.h>
#include <tandem/log.h>
#include <tandem/schema.h>
#include <tandem/status.h>
#include <tandem/trace.h>

/* perf_event_attr.type */
enum {
	PERF_ATTR_TRACEPOINT = 2
};

/* perf_event_attr.sample_type */
enum perfdata_sample_bit {
	PERF_HAS_IP = 1 << 0,
	PERF_HAS_TID = 1 << 1,
	PERF_HAS_TIME = 1 << 2,
	PERF_HAS_ADDR = 1 << 3,
	PERF_HAS_READ = 1 << 4,
	PERF_HAS_CALLCHAIN = 1 << 5,
	PERF_HAS_ID = 1 << 6,
	PERF_HAS_CPU = 1 << 7,
	PERF_HAS_PERIOD = 1 << 8,
	PERF_HAS_STREAM_ID = 1 << 9,
	PERF_HAS_RAW = 1 << 10,
	PERF_HAS_IDENTIFIER = 1 << 16
};

/* Types of records. */
enum perfdata_record_type {
	PERF_RECORD_LOST = 2,
	PERF_RECORD_COMM = 3,
	PERF_RECORD_FORK = 7,
	PERF_RECORD_SAMPLE = 9,
	PERF_RECORD_LOST_SAMPLES = 13,
	PERF_RECORD_KERNEL_LAST = 63, /* the kernel's own types end here */
	PERF_RECORD_HEADER_ATTR = 64,
	PERF_RECORD_EVENT_TYPE = 65,
	PERF_RECORD_TRACING_DATA = 66,
	PERF_RECORD_FINISHED_ROUND = 68,
	PERF_RECORD_ID_INDEX = 69,
	PERF_RECORD_AUXTRACE = 71,
	PERF_RECORD_EVENT_UPDATE = 78,
	PERF_RECORD_FEATURE = 80,
	PERF_RECORD_COMPRESSED = 81,
	PERF_RECORD_FINISHED_INIT = 82,
	PERF_RECORD_COMPRESSED2 = 83
};

/* Feature bits of the header. */
enum perfdata_feature {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_VERSION = 5,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_FEATURE_COUNT = 256
};

enum {
	PERF_RECORD_HEADER_BYTES = 8,
	PERF_RECORD_MAX_BYTES = 65535, /* the size is a u16 */
	PERF_MAX_ATTRS = 4096,
	PERF_MAX_CPUS = 8192, /* streams of one file */
	MAX_TRACING_BYTES = 64 << 20,
	PERF_ABSENT = -1
};

/* The time of an item that does not tell it: that of the item before. */
#define PERF_TIME_UNKNOWN UINT64_MAX

/* Where the fields of a sample lie, in bytes from the record's start; PERF_ABSENT where there are none. */
struct perfdata_layout {
	int32_t id, ip, tid, time_at, addr, cpu, period;
	uint32_t fixed_end; /* first byte behind the fields of fixed size */
	/* the same for the trailer of other records, in bytes before the record's end; 0 = absent */
	uint32_t trailer_tid, trailer_time, trailer_id, trailer_cpu, trailer_bytes;
};

struct perfdata_attr {
	uint32_t type;
	uint64_t config;
	uint64_t sample_type, read_format, flags;
	int32_t clockid; /* PERF_ABSENT where the flag use_clockid is not set */
	char *name;      /* "sched:sched_switch" or "cycles"; owned; NULL unknown */
	struct perfdata_layout layout;
	const struct tdm_event_class
		*made_class; /* of samples without a kernel record; NULL: the record says */
	bool has_made_addr, has_made_period;
	bool is_plain; /* samples: fields of fixed size with the thread among them, then the kernel's record */
	bool checks_config; /* a tracepoint: the record's own id must be config */
};

/* One event id: the attribute it belongs to, and what ID_INDEX tells. */
struct perfdata_id {
	uint64_t id;
	uint32_t attr_index;
	uint32_t cpu; /* UINT32_MAX unknown */
	bool in_use;
	bool of_guest; /* a machine pid: put in by "perf inject --guest-data" */
};

struct perfdata_ids {
	struct perfdata_id *slots; /* open addressing; a power of two of them */
	size_t slot_count, used;
};

/* A part of one CPU's records: all of them lie in [offset, offset + bytes), others may lie between. */
struct perfdata_chunk {
	uint64_t offset; /* in the store space */
	uint64_t min_time, max_time;
	uint32_t bytes;
	uint32_t records : 30;
	uint32_t is_sorted : 1; /* the records inside are in order of time */
	uint32_t is_alone : 1;  /* no other chunk of the CPU has times inside this one's */
};

struct perfdata_cpu {
	uint32_t cpu;
	struct perfdata_chunk *chunks;
	size_t count, room;
	uint64_t data_bytes;
	uint64_t lost_events; /* sum of the LOST records */
	uint64_t lost_total;  /* sum of the LOST_SAMPLES records: what the kernel counted */
	uint64_t last_time;
};

/* Bytes that hold records: a file's section, or a spool. Stores lie one behind the other in one space of offsets. */
struct perfdata_store {
	int fd;
	bool is_spool;    /* offsets are not the file's */
	uint64_t start;   /* of the store in the space */
	uint64_t file_at; /* where the section starts in the file */
	uint64_t bytes;
	char *path; /* for messages; owned */
};

struct perfdata_comm {
	uint64_t time;
	int32_t tid;
	uint32_t name_at; /* into names */
};

struct perfdata_process {
	int32_t tid, pid, parent_pid; /* parent_pid -1: not told */
};

/* Names of tasks over time, and the processes that threads belong to. */
struct perfdata_tasks {
	struct tdm_buffer events; /* struct task_event while the file is walked */
	struct tdm_buffer names;  /* NUL-terminated, one behind the other */
	uint32_t *interned;       /* table of places in names */
	size_t interned_room, interned_count;
	struct perfdata_comm *comms; /* by tid, then time */
	size_t comm_count;
	struct perfdata_process *processes; /* by tid */
	size_t process_count;
	uint64_t dropped;
};

struct perfdata {
	struct tdm_trace trace;
	char *path;
	bool big_endian;
	bool is_pipe;
	bool is_killed;            /* data.size 0: the recorder did not finish */
	struct tdm_buffer tracing; /* the tracing data block, until it is read */
	bool has_tracing;

	struct perfdata_attr *attrs;
	size_t attr_count;
	struct perfdata_ids ids;
	bool has_plain_items; /* and a sample tells its CPU and its time there */
	bool is_uniform;      /* all attributes lay samples out alike */
	bool has_chains;      /* samples of some attribute carry call chains */
	bool has_id;          /* samples carry an id at id_at */
	int32_t id_at;
	uint32_t trailer_id; /* the same from the end of other records */
	size_t sole_attr;    /* whose samples they are where there are no ids */

	char *hostname, *release, *version, *arch;
	uint32_t cpu_number; /* of the machine; 0 unknown */
	bool has_clock_data;
	int32_t clock_data_clock; /* the clock that it is about */
	int64_t wall_offset_ns;   /* wall clock less trace clock */

	struct perfdata_store *stores;
	size_t store_count;
	bool was_compressed;

	struct perfdata_cpu *cpus;
	size_t cpu_count;
	uint16_t *cpu_slots; /* CPU number + 1 -> slot + 1, for CPUs below 65536 */
	size_t chunk_count;  /* of all CPUs */
	uint32_t gap_limit_bytes, span_limit_bytes;
	uint64_t unknown_records, unknown_bytes;

	struct perfdata_tasks tasks;
	struct tdm_buffer_info buffer;
};

/* One sample taken apart. Pointers go into the record. */
struct perfdata_sample {
	const struct perfdata_attr *attr;
	uint64_t ip, addr, period, time;
	int32_t pid, tid;
	const uint8_t *
		chain; /* chain_count words of 8 bytes in the file's order, unaligned; NULL = none */
	uint32_t chain_count;
	const uint8_t *raw; /* NULL = none */
	uint32_t raw_bytes;
	bool in_guest;
};

/* --- perfdata_file.c */

/**
 * Reads header and features of a perf.data file, of pipe output ("-": standard input) or of a directory, and opens
 * its stores.
 */
enum tdm_status perfdata_file_read(struct perfdata *pd, struct tdm_error *err);

/* --- perfdata_attr.c */

/** Reads one attribute of @p bytes bytes; appended to pd->attrs. @p index receives its place. */
enum tdm_status perfdata_attr_add(struct perfdata *pd, struct tdm_cursor *in, size_t bytes,
	size_t *index, struct tdm_error *err);

/** Ties ids to an attribute; @p count words at the cursor. */
enum tdm_status perfdata_ids_add(struct perfdata *pd, struct tdm_cursor *in, uint64_t count,
	size_t attr_index, struct tdm_error *err);

struct perfdata_id *perfdata_ids_find(const struct perfdata_ids *ids, uint64_t id);
void perfdata_id_index(struct perfdata *pd, struct tdm_cursor *in);

/** Settles how attributes and samples go together; classes for samples without a kernel record are made here. */
enum tdm_status perfdata_attrs_settle(struct perfdata *pd, struct tdm_error *err);
void perfdata_attrs_release(struct perfdata *pd);

/** The attribute of a SAMPLE record, or NULL for an unknown id. @p id may receive the id's entry. */
const struct perfdata_attr *perfdata_attr_of_sample(const struct perfdata *pd,
	const uint8_t *record, uint32_t size, const struct perfdata_id **id);

/** The same for any other kernel record, by its trailer. NULL where it has none. */
const struct perfdata_attr *perfdata_attr_of_other(const struct perfdata *pd, const uint8_t *record,
	uint32_t size, const struct perfdata_id **id);

/* --- perfdata_feature.c */

/** Reads one feature's section. What is not understood is passed over. */
void perfdata_feature_read(struct perfdata *pd, unsigned int feature, struct tdm_cursor *in);

/* --- perfdata_tracing.c */

/** Reads the tracing data: makes the schema, saved command lines go into the names. Faults leave what was read. */
enum tdm_status perfdata_tracing_read(struct perfdata *pd, struct tdm_error *err);

/* --- perfdata_store.c */

enum tdm_status perfdata_store_add(struct perfdata *pd, int fd, const char *path, uint64_t file_at,
	uint64_t bytes, bool is_spool, struct tdm_error *err);
void perfdata_stores_release(struct perfdata *pd);

/** "FILE at 0x...", for messages, into @p text. Returns @p text. */
const char *perfdata_place(
	const struct perfdata *pd, uint64_t offset, char *text, size_t text_bytes);

/** Reads exactly @p bytes at @p offset of the space, inside one store. */
enum tdm_status perfdata_store_read(const struct perfdata *pd, uint64_t offset, void *bytes,
	size_t count, struct tdm_error *err);

/* Records of one store, front to back. */
struct perfdata_walk {
	const struct perfdata_store *store;
	uint8_t *bytes; /* owned */
	size_t room, size, pos;
	uint64_t offset;  /* in the space, of bytes[0] */
	uint64_t read_to; /* in the store */
};

/* One record; bytes valid until the next call. */
struct perfdata_record {
	const uint8_t *bytes;
	uint64_t offset;
	uint32_t type;
	uint16_t misc;
	uint32_t size; /* whole, header included */
};

enum tdm_status perfdata_walk_start(
	struct perfdata_walk *walk, const struct perfdata_store *store, struct tdm_error *err);
void perfdata_walk_end(struct perfdata_walk *walk);

/** @retval TDM_END  No more, or (with a fault noted) nothing further that makes sense. */
enum tdm_status perfdata_walk_next(struct perfdata *pd, struct perfdata_walk *walk,
	struct perfdata_record *record, struct tdm_error *err);

/* The same where the next record lies in memory whatever its size: nearly always. False: ask perfdata_walk_next(). */
static inline bool perfdata_walk_quick(
	struct perfdata_walk *walk, bool big_endian, struct perfdata_record *record)
{
	const uint8_t *const at = walk->bytes + walk->pos;

	if (walk->size - walk->pos <= PERF_RECORD_MAX_BYTES) {
		return false;
	}
	record->bytes = at;
	record->offset = walk->offset + walk->pos;
	record->type = tdm_load_u32(at, big_endian);
	record->misc = tdm_load_u16(at + 4, big_endian);
	record->size = tdm_load_u16(at + 6, big_endian);
	if (record->size < PERF_RECORD_HEADER_BYTES) {
		return false;
	}
	walk->pos += record->size;
	return true;
}

/** Bytes that follow a record without being counted in its size (tracing data, hardware traces); 0 for all others. */
uint64_t perfdata_payload_bytes(const struct perfdata *pd, const struct perfdata_record *record);

/** Passes over payload that follows a record. */
enum tdm_status perfdata_walk_skip(
	struct perfdata *pd, struct perfdata_walk *walk, uint64_t count, struct tdm_error *err);

/* --- perfdata_unpack.c */

/** Writes the records of a store with compressed ones in it to a spool, decompressed, and puts that in its place. */
enum tdm_status perfdata_unpack(struct perfdata *pd, size_t store_index, struct tdm_error *err);

/* --- perfdata_index.c */

/** Walks all stores once. */
enum tdm_status perfdata_index(struct perfdata *pd, struct tdm_error *err);

enum {
	PERF_CPU_NUMBER_END = 65536 /* no machine has more; higher ones mean "unknown" */
};

/** As perfdata_item(), whatever the record is. */
bool perfdata_item_slowly(const struct perfdata *pd, const struct perfdata_record *record,
	uint32_t *cpu, uint64_t *time);

/** Time and CPU of a record that is one CPU's item (a sample or a loss); false for any other. */
static inline bool perfdata_item(const struct perfdata *pd, const struct perfdata_record *record,
	uint32_t *cpu, uint64_t *time)
{
	const struct perfdata_layout *layout = &pd->attrs->layout;

	/* Nearly every record of nearly every file. */
	if (record->type == PERF_RECORD_SAMPLE && pd->has_plain_items &&
		record->size >= layout->fixed_end) {
		*cpu = tdm_load_u32(record->bytes + layout->cpu, pd->big_endian);
		*time = tdm_load_u64(record->bytes + layout->time_at, pd->big_endian);
		if (*cpu < PERF_CPU_NUMBER_END) {
			return true;
		}
	}
	return perfdata_item_slowly(pd, record, cpu, time);
}

void perfdata_index_release(struct perfdata *pd);

/* --- perfdata_sample.c */

/** Whether a record's misc word says that a guest ran. */
static inline bool perfdata_is_guest_mode(uint16_t misc)
{
	const uint16_t mode = misc & 7;

	return mode == 4 || mode == 5; /* kernel, user */
}

/** @return NULL, or what is wrong with the sample. */
const char *perfdata_sample_parse(const struct perfdata *pd, const struct perfdata_record *record,
	const struct perfdata_attr *attr, struct perfdata_sample *sample);

/* --- perfdata_task.c */

struct perfdata_fork {
	int32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

void perfdata_task_comm(struct perfdata *pd, int32_t pid, int32_t tid, uint64_t time,
	const char *name, size_t name_bytes);
void perfdata_task_fork(struct perfdata *pd, const struct perfdata_fork *fork);
/** The process of a thread, and that process's parent (-1: not told). False where nothing tells. */
bool perfdata_task_process(
	const struct perfdata *pd, int32_t tid, int32_t *pid, int32_t *parent_pid);
enum tdm_status perfdata_tasks_settle(struct perfdata *pd, struct tdm_error *err);

/** Name of a task at a time (raw), or NULL. @p until: as tdm_trace_comm_at(), left alone where it stays. */
const char *perfdata_task_name(
	const struct perfdata *pd, int32_t tid, uint64_t time, uint64_t *until);

/** Appends "TID NAME" lines of the first names of all tasks. */
enum tdm_status perfdata_tasks_list(
	const struct perfdata *pd, struct tdm_buffer *text, struct tdm_error *err);
/** The first name that is known of a task, or NULL. */
const char *perfdata_task_first_name(const struct perfdata *pd, int32_t tid);
void perfdata_tasks_release(struct perfdata *pd);

/* --- perfdata_order.c */

/* One sample or loss. */
struct perfdata_item {
	struct perfdata_record
		record; /* bytes valid until a call that may load, or the order's end */
	uint64_t time;
	bool is_late; /* before the last one: more than the stated memory would be needed to sort it */
};

/* What is read straight through: a loaded chunk that is in order and overlaps no other. The first member of an order. */
struct perfdata_straight {
	const uint8_t *bytes;
	uint64_t offset, time; /* of bytes[0]; of the item before */
	uint64_t last_time;    /* the greatest of all items so far */
	uint32_t pos, count;   /* equal: there is none */
	uint32_t cpu;
};

struct perfdata_order; /* the items of one CPU in the order of their times */

/* The next item where it is a sample like nearly all. False: ask perfdata_order_next(). */
static inline bool perfdata_order_quick(
	const struct perfdata *pd, struct perfdata_order *order, struct perfdata_item *item)
{
	struct perfdata_straight *const in = (struct perfdata_straight *)(void *)order;
	const struct perfdata_layout *const layout = &pd->attrs->layout;
	const bool big_endian = pd->big_endian;
	const uint32_t left = in->count - in->pos;
	const uint8_t *const at = in->bytes + in->pos;

	if (left < PERF_RECORD_HEADER_BYTES || !pd->has_plain_items) {
		return false;
	}
	item->record.type = tdm_load_u32(at, big_endian);
	item->record.size = tdm_load_u16(at + 6, big_endian);
	if (item->record.type != PERF_RECORD_SAMPLE || item->record.size > left ||
		item->record.size < layout->fixed_end ||
		tdm_load_u32(at + layout->cpu, big_endian) != in->cpu) {
		return false;
	}
	item->record.bytes = at;
	item->record.offset = in->offset + in->pos;
	item->record.misc = tdm_load_u16(at + 4, big_endian);
	item->time = tdm_load_u64(at + layout->time_at, big_endian);
	if (item->time == PERF_TIME_UNKNOWN) {
		return false;
	}
	in->pos += item->record.size;
	in->time = item->time;
	item->is_late = item->time < in->last_time;
	in->last_time = item->is_late ? in->last_time : item->time;
	return true;
}

struct perfdata_order *perfdata_order_create(
	struct perfdata *pd, size_t cpu_index, struct tdm_error *err);
void perfdata_order_destroy(struct perfdata_order *order);

/**
 * The next item.
 *
 * @param may_load    False: the bytes of items given before stay valid.
 * @retval TDM_AGAIN  Only by loading further bytes.
 * @retval TDM_END    No more.
 */
enum tdm_status perfdata_order_next(struct perfdata_order *order, bool may_load,
	struct perfdata_item *item, struct tdm_error *err);
void perfdata_order_rewind(struct perfdata_order *order);

#endif
