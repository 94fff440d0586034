/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - what one request and its reply tell about two clocks, and the log in which such exchanges are kept.
 *
 * Format of the log: "tandem-exchanges 1", tandem-exchanges(5).
 */
#ifndef TANDEM_EXCHANGE_H
#define TANDEM_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

/* The four readings of one exchange, in the order in which they happen; each in units of its own clock. */
struct tdm_exchange {
	uint64_t host_sent, guest_got, guest_sent, host_got;
};

/**
 * Solves one exchange of two clocks that both count ns for the clock offset and the path delay.
 *
 * Assumes the same delay both ways; an uneven path hides in the offset, by at
 * most half of @p delay_ns. Source: RFC 5905, section 8.
 *
 * @param ex         The readings. Borrowed.
 * @param offset_ns  Receives host minus guest, in nanoseconds.
 * @param delay_ns   Receives the round trip less the guest's own time, in nanoseconds.
 *
 * @retval TDM_OK         Solved.
 * @retval TDM_ERR_RANGE  A clock ran backwards, the delay is negative, or the offset does not fit; nothing is written.
 */
enum tdm_status tdm_exchange_solve(
	const struct tdm_exchange *ex, int64_t *offset_ns, uint64_t *delay_ns);

enum tdm_exchange_marks {
	TDM_MARK_PIPELINED = 1, /* 'p': several probes were under way; for the bound only */
	TDM_MARK_CODED = 2,     /* 'c': its coded pair met a queue; for the bound only */
	TDM_MARK_INVALID =
		4, /* a number that is no reading (negative, above 2^62) was read; never used */
};

/* One exchange as the log keeps it: an "x" record and the "r" and "t" records of its sequence number. */
struct tdm_exchange_record {
	uint64_t seq;
	struct tdm_exchange trace; /* trace clocks */
	struct tdm_exchange raw;   /* raw clocks, where has_raw */
	uint64_t kernel
		[4]; /* CLOCK_REALTIME ns in the order of an exchange, 0 = none; where has_kernel */
	uint8_t marks; /* enum tdm_exchange_marks */
	bool has_raw, has_kernel;
};

enum tdm_side {
	TDM_SIDE_HOST,
	TDM_SIDE_GUEST
};

/* One sandwich read of two local clocks, an "l" record: trace was read between two reads of raw. */
struct tdm_local_record {
	enum tdm_side side;
	uint64_t raw;   /* the middle of the two reads */
	uint64_t trace; /* read between them */
	uint64_t width; /* from the first read to the second */
};

/* One "e" record: the guest saw its clock jump; from this reading on another epoch holds. */
struct tdm_epoch_record {
	uint64_t epoch, guest;
	char reason[24];
};

/* REALTIME minus trace clock of one side, sampled with the exchanges. */
struct tdm_epoch_offset {
	bool is_known;
	int64_t offset_ns;
	uint64_t width_ns;
};

/* The header of a log. Strings are NULL where nothing is said. */
struct tdm_exchange_log_info {
	const char *host_uuid, *host_clock;
	const char *guest_uuid, *guest_clock;
	uint64_t host_unit_hz, guest_unit_hz; /* 1000000000 where not said */
	struct tdm_epoch_offset epoch[2];     /* by side: "epoch host", "epoch guest" */
	const char *made, *stamps;
	uint64_t rate_ppb; /* 100 where not said */
};

enum {
	TDM_EXCHANGE_LOG_MAX = 1 << 20, /* records of each kind */
};

struct tdm_exchange_log; /* opaque */

/** An empty log. NULL without memory. */
struct tdm_exchange_log *tdm_exchange_log_create(void);
void tdm_exchange_log_destroy(struct tdm_exchange_log *log);

/**
 * Reads a log. A line that cannot be understood is passed over and counted; a log that was cut short is taken as far
 * as it goes. Records that belong to one sequence number are brought together, whatever their order.
 *
 * @param log  Receives it, owned by the caller.
 * @retval TDM_ERR_FORMAT       Not such a log, or not one line of it can be used.
 * @retval TDM_ERR_UNSUPPORTED  A version that is not ours.
 * @retval TDM_ERR_NOMEM        Also: more than TDM_EXCHANGE_LOG_MAX records.
 */
enum tdm_status tdm_exchange_log_load(
	const char *path, struct tdm_exchange_log **log, struct tdm_error *err);

/** The same from memory; @p name stands for the file in messages. */
enum tdm_status tdm_exchange_log_parse(const char *name, const char *text, size_t text_bytes,
	struct tdm_exchange_log **log, struct tdm_error *err);

/** What was wrong with a log that was read nevertheless. */
struct tdm_exchange_log_faults {
	bool cut_short;         /* no "end" */
	uint64_t bad_lines;     /* passed over */
	uint64_t orphans;       /* "r" and "t" records without their "x", or with several */
	struct tdm_error first; /* the first bad line, with its place */
};

const struct tdm_exchange_log_faults *tdm_exchange_log_get_faults(
	const struct tdm_exchange_log *log);

/** Says what the log is about; strings are copied. TDM_ERR_RANGE for a string with blanks or a rate of 0 Hz. */
enum tdm_status tdm_exchange_log_set_info(struct tdm_exchange_log *log,
	const struct tdm_exchange_log_info *info, struct tdm_error *err);
struct tdm_exchange_log_info tdm_exchange_log_get_info(const struct tdm_exchange_log *log);

/* Adding records, in any order. TDM_ERR_NOMEM: no memory, or the log is full. */
enum tdm_status tdm_exchange_log_add(
	struct tdm_exchange_log *log, const struct tdm_exchange_record *record);
enum tdm_status tdm_exchange_log_add_local(
	struct tdm_exchange_log *log, const struct tdm_local_record *record);
enum tdm_status tdm_exchange_log_add_epoch(
	struct tdm_exchange_log *log, const struct tdm_epoch_record *record);

/* What is in the log. The arrays live until the log changes. */
const struct tdm_exchange_record *tdm_exchange_log_records(
	const struct tdm_exchange_log *log, size_t *count);
const struct tdm_local_record *tdm_exchange_log_locals(
	const struct tdm_exchange_log *log, size_t *count);
const struct tdm_epoch_record *tdm_exchange_log_epochs(
	const struct tdm_exchange_log *log, size_t *count);

/** Appends the text of a whole log. */
enum tdm_status tdm_exchange_log_write(const struct tdm_exchange_log *log, struct tdm_buffer *out);

/* For a log that is written while a session runs: header, then records as they come, then "end\n". */
enum tdm_status tdm_exchange_write_header(
	const struct tdm_exchange_log_info *info, struct tdm_buffer *out);
enum tdm_status tdm_exchange_write_record(
	const struct tdm_exchange_record *record, struct tdm_buffer *out);
enum tdm_status tdm_exchange_write_local(
	const struct tdm_local_record *record, struct tdm_buffer *out);
enum tdm_status tdm_exchange_write_epoch(
	const struct tdm_epoch_record *record, struct tdm_buffer *out);

#endif
