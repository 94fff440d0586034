/* SPDX-License-Identifier: MIT */
/*
 * check_ctf.c - tandem check-ctf: will Trace Compass read these traces, and will its views have what they need?
 */
#include "options.h"
#include <ctf_check.h>
#include <ctf_list.h>
#include <ctf_views.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
	"Usage: tandem check-ctf [OPTION]... DIR...\n"
	"Lints CTF traces for Trace Compass: what it would refuse, silently leave out, or show wrong. Each DIR has a file\n"
	"\"metadata\", or folders below it have; traces of a host and its guests are given together, so that their identities\n"
	"and the events that tie them are checked too.\n"
	"\n"
	"One line for each finding: \"error\" where the trace is not, or not wholly, read; \"warning\" where a view lacks\n"
	"something; then one for each view: it works, or lacks which events. Exit status 0 without errors, 1 with.\n"
	"\n"
	"  -q, --quiet    errors only\n"
	"  -h, --help     this text\n"
	"      --version  the version\n"
	"\n"
	"Example: tandem check-ctf out/host out/web\n";

static const struct option long_options[] = { CLI_COMMON_OPTIONS, { NULL, 0, NULL, 0 } };

static const char *ending(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_checked(const struct tdm_ctf_checked *checked, bool quiet)
{
	size_t warnings = 0;

	for (size_t i = 0; i < checked->finding_count; i++) {
		const struct tdm_ctf_finding *const finding = &checked->findings[i];

		warnings += !finding->is_error;
		if (finding->is_error || !quiet) {
			cli_put_visible(stdout, checked->path);
			printf(": %s: ", finding->is_error ? "error" : "warning");
			cli_put_visible(stdout, finding->text);
			fputc('\n', stdout);
		}
	}
	if (!quiet) {
		cli_put_visible(stdout, checked->path);
		printf(": %" PRIu64 " event%s in %" PRIu64 " packet%s of %" PRIu64
		       " file%s, %" PRIu64 " discarded; %zu error%s, %zu warning%s\n",
			checked->event_count, ending(checked->event_count), checked->packet_count,
			ending(checked->packet_count), checked->file_count,
			ending(checked->file_count), checked->discarded, checked->error_count,
			ending(checked->error_count), warnings, ending(warnings));
	}
}

static void print_view(void *user, const char *view, const char *lacks)
{
	const struct tdm_ctf_checked *const checked = user;

	cli_put_visible(stdout, checked->path);
	printf(": view: %s: %s%s\n", view, *lacks ? "lacks " : "works", lacks);
}

/* The traces below each path; a path that has none stays itself, and its check says so. */
static enum tdm_status find_traces(
	char **paths, size_t count, struct tdm_ctf_list *traces, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		const size_t before = traces->count;

		status = tdm_ctf_list_find(paths[i], traces, err);
		if (status == TDM_OK && traces->count == before) {
			status = tdm_ctf_list_add(traces, paths[i], err);
		}
	}
	return status;
}

static int check_all(struct cli_command *command, char **paths, size_t path_count)
{
	struct tdm_error err = { TDM_ERR_NOMEM, "no memory" };
	struct tdm_ctf_list traces = { 0 };
	enum tdm_status status = find_traces(paths, path_count, &traces, &err);
	const size_t count = traces.count;
	struct tdm_ctf_checked *const checked = calloc(count + 1, sizeof(*checked));
	size_t errors = 0;

	status = checked ? status : TDM_ERR_NOMEM;
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		status = tdm_ctf_check(traces.paths[i], &checked[i]);
	}
	if (status == TDM_OK) {
		status = tdm_ctf_check_together(checked, count);
	}
	for (size_t i = 0; checked && i < count; i++) {
		if (status == TDM_OK) {
			print_checked(&checked[i], command->quiet);
		}
		if (status == TDM_OK && !command->quiet) {
			tdm_ctf_views(checked, count, i, print_view, &checked[i]);
		}
		errors += checked[i].error_count;
	}
	for (size_t i = 0; checked && i < count; i++) {
		tdm_ctf_checked_release(&checked[i]);
	}
	free(checked);
	tdm_ctf_list_release(&traces);
	if (status != TDM_OK) {
		return cli_failed(command, &err);
	}
	return cli_end_output(command, errors == 0 ? TDM_EXIT_DONE : TDM_EXIT_FAILED);
}

int tdm_check_ctf_main(int argc, char **argv)
{
	struct cli_command command;

	cli_command_init(&command, "check-ctf", help);
	for (int value; (value = cli_next_option(
				 &command, argc, argv, CLI_COMMON_LETTERS, long_options)) != -1;) {
		const int result = cli_common_option(&command, value);

		if (result != -1) {
			return result;
		}
	}
	if (optind == argc) {
		return cli_usage_fault(&command, "no directory");
	}
	return check_all(&command, argv + optind, (size_t)(argc - optind));
}
