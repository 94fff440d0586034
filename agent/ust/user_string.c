/* SPDX-License-Identifier: MIT */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <errno.h>
#include <string.h>

#define PAGE_BYTES 4096u
#define PATH_BYTES 4096u

/*
 * Asks the kernel, by a call that reads 8 bytes and then finds its first argument impossible: EFAULT
 * says unreadable, EINVAL readable. No memory changes, and sandboxes that allow anything allow it.
 */
bool tdm_user_readable(uint64_t address)
{
	const long got = tdm_raw(__NR_rt_sigprocmask, -1, (long)(address & ~7ull), 0, 8, 0, 0);

	return got != -EFAULT;
}

const char *tdm_user_string(uint64_t address)
{
	const char *const string = (const char *)(uintptr_t)address;
	size_t length = 0;

	/* The kernel's half, and the first page, which holds no string and faults most. */
	if (address < PAGE_BYTES || address >> 47 || tdm_process.probes_off) {
		return "";
	}
	while (length < PATH_BYTES) {
		const size_t rest = PAGE_BYTES - ((address + length) & (PAGE_BYTES - 1));

		if (!tdm_user_readable(address + length)) {
			return "";
		}
		if (memchr(string + length, 0, rest)) {
			return string;
		}
		length += rest;
	}
	return "(name too long)";
}
