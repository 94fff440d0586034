/* SPDX-License-Identifier: MIT */
#include "kvm_tsc.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file's one line. */
static bool read_line(const char *dir, const char *name, char line[64])
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path)) {
		return false;
	}

	FILE *file = fopen(path, "re");
	const bool good = file && fgets(line, 64, file);

	if (file) {
		fclose(file);
	}
	return good;
}

static bool read_unsigned(const char *dir, const char *name, uint64_t *number)
{
	char line[64];

	return read_line(dir, name, line) && sscanf(line, "%" SCNu64, number) == 1;
}

/* A vCPU with an offset but without the scaling files runs unscaled. */
static bool read_vcpu(const char *dir, uint32_t vcpu, struct tdm_tsc_relation *relation)
{
	uint64_t bits = 0;
	char line[64];

	memset(relation, 0, sizeof(*relation));
	relation->vcpu = vcpu;
	if (!read_line(dir, "tsc-offset", line) ||
		sscanf(line, "%" SCNd64, &relation->offset) != 1) {
		return false;
	}
	if (read_unsigned(dir, "tsc-scaling-ratio", &relation->ratio) &&
		read_unsigned(dir, "tsc-scaling-ratio-frac-bits", &bits) && bits > 0 && bits < 64) {
		relation->frac_bits = (unsigned int)bits;
	} else {
		relation->ratio = 0;
	}
	return true;
}

static int compare_vcpus(const void *a, const void *b)
{
	const struct tdm_tsc_relation *x = a;
	const struct tdm_tsc_relation *y = b;

	return (x->vcpu > y->vcpu) - (x->vcpu < y->vcpu);
}

static void read_vm(const char *dir, struct kvm_tsc_vm *vm)
{
	DIR *list = opendir(dir);

	for (struct dirent *entry; list && (entry = readdir(list));) {
		char path[512];
		unsigned int vcpu;
		char rest;

		if (sscanf(entry->d_name, "vcpu%u%c", &vcpu, &rest) != 1 ||
			vm->vcpu_count == KVM_TSC_VCPUS ||
			snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >=
				(int)sizeof(path)) {
			continue;
		}

		struct tdm_tsc_relation *vcpus =
			realloc(vm->vcpus, (vm->vcpu_count + 1) * sizeof(*vcpus));

		if (!vcpus) {
			break;
		}
		vm->vcpus = vcpus;
		vm->vcpu_count += read_vcpu(path, vcpu, &vcpus[vm->vcpu_count]) ? 1 : 0;
	}
	if (list) {
		closedir(list);
	}
	if (vm->vcpu_count > 1) {
		qsort(vm->vcpus, vm->vcpu_count, sizeof(*vm->vcpus), compare_vcpus);
	}
}

struct kvm_tsc_vm *kvm_tsc_read(const char *root, size_t *count)
{
	struct kvm_tsc_vm *vms = NULL;
	char path[256];

	*count = 0;
	snprintf(path, sizeof(path), "%s/kvm", root ? root : "/sys/kernel/debug");

	DIR *list = opendir(path);

	for (struct dirent *entry; list && (entry = readdir(list));) {
		struct kvm_tsc_vm vm = { .vcpus = NULL };
		char dir[512];
		int pid, fd;
		char rest;

		if (sscanf(entry->d_name, "%d-%d%c", &pid, &fd, &rest) != 2 ||
			*count == KVM_TSC_VMS) {
			continue;
		}
		snprintf(vm.name, sizeof(vm.name), "%d-%d", pid, fd);
		snprintf(dir, sizeof(dir), "%s/%s", path, vm.name);
		read_vm(dir, &vm);

		struct kvm_tsc_vm *more =
			vm.vcpu_count ? realloc(vms, (*count + 1) * sizeof(*vms)) : NULL;

		if (!more) {
			free(vm.vcpus);
			continue;
		}
		vms = more;
		vms[(*count)++] = vm;
	}
	if (list) {
		closedir(list);
	}
	return vms;
}

void kvm_tsc_release(struct kvm_tsc_vm *vms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(vms[i].vcpus);
	}
	free(vms);
}
