/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

bool tdm_tap_tsc_scale(uint32_t *mult, uint32_t *shift)
{
	/* A software event needs no hardware and counts nothing; its page tells how the kernel scales the TSC. */
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const long page_bytes = sysconf(_SC_PAGESIZE);
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	bool known = false;

	if (fd < 0) {
		return false;
	}

	const struct perf_event_mmap_page *page =
		mmap(NULL, (size_t)page_bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED) {
		known = page->cap_user_time && page->time_mult;
		*mult = page->time_mult;
		*shift = page->time_shift;
		munmap((void *)page, (size_t)page_bytes);
	}
	close(fd);
	return known;
}
