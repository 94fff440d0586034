/* SPDX-License-Identifier: MIT */
#include "exec_judge.h"
#include <asm/unistd.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static const char *judge(
	tdm_raw_call call, const char *path, long fd, const unsigned char *head, long length)
{
	Elf64_Ehdr elf;
	Elf64_Phdr part;
	bool has_loader = false;

	if (length < (long)sizeof(elf) || memcmp(head, ELFMAG, SELFMAG) != 0) {
		return NULL;
	}
	memcpy(&elf, head, sizeof(elf));
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != MACHINE) {
		return "a program of another machine or word size: it runs unrecorded";
	}
	for (uint32_t i = 0; i < elf.e_phnum && i < 64; i++) {
		const long got = call(__NR_pread64, fd, (long)(intptr_t)&part, sizeof(part),
			(long)(elf.e_phoff + (uint64_t)i * elf.e_phentsize), 0, 0);

		if (got != (long)sizeof(part)) {
			return NULL;
		}
		if (part.p_type == PT_INTERP) {
			char name[64] = "";

			has_loader = true;
			call(__NR_pread64, fd, (long)(intptr_t)name, sizeof(name) - 1,
				(long)part.p_offset, 0, 0);
			if (!strstr(name, "ld-linux")) {
				return "a program of another C library: it runs unrecorded";
			}
		}
	}
	/* The loader itself may be run, with a program's name: it loads what is to be preloaded. */
	return has_loader || strstr(path, "/ld-linux")
		       ? NULL
		       : "statically linked, no library can be loaded into it: it runs unrecorded";
}

const char *tdm_exec_judge(tdm_raw_call call, const char *path, char *next, size_t next_room)
{
	unsigned char head[256] = { 0 };
	const char *why = NULL;
	struct stat st;
	long length;
	const long fd = call(__NR_openat, AT_FDCWD, (long)(intptr_t)path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);

	next[0] = '\0';
	if (fd < 0) {
		return NULL; /* the program's own exec will tell, or it may be run but not read */
	}
	if (call(__NR_fstat, fd, (long)(intptr_t)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode)) {
		unsigned char capability[64];
		const bool root = call(__NR_geteuid, 0, 0, 0, 0, 0, 0) == 0 &&
				  call(__NR_getuid, 0, 0, 0, 0, 0, 0) == 0;

		length = call(__NR_pread64, fd, (long)(intptr_t)head, sizeof(head) - 1, 0, 0, 0);
		if (length > 2 && head[0] == '#' && head[1] == '!') {
			size_t at = 2;
			size_t out = 0;

			while (head[at] == ' ' || head[at] == '\t') {
				at++;
			}
			while (head[at] > ' ' && out + 1 < next_room) {
				next[out++] = (char)head[at++];
			}
			next[out] = '\0';
		} else if ((st.st_mode & S_ISUID) &&
			   st.st_uid != (uid_t)call(__NR_getuid, 0, 0, 0, 0, 0, 0)) {
			why = "set-user-ID, no library of ours may be loaded into it: it runs unrecorded";
		} else if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
			   st.st_gid != (gid_t)call(__NR_getgid, 0, 0, 0, 0, 0, 0)) {
			why = "set-group-ID, no library of ours may be loaded into it: it runs unrecorded";
		} else if (!root &&
			   call(__NR_fgetxattr, fd, (long)(intptr_t) "security.capability",
				   (long)(intptr_t)capability, sizeof(capability), 0, 0) > 0) {
			why = "has file capabilities, no library of ours may be loaded into it: it runs "
			      "unrecorded";
		} else {
			why = judge(call, path, fd, head, length);
		}
	}
	call(__NR_close, fd, 0, 0, 0, 0, 0);
	return why;
}
