/* SPDX-License-Identifier: MIT */
/*
 * The beginning of a traced process: loads the provider, keeps its threads apart, turns the hooks on.
 */
#include "hook_priv.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const struct tdm_patch_hooks tdm_patch_early_hooks = {
	.plan = tdm_hook_plan,
	.entry = tdm_hook_entry,
	.exit = tdm_hook_exit,
	.post = tdm_hook_post,
};

/*
 * Where glibc keeps the cancellation state of a thread: the one word of the thread's descriptor that
 * a change of the cancellation type changes, by one bit.
 */
static uint32_t find_cancel_word(void)
{
	enum {
		WORDS = 512
	};

	const volatile int *const thread = (const int *)(uintptr_t)pthread_self();
	int before[WORDS];
	uint32_t found = 0;
	uint32_t matches = 0;
	int old;

	for (int i = 0; i < WORDS; i++) {
		before[i] = thread[i];
	}
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (int i = 0; i < WORDS; i++) {
		if ((before[i] ^ thread[i]) == 2) {
			found = (uint32_t)i * 4;
			matches++;
		}
	}
	pthread_setcanceltype(old, &old);
	return matches == 1 ? found : 0;
}

/*
 * Go's code runs on stacks of 2 KiB that no signal handler of C's may use. The linker leaves a note with
 * the build's identity in every Go program, those with libc too.
 */
static int note_go(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *at = (const char *)(uintptr_t)(info->dlpi_addr + ph->p_vaddr);

		for (size_t left = ph->p_type == PT_NOTE ? ph->p_memsz : 0;
			left >= sizeof(ElfW(Nhdr));) {
			ElfW(Nhdr) note;

			memcpy(&note, at, sizeof(note));

			const size_t name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
			const size_t bytes = sizeof(note) + name_bytes +
					     (((size_t)note.n_descsz + 3) & ~(size_t)3);

			if (bytes > left) {
				break;
			}
			if (note.n_namesz == 4 && memcmp(at + sizeof(note), "Go\0", 4) == 0) {
				*(bool *)data = true;
			}
			at += bytes;
			left -= bytes;
		}
	}
	return 1; /* the first object is the program */
}

static void start_complete(void)
{
	bool is_go = false;

	dl_iterate_phdr(note_go, &is_go);
	if (is_go) {
		tdm_say("complete mode is not possible in a Go program, only libc's calls are seen",
			program_invocation_short_name, "its stacks are too small for a handler");
	} else if (tdm_dispatch_start() != 0) {
		tdm_say("the complete mode is not possible here", NULL,
			"this kernel has no Syscall User Dispatch");
	}
}

__attribute__((constructor)) static void start(void)
{
	struct tdm_thread *thread = &tdm_thread;
	const struct tdm_patch_report *report = &tdm_patch_report;
	const char *wanted = getenv("TANDEM_SYSCALLS_COMPLETE");
	const bool is_complete = wanted && *wanted == '1';
	const int saved_errno = errno;
	const struct tdm_provider *provider;

	tdm_say_setup(environ);
	if (report->state != TDM_PATCH_DONE) {
		tdm_say("libc's code cannot be changed here, the program runs unrecorded", NULL,
			strerror(report->error));
		return;
	}
	if (getenv("TANDEM_SYSCALLS_TRIAL")) {
		tdm_patch_set_hooks(
			NULL); /* somebody only wants to know whether it could be done */
		return;
	}
	tdm_process.restorer = report->restorer;
	thread->excluded_depth++;
	thread->is_loading = 1;
	provider = tdm_provider_load();
	tdm_sends_end(thread);
	thread->is_loading = 0;
	if (!provider) {
		tdm_patch_set_hooks(NULL);
		thread->excluded_depth--;
		return;
	}
	tdm_process.cancel_word_at = find_cancel_word();
	tdm_process.provider = provider;
	tdm_process_install();
	thread->slot = tdm_counts_take();
	provider->init_thread();
	tdm_process_begin(is_complete ? "complete" : "patch");
	tdm_process_vtid_find();
	tdm_waiting_replay();
	thread->state = TDM_THREAD_READY;
	thread->excluded_depth--;
	if (is_complete) {
		start_complete();
	}
	errno = saved_errno;
}
