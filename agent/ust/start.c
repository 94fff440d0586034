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
 * lttng-ust ends itself in a destructor, before stdio writes out what the program left in its buffers:
 * those calls would be lost. The kernel ends it well enough, so the destructors of the objects that
 * we loaded are taken away: their count in the dynamic section becomes zero.
 */
static void drop_destructors(const struct link_map *map)
{
	const long page_bytes = sysconf(_SC_PAGESIZE);

	for (ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_FINI_ARRAYSZ) {
			char *const page = (char *)((uintptr_t)&entry->d_un.d_val &
						    ~(uintptr_t)(page_bytes - 1));

			if (mprotect(page, (size_t)page_bytes, PROT_READ | PROT_WRITE) == 0) {
				entry->d_un.d_val = 0;
				mprotect(page, (size_t)page_bytes, PROT_READ);
			}
		}
	}
}

static bool is_lttngs_object(const char *path)
{
	return strstr(path, "/liblttng-ust") || strstr(path, "/libtandem-syscall-ust");
}

/* TANDEM_SYSCALLS_CALLS: 8 words of 16 hexadecimal digits, one bit for each number to record. */
static void choose_calls(const struct tdm_provider *provider, const char *text)
{
	uint64_t numbers[TDM_SYSCALL_NR_MAX / 64] = { 0 };

	if (!text || strlen(text) != sizeof(numbers) * 2) {
		return;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char word[17];

		memcpy(word, text + i * 16, 16);
		word[16] = '\0';
		numbers[i] = strtoull(word, NULL, 16);
	}
	provider->choose(numbers);
}

static const struct tdm_provider *load_provider(void)
{
	char path[4096];
	Dl_info own;
	const char *slash;
	const struct tdm_provider *provider;
	void *object;

	if (!dladdr((const void *)&tdm_patch_early_hooks, &own) || !own.dli_fname) {
		return NULL;
	}
	slash = strrchr(own.dli_fname, '/');
	if (snprintf(path, sizeof(path), "%.*slibtandem-syscall-ust.so",
		    slash ? (int)(slash - own.dli_fname + 1) : 0,
		    own.dli_fname) >= (int)sizeof(path)) {
		return NULL;
	}
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!object) {
		tdm_say("the program runs unrecorded", NULL, dlerror());
		return NULL;
	}
	provider = dlsym(object, "tdm_provider");
	if (!provider || provider->version != TDM_PROVIDER_VERSION) {
		tdm_say("the program runs unrecorded", path,
			"of another version than libtandem-syscall.so");
		return NULL;
	}

	struct link_map *map = NULL;

	if (dlinfo(object, RTLD_DI_LINKMAP, &map) == 0) {
		while (map->l_prev) {
			map = map->l_prev;
		}
		for (; map; map = map->l_next) {
			if (is_lttngs_object(map->l_name)) {
				drop_destructors(map);
			}
		}
	}
	return provider;
}

__attribute__((constructor)) static void start(void)
{
	struct tdm_thread *thread = &tdm_thread;
	const struct tdm_patch_report *report = &tdm_patch_report;
	const char *wanted = getenv("TANDEM_SYSCALLS_COMPLETE");
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
	provider = load_provider();
	if (!provider) {
		tdm_patch_set_hooks(NULL);
		thread->excluded_depth--;
		return;
	}
	choose_calls(provider, getenv("TANDEM_SYSCALLS_CALLS"));
	tdm_process.cancel_word_at = find_cancel_word();
	tdm_process.provider = provider;
	tdm_process_install();
	thread->slot = tdm_counts_take();
	provider->init_thread();
	tdm_process_begin(wanted ? "complete" : "patch");
	tdm_process_vtid_find();
	tdm_waiting_replay();
	thread->state = TDM_THREAD_READY;
	thread->excluded_depth--;
	if (wanted && *wanted == '1' && tdm_dispatch_start() != 0) {
		tdm_say("the complete mode is not possible here", NULL,
			"this kernel has no Syscall User Dispatch");
	}
	errno = saved_errno;
}
