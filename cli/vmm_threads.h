/* SPDX-License-Identifier: MIT */
/*
 * vmm_threads.h - which threads of this machine run the CPUs of a guest, as far as its VMM's command line tells.
 */
#ifndef CLI_VMM_THREADS_H
#define CLI_VMM_THREADS_H

#include <stddef.h>
#include <tandem/address.h>
#include <tandem/trace.h>

/**
 * Finds the VMM process of a guest among /proc, by its vsock CID, its port forwarding or its name (QEMU's -name, which
 * libvirt sets too), and its vCPU threads by the names that QEMU, Firecracker and Cloud Hypervisor give them.
 *
 * @param name     What the user calls the guest.
 * @param address  Where its agent is.
 * @param vcpus    Receives vcpu = index and the thread, -1 where it is not known.
 * @return The process, or -1 where none or more than one fits.
 */
int vmm_threads_find(const char *name, const struct tdm_address *address, struct tdm_vcpu *vcpus,
	size_t vcpu_count);

#endif
