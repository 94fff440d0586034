/* SPDX-License-Identifier: MIT */
/*
 * Says of the command itself what the provider says of each program that it runs: that it cannot be followed.
 */
#include "exec_judge.h"
#include "syscalls_priv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	const long result = syscall(nr, a, b, c, d, e, f);

	return result == -1 ? -errno : result;
}

/* Where execvp() finds it; false: nowhere, which it will tell itself. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH");

	if (strchr(name, '/')) {
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	}
	at = at ? at : "/bin:/usr/bin";
	for (;;) {
		const size_t length = strcspn(at, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "", name) <
				PATH_MAX &&
			access(path, X_OK) == 0) {
			return true;
		}
		if (!at[length]) {
			return false;
		}
		at += length + 1;
	}
}

void syscalls_tell_unfollowed(const char *command, const struct tdm_log *log)
{
	char path[PATH_MAX];
	char next[2][128];

	if (!find_program(command, path)) {
		return;
	}

	const char *looked = path;

	for (int depth = 0; depth <= TDM_SCRIPTS_MAX; depth++) {
		const char *why =
			tdm_exec_judge(call, looked, next[depth & 1], sizeof(next[depth & 1]));

		if (why) {
			TDM_WARNING(log, "%s: %s", looked, why);
			return;
		}
		if (!next[depth & 1][0]) {
			return;
		}
		looked = next[depth & 1];
	}
}
