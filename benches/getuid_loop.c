/* SPDX-License-Identifier: MIT */
/*
 * getuid_loop.c - CPU time and latency of a system call that does nothing, in several processes at once.
 *
 * usage: getuid_loop PROCESSES CALLS [big|tail]
 * Prints "NS" per call (CPU time of the calling thread, median of 9 rounds, median of the processes), or with
 * "tail" the latency of single calls: p50 p99 p99.9 max. "big" makes calls whose entry event has 3.8 KiB.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS    9
#define BIG_BYTES 3700

extern char **environ;

static char big[BIG_BYTES + 1];
static int is_big;

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void call(void)
{
	if (is_big) {
		access(big, F_OK); /* ENAMETOOLONG, found out at once */
	} else {
		getuid();
	}
}

static int compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a;
	const int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* One process: waits for the others, warms up (the first lap of a ring faults in its pages), measures. */
static int child(long calls, int is_tail)
{
	int64_t *results = malloc((size_t)(is_tail ? calls : ROUNDS) * sizeof(*results));
	char byte;

	if (!results || read(3, &byte, 1) != 0) {
		return 1;
	}
	for (long i = 0; i < calls / 2; i++) {
		call();
	}
	if (is_tail) {
		for (long i = 0; i < calls; i++) {
			const int64_t start_ns = now_ns(CLOCK_MONOTONIC);

			call();
			results[i] = now_ns(CLOCK_MONOTONIC) - start_ns;
		}
		qsort(results, (size_t)calls, sizeof(*results), compare);
		dprintf(4, "%ld %ld %ld %ld\n", (long)results[calls / 2],
			(long)results[calls * 99 / 100], (long)results[calls / 1000 * 999],
			(long)results[calls - 1]);
		return 0;
	}
	for (int round = 0; round < ROUNDS; round++) {
		const int64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

		for (long i = 0; i < calls; i++) {
			call();
		}
		results[round] = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	}
	qsort(results, ROUNDS, sizeof(*results), compare);
	dprintf(4, "%ld\n", (long)(results[ROUNDS / 2] * 10 / calls));
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[3] : "";
	int gate[2];
	int answers[2];

	if (argc < 3) {
		return 2;
	}
	memset(big, 'a', BIG_BYTES);
	is_big = strstr(kind, "big") != NULL;

	const long processes = atol(argv[1]);
	const long calls = atol(argv[2]);

	if (processes == 0) {
		return child(calls, strstr(kind, "tail") != NULL);
	}
	if (pipe(gate) != 0 || pipe(answers) != 0) {
		return 1;
	}
	for (long i = 0; i < processes; i++) {
		char *const arguments[] = { argv[0], "0", argv[2], (char *)(uintptr_t)kind, NULL };
		posix_spawn_file_actions_t actions;
		pid_t pid;

		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addclose(&actions, gate[1]);
		posix_spawn_file_actions_adddup2(&actions, gate[0], 10);
		posix_spawn_file_actions_adddup2(&actions, answers[1], 11);
		posix_spawn_file_actions_adddup2(&actions, 10, 3);
		posix_spawn_file_actions_adddup2(&actions, 11, 4);
		if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0) {
			return 1;
		}
		posix_spawn_file_actions_destroy(&actions);
	}
	usleep(300000); /* until all are registered and wait */
	close(gate[1]);
	close(gate[0]);
	close(answers[1]);

	FILE *in = fdopen(answers[0], "r");
	int64_t results[64];
	long count = 0;
	char line[256];

	while (in && fgets(line, sizeof(line), in) && count < 64) {
		if (strstr(kind, "tail")) {
			fputs(line, stdout);
			count++;
		} else {
			results[count++] = atol(line);
		}
	}
	while (wait(NULL) > 0) {
	}
	if (count != processes) {
		return 1;
	}
	if (!strstr(kind, "tail")) {
		qsort(results, (size_t)count, sizeof(*results), compare);
		printf("%ld.%ld\n", (long)(results[count / 2] / 10),
			(long)(results[count / 2] % 10));
	}
	return 0;
}
