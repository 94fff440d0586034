/* SPDX-License-Identifier: MIT */
#include "view_beside.h"
#include "corrections_beside.h"
#include "view_inputs.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/timeline.h>
#include <unistd.h>

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the inputs");
}

/* Appends an item whose text is its own. */
static bool add_owned(struct cli_named_list *list, const char *name, const char *path)
{
	char *const text = strdup(path);

	if (!text || !cli_named_add(list, "")) {
		free(text);
		return false;
	}

	struct cli_named *const item = &list->items[list->count - 1];

	snprintf(item->name, sizeof(item->name), "%s", name);
	item->owned_text = text;
	item->text = text;
	return true;
}

/* ---- corrections ---- */

/* Length of the directory part of a path, its slash included; 0 for the working directory. */
static size_t dir_bytes(const char *path)
{
	const char *const slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool ends_with(const char *text, const char *with)
{
	const size_t bytes = strlen(text);
	const size_t with_bytes = strlen(with);

	return bytes > with_bytes && strcmp(text + bytes - with_bytes, with) == 0;
}

/* Whether any corrections file lies beside a file: opening the traces to learn their names can so be spared. */
static bool has_any(const char *path)
{
	char dir[PATH_MAX];
	const struct dirent *entry;
	bool found = false;

	if (snprintf(dir, sizeof(dir), "%.*s.", (int)dir_bytes(path), path) >= (int)sizeof(dir)) {
		return false;
	}

	DIR *const stream = opendir(dir);

	while (stream && !found && (entry = readdir(stream))) {
		found = ends_with(entry->d_name, ".corrections");
	}
	if (stream) {
		closedir(stream);
	}
	return found;
}

static bool is_named(const struct cli_named_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		/* One without a name is for the one guest there is. */
		if (!*list->items[i].name || strcmp(list->items[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* A file may be left from another session. */
static bool fits(const char *path, const struct tdm_machine *guest,
	const struct tdm_trace_info *host, const struct tdm_log *log)
{
	struct tdm_timeline *timeline = NULL;
	char why[TDM_MISFIT_BYTES];
	struct tdm_error fault;
	bool is_its;

	if (tdm_timeline_load(path, &timeline, &fault) != TDM_OK) {
		TDM_WARNING(log, "%s: so it is not used for \"%s\"", fault.text, guest->name);
		return false;
	}
	is_its = tdm_machine_corrections_fit(timeline, tdm_trace_get_info(guest->trace), host, why);
	if (!is_its) {
		TDM_WARNING(log, "%s is not used for \"%s\", though --corrections %s=%s would: %s",
			path, guest->name, guest->name, path, why);
	}
	tdm_timeline_destroy(timeline);
	return is_its;
}

/* What has a relation of its own already, or is what others are put on. */
static bool needs_none(const struct view_beside_files *files, const struct tdm_machine *machine)
{
	/* Alone and named it is a guest of somebody; alone without a name nobody says whose corrections to look for. */
	if (files->count == 1 && !files->host_is_elsewhere) {
		return !files->items[0].name || strcmp(files->items[0].name, TDM_HOST_NAME) == 0;
	}
	return machine->is_host || machine->tie == TDM_TIE_SAME || machine->tie == TDM_TIE_SELF;
}

static enum tdm_status add_found(const struct view_beside_files *files,
	const struct tdm_machines *machines, struct cli_named_list *corrections,
	const struct cli_named_list *offsets, const struct tdm_log *log, struct tdm_error *err)
{
	const struct tdm_machine *host = NULL;

	for (size_t i = 0; i < tdm_machines_count(machines) && !host; i++) {
		host = tdm_machines_at(machines, i)->is_host ? tdm_machines_at(machines, i) : NULL;
	}

	const char *const host_path = host ? host->path : files->host_path;

	for (size_t i = 0; i < tdm_machines_count(machines); i++) {
		const struct tdm_machine *const guest = tdm_machines_at(machines, i);
		char path[PATH_MAX];

		if (!guest->trace || needs_none(files, guest) ||
			is_named(corrections, guest->name) || is_named(offsets, guest->name)) {
			continue;
		}

		const bool found = corrections_beside(guest->path, guest->name, path) ||
				   (host_path && corrections_beside(host_path, guest->name, path));
		const struct tdm_trace_info *const host_info =
			host && host != guest && host->trace ? tdm_trace_get_info(host->trace)
							     : NULL;

		if (found && fits(path, guest, host_info, log) &&
			!add_owned(corrections, guest->name, path)) {
			return no_memory(err);
		}
	}
	return TDM_OK;
}

enum tdm_status view_beside_find(const struct view_beside_files *files,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err)
{
	const struct tdm_machines_options how = { .keep_going = true,
		.host_is_elsewhere = files->host_is_elsewhere };
	struct tdm_machines *machines = NULL;
	struct tdm_error fault;
	enum tdm_status status = TDM_OK;
	bool any = files->host_path && has_any(files->host_path);

	for (size_t i = 0; i < files->count; i++) {
		any = any || has_any(files->items[i].path);
	}
	/* What is wrong with them is said by whoever opens them to read. */
	if (any && tdm_machines_open(files->items, files->count, &how, NULL, &machines, &fault) ==
			   TDM_OK) {
		status = add_found(files, machines, corrections, offsets, log, err);
		tdm_machines_close(machines);
	}
	return status;
}

enum tdm_status view_beside_find_all(const struct cli_named_list *inputs, bool perf_too,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err)
{
	struct tdm_machine_input *const files = calloc(inputs->count + 1, sizeof(*files));
	const struct view_beside_files all = { .items = files, .count = inputs->count };
	bool are_files = inputs->count > 0;
	enum tdm_status status = TDM_OK;

	if (!files) {
		return no_memory(err);
	}
	for (size_t i = 0; i < inputs->count; i++) {
		const enum tdm_trace_format format = tdm_trace_probe(inputs->items[i].text);

		files[i].name = *inputs->items[i].name ? inputs->items[i].name : NULL;
		files[i].path = inputs->items[i].text;
		are_files = are_files && (format == TDM_FORMAT_TRACEDAT ||
						 (perf_too && format == TDM_FORMAT_PERF));
	}
	if (are_files) {
		status = view_beside_find(&all, corrections, offsets, log, err);
	}
	free(files);
	return status;
}

/* ---- directories ---- */

static int is_trace(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && ends_with(entry->d_name, ".dat");
}

static int host_first(const struct dirent **left, const struct dirent **right)
{
	const int order = (strcmp((*right)->d_name, "host.dat") == 0) -
			  (strcmp((*left)->d_name, "host.dat") == 0);

	return order ? order : strcmp((*left)->d_name, (*right)->d_name);
}

static bool add_files(
	struct cli_named_list *list, const char *dir, struct dirent **names, int count)
{
	char path[PATH_MAX];

	for (int i = 0; i < count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) >=
			(int)sizeof(path)) {
			continue;
		}
		if (tdm_trace_probe(path) == TDM_FORMAT_TRACEDAT && !add_owned(list, "", path)) {
			return false;
		}
	}
	return true;
}

static bool holds_ctf(const char *dir)
{
	struct view_ctf_list ctf = { NULL, 0 };
	struct tdm_error fault;
	const bool found = view_ctf_find(dir, &ctf, &fault) == TDM_OK;

	view_ctf_release(&ctf);
	return found;
}

static bool add_input(struct cli_named_list *list, const struct cli_named *input)
{
	const size_t before = list->count;
	struct dirent **names = NULL;
	struct stat about;
	bool done = true;
	int count = 0;

	if (!*input->name && stat(input->text, &about) == 0 && S_ISDIR(about.st_mode) &&
		tdm_trace_probe(input->text) != TDM_FORMAT_PERF) {
		count = scandir(input->text, &names, is_trace, host_first);
		done = count <= 0 || holds_ctf(input->text) ||
		       add_files(list, input->text, names, count);
	}
	for (int i = 0; i < count; i++) {
		free(names[i]);
	}
	free(names);
	return done && (list->count > before || add_owned(list, input->name, input->text));
}

enum tdm_status view_beside_expand(struct cli_named_list *inputs, struct tdm_error *err)
{
	struct cli_named_list list = { NULL, 0 };

	for (size_t i = 0; i < inputs->count; i++) {
		if (!add_input(&list, &inputs->items[i])) {
			cli_named_release(&list);
			return no_memory(err);
		}
	}
	cli_named_release(inputs);
	*inputs = list;
	return TDM_OK;
}
