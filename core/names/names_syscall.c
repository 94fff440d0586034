/* SPDX-License-Identifier: MIT */
/*
 * names_syscall.c - which table of system calls a machine uses, and look-ups in it.
 */
#include "names_priv.h"
#include "syscall_tables.h"
#include <string.h>

enum tdm_machine tdm_names_machine(const char *architecture, unsigned int long_bytes)
{
	static const struct {
		const char *name;
		enum tdm_machine machine;
	} known[] = {
		{ "x86_64", TDM_MACHINE_X86_64 },
		{ "amd64", TDM_MACHINE_X86_64 },
		{ "aarch64", TDM_MACHINE_ARM64 },
		{ "aarch64_be", TDM_MACHINE_ARM64 },
		{ "arm64", TDM_MACHINE_ARM64 },
		{ "i386", TDM_MACHINE_I386 },
		{ "i486", TDM_MACHINE_I386 },
		{ "i586", TDM_MACHINE_I386 },
		{ "i686", TDM_MACHINE_I386 },
		{ "x86", TDM_MACHINE_I386 },
	};

	if (!architecture) {
		return long_bytes == 4 ? TDM_MACHINE_I386 : TDM_MACHINE_X86_64;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, architecture) == 0) {
			/* uname of a 32-bit shell under a 64-bit kernel says i686: the kernel's long decides. */
			if (known[i].machine == TDM_MACHINE_I386 && long_bytes == 8) {
				return TDM_MACHINE_X86_64;
			}
			return known[i].machine;
		}
	}
	return TDM_MACHINE_OTHER;
}

const struct tdm_syscall_table *tdm_names_syscall_table(enum tdm_machine machine)
{
	const char *const wanted = machine == TDM_MACHINE_X86_64  ? "x86_64"
				   : machine == TDM_MACHINE_I386  ? "i386"
				   : machine == TDM_MACHINE_ARM64 ? "arm64"
								  : NULL;

	if (!wanted) {
		return NULL;
	}
	for (const struct tdm_syscall_table *table = tdm_syscall_tables; table->architecture;
		table++) {
		if (strcmp(table->architecture, wanted) == 0) {
			return table;
		}
	}
	return NULL;
}

const char *tdm_names_syscall(const char *architecture, uint64_t number)
{
	const enum tdm_machine machine =
		tdm_names_machine(architecture, strcmp(architecture, "i386") == 0 ? 4 : 8);
	const struct tdm_syscall_table *const table = tdm_names_syscall_table(machine);

	return table && number < table->count ? table->names[number] : NULL;
}

const char *tdm_names_syscall_arguments(const char *name)
{
	size_t low = 0;
	size_t high = tdm_syscall_arguments_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = strcmp(name, tdm_syscall_arguments[middle].name);

		if (order == 0) {
			return tdm_syscall_arguments[middle].arguments;
		}
		if (order < 0) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return NULL;
}
