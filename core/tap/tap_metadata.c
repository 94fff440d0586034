/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum {
	TEXT_MAX_BYTES = 64 << 20
};

/* Reads ROOT/NAME and adds it; a file that is absent adds nothing where it is optional. */
static enum tdm_status add_file(struct tdm_trace_meta *meta, enum tdm_meta_kind kind,
	const char *label, const char *root, const char *name, bool optional, struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status = tracefs_read(root, name, TEXT_MAX_BYTES, &text, err);

	if (status == TDM_OK) {
		status = tdm_trace_meta_add(meta, kind, label, text.bytes, text.size, err);
	} else if (optional && status == TDM_ERR_IO) {
		status = TDM_OK;
	}
	tdm_buffer_release(&text);
	return status;
}

/* All formats below events/SYSTEM. */
static enum tdm_status add_system(
	struct tdm_trace_meta *meta, const char *root, const char *system, struct tdm_error *err)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/events/%.128s", root, system);

	struct dirent **entries = NULL;
	/* In order of name, so that the same kernel gives the same bytes. */
	const int count = scandir(path, &entries, NULL, alphasort);
	enum tdm_status status = TDM_OK;

	for (int i = 0; i < count; i++) {
		if (entries[i]->d_type == DT_DIR && entries[i]->d_name[0] != '.' &&
			status == TDM_OK) {
			char name[512];

			snprintf(name, sizeof(name), "events/%.128s/%.255s/format", system,
				entries[i]->d_name);
			status = add_file(
				meta, TDM_META_EVENT_FORMAT, system, root, name, true, err);
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

static enum tdm_status add_uname(struct tdm_trace_meta *meta, struct tdm_error *err)
{
	struct utsname names;
	char text[sizeof(names)];

	uname(&names);

	const int length = snprintf(text, sizeof(text), "%s %s %s %s", names.sysname,
		names.nodename, names.release, names.machine);

	return tdm_trace_meta_add(meta, TDM_META_UNAME, NULL, text, (size_t)length, err);
}

enum tdm_status tdm_tap_collect(
	struct tdm_tap *tap, bool kallsyms, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	/* Formats are the machine's, not the instance's: an instance has no events/ftrace. */
	const char *root = tdm_tap_find_tracefs(err);

	if (!root) {
		return TDM_ERR_IO;
	}
	meta->cpu_count = tap->cpu_count;
	meta->page_bytes = tap->page_bytes;
	meta->long_bytes = tap->long_bytes;
	meta->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	enum tdm_status status = add_file(
		meta, TDM_META_HEADER_PAGE, NULL, tap->path, "events/header_page", false, err);

	if (status == TDM_OK) {
		status = add_file(meta, TDM_META_HEADER_EVENT, NULL, tap->path,
			"events/header_event", true, err);
	}
	if (status == TDM_OK) {
		status = add_system(meta, root, "ftrace", err);
	}
	for (size_t i = 0; i < tap->system_count && status == TDM_OK; i++) {
		status = add_system(meta, root, tap->systems[i], err);
	}
	if (status == TDM_OK && kallsyms) {
		status = add_file(meta, TDM_META_KALLSYMS, NULL, "/proc/kallsyms", NULL, true, err);
	}
	if (status == TDM_OK) {
		status = add_file(meta, TDM_META_CLOCK, NULL, tap->path, "trace_clock", false, err);
	}
	if (status == TDM_OK) {
		status = add_file(meta, TDM_META_BOOT_ID, NULL, "/proc/sys/kernel/random/boot_id",
			NULL, true, err);
	}
	return status == TDM_OK ? add_uname(meta, err) : status;
}

enum tdm_status tdm_tap_collect_names(struct tdm_trace_meta *meta, struct tdm_error *err)
{
	const char *root = tdm_tap_find_tracefs(err);

	if (!root) {
		return TDM_ERR_IO;
	}

	enum tdm_status status =
		add_file(meta, TDM_META_PRINTK, NULL, root, "printk_formats", true, err);

	if (status == TDM_OK) {
		status = add_file(meta, TDM_META_CMDLINES, NULL, root, "saved_cmdlines", true, err);
	}
	return status;
}

enum tdm_status tdm_tap_collect_end(
	struct tdm_tap *tap, struct tdm_trace_meta *meta, struct tdm_error *err)
{
	enum tdm_status status = tdm_tap_collect_names(meta, err);

	for (uint32_t cpu = 0; cpu < tap->cpu_count && status == TDM_OK; cpu++) {
		char name[64], label[16];
		struct tdm_buffer text = { 0 };

		snprintf(label, sizeof(label), "%" PRIu32, cpu);
		snprintf(name, sizeof(name), "per_cpu/cpu%" PRIu32 "/stats", cpu);
		/* The reference reader wants to know whose statistics they are. */
		if (tdm_buffer_printf(&text, "CPU: %" PRIu32 "\n", cpu) == TDM_OK &&
			tracefs_read(tap->path, name, TEXT_MAX_BYTES, &text, NULL) == TDM_OK) {
			status = tdm_trace_meta_add(
				meta, TDM_META_CPUSTAT, label, text.bytes, text.size, err);
		}
		tdm_buffer_release(&text);
	}
	return status;
}

static uint64_t stat_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t value = 0;

	if (at) {
		sscanf(at + strlen(key), "%" SCNu64, &value);
	}
	return value;
}

enum tdm_status tdm_tap_get_stats(
	struct tdm_tap *tap, uint32_t cpu, struct tdm_tap_stats *stats, struct tdm_error *err)
{
	char name[64];
	struct tdm_buffer text = { 0 };

	snprintf(name, sizeof(name), "per_cpu/cpu%" PRIu32 "/stats", cpu);

	enum tdm_status status = tracefs_read(tap->path, name, TEXT_MAX_BYTES, &text, err);

	if (status == TDM_OK && tdm_buffer_append(&text, "", 1) == TDM_OK) {
		const char *lines = (const char *)text.bytes;

		*stats = (struct tdm_tap_stats){
			.entries = stat_number(lines, "entries: "),
			.overrun_events = stat_number(lines, "\noverrun: "),
			.dropped_events = stat_number(lines, "dropped events: "),
		};
	}
	tdm_buffer_release(&text);
	return status;
}
