/* SPDX-License-Identifier: MIT */
#include "causality_model.h"
#include <stdlib.h>
#include <string.h>

struct window {
	int64_t enter_ns, exit_ns;
};

/* A host thread that runs a vCPU. Where its id is not known yet, the CPU stands for it: -2 - cpu. */
struct thread {
	int64_t id;
	uint32_t vcpu;
	bool open;
	int64_t enter_ns;
	struct window *windows; /* in order, not overlapping */
	size_t count, room;
};

/* The events of one guest CPU. */
struct guest_cpu {
	uint32_t vcpu;
	int64_t *times_ns;
	size_t count, room;
};

struct packet_list {
	struct causality_packet *items;
	size_t count, room;
};

struct causality {
	int32_t *tid_of_cpu; /* CAUSALITY_NO_TID unknown */
	size_t cpu_room;
	struct thread *threads;
	size_t thread_count, thread_room;
	struct guest_cpu *cpus;
	size_t cpu_count, guest_cpu_room;
	struct packet_list packets[CAUSALITY_WAYS];
	struct causality_vcpu *judged;
	int64_t *distances_ns;
	size_t distance_count, distance_room;
};

/* CPUs and vCPUs above are no Linux machine's. */
#define CPU_MOST 65536

struct causality *causality_create(void)
{
	return calloc(1, sizeof(struct causality));
}

static void *grown(void *items, size_t count, size_t *room, size_t size)
{
	if (count < *room) {
		return items;
	}
	const size_t more = *room ? *room * 2 : 16;
	void *bigger = realloc(items, more * size);

	if (bigger) {
		*room = more;
	}
	return bigger;
}

void causality_forget_guest(struct causality *model)
{
	for (size_t i = 0; i < model->cpu_count; i++) {
		free(model->cpus[i].times_ns);
	}
	model->cpu_count = 0;
	model->packets[CAUSALITY_GOT_BY_GUEST].count = 0;
	model->packets[CAUSALITY_SENT_BY_GUEST].count = 0;
	model->distance_count = 0;
	free(model->judged);
	model->judged = NULL;
}

void causality_destroy(struct causality *model)
{
	if (!model) {
		return;
	}
	causality_forget_guest(model);
	for (size_t i = 0; i < model->thread_count; i++) {
		free(model->threads[i].windows);
	}
	for (size_t i = 0; i < CAUSALITY_WAYS; i++) {
		free(model->packets[i].items);
	}
	free(model->threads);
	free(model->tid_of_cpu);
	free(model->cpus);
	free(model->distances_ns);
	free(model);
}

/* ---- the host ---- */

bool causality_host_switch(struct causality *model, uint32_t cpu, int32_t tid)
{
	if (cpu >= CPU_MOST) {
		return true;
	}
	while (cpu >= model->cpu_room) {
		const size_t more = model->cpu_room ? model->cpu_room * 2 : 16;
		int32_t *bigger = realloc(model->tid_of_cpu, more * sizeof(*bigger));

		if (!bigger) {
			return false;
		}
		for (size_t i = model->cpu_room; i < more; i++) {
			bigger[i] = CAUSALITY_NO_TID;
		}
		model->tid_of_cpu = bigger;
		model->cpu_room = more;
	}
	model->tid_of_cpu[cpu] = tid;
	return true;
}

static struct thread *find_thread(struct causality *model, uint32_t cpu, int32_t tid)
{
	if (tid == CAUSALITY_NO_TID && cpu < model->cpu_room) {
		tid = model->tid_of_cpu[cpu];
	}
	const int64_t id = tid == CAUSALITY_NO_TID ? -2 - (int64_t)cpu : tid;

	for (size_t i = 0; i < model->thread_count; i++) {
		if (model->threads[i].id == id) {
			return &model->threads[i];
		}
	}
	struct thread *threads =
		grown(model->threads, model->thread_count, &model->thread_room, sizeof(*threads));

	if (!threads) {
		return NULL;
	}
	model->threads = threads;
	threads[model->thread_count] = (struct thread){ .id = id, .vcpu = CAUSALITY_NO_VCPU };
	return &threads[model->thread_count++];
}

bool causality_host_entry(
	struct causality *model, uint32_t cpu, int32_t tid, uint32_t vcpu, int64_t time_ns)
{
	struct thread *thread = find_thread(model, cpu, tid);

	if (!thread) {
		return false;
	}
	if (thread->vcpu == CAUSALITY_NO_VCPU && vcpu < CPU_MOST) {
		thread->vcpu = vcpu;
	}
	thread->open = true;
	thread->enter_ns = time_ns;
	return true;
}

bool causality_host_exit(
	struct causality *model, uint32_t cpu, int32_t tid, uint32_t vcpu, int64_t time_ns)
{
	struct thread *thread = find_thread(model, cpu, tid);

	if (!thread) {
		return false;
	}
	/* The exit's vcpu_id is right where some tracers' entry is not. */
	if (vcpu < CPU_MOST) {
		thread->vcpu = vcpu;
	}
	if (!thread->open) {
		return true;
	}
	thread->open = false;

	struct window *windows =
		grown(thread->windows, thread->count, &thread->room, sizeof(*windows));

	if (!windows) {
		return false;
	}
	thread->windows = windows;
	windows[thread->count++] = (struct window){ thread->enter_ns, time_ns };
	return true;
}

bool causality_packet(
	struct causality *model, enum causality_way way, const struct causality_packet *packet)
{
	struct packet_list *list = &model->packets[way];
	struct causality_packet *items =
		grown(list->items, list->count, &list->room, sizeof(*items));

	if (!items) {
		return false;
	}
	list->items = items;
	items[list->count++] = *packet;
	return true;
}

/* ---- the guest ---- */

bool causality_guest_event(struct causality *model, uint32_t vcpu, int64_t time_ns)
{
	struct guest_cpu *cpu = NULL;

	for (size_t i = 0; i < model->cpu_count && !cpu; i++) {
		cpu = model->cpus[i].vcpu == vcpu ? &model->cpus[i] : NULL;
	}
	if (!cpu) {
		struct guest_cpu *cpus =
			grown(model->cpus, model->cpu_count, &model->guest_cpu_room, sizeof(*cpus));

		if (!cpus) {
			return false;
		}
		model->cpus = cpus;
		cpu = &cpus[model->cpu_count++];
		*cpu = (struct guest_cpu){ .vcpu = vcpu };
	}
	int64_t *times = grown(cpu->times_ns, cpu->count, &cpu->room, sizeof(*times));

	if (!times) {
		return false;
	}
	cpu->times_ns = times;
	times[cpu->count++] = time_ns;
	return true;
}

/* ---- judgement ---- */

static int compare_windows(const void *a, const void *b)
{
	const struct window *left = a;
	const struct window *right = b;

	return (left->enter_ns > right->enter_ns) - (left->enter_ns < right->enter_ns);
}

static int compare_numbers(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a;
	const int64_t right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int64_t median(int64_t *numbers, size_t count)
{
	if (!count) {
		return 0;
	}
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	return numbers[count / 2];
}

/* Windows that were seen before the host's trace told who runs on the CPU join the one thread of that vCPU. */
static bool join_unknown_threads(struct causality *model)
{
	for (size_t i = 0; i < model->thread_count; i++) {
		struct thread *from = &model->threads[i];
		struct thread *to = NULL;
		size_t candidates = 0;

		for (size_t k = 0; k < model->thread_count; k++) {
			if (model->threads[k].id >= 0 && model->threads[k].vcpu == from->vcpu) {
				to = &model->threads[k];
				candidates++;
			}
		}
		if (from->id >= 0 || candidates != 1 || !from->count) {
			continue;
		}
		struct window *windows =
			realloc(to->windows, (to->count + from->count) * sizeof(*windows));

		if (!windows) {
			return false;
		}
		memcpy(windows + to->count, from->windows, from->count * sizeof(*windows));
		to->windows = windows;
		to->count += from->count;
		to->room = to->count;
		from->count = 0;
		qsort(to->windows, to->count, sizeof(*windows), compare_windows);
	}
	return true;
}

/* The window that begins last at or before a time; count where none does. */
static size_t window_before(const struct thread *thread, int64_t time_ns)
{
	size_t low = 0;
	size_t high = thread->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (thread->windows[middle].enter_ns <= time_ns) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low ? low - 1 : thread->count;
}

static uint64_t count_inside(const struct thread *thread, const struct guest_cpu *cpu)
{
	uint64_t inside = 0;

	for (size_t i = 0; i < cpu->count; i++) {
		const size_t at = window_before(thread, cpu->times_ns[i]);

		inside += at < thread->count && cpu->times_ns[i] <= thread->windows[at].exit_ns;
	}
	return inside;
}

/*
 * Which thread runs a vCPU of this guest: the only one with that number, or, on a host with several guests, the one
 * whose windows hold most of the events.
 */
static const struct thread *choose_thread(
	const struct causality *model, const struct guest_cpu *cpu)
{
	const struct thread *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < model->thread_count; i++) {
		const struct thread *thread = &model->threads[i];

		if (thread->vcpu != cpu->vcpu || !thread->count) {
			continue;
		}
		const uint64_t inside = count_inside(thread, cpu);

		if (!best || inside > most) {
			best = thread;
			most = inside;
		}
	}
	return best;
}

static bool note_distance(struct causality *model, int64_t distance_ns)
{
	int64_t *distances = grown(model->distances_ns, model->distance_count,
		&model->distance_room, sizeof(*distances));

	if (!distances) {
		return false;
	}
	model->distances_ns = distances;
	distances[model->distance_count++] = distance_ns;
	return true;
}

static void keep_room(struct causality_report *report, int64_t back_ns, int64_t ahead_ns)
{
	if (!report->has_room || back_ns > report->room_back_ns) {
		report->room_back_ns = back_ns;
	}
	if (!report->has_room || ahead_ns < report->room_ahead_ns) {
		report->room_ahead_ns = ahead_ns;
	}
	report->has_room = true;
}

static bool judge_cpu(struct causality *model, const struct guest_cpu *cpu,
	struct causality_vcpu *verdict, struct causality_report *report)
{
	const struct thread *thread = choose_thread(model, cpu);
	const size_t first_distance = model->distance_count;

	*verdict = (struct causality_vcpu){ .vcpu = cpu->vcpu, .tid = CAUSALITY_NO_TID };
	if (!thread) {
		verdict->beyond = cpu->count;
		return true;
	}
	verdict->windows = thread->count;
	verdict->tid = thread->id >= 0 ? (int32_t)thread->id : CAUSALITY_NO_TID;
	for (size_t i = 0; i < cpu->count; i++) {
		const int64_t time_ns = cpu->times_ns[i];
		const size_t at = window_before(thread, time_ns);

		if (at == thread->count ||
			(at + 1 == thread->count && time_ns > thread->windows[at].exit_ns)) {
			verdict->beyond++;
			continue;
		}
		const struct window *window = &thread->windows[at];

		verdict->judged++;
		if (time_ns <= window->exit_ns) {
			keep_room(report, window->enter_ns - time_ns, window->exit_ns - time_ns);
			continue;
		}
		const int64_t since_ns = time_ns - window->exit_ns;
		const int64_t until_ns = window[1].enter_ns - time_ns;

		verdict->outside++;
		if (!note_distance(model, since_ns < until_ns ? since_ns : until_ns)) {
			return false;
		}
	}
	verdict->outside_median_ns = median(
		model->distances_ns + first_distance, model->distance_count - first_distance);
	if (model->distance_count > first_distance) {
		verdict->outside_most_ns = model->distances_ns[model->distance_count - 1];
	}
	return true;
}

static int compare_packets(const void *a, const void *b)
{
	const struct causality_packet *left = a;
	const struct causality_packet *right = b;
	const int order = memcmp(left->key, right->key, sizeof(left->key));

	return order ? order : (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

/* The n-th sight of a packet at one end belongs to the n-th at the other: a retransmission is a packet of its own. */
static bool match_packets(
	struct packet_list *sent, struct packet_list *got, struct causality_packets *verdict)
{
	int64_t *delays_ns = calloc(got->count + 1, sizeof(*delays_ns));
	size_t at = 0;

	*verdict = (struct causality_packets){ .pairs = 0 };
	if (!delays_ns) {
		return false;
	}
	if (sent->count && got->count) {
		qsort(sent->items, sent->count, sizeof(*sent->items), compare_packets);
		qsort(got->items, got->count, sizeof(*got->items), compare_packets);
	}
	for (size_t i = 0; i < got->count && at < sent->count;) {
		const int order =
			memcmp(sent->items[at].key, got->items[i].key, sizeof(got->items[i].key));

		if (order == 0) {
			const int64_t delay_ns = got->items[i].time_ns - sent->items[at].time_ns;

			delays_ns[verdict->pairs++] = delay_ns;
			verdict->violations += delay_ns < 0;
		}
		at += order <= 0;
		i += order >= 0;
	}
	verdict->median_ns = median(delays_ns, verdict->pairs);
	verdict->least_ns = verdict->pairs ? delays_ns[0] : 0;
	free(delays_ns);
	return true;
}

bool causality_judge(struct causality *model, struct causality_report *report)
{
	*report = (struct causality_report){ .vcpu_count = model->cpu_count };
	model->distance_count = 0;
	free(model->judged);
	model->judged = calloc(model->cpu_count + 1, sizeof(*model->judged));
	if (!model->judged || !join_unknown_threads(model)) {
		return false;
	}
	report->vcpus = model->judged;
	for (size_t i = 0; i < model->cpu_count; i++) {
		const struct causality_vcpu *verdict = &model->judged[i];

		if (!judge_cpu(model, &model->cpus[i], &model->judged[i], report)) {
			return false;
		}
		report->events += model->cpus[i].count;
		report->judged += verdict->judged;
		report->outside += verdict->outside;
		report->beyond += verdict->beyond;
	}
	report->outside_median_ns = median(model->distances_ns, model->distance_count);
	if (model->distance_count) {
		report->outside_most_ns = model->distances_ns[model->distance_count - 1];
	}
	if (!match_packets(&model->packets[CAUSALITY_SENT_BY_HOST],
		    &model->packets[CAUSALITY_GOT_BY_GUEST], &report->to_guest) ||
		!match_packets(&model->packets[CAUSALITY_SENT_BY_GUEST],
			&model->packets[CAUSALITY_GOT_BY_HOST], &report->to_host)) {
		return false;
	}
	if (report->to_guest.pairs && report->to_host.pairs) {
		report->has_packet_room = true;
		report->packet_room_back_ns = -report->to_guest.least_ns;
		report->packet_room_ahead_ns = report->to_host.least_ns;
	}
	report->contradictions =
		report->outside + report->to_guest.violations + report->to_host.violations;
	return true;
}
