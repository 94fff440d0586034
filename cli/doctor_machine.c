/* SPDX-License-Identifier: MIT */
/* Clocks of the machine, KVM and the ways to guests. */
#include "doctor.h"
#include "kvm_tsc.h"
#include "tsc_check.h"
#include "vmm_find.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/clocks.h>
#include <unistd.h>

enum {
	CPUS_MAX = 1024,
	CHECK_MS = 2000
};

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/"

static bool has_word(const char *text, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		if ((at == text || at[-1] == ' ' || at[-1] == '\t') && strchr(" \n", at[length])) {
			return true;
		}
	}
	return false;
}

/* The flags of the first processor; "" where there are none. The caller frees it. */
static char *cpu_flags(const struct doctor *doctor)
{
	char path[PATH_MAX];
	FILE *const file = fopen(doctor_path(doctor, "/proc/cpuinfo", path), "re");
	char *line = NULL;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		if (strncmp(line, "flags\t", 6) == 0) {
			fclose(file);
			return line;
		}
	}
	if (file) {
		fclose(file);
	}
	free(line);
	return calloc(1, 1);
}

/* The TSC's own health, measured: what the kernel thinks of it stands in its clocksource. */
static void check_cpus_agree(struct doctor *doctor)
{
	struct tsc_check_result *const results = calloc(CPUS_MAX, sizeof(*results));
	uint32_t from = 0;
	const size_t count = results ? tsc_check_some(results, CPUS_MAX, &from, CHECK_MS) : 0;
	uint64_t worst_bound = 0;
	size_t off = 0;

	for (size_t i = 0; i < count; i++) {
		off += results[i].is_off ? 1 : 0;
		worst_bound = results[i].bound > worst_bound ? results[i].bound : worst_bound;
	}
	if (off > 0) {
		doctor_say(doctor, DOCTOR_NOTE, "tsc",
			"do not record with -C x86-tsc here, or have each CPU's offset corrected by a corrections file",
			"the TSCs of %zu of %zu CPUs differ from the first one's", off, count);
	} else if (count > 0) {
		doctor_say(doctor, DOCTOR_OK, "tsc", NULL,
			"the TSCs of %zu CPUs agree within %" PRIu64 " ticks of measuring",
			count + 1, worst_bound);
	}
	free(results);
}

static void check_clocksource(struct doctor *doctor)
{
	char current[64], available[256];
	char *const flags = cpu_flags(doctor);
	const bool is_guest = flags && has_word(flags, "hypervisor");
	const bool is_constant =
		flags && has_word(flags, "constant_tsc") && has_word(flags, "nonstop_tsc");

	if (doctor_read(doctor, CLOCKSOURCE "current_clocksource", current, sizeof(current)) != 0 ||
		doctor_read(doctor, CLOCKSOURCE "available_clocksource", available,
			sizeof(available)) != 0) {
		doctor_say(doctor, DOCTOR_NOTE, "clocksource", "mount -t sysfs sysfs /sys",
			"the kernel does not tell its clocksource");
	} else if (strcmp(current, "tsc") == 0) {
		doctor_say(doctor, is_constant ? DOCTOR_OK : DOCTOR_NOTE, "clocksource",
			is_constant
				? NULL
				: "record with the default clock, not with -C x86-tsc: this TSC changes its rate or stops",
			"tsc%s: guests can share it (-C x86-tsc on both sides)",
			is_guest ? ", in a virtual machine" : "");
	} else if (strncmp(current, "kvm-clock", 9) == 0) {
		doctor_say(doctor, DOCTOR_OK, "clocksource", NULL,
			"%s: this is a guest of KVM; its TSC can be shared with the host (-C x86-tsc)",
			current);
	} else if (strncmp(current, "arch_sys_counter", 16) == 0) {
		doctor_say(doctor, DOCTOR_OK, "clocksource", NULL,
			"%s: exchanges relate guests to it", current);
	} else {
		doctor_say(doctor, DOCTOR_NOTE, "clocksource",
			has_word(available, "tsc")
				? "echo tsc >" CLOCKSOURCE
				  "current_clocksource, or boot with tsc=reliable"
				: "look for \"tsc: Marking TSC unstable\" in dmesg; record with -C mono",
			"%s, not tsc: guests cannot share it, and reading it is slow", current);
	}
	free(flags);
	if (doctor_is_live(doctor)) {
		/* 2^-16 ppm to ppb. */
		const int64_t steered_ppb = (int64_t)tdm_clock_steering() * 1000 / 65536;

		check_cpus_agree(doctor);
		if (steered_ppb == 0) {
			doctor_say(doctor, DOCTOR_OK, "steering", NULL,
				"nobody steers this machine's clocks at the moment");
		} else {
			doctor_say(doctor, DOCTOR_OK, "steering", NULL,
				"mono and the wall clock are steered by %+" PRId64
				" ppb; mono_raw and x86-tsc are left alone",
				steered_ppb);
		}
	}
}

static void check_tsc_offset(struct doctor *doctor)
{
	char path[PATH_MAX];
	size_t vm_count = 0, vcpus = 0;
	bool has_ratio = false;

	if (access(doctor_path(doctor, "/sys/kernel/debug/kvm", path), R_OK | X_OK) != 0) {
		const int failure = errno;

		if (failure == EACCES) {
			doctor_say(doctor, DOCTOR_NOTE, "tsc-offset", "run tandem sync as root",
				"/sys/kernel/debug: %s: KVM's exact relation cannot be read",
				strerror(failure));
		} else {
			doctor_say(doctor, DOCTOR_NOTE, "tsc-offset",
				"mount -t debugfs debugfs /sys/kernel/debug, and load kvm",
				"no /sys/kernel/debug/kvm: clocks are measured by exchanges only");
		}
		return;
	}
	doctor_path(doctor, "/sys/kernel/debug", path);

	struct kvm_tsc_vm *const vms = kvm_tsc_read(path, &vm_count);

	for (size_t i = 0; i < vm_count; i++) {
		vcpus += vms[i].vcpu_count;
		has_ratio |= vms[i].vcpu_count > 0 && vms[i].vcpus[0].ratio != 0;
	}
	if (vcpus > 0) {
		doctor_say(doctor, DOCTOR_OK, "tsc-offset", NULL,
			"%zu VM%s, %zu vCPU%s: KVM tells the exact relation%s (-C x86-tsc)",
			vm_count, vm_count == 1 ? "" : "s", vcpus, vcpus == 1 ? "" : "s",
			has_ratio ? ", with scaling" : "");
	} else {
		doctor_say(doctor, DOCTOR_NOTE, "tsc-offset", "look again while a guest runs",
			"/sys/kernel/debug/kvm shows no VM with tsc-offset");
	}
	kvm_tsc_release(vms, vm_count);
}

static void check_kvm(struct doctor *doctor)
{
	char path[PATH_MAX];

	if (access(doctor_path(doctor, "/dev/kvm", path), R_OK | W_OK) == 0) {
		doctor_say(doctor, DOCTOR_OK, "kvm", NULL, "/dev/kvm: this machine can be a host");
		check_tsc_offset(doctor);
	} else if (errno == EACCES) {
		doctor_say(doctor, DOCTOR_NOTE, "kvm", "be in the group kvm (adduser USER kvm)",
			"/dev/kvm: %s", strerror(errno));
		check_tsc_offset(doctor);
	} else {
		doctor_say(doctor, DOCTOR_NOTE, "kvm",
			"modprobe kvm_intel or kvm_amd; virtualisation on in the firmware. Guests elsewhere need nothing of it",
			"no /dev/kvm: no guest of KVM runs here");
	}
}

static void check_vsock(struct doctor *doctor)
{
	char host[PATH_MAX], guest[PATH_MAX];
	/* To connect and to listen nobody needs rights on these files; to give a guest its device QEMU does on the first. */
	const bool is_host = access(doctor_path(doctor, "/dev/vhost-vsock", host), F_OK) == 0;
	const bool has_vsock = access(doctor_path(doctor, "/dev/vsock", guest), F_OK) == 0;

	if (is_host && access(host, R_OK | W_OK) != 0) {
		doctor_say(doctor, DOCTOR_NOTE, "vsock",
			"be in the group kvm (adduser USER kvm), or start the guests as root",
			"/dev/vhost-vsock: guests can be reached without a network (vsock:CID), but not started with a vsock by you: %s",
			strerror(errno));
	} else if (is_host) {
		doctor_say(doctor, DOCTOR_OK, "vsock", NULL,
			"/dev/vhost-vsock: guests can be reached without a network (vsock:CID)");
	} else if (has_vsock) {
		doctor_say(doctor, DOCTOR_NOTE, "vsock",
			"modprobe vhost_vsock on a host; in a guest nothing is missing",
			"/dev/vsock without /dev/vhost-vsock: this machine can be reached by its host, not reach guests");
	} else {
		doctor_say(doctor, DOCTOR_NOTE, "vsock",
			"modprobe vhost_vsock (host), modprobe vmw_vsock_virtio_transport (guest); or use tcp:",
			"no vsock here");
	}
}

/* Guests that run here, by the names that --guest takes. */
static void check_guests(struct doctor *doctor)
{
	char proc[PATH_MAX], libvirt[PATH_MAX], kvm[PATH_MAX], text[400] = "";
	const struct vmm_places places = { .proc = doctor_path(doctor, "/proc", proc),
		.libvirt = doctor_path(doctor, "/run/libvirt/qemu", libvirt),
		.kvm = doctor_path(doctor, "/sys/kernel/debug/kvm", kvm) };
	struct vmm_list vmms;

	vmm_list_read(&places, &vmms);
	for (size_t i = 0; i < vmms.count; i++) {
		const struct vmm *vmm = &vmms.items[i];
		const size_t used = strlen(text);
		char cid[32] = "no vsock";

		if (vmm->cid) {
			snprintf(cid, sizeof(cid), "vsock:%" PRIu32, vmm->cid);
		}
		snprintf(text + used, sizeof(text) - used, "%s%s (process %d, %s)",
			used ? ", " : "", *vmm->name ? vmm->name : "without a name", vmm->pid, cid);
	}
	if (vmms.count > 0) {
		doctor_say(doctor, DOCTOR_OK, "guests", NULL, "%s", text);
	}
	vmm_list_release(&vmms);
}

void doctor_machine(struct doctor *doctor)
{
	check_clocksource(doctor);
	check_kvm(doctor);
	check_guests(doctor);
	check_vsock(doctor);
}
