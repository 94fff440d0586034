/* SPDX-License-Identifier: MIT */
#include "record_clock.h"
#include <stdio.h>
#include <stdlib.h>

/* VMs are named PID-FD. One process runs one guest. */
static const struct kvm_tsc_vm *vm_of(const struct kvm_tsc_vm *vms, size_t vm_count, int pid)
{
	for (size_t i = 0; i < vm_count; i++) {
		if (vms[i].vcpu_count && atoi(vms[i].name) == pid) {
			return &vms[i];
		}
	}
	return NULL;
}

/* Why a guest cannot share the TSC; NULL: it can. */
static const char *lacks_tsc(
	const struct record_clock_guest *guest, const struct kvm_tsc_vm *vms, size_t vm_count)
{
	if (guest->is_tracecmd) {
		return "has trace-cmd's agent";
	}
	if (!guest->vmm) {
		return "is run by no process that is known here (see --guest-pid)";
	}
	return vm_of(vms, vm_count, guest->vmm->pid) ? NULL
						     : "has no tsc-offset in /sys/kernel/debug/kvm";
}

void record_clock_choose(const struct record_clock_guest *guests, size_t guest_count,
	const struct kvm_tsc_vm *vms, size_t vm_count, bool scales_tsc, struct record_clock *choice)
{
	choice->name = guest_count ? "mono_raw" : "mono";
	if (!guest_count) {
		snprintf(choice->reason, sizeof(choice->reason),
			"of one machine alone, and the one that LTTng and others use");
		return;
	}
	for (size_t i = 0; i < guest_count; i++) {
		const char *lack = lacks_tsc(&guests[i], vms, vm_count);

		if (lack) {
			snprintf(choice->reason, sizeof(choice->reason),
				"not steered by any daemon; x86-tsc not, as guest \"%s\" %s",
				guests[i].name, lack);
			return;
		}
	}
	if (!scales_tsc) {
		snprintf(choice->reason, sizeof(choice->reason),
			"not steered by any daemon; x86-tsc not, as this kernel does not say how it makes ns of ticks");
		return;
	}
	choice->name = "x86-tsc";
	snprintf(choice->reason, sizeof(choice->reason), "KVM tells its relation to %s exactly",
		guest_count == 1 ? "the guest's" : "each guest's");
}
