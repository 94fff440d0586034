/* SPDX-License-Identifier: MIT */
/*
 * Loads the tracepoint provider beside this object, and lttng-ust with it.
 */
#include "hook_priv.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

const struct tdm_provider *tdm_provider_load(void)
{
	char path[4096];
	Dl_info own;
	const char *slash;
	const struct tdm_provider *provider;
	void *object;

	if (!dladdr((const void *)&tdm_process, &own) || !own.dli_fname) {
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
	choose_calls(provider, getenv("TANDEM_SYSCALLS_CALLS"));
	return provider;
}
