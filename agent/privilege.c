/* SPDX-License-Identifier: MIT */
#include "privilege.h"
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void privilege_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void privilege_keep_bursts_ahead(void)
{
	struct rlimit limit;

	/* The lowest real-time priority and no other; what an administrator has set stays as it is. */
	if (getrlimit(RLIMIT_RTPRIO, &limit) == 0 && limit.rlim_cur == 0) {
		limit.rlim_cur = 1;
		limit.rlim_max = limit.rlim_max ? limit.rlim_max : 1;
		setrlimit(RLIMIT_RTPRIO, &limit);
	}
}

enum tdm_status privilege_drop(struct tdm_error *err)
{
	/* By system call: no library for three calls in a program that has to stay small. */
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 }, { 0 } };

	/* No set-user-ID program gives back what is dropped here. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return tdm_fail_errno(err, errno, "giving up privileges");
	}
	/* Needs a capability itself, so it goes first; without it there is nothing to bound. */
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	}
	if (syscall(SYS_capset, &header, data) != 0) {
		return tdm_fail_errno(err, errno, "giving up capabilities");
	}
	return TDM_OK;
}
