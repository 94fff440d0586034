/* SPDX-License-Identifier: MIT */
/*
 * exchange_priv.h - how a log is kept in memory.
 */
#ifndef TANDEM_EXCHANGE_PRIV_H
#define TANDEM_EXCHANGE_PRIV_H

#include <tandem/exchange.h>

enum log_text {
	LOG_HOST_UUID,
	LOG_HOST_CLOCK,
	LOG_GUEST_UUID,
	LOG_GUEST_CLOCK,
	LOG_MADE,
	LOG_STAMPS,
	LOG_TEXTS
};

struct tdm_exchange_log {
	struct tdm_exchange_log_info info; /* its strings are filled in on request */
	char *texts[LOG_TEXTS];
	struct tdm_exchange_record *records;
	size_t record_count, record_room;
	struct tdm_local_record *locals;
	size_t local_count, local_room;
	struct tdm_epoch_record *epochs;
	size_t epoch_count, epoch_room;
	struct tdm_exchange_log_faults faults;
};

/** Keeps a copy of @p text in a slot; NULL and "-": nothing. */
enum tdm_status exchange_keep_text(
	struct tdm_exchange_log *log, enum log_text slot, const char *text, struct tdm_error *err);

/* The format's first word. */
extern const char exchange_format_name[];

/** Total order of records: by sequence, then by readings. For qsort(). */
int exchange_compare_records(const void *a, const void *b);

#endif
