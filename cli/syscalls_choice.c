/* SPDX-License-Identifier: MIT */
#include "syscalls_priv.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/names.h>
#include <tandem/nearest.h>

#define NUMBERS 512u

#define TDM_CALL(number, call, in, out) [number] = #call,

static const char *const typed_names[NUMBERS] = {
#include "../agent/ust/syscall_list.h"
};

#undef TDM_CALL

const char *syscalls_typed_name(unsigned int nr)
{
	return nr < NUMBERS ? typed_names[nr] : NULL;
}

/* strace's classes, as far as people use them. */
static const struct {
	const char *name;
	const char *calls;
} groups[] = {
	{ "%file",
		"open openat openat2 creat access faccessat faccessat2 stat lstat newfstatat statx statfs "
		"chdir rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink "
		"symlinkat readlink readlinkat chmod fchmodat chown lchown fchownat truncate utimensat "
		"execve execveat getcwd mknod mknodat chroot mount umount2 name_to_handle_at "
		"inotify_add_watch setxattr getxattr listxattr removexattr" },
	{ "%desc",
		"read write close pread64 pwrite64 readv writev preadv pwritev lseek fstat poll ppoll select "
		"pselect6 dup dup2 dup3 fcntl flock fsync fdatasync ftruncate ioctl pipe pipe2 epoll_wait "
		"epoll_pwait epoll_pwait2 epoll_ctl epoll_create epoll_create1 eventfd2 getdents64 sendfile "
		"splice tee copy_file_range close_range io_uring_enter io_uring_setup timerfd_create "
		"timerfd_settime signalfd4 inotify_init1 fallocate" },
	{ "%network",
		"socket connect accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown bind "
		"listen getsockname getpeername socketpair setsockopt getsockopt" },
	{ "%process",
		"clone clone3 fork vfork execve execveat exit exit_group wait4 waitid kill tgkill" },
	{ "%memory",
		"brk mmap munmap mprotect mremap madvise msync mlock mlock2 munlock mlockall mincore mbind" },
	{ "%signal", "rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo "
		     "rt_sigsuspend sigaltstack kill tkill tgkill pause signalfd4" },
};

static int number_of(const char *name, size_t length)
{
	for (unsigned int nr = 0; nr < NUMBERS; nr++) {
		const char *names[2] = { tdm_names_syscall("x86_64", nr), typed_names[nr] };

		for (int i = 0; i < 2; i++) {
			if (names[i] && strlen(names[i]) == length &&
				memcmp(names[i], name, length) == 0) {
				return (int)nr;
			}
		}
	}
	return -1;
}

static void choose(struct syscalls_choice *choice, int nr)
{
	choice->numbers[nr / 64] |= UINT64_C(1) << (nr % 64);
}

static bool add_group(struct syscalls_choice *choice, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const char *at = groups[i].calls;

		if (strlen(groups[i].name) != length || memcmp(groups[i].name, name, length) != 0) {
			continue;
		}
		while (*at) {
			const size_t span = strcspn(at, " ");
			const int nr = number_of(at, span);

			if (nr >= 0) {
				choose(choice, nr);
			}
			at += span + (at[span] == ' ');
		}
		return true;
	}
	return false;
}

static enum tdm_status refuse(const char *name, size_t length, struct tdm_error *err)
{
	struct tdm_nearest nearest;

	tdm_nearest_begin(&nearest, name, length);
	for (unsigned int nr = 0; nr < NUMBERS; nr++) {
		tdm_nearest_try(&nearest, tdm_names_syscall("x86_64", nr));
		tdm_nearest_try(&nearest, typed_names[nr]);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		tdm_nearest_try(&nearest, groups[i].name);
	}
	return tdm_fail(err, TDM_ERR_RANGE,
		"\"%.*s\" is no system call of x86_64 and no group (%%file, %%desc, %%network, "
		"%%process, %%memory, %%signal)%s",
		(int)length, name, tdm_nearest_text(&nearest));
}

enum tdm_status syscalls_choice_parse(
	const char *text, struct syscalls_choice *choice, struct tdm_error *err)
{
	const bool others = *text == '!';
	const char *at = text + others;

	memset(choice, 0, sizeof(*choice));
	if (!*at) {
		return tdm_fail(err, TDM_ERR_RANGE, "the list of calls is empty");
	}
	while (*at) {
		const size_t span = strcspn(at, ",");
		const int nr = number_of(at, span);

		if (nr >= 0) {
			choose(choice, nr);
		} else if (!add_group(choice, at, span)) {
			return refuse(at, span, err);
		}
		at += span + (at[span] == ',');
	}
	for (size_t i = 0; others && i < 8; i++) {
		choice->numbers[i] = ~choice->numbers[i];
	}
	return TDM_OK;
}
