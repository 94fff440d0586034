/* SPDX-License-Identifier: MIT */
/* The kernel's tracer: may it be used, which events and clocks does it have. */
#include "doctor.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *const tracefs_places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

/* What recordings are of most use with, in the order in which it is told. */
static const struct wanted_event {
	const char *event; /* SYSTEM/EVENT */
	const char *use;
	bool is_main;
	bool is_x86;
} wanted_events[] = {
	{ "sched/sched_switch", "every view needs it", true, false },
	{ "sched/sched_waking", "wakeups, critical path", false, false },
	{ "irq/irq_handler_entry", "interrupts", false, false },
	{ "timer/hrtimer_start", "critical path", false, false },
	{ "irq_vectors/local_timer_entry", "critical path", false, true },
	{ "raw_syscalls/sys_enter", "system calls", false, false },
};

/* Does the kernel have the file system, mounted or not? */
static bool knows_tracefs(const struct doctor *doctor)
{
	char path[PATH_MAX], line[128];
	FILE *const file = fopen(doctor_path(doctor, "/proc/filesystems", path), "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strstr(line, "\ttracefs\n") != NULL;
	}
	if (file) {
		fclose(file);
	}
	return found;
}

static bool is_locked_down(const struct doctor *doctor)
{
	char text[128];

	return doctor_read(doctor, "/sys/kernel/security/lockdown", text, sizeof(text)) == 0 &&
	       strstr(text, "[confidentiality]") != NULL;
}

/* @return Where it is, "" where it cannot be used. */
static const char *check_tracefs(struct doctor *doctor)
{
	char path[PATH_MAX], name[64];
	int failure = ENOENT;

	for (size_t i = 0; i < sizeof(tracefs_places) / sizeof(tracefs_places[0]); i++) {
		snprintf(name, sizeof(name), "%s/trace_clock", tracefs_places[i]);
		if (access(doctor_path(doctor, name, path), R_OK) == 0) {
			snprintf(name, sizeof(name), "%s/instances", tracefs_places[i]);
			if (access(doctor_path(doctor, name, path), W_OK) != 0) {
				doctor_say(doctor, DOCTOR_BAD, "tracefs",
					"run tandem record as root",
					"%s: no instance can be made: %s", path, strerror(errno));
			} else {
				doctor_say(doctor, DOCTOR_OK, "tracefs", NULL,
					"%s, instances can be made", tracefs_places[i]);
			}
			return tracefs_places[i];
		}
		if (errno != ENOENT && failure == ENOENT) {
			failure = errno;
		}
	}
	if (is_locked_down(doctor)) {
		doctor_say(doctor, DOCTOR_BAD, "tracefs",
			"boot with lockdown=integrity or none, or record this machine with nothing",
			"the kernel is locked down for confidentiality: its tracer is off");
	} else if (failure != ENOENT) {
		doctor_say(doctor, DOCTOR_BAD, "tracefs", "run tandem record as root",
			"%s: %s: reading traces works, recording this machine does not",
			tracefs_places[0], strerror(failure));
	} else if (!knows_tracefs(doctor)) {
		doctor_say(doctor, DOCTOR_BAD, "tracefs",
			"a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING",
			"this kernel has no tracefs: reading traces works, recording this machine does not");
	} else if (geteuid() == 0) {
		doctor_say(doctor, DOCTOR_NOTE, "tracefs",
			"mount -t tracefs tracefs /sys/kernel/tracing",
			"not mounted; tandem record mounts it itself");
	} else {
		doctor_say(doctor, DOCTOR_BAD, "tracefs",
			"as root: mount -t tracefs tracefs /sys/kernel/tracing", "not mounted");
	}
	return "";
}

static bool has_event(const struct doctor *doctor, const char *tracefs, const char *event)
{
	char name[160], path[PATH_MAX];

	snprintf(name, sizeof(name), "%s/events/%s", tracefs, event);
	return access(doctor_path(doctor, name, path), F_OK) == 0;
}

static bool is_x86(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return true;
#else
	return false;
#endif
}

static void check_events(struct doctor *doctor, const char *tracefs)
{
	char missing[400] = "";
	bool lacks_main = false;

	for (size_t i = 0; i < sizeof(wanted_events) / sizeof(wanted_events[0]); i++) {
		const struct wanted_event *wanted = &wanted_events[i];
		const size_t used = strlen(missing);

		if ((wanted->is_x86 && !is_x86()) || has_event(doctor, tracefs, wanted->event)) {
			continue;
		}
		lacks_main |= wanted->is_main;
		snprintf(missing + used, sizeof(missing) - used, "%s%s (%s)", used ? ", " : "",
			wanted->event, wanted->use);
	}
	if (*missing) {
		doctor_say(doctor, lacks_main ? DOCTOR_BAD : DOCTOR_NOTE, "events",
			"a kernel that is configured with them", "missing: %s", missing);
	} else {
		doctor_say(doctor, DOCTOR_OK, "events", NULL, "sched, irq, timer, %sraw_syscalls",
			is_x86() ? "irq_vectors, " : "");
	}

	char path[PATH_MAX];
	const bool may_host = access(doctor_path(doctor, "/dev/kvm", path), F_OK) == 0;

	if (has_event(doctor, tracefs, "kvm/kvm_entry") &&
		has_event(doctor, tracefs, "kvm/kvm_exit")) {
		doctor_say(doctor, DOCTOR_OK, "kvm-events", NULL,
			"kvm_entry and kvm_exit, for views of virtual machines");
	} else if (may_host) {
		doctor_say(doctor, DOCTOR_NOTE, "kvm-events",
			"modprobe kvm_intel or kvm_amd; a kernel that has kvm built in has its events, too",
			"no kvm_entry: views cannot tell when a guest's CPU ran");
	}
}

static void check_clocks(struct doctor *doctor, const char *tracefs)
{
	static const char *const wanted[] = { "mono", "mono_raw", "x86-tsc" };
	char name[64], text[256], missing[64] = "";

	snprintf(name, sizeof(name), "%s/trace_clock", tracefs);
	if (doctor_read(doctor, name, text, sizeof(text)) != 0) {
		doctor_say(doctor, DOCTOR_BAD, "clocks", "run tandem record as root",
			"%s cannot be read", name);
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		bool found = false;

		for (const char *at = text; *at && !found; at += strcspn(at, " ") + (*at == ' ')) {
			at += strspn(at, " [");
			found = strncmp(at, wanted[i], strlen(wanted[i])) == 0 &&
				strchr(" ]", at[strlen(wanted[i])]);
		}
		if (!found && (is_x86() || strncmp(wanted[i], "x86", 3) != 0)) {
			const size_t used = strlen(missing);

			snprintf(missing + used, sizeof(missing) - used, "%s%s", used ? ", " : "",
				wanted[i]);
		}
	}
	if (*missing) {
		doctor_say(doctor, DOCTOR_NOTE, "clocks", "name one of these with -C, e.g. -C boot",
			"no trace clock %s; there are: %s", missing, text);
	} else {
		doctor_say(doctor, DOCTOR_OK, "clocks", NULL, "trace clocks: %s", text);
	}
}

void doctor_tracer(struct doctor *doctor)
{
	const char *const tracefs = check_tracefs(doctor);

	if (*tracefs) {
		check_events(doctor, tracefs);
		check_clocks(doctor, tracefs);
	}
}
