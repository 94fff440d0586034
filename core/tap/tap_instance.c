/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Instances are named tandem-PID-START-LABEL, START being the process's start time in clock ticks: PID alone could be
 * somebody else's by the time we look.
 */
#define INSTANCE_PREFIX "tandem-"

enum {
	DEFAULT_BUFFER_KIB = 4096,
	BUFFER_PERCENT = 50,
	SMALL_FILE_BYTES = 1 << 20
};

/* What a task's stat says; state 'X' and 0 where there is none. */
struct task_stat {
	char state;           /* field 3 */
	uint64_t start_ticks; /* field 22 */
};

static struct task_stat read_stat(long pid)
{
	char path[64];
	struct tdm_buffer text = { 0 };
	struct task_stat stat = { .state = 'X' };

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	if (tracefs_read(path, NULL, SMALL_FILE_BYTES, &text, NULL) == TDM_OK &&
		tdm_buffer_append(&text, "", 1) == TDM_OK) {
		/* The name in field 2 may hold anything; the last parenthesis ends it. */
		const char *rest = strrchr((const char *)text.bytes, ')');

		if (rest) {
			sscanf(rest,
				") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
				&stat.state, &stat.start_ticks);
		}
	}
	tdm_buffer_release(&text);
	return stat;
}

/* Turns an instance off before it is removed: the kernel refuses to remove one that is busy. */
static bool remove_instance(const char *path, const struct tdm_log *log)
{
	enum {
		TRIES = 20,
		PAUSE_US = 20000
	};

	tracefs_write(path, "tracing_on", "0", false, NULL);
	tracefs_write(path, "set_event", "", false, NULL);
	for (int i = 0; i < TRIES; i++) {
		if (rmdir(path) == 0 || errno == ENOENT) {
			return true;
		}
		if (errno != EBUSY) {
			break;
		}
		usleep(PAUSE_US);
	}
	TDM_WARNING(log, "Trace instance could not be removed: path=\"%s\", error=\"%s\"", path,
		strerror(errno));
	return false;
}

unsigned int tdm_tap_remove_stale(const struct tdm_log *log)
{
	const char *root = tdm_tap_find_tracefs(NULL);
	unsigned int removed = 0;
	char path[512];

	if (!root) {
		return 0;
	}
	snprintf(path, sizeof(path), "%s/instances", root);

	DIR *dir = opendir(path);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		long pid = 0;
		uint64_t ticks = 0;

		if (sscanf(entry->d_name, INSTANCE_PREFIX "%ld-%" SCNu64 "-", &pid, &ticks) != 2 ||
			read_stat(pid).start_ticks == ticks) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/instances/%s", root, entry->d_name);
		/* One of another PID namespace, whose processes we do not see, is held open, and the kernel refuses. */
		if (rmdir(path) == 0) {
			TDM_WARNING(log,
				"Removed a trace instance that was left behind: name=\"%s\"",
				entry->d_name);
			removed++;
		}
	}
	if (dir) {
		closedir(dir);
	}
	return removed;
}

/* The number behind "NAME;\toffset:" or "...size:" of a field line of header_page. */
static bool header_number(const char *text, const char *field, const char *key, uint32_t *value)
{
	char name[32];

	snprintf(name, sizeof(name), " %s;", field);

	const char *at = strstr(text, name);

	at = at ? strstr(at, key) : NULL;
	return at && sscanf(at + strlen(key), "%" SCNu32, value) == 1;
}

static enum tdm_status read_layout(struct tdm_tap *tap, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status =
		tracefs_read(tap->path, "events/header_page", SMALL_FILE_BYTES, &text, err);
	uint32_t offset_bytes = 0, size_bytes = 0, long_bytes = 0;

	if (status == TDM_OK && tdm_buffer_append(&text, "", 1) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for header_page");
	}
	if (status == TDM_OK) {
		const char *page = (const char *)text.bytes;

		if (!header_number(page, "data", "offset:", &offset_bytes) ||
			!header_number(page, "data", "size:", &size_bytes) ||
			!header_number(page, "commit", "size:", &long_bytes) || offset_bytes > 64 ||
			size_bytes > 1 << 24) {
			status = tdm_fail(err, TDM_ERR_FORMAT,
				"%s/events/header_page cannot be understood", tap->path);
		}
	}
	tap->header_bytes = offset_bytes;
	tap->page_bytes = offset_bytes + size_bytes;
	tap->long_bytes = long_bytes;
	tdm_buffer_release(&text);
	return status;
}

static void count_cpus(struct tdm_tap *tap)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/per_cpu", tap->path);

	DIR *dir = opendir(path);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		uint32_t cpu;

		if (sscanf(entry->d_name, "cpu%" SCNu32, &cpu) == 1 && cpu >= tap->cpu_count) {
			tap->cpu_count = cpu + 1;
		}
	}
	if (dir) {
		closedir(dir);
	}
}

static enum tdm_status set_clock(struct tdm_tap *tap, const char *clock, struct tdm_error *err)
{
	struct tdm_error refusal = { 0 };

	if (tracefs_write(tap->path, "trace_clock", clock, false, &refusal) == TDM_OK) {
		return TDM_OK;
	}

	struct tdm_buffer known = { 0 };

	tracefs_read(tap->path, "trace_clock", SMALL_FILE_BYTES, &known, NULL);
	while (known.size && known.bytes[known.size - 1] == '\n') {
		known.size--;
	}
	tdm_fail(err, TDM_ERR_RANGE, "clock \"%s\" is not among this kernel's: %.*s", clock,
		(int)known.size, known.bytes ? (const char *)known.bytes : "");
	tdm_buffer_release(&known);
	return TDM_ERR_RANGE;
}

enum tdm_status tdm_tap_add_pid(struct tdm_tap *tap, int32_t pid, struct tdm_error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRId32, pid);
	return tracefs_write(tap->path, "set_event_pid", text, true, err);
}

/* A zombie records no more events, whenever its parent takes notice of it. */
static bool task_runs(long pid)
{
	const char state = read_stat(pid).state;

	return state != 'Z' && state != 'X';
}

bool tdm_tap_tasks_ended(const struct tdm_tap *tap)
{
	struct tdm_buffer list = { 0 };
	bool ended =
		tracefs_read(tap->path, "set_event_pid", SMALL_FILE_BYTES, &list, NULL) == TDM_OK &&
		tdm_buffer_append(&list, "", 1) == TDM_OK;

	for (const char *at = (const char *)list.bytes; ended && *at;
		at += strcspn(at, "\n"), at += *at == '\n') {
		ended = !task_runs(strtol(at, NULL, 10));
	}
	tdm_buffer_release(&list);
	return ended;
}

static enum tdm_status apply_options(
	struct tdm_tap *tap, const struct tdm_tap_options *options, struct tdm_error *err)
{
	char text[32];
	enum tdm_status status = tracefs_write(tap->path, "tracing_on", "0", false, err);

	if (status == TDM_OK && options->clock) {
		status = set_clock(tap, options->clock, err);
	}
	snprintf(text, sizeof(text), "%" PRIu32,
		options->buffer_kib ? options->buffer_kib : DEFAULT_BUFFER_KIB);
	if (status == TDM_OK) {
		status = tracefs_write(tap->path, "buffer_size_kb", text, false, err);
	}
	/* The reader is woken once a buffer is this full, never for each event; kernels before 5.1 lack the file. */
	snprintf(text, sizeof(text), "%d", BUFFER_PERCENT);
	tracefs_write(tap->path, "buffer_percent", text, false, NULL);
	for (size_t i = 0; i < options->setting_count && status == TDM_OK; i++) {
		const struct tdm_tap_setting *setting = &options->settings[i];

		status = tracefs_write(
			tap->path, setting->file, setting->value, setting->append, err);
	}
	for (size_t i = 0; i < options->pid_count && status == TDM_OK; i++) {
		status = tdm_tap_add_pid(tap, options->pids[i], err);
	}
	if (status == TDM_OK && options->follow_children) {
		status = tracefs_write(tap->path, "options/event-fork", "1", false, err);
	}
	return status == TDM_OK ? enable_events(tap, options, err) : status;
}

/* From the first moment on: until rings are open nothing else would tell that the instance is in use. */
static void hold(struct tdm_tap *tap)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/tracing_on", tap->path);
	tap->hold_fd = open(path, O_RDONLY | O_CLOEXEC);
}

enum tdm_status tdm_tap_create(const struct tdm_tap_options *options, const struct tdm_log *log,
	struct tdm_tap **tap, struct tdm_error *err)
{
	const char *root = tdm_tap_find_tracefs(err);

	if (!root) {
		return TDM_ERR_IO;
	}
	tdm_tap_remove_stale(log);

	struct tdm_tap *made = calloc(1, sizeof(*made));

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a trace instance");
	}
	made->log = log;

	enum tdm_status status = TDM_OK;

	/* Several recordings of one process: the number makes the name free. */
	for (int number = 0;; number++) {
		snprintf(made->path, sizeof(made->path),
			"%s/instances/" INSTANCE_PREFIX "%ld-%" PRIu64 "-%.64s-%d", root,
			(long)getpid(), read_stat(getpid()).start_ticks,
			options->label ? options->label : "tap", number);
		if (mkdir(made->path, 0700) == 0) {
			hold(made);
			break;
		}
		if (errno != EEXIST) {
			status = tdm_fail_errno(err, errno, "making trace instance %s", made->path);
			free(made);
			return status;
		}
	}
	count_cpus(made);
	status = read_layout(made, err);
	if (status == TDM_OK) {
		status = apply_options(made, options, err);
	}
	if (status != TDM_OK) {
		tdm_tap_destroy(made);
		return status;
	}
	*tap = made;
	return TDM_OK;
}

void tdm_tap_destroy(struct tdm_tap *tap)
{
	if (!tap) {
		return;
	}
	if (tap->hold_fd >= 0) {
		close(tap->hold_fd);
	}
	remove_instance(tap->path, tap->log);
	for (size_t i = 0; i < tap->system_count; i++) {
		free(tap->systems[i]);
	}
	free(tap->systems);
	tdm_buffer_release(&tap->left_out);
	free(tap);
}

enum tdm_status tdm_tap_start(struct tdm_tap *tap, struct tdm_error *err)
{
	return tracefs_write(tap->path, "tracing_on", "1", false, err);
}

enum tdm_status tdm_tap_stop(struct tdm_tap *tap, struct tdm_error *err)
{
	return tracefs_write(tap->path, "tracing_on", "0", false, err);
}

uint32_t tdm_tap_cpu_count(const struct tdm_tap *tap)
{
	return tap->cpu_count;
}

uint32_t tdm_tap_page_bytes(const struct tdm_tap *tap)
{
	return tap->page_bytes;
}

const struct tdm_buffer *tdm_tap_left_out(const struct tdm_tap *tap)
{
	return &tap->left_out;
}

const char *tdm_tap_path(const struct tdm_tap *tap)
{
	return tap->path;
}
