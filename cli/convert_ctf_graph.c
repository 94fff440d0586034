/* SPDX-License-Identifier: MIT */
#include "convert_ctf_graph.h"
#include "convert_ctf_priv.h"
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

static bt_value *source_params(const char *from, int64_t shift_ns)
{
	bt_value *params = bt_value_map_create();
	bt_value *inputs = NULL;

	if (params &&
		bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) == INSERTED &&
		bt_value_array_append_string_element(inputs, from) ==
			BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
		bt_value_map_insert_bool_entry(
			params, "force-clock-class-origin-unix-epoch", BT_TRUE) == INSERTED &&
		(!shift_ns || bt_value_map_insert_signed_integer_entry(
				      params, "clock-class-offset-ns", shift_ns) == INSERTED)) {
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

static bool leaves_out(const struct convert_ctf_filter *filter)
{
	return !tdm_selection_is_all(filter->selection) || filter->threads;
}

/* Source, muxer and clock filter. @return The last of them; VIEW_NONE without memory. */
static size_t add_trace(
	struct view_graph *graph, const char *from, const struct convert_ctf_filter *filter)
{
	const size_t source = view_graph_add(
		graph, VIEW_SOURCE, "trace", "ctf", "fs", source_params(from, filter->shift_ns));
	const size_t streams =
		view_graph_add(graph, VIEW_FILTER, "streams", "utils", "muxer", NULL);
	size_t clock;

	if (source == VIEW_NONE || streams == VIEW_NONE ||
		!view_graph_connect(graph, source, streams)) {
		return VIEW_NONE;
	}
	if (!filter->corrections) {
		return streams;
	}
	clock = view_graph_add(
		graph, VIEW_FILTER, "clock", "tandem", "clock", filter_params(filter));
	return clock != VIEW_NONE && view_graph_connect(graph, streams, clock) ? clock : VIEW_NONE;
}

static enum tdm_status tell_end(enum view_end end, const char *from, struct tdm_error *err)
{
	switch (end) {
	case VIEW_DONE:
		return TDM_OK;
	case VIEW_INTERRUPTED:
		return tdm_fail(err, TDM_END, "stopped; nothing was written");
	case VIEW_FAILED:
	case VIEW_CUT:
		break;
	}
	return tdm_fail(err, TDM_ERR_FORMAT, "%s: could not be converted", from);
}

static bt_logging_level level_of(const struct cli_command *command)
{
	return command->quiet ? BT_LOGGING_LEVEL_ERROR : BT_LOGGING_LEVEL_WARNING;
}

static enum tdm_status run(const struct cli_command *command, const char *from, const char *to,
	const struct convert_ctf_filter *filter, struct convert_ctf_counts *counts,
	struct tdm_error *err)
{
	struct view_graph graph = { 0 };
	struct ctf_select select = { filter->selection, counts, filter->threads };
	char folder[PATH_MAX];
	enum tdm_status status = TDM_OK;
	size_t last = add_trace(&graph, from, filter);
	const size_t sink = view_graph_add(&graph, VIEW_SINK, "out", "ctf", "fs", sink_params(to));

	if (last != VIEW_NONE && leaves_out(filter)) {
		const bt_component_class_filter *const chooser = ctf_select_class();
		const size_t choice =
			chooser ? view_graph_add_own(&graph, "choice", chooser, &select)
				: VIEW_NONE;

		last = choice != VIEW_NONE && view_graph_connect(&graph, last, choice) ? choice
										       : VIEW_NONE;
	}
	(void)plugin_find_folder(folder);
	if (last == VIEW_NONE || sink == VIEW_NONE || !view_graph_connect(&graph, last, sink)) {
		status = no_memory(err);
	} else {
		status = tell_end(
			view_graph_run(&graph, folder, "tandem convert", level_of(command)), from,
			err);
	}
	view_graph_release(&graph);
	return status;
}

/*
 * The sink wants to make its folder itself: what it made goes up to where it belongs. Where only a part was chosen, packets
 * may have become empty, and a copy leaves them out.
 */
static enum tdm_status move_up(const struct cli_command *command, const char *from, const char *to,
	bool is_all, struct tdm_ctf_clone_report *report, struct tdm_error *err)
{
	struct dirent **entries = NULL;
	const int count = scandir(from, &entries, NULL, alphasort);
	enum tdm_status status = count < 0 ? tdm_fail_errno(err, errno, "%s", from) : TDM_OK;

	if (status == TDM_OK && !is_all) {
		struct tdm_buffer text = { 0 };
		struct tdm_ctf_clone_report copied = { 0 };
		struct tsdl_metadata metadata;

		status = convert_ctf_metadata(from, &text, &metadata, err);
		if (status == TDM_OK) {
			status = tdm_ctf_clone(from, to, &metadata, &command->log, &copied, err);
			report->stream_count += copied.stream_count;
			report->bytes += copied.bytes;
		}
		tsdl_release(&metadata);
		tdm_buffer_release(&text);
	}
	for (int i = 0; i < count; i++) {
		const char *const name = entries[i]->d_name;
		const bool is_metadata = strcmp(name, "metadata") == 0;
		char old_path[PATH_MAX], new_path[PATH_MAX];
		struct stat about;

		convert_ctf_join(old_path, from, name);
		convert_ctf_join(new_path, to, name);
		if (name[0] != '.' && !is_all && !is_metadata) {
			unlink(old_path);
		} else if (status == TDM_OK && name[0] != '.' && stat(old_path, &about) == 0) {
			if (rename(old_path, new_path) != 0) {
				status = tdm_fail_errno(err, errno, "%s", new_path);
			} else if (!is_metadata) {
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

static void add_stripped(
	struct tdm_ctf_clone_report *report, const struct tdm_ctf_clone_report *stripped)
{
	report->empty_packets += stripped->empty_packets;
	report->idle_streams += stripped->idle_streams;
	report->damaged_bytes += stripped->damaged_bytes;
	report->damaged_packets += stripped->damaged_packets;
	report->unread_files += stripped->unread_files;
}

enum tdm_status convert_ctf_graph(const struct cli_command *command, const char *from,
	const char *to, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, struct convert_ctf_counts *counts,
	const struct tsdl_metadata *metadata, struct tdm_error *err)
{
	char copy[PATH_MAX], made[PATH_MAX];
	struct tdm_ctf_clone_report stripped = { 0 };
	enum tdm_status status;

	convert_ctf_join(copy, to, ".copy");
	convert_ctf_join(made, to, ".made");
	status = strip(command, from, copy, metadata, &stripped, err);
	if (status == TDM_OK && stripped.stream_count) {
		status = run(command, copy, made, filter, counts, err);
		if (status == TDM_OK) {
			status = move_up(command, made, to, !leaves_out(filter), report, err);
		}
	} else if (status == TDM_OK) {
		/* No event: nothing to correct, and the sink would make nothing. */
		status = copy_metadata(from, to, err);
	}
	remove_copy(copy);
	add_stripped(report, &stripped);
	return status;
}

enum tdm_status convert_ctf_feed(const struct cli_command *command, const char *from,
	const char *copy, const struct convert_ctf_filter *filter,
	struct tdm_ctf_clone_report *report, const struct tsdl_metadata *metadata,
	bool (*each)(void *user, const bt_message *message), void *user, struct tdm_error *err)
{
	struct tdm_ctf_clone_report stripped = { 0 };
	struct view_graph graph = { 0 };
	char folder[PATH_MAX];
	enum tdm_status status = strip(command, from, copy, metadata, &stripped, err);

	if (status == TDM_OK && stripped.stream_count) {
		const size_t last = add_trace(&graph, copy, filter);

		(void)plugin_find_folder(folder);
		status = last == VIEW_NONE
				 ? no_memory(err)
				 : tell_end(view_graph_feed(&graph, folder, "tandem convert",
						    level_of(command), last, each, user),
					   from, err);
	}
	view_graph_release(&graph);
	remove_copy(copy);
	add_stripped(report, &stripped);
	return status;
}
