/* SPDX-License-Identifier: MIT */
#include "task_census.h"
#include <stdlib.h>
#include <string.h>

#define TASKS_MAX ((size_t)1 << 16) /* 4 MiB at most; a state dump of more would be no help */

static size_t slot_of(const struct tdm_seen_task *tasks, size_t room, int32_t tid)
{
	size_t at = ((uint32_t)tid * 2654435761u) & (room - 1);

	while (tasks[at].used && tasks[at].tid != tid) {
		at = (at + 1) & (room - 1);
	}
	return at;
}

static bool grow(struct tdm_task_census *census)
{
	const size_t room = census->room ? census->room * 2 : 64;
	struct tdm_seen_task *const tasks = calloc(room, sizeof(*tasks));

	if (!tasks) {
		return false;
	}
	for (size_t i = 0; i < census->room; i++) {
		if (census->tasks[i].used) {
			tasks[slot_of(tasks, room, census->tasks[i].tid)] = census->tasks[i];
		}
	}
	free(census->tasks);
	census->tasks = tasks;
	census->room = room;
	return true;
}

bool tdm_task_census_has(struct tdm_task_census *census, int32_t tid)
{
	if (!census->room) {
		return false;
	}
	if (census->tasks[census->last].used && census->tasks[census->last].tid == tid) {
		return true;
	}

	const size_t at = slot_of(census->tasks, census->room, tid);

	if (!census->tasks[at].used) {
		return false;
	}
	census->last = (uint32_t)at;
	return true;
}

enum tdm_status tdm_task_census_see(struct tdm_task_census *census, int32_t tid,
	enum tdm_task_first first, uint32_t cpu, uint64_t time, const char *comm, size_t comm_bytes)
{
	struct tdm_seen_task *task = NULL;

	if (!census->room && !grow(census)) {
		return TDM_ERR_NOMEM;
	}
	task = &census->tasks[slot_of(census->tasks, census->room, tid)];
	if (!task->used) {
		if (census->count >= TASKS_MAX) {
			census->left_out++;
			return TDM_OK;
		}
		if ((census->count + 1) * 2 > census->room) {
			if (!grow(census)) {
				return TDM_ERR_NOMEM;
			}
			task = &census->tasks[slot_of(census->tasks, census->room, tid)];
		}
		*task = (struct tdm_seen_task){
			.tid = tid, .used = 1, .first = first, .time = time
		};
		task->cpu = cpu;
		census->count++;
		census->last = 0;
	} else if (time < task->time ||
		   (task->first == TDM_FIRST_LISTED && first != TDM_FIRST_LISTED)) {
		task->first = first;
		task->cpu = cpu;
		task->time = time;
	} else if (task->length) {
		return TDM_OK;
	}
	if (comm && (comm_bytes = strnlen(comm, comm_bytes)) != 0) {
		task->length =
			(uint8_t)(comm_bytes < TDM_TASK_NAME_MAX ? comm_bytes : TDM_TASK_NAME_MAX);
		memcpy(task->comm, comm, task->length);
		task->comm[task->length] = '\0';
	}
	return TDM_OK;
}

const struct tdm_seen_task *tdm_task_census_find(const struct tdm_task_census *census, int32_t tid)
{
	const struct tdm_seen_task *const task =
		census->room ? &census->tasks[slot_of(census->tasks, census->room, tid)] : NULL;

	return task && task->used ? task : NULL;
}

enum tdm_status tdm_task_census_merge(
	struct tdm_task_census *census, const struct tdm_task_census *other)
{
	enum tdm_status status = TDM_OK;

	census->left_out += other->left_out;
	for (size_t i = 0; i < other->room && status == TDM_OK; i++) {
		const struct tdm_seen_task *const task = &other->tasks[i];

		if (task->used) {
			status = tdm_task_census_see(census, task->tid, task->first, task->cpu,
				task->time, task->comm, task->length);
		}
	}
	return status;
}

void tdm_task_census_release(struct tdm_task_census *census)
{
	free(census->tasks);
	*census = (struct tdm_task_census){ 0 };
}
