/* SPDX-License-Identifier: MIT */
/*
 * host_clock.h - what a hypervisor tells its guest of time: the host's clock, and that the guest's own was disrupted.
 */
#ifndef AGENT_HOST_CLOCK_H
#define AGENT_HOST_CLOCK_H

#include <tandem/local_clock.h>

/* The host's CLOCK_REALTIME, read between two readings of this machine's clocks, raw ones outermost. */
struct host_pair {
	struct tdm_reading before;
	uint64_t host_ns;
	struct tdm_reading after;
};

/**
 * Opens the clock of KVM's host among the PTP clocks.
 *
 * @param class_dir  Where their names are; NULL = /sys/class/ptp.
 * @param dev_dir    Where their devices are; NULL = /dev.
 * @return A descriptor that the caller closes; -1 where there is none, or no permission.
 */
int host_clock_open(const char *class_dir, const char *dev_dir);

/** The clock of a descriptor of host_clock_open(), for clock_gettime(). */
clockid_t host_clock_id(int fd);

/**
 * Reads it once.
 * @return False where it cannot be read, or the thread's clocks went back meanwhile.
 */
bool host_clock_read(clockid_t host, const struct tdm_local_clock *clock, struct host_pair *pair);

/* The hypervisor's page of a "vmclock" device, of which only the disruption marker is looked at. */
struct vm_clock {
	const uint8_t *page; /* NULL = there is none */
	size_t size_bytes;
};

/** @param path  NULL = /dev/vmclock0. A page that is none, or cut short, is as if there were none. */
void vm_clock_open(struct vm_clock *clock, const char *path);
void vm_clock_release(struct vm_clock *clock);

/** The marker: another value after each live migration or restored snapshot. @return False where none can be had now. */
bool vm_clock_marker(const struct vm_clock *clock, uint64_t *marker);

#endif
