/* SPDX-License-Identifier: MIT */
#include "patch_priv.h"
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct tdm_patch_report tdm_patch_report;

#define MADVISE_POPULATE_WRITE 23
#define STUB_AREA_BYTES(sites) ((((size_t)(sites)*TDM_STUB_BYTES) + 4095) & ~(size_t)4095)
/* Stubs must be within reach of a 32-bit jump of every site: a margin for the text itself. */
#define REACH_BYTES (UINT64_C(0x7fffffff) - (64u << 20))

/* Private memory of this object; the sites of libc are about 530. */
static struct tdm_site_plan plans[TDM_SITES_MAX];

/* libc's text and the loader's. */
struct texts {
	struct tdm_text text[4];
	size_t count;
};

static long call3(long nr, long a, long b, long c)
{
	return tdm_patch_syscall(nr, a, b, c, 0, 0, 0);
}

static bool is_wanted(const char *path)
{
	const char *name = path;

	for (const char *at = path; *at; at++) {
		if (*at == '/') {
			name = at + 1;
		}
	}
	return strncmp(name, "libc.so.", 8) == 0 || strncmp(name, "libc-2.", 7) == 0 ||
	       strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-linux", 8) == 0 ||
	       strncmp(name, "ld-2.", 5) == 0;
}

static int note_text(struct dl_phdr_info *info, size_t size, void *data)
{
	struct texts *texts = data;

	(void)size;
	if (!info->dlpi_name || !is_wanted(info->dlpi_name)) {
		return 0;
	}
	for (int i = 0; i < info->dlpi_phnum && texts->count < 4; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			texts->text[texts->count++] = (struct tdm_text){
				.start = (uint8_t *)(uintptr_t)(info->dlpi_addr + ph->p_vaddr),
				.size_bytes = ph->p_memsz,
			};
		}
	}
	return 0;
}

/* Threads of this process now; the kernel's answer, so that no library needs to be asked. */
static uint32_t count_threads(void)
{
	char buffer[512];
	uint32_t count = 0;
	const long dir = tdm_patch_syscall(SYS_openat, AT_FDCWD, (long)(intptr_t) "/proc/self/task",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);

	if (dir < 0) {
		return 1; /* no /proc: the constructor order says one */
	}
	for (;;) {
		const long got = call3(SYS_getdents64, dir, (long)(intptr_t)buffer, sizeof(buffer));

		if (got <= 0) {
			break;
		}
		for (long at = 0; at < got;) {
			uint16_t length;

			memcpy(&length, buffer + at + 16, sizeof(length));
			count += buffer[at + 19] != '.';
			at += length;
		}
	}
	call3(SYS_close, dir, 0, 0);
	return count ? count : 1;
}

/* Memory for stubs that the text can reach; written first, executable afterwards, never both. */
static uint8_t *map_near(const struct tdm_text *text, size_t size_bytes)
{
	const uint64_t end =
		((uint64_t)(uintptr_t)text->start + text->size_bytes + 4095) & ~4095ull;

	for (uint64_t away = 0; away < REACH_BYTES; away = away ? away * 2 : 1u << 20) {
		for (int below = 0; below < 2; below++) {
			const uint64_t hint =
				below ? (uint64_t)(uintptr_t)text->start - away - size_bytes
				      : end + away;
			const long at = tdm_patch_syscall(SYS_mmap, (long)(hint & ~4095ull),
				(long)size_bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE,
				-1, 0);

			if (at < 0 && at > -4096) {
				continue;
			}
			if ((uint64_t)at == (hint & ~4095ull)) {
				return (uint8_t *)(uintptr_t)at;
			}
			call3(SYS_munmap, at, (long)size_bytes,
				0); /* a kernel that took it as a hint */
		}
	}
	return NULL;
}

static void put_jump(uint8_t *at, const uint8_t *target)
{
	const int32_t distance = (int32_t)(target - (at + 5));

	at[0] = 0xe9;
	memcpy(at + 1, &distance, sizeof(distance));
}

static void write_site(const struct tdm_site_plan *plan, const uint8_t *stub)
{
	if (plan->way == TDM_WAY_HOP) {
		put_jump(plan->hop, stub);
		plan->call[1] = (uint8_t)(plan->hop - (plan->call + 2));
		plan->call[0] = 0xeb;
		return;
	}
	put_jump(plan->patch_at, stub);
	for (uint8_t *at = plan->patch_at + 5; at < plan->resume && plan->way != TDM_WAY_MOV &&
					       (plan->way != TDM_WAY_BEFORE || at < plan->call);
		at++) {
		*at = 0x90;
	}
}

static void leave(const struct tdm_site_plan *plan)
{
	const uint32_t left = tdm_patch_report.sites_found - tdm_patch_report.sites_patched;

	if (left < sizeof(tdm_patch_report.left) / sizeof(tdm_patch_report.left[0])) {
		tdm_patch_report.left[left] = (uint64_t)(uintptr_t)plan->call;
	}
	tdm_patch_report.sites_found++;
}

static uint8_t *page_of(const uint8_t *at)
{
	return (uint8_t *)((uintptr_t)at & ~(uintptr_t)4095);
}

static long protect(const struct tdm_text *text, int protection)
{
	uint8_t *const start = page_of(text->start);

	return call3(SYS_mprotect, (long)(intptr_t)start,
		(long)(text->start + text->size_bytes - start), protection);
}

int tdm_text_make_private(struct tdm_text *text, const struct tdm_site_plan *sites, bool is_fresh)
{
	uint8_t *const start = page_of(text->start);
	uint8_t *run = NULL;
	uint8_t *end = NULL;
	const long error = protect(text, PROT_READ | PROT_WRITE);

	if (error != 0) {
		return (int)-error;
	}
	if (text->is_private) {
		return 0;
	}
	text->is_private = true;
	if (is_fresh) {
		call3(SYS_madvise, (long)(intptr_t)start,
			(long)(text->start + text->size_bytes - start), MADV_DONTNEED);
	}
	/* Run by run: a fault for each page costs more. Kernels before 5.14 refuse, and then the faults do it. */
	for (size_t i = 0; i <= text->count; i++) {
		const struct tdm_site_plan *plan = &sites[text->first + i];
		uint8_t *const page =
			i < text->count ? page_of(plan->patch_at ? plan->patch_at : plan->call)
					: NULL;

		if (i < text->count &&
			(plan->way <= TDM_WAY_RESTORER || (page < end && page >= run))) {
			continue;
		}
		if (page != end || !page) {
			if (end > run) {
				call3(SYS_madvise, (long)(intptr_t)run, end - run,
					MADVISE_POPULATE_WRITE);
			}
			run = page;
		}
		end = page + 4096;
	}
	return 0;
}

void tdm_text_close(const struct tdm_text *text)
{
	protect(text, PROT_READ | PROT_EXEC);
}

static void patch_text(struct tdm_text *text)
{
	const size_t area_bytes = STUB_AREA_BYTES(text->count);
	uint8_t *const area = text->count ? map_near(text, area_bytes) : NULL;
	uint8_t *const start = (uint8_t *)((uintptr_t)text->start & ~(uintptr_t)4095);
	const size_t span = (size_t)(text->start + text->size_bytes - start);

	if (!area) {
		tdm_patch_report.state = TDM_PATCH_REFUSED;
		tdm_patch_report.error = ENOMEM;
		return;
	}

	/* The stubs first: a text is only touched when they will be executable. */
	for (size_t i = 0; i < text->count; i++) {
		struct tdm_site_plan *plan = &plans[text->first + i];

		if (plan->way > TDM_WAY_RESTORER &&
			tdm_stub_write(area + i * TDM_STUB_BYTES, plan) != 0) {
			plan->way = TDM_WAY_NONE;
		}
	}

	long error =
		call3(SYS_mprotect, (long)(intptr_t)area, (long)area_bytes, PROT_READ | PROT_EXEC);

	if (error == 0) {
		error = call3(
			SYS_mprotect, (long)(intptr_t)start, (long)span, PROT_READ | PROT_WRITE);
	}
	if (error != 0) {
		tdm_patch_report.state = TDM_PATCH_REFUSED;
		tdm_patch_report.error = (int32_t)-error;
		call3(SYS_munmap, (long)(intptr_t)area, (long)area_bytes, 0);
		return;
	}
	tdm_text_make_private(text, plans, false);
	for (size_t i = 0; i < text->count; i++) {
		const struct tdm_site_plan *plan = &plans[text->first + i];

		if (plan->way == TDM_WAY_RESTORER) {
			if (!tdm_patch_report.restorer) {
				tdm_patch_report.restorer = (uint64_t)(uintptr_t)plan->call - 7;
			}
			continue;
		}
		if (plan->way == TDM_WAY_NONE) {
			leave(plan);
			continue;
		}
		write_site(plan, area + i * TDM_STUB_BYTES);
		tdm_patch_report.sites_found++;
		tdm_patch_report.sites_patched++;
		tdm_patch_report.moved += plan->way == TDM_WAY_NEXT;
		tdm_patch_report.hopped += plan->way != TDM_WAY_MOV && plan->way != TDM_WAY_NEXT;
	}
	error = call3(SYS_mprotect, (long)(intptr_t)start, (long)span, PROT_READ | PROT_EXEC);
	if (error != 0) {
		/*
		 * A policy that lets text become writable and not executable again (SELinux execmod): the
		 * process cannot go on. tdm_patch_may() asks on a copy before, so this is not reached.
		 */
		call3(SYS_exit_group, 127, 0, 0);
	}
	tdm_patch_report.state = TDM_PATCH_DONE;
}

/*
 * May changed text become executable again? Tried on a private page of ours that was executable and
 * backed by a file: this object's own data of the loader's rules are the same as libc's.
 */
static int tdm_patch_may(void)
{
	/* A page of code that nothing runs: the trampoline's object has room for one. */
	extern uint8_t tdm_patch_trial[4096] __attribute__((visibility("hidden")));
	const long page = (long)(intptr_t)tdm_patch_trial;
	long error = call3(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE);

	if (error == 0) {
		tdm_patch_trial[0] = 0xcc;
		error = call3(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
	}
	return (int)-error;
}

void tdm_patch_set_hooks(const struct tdm_patch_hooks *hooks)
{
	if (hooks) {
		tdm_patch_hooks = *hooks;
		atomic_thread_fence(memory_order_release);
		__atomic_store_n(
			&tdm_patch_target, (void *)(uintptr_t)tdm_patch_record, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(
			&tdm_patch_target, (void *)(uintptr_t)tdm_patch_bare, __ATOMIC_RELEASE);
	}
}

static const char *find_variable(char **environment, const char *name)
{
	const size_t length = strlen(name);

	for (char **at = environment; at && *at; at++) {
		if (strncmp(*at, name, length) == 0) {
			return *at + length;
		}
	}
	return NULL;
}

static void find_sites(struct texts *texts)
{
	size_t total = 0;

	for (size_t i = 0; i < texts->count; i++) {
		struct tdm_text *text = &texts->text[i];

		text->first = total;
		text->count = tdm_sites_find(text->start, text->size_bytes,
			tdm_patch_report.threads > 1, plans + total, TDM_SITES_MAX - total);
		total += text->count;
	}
}

#define XCR0_AVX    0x06u /* xmm and the upper halves of ymm */
#define XCR0_AVX512 0xe0u /* masks, upper halves of zmm0-15, zmm16-31 */

/* Own instructions: libc's answers are not there yet. Source: Intel SDM volume 1, 14.3 and 15.2. */
static uint32_t find_vectors(void)
{
	uint32_t a;
	uint32_t b;
	uint32_t c;
	uint32_t d;
	uint32_t enabled;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE) || !(c & bit_AVX)) {
		return TDM_VECTORS_SSE;
	}
	__asm__ volatile("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
	if ((enabled & XCR0_AVX) != XCR0_AVX) {
		return TDM_VECTORS_SSE;
	}
	/* kmovq is of AVX512BW; the few CPUs without it have no C library that uses more than AVX. */
	if ((enabled & XCR0_AVX512) == XCR0_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
		(b & bit_AVX512F) && (b & bit_AVX512BW)) {
		return TDM_VECTORS_AVX512;
	}
	return TDM_VECTORS_AVX;
}

/*
 * Runs before every other constructor (initfirst): libc's own has not run, so nothing of libc but its
 * pure functions may be used here.
 */
__attribute__((constructor)) static void patch_process(int argc, char **argv, char **environment)
{
	const char *const cache = find_variable(environment, "TANDEM_SYSCALLS_SITES=");
	struct texts texts = { 0 };
	int error;

	(void)argc;
	(void)argv;
	tdm_patch_vectors = find_vectors();
	tdm_patch_report.threads = count_threads();
	error = tdm_patch_may();
	if (error) {
		tdm_patch_report.state = TDM_PATCH_REFUSED;
		tdm_patch_report.error = error;
		return;
	}
	dl_iterate_phdr(note_text, &texts);
	if (tdm_patch_report.threads > 1 || !cache ||
		!tdm_sites_load(cache, texts.text, texts.count, plans, TDM_SITES_MAX)) {
		find_sites(&texts);
		if (cache && tdm_patch_report.threads == 1) {
			tdm_sites_store(cache, texts.text, texts.count, plans);
		}
	}
	for (size_t i = 0; i < texts.count; i++) {
		patch_text(&texts.text[i]);
		if (tdm_patch_report.state == TDM_PATCH_REFUSED) {
			return;
		}
	}
	if (&tdm_patch_early_hooks) {
		tdm_patch_set_hooks(&tdm_patch_early_hooks);
	}
}

void tdm_patch_text_range(uint64_t *start, uint64_t *length_bytes)
{
	*start = (uint64_t)(uintptr_t)tdm_patch_text_start;
	*length_bytes = (uint64_t)(tdm_patch_text_end - tdm_patch_text_start);
}

/* A page of stubs for sites that were not found in a text, made when they are met. */
#define LATE_PAGE_BYTES 16384
static _Atomic(uint8_t *) late_page;
static _Atomic(uint32_t) late_count;
static atomic_flag late_busy = ATOMIC_FLAG_INIT;

const struct tdm_site *tdm_patch_site_for(uint64_t back)
{
	const uint64_t all = UINT64_MAX;
	uint64_t before = 0;
	const struct tdm_site *found = NULL;

	/* A handler of this thread that came here too would wait for ever. */
	tdm_patch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)(intptr_t)&all,
		(long)(intptr_t)&before, sizeof(all), 0, 0);
	while (atomic_flag_test_and_set_explicit(&late_busy, memory_order_acquire)) {
		call3(SYS_sched_yield, 0, 0, 0);
	}

	uint8_t *page = late_page;
	const uint32_t count = late_count;

	for (uint32_t i = 0; i < count && !found; i++) {
		const struct tdm_site *site =
			(const struct tdm_site *)(page + i * TDM_STUB_BYTES + TDM_STUB_SITE);

		found = site->back == back ? site : NULL;
	}
	if (!found && !page) {
		const long at = tdm_patch_syscall(SYS_mmap, 0, LATE_PAGE_BYTES,
			PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		page = at < 0 && at > -4096 ? NULL : (uint8_t *)(uintptr_t)at;
		late_page = page;
	}
	if (!found && page && (count + 1) * TDM_STUB_BYTES <= LATE_PAGE_BYTES) {
		uint8_t *const stub = page + count * TDM_STUB_BYTES;
		uint8_t *const its_page = (uint8_t *)((uintptr_t)stub & ~(uintptr_t)4095);
		/* Other threads may run stubs of this page: it stays executable while it is written. */
		const long error = call3(SYS_mprotect, (long)(intptr_t)its_page, 4096,
			PROT_READ | PROT_WRITE | PROT_EXEC);

		if (error == 0) {
			struct tdm_site_plan plan = { .call = (uint8_t *)(uintptr_t)(back - 2),
				.resume = (uint8_t *)(uintptr_t)back,
				.way = TDM_WAY_HOP };

			tdm_stub_write(stub, &plan);
			call3(SYS_mprotect, (long)(intptr_t)its_page, 4096, PROT_READ | PROT_EXEC);
			late_count = count + 1;
			found = (const struct tdm_site *)(stub + TDM_STUB_SITE);
		}
	}
	atomic_flag_clear_explicit(&late_busy, memory_order_release);
	tdm_patch_syscall(
		SYS_rt_sigprocmask, SIG_SETMASK, (long)(intptr_t)&before, 0, sizeof(before), 0, 0);
	return found;
}

void tdm_patch_forked(void)
{
	atomic_flag_clear_explicit(&late_busy, memory_order_release);
}
