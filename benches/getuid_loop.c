/* SPDX-License-Identifier: MIT */
/*
 * getuid_loop.c - CPU time and latency of a system call that does nothing, in several processes at once.
 *
 * usage: getuid_loop PROCESSES CALLS [big|tail]
 * Prints "NS PLAIN ADDED" per call: CPU time of the calling thread for the C library's call, for the same call made by an
 * instruction of this program's own, which nobody patches, and their difference; medians of 45 rounds that alternate (a shared
 * machine changes its speed by half from one tenth of a second to the next), then of the processes. With "tail" the latency of
 * single calls: p50 p99 p99.9 max. "big" makes calls whose entry event has 3.8 KiB.
 */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS    45
#define ROUND_OF  5 /* of the calls of one process, a round makes one in this many */
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

/*
 * The same, not recorded by a tracer that patches the C library. A function, as the library's: the return after a
 * system call is never predicted, which costs 25 ns.
 */
static __attribute__((noinline)) void plain_call(void)
{
	const long nr = is_big ? SYS_access : SYS_getuid;
	long ret;

#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(big), "S"(F_OK)
			 : "rcx", "r11", "memory");
#else
	ret = syscall(nr, big, F_OK);
#endif
	(void)ret;
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
	const long in_round = calls / ROUND_OF;
	int64_t plain[ROUNDS];
	int64_t added[ROUNDS];
	char byte;

	ssize_t got;

	do {
		got = read(3, &byte, 1); /* the end of the file is the sign to begin */
	} while (got < 0 && errno == EINTR);
	if (!results || got != 0) {
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

		for (long i = 0; i < in_round; i++) {
			call();
		}

		const int64_t middle_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

		for (long i = 0; i < in_round; i++) {
			plain_call();
		}
		plain[round] = now_ns(CLOCK_THREAD_CPUTIME_ID) - middle_ns;
		results[round] = middle_ns - start_ns;
		added[round] = results[round] - plain[round];
	}
	qsort(results, ROUNDS, sizeof(*results), compare);
	qsort(plain, ROUNDS, sizeof(*plain), compare);
	qsort(added, ROUNDS, sizeof(*added), compare);
	dprintf(4, "%ld %ld %ld\n", (long)(results[ROUNDS / 2] * 10 / in_round),
		(long)(plain[ROUNDS / 2] * 10 / in_round),
		(long)(added[ROUNDS / 2] * 10 / in_round));
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[3] : "";
	int gate[2];
	int answers[2];

	if (argc < 3 || atol(argv[2]) < ROUND_OF) {
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
	int64_t results[3][64];
	long count = 0;
	char line[256];

	while (in && fgets(line, sizeof(line), in) && count < 64) {
		if (strstr(kind, "tail")) {
			fputs(line, stdout);
			count++;
		} else {
			char *at = line;

			for (int i = 0; i < 3; i++) {
				results[i][count] = strtol(at, &at, 10);
			}
			count++;
		}
	}
	while (wait(NULL) > 0) {
	}
	if (count != processes) {
		return 1;
	}
	if (!strstr(kind, "tail")) {
		for (int i = 0; i < 3; i++) {
			qsort(results[i], (size_t)count, sizeof(results[i][0]), compare);
			printf("%.1f%c", (double)results[i][count / 2] / 10, i < 2 ? ' ' : '\n');
		}
	}
	return 0;
}
