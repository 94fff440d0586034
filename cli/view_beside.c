/* SPDX-License-Identifier: MIT */
#include "view_beside.h"
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

static bool find_of(const char *beside, const char *name, char found[PATH_MAX])
{
	return snprintf(found, PATH_MAX, "%.*s%s.corrections", (int)dir_bytes(beside), beside,
		       name) < PATH_MAX &&
	       access(found, R_OK) == 0;
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

/* Whether a timeline and the shift in a file, where it has one, are less than a second apart: else one is of another session. */
static bool agrees(const struct tdm_timeline *timeline, const struct tdm_trace_info *trace)
{
	const struct tdm_recorded_shift *const shift =
		trace->has_peer && trace->shift_cpu_count ? &trace->shift_cpus[0] : NULL;

	if (!shift || !shift->sample_count) {
		return true;
	}

	const struct tdm_recorded_sample *const sample = &shift->samples[0];
	const uint64_t told = tdm_timeline_apply(timeline, sample->time, 0, NULL);
	const uint64_t shifted = sample->time + (uint64_t)sample->offset;
	const uint64_t apart = told > shifted ? told - shifted : shifted - told;

	return apart < tdm_timeline_get_info(timeline).host_unit_hz;
}

/* A file may be left from another session. */
static bool fits(const char *path, const struct tdm_machine *guest, const struct tdm_log *log)
{
	const struct tdm_trace_info *const trace = tdm_trace_get_info(guest->trace);
	struct tdm_timeline *timeline = NULL;
	struct tdm_error fault;

	if (tdm_timeline_load(path, &timeline, &fault) != TDM_OK) {
		TDM_WARNING(log, "%s: so it is not used for \"%s\"", fault.text, guest->name);
		return false;
	}

	const struct tdm_timeline_info said = tdm_timeline_get_info(timeline);
	const struct tdm_trace_info of_file = { .clock = said.guest_clock };
	bool same = tdm_clock_names_agree(&of_file, trace);

	if (!same) {
		TDM_WARNING(log,
			"%s is of clock %s, the events of \"%s\" are stamped by %s: it is not used",
			path, said.guest_clock, guest->name, trace->clock);
	} else if (!agrees(timeline, trace)) {
		TDM_WARNING(log,
			"%s is a second or more away from the time shift in \"%s\", as if it were of another session: it is not used; "
			"--corrections %s=%s would",
			path, guest->path, guest->name, path);
		same = false;
	}
	tdm_timeline_destroy(timeline);
	return same;
}

static enum tdm_status add_found(const struct tdm_machines *machines,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err)
{
	for (size_t i = 0; i < tdm_machines_count(machines); i++) {
		const struct tdm_machine *const guest = tdm_machines_at(machines, i);
		char path[PATH_MAX];

		if (guest->is_host || !guest->trace || guest->tie == TDM_TIE_SAME ||
			guest->tie == TDM_TIE_SELF || is_named(corrections, guest->name) ||
			is_named(offsets, guest->name)) {
			continue;
		}
		bool found = find_of(guest->path, guest->name, path);

		for (size_t k = 0; k < tdm_machines_count(machines) && !found; k++) {
			found = tdm_machines_at(machines, k)->is_host &&
				find_of(tdm_machines_at(machines, k)->path, guest->name, path);
		}
		if (found && fits(path, guest, log) && !add_owned(corrections, guest->name, path)) {
			return no_memory(err);
		}
	}
	return TDM_OK;
}

enum tdm_status view_beside_find(const struct cli_named_list *inputs,
	struct cli_named_list *corrections, const struct cli_named_list *offsets,
	const struct tdm_log *log, struct tdm_error *err)
{
	const struct tdm_machines_options how = { .keep_going = true };
	struct tdm_machines *machines = NULL;
	struct tdm_machine_input *files;
	struct tdm_error fault;
	enum tdm_status status = TDM_OK;
	bool any = false;

	for (size_t i = 0; i < inputs->count; i++) {
		if (tdm_trace_probe(inputs->items[i].text) != TDM_FORMAT_TRACEDAT) {
			return TDM_OK;
		}
		any = any || has_any(inputs->items[i].text);
	}
	if (!any || inputs->count < 2) {
		return TDM_OK;
	}
	files = calloc(inputs->count, sizeof(*files));
	if (!files) {
		return no_memory(err);
	}
	for (size_t i = 0; i < inputs->count; i++) {
		files[i].name = *inputs->items[i].name ? inputs->items[i].name : NULL;
		files[i].path = inputs->items[i].text;
	}
	/* What is wrong with them is said by whoever opens them to read. */
	if (tdm_machines_open(files, inputs->count, &how, NULL, &machines, &fault) == TDM_OK) {
		status = add_found(machines, corrections, offsets, log, err);
		tdm_machines_close(machines);
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
