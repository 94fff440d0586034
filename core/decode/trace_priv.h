/* SPDX-License-Identifier: MIT */
/*
 * trace_priv.h - what every reader of core/decode is made of: a trace and a reader begin with these, and a table of
 * functions says what is different.
 */
#ifndef TANDEM_TRACE_PRIV_H
#define TANDEM_TRACE_PRIV_H

#include <tandem/trace.h>

/*
 * One input format. A function that is said to be optional may be NULL.
 *
 * next and next_batch: one of them at least. trace.c makes the other one where it is NULL: batches of one record, or
 * records out of batches.
 */
struct trace_ops {
	void (*close)(struct tdm_trace *trace); /* frees all but what trace_release() frees */
	const char *(*saved_comm)(const struct tdm_trace *trace, int32_t tid); /* optional */
	const char *(*comm_at)(
		const struct tdm_trace *trace, int32_t tid, uint64_t raw_time, uint64_t *until);
	bool (*process_of)(
		const struct tdm_trace *trace, int32_t tid, int32_t *pid, int32_t *parent_pid);
	/* NULL: the input does not tell */ /* optional */
	enum tdm_status (*read_text)(struct tdm_trace *trace, enum tdm_trace_text which,
		struct tdm_buffer *text, struct tdm_error *err); /* optional */
	struct tdm_reader *(*reader_create)(
		struct tdm_trace *trace, size_t stream_index, struct tdm_error *err);
	void (*reader_destroy)(struct tdm_reader *reader); /* frees the reader itself too */
	enum tdm_status (*next)(
		struct tdm_reader *reader, struct tdm_record *record, struct tdm_error *err);
	enum tdm_status (*next_batch)(
		struct tdm_reader *reader, struct tdm_batch *batch, struct tdm_error *err);
	enum tdm_status (*rewind)(struct tdm_reader *reader, struct tdm_error *err);
};

struct fault_list;
struct symbol_table;

/* The first member of every format's own trace. */
struct tdm_trace {
	const struct trace_ops *ops;
	struct tdm_trace_info info;
	struct tdm_schema *schema; /* owned */
	const struct tdm_log *log;
	struct tdm_stamp_options options;
	struct fault_list *faults;     /* owned */
	struct symbol_table *kallsyms; /* owned; made when first asked for */
	struct symbol_table *printk;
};

/* The first member of every format's own reader. */
struct tdm_reader {
	struct tdm_trace *trace;
	size_t stream_index;
	struct tdm_reader_counts counts;
	/* trace.c's own: what is left of a batch that tdm_reader_next() takes apart, and the slot of a batch of one. */
	struct tdm_batch batch;
	size_t batch_pos;
	struct tdm_slot slot;
};

/** Fills the common part. @retval TDM_ERR_NOMEM  No memory; trace_release() still wants to be called. */
enum tdm_status trace_init(struct tdm_trace *trace, const struct trace_ops *ops,
	const struct tdm_stamp_options *options, const struct tdm_log *log, struct tdm_error *err);

/** Frees what the common part owns, not the trace itself. */
void trace_release(struct tdm_trace *trace);

/**
 * Notes something that cannot be read, and logs it the first time: "PATH: text". The same @p format (by address)
 * with the same @p scope is folded into one fault whose text is the first one's.
 *
 * @param scope  0 for the file, stream index + 1 for a stream, or any number that tells two apart.
 */
void trace_fault(struct tdm_trace *trace, uint64_t scope, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* trace_fault() with a number of times that it was met at once. */
void trace_fault_count(struct tdm_trace *trace, uint64_t scope, uint64_t count, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* How a format is opened; called with a trace of no kind yet. */
enum tdm_status tracedat_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err);
enum tdm_status perfdata_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err);

#endif
