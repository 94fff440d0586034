/* SPDX-License-Identifier: MIT */
/*
 * The fallback where code cannot be changed (other architectures, a policy that refuses it): libc's own
 * functions are interposed. Only calls that go through such a symbol from another object are seen; what
 * libc calls inside itself is not, and this is said.
 *
 * The functions are declared as taking six words, whatever they take: arguments that are integers or
 * pointers lie in the same registers either way. The numbers are those of the table, x86_64's.
 */
#include "hook_priv.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread struct tdm_thread tdm_thread __attribute__((tls_model("initial-exec")));
struct tdm_process tdm_process;

/* What a function of libc gives back for an error. */
enum result {
	RESULT_INT,  /* an int, -1 and errno */
	RESULT_LONG, /* a word, -1 and errno */
	RESULT_ERROR /* the error number itself */
};

#define EXECVE     59
#define EXIT_GROUP 231

static long (*real_syscall)(long, ...);

long tdm_patch_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	const int saved = errno;
	long result;

	if (!real_syscall) {
		void *found = dlsym(RTLD_NEXT, "syscall");

		memcpy(&real_syscall, &found, sizeof(real_syscall));
	}
	result = real_syscall(nr, a, b, c, d, e, f);
	if (result == -1) {
		result = -errno;
	}
	errno = saved;
	return result;
}

static bool begin(void)
{
	struct tdm_thread *thread = &tdm_thread;

	if (!tdm_process.provider || thread->state == TDM_THREAD_EXCLUDED ||
		thread->excluded_depth || thread->inside_sp) {
		return false;
	}
	if (thread->state == TDM_THREAD_NEW) {
		if (atomic_load(&tdm_process.excluded_starting)) {
			return false;
		}
		thread->excluded_depth++;
		thread->slot = tdm_counts_take();
		tdm_process.provider->init_thread();
		thread->excluded_depth--;
		thread->state = TDM_THREAD_READY;
	}
	return true;
}

static void note_entry(long nr, const long *args)
{
	const struct tdm_call_row *row = tdm_row((uint64_t)nr);
	const uint32_t paths = row->fields & TDM_CALL_PATHS;
	struct tdm_call call = {
		.nr = (int32_t)nr, .args = (const uint64_t *)args, .path = { "", "" }
	};

	tdm_thread.inside_sp = 1;
	TDM_COUNT(calls);
	if (*(volatile const int *)row->entry_state) {
		if (paths) {
			const uint32_t others = paths & (paths - 1);

			call.path_at = (uint8_t)__builtin_ctz(paths);
			call.path[0] = tdm_user_string(call.args[call.path_at]);
			if (others) {
				call.path[1] = tdm_user_string(call.args[__builtin_ctz(others)]);
			}
		}
		TDM_COUNT(entries);
		row->entry(&call);
	} else if (!*(volatile const int *)row->exit_state) {
		TDM_COUNT(not_chosen);
	}
	tdm_thread.inside_sp = 0;
}

static void note_exit(long nr, const long *args, long result)
{
	const struct tdm_call_row *row = tdm_row((uint64_t)nr);
	const uint32_t fds = row->fields >> TDM_CALL_FDS_SHIFT & 15;
	struct tdm_call call = { .nr = (int32_t)nr,
		.args = (const uint64_t *)args,
		.ret = result,
		.path = { "", "" },
		.fds = { -1, -1 } };

	tdm_thread.inside_sp = 1;
	if (*(volatile const int *)row->exit_state) {
		if (fds && result == 0) {
			memcpy(call.fds, (const void *)(uintptr_t)args[fds - 1], sizeof(call.fds));
		}
		TDM_COUNT(exits);
		row->exit(&call);
	}
	tdm_thread.inside_sp = 0;
}

typedef long (*function)(long, long, long, long, long, long);

static function find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	function real;

	memcpy(&real, &found, sizeof(real));
	return real;
}

static void end(const char *why)
{
	struct tdm_call_counts sum;

	if (!tdm_process.provider) {
		return;
	}
	tdm_thread.excluded_depth++;
	tdm_counts_sum(&sum);
	if (tdm_process.provider->process_end(why, tdm_process.image_id, &sum)) {
		sum.notes++;
	}
	tdm_say_end(tdm_process.pid, tdm_process.image_id, &sum);
	tdm_thread.excluded_depth--;
}

/* One interposed function. All are looked up before lttng-ust is loaded: its threads call them while the
   loader's lock, which a look-up needs, is held by the thread that waits for them. */
struct wrapper {
	const char *name;
	function real;
	long nr;
	enum result kind;
};

extern struct wrapper __start_tdm_wrappers[] TDM_HIDDEN, __stop_tdm_wrappers[] TDM_HIDDEN;

static long wrapped(struct wrapper *wrapper, const long *args)
{
	const enum result kind = wrapper->kind;
	const long nr = wrapper->nr;
	function *real = &wrapper->real;
	const int saved = errno;
	long result;

	if (!*real) {
		*real = find(wrapper->name);
		if (!*real) {
			errno = ENOSYS;
			return -1;
		}
	}
	if (!begin()) {
		return (*real)(args[0], args[1], args[2], args[3], args[4], args[5]);
	}
	note_entry(nr, args);
	if (nr == EXECVE) {
		TDM_COUNT(no_exit);
		end("exec");
	}
	errno = saved;
	result = (*real)(args[0], args[1], args[2], args[3], args[4], args[5]);

	const int after = errno;

	if (nr == EXECVE) {
		tdm_thread.slot->counts.no_exit--;
	}

	const long value = kind == RESULT_LONG ? result : (int)result;

	note_exit(nr, args, kind == RESULT_ERROR ? -value : value == -1 ? -after : value);
	errno = after;
	return result;
}

/* A symbol, its number in the table, what it returns. */
#define WRAP(symbol, number, returns)                                                            \
	static struct wrapper wrapper_##symbol __attribute__((section("tdm_wrappers"),           \
		used)) = { .name = #symbol, .nr = (number), .kind = (returns) };                 \
	long tdm_wrap_##symbol(long a, long b, long c, long d, long e, long f) __asm__(#symbol); \
	__attribute__((visibility("default"))) long tdm_wrap_##symbol(                           \
		long a, long b, long c, long d, long e, long f)                                  \
	{                                                                                        \
		const long args[6] = { a, b, c, d, e, f };                                       \
                                                                                                 \
		return wrapped(&wrapper_##symbol, args);                                         \
	}

/* clang-format off */
WRAP(read, 0, RESULT_LONG) WRAP(write, 1, RESULT_LONG) WRAP(open, 2, RESULT_INT) WRAP(open64, 2, RESULT_INT)
WRAP(close, 3, RESULT_INT) WRAP(stat, 4, RESULT_INT) WRAP(stat64, 4, RESULT_INT) WRAP(fstat, 5, RESULT_INT)
WRAP(fstat64, 5, RESULT_INT) WRAP(lstat, 6, RESULT_INT) WRAP(lstat64, 6, RESULT_INT) WRAP(poll, 7, RESULT_INT)
WRAP(lseek, 8, RESULT_LONG) WRAP(lseek64, 8, RESULT_LONG) WRAP(mmap, 9, RESULT_LONG) WRAP(mmap64, 9, RESULT_LONG)
WRAP(mprotect, 10, RESULT_INT) WRAP(munmap, 11, RESULT_INT) WRAP(ioctl, 16, RESULT_INT)
WRAP(pread, 17, RESULT_LONG) WRAP(pread64, 17, RESULT_LONG) WRAP(pwrite, 18, RESULT_LONG)
WRAP(pwrite64, 18, RESULT_LONG) WRAP(readv, 19, RESULT_LONG) WRAP(writev, 20, RESULT_LONG)
WRAP(access, 21, RESULT_INT) WRAP(pipe, 22, RESULT_INT) WRAP(select, 23, RESULT_INT)
WRAP(sched_yield, 24, RESULT_INT) WRAP(mremap, 25, RESULT_LONG) WRAP(madvise, 28, RESULT_INT)
WRAP(dup, 32, RESULT_INT) WRAP(dup2, 33, RESULT_INT) WRAP(nanosleep, 35, RESULT_INT) WRAP(getpid, 39, RESULT_INT)
WRAP(sendfile, 40, RESULT_LONG) WRAP(sendfile64, 40, RESULT_LONG) WRAP(socket, 41, RESULT_INT)
WRAP(connect, 42, RESULT_INT) WRAP(accept, 43, RESULT_INT) WRAP(sendto, 44, RESULT_LONG)
WRAP(recvfrom, 45, RESULT_LONG) WRAP(sendmsg, 46, RESULT_LONG) WRAP(recvmsg, 47, RESULT_LONG)
WRAP(shutdown, 48, RESULT_INT) WRAP(bind, 49, RESULT_INT) WRAP(listen, 50, RESULT_INT)
WRAP(getsockname, 51, RESULT_INT) WRAP(socketpair, 53, RESULT_INT) WRAP(setsockopt, 54, RESULT_INT)
WRAP(getsockopt, 55, RESULT_INT) WRAP(execve, 59, RESULT_INT) WRAP(wait4, 61, RESULT_INT)
WRAP(waitpid, 61, RESULT_INT) WRAP(kill, 62, RESULT_INT) WRAP(uname, 63, RESULT_INT) WRAP(fcntl, 72, RESULT_INT)
WRAP(fcntl64, 72, RESULT_INT) WRAP(flock, 73, RESULT_INT) WRAP(fsync, 74, RESULT_INT)
WRAP(ftruncate, 77, RESULT_INT) WRAP(ftruncate64, 77, RESULT_INT) WRAP(chdir, 80, RESULT_INT)
WRAP(rename, 82, RESULT_INT) WRAP(mkdir, 83, RESULT_INT) WRAP(rmdir, 84, RESULT_INT) WRAP(unlink, 87, RESULT_INT)
WRAP(symlink, 88, RESULT_INT) WRAP(readlink, 89, RESULT_LONG) WRAP(chmod, 90, RESULT_INT) WRAP(umask, 95, RESULT_INT)
WRAP(getuid, 102, RESULT_INT) WRAP(getgid, 104, RESULT_INT) WRAP(geteuid, 107, RESULT_INT)
WRAP(getegid, 108, RESULT_INT) WRAP(getppid, 110, RESULT_INT) WRAP(prctl, 157, RESULT_INT)
WRAP(gettid, 186, RESULT_INT) WRAP(clock_nanosleep, 230, RESULT_ERROR) WRAP(epoll_wait, 232, RESULT_INT)
WRAP(epoll_ctl, 233, RESULT_INT) WRAP(waitid, 247, RESULT_INT) WRAP(openat, 257, RESULT_INT)
WRAP(openat64, 257, RESULT_INT) WRAP(mkdirat, 258, RESULT_INT) WRAP(fstatat, 262, RESULT_INT)
WRAP(fstatat64, 262, RESULT_INT) WRAP(unlinkat, 263, RESULT_INT) WRAP(readlinkat, 267, RESULT_LONG)
WRAP(faccessat, 269, RESULT_INT) WRAP(epoll_pwait, 281, RESULT_INT) WRAP(accept4, 288, RESULT_INT)
WRAP(eventfd, 290, RESULT_INT) WRAP(epoll_create1, 291, RESULT_INT) WRAP(dup3, 292, RESULT_INT)
WRAP(pipe2, 293, RESULT_INT) WRAP(prlimit, 302, RESULT_INT) WRAP(prlimit64, 302, RESULT_INT)
WRAP(renameat2, 316, RESULT_INT) WRAP(getrandom, 318, RESULT_LONG) WRAP(statx, 332, RESULT_INT)
	/* clang-format on */

	static void begin_image(const char *mode)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	tdm_process.pid = (int32_t)tdm_raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
	tdm_process.image_id = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (tdm_process.provider->process_start(mode, tdm_process.image_id, 0, 0)) {
		TDM_COUNT(notes);
	}
	tdm_say_start(tdm_process.pid, tdm_process.image_id, program_invocation_short_name);
}

static void fork_prepare(void)
{
	tdm_thread.excluded_depth++;
	tdm_process.provider->before_fork(&tdm_thread.fork_signals);
}

static void fork_parent(void)
{
	tdm_process.provider->after_fork_parent(&tdm_thread.fork_signals);
	tdm_thread.excluded_depth--;
}

static void fork_child(void)
{
	if (!tdm_thread.slot) {
		tdm_thread.slot = tdm_counts_take();
	}
	tdm_counts_restart(tdm_thread.slot);
	atomic_store(&tdm_process.excluded_starting, 0);
	tdm_process.provider->after_fork_child(&tdm_thread.fork_signals);
	begin_image("fork");
	tdm_thread.excluded_depth--;
}

static function real_exit;

/* Ends without destructors: the counts are told here. */
__attribute__((visibility("default"))) _Noreturn void _exit(int status)
{
	const long args[6] = { status };

	if (begin()) {
		TDM_COUNT(no_exit);
		note_entry(EXIT_GROUP, args);
		end("exit");
		tdm_process.provider = NULL;
	}
	if (!real_exit) {
		real_exit = find("_exit");
	}
	real_exit(status, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

static function real_fork;

/* fork() itself is seen; its child is told to lttng-ust by the handlers above. */
pid_t fork(void)
{
	static const long none[6];
	const bool seen = begin();
	long pid;

	if (!real_fork) {
		real_fork = find("fork");
	}
	if (seen) {
		note_entry(57, none);
	}
	pid = real_fork(0, 0, 0, 0, 0, 0);
	if (seen && (int)pid != 0) {
		note_exit(57, none, (int)pid);
	}
	return (pid_t)pid;
}

__attribute__((visibility("default"))) pid_t fork(void);

struct start {
	void *(*routine)(void *);
	void *arg;
};

static void *start_excluded(void *data)
{
	const struct start start = *(struct start *)data;

	tdm_thread.state = TDM_THREAD_EXCLUDED;
	atomic_fetch_sub(&tdm_process.excluded_starting, 1);
	free(data);
	return start.routine(start.arg);
}

static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static void find_pthread_create(void)
{
	void *found = dlsym(RTLD_NEXT, "pthread_create");

	memcpy(&real_pthread_create, &found, sizeof(real_pthread_create));
}

__attribute__((visibility("default"))) int pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg)
{
	struct start *start;

	if (!real_pthread_create) {
		find_pthread_create();
	}
	if (!tdm_thread.excluded_depth) {
		return real_pthread_create(thread, attr, routine, arg);
	}
	start = malloc(sizeof(*start));
	if (!start) {
		return EAGAIN;
	}
	*start = (struct start){ routine, arg };
	atomic_fetch_add(&tdm_process.excluded_starting, 1);

	const int error = real_pthread_create(thread, attr, start_excluded, start);

	if (error) {
		/* Else no thread of the program would ever be recorded again. */
		atomic_fetch_sub(&tdm_process.excluded_starting, 1);
		free(start);
	}
	return error;
}

__attribute__((constructor)) static void start(void)
{
	const struct tdm_provider *provider;

	tdm_thread.excluded_depth++;
	for (struct wrapper *wrapper = __start_tdm_wrappers; wrapper < __stop_tdm_wrappers;
		wrapper++) {
		if (!wrapper->real) {
			wrapper->real = find(wrapper->name);
		}
	}
	real_fork = find("fork");
	real_exit = find("_exit");
	find_pthread_create();
	tdm_raw(SYS_getpid, 0, 0, 0, 0, 0, 0); /* finds syscall() */
	tdm_say_setup(environ);
	tdm_say("only calls through libc's own symbols are seen (wrap mode), not those inside libc",
		NULL, NULL);
	provider = tdm_provider_load();
	if (provider) {
		tdm_thread.slot = tdm_counts_take();
		provider->init_thread();
		tdm_thread.state = TDM_THREAD_READY;
		tdm_process.provider = provider;
		begin_image("wrap");
		pthread_atfork(fork_prepare, fork_parent, fork_child);
	}
	tdm_thread.excluded_depth--;
}

__attribute__((destructor)) static void finish(void)
{
	end("exit");
}
