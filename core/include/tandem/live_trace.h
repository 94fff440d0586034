/* SPDX-License-Identifier: MIT */
/*
 * live_trace.h - a trace whose pages arrive while it is read: the same records as files give.
 *
 * One thread only: it pushes pages (from a connection, say) and reads records. A page without records tells how far its
 * CPU's stream is complete, so that a reader of several streams need not wait for a quiet one.
 */
#ifndef TANDEM_LIVE_TRACE_H
#define TANDEM_LIVE_TRACE_H

#include <tandem/trace.h>
#include <tandem/trace_meta.h>

struct tdm_live_options {
	const char *name; /* stands for the file in messages; copied */
	uint64_t trace_id;
	size_t queue_bytes; /* of pages that wait, all CPUs; 0 = 32 MiB. Beyond it the oldest of the fullest CPU is lost */
	/*
	 * Asked by a reader that has no page: get more, from wherever they come, and push them.
	 * TDM_OK: something was pushed, of this CPU or another. TDM_AGAIN: nothing is there. TDM_END: nothing will come.
	 */
	enum tdm_status (*pump)(void *user, struct tdm_error *err);
	void *user;
};

/**
 * Makes a trace out of a kernel's texts, one stream for each CPU.
 *
 * @param meta   Taken: released with the trace, on failure at once.
 * @param trace  Receives it, owned by the caller (tdm_trace_close()).
 */
enum tdm_status tdm_live_trace_create(const struct tdm_live_options *options,
	struct tdm_trace_meta *meta, const struct tdm_log *log, struct tdm_trace **trace,
	struct tdm_error *err);

/**
 * Adds one page of a CPU.
 *
 * @param lost_pages  Pages that did not arrive before it; become a loss of unknown count.
 * @retval TDM_ERR_RANGE  No such CPU, or not the size of a page.
 */
enum tdm_status tdm_live_trace_push(struct tdm_trace *trace, uint32_t cpu, const void *page,
	size_t page_bytes, uint64_t lost_pages, struct tdm_error *err);

/**
 * How far a stream is complete: no record of it that is still to come is earlier.
 *
 * @return False where nothing is known yet, or the trace is no live one.
 */
bool tdm_reader_progress(const struct tdm_reader *reader, uint64_t *time_ns);

#endif
