/* SPDX-License-Identifier: MIT */
#include "host_clock.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* linux/vmclock-abi.h, which distributions of today lack. Little endian. */
	VM_CLOCK_MAGIC = 0x4b4c4356, /* "VCLK" */
	VM_CLOCK_SEQUENCE_AT = 12,
	VM_CLOCK_MARKER_AT = 16,
	VM_CLOCK_LEAST_BYTES = 24,
	VM_CLOCK_TRIES = 1000
};

static bool is_kvm(const char *class_dir, const char *name)
{
	char path[320], line[64];

	if (snprintf(path, sizeof(path), "%s/%s/clock_name", class_dir, name) >=
		(int)sizeof(path)) {
		return false;
	}

	FILE *file = fopen(path, "re");
	const bool is_it =
		file && fgets(line, sizeof(line), file) && strcmp(line, "KVM virtual PTP\n") == 0;

	if (file) {
		fclose(file);
	}
	return is_it;
}

int host_clock_open(const char *class_dir, const char *dev_dir)
{
	const char *const names = class_dir ? class_dir : "/sys/class/ptp";
	DIR *list = opendir(names);
	int fd = -1;

	for (struct dirent *entry; list && fd < 0 && (entry = readdir(list));) {
		char path[320];

		if (strncmp(entry->d_name, "ptp", 3) == 0 && is_kvm(names, entry->d_name) &&
			snprintf(path, sizeof(path), "%s/%s", dev_dir ? dev_dir : "/dev",
				entry->d_name) < (int)sizeof(path)) {
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (list) {
		closedir(list);
	}
	return fd;
}

clockid_t host_clock_id(int fd)
{
	/* FD_TO_CLOCKID of clock_getres(2). */
	return (clockid_t)((~(unsigned int)fd << 3) | 3);
}

bool host_clock_read(clockid_t host, const struct tdm_local_clock *clock, struct host_pair *pair)
{
	struct timespec now;

	/* Raw outermost on both sides, as around an exchange. */
	pair->before = tdm_local_clock_arrival(clock);
	if (clock_gettime(host, &now) != 0) {
		return false;
	}
	pair->after = tdm_local_clock_departure(clock);
	pair->host_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return now.tv_sec > 0 && pair->after.raw >= pair->before.raw &&
	       pair->after.trace >= pair->before.trace;
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const uint8_t *at)
{
	return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

void vm_clock_open(struct vm_clock *clock, const char *path)
{
	const int fd = open(path ? path : "/dev/vmclock0", O_RDONLY | O_CLOEXEC);
	const long page_bytes = sysconf(_SC_PAGESIZE);
	struct stat about;

	memset(clock, 0, sizeof(*clock));
	if (fd < 0) {
		return;
	}
	/* A device tells no size; a file that does must have all that is looked at. */
	if (fstat(fd, &about) == 0 &&
		(S_ISCHR(about.st_mode) || about.st_size >= VM_CLOCK_LEAST_BYTES)) {
		void *page = mmap(NULL, (size_t)page_bytes, PROT_READ, MAP_SHARED, fd, 0);

		if (page != MAP_FAILED) {
			clock->page = page;
			clock->size_bytes = (size_t)page_bytes;
		}
	}
	close(fd);
	if (clock->page && (get_u32(clock->page) != VM_CLOCK_MAGIC ||
				   get_u32(clock->page + 4) < VM_CLOCK_LEAST_BYTES)) {
		vm_clock_release(clock);
	}
}

void vm_clock_release(struct vm_clock *clock)
{
	if (clock->page) {
		munmap((void *)(uintptr_t)clock->page, clock->size_bytes);
	}
	memset(clock, 0, sizeof(*clock));
}

bool vm_clock_marker(const struct vm_clock *clock, uint64_t *marker)
{
	/* The hypervisor makes the sequence odd while it writes. One that never finishes is not waited for. */
	for (int i = 0; clock->page && i < VM_CLOCK_TRIES; i++) {
		const uint32_t before = get_u32(clock->page + VM_CLOCK_SEQUENCE_AT);

		atomic_thread_fence(memory_order_seq_cst);
		*marker = get_u64(clock->page + VM_CLOCK_MARKER_AT);
		atomic_thread_fence(memory_order_seq_cst);
		if (before % 2 == 0 && get_u32(clock->page + VM_CLOCK_SEQUENCE_AT) == before) {
			return true;
		}
	}
	return false;
}
