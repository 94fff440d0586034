/* SPDX-License-Identifier: MIT */
/*
 * state_dump.c - the packet at a trace's start that LTTng would have written: which threads there are, made up from
 * what the input names and shows; and a guest's end of its sync pair.
 */
#include "convert_priv.h"
#include <stdlib.h>

/* Numbers of LTTng's state dump. */
enum {
	STATUS_WAIT_CPU = 2,
	STATUS_WAIT = 5,
	STATUS_RUN = 6
};

enum {
	TYPE_USER = 0,
	TYPE_KERNEL = 1
};

enum {
	MODE_UNKNOWN = 0,
	SUBMODE_UNKNOWN = 1
};

#define FIELD_BYTES (8 * 4 + TDM_TASK_NAME_MAX * 4 + 1 + 4 + 1)
#define EVENT_BYTES_MAX \
	(TDM_CTF_EVENT_HEADER_BYTES_MAX + 4 + 64 + TDM_COMMON_FIELDS_MAX * 8 + FIELD_BYTES)
#define THREADS_MAX 65536u

const struct tdm_ctf_member tdm_state_dump_members[] = {
	{ "tid", false, 4, true, false },
	{ "pid", false, 4, true, false },
	{ "ppid", false, 4, true, false },
	{ "name", true, 0, false, false },
	{ "type", false, 4, true, false },
	{ "mode", false, 4, true, false },
	{ "submode", false, 4, true, false },
	{ "status", false, 4, true, false },
	{ "cpu", false, 4, false, false },
	{ "tandem_synthetic", false, 1, false, false },
};
const size_t tdm_state_dump_member_count =
	sizeof(tdm_state_dump_members) / sizeof(tdm_state_dump_members[0]);

static void count_comm(void *user, int32_t tid, const char *comm, size_t comm_bytes)
{
	(void)tid;
	(void)comm;
	(void)comm_bytes;
	*(uint64_t *)user += 1;
}

uint64_t tdm_state_dump_estimate(const struct tdm_convert_machine *conversion)
{
	uint64_t count = 0;

	tdm_each_saved_comm(conversion->trace, count_comm, &count);
	count = count < THREADS_MAX ? count : THREADS_MAX;
	return ((count * 5 / 4 + 32) * 72 + 4095) / 4096 * 4096;
}

/*
 * Names the threads that are known. ftrace saves the names of all threads that ever ran, most of them long dead, and does not
 * tell which live: one that only stands there would be shown as waiting for as long as the trace lasts. perf's list, which
 * has processes, begins with all threads that lived.
 */
static void list_comm(void *user, int32_t tid, const char *comm, size_t comm_bytes)
{
	struct tdm_convert_machine *const conversion = user;
	int32_t pid, parent_pid;

	if (tid > 0 && !(comm_bytes == 5 && memcmp(comm, "<...>", 5) == 0) &&
		(tdm_task_census_has(&conversion->census, tid) ||
			tdm_trace_process_of(conversion->trace, tid, &pid, &parent_pid))) {
		(void)tdm_task_census_see(&conversion->census, tid, TDM_FIRST_LISTED, UINT32_MAX,
			UINT64_MAX, comm, comm_bytes);
	}
}

static int by_tid(const void *a, const void *b)
{
	const struct tdm_seen_task *const x = a;
	const struct tdm_seen_task *const y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int32_t process_of(
	const struct tdm_convert_machine *conversion, int32_t tid, int32_t *parent_pid)
{
	int32_t pid = 0;

	*parent_pid = 0;
	if (tdm_trace_process_of(conversion->trace, tid, &pid, parent_pid)) {
		*parent_pid = *parent_pid < 0 ? 0 : *parent_pid;
		return pid;
	}
	*parent_pid = 0;

	const struct tdm_vcpu_thread *const vcpu = tdm_find_vcpu_thread(conversion, tid);

	return vcpu ? vcpu->pid : tid; /* unknown: a process of its own */
}

static uint8_t *put_task(const struct tdm_convert_machine *conversion, struct tdm_copy_state *copy,
	const struct tdm_seen_task *task, uint8_t *out, const uint8_t *limit)
{
	const bool big_endian = conversion->layout.big_endian;
	const int status = task->first == TDM_FIRST_RUNNING ? STATUS_RUN
			   : task->first == TDM_FIRST_READY ? STATUS_WAIT_CPU
							    : STATUS_WAIT;
	int32_t parent_pid = 0;
	const int32_t pid = process_of(conversion, task->tid, &parent_pid);

	out = tdm_ctf_put_u32(out, (uint32_t)task->tid, big_endian);
	out = tdm_ctf_put_u32(out, (uint32_t)pid, big_endian);
	out = tdm_ctf_put_u32(out, (uint32_t)parent_pid, big_endian);
	out = task->length
		      ? tdm_copy_text(copy, (const uint8_t *)task->comm, task->length, out, limit)
		      : tdm_copy_text(copy, (const uint8_t *)TDM_TASK_NAME_UNKNOWN,
				strlen(TDM_TASK_NAME_UNKNOWN), out, limit);
	if (!out) {
		return NULL;
	}
	out = tdm_ctf_put_u32(out, TYPE_USER, big_endian);
	out = tdm_ctf_put_u32(out, MODE_UNKNOWN, big_endian);
	out = tdm_ctf_put_u32(out, SUBMODE_UNKNOWN, big_endian);
	out = tdm_ctf_put_u32(out, (uint32_t)status, big_endian);
	out = tdm_ctf_put_u32(out, task->cpu == UINT32_MAX ? 0 : task->cpu, big_endian);
	*out++ = 1;
	return out;
}

/* The threads that were there when the trace began, in order of their ids. */
static struct tdm_seen_task *list_tasks(struct tdm_convert_machine *conversion, size_t *count)
{
	struct tdm_task_census *const census = &conversion->census;
	struct tdm_seen_task *tasks = NULL;

	for (size_t i = 0; i < conversion->vcpu_count; i++) {
		const struct tdm_vcpu_thread *const vcpu = &conversion->vcpus[i];

		(void)tdm_task_census_see(
			census, vcpu->tid, TDM_FIRST_LISTED, UINT32_MAX, UINT64_MAX, NULL, 0);
		(void)tdm_task_census_see(
			census, vcpu->pid, TDM_FIRST_LISTED, UINT32_MAX, UINT64_MAX, NULL, 0);
	}
	tdm_each_saved_comm(conversion->trace, list_comm, conversion);
	*count = 0;
	tasks = calloc(census->count + 1, sizeof(*tasks));
	for (size_t i = 0; tasks && i < census->room; i++) {
		const struct tdm_seen_task *const task = &census->tasks[i];

		if (task->used && task->first != TDM_FIRST_BORN && task->tid > 0) {
			tasks[(*count)++] = *task;
		}
	}
	if (tasks) {
		qsort(tasks, *count, sizeof(*tasks), by_tid);
	}
	return tasks;
}

static uint8_t *begin_made_up(const struct tdm_convert_machine *conversion,
	const struct tdm_cpu_job *job, struct tdm_copy_state *copy, enum tdm_made_up which,
	uint64_t time, uint8_t *out)
{
	const struct tdm_seen_task *const task =
		tdm_task_census_find(&conversion->census, job->first_tid);
	uint8_t comm[TDM_TASK_NAME_MAX * 4 + 1] = "";

	if (task) {
		(void)tdm_copy_text(
			copy, (const uint8_t *)task->comm, task->length, comm, comm + sizeof(comm));
	}
	out = tdm_ctf_event_header(
		&conversion->layout, out, tdm_made_up_id(conversion, which), time, time);
	return tdm_put_made_up_context(
		conversion, out, job->first_tid, (const char *)comm, strlen((const char *)comm));
}

enum tdm_status tdm_put_state_dump(
	struct tdm_convert_machine *conversion, struct tdm_cpu_job *job, struct tdm_error *err)
{
	const struct tdm_sync_point *const sync = &conversion->guest_sync;
	struct tdm_copy_state copy = { .big_endian = conversion->layout.big_endian };
	uint64_t time = conversion->first_ns ? conversion->first_ns - 1 : 0;
	size_t count = 0;
	struct tdm_seen_task *const tasks = list_tasks(conversion, &count);
	uint8_t *const bytes = tasks ? malloc((count + 1) * EVENT_BYTES_MAX) : NULL;
	const uint8_t *const limit = bytes ? bytes + (count + 1) * EVENT_BYTES_MAX : NULL;
	uint8_t *out = bytes;
	enum tdm_status status = TDM_OK;

	if (sync->is_set && sync->time < time) {
		time = sync->time;
	}
	for (size_t i = 0; i < count && out; i++) {
		out = begin_made_up(conversion, job, &copy, TDM_MADE_STATEDUMP, time, out);
		out = put_task(conversion, &copy, &tasks[i], out, limit);
		conversion->made_up_used[TDM_MADE_STATEDUMP] = 1;
		job->synthetic++;
	}
	if (out && sync->is_set) {
		out = begin_made_up(conversion, job, &copy, TDM_MADE_VMSYNC_GH_GUEST, time, out);
		out = tdm_put_sync_fields(conversion, out, sync);
		conversion->made_up_used[TDM_MADE_VMSYNC_GH_GUEST] = 1;
		job->synthetic++;
	}
	if (!out) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for the state dump of %s",
			conversion->machine->path);
	} else if (out > bytes) {
		status = tdm_ctf_stream_put_head(
			&job->stream, bytes, (size_t)(out - bytes), time, err);
	}
	if (conversion->census.left_out) {
		TDM_WARNING(conversion->log, "%s: threads beyond %u are not in the state dump",
			conversion->machine->path, THREADS_MAX);
	}
	tdm_buffer_release(&copy.scratch);
	free(tasks);
	free(bytes);
	return status;
}
