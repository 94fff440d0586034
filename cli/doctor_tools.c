/* SPDX-License-Identifier: MIT */
/* The programs around Tandem, its own parts, shared memory and what this user may do. */
#include "doctor.h"
#include "plugin_find.h"
#include "syscalls_priv.h"
#include "tandem_version.h"
#include <babeltrace2/babeltrace.h>
#include <errno.h>
#include <inttypes.h>
#include <lttng/lttng.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Looks along PATH. */
static bool is_program(const char *name)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		const size_t length = strcspn(at, ":");
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%.*s/%s", (int)length, at, name) <
				(int)sizeof(path) &&
			access(path, X_OK) == 0) {
			return true;
		}
		at += length + (at[length] == ':');
	}
	return false;
}

static void check_program(struct doctor *doctor, const char *name, const char *use)
{
	char remedy[64];

	if (!is_program(name)) {
		snprintf(remedy, sizeof(remedy), "apt install %s", name);
		doctor_say(doctor, DOCTOR_NOTE, name, remedy, "not in PATH; %s", use);
	}
}

/* Does babeltrace2, left alone, find the plugin, and of this version? Its library is asked, as its program would. */
static void check_babeltrace(struct doctor *doctor)
{
	char folder[PATH_MAX], remedy[PATH_MAX + 64];
	const bool has_own = plugin_find_folder(folder);
	const bt_plugin *plugin = NULL;
	unsigned int major = 0, minor = 0, patch = 0;
	char version[64];
	const char *extra = NULL;

	snprintf(remedy, sizeof(remedy), "export BABELTRACE_PLUGIN_PATH=%s", folder);
	if (!has_own) {
		doctor_say(doctor, DOCTOR_BAD, "plugin", "install Tandem anew",
			"babeltrace-plugin-tandem.so is neither beside this program nor in %s: tandem view does not work",
			folder);
	}
	if (bt_plugin_find("tandem", BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, BT_FALSE, &plugin) !=
			BT_PLUGIN_FIND_STATUS_OK ||
		!plugin) {
		doctor_say(doctor, has_own ? DOCTOR_NOTE : DOCTOR_BAD, "babeltrace2",
			has_own ? remedy : NULL, "babeltrace2 by itself does not find the plugin%s",
			has_own ? "; tandem view does" : "");
		return;
	}
	if (bt_plugin_get_version(plugin, &major, &minor, &patch, &extra) !=
		BT_PROPERTY_AVAILABILITY_AVAILABLE) {
		major = minor = patch = 0;
	}
	snprintf(version, sizeof(version), "%u.%u.%u", major, minor, patch);
	if (strcmp(version, TDM_VERSION) != 0) {
		doctor_say(doctor, DOCTOR_NOTE, "babeltrace2", remedy,
			"babeltrace2 finds the plugin of version %s in %s, and this is " TDM_VERSION,
			version, bt_plugin_get_path(plugin));
	} else {
		doctor_say(doctor, DOCTOR_OK, "babeltrace2", NULL, "finds the plugin: %s",
			bt_plugin_get_path(plugin));
	}
	bt_plugin_put_ref(plugin);
	if (!is_program("babeltrace2")) {
		doctor_say(doctor, DOCTOR_NOTE, "babeltrace2", "apt install babeltrace2",
			"the program is not in PATH; tandem view works without it");
	}
}

static void check_shared_memory(struct doctor *doctor, const struct syscalls_parts *parts)
{
	char path[PATH_MAX];
	const char *const shm = getenv("TANDEM_SHM_DIR") && doctor_is_live(doctor)
					? getenv("TANDEM_SHM_DIR")
					: doctor_path(doctor, "/dev/shm", path);
	const unsigned int cpus = syscalls_possible_cpus();
	struct syscalls_profile profile;
	struct statvfs room;
	struct tdm_error err;
	char remedy[160];

	if (syscalls_profile_read(parts, "tandem-syscalls", &profile, &err) != TDM_OK) {
		doctor_say(doctor, DOCTOR_NOTE, "sessions", "install Tandem anew", "%s", err.text);
		return;
	}

	const uint64_t need = syscalls_profile_shm_bytes(&profile, cpus);

	syscalls_profile_release(&profile);
	if (statvfs(shm, &room) != 0) {
		doctor_say(doctor, DOCTOR_NOTE, "shm", "mount -t tmpfs tmpfs /dev/shm",
			"%s: %s: LTTng keeps its rings there", shm, strerror(errno));
		return;
	}

	const uint64_t left = (uint64_t)room.f_bavail * room.f_frsize;

	if (left < need) {
		snprintf(remedy, sizeof(remedy),
			"tandem syscalls --profile tandem-syscalls-small, or mount -o remount,size=%" PRIu64
			"M %s (containers: --shm-size)",
			(need * 2) >> 20, shm);
	}
	doctor_say(doctor, left < need ? DOCTOR_NOTE : DOCTOR_OK, "shm",
		left < need ? remedy : NULL,
		"%s has %" PRIu64 " MiB left; the rings of tandem syscalls take %" PRIu64
		" MiB on %u CPUs",
		shm, left >> 20, need >> 20, cpus);
}

static void check_lttng(struct doctor *doctor)
{
	struct syscalls_parts parts = { .sessions = "" };
	struct tdm_error err;
	char path[PATH_MAX], remedy[PATH_MAX + 64];

	if (syscalls_find_parts(false, &parts, &err) != TDM_OK) {
		doctor_say(doctor, DOCTOR_NOTE, "syscalls", "apt install tandem-syscalls",
			"tandem syscalls does not work: %s", err.text);
	} else {
		doctor_say(doctor, DOCTOR_OK, "syscalls", NULL, "%s", parts.preload);
		check_shared_memory(doctor, &parts);
	}
	if (!is_program("lttng-sessiond")) {
		doctor_say(doctor, DOCTOR_NOTE, "lttng", "apt install lttng-tools",
			"lttng-sessiond is not in PATH: no recording with LTTng, tandem syscalls among it");
	} else if (doctor_is_live(doctor) && lttng_session_daemon_alive() == 1) {
		doctor_say(doctor, DOCTOR_OK, "lttng", NULL, "a session daemon answers");
	} else {
		doctor_say(doctor, DOCTOR_OK, "lttng", NULL,
			"lttng-sessiond is there and not running; tandem syscalls starts one where it needs it");
	}
	if (access(doctor_path(doctor, "/etc/lttng/sessions/tandem-syscalls.lttng", path), R_OK) !=
		0) {
		snprintf(remedy, sizeof(remedy), "lttng load -i %s/tandem-syscalls.lttng",
			parts.sessions);
		doctor_say(doctor, DOCTOR_NOTE, "sessions",
			*parts.sessions ? remedy : "apt install tandem",
			"\"lttng load tandem-syscalls\" finds no session of that name in /etc/lttng/sessions");
	}
}

static void check_privileges(struct doctor *doctor)
{
	char text[64];
	long paranoid = 0;

	if (geteuid() == 0) {
		doctor_say(doctor, DOCTOR_OK, "privileges", NULL, "root");
	} else {
		doctor_say(doctor, DOCTOR_NOTE, "privileges",
			"sudo for record, and for sync with -C x86-tsc",
			"an ordinary user: view, convert, info, sync, estimate and syscalls work");
	}
	if (doctor_read(doctor, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) == 0) {
		paranoid = strtol(text, NULL, 10);
	}
	if (paranoid > -1 && geteuid() != 0) {
		doctor_say(doctor, DOCTOR_NOTE, "perf",
			"sysctl kernel.perf_event_paranoid=-1, or sudo",
			"perf_event_paranoid is %ld: perf record shows no tracepoints to you",
			paranoid);
	}
	if (doctor_read(doctor, "/proc/sys/kernel/kptr_restrict", text, sizeof(text)) == 0 &&
		strtol(text, NULL, 10) >= 2) {
		doctor_say(doctor, DOCTOR_NOTE, "symbols", "sysctl kernel.kptr_restrict=1",
			"kptr_restrict is %s: recordings will have addresses in place of function names",
			text);
	}
}

void doctor_tools(struct doctor *doctor)
{
	check_babeltrace(doctor);
	check_lttng(doctor);
	check_program(doctor, "trace-cmd", "Tandem does without, and reads what it records");
	check_privileges(doctor);
}
