/* SPDX-License-Identifier: MIT */
#include "tsc_check.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <tandem/clocks.h>
#include <tandem/socket.h>

enum {
	ROUNDS = 2000,
	ENOUGH_ROUNDS = 200, /* on a busy machine, where they would take longer than ENOUGH_US */
	ENOUGH_US = 1500,
	DEADLINE_MS = 50,
	CHECK_EVERY = 64, /* spins between looks at the clock */
	STACK_BYTES = 65536
};

/* One cache line: the turn, and the stamp of whoever passed it on. */
struct __attribute__((aligned(64))) ball {
	_Atomic uint64_t turn; /* even: the reference's, odd: the other's; UINT64_MAX: over */
	uint64_t stamp;
};

struct check {
	struct ball ball;
	_Atomic int pinned; /* threads that are where they belong */
	uint32_t cpu;
	uint64_t deadline_ns;
	/* other less reference is within (low, high): stamps can only be later than what caused them */
	int64_t low, high;
};

static bool pin(uint32_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

/* Waits for a turn; false when the check is over or too late. */
static bool await_turn(struct check *check, uint64_t turn)
{
	for (unsigned int spins = 1;; spins++) {
		const uint64_t now = atomic_load_explicit(&check->ball.turn, memory_order_acquire);

		if (now == turn) {
			return true;
		}
		if (now == UINT64_MAX) {
			return false;
		}
		if (spins % CHECK_EVERY == 0 && tdm_now_ns() > check->deadline_ns) {
			atomic_store(&check->ball.turn, UINT64_MAX);
			return false;
		}
	}
}

static bool await_both_pinned(struct check *check)
{
	atomic_fetch_add(&check->pinned, 1);
	while (atomic_load(&check->pinned) < 2) {
		if (tdm_now_ns() > check->deadline_ns ||
			atomic_load(&check->ball.turn) == UINT64_MAX) {
			return false;
		}
		sched_yield();
	}
	return true;
}

/*
 * Ahead of others for a millisecond, where that is permitted: on a busy machine the two would seldom run at once. Only once both
 * are on CPUs of their own, or one would never let the other one run.
 */
static bool get_ahead(void)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };

	return sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
}

static void fall_back(void)
{
	const struct sched_param none = { .sched_priority = 0 };

	sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Plays one side: receives the ball, compares its stamp with the own clock, stamps it and passes it on. */
static void play_rounds(struct check *check, bool is_other, uint64_t enough_ns)
{
	for (uint64_t round = 0; round < ROUNDS; round++) {
		const uint64_t turn = 2 * round + (is_other ? 1 : 0);

		if (!await_turn(check, turn)) {
			return;
		}

		if (!is_other && round >= ENOUGH_ROUNDS && round % CHECK_EVERY == 0 &&
			tdm_now_ns() > enough_ns) {
			atomic_store(&check->ball.turn, UINT64_MAX);
			return;
		}

		const uint64_t now = tdm_clock_read(TDM_CLOCK_TSC);
		const int64_t seen = (int64_t)(now - check->ball.stamp);

		/* A ball arrives after it was sent: own stamp less the sender's is more than the offset between them. */
		if (turn != 0) {
			if (is_other && seen < check->high) {
				check->high = seen;
			} else if (!is_other && -seen > check->low) {
				check->low = -seen;
			}
		}
		check->ball.stamp = tdm_clock_read(TDM_CLOCK_TSC);
		atomic_store_explicit(&check->ball.turn, turn + 1, memory_order_release);
	}
}

/* Both sides wait for each other before the first round. */
static void play(struct check *check, bool is_other)
{
	if (!await_both_pinned(check)) {
		return;
	}

	const uint64_t enough_ns = tdm_now_ns() + (uint64_t)ENOUGH_US * 1000;
	const bool is_ahead = !is_other && get_ahead();

	play_rounds(check, is_other, enough_ns);
	if (is_ahead) {
		fall_back();
	}
}

static void *play_other(void *user)
{
	struct check *check = user;

	/* From its start on the CPU that it is for; ahead at once, for nobody waits for it there. */
	if (sched_getcpu() == (int)check->cpu || pin(check->cpu)) {
		get_ahead();
		play(check, true);
	} else {
		atomic_store(&check->ball.turn, UINT64_MAX);
	}
	return NULL;
}

static bool start_other(struct check *check, pthread_t *other)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	pthread_attr_t attr;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(check->cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &lowest);

	bool good = pthread_create(other, &attr, play_other, check) == 0;

	if (!good) {
		pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
		good = pthread_create(other, &attr, play_other, check) == 0;
	}
	pthread_attr_destroy(&attr);
	return good;
}

/* The calling thread is pinned to the reference already. */
static bool check_pair(uint32_t cpu, struct tsc_check_result *result)
{
	struct check check = { .cpu = cpu,
		.low = INT64_MIN,
		.high = INT64_MAX,
		.deadline_ns = tdm_deadline_ns(DEADLINE_MS) };
	pthread_t other;

	if (!start_other(&check, &other)) {
		return false;
	}
	play(&check, false);
	pthread_join(other, NULL);
	if (check.low == INT64_MIN || check.high == INT64_MAX || check.low > check.high) {
		return false;
	}

	const int64_t middle = check.low + (check.high - check.low) / 2;

	result->cpu = cpu;
	/* other less reference is the middle: what is added to the other's stamps is its negative */
	result->ticks = -middle;
	result->bound = (uint64_t)(check.high - check.low) / 2 + 1;
	result->is_off = check.low > 0 || check.high < 0;
	return true;
}

size_t tsc_check_some(
	struct tsc_check_result *results, size_t room, uint32_t *from, uint32_t budget_ms)
{
	const uint64_t until_ns = tdm_deadline_ns(budget_ms);
	uint32_t cpu = *from;
	cpu_set_t before;
	size_t count = 0;
	int reference = -1;

	*from = UINT32_MAX;
	/* A real-time thread would never let the other one run where both share a CPU. */
	if (tdm_clock_read(TDM_CLOCK_TSC) == 0 || sched_getscheduler(0) != SCHED_OTHER ||
		sched_getaffinity(0, sizeof(before), &before) != 0) {
		return 0;
	}
	for (int first = 0; first < CPU_SETSIZE && reference < 0; first++) {
		reference = CPU_ISSET(first, &before) ? first : -1;
	}
	if (reference < 0 || !pin((uint32_t)reference)) {
		return 0;
	}
	for (cpu = cpu > (uint32_t)reference ? cpu : (uint32_t)reference + 1; cpu < CPU_SETSIZE;
		cpu++) {
		if (!CPU_ISSET(cpu, &before)) {
			continue;
		}
		if (count == room || tdm_now_ns() >= until_ns) {
			*from = cpu;
			break;
		}
		count += check_pair(cpu, &results[count]) ? 1 : 0;
	}
	sched_setaffinity(0, sizeof(before), &before);
	return count;
}
