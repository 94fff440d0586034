/* SPDX-License-Identifier: MIT */
#include "vmm_find.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PATH_BYTES = 600
};

static bool read_line(const char *path, char *line, size_t room)
{
	FILE *file = fopen(path, "re");
	const bool good = file && fgets(line, (int)room, file);

	if (file) {
		fclose(file);
	}
	return good;
}

/* The vCPU that a thread's name is of: "CPU 0/KVM", "CPU 0/TCG", "fc_vcpu 0", "vcpu0". */
static bool vcpu_of(const char *thread_name, unsigned int *vcpu)
{
	return sscanf(thread_name, "CPU %u/", vcpu) == 1 ||
	       sscanf(thread_name, "fc_vcpu %u", vcpu) == 1 ||
	       sscanf(thread_name, "vcpu%u", vcpu) == 1;
}

static void note(struct tdm_vcpu *vcpus, size_t vcpu_count, unsigned int vcpu, int tid)
{
	if (vcpu < vcpu_count && tid > 0) {
		vcpus[vcpu].host_tid = tid;
	}
}

/* QEMU names its threads only with "-name ...,debug-threads=on", which libvirt gives it; the others always. */
static void by_thread_names(const char *proc, int pid, struct tdm_vcpu *vcpus, size_t vcpu_count)
{
	char path[PATH_BYTES], name[64];

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);

	DIR *dir = opendir(path);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		unsigned int vcpu;

		if (!isdigit((unsigned char)entry->d_name[0])) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%d/task/%.20s/comm", proc, pid, entry->d_name);
		if (read_line(path, name, sizeof(name)) && vcpu_of(name, &vcpu)) {
			note(vcpus, vcpu_count, vcpu, atoi(entry->d_name));
		}
	}
	if (dir) {
		closedir(dir);
	}
}

/* "PID-FD/vcpuN/pid", where the kernel has it. */
static void by_kvm(const char *kvm, int pid, struct tdm_vcpu *vcpus, size_t vcpu_count)
{
	DIR *dir = opendir(kvm);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		int owner, fd;
		char rest;

		if (sscanf(entry->d_name, "%d-%d%c", &owner, &fd, &rest) != 2 || owner != pid) {
			continue;
		}
		for (size_t vcpu = 0; vcpu < vcpu_count; vcpu++) {
			char path[PATH_BYTES], line[32];

			snprintf(path, sizeof(path), "%s/%.40s/vcpu%zu/pid", kvm, entry->d_name,
				vcpu);
			if (read_line(path, line, sizeof(line))) {
				note(vcpus, vcpu_count, (unsigned int)vcpu, atoi(line));
			}
		}
	}
	if (dir) {
		closedir(dir);
	}
}

static size_t count_known(const struct tdm_vcpu *vcpus, size_t vcpu_count)
{
	size_t known = 0;

	for (size_t i = 0; i < vcpu_count; i++) {
		known += vcpus[i].host_tid > 0;
	}
	return known;
}

size_t vmm_threads(const struct vmm_places *places, const struct vmm *vmm, struct tdm_vcpu *vcpus,
	size_t vcpu_count)
{
	for (size_t i = 0; i < vcpu_count; i++) {
		vcpus[i] = (struct tdm_vcpu){ .vcpu = (uint32_t)i, .host_tid = -1 };
	}
	if (!vmm) {
		return 0;
	}
	for (size_t i = 0; i < vmm->vcpu_count; i++) {
		note(vcpus, vcpu_count, vmm->vcpus[i].vcpu, vmm->vcpus[i].host_tid);
	}
	if (!count_known(vcpus, vcpu_count)) {
		by_thread_names(places && places->proc ? places->proc : "/proc", vmm->pid, vcpus,
			vcpu_count);
	}
	if (!count_known(vcpus, vcpu_count)) {
		by_kvm(places && places->kvm ? places->kvm : "/sys/kernel/debug/kvm", vmm->pid,
			vcpus, vcpu_count);
	}
	return count_known(vcpus, vcpu_count);
}
