/* SPDX-License-Identifier: MIT */
/*
 * task_names.h - what the threads of one stream are called: saved names first, then what the records teach.
 *
 * The tracer saves few names, so the rest is learned as the stream goes by: from sched_switch, wake-ups, fork, exec,
 * rename and exit. Only the stream itself teaches (a thread is switched to on the CPU that then records it), so every
 * reader of a stream learns the same, in whatever order streams are read.
 */
#ifndef TANDEM_TASK_NAMES_H
#define TANDEM_TASK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/schema.h>
#include <tandem/trace.h>

#define TDM_TASK_NAME_MAX \
	15 /* bytes of a name, as the kernel keeps it (TASK_COMM_LEN less its NUL) */

/*
 * What is shown for a thread whose name is not known, as trace-cmd does. Never an empty text: the CTF reader of babeltrace2
 * 2.0 shows the text before in place of an empty one.
 */
#define TDM_TASK_NAME_UNKNOWN "<...>"

struct tdm_task_names; /* one a stream; not shared between threads */

/** @param trace  Borrowed; must outlive the result. @return Owned by the caller; NULL without memory. */
struct tdm_task_names *tdm_task_names_create(const struct tdm_trace *trace);
void tdm_task_names_destroy(struct tdm_task_names *names);

/** Forgets what was learned: for a stream that begins again. */
void tdm_task_names_reset(struct tdm_task_names *names);

/** Takes what a record teaches. To be called for each record of the stream, in order, before its own name is asked. */
void tdm_task_names_learn(struct tdm_task_names *names, const struct tdm_event_class *event_class,
	const uint8_t *payload, uint32_t payload_bytes);

/**
 * The name of a thread as known now.
 *
 * @param length  Receives the bytes of the name, without NUL. Bytes are as the kernel has them, any.
 * @return The name, valid until the next call; "" while unknown.
 */
const char *tdm_task_names_find(struct tdm_task_names *names, int32_t tid, size_t *length);

/**
 * The name of a thread at a time: what the input recorded of names over time (perf), else as tdm_task_names_find().
 *
 * @param until  Receives the first raw time at which the answer may be another without anything learned; UINT64_MAX:
 *               never.
 */
const char *tdm_task_names_find_at(struct tdm_task_names *names, int32_t tid, uint64_t raw_time,
	size_t *length, uint64_t *until);

/* One pair of fields that tells a thread's name. */
struct tdm_task_lesson {
	uint32_t tid_offset_bytes; /* of a 4-byte thread id in the record */
	const struct tdm_field *comm;
	bool is_path; /* the name is the last part of a path (exec) */
};

/** The lessons in records of a class. @return Their number, at most 2; 0 for most classes. */
unsigned int tdm_task_lessons(
	const struct tdm_event_class *event_class, struct tdm_task_lesson lessons[2]);

#endif
