/* SPDX-License-Identifier: MIT */
#include "kvm_looks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/clocks.h>
#include <unistd.h>

enum {
	SETTLE_TRIES = 5,
	SETTLE_US = 2000
};

/* All VMs at one time, which lies between two readings of the TSC. */
struct look {
	struct kvm_tsc_vm *vms;
	size_t count;
	uint64_t before, behind;
};

static struct look look_once(const char *root)
{
	struct look look = { .before = tdm_clock_read(TDM_CLOCK_TSC) };

	look.vms = kvm_tsc_read(root, &look.count);
	look.behind = tdm_clock_read(TDM_CLOCK_TSC);
	return look;
}

static const struct kvm_tsc_vm *find_vm(const struct look *look, const char *name)
{
	for (size_t i = 0; i < look->count; i++) {
		if (strcmp(look->vms[i].name, name) == 0) {
			return &look->vms[i];
		}
	}
	return NULL;
}

static bool is_same(const struct tdm_tsc_relation *a, size_t a_count, const struct kvm_tsc_vm *vm)
{
	return a_count == vm->vcpu_count && memcmp(a, vm->vcpus, a_count * sizeof(*a)) == 0;
}

/* Does each VM that is known show what it showed at the last look, or is it gone? */
static bool is_as_known(const struct kvm_looks *looks, const struct look *look)
{
	for (size_t i = 0; i < looks->count; i++) {
		const struct kvm_looks_vm *const known = &looks->vms[i];
		const struct tdm_tsc_span *const last = &known->spans[known->span_count - 1];
		const struct kvm_tsc_vm *const vm = find_vm(look, known->name);

		if (vm && !is_same(last->vcpus, last->vcpu_count, vm)) {
			return false;
		}
	}
	return true;
}

static bool are_alike(const struct look *a, const struct look *b)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct kvm_tsc_vm *const vm = find_vm(b, a->vms[i].name);

		if (vm && !is_same(a->vms[i].vcpus, a->vms[i].vcpu_count, vm)) {
			return false;
		}
	}
	return true;
}

/* @return False where there is no more room, or no memory. */
static bool add_span(
	struct kvm_looks_vm *known, const struct kvm_tsc_vm *vm, const struct look *look)
{
	const size_t size = vm->vcpu_count * sizeof(*vm->vcpus);
	struct tdm_tsc_relation *const vcpus =
		known->span_count < KVM_LOOKS_SPANS ? malloc(size) : NULL;

	if (!vcpus) {
		return false;
	}
	memcpy(vcpus, vm->vcpus, size);
	known->spans[known->span_count++] = (struct tdm_tsc_span){ .vcpus = vcpus,
		.vcpu_count = vm->vcpu_count,
		.host_from = look->behind,
		.host_until = look->before };
	return true;
}

static void release_vm(struct kvm_looks_vm *known)
{
	for (size_t i = 0; i < known->span_count; i++) {
		free((void *)known->spans[i].vcpus);
	}
}

/* The VMs of the first look: the guest is one of them, or none. */
static void take_first(struct kvm_looks *looks, const struct look *look)
{
	looks->has_looked = true;
	looks->vms = look->count ? calloc(look->count, sizeof(*looks->vms)) : NULL;
	for (size_t i = 0; looks->vms && i < look->count; i++) {
		struct kvm_looks_vm *const known = &looks->vms[looks->count];

		memcpy(known->name, look->vms[i].name, sizeof(known->name));
		looks->count += add_span(known, &look->vms[i], look) ? 1 : 0;
	}
}

static void take_further(struct kvm_looks *looks, const struct look *look)
{
	size_t kept = 0;

	for (size_t i = 0; i < looks->count; i++) {
		struct kvm_looks_vm *const known = &looks->vms[i];
		struct tdm_tsc_span *const last = &known->spans[known->span_count - 1];
		const struct kvm_tsc_vm *const vm = find_vm(look, known->name);
		bool is_kept = vm != NULL;

		if (vm && is_same(last->vcpus, last->vcpu_count, vm)) {
			last->host_until = look->before;
		} else if (vm) {
			is_kept = add_span(known, vm, look);
		}
		if (!is_kept) {
			/* Another one under its name, one day, is another guest. */
			release_vm(known);
			looks->ended++;
		} else {
			if (kept != i) {
				looks->vms[kept] = *known;
			}
			kept++;
		}
	}
	looks->count = kept;
}

void kvm_looks_take(struct kvm_looks *looks, const char *root)
{
	struct look look = look_once(root);

	if (!looks->has_looked) {
		take_first(looks, &look);
	} else {
		bool is_settled = is_as_known(looks, &look);

		for (int i = 0; i < SETTLE_TRIES && !is_settled; i++) {
			usleep(SETTLE_US);

			const struct look again = look_once(root);

			is_settled = are_alike(&look, &again);
			kvm_tsc_release(look.vms, look.count);
			look = again;
		}
		take_further(looks, &look);
	}
	kvm_tsc_release(look.vms, look.count);
}

void kvm_looks_release(struct kvm_looks *looks)
{
	for (size_t i = 0; i < looks->count; i++) {
		release_vm(&looks->vms[i]);
	}
	free(looks->vms);
	*looks = (struct kvm_looks){ 0 };
}
