/* SPDX-License-Identifier: MIT */
/*
 * Forks, threads and the identity of the process, as lttng-ust must see them.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* lttng-ust in this process: its code, and where it keeps a thread's id. */
static struct {
	_Atomic(uint64_t) start, end;
	size_t tls_module;
	uint64_t vtid_at; /* in its thread-local storage */
	bool vtid_known;
} lttng;

static int note_lttng(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	(void)data;
	if (!name || strncmp(name, "/liblttng-ust.so", 16) != 0) {
		return 0;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			atomic_store(&lttng.start, info->dlpi_addr + ph->p_vaddr);
			atomic_store(&lttng.end, info->dlpi_addr + ph->p_vaddr + ph->p_memsz);
		}
		if (ph->p_type == PT_TLS && info->dlpi_tls_data && !lttng.vtid_known) {
			/*
			 * lttng-ust keeps a thread's id in a variable that nothing clears for a vfork child:
			 * the one word of its storage that equals the id.
			 */
			const int32_t tid = (int32_t)tdm_raw(__NR_gettid, 0, 0, 0, 0, 0, 0);
			const char *const block = info->dlpi_tls_data;
			uint32_t matches = 0;

			for (size_t at = 0; at + 4 <= ph->p_memsz; at += 4) {
				int32_t word;

				memcpy(&word, block + at, sizeof(word));
				if (word == tid) {
					matches++;
					lttng.vtid_at = at;
				}
			}
			lttng.tls_module = info->dlpi_tls_modid;
			lttng.vtid_known = matches == 1;
		}
	}
	return 1;
}

bool tdm_process_is_lttng(uint64_t address)
{
	if (!atomic_load(&lttng.end)) {
		dl_iterate_phdr(note_lttng, NULL);
	}
	return address >= atomic_load(&lttng.start) && address < atomic_load(&lttng.end);
}

/* After an event with the id in its context. */
void tdm_process_vtid_find(void)
{
	dl_iterate_phdr(note_lttng, NULL);
}

/* Makes lttng-ust ask for the thread's id again at its next event. */
void tdm_process_vtid_forget(void)
{
	extern void *__tls_get_addr(size_t * index);

	if (!lttng.vtid_known) {
		dl_iterate_phdr(note_lttng, NULL);
	}
	if (lttng.vtid_known) {
		size_t index[2] = { lttng.tls_module, lttng.vtid_at };

		*(volatile int32_t *)__tls_get_addr(index) = 0;
	}
}

static void know_ourselves(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	tdm_process.pid = (int32_t)tdm_raw(__NR_getpid, 0, 0, 0, 0, 0, 0);
	tdm_process.image_id = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tdm_process_fork_before(void)
{
	struct tdm_thread *thread = &tdm_thread;

	if (thread->state >= TDM_THREAD_EXCLUDED || thread->excluded_depth) {
		return;
	}
	thread->in_fork_handlers = 1;
	thread->excluded_depth++;
	tdm_process.provider->init_thread();
	tdm_process.provider->before_fork(&thread->fork_signals);
	thread->excluded_depth--;
}

void tdm_process_fork_parent(void)
{
	struct tdm_thread *thread = &tdm_thread;

	thread->excluded_depth++;
	tdm_process.provider->after_fork_parent(&thread->fork_signals);
	thread->excluded_depth--;
}

void tdm_process_fork_child(void)
{
	struct tdm_thread *thread = &tdm_thread;

	thread->excluded_depth++;
	know_ourselves();
	tdm_patch_forked();
	tdm_sends_forget();
	atomic_store(&tdm_process.excluded_starting, 0);
	tdm_counts_restart(thread->slot);
	if (!thread->slot) {
		thread->slot = tdm_counts_take();
	}
	tdm_process.provider->after_fork_child(&thread->fork_signals);
	tdm_process.fork_in_flight = 0;
	tdm_process_begin("fork");
	tdm_waiting_replay();
	thread->state = TDM_THREAD_READY;
	thread->inside_sp = 0;
	thread->excluded_depth--;
	if (tdm_process.complete) {
		tdm_dispatch_arm_thread();
	}
}

static void parent_handler(void)
{
	struct tdm_thread *thread = &tdm_thread;

	if (thread->in_fork_handlers) {
		tdm_process_fork_parent();
		thread->in_fork_handlers = 0;
	}
}

static void child_handler(void)
{
	struct tdm_thread *thread = &tdm_thread;

	if (thread->in_fork_handlers) {
		thread->in_fork_handlers = 0;
		tdm_process_fork_child();
	}
}

/* The beginning of an image, or of a forked child: in the trace, and in the front end's log. */
void tdm_process_begin(const char *mode)
{
	const struct tdm_patch_report *report = &tdm_patch_report;

	if (tdm_process.provider->process_start(mode, tdm_process.image_id, report->sites_patched,
		    report->sites_found - report->sites_patched)) {
		TDM_COUNT(notes);
	}
	tdm_say_start(tdm_process.pid, tdm_process.image_id, program_invocation_short_name);
}

void tdm_process_end(const char *why)
{
	struct tdm_call_counts sum;

	tdm_counts_sum(&sum);
	if (tdm_process.provider->process_end(why, tdm_process.image_id, &sum)) {
		TDM_COUNT(notes);
		sum.notes++;
	}
	tdm_say_end(tdm_process.pid, tdm_process.image_id, &sum);
}

/*
 * Registered before the program can register any: prepare handlers run last registered first, so ours
 * is the last before the fork and the first after it; and glibc runs them before it takes the locks of
 * malloc, which lttng-ust's listeners may want while they hold its own.
 */
void tdm_process_install(void)
{
	know_ourselves();
	pthread_atfork(tdm_process_fork_before, parent_handler, child_handler);
}

/*
 * glibc changes identities in every thread and aborts the program where one gives another answer. Capabilities
 * are a thread's own: a program that keeps some over a setuid() (PR_SET_KEEPCAPS) and then changes its groups
 * is refused in lttng-ust's threads, which have kept none. Without us those threads would not be.
 */
void tdm_process_own_identity(struct tdm_frame *frame)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t needed;

	switch (frame->nr) {
	case __NR_setuid:
	case __NR_setreuid:
	case __NR_setresuid:
		needed = CAP_SETUID;
		break;
	case __NR_setgid:
	case __NR_setregid:
	case __NR_setresgid:
	case __NR_setgroups:
		needed = CAP_SETGID;
		break;
	default:
		return;
	}
	header.pid = tdm_process.pid; /* the first thread, which is mostly the only one */
	if (frame->ret == -EPERM &&
		tdm_raw(__NR_capget, (long)(intptr_t)&header, (long)(intptr_t)data, 0, 0, 0, 0) ==
			0 &&
		(data[0].effective >> needed & 1)) {
		frame->ret = 0;
	}
}

struct start {
	void *(*routine)(void *);
	void *arg;
	bool is_lttngs;
};

static void *start_thread(void *data)
{
	const struct start start = *(struct start *)data;

	if (start.is_lttngs) {
		tdm_thread.state = TDM_THREAD_EXCLUDED;
		atomic_fetch_sub(&tdm_process.excluded_starting, 1);
	}
	free(data);
	if (!start.is_lttngs && tdm_process.complete) {
		tdm_dispatch_arm_thread();
	}
	return start.routine(start.arg);
}

static int real_pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg)
{
	static _Atomic(void *) found;
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *address = atomic_load(&found);

	if (!address) {
		address = dlsym(RTLD_NEXT, "pthread_create");
		atomic_store(&found, address);
	}
	if (!address) {
		return ENOSYS;
	}
	memcpy(&create, &address, sizeof(create));
	return create(thread, attr, routine, arg);
}

/* Interposed: lttng-ust's listeners are told apart from the program's threads before they run. */
__attribute__((visibility("default"))) int pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg)
{
	const bool is_lttngs =
		tdm_thread.excluded_depth || tdm_process_is_lttng((uint64_t)(uintptr_t)routine);
	struct start *start;
	int error;

	if (!is_lttngs && !tdm_process.complete) {
		return real_pthread_create(thread, attr, routine, arg);
	}
	start = malloc(sizeof(*start));
	if (!start) {
		return EAGAIN;
	}
	*start = (struct start){ .routine = routine, .arg = arg, .is_lttngs = is_lttngs };
	if (is_lttngs) {
		atomic_fetch_add(&tdm_process.excluded_starting, 1);
	}
	error = real_pthread_create(thread, attr, start_thread, start);
	if (error) {
		if (is_lttngs) {
			atomic_fetch_sub(&tdm_process.excluded_starting, 1);
		}
		free(start);
	}
	return error;
}

/*
 * lttng-ust forgets a thread in a destructor of thread-specific data. The thread makes calls after
 * that, whose events would make it known again, for ever; so the forgetting waits for the last call.
 */
static void (*_Atomic lttng_destructor)(void *);

static void keep_value(void *value)
{
	tdm_thread.lttng_value = value;
}

void tdm_process_thread_end(void)
{
	struct tdm_thread *thread = &tdm_thread;
	void (*forget)(void *) = lttng_destructor;

	if (thread->lttng_value && forget) {
		thread->excluded_depth++;
		forget(thread->lttng_value);
		thread->lttng_value = NULL;
		thread->excluded_depth--;
	}
}

/* Interposed for the above; other keys pass. */
__attribute__((visibility("default"))) int pthread_key_create(
	pthread_key_t *key, void (*destructor)(void *))
{
	static _Atomic(void *) found;
	int (*create)(pthread_key_t *, void (*)(void *));
	void *address = atomic_load(&found);
	Dl_info object;

	if (!address) {
		address = dlsym(RTLD_NEXT, "pthread_key_create");
		atomic_store(&found, address);
	}
	if (!address) {
		return EAGAIN;
	}
	memcpy(&create, &address, sizeof(create));
	if (destructor && !lttng_destructor &&
		dladdr((const void *)(uintptr_t)destructor, &object) && object.dli_fname &&
		strstr(object.dli_fname, "/liblttng-ust")) {
		lttng_destructor = destructor;
		destructor = keep_value;
	}
	return create(key, destructor);
}
