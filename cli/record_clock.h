/* SPDX-License-Identifier: MIT */
/*
 * record_clock.h - the trace clock of a recording where -C names none: the one that all its machines share best.
 */
#ifndef CLI_RECORD_CLOCK_H
#define CLI_RECORD_CLOCK_H

#include "kvm_tsc.h"
#include "vmm_find.h"

/* What is known of one guest of the recording. */
struct record_clock_guest {
	const char *name;
	const struct vmm *vmm; /* NULL = the process that runs it is not known */
	bool is_tracecmd;
};

struct record_clock {
	const char *name; /* ftrace's; a literal */
	char reason[200]; /* in words, for the summary */
};

/**
 * Chooses: "x86-tsc" where KVM tells exactly how each guest's TSC runs against this machine's and ns can be made of it; else
 * "mono_raw", which no daemon steers, with guests, and "mono", which other tracers use too, without.
 *
 * @param vms         What KVM's debugfs tells (kvm_tsc_read()).
 * @param scales_tsc  True where this kernel tells how it makes ns of ticks.
 */
void record_clock_choose(const struct record_clock_guest *guests, size_t guest_count,
	const struct kvm_tsc_vm *vms, size_t vm_count, bool scales_tsc,
	struct record_clock *choice);

#endif
