/* SPDX-License-Identifier: MIT */
/*
 * Programs that cannot be followed into: said before they run.
 */
#include "exec_judge.h"
#include "hook_priv.h"

void tdm_exec_check(uint64_t path_address)
{
	const char *path = tdm_user_string(path_address);
	char interpreters[2][128];

	if (!*path) {
		return;
	}
	for (int depth = 0; depth <= TDM_SCRIPTS_MAX; depth++) {
		char *next = interpreters[depth & 1];
		const char *why =
			tdm_exec_judge(tdm_patch_syscall, path, next, sizeof(interpreters[0]));

		if (why) {
			tdm_say("", path, why);
			if (tdm_process.provider->declined(path, why)) {
				TDM_COUNT(notes);
			}
			return;
		}
		if (!*next) {
			return;
		}
		path = next;
	}
}
