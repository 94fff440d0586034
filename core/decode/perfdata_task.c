/* SPDX-License-Identifier: MIT */
/*
 * Names of tasks over time, from the COMM and FORK records, which lie in the file in no order of time.
 */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_EVENTS = 512 << 10, /* 12 MiB */
	MAX_NAME_BYTES = 255,
	NO_NAME = UINT32_MAX
};

struct task_event {
	uint64_t time;
	int32_t tid, parent_tid; /* parent_tid -1: not a fork */
	int32_t pid, parent_pid; /* processes; parent_pid -1: not told */
	uint32_t name_at;
	uint32_t order; /* in the file */
};

static uint32_t hash_name(const char *name, size_t bytes)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes; i++) {
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	}
	return hash;
}

static bool interned_grow(struct perfdata_tasks *tasks)
{
	const size_t old_count = tasks->interned_room;
	const size_t count = old_count ? old_count * 2 : 256;
	uint32_t *slots = malloc(count * sizeof(*slots));

	if (!slots) {
		return false;
	}
	memset(slots, 0xff, count * sizeof(*slots));
	for (size_t i = 0; i < old_count; i++) {
		if (tasks->interned[i] == NO_NAME) {
			continue;
		}

		const char *name = (const char *)tasks->names.bytes + tasks->interned[i];
		size_t at = hash_name(name, strlen(name)) & (count - 1);

		while (slots[at] != NO_NAME) {
			at = (at + 1) & (count - 1);
		}
		slots[at] = tasks->interned[i];
	}
	free(tasks->interned);
	tasks->interned = slots;
	tasks->interned_room = count;
	return true;
}

/* The place of a name in the table of names; NO_NAME without memory. Each name is kept once. */
static uint32_t intern(struct perfdata_tasks *tasks, const char *name, size_t bytes)
{
	if (tasks->interned_count * 2 >= tasks->interned_room && !interned_grow(tasks)) {
		return NO_NAME;
	}

	const size_t mask = tasks->interned_room - 1;
	size_t at = hash_name(name, bytes) & mask;

	for (; tasks->interned[at] != NO_NAME; at = (at + 1) & mask) {
		const char *known = (const char *)tasks->names.bytes + tasks->interned[at];

		if (strncmp(known, name, bytes) == 0 && known[bytes] == '\0') {
			return tasks->interned[at];
		}
	}

	const size_t place = tasks->names.size;

	if (place >= NO_NAME || tdm_buffer_append(&tasks->names, name, bytes) != TDM_OK ||
		tdm_buffer_append(&tasks->names, "", 1) != TDM_OK) {
		return NO_NAME;
	}
	tasks->interned[at] = (uint32_t)place;
	tasks->interned_count++;
	return (uint32_t)place;
}

static void add_event(struct perfdata_tasks *tasks, struct task_event event)
{
	const size_t count = tasks->events.size / sizeof(event);

	event.order = (uint32_t)count;
	if (count >= MAX_EVENTS ||
		tdm_buffer_append(&tasks->events, &event, sizeof(event)) != TDM_OK) {
		tasks->dropped++;
	}
}

void perfdata_task_comm(struct perfdata *pd, int32_t pid, int32_t tid, uint64_t time,
	const char *name, size_t name_bytes)
{
	const size_t bytes =
		strnlen(name, name_bytes < MAX_NAME_BYTES ? name_bytes : MAX_NAME_BYTES);
	const uint32_t name_at = intern(&pd->tasks, name, bytes);

	if (name_at == NO_NAME) {
		pd->tasks.dropped++;
		return;
	}
	add_event(&pd->tasks, (struct task_event){ .time = time,
				      .tid = tid,
				      .parent_tid = -1,
				      .pid = pid,
				      .parent_pid = -1,
				      .name_at = name_at });
}

void perfdata_task_fork(struct perfdata *pd, const struct perfdata_fork *fork)
{
	if (fork->parent_tid == fork->tid || fork->parent_tid < 0) {
		return;
	}
	add_event(&pd->tasks, (struct task_event){ .time = fork->time,
				      .tid = fork->tid,
				      .parent_tid = fork->parent_tid,
				      .pid = fork->pid,
				      .parent_pid = fork->parent_pid,
				      .name_at = NO_NAME });
}

static int by_time(const void *a, const void *b)
{
	const struct task_event *left = a, *right = b;

	if (left->time != right->time) {
		return left->time < right->time ? -1 : 1;
	}
	return left->order < right->order ? -1 : 1;
}

static int by_tid(const void *a, const void *b)
{
	const struct task_event *left = a, *right = b;

	if (left->tid != right->tid) {
		return left->tid < right->tid ? -1 : 1;
	}
	return by_time(a, b);
}

/* A table from tid to the name that it has now, while the events are gone through in order of time. */
struct now_table {
	int32_t *tids;
	uint32_t *names;
	size_t room;
};

static size_t now_slot(const struct now_table *now, int32_t tid)
{
	size_t at = (size_t)((uint32_t)tid * 2654435761u) & (now->room - 1);

	while (now->names[at] != NO_NAME && now->tids[at] != tid) {
		at = (at + 1) & (now->room - 1);
	}
	return at;
}

/* The first word on each thread counts, for whose parent a later one may stand in. Events come in order of their tids. */
static void note_process(struct perfdata_tasks *tasks, const struct task_event *event)
{
	struct perfdata_process *const last =
		tasks->process_count ? &tasks->processes[tasks->process_count - 1] : NULL;

	if (event->pid < 0 || event->tid < 0) {
		return;
	}
	if (!last || last->tid != event->tid) {
		tasks->processes[tasks->process_count++] =
			(struct perfdata_process){ event->tid, event->pid, event->parent_pid };
	} else if (last->parent_pid < 0 && event->pid == last->pid) {
		last->parent_pid = event->parent_pid;
	}
}

bool perfdata_task_process(
	const struct perfdata *pd, int32_t tid, int32_t *pid, int32_t *parent_pid)
{
	const struct perfdata_tasks *const tasks = &pd->tasks;
	size_t low = 0;
	size_t high = tasks->process_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (tasks->processes[middle].tid < tid) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low == tasks->process_count || tasks->processes[low].tid != tid) {
		return false;
	}
	*pid = tasks->processes[low].pid;
	*parent_pid = tasks->processes[low].parent_pid;
	return true;
}

enum tdm_status perfdata_tasks_settle(struct perfdata *pd, struct tdm_error *err)
{
	struct perfdata_tasks *tasks = &pd->tasks;
	struct task_event *events = (struct task_event *)(void *)tasks->events.bytes;
	const size_t count = tasks->events.size / sizeof(*events);
	struct now_table now = { .room = 64 };
	enum tdm_status status = TDM_ERR_NOMEM;

	if (tasks->dropped) {
		trace_fault_count(&pd->trace, 0, tasks->dropped,
			"more than %d names of tasks: later ones are not shown", MAX_EVENTS);
	}
	if (!count) {
		return TDM_OK;
	}
	while (now.room < count * 2) {
		now.room *= 2;
	}
	now.tids = malloc(now.room * sizeof(*now.tids));
	now.names = malloc(now.room * sizeof(*now.names));
	tasks->comms = malloc(count * sizeof(*tasks->comms));
	tasks->processes = malloc(count * sizeof(*tasks->processes));
	if (!now.tids || !now.names || !tasks->comms || !tasks->processes) {
		goto out;
	}
	memset(now.names, 0xff, now.room * sizeof(*now.names));
	qsort(events, count, sizeof(*events), by_time);
	for (size_t i = 0; i < count; i++) {
		if (events[i].parent_tid >= 0) {
			/* Stays without a name where the parent has none. */
			events[i].name_at = now.names[now_slot(&now, events[i].parent_tid)];
		}
		if (events[i].name_at != NO_NAME) {
			const size_t at = now_slot(&now, events[i].tid);

			now.tids[at] = events[i].tid;
			now.names[at] = events[i].name_at;
		}
	}
	qsort(events, count, sizeof(*events), by_tid);
	for (size_t i = 0; i < count; i++) {
		note_process(tasks, &events[i]);
		if (events[i].name_at == NO_NAME) {
			continue;
		}
		/* Of several words on one moment the last counts: a thread that was there is told as a fork, then by name. */
		if (tasks->comm_count && tasks->comms[tasks->comm_count - 1].tid == events[i].tid &&
			tasks->comms[tasks->comm_count - 1].time == events[i].time) {
			tasks->comm_count--;
		}
		tasks->comms[tasks->comm_count++] = (struct perfdata_comm){
			.time = events[i].time, .tid = events[i].tid, .name_at = events[i].name_at
		};
	}
	status = TDM_OK;
out:
	free(now.tids);
	free(now.names);
	tdm_buffer_release(&tasks->events);
	free(tasks->interned);
	tasks->interned = NULL;
	return status == TDM_OK
		       ? status
		       : tdm_fail(err, status, "%s: no memory for names of tasks", pd->path);
}

/* The first entry behind (tid, time), where a tid's entries are in order of time. */
static size_t entry_behind(const struct perfdata_tasks *tasks, int32_t tid, uint64_t time)
{
	size_t low = 0, high = tasks->comm_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct perfdata_comm *comm = &tasks->comms[middle];

		if (comm->tid < tid || (comm->tid == tid && comm->time <= time)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static const char *name_of(
	const struct perfdata_tasks *tasks, const struct perfdata_comm *comm, int32_t tid)
{
	if (comm && comm->tid == tid) {
		return (const char *)tasks->names.bytes + comm->name_at;
	}
	return tid == 0 ? "swapper" : NULL;
}

const char *perfdata_task_name(
	const struct perfdata *pd, int32_t tid, uint64_t time, uint64_t *until)
{
	const struct perfdata_tasks *tasks = &pd->tasks;
	const size_t behind = entry_behind(tasks, tid, time);

	if (behind < tasks->comm_count && tasks->comms[behind].tid == tid) {
		*until = tasks->comms[behind].time;
	}

	return name_of(tasks, behind ? &tasks->comms[behind - 1] : NULL, tid);
}

const char *perfdata_task_first_name(const struct perfdata *pd, int32_t tid)
{
	const struct perfdata_tasks *tasks = &pd->tasks;
	size_t first = tid > INT32_MIN ? entry_behind(tasks, tid - 1, UINT64_MAX) : 0;

	return name_of(tasks, first < tasks->comm_count ? &tasks->comms[first] : NULL, tid);
}

enum tdm_status perfdata_tasks_list(
	const struct perfdata *pd, struct tdm_buffer *text, struct tdm_error *err)
{
	const struct perfdata_tasks *tasks = &pd->tasks;

	for (size_t i = 0; i < tasks->comm_count; i++) {
		const struct perfdata_comm *comm = &tasks->comms[i];

		if ((i && comm->tid == comm[-1].tid) || comm->tid < 0) {
			continue;
		}
		if (tdm_buffer_printf(text, "%" PRId32 " %s\n", comm->tid,
			    (const char *)tasks->names.bytes + comm->name_at) != TDM_OK) {
			return tdm_fail(
				err, TDM_ERR_NOMEM, "%s: no memory for names of tasks", pd->path);
		}
	}
	return TDM_OK;
}

void perfdata_tasks_release(struct perfdata *pd)
{
	tdm_buffer_release(&pd->tasks.events);
	tdm_buffer_release(&pd->tasks.names);
	free(pd->tasks.interned);
	free(pd->tasks.comms);
	free(pd->tasks.processes);
}
