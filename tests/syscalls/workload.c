/* SPDX-License-Identifier: MIT */
/*
 * workload.c - programs whose system calls are known beforehand; the first argument chooses one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

static void need(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
		exit(99);
	}
}

/* N calls of getuid: a known number. */
static int run_count(long count)
{
	for (long i = 0; i < count; i++) {
		getuid();
	}
	return 0;
}

static int run_forks(long count)
{
	for (long i = 0; i < count; i++) {
		const pid_t pid = fork();
		int status;

		if (pid == 0) {
			getppid();
			_exit((int)(i & 1));
		}
		need(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == (i & 1),
			"fork");
	}
	return 0;
}

static int run_spawns(long count)
{
	char *const argv[] = { "true", NULL };

	for (volatile long i = 0; i < count; i++) {
		pid_t pid = vfork();
		int status;

		if (pid == 0) {
			execv("/bin/true", argv);
			_exit(127);
		}
		need(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "vfork");
		pid = vfork();
		if (pid == 0) {
			execv("/nonexistent", argv);
			_exit(7);
		}
		need(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7,
			"vfork of nothing");
		need(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "posix_spawn");
		need(waitpid(pid, &status, 0) == pid && status == 0, "posix_spawn's child");
		need(system("exit 3") >> 8 == 3, "system");
		if (syscall(SYS_fork) == 0) {
			getppid();
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}

static void *thread_calls(void *arg)
{
	for (long i = 0; i < (long)(intptr_t)arg; i++) {
		getppid();
	}
	return NULL;
}

static int run_threads(long count)
{
	pthread_t threads[8];

	for (long round = 0; round < count; round++) {
		for (int i = 0; i < 8; i++) {
			need(pthread_create(
				     &threads[i], NULL, thread_calls, (void *)(intptr_t)100) == 0,
				"thread");
		}
		for (int i = 0; i < 8; i++) {
			pthread_join(threads[i], NULL);
		}
	}
	return 0;
}

/* A server and its client, one connection after the other. */
static int run_network(long count)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char buffer[64] = "ping";

	need(server >= 0 && bind(server, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			listen(server, 16) == 0 &&
			getsockname(server, (struct sockaddr *)&address, &length) == 0,
		"server");

	const pid_t client = fork();

	if (client == 0) {
		for (long i = 0; i < count; i++) {
			const int fd = socket(AF_INET, SOCK_STREAM, 0);

			need(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
				"connect");
			need(send(fd, buffer, 4, 0) == 4 && recv(fd, buffer, 4, MSG_WAITALL) == 4,
				"client");
			close(fd);
		}
		_exit(0);
	}
	for (long i = 0; i < count; i++) {
		const int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);

		need(fd >= 0 && recv(fd, buffer, 4, MSG_WAITALL) == 4 &&
				send(fd, buffer, 4, 0) == 4,
			"serve");
		close(fd);
	}

	int status;

	need(waitpid(client, &status, 0) == client && status == 0, "the client");
	return 0;
}

static volatile sig_atomic_t handled;

static void count_and_call(int number)
{
	(void)number;
	handled++;
	getppid();
}

struct storm {
	pthread_t target;
	long count;
};

static void *make_storm(void *data)
{
	const struct storm *storm = data;

	for (long i = 0; i < storm->count; i++) {
		/* Queued signals are never merged: each is handled once. */
		while (pthread_sigqueue(storm->target, SIGRTMIN + 3, (union sigval){ 0 }) ==
			EAGAIN) {
			sched_yield();
		}
	}
	return NULL;
}

/* Signals at any instruction of a thread that calls all the time: none of its calls may be lost. */
static int run_storm(long count)
{
	struct sigaction action = { .sa_handler = count_and_call, .sa_flags = SA_RESTART };
	struct storm storm = { .target = pthread_self(), .count = count };
	pthread_t maker;
	long calls = 0;

	sigaction(SIGRTMIN + 3, &action, NULL);
	need(pthread_create(&maker, NULL, make_storm, &storm) == 0, "thread");
	while (handled < count) {
		for (int i = 0; i < 100; i++) {
			getegid(); /* not getuid: sigqueue calls that itself */
			calls++;
		}
	}
	pthread_join(maker, NULL);
	fprintf(stderr, "storm getegid %ld getppid %ld\n", calls, (long)handled);
	return 0;
}

/* A blocked read that is restarted, and one that is not. */
static int run_restart(long count)
{
	int ends[2];

	need(pipe(ends) == 0, "pipe");
	for (int restart = 0; restart < 2; restart++) {
		struct sigaction action = {
			.sa_handler = count_and_call,
			.sa_flags = restart ? SA_RESTART : 0,
		};

		sigaction(SIGUSR1, &action, NULL);
		for (long i = 0; i < count; i++) {
			const pid_t parent = getpid();
			const pid_t child = fork();
			char byte;
			ssize_t got;

			if (child == 0) {
				usleep(300000); /* until the parent sleeps in its read, also on a busy machine */
				kill(parent, SIGUSR1);
				usleep(100000);
				need(write(ends[1], "x", 1) == 1, "write");
				_exit(0);
			}
			got = read(ends[0], &byte, 1);
			if (restart) {
				need(got == 1, "a restarted read");
			} else {
				need(got == -1 && errno == EINTR, "an interrupted read");
				need(read(ends[0], &byte, 1) == 1, "the read after it");
			}
			waitpid(child, NULL, 0);
		}
	}
	need(handled == 2 * count, "signals");
	return 0;
}

static int cleanups;

static void clean(void *arg)
{
	(void)arg;
	cleanups++;
}

static void *block(void *arg)
{
	const int *ends = arg;
	char byte;

	pthread_cleanup_push(clean, NULL);
	while (read(ends[0], &byte, 1) >= 0) {
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void *spin(void *arg)
{
	(void)arg;
	pthread_cleanup_push(clean, NULL);
	for (;;) {
		/* A cancellation point that returns at once: the cancellation may come anywhere in the hooks. */
		poll(NULL, 0, 0);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static int run_cancel(long count)
{
	int ends[2];

	need(pipe(ends) == 0, "pipe");
	for (long i = 0; i < count; i++) {
		pthread_t thread;
		void *result;

		need(pthread_create(&thread, NULL, i & 1 ? spin : block, ends) == 0, "thread");
		usleep(i & 1 ? (useconds_t)(i % 7) * 100 : 2000);
		pthread_cancel(thread);
		need(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED,
			"cancellation");
	}
	need(cleanups == count, "cleanup handlers");
	/* LTTng's locks are free: another thread can be recorded. */
	return run_threads(1);
}

static int run_uring(long count)
{
	struct io_uring_params params = { 0 };
	const long ring = syscall(SYS_io_uring_setup, 4, &params);

	if (ring < 0) {
		puts("no io_uring here");
		return 0;
	}

	char *sq = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(unsigned int),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries = mmap(NULL, params.sq_entries * sizeof(*entries),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)ring, IORING_OFF_SQES);

	need(sq != MAP_FAILED && entries != MAP_FAILED, "mmap of the ring");
	for (long i = 0; i < count; i++) {
		const unsigned int tail = *(unsigned int *)(void *)(sq + params.sq_off.tail);
		const unsigned int at =
			tail & *(unsigned int *)(void *)(sq + params.sq_off.ring_mask);

		memset(&entries[at], 0, sizeof(entries[at]));
		entries[at].opcode = IORING_OP_NOP;
		((unsigned int *)(void *)(sq + params.sq_off.array))[at] = at;
		__atomic_store_n((unsigned int *)(void *)(sq + params.sq_off.tail), tail + 1,
			__ATOMIC_RELEASE);
		need(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1, "io_uring_enter");
	}
	close((int)ring);
	return 0;
}

static void on_sigsys(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;

	(void)number;
	handled += info->si_syscall == SYS_getpgrp;
	context->uc_mcontext.gregs[REG_RAX] = 4711;
}

/* A program that handles SIGSYS itself: a seccomp filter traps getpgrp. */
static int run_sigsys(long count)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgrp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };
	struct sigaction action = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO };

	need(sigaction(SIGSYS, &action, NULL) == 0, "sigaction");
	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
		"seccomp");
	for (long i = 0; i < count; i++) {
		need(syscall(SYS_getpgrp) == 4711, "the trapped call");
	}
	need(handled == count, "SIGSYS");
	printf("trapped %d\n", (int)handled);
	return 0;
}

/* Pointers that cannot be read, in every place where a path may stand. */
static int run_badptr(long count)
{
	const long page = sysconf(_SC_PAGESIZE);
	char *memory = mmap(
		NULL, (size_t)page * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	mprotect(memory + page, (size_t)page, PROT_NONE);
	memset(memory, 'a', (size_t)page);
	for (long i = 0; i < count; i++) {
		need(syscall(SYS_openat, AT_FDCWD, NULL, 0) == -1 && errno == EFAULT, "NULL");
		need(syscall(SYS_openat, AT_FDCWD, 1, 0) == -1 && errno == EFAULT, "1");
		need(syscall(SYS_openat, AT_FDCWD, memory + page + 5, 0) == -1 && errno == EFAULT,
			"no access");
		need(syscall(SYS_openat, AT_FDCWD, memory + page - 3, 0) == -1 && errno == EFAULT,
			"a string into a hole");
		need(syscall(SYS_openat, AT_FDCWD, -1L, 0) == -1 && errno == EFAULT, "-1");
		need(syscall(SYS_openat, AT_FDCWD, 0x800000000000L, 0) == -1 && errno == EFAULT,
			"the kernel's");
		need(syscall(SYS_rename, memory + page, "/x") == -1 && errno == EFAULT, "rename");
		need(syscall(SYS_pipe2, memory + page, 0) == -1 && errno == EFAULT, "pipe2");
	}
	memory[page - 2] = '/';
	memory[page - 1] = '\0';
	need(access(memory + page - 2, F_OK) == 0, "a string that ends with its page");

	/* A path longer than the kernel takes. */
	char *endless = malloc(20000);

	memset(endless, 'b', 19999);
	endless[19999] = '\0';
	need(access(endless, F_OK) == -1 && errno == ENAMETOOLONG, "a path without end");
	free(endless);
	return 0;
}

/* Calls that libc does not make: only the complete mode sees them. */
static long direct(long nr, long a)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a) : "rcx", "r11", "memory");
	return result;
}

static int run_inline(long count)
{
	for (long i = 0; i < count; i++) {
		need(direct(SYS_getppid, 0) == getppid(), "getppid");
	}

	const pid_t pid = (pid_t)direct(SYS_fork, 0);

	if (pid == 0) {
		direct(SYS_getpgrp, 0);
		direct(SYS_exit_group, 5);
	}

	int status;

	need(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5, "fork");
	return 0;
}

/* Descriptors: what a program gets and what it may close must not depend on being recorded. */
static int run_fds(long count)
{
	(void)count;
	for (int i = 0; i < 3; i++) {
		printf("%d\n", open("/dev/null", O_RDONLY));
	}
	fflush(stdout);
	for (int fd = 3; fd < 1024; fd++) {
		close(fd);
	}
	syscall(SYS_close_range, 3, ~0u, 0);
	printf("%d\n", open("/dev/null", O_RDONLY));
	return run_forks(2);
}

static const struct {
	const char *name;
	int (*run)(long count);
} workloads[] = {
	{ "count", run_count },
	{ "forks", run_forks },
	{ "spawns", run_spawns },
	{ "threads", run_threads },
	{ "network", run_network },
	{ "storm", run_storm },
	{ "restart", run_restart },
	{ "cancel", run_cancel },
	{ "uring", run_uring },
	{ "sigsys", run_sigsys },
	{ "badptr", run_badptr },
	{ "inline", run_inline },
	{ "fds", run_fds },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (strcmp(workloads[i].name, argv[1]) == 0) {
			return workloads[i].run(strtol(argv[2], NULL, 10));
		}
	}
	fputs("usage: workload NAME COUNT\n", stderr);
	return 99;
}
