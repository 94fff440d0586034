/* SPDX-License-Identifier: MIT */
#include "convert_ctf_graph.h"
#include "plugin_find.h"
#include "view_graph.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSERTED BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a graph");
}

static bt_value *source_params(const char *from)
{
	bt_value *params = bt_value_map_create();
	bt_value *inputs = NULL;

	if (params &&
		bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) == INSERTED &&
		bt_value_array_append_string_element(inputs, from) ==
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
		bt_value_map_insert_bool_entry(
			params, "force-clock-class-origin-unix-epoch", BT_TRUE) == INSERTED) {
		return params;
	}
	bt_value_put_ref(params);
	return NULL;
}

static bt_value *filter_params(const struct convert_ctf_filter *filter)
{
	bt_value *params = bt_value_map_create();

	if (params &&
		bt_value_map_insert_string_entry(params, "corrections", filter->corrections) ==
			INSERTED &&
		bt_value_map_insert_string_entry(params, "guest", filter->guest) == INSERTED &&
		bt_value_map_insert_signed_integer_entry(params, "host-clock", filter->epoch_ns) ==
			INSERTED) {
		return params;
	}
	bt_value_put_ref(params);
	return NULL;
}

static bt_value *sink_params(const char *to)
{
	bt_value *params = bt_value_map_create();

	if (params && bt_value_map_insert_string_entry(params, "path", to) == INSERTED &&
		bt_value_map_insert_bool_entry(params, "assume-single-trace", BT_TRUE) ==
			INSERTED &&
		bt_value_map_insert_bool_entry(params, "quiet", BT_TRUE) == INSERTED &&
		/* Later versions write CTF 2 where nobody says otherwise, which viewers do not read. */
		(bt_version_get_minor() < 1 ||
			bt_value_map_insert_string_entry(params, "ctf-version", "1") == INSERTED)) {
		return params;
	}
	bt_value_put_ref(params);
	return NULL;
}

static enum tdm_status run(const struct cli_command *command, const char *from, const char *to,
	const struct convert_ctf_filter *filter, struct tdm_error *err)
{
	struct view_graph graph = { 0 };
	char folder[PATH_MAX];
	enum tdm_status status = TDM_OK;
	const size_t source =
		view_graph_add(&graph, VIEW_SOURCE, "trace", "ctf", "fs", source_params(from));
	const size_t streams =
		view_graph_add(&graph, VIEW_FILTER, "streams", "utils", "muxer", NULL);
	const size_t clock = view_graph_add(
		&graph, VIEW_FILTER, "clock", "tandem", "clock", filter_params(filter));
	const size_t sink = view_graph_add(&graph, VIEW_SINK, "out", "ctf", "fs", sink_params(to));

	(void)plugin_find_folder(folder);
	if (source == VIEW_NONE || streams == VIEW_NONE || clock == VIEW_NONE ||
		sink == VIEW_NONE || !view_graph_connect(&graph, source, streams) ||
		!view_graph_connect(&graph, streams, clock) ||
		!view_graph_connect(&graph, clock, sink)) {
		status = no_memory(err);
	} else {
		switch (view_graph_run(&graph, folder, "tandem convert",
			command->quiet ? BT_LOGGING_LEVEL_ERROR : BT_LOGGING_LEVEL_WARNING)) {
		case VIEW_DONE:
			break;
		case VIEW_INTERRUPTED:
			status = tdm_fail(err, TDM_END, "stopped; nothing was written");
			break;
		case VIEW_FAILED:
		case VIEW_CUT:
			status = tdm_fail(err, TDM_ERR_FORMAT, "%s: could not be converted", from);
			break;
		}
	}
	view_graph_release(&graph);
	return status;
}

/* The sink wants to make its folder itself: what it made goes up to where it belongs. */
static enum tdm_status move_up(const char *from, const char *to,
	struct tdm_ctf_clone_report *report, struct tdm_error *err)
{
	struct dirent **entries = NULL;
	const int count = scandir(from, &entries, NULL, alphasort);
	enum tdm_status status = count < 0 ? tdm_fail_errno(err, errno, "%s", from) : TDM_OK;

	for (int i = 0; i < count; i++) {
		const char *const name = entries[i]->d_name;
		char old_path[PATH_MAX], new_path[PATH_MAX];
		struct stat about;

		convert_ctf_join(old_path, from, name);
		convert_ctf_join(new_path, to, name);
		if (status == TDM_OK && name[0] != '.' && stat(old_path, &about) == 0) {
			if (rename(old_path, new_path) != 0) {
				status = tdm_fail_errno(err, errno, "%s", new_path);
			} else if (strcmp(name, "metadata") != 0) {
				report->stream_count++;
				report->bytes += (uint64_t)about.st_size;
			}
		}
		free(entries[i]);
	}
	free(entries);
	rmdir(from);
	return status;
}

/* A copy of the trace without its empty packets, which the sink would write as they are. */
static enum tdm_status strip(const struct cli_command *command, const char *from, const char *copy,
	const struct tsdl_metadata *metadata, struct tdm_ctf_clone_report *stripped,
	struct tdm_error *err)
{
	char old_path[PATH_MAX], new_path[PATH_MAX];
	char real[PATH_MAX];

	if (mkdir(copy, 0777) != 0) {
		return tdm_fail_errno(err, errno, "%s", copy);
	}
	convert_ctf_join(old_path, from, "metadata");
	convert_ctf_join(new_path, copy, "metadata");
	if (!realpath(old_path, real) || symlink(real, new_path) != 0) {
		return tdm_fail_errno(err, errno, "%s", new_path);
	}
	return tdm_ctf_clone(from, copy, metadata, &command->log, stripped, err);
}

static enum tdm_status copy_metadata(const char *from, const char *to, struct tdm_error *err)
{
	char path[PATH_MAX], piece[4096];
	enum tdm_status status = TDM_OK;

	convert_ctf_join(path, from, "metadata");

	FILE *const in = fopen(path, "rbe");

	convert_ctf_join(path, to, "metadata");

	FILE *const out = in ? fopen(path, "wbe") : NULL;

	for (size_t got; in && out && (got = fread(piece, 1, sizeof(piece), in)) > 0;) {
		if (fwrite(piece, 1, got, out) != got) {
			status = TDM_ERR_IO;
		}
	}
	if (in) {
		fclose(in);
	}
	if (!out || fclose(out) != 0 || status != TDM_OK) {
		return tdm_fail_errno(err, errno, "%s", path);
	}
	return TDM_OK;
}

static void remove_copy(const char *copy)
{
	struct dirent **entries = NULL;
	const int count = scandir(copy, &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", copy, entries[i]->d_name);
		if (strcmp(entries[i]->d_name, "index") == 0) {
			remove_copy(path);
		} else if (strcmp(entries[i]->d_name, ".") != 0 &&
			   strcmp(entries[i]->d_name, "..") != 0) {
			unlink(path);
		}
		free(entries[i]);
	}
	free(entries);
	rmdir(copy);
}

enum tdm_status convert_ctf_graph(const struct cli_command *command, const char *from,
	const char *to, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, const struct tsdl_metadata *metadata,
	struct tdm_error *err)
{
	char copy[PATH_MAX], made[PATH_MAX];
	struct tdm_ctf_clone_report stripped = { 0 };
	enum tdm_status status;

	convert_ctf_join(copy, to, ".copy");
	convert_ctf_join(made, to, ".made");
	status = strip(command, from, copy, metadata, &stripped, err);
	if (status == TDM_OK && stripped.stream_count) {
		status = run(command, copy, made, filter, err);
		if (status == TDM_OK) {
			status = move_up(made, to, report, err);
		}
	} else if (status == TDM_OK) {
		/* No event: nothing to correct, and the sink would make nothing. */
		status = copy_metadata(from, to, err);
	}
	remove_copy(copy);
	report->empty_packets += stripped.empty_packets;
	report->idle_streams += stripped.idle_streams;
	report->damaged_bytes += stripped.damaged_bytes;
	return status;
}
