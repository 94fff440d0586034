/* SPDX-License-Identifier: MIT */
/*
 * json_events.h - a file in the trace-event format that Perfetto and chrome://tracing open, event by event.
 *
 * A machine is a process, a CPU of it a thread with a slice for each task that ran; a task has a thread of its own for
 * its system calls. Everything else is an instant event on its CPU. Readers sort, so nothing has to be in order.
 */
#ifndef TANDEM_JSON_EVENTS_H
#define TANDEM_JSON_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

/* Tracks of tasks stand behind those of CPUs. */
#define TDM_JSON_TASK_TRACK UINT64_C(1000000)

struct tdm_json_file {
	FILE *file;
	char *path, *work_path; /* owned; the latter while it is written */
	bool has_event;
	struct tdm_buffer scratch;
	size_t machine_count; /* so far */
};

/**
 * Begins DIR/trace.json under a temporary name.
 *
 * @param force  It may exist: it is replaced in the end.
 * @retval TDM_ERR_RANGE  It exists and force is off. @p file is to be released in either case.
 */
enum tdm_status tdm_json_begin(
	struct tdm_json_file *file, const char *dir, bool force, struct tdm_error *err);

/** Ends the file and gives it its name. */
enum tdm_status tdm_json_commit(struct tdm_json_file *file, struct tdm_error *err);

/** Frees; a file that was not committed is removed. */
void tdm_json_release(struct tdm_json_file *file);

/** A machine with its name. @return The number by which its events are told. */
size_t tdm_json_add_machine(struct tdm_json_file *file, const char *name, bool is_host);

/** Begins an event on a track; the caller goes on with ", ..." and closes the brace. */
void tdm_json_begin_event(
	struct tdm_json_file *file, const char *phase, size_t machine, uint64_t track);

/** Microseconds with all nanoseconds behind the point. */
void tdm_json_put_time(struct tdm_json_file *file, const char *key, int64_t time_ns);
void tdm_json_put_text(struct tdm_json_file *file, const char *text, size_t length);
void tdm_json_put_string(struct tdm_json_file *file, const char *text);

/** A number; in quotes where a double, which a JSON number is to most readers, cannot hold it. */
void tdm_json_put_unsigned(struct tdm_json_file *file, uint64_t number);
void tdm_json_put_signed(struct tdm_json_file *file, int64_t number);

void tdm_json_name_track(
	struct tdm_json_file *file, size_t machine, uint64_t track, const char *name);

/** The slice of a task that ran on a CPU; nothing for the idle task. */
void tdm_json_put_slice(struct tdm_json_file *file, size_t machine, uint32_t cpu, int64_t from_ns,
	int64_t to_ns, int32_t tid, const char *comm);

/** "read" of "syscall_entry_read" and "sys_enter_read"; NULL where the name is another. */
const char *tdm_json_call_of(const char *name, bool *is_entry);

#endif
