/* SPDX-License-Identifier: MIT */
#include "view_inputs.h"
#include "corrections_beside.h"
#include "view_fit.h"
#include "view_live.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/spool.h>
#include <unistd.h>

static bool begins_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void find_kind(struct view_input *input)
{
	struct stat st;

	if (begins_with(input->path, "net://") || begins_with(input->path, "net4://") ||
		begins_with(input->path, "net6://")) {
		input->kind = VIEW_LIVE_LTTNG;
		return;
	}
	if (begins_with(input->path, "tandem://")) {
		input->kind = VIEW_LIVE_TANDEM;
		return;
	}
	/* "perf record --threads" makes a folder too. */
	if (tdm_trace_probe(input->path) == TDM_FORMAT_PERF) {
		input->kind = VIEW_PERF;
		return;
	}
	if (stat(input->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		input->kind = VIEW_CTF;
		return;
	}
	/* What cannot be opened is left to the source, whose message says why. */
	input->kind = VIEW_TRACEDAT;
}

enum tdm_status view_inputs_keep_pipes(struct cli_named_list *inputs, struct tdm_error *err)
{
	for (size_t i = 0; i < inputs->count; i++) {
		struct cli_named *const input = &inputs->items[i];
		enum tdm_status status;

		if (!tdm_pipe_is_one(input->text)) {
			continue;
		}
		status = tdm_pipe_keep(input->text, err);
		if (status != TDM_OK) {
			return status;
		}

		const int fd = tdm_pipe_open_kept(input->text);

		if (fd < 0) {
			return tdm_fail_errno(err, errno, "%s", input->text);
		}
		snprintf(input->kept_path, sizeof(input->kept_path), "/dev/fd/%d", fd);
		input->text = input->kept_path;
	}
	return TDM_OK;
}

enum tdm_status view_input_try(const struct view_input *input, struct tdm_error *err)
{
	const struct tdm_stamp_options how = { .raw = false };
	struct tdm_trace *trace = NULL;
	enum tdm_status status;

	if (input->kind != VIEW_TRACEDAT && input->kind != VIEW_PERF) {
		return TDM_OK;
	}
	status = tdm_trace_open(input->path, &how, NULL, &trace, err);
	tdm_trace_close(trace);
	return status;
}

/* The last part of a path that says something of the machine: LTTng puts "kernel" or "ust" below it. */
static void name_from_path(const char *path, char name[TDM_MACHINE_NAME_MAX + 1])
{
	size_t end = strlen(path);
	char part[TDM_MACHINE_NAME_MAX + 1];

	for (int tries = 0; tries < 2; tries++) {
		while (end > 1 && path[end - 1] == '/') {
			end--;
		}
		size_t begin = end;

		while (begin > 0 && path[begin - 1] != '/') {
			begin--;
		}
		snprintf(part, sizeof(part), "%.*s", (int)(end - begin), path + begin);
		end = begin;
		if (strcmp(part, "kernel") != 0 && strcmp(part, "ust") != 0) {
			break;
		}
	}
	char *dot = strrchr(part, '.');

	if (dot && dot != part && (strcmp(dot, ".dat") == 0 || strcmp(dot, ".data") == 0)) {
		*dot = '\0';
	}
	tdm_machine_name_clean(part, name);
}

static bool name_is_taken(const struct view_inputs *inputs, size_t before, const char *name)
{
	for (size_t i = 0; i < before; i++) {
		if (!inputs->items[i].is_host && strcmp(inputs->items[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void name_machines(const struct view_options *options, struct view_inputs *inputs)
{
	bool has_host = false;

	for (size_t i = 0; i < inputs->count; i++) {
		has_host = has_host || strcmp(options->inputs.items[i].name, TDM_HOST_NAME) == 0;
	}
	for (size_t i = 0; i < inputs->count; i++) {
		struct view_input *input = &inputs->items[i];
		const char *given = options->inputs.items[i].name;

		input->is_named = *given;
		if (*given) {
			snprintf(input->name, sizeof(input->name), "%s", given);
			input->is_host = strcmp(given, TDM_HOST_NAME) == 0;
			continue;
		}
		if (!has_host) {
			has_host = true;
			input->is_host = true;
			snprintf(input->name, sizeof(input->name), TDM_HOST_NAME);
			continue;
		}
		name_from_path(input->path, input->name);
		char base[TDM_MACHINE_NAME_MAX + 1];

		memcpy(base, input->name, sizeof(base));
		for (unsigned int n = 2; name_is_taken(inputs, i, input->name); n++) {
			snprintf(input->name, sizeof(input->name), "%.50s-%u", base, n);
		}
	}
}

static size_t count_guests(const struct view_inputs *inputs)
{
	size_t count = 0;

	for (size_t i = 0; i < inputs->count; i++) {
		count += !inputs->items[i].is_host;
	}
	return count;
}

static enum tdm_status give_corrections(const struct view_options *options,
	struct view_inputs *inputs, const struct tdm_log *log, struct tdm_error *err)
{
	for (size_t i = 0; i < options->corrections.count + options->offsets.count; i++) {
		const bool is_offset = i >= options->corrections.count;
		const struct cli_named *item =
			is_offset ? &options->offsets.items[i - options->corrections.count]
				  : &options->corrections.items[i];
		bool used = false;

		if (!*item->name && count_guests(inputs) != 1) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"corrections %s: there are %zu guests, say which one: NAME=%s",
				item->text, count_guests(inputs), item->text);
		}
		for (size_t k = 0; k < inputs->count; k++) {
			struct view_input *input = &inputs->items[k];

			if (*item->name ? strcmp(item->name, input->name) == 0 : !input->is_host) {
				snprintf(input->corrections, sizeof(input->corrections), "%s%s",
					is_offset ? "offset:" : "", item->text);
				used = true;
			}
		}
		if (!used) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"corrections %s: no input is named \"%s\"", item->text, item->name);
		}
	}
	for (size_t i = 0; i < inputs->count; i++) {
		struct view_input *input = &inputs->items[i];

		if (input->is_host || *input->corrections) {
			continue;
		}
		/* Who serves the pages serves the corrections too. */
		if (input->kind == VIEW_LIVE_TANDEM) {
			const enum tdm_status status = view_live_service(
				input->path, input->corrections, sizeof(input->corrections), err);

			if (status != TDM_OK) {
				return status;
			}
			continue;
		}
		bool found = corrections_beside(input->path, input->name, input->corrections);

		for (size_t k = 0; k < inputs->count && !found; k++) {
			found = inputs->items[k].is_host &&
				corrections_beside(
					inputs->items[k].path, input->name, input->corrections);
		}
		input->is_found = found && view_fit_found(inputs, input, log);
		if (found && !input->is_found) {
			input->corrections[0] = '\0';
		}
	}
	return TDM_OK;
}

enum tdm_status view_inputs_read(const struct view_options *options, struct view_inputs *inputs,
	const struct tdm_log *log, struct tdm_error *err)
{
	inputs->items = calloc(options->inputs.count + 1, sizeof(*inputs->items));
	if (!inputs->items) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the inputs");
	}
	inputs->count = options->inputs.count;
	inputs->only_tracedat = true;
	for (size_t i = 0; i < inputs->count; i++) {
		inputs->items[i].path = options->inputs.items[i].text;
		find_kind(&inputs->items[i]);
		inputs->only_tracedat =
			inputs->only_tracedat && inputs->items[i].kind == VIEW_TRACEDAT;
	}
	/* The files themselves say who is whose guest: names and corrections are source.tandem.tracedat's matter. */
	if (inputs->only_tracedat) {
		return TDM_OK;
	}
	name_machines(options, inputs);
	return give_corrections(options, inputs, log, err);
}

void view_inputs_release(struct view_inputs *inputs)
{
	free(inputs->items);
	inputs->items = NULL;
	inputs->count = 0;
}
