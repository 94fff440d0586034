/* SPDX-License-Identifier: MIT */
/*
 * The sites of a text, kept in a file: finding them costs a millisecond and a walk over every page of
 * libc, at each exec. "tandem syscalls" names a file in its own folder by TANDEM_SYSCALLS_SITES; the
 * first program writes it, the others read it. The bytes at each site are compared, so that a file of
 * another libc is not used.
 */
#include "patch_priv.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define MAGIC      UINT64_C(0x3153455449534d54) /* "TMSITES1" */
#define NONE       UINT32_MAX
#define KEEP_BYTES 16

struct head {
	uint64_t magic;
	uint64_t size_bytes[4]; /* of the texts */
	uint32_t count[4];
};

struct kept {
	uint32_t call, patch_at, hop, resume; /* offsets in the text */
	uint32_t nr;
	uint8_t way, moved_bytes;
	uint8_t bytes[KEEP_BYTES]; /* from patch_at on, as they were */
	uint8_t unused[2];
};

static long call3(long nr, long a, long b, long c)
{
	return tdm_patch_syscall(nr, a, b, c, 0, 0, 0);
}

static size_t comparable(const struct tdm_text *text, uint32_t at)
{
	const size_t left = text->size_bytes - at;

	return left < KEEP_BYTES ? left : KEEP_BYTES;
}

static bool restore(
	const struct tdm_text *text, const struct kept *kept, struct tdm_site_plan *plan)
{
	if (kept->call >= text->size_bytes || kept->patch_at >= text->size_bytes ||
		kept->resume > text->size_bytes || kept->moved_bytes > KEEP_BYTES ||
		(kept->hop != NONE && kept->hop >= text->size_bytes)) {
		return false;
	}
	plan->call = text->start + kept->call;
	plan->patch_at = text->start + kept->patch_at;
	plan->hop = kept->hop == NONE ? NULL : text->start + kept->hop;
	plan->resume = text->start + kept->resume;
	plan->nr = kept->nr;
	plan->way = kept->way;
	plan->moved_bytes = kept->moved_bytes;
	return true;
}

bool tdm_sites_load(const char *path, struct tdm_text *texts, size_t text_count,
	struct tdm_site_plan *plans, size_t room)
{
	const long fd = tdm_patch_syscall(
		SYS_openat, AT_FDCWD, (long)(intptr_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	const struct head *head;
	const struct kept *kept;
	bool good;
	long at;
	long size;
	size_t total = 0;

	if (fd < 0) {
		return false;
	}
	size = call3(SYS_lseek, fd, 0, 2);
	at = size < (long)sizeof(*head) ? -1
					: tdm_patch_syscall(SYS_mmap, 0, size, PROT_READ,
						  MAP_PRIVATE | MAP_POPULATE, fd, 0);
	call3(SYS_close, fd, 0, 0);
	if (at < 0 && at > -4096) {
		return false;
	}
	head = (const struct head *)(uintptr_t)at;
	kept = (const struct kept *)(head + 1);
	good = head->magic == MAGIC;
	for (size_t i = 0; i < text_count && good; i++) {
		total += head->count[i];
		good = head->size_bytes[i] == texts[i].size_bytes && head->count[i] <= room;
	}
	good = good && total <= room && sizeof(*head) + total * sizeof(*kept) == (size_t)size;
	total = 0;
	for (size_t i = 0; i < text_count && good; i++) {
		texts[i].first = total;
		texts[i].count = head->count[i];
		for (size_t k = 0; k < head->count[i] && good; k++, total++) {
			good = restore(&texts[i], &kept[total], &plans[total]);
		}
	}
	/*
	 * The pages are made private before anything reads them: a page that is mapped already costs a flush of
	 * its translation, which is dear in a virtual machine.
	 */
	for (size_t i = 0; i < text_count && good; i++) {
		good = tdm_text_make_private(&texts[i], plans, true) == 0;
		tdm_text_close(&texts[i]); /* libc's functions are called below */
	}
	for (size_t i = 0; i < text_count && good; i++) {
		for (size_t k = 0; k < texts[i].count && good; k++) {
			const struct kept *one = &kept[texts[i].first + k];

			good = memcmp(texts[i].start + one->patch_at, one->bytes,
				       comparable(&texts[i], one->patch_at)) == 0;
		}
	}
	call3(SYS_munmap, at, size, 0);
	return good;
}

void tdm_sites_store(const char *path, const struct tdm_text *texts, size_t text_count,
	const struct tdm_site_plan *plans)
{
	char temporary[512];
	struct head head = { .magic = MAGIC };
	const size_t length = strlen(path);
	long fd;
	bool good;

	if (length + 8 > sizeof(temporary)) {
		return;
	}
	memcpy(temporary, path, length);
	memcpy(temporary + length, ".new", 5);
	/* Of programs that begin at once one writes, the others go on without. */
	fd = tdm_patch_syscall(SYS_openat, AT_FDCWD, (long)(intptr_t)temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0);
	if (fd < 0) {
		return;
	}
	for (size_t i = 0; i < text_count; i++) {
		head.size_bytes[i] = texts[i].size_bytes;
		head.count[i] = (uint32_t)texts[i].count;
	}
	good = call3(SYS_write, fd, (long)(intptr_t)&head, sizeof(head)) == (long)sizeof(head);
	for (size_t i = 0; i < text_count && good; i++) {
		for (size_t k = 0; k < texts[i].count && good; k++) {
			const struct tdm_site_plan *plan = &plans[texts[i].first + k];
			const uint8_t *const start = texts[i].start;
			const uint8_t *const from = plan->patch_at ? plan->patch_at : plan->call;
			const uint8_t *const resume = plan->resume ? plan->resume : plan->call + 2;
			struct kept kept = {
				.call = (uint32_t)(plan->call - start),
				.patch_at = (uint32_t)(from - start),
				.hop = plan->hop ? (uint32_t)(plan->hop - start) : NONE,
				.resume = (uint32_t)(resume - start),
				.nr = plan->nr,
				.way = plan->way,
				.moved_bytes = plan->moved_bytes,
			};

			memcpy(kept.bytes, from, comparable(&texts[i], kept.patch_at));
			good = call3(SYS_write, fd, (long)(intptr_t)&kept, sizeof(kept)) ==
			       (long)sizeof(kept);
		}
	}
	call3(SYS_close, fd, 0, 0);
	if (good) {
		call3(SYS_rename, (long)(intptr_t)temporary, (long)(intptr_t)path, 0);
	}
}
