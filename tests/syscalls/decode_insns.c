/* SPDX-License-Identifier: MIT */
/*
 * decode_insns.c - what the length decoder says of the instructions at the addresses on standard input (hexadecimal, one a
 * line) of an object file: "LENGTH RIP_DISP_AT IS_CONTROL IS_UNCONDITIONAL" lines.
 */
#include "insn_length.h"
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	const int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	struct stat st;
	unsigned long address;

	if (fd < 0 || fstat(fd, &st) != 0) {
		return 2;
	}

	const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (file == MAP_FAILED) {
		return 2;
	}

	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)(const void *)file;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(const void *)(file + elf->e_phoff);

	while (scanf("%lx", &address) == 1) {
		struct tdm_insn insn = { 0 };

		for (int i = 0; i < elf->e_phnum; i++) {
			if (part[i].p_type == PT_LOAD && (part[i].p_flags & PF_X) &&
				address - part[i].p_vaddr < part[i].p_filesz) {
				const size_t at = address - part[i].p_vaddr;

				insn = tdm_insn_decode(
					file + part[i].p_offset + at, part[i].p_filesz - at);
			}
		}
		printf("%d %d %d %d\n", insn.length_bytes, insn.rip_disp_at, insn.is_control,
			insn.is_unconditional);
	}
	return 0;
}
