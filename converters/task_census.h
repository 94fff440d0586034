/* SPDX-License-Identifier: MIT */
/*
 * task_census.h - which threads a trace shows, and how each was when it was first seen: for a made-up state dump.
 */
#ifndef TANDEM_TASK_CENSUS_H
#define TANDEM_TASK_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/status.h>
#include <tandem/task_names.h>

/* What a thread was doing when it was first seen; so it was before. */
enum tdm_task_first {
	TDM_FIRST_LISTED,  /* not seen, only named by the tracer */
	TDM_FIRST_RUNNING, /* it ran */
	TDM_FIRST_READY,   /* it was switched to without having been woken */
	TDM_FIRST_ASLEEP,  /* it was woken */
	TDM_FIRST_BORN,    /* it was forked: it did not exist before */
};

struct tdm_seen_task {
	int32_t tid;
	enum tdm_task_first first;
	uint32_t cpu;
	uint64_t time;
	uint8_t used, length;
	char comm[TDM_TASK_NAME_MAX + 1];
};

struct tdm_task_census {
	struct tdm_seen_task *tasks; /* owned; open addressing */
	size_t room, count;
	uint32_t last;
	uint64_t left_out; /* threads beyond the cap */
};

/**
 * Notes a thread; what is known of it already, of an earlier time, stays.
 *
 * @param comm  Its name, any bytes, @p comm_bytes long up to a NUL; NULL = unknown.
 * @retval TDM_ERR_NOMEM
 */
enum tdm_status tdm_task_census_see(struct tdm_task_census *census, int32_t tid,
	enum tdm_task_first first, uint32_t cpu, uint64_t time, const char *comm,
	size_t comm_bytes);

/** Whether the thread is known: the cheap question before tdm_task_census_see(). */
bool tdm_task_census_has(struct tdm_task_census *census, int32_t tid);

/** The thread's entry or NULL. */
const struct tdm_seen_task *tdm_task_census_find(const struct tdm_task_census *census, int32_t tid);

/** Adds what another has seen: of two first sights the earlier one counts. */
enum tdm_status tdm_task_census_merge(
	struct tdm_task_census *census, const struct tdm_task_census *other);

void tdm_task_census_release(struct tdm_task_census *census);

#endif
