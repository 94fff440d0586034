/* SPDX-License-Identifier: MIT */
/*
 * kvm_looks.h - what KVM told of its VMs' TSCs each time it was asked in a session, and when.
 */
#ifndef CLI_KVM_LOOKS_H
#define CLI_KVM_LOOKS_H

#include "kvm_tsc.h"
#include <stdbool.h>

enum {
	KVM_LOOKS_SPANS = 64 /* a VM that changes more often is left out */
};

/* One VM, and what it showed: a span for each time that its numbers changed. */
struct kvm_looks_vm {
	char name[64];
	struct tdm_tsc_span spans[KVM_LOOKS_SPANS]; /* their vCPUs are owned */
	size_t span_count;
};

/* Zero-initialise. */
struct kvm_looks {
	bool has_looked;
	struct kvm_looks_vm *vms; /* those of the first look that are still there */
	size_t count;
	uint32_t ended; /* VMs that are not there any more, or changed too often */
};

/**
 * Looks once. Numbers that differ from the last look's are read until two readings agree: they change vCPU by vCPU.
 *
 * @param root  Where debugfs is mounted; NULL = /sys/kernel/debug.
 */
void kvm_looks_take(struct kvm_looks *looks, const char *root);

void kvm_looks_release(struct kvm_looks *looks);

#endif
