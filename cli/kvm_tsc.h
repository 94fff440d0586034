/* SPDX-License-Identifier: MIT */
/*
 * kvm_tsc.h - what KVM's debugfs tells of the TSCs of this machine's guests.
 */
#ifndef CLI_KVM_TSC_H
#define CLI_KVM_TSC_H

#include <stddef.h>
#include <tandem/estimate.h>

enum {
	KVM_TSC_VMS = 256,
	KVM_TSC_VCPUS = 1024
};

/* One VM as debugfs names it, and its vCPUs in order. */
struct kvm_tsc_vm {
	char name[64]; /* "PID-FD" */
	struct tdm_tsc_relation *vcpus;
	size_t vcpu_count;
};

/**
 * Reads all VMs that have the files.
 *
 * @param root   Where debugfs is mounted; NULL = /sys/kernel/debug.
 * @param count  Receives how many.
 * @return Owned by the caller (kvm_tsc_release()); NULL where there are none, or no permission.
 */
struct kvm_tsc_vm *kvm_tsc_read(const char *root, size_t *count);
void kvm_tsc_release(struct kvm_tsc_vm *vms, size_t count);

#endif
