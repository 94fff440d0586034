/* SPDX-License-Identifier: MIT */
/*
 * trace.h - one opened input (trace.dat, perf.data, a live stream): its machine, buffers, CPU streams and records.
 *
 * The readers of core/decode all give these; who consumes records need not know the format they came from.
 */
#ifndef TANDEM_TRACE_H
#define TANDEM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/log.h>
#include <tandem/schema.h>
#include <tandem/status.h>
#include <tandem/timeline.h>

enum tdm_trace_format {
	TDM_FORMAT_UNKNOWN,
	TDM_FORMAT_TRACEDAT,
	TDM_FORMAT_PERF,
	TDM_FORMAT_LIVE
};

/* One stream of records: one CPU of one buffer. */
struct tdm_stream_info {
	uint32_t cpu;
	uint32_t buffer_index; /* into tdm_trace_info.buffers */
	uint64_t data_bytes;   /* in the file, compressed or not */
};

struct tdm_buffer_info {
	const char *name;  /* "" = the top buffer */
	const char *clock; /* trace clock's name, e.g. "mono" */
	uint32_t page_bytes;
	bool shifted; /* TIME_SHIFT or a corrections file applies to it (shares the top buffer's clock) */
	bool is_ns; /* time_ns of its records is in ns; else in units of the clock (ticks, counts) */
};

/* What the tracer itself counted on one CPU of one buffer (per_cpu/cpuN/stats at the end of the recording). */
struct tdm_cpu_stats {
	uint32_t buffer_index;
	uint32_t cpu;
	uint64_t entries, overrun, commit_overrun, dropped_events, read_events;
};

/* One measurement of the difference between guest and host clocks, as trace-cmd recorded it. */
struct tdm_recorded_sample {
	int64_t time;     /* guest reading, in raw units of its clock */
	int64_t offset;   /* host minus guest */
	int64_t scaling;  /* of the reading, before the offset is added */
	int64_t fraction; /* bits of the scaling behind the point */
};

/* The samples of one guest CPU, by time. */
struct tdm_recorded_shift {
	const struct tdm_recorded_sample *samples;
	uint32_t sample_count;
};

/* One vCPU of a guest and the host thread that runs it. */
struct tdm_vcpu {
	uint32_t vcpu;
	int32_t host_tid; /* -1 unknown */
};

struct tdm_guest_info {
	const char *name;
	uint64_t trace_id;
	const struct tdm_vcpu *vcpus;
	size_t vcpu_count;
};

/* What the input says of itself. All pointers live as long as the trace. Absent strings are NULL. */
struct tdm_trace_info {
	enum tdm_trace_format format;
	const char *path;
	unsigned int version;    /* of the file format */
	const char *compression; /* "none", "zlib", "zstd" */
	bool big_endian;
	unsigned int long_bytes; /* of the kernel */
	const char *hostname, *kernel_release, *architecture, *recorder;
	const char *clock;  /* of the top buffer */
	uint32_t cpu_count; /* of the machine, as the file says; 0 unknown */
	bool has_trace_id;
	uint64_t trace_id;
	bool has_peer; /* a TIME_SHIFT: this is a guest's file */
	uint64_t peer_trace_id;
	bool shift_interpolates;                     /* between its samples; else steps */
	const struct tdm_recorded_shift *shift_cpus; /* by CPU id */
	size_t shift_cpu_count;
	bool has_tsc2nsec;
	uint32_t tsc_mult, tsc_shift;
	int64_t date_offset_ns; /* sum of DATE and OFFSET options, in ns */
	bool is_unix_time;      /* stamps count from the Unix epoch (DATE, perf CLOCK_DATA) */
	const struct tdm_guest_info *guests;
	size_t guest_count;
	const struct tdm_buffer_info *buffers;
	size_t buffer_count;
	const struct tdm_stream_info *streams; /* by buffer, then by CPU */
	size_t stream_count;
	bool has_callchains;               /* samples of perf come with call chains */
	const struct tdm_cpu_stats *stats; /* in the order of the file */
	size_t stats_count;
};

/* How stamps are made; zero-initialised: exactly as "trace-cmd report -t" does. */
struct tdm_stamp_options {
	const struct tdm_timeline
		*corrections; /* replaces TIME_SHIFT; borrowed, must outlive the trace */
	uint64_t clock_hz;    /* 0 = the file knows */
	int64_t offset_ns;    /* added last */
	bool raw;             /* neither TIME_SHIFT, TSC2NSEC, DATE nor OFFSET */
};

enum tdm_item_kind {
	TDM_ITEM_RECORD,
	TDM_ITEM_LOST, /* the tracer lost events just before the next record */
};

/* What tdm_reader_next() gives: one record, or one loss. */
struct tdm_record {
	enum tdm_item_kind kind;
	uint64_t raw_time; /* the tracer's own stamp, in units of its clock */
	uint64_t
		time_ns; /* corrected; not yet clamped: may go back within a stream where the clock did */
	const struct tdm_event_class *event_class; /* NULL: an id that the schema lacks */
	const uint8_t
		*payload; /* the record's bytes, common fields first; valid until the next call */
	uint32_t payload_bytes;
	uint32_t event_id;
	int32_t tid; /* the record's common pid (perf: of the sample); -1 unknown */
	/* TDM_ITEM_LOST */
	uint64_t lost_count; /* 0 = the tracer does not know how many */
	/* perf only */
	int32_t pid;   /* process; -1 unknown */
	bool in_guest; /* sampled in guest mode */
	const uint64_t
		*callchain; /* callchain_count addresses, byte order of this machine; NULL = none */
	uint32_t callchain_count;
};

/* What could not be read, and where. One list a trace, in order of discovery, same fault folded. */
struct tdm_fault {
	const char *text; /* file, offset, what was read, what was wanted */
	uint64_t count;   /* times it was met */
};

struct tdm_trace;

/** True where a trace clock counts ns, by its name ("tsc2nsec" too); false for NULL. */
bool tdm_clock_counts_ns(const char *clock);

/** The format of a file by its first bytes: cheap, never fails. TDM_FORMAT_UNKNOWN for anything unreadable. */
enum tdm_trace_format tdm_trace_probe(const char *path);

/**
 * What a file of another format is, and what to do with it, in words of a sentence; NULL: nothing that is known. Of a directory
 * in which nobody found a trace always something.
 */
const char *tdm_trace_foreign(const char *path);

/**
 * Opens an input and reads its metadata. Damage that leaves something readable is recorded as a fault.
 *
 * @param path     Borrowed for the call.
 * @param log      Kept: must outlive the trace. May be NULL.
 * @param trace    Receives the trace, owned by the caller.
 * @retval TDM_ERR_FORMAT, TDM_ERR_IO, TDM_ERR_UNSUPPORTED, TDM_ERR_NOMEM  Nothing can be delivered.
 */
enum tdm_status tdm_trace_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err);
void tdm_trace_close(struct tdm_trace *trace);

const struct tdm_trace_info *tdm_trace_get_info(const struct tdm_trace *trace);
const struct tdm_schema *tdm_trace_get_schema(const struct tdm_trace *trace);

/** Faults met so far (metadata at open, data while reading). Thread-safe against readers; the list only grows. */
size_t tdm_trace_fault_count(const struct tdm_trace *trace);
struct tdm_fault tdm_trace_fault_at(const struct tdm_trace *trace, size_t index);

/** Name of a task as the file's saved command lines tell, or NULL. */
const char *tdm_trace_saved_comm(const struct tdm_trace *trace, int32_t tid);

/**
 * Name of a task at a raw time, or NULL. Where the input does not record names over time (trace.dat): the saved one.
 * @param until  Receives the first raw time at which the answer may be another; UINT64_MAX: never. May be NULL.
 */
const char *tdm_trace_comm_at(
	const struct tdm_trace *trace, int32_t tid, uint64_t raw_time, uint64_t *until);

/**
 * The process of a thread as the input tells it when it begins, and that process's parent (-1: not told). False where it
 * does not tell: trace.dat never does.
 */
bool tdm_trace_process_of(
	const struct tdm_trace *trace, int32_t tid, int32_t *pid, int32_t *parent_pid);

/** True where the input records the names of tasks over time, so that tdm_trace_comm_at() is what to ask. */
bool tdm_trace_has_comms(const struct tdm_trace *trace);

/* Texts that an input carries beside its event formats. */
enum tdm_trace_text {
	TDM_TEXT_HEADER_PAGE,    /* events/header_page of tracefs */
	TDM_TEXT_HEADER_EVENT,   /* events/header_event */
	TDM_TEXT_KALLSYMS,       /* /proc/kallsyms; megabytes: read from the file at each call */
	TDM_TEXT_PRINTK_FORMATS, /* printk_formats */
	TDM_TEXT_SAVED_CMDLINES, /* saved_cmdlines */
};

/**
 * Appends such a text to @p text; nothing where the input has none.
 * @retval TDM_ERR_FORMAT, TDM_ERR_IO, TDM_ERR_NOMEM  It cannot be read.
 */
enum tdm_status tdm_trace_read_text(struct tdm_trace *trace, enum tdm_trace_text which,
	struct tdm_buffer *text, struct tdm_error *err);

/**
 * Name of the kernel symbol that @p address lies in, or NULL. The table is read at the first call; thread-safe.
 * @param distance  Receives the bytes from the symbol's start; may be NULL.
 */
const char *tdm_trace_symbol(struct tdm_trace *trace, uint64_t address, uint64_t *distance);

/** The printk format at @p address ("fmt" of a bprint record), without quotes and escapes, or NULL. Thread-safe. */
const char *tdm_trace_printk_format(struct tdm_trace *trace, uint64_t address);

struct tdm_reader; /* reads one stream once, front to back; several readers of one trace may run in threads */

/** @return A reader of stream @p stream_index that the caller owns, or NULL with @p err filled. */
struct tdm_reader *tdm_reader_create(
	struct tdm_trace *trace, size_t stream_index, struct tdm_error *err);
void tdm_reader_destroy(struct tdm_reader *reader);

/**
 * The next item. Damaged pages are passed over and counted as faults; the rest of the stream still comes.
 *
 * @retval TDM_OK     @p record holds it.
 * @retval TDM_END    No more.
 * @retval TDM_AGAIN  A live input has nothing yet.
 * @retval TDM_ERR_*  Nothing further can be read from this stream.
 */
enum tdm_status tdm_reader_next(
	struct tdm_reader *reader, struct tdm_record *record, struct tdm_error *err);

/* What a sample of perf tells beside its record. */
struct tdm_sample {
	int32_t pid, tid; /* -1 unknown */
	bool in_guest;    /* sampled in guest mode */
	uint32_t callchain_count;
	const uint64_t *
		callchain; /* in the byte order of this machine; NULL = none; valid as long as the payload */
};

/* One record of a batch: what a fast consumer needs, nothing that costs a look-up. */
struct tdm_slot {
	uint64_t raw_time;
	uint64_t time_ns;
	const uint8_t *payload; /* valid until the next call on the reader */
	uint32_t payload_bytes;
	uint32_t event_id;
	const struct tdm_sample *sample; /* perf only; else NULL */
};

/* Some consecutive records of one stream, with the loss that stands before them, if any. */
struct tdm_batch {
	const struct tdm_slot *slots; /* valid until the next call on the reader */
	size_t count;                 /* may be 0 where only a loss is told */
	bool lost;                    /* the tracer lost events just before slots[0] */
	uint64_t lost_count;          /* 0 = the tracer does not know how many */
	uint64_t lost_raw_time; /* of the first record after the loss, or of the page without one */
	uint64_t lost_time_ns;
};

/**
 * The next records of a stream, many at a time: the same as tdm_reader_next() gives, some 50 to 500 a call.
 * Calls of the two may be mixed.
 *
 * @retval TDM_OK, TDM_END, TDM_AGAIN, TDM_ERR_*  As tdm_reader_next().
 */
enum tdm_status tdm_reader_next_batch(
	struct tdm_reader *reader, struct tdm_batch *batch, struct tdm_error *err);

/** Back to the first item. */
enum tdm_status tdm_reader_rewind(struct tdm_reader *reader, struct tdm_error *err);

/* Counts of one stream so far. */
struct tdm_reader_counts {
	uint64_t records;
	uint64_t lost_events;      /* known counts added up */
	uint64_t lost_unknown;     /* losses without a count */
	uint64_t unreadable_pages; /* damaged, passed over */
	uint64_t unreadable_bytes;
};

struct tdm_reader_counts tdm_reader_get_counts(const struct tdm_reader *reader);

#endif
