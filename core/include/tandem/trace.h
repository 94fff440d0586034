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

/** The format of a file by its first bytes: cheap, never fails. TDM_FORMAT_UNKNOWN for anything unreadable. */
enum tdm_trace_format tdm_trace_probe(const char *path);

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
