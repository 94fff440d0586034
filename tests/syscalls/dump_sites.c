/* SPDX-License-Identifier: MIT */
/*
 * dump_sites.c - prints "ADDRESS WAY START END" for each site that would be patched in an object file: the bytes from
 * START to END are overwritten or moved.
 */
#include "patch_priv.h"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	static struct tdm_site_plan plans[TDM_SITES_MAX];
	const int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		return 2;
	}

	uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)(const void *)file;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(const void *)(file + elf->e_phoff);

	for (int i = 0; file != MAP_FAILED && i < elf->e_phnum; i++) {
		uint8_t *const text = file + part[i].p_offset;

		if (part[i].p_type != PT_LOAD || !(part[i].p_flags & PF_X)) {
			continue;
		}

		const size_t count =
			tdm_sites_find(text, part[i].p_filesz, false, plans, TDM_SITES_MAX);

		for (size_t k = 0; k < count; k++) {
			const struct tdm_site_plan *plan = &plans[k];
			const uint8_t *start = plan->patch_at ? plan->patch_at : plan->call;
			const uint8_t *end = plan->resume ? plan->resume : plan->call + 2;

			printf("%lx %d %lx %lx\n",
				(long)(plan->call - text + (long)part[i].p_vaddr), plan->way,
				(long)(start - text + (long)part[i].p_vaddr),
				(long)(end - text + (long)part[i].p_vaddr));
			if (plan->hop) {
				printf("%lx hop %lx %lx\n",
					(long)(plan->hop - text + (long)part[i].p_vaddr),
					(long)(plan->hop - text + (long)part[i].p_vaddr),
					(long)(plan->hop - text + (long)part[i].p_vaddr + 5));
			}
		}
	}
	return 0;
}
