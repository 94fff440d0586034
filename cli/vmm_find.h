/* SPDX-License-Identifier: MIT */
/*
 * vmm_find.h - which process of this machine runs a guest: by libvirt's status files and by the command lines in /proc.
 *
 * Knows QEMU (libvirt's too), Firecracker (jailed too) and Cloud Hypervisor. Nothing of libvirt is needed but its files.
 */
#ifndef CLI_VMM_FIND_H
#define CLI_VMM_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/address.h>
#include <tandem/trace.h>

/* Where things are; NULL = the usual places. For tests. */
struct vmm_places {
	const char *proc;    /* /proc */
	const char *libvirt; /* /run/libvirt/qemu: NAME.xml of each guest that runs */
	const char *kvm;     /* /sys/kernel/debug/kvm */
};

enum {
	VMM_NAME_MAX = 255,
	VMM_VCPUS_MAX = 4096
};

/* A guest that runs on this machine. */
struct vmm {
	int pid;
	char name[VMM_NAME_MAX + 1]; /* "" = it has none */
	uint32_t cid;                /* of vsock; 0 = none */
	bool has_host_socket; /* its vsock ends in a UNIX socket (Firecracker, Cloud Hypervisor), not in this kernel */
	uint32_t *forwards; /* TCP ports of this machine that lead into it; owned */
	size_t forward_count;
	struct tdm_vcpu *vcpus; /* those that libvirt's file tells; owned */
	size_t vcpu_count;
};

struct vmm_list {
	struct vmm *items; /* owned */
	size_t count;
};

/** All guests that can be seen. A process that ends meanwhile is not among them. */
void vmm_list_read(const struct vmm_places *places, struct vmm_list *list);
void vmm_list_release(struct vmm_list *list);

/**
 * The one guest that fits: by its address (CID, forwarded port) before its name.
 *
 * @param name     What the user calls it.
 * @param address  Where its agent is; NULL = by name alone.
 * @return NULL where none or more than one fits equally well: a wrong one would be worse.
 */
const struct vmm *vmm_list_match(
	const struct vmm_list *list, const char *name, const struct tdm_address *address);

/** The guest of a process, or NULL. */
const struct vmm *vmm_list_by_pid(const struct vmm_list *list, int pid);

/**
 * Which threads run its CPUs: from libvirt's file, the threads' names, or KVM's debugfs.
 *
 * @param vcpus  Receives vcpu = index and the thread, -1 where it is not known.
 * @return How many are known.
 */
size_t vmm_threads(const struct vmm_places *places, const struct vmm *vmm, struct tdm_vcpu *vcpus,
	size_t vcpu_count);

#endif
