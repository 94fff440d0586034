/* SPDX-License-Identifier: MIT */
/*
 * task_names.c - names of threads, learned along one stream.
 */
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/task_names.h>

#define IDS_MAX   65536u
#define TASKS_MAX (1u << 16) /* a cap on memory; beyond, nothing new is learned */

struct task {
	int32_t tid;
	uint8_t used, saved; /* saved: the tracer's own saved name, which stays */
	uint8_t length;
	char comm[TDM_TASK_NAME_MAX + 1];
};

struct lessons {
	uint32_t count;
	struct tdm_task_lesson of[2];
};

struct tdm_task_names {
	const struct tdm_trace *trace;
	bool big_endian, has_comms;
	struct task *tasks; /* open addressing, a power of two */
	size_t room, count;
	struct task unknown;
	uint32_t last;          /* index of the last one found */
	struct lessons **by_id; /* lessons_count entries; NULL = not looked at yet */
	size_t lessons_count;
};

static const struct lessons no_lessons;

static bool is_tid(const struct tdm_field *field)
{
	return field && field->place == TDM_PLACE_FIXED && field->size_bytes == 4 &&
	       !field->is_array;
}

unsigned int tdm_task_lessons(
	const struct tdm_event_class *event_class, struct tdm_task_lesson lessons[2])
{
	static const struct {
		const char *event; /* NULL = every event of the system */
		const char *system;
		const char *tid, *comm;
	} rules[] = {
		{ "sched_switch", "sched", "prev_pid", "prev_comm" },
		{ "sched_switch", "sched", "next_pid", "next_comm" },
		{ "sched_process_fork", "sched", "parent_pid", "parent_comm" },
		{ "sched_process_fork", "sched", "child_pid", "child_comm" },
		{ "sched_process_exec", "sched", "pid", "filename" },
		{ "task_rename", "task", "pid", "newcomm" },
		{ "task_newtask", "task", "pid", "comm" },
		{ NULL, "sched", "pid", "comm" },
	};

	unsigned int count = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && count < 2; i++) {
		if (strcmp(rules[i].system, event_class->system) != 0 ||
			(rules[i].event && strcmp(rules[i].event, event_class->name) != 0)) {
			continue;
		}

		const struct tdm_field *const tid =
			tdm_event_class_field(event_class, rules[i].tid);
		const struct tdm_field *const comm =
			tdm_event_class_field(event_class, rules[i].comm);

		if (is_tid(tid) && comm && comm->kind == TDM_FIELD_TEXT) {
			lessons[count].tid_offset_bytes = tid->offset_bytes;
			lessons[count].comm = comm;
			lessons[count].is_path = strcmp(rules[i].comm, "filename") == 0;
			count++;
		}
	}
	return count;
}

struct tdm_task_names *tdm_task_names_create(const struct tdm_trace *trace)
{
	struct tdm_task_names *const names = calloc(1, sizeof(*names));

	if (!names) {
		return NULL;
	}
	names->trace = trace;
	names->has_comms = tdm_trace_has_comms(trace);
	names->big_endian = tdm_schema_big_endian(tdm_trace_get_schema(trace));
	names->room = 64;
	names->tasks = calloc(names->room, sizeof(*names->tasks));
	if (!names->tasks) {
		free(names);
		return NULL;
	}
	return names;
}

void tdm_task_names_destroy(struct tdm_task_names *names)
{
	if (!names) {
		return;
	}
	for (size_t i = 0; i < names->lessons_count; i++) {
		if (names->by_id[i] != &no_lessons) {
			free(names->by_id[i]);
		}
	}
	free(names->by_id);
	free(names->tasks);
	free(names);
}

void tdm_task_names_reset(struct tdm_task_names *names)
{
	memset(names->tasks, 0, names->room * sizeof(*names->tasks));
	names->count = 0;
}

static size_t slot_of(const struct task *tasks, size_t room, int32_t tid)
{
	size_t at = ((uint32_t)tid * 2654435761u) & (room - 1);

	while (tasks[at].used && tasks[at].tid != tid) {
		at = (at + 1) & (room - 1);
	}
	return at;
}

static bool grow(struct tdm_task_names *names)
{
	const size_t room = names->room * 2;
	struct task *const tasks = calloc(room, sizeof(*tasks));

	if (!tasks) {
		return false;
	}
	for (size_t i = 0; i < names->room; i++) {
		if (names->tasks[i].used) {
			tasks[slot_of(tasks, room, names->tasks[i].tid)] = names->tasks[i];
		}
	}
	free(names->tasks);
	names->tasks = tasks;
	names->room = room;
	return true;
}

static void set_comm(struct task *task, const char *comm, size_t length)
{
	task->length = (uint8_t)(length < TDM_TASK_NAME_MAX ? length : TDM_TASK_NAME_MAX);
	memcpy(task->comm, comm, task->length);
	task->comm[task->length] = '\0';
}

/* The entry of a thread, made with its saved name where it is new. */
static struct task *entry_of(struct tdm_task_names *names, int32_t tid)
{
	struct task *task = &names->tasks[names->last & (names->room - 1)];

	if (task->used && task->tid == tid) {
		return task;
	}
	if ((names->count + 1) * 2 > names->room && (names->count >= TASKS_MAX || !grow(names))) {
		/* No room for new ones: what is known stays known. */
		task = &names->tasks[slot_of(names->tasks, names->room, tid)];
		if (task->used) {
			return task;
		}
		names->unknown = (struct task){ .tid = tid };
		return &names->unknown;
	}
	names->last = (uint32_t)slot_of(names->tasks, names->room, tid);
	task = &names->tasks[names->last];
	if (!task->used) {
		const char *const saved = tdm_trace_saved_comm(names->trace, tid);

		*task = (struct task){ .tid = tid, .used = 1 };
		names->count++;
		if (tid == 0) {
			/* Each CPU has an idle thread of its own: only its stream knows its name. */
			set_comm(task, "swapper", 7);
		} else if (saved && *saved && strcmp(saved, TDM_TASK_NAME_UNKNOWN) != 0) {
			set_comm(task, saved, strlen(saved));
			task->saved = 1;
		}
	}
	return task;
}

static const struct lessons *lessons_of(
	struct tdm_task_names *names, const struct tdm_event_class *event_class)
{
	const uint32_t id = event_class->id;
	struct lessons *lessons = NULL;

	if (id < names->lessons_count && names->by_id[id]) {
		return names->by_id[id];
	}
	if (id >= IDS_MAX) {
		return &no_lessons;
	}
	if (id >= names->lessons_count) {
		const size_t room = (id | 255u) + 1u;
		struct lessons **const grown = realloc(names->by_id, room * sizeof(*grown));

		if (!grown) {
			return &no_lessons;
		}
		memset(grown + names->lessons_count, 0,
			(room - names->lessons_count) * sizeof(*grown));
		names->by_id = grown;
		names->lessons_count = room;
	}
	lessons = calloc(1, sizeof(*lessons));
	if (!lessons) {
		return &no_lessons;
	}
	lessons->count = event_class->fault ? 0 : tdm_task_lessons(event_class, lessons->of);
	if (lessons->count == 0) {
		free(lessons);
		lessons = (struct lessons *)&no_lessons;
	}
	names->by_id[id] = lessons;
	return lessons;
}

static void learn_one(struct tdm_task_names *names, const struct tdm_task_lesson *lesson,
	const uint8_t *payload, uint32_t payload_bytes)
{
	struct tdm_span span = { 0 };
	struct task *task = NULL;
	const char *comm = NULL;
	size_t length = 0;

	if (payload_bytes < 4 || lesson->tid_offset_bytes > payload_bytes - 4) {
		return;
	}
	task = entry_of(names,
		(int32_t)tdm_load_u32(payload + lesson->tid_offset_bytes, names->big_endian));
	if (task->saved ||
		!tdm_field_span(lesson->comm, payload, payload_bytes, names->big_endian, &span)) {
		return;
	}
	comm = (const char *)span.bytes;
	length = comm ? strnlen(comm, span.size_bytes) : 0;
	if (lesson->is_path && length) {
		const char *const slash = memrchr(comm, '/', length);

		if (slash) {
			length -= (size_t)(slash + 1 - comm);
			comm = slash + 1;
		}
	}
	if (length) {
		set_comm(task, comm, length);
	}
}

void tdm_task_names_learn(struct tdm_task_names *names, const struct tdm_event_class *event_class,
	const uint8_t *payload, uint32_t payload_bytes)
{
	const struct lessons *const lessons = lessons_of(names, event_class);

	for (uint32_t i = 0; i < lessons->count; i++) {
		learn_one(names, &lessons->of[i], payload, payload_bytes);
	}
}

const char *tdm_task_names_find(struct tdm_task_names *names, int32_t tid, size_t *length)
{
	const struct task *const task = entry_of(names, tid);

	if (task->length == 0) {
		/* As the kernel shows it. No empty text: babeltrace2 2.0 reads that as the text before it. */
		*length = strlen(TDM_TASK_NAME_UNKNOWN);
		return TDM_TASK_NAME_UNKNOWN;
	}
	*length = task->length;
	return task->comm;
}

const char *tdm_task_names_find_at(struct tdm_task_names *names, int32_t tid, uint64_t raw_time,
	size_t *length, uint64_t *until)
{
	*until = UINT64_MAX;
	if (names->has_comms) {
		const char *const comm = tdm_trace_comm_at(names->trace, tid, raw_time, until);

		if (comm && *comm) {
			*length = strnlen(comm, TDM_TASK_NAME_MAX);
			return comm;
		}
	}
	return tdm_task_names_find(names, tid, length);
}
