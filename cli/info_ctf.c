/* SPDX-License-Identifier: MIT */
#include "info_ctf.h"
#include <ctf_check.h>
#include <ctf_list.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/trace.h>

bool info_ctf_is_one(const char *path)
{
	struct tdm_ctf_list list = { 0 };
	struct tdm_error err;
	struct stat about;
	const bool is_one = stat(path, &about) == 0 && S_ISDIR(about.st_mode) &&
			    tdm_trace_probe(path) == TDM_FORMAT_UNKNOWN &&
			    tdm_ctf_list_find(path, &list, &err) == TDM_OK && list.count > 0;

	tdm_ctf_list_release(&list);
	return is_one;
}

static void line(const char *name, const char *value)
{
	fprintf(stdout, "  %-11s ", name);
	cli_put_visible(stdout, value);
	fputc('\n', stdout);
}

static const char *kind_of(const struct tdm_ctf_checked *checked)
{
	return checked->is_kernel ? "CTF 1.8 of a kernel" : "CTF 1.8";
}

static void print_trace(const struct cli_named *dir, const struct tdm_ctf_checked *checked)
{
	char text[300];

	printf("%s  ", *dir->name ? dir->name : "-");
	line("(CTF)", checked->path);
	if (!checked->is_readable) {
		line("unreadable", checked->finding_count ? checked->findings[0].text : "");
		return;
	}
	line("format", kind_of(checked));
	line("system", checked->hostname ? checked->hostname : "?");
	snprintf(text, sizeof(text), "%s, reading 0 is at %" PRId64 " ns of Unix time",
		checked->clock_uuid ? checked->clock_uuid : "without a uuid",
		checked->clock_offset_ns);
	line("clock", text);
	snprintf(text, sizeof(text),
		"%" PRIu64 " in %" PRIu64 " packets of %" PRIu64
		" streams, lost by the tracer %" PRIu64,
		checked->event_count, checked->packet_count, checked->file_count,
		checked->discarded);
	line("events", text);
	if (checked->error_count) {
		snprintf(text, sizeof(text), "%zu, tandem check-ctf tells which",
			checked->error_count);
		line("faults", text);
	}
}

static void write_trace(struct json_writer *json, const struct cli_named *dir,
	const struct tdm_ctf_checked *checked)
{
	json_object_begin(json, NULL);
	json_text(json, "machine", *dir->name ? dir->name : NULL);
	json_text(json, "path", checked->path);
	json_bool(json, "readable", checked->is_readable);
	if (checked->is_readable) {
		json_text(json, "format", kind_of(checked));
		json_text(json, "hostname", checked->hostname);
		json_text(json, "clock_uuid", checked->clock_uuid);
		json_int(json, "clock_offset_ns", checked->clock_offset_ns);
		json_uint(json, "events", checked->event_count);
		json_uint(json, "packets", checked->packet_count);
		json_uint(json, "streams", checked->file_count);
		json_uint(json, "lost_events", checked->discarded);
	}
	json_uint(json, "faults", checked->error_count);
	json_object_end(json);
}

int info_ctf_report(const struct cli_command *command, const struct cli_named_list *dirs,
	struct json_writer *json)
{
	struct tdm_error err = { TDM_OK, "" };
	enum tdm_status status = TDM_OK;
	size_t seen = 0, read = 0;

	for (size_t i = 0; i < dirs->count && status == TDM_OK; i++) {
		const struct cli_named *const dir = &dirs->items[i];
		struct tdm_ctf_list traces = { 0 };

		status = tdm_ctf_list_find(dir->text, &traces, &err);
		for (size_t k = 0; k < traces.count && status == TDM_OK; k++) {
			struct tdm_ctf_checked checked = { 0 };

			status = tdm_ctf_check(traces.paths[k], &checked);
			if (status != TDM_OK) {
				tdm_fail(&err, status, "%s: no memory", traces.paths[k]);
			} else if (json) {
				write_trace(json, dir, &checked);
			} else {
				fputs(seen ? "\n" : "", stdout);
				print_trace(dir, &checked);
			}
			if (status == TDM_OK && !checked.is_readable) {
				TDM_ERROR(&command->log, "%s: %s", traces.paths[k],
					checked.finding_count ? checked.findings[0].text
							      : "it cannot be read");
			}
			seen++;
			read += checked.is_readable;
			tdm_ctf_checked_release(&checked);
		}
		tdm_ctf_list_release(&traces);
	}
	if (status != TDM_OK) {
		return cli_failed(command, &err);
	}
	return read == seen ? TDM_EXIT_DONE : read ? TDM_EXIT_INCOMPLETE : TDM_EXIT_FAILED;
}
