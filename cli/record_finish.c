/* SPDX-License-Identifier: MIT */
#include "record_finish.h"
#include "out_dir.h"
#include "record_spool.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/estimate.h>
#include <tandem/text.h>
#include <unistd.h>

#define SUFFIX ".recording"

enum {
	MAX_MACHINES = 1024
};

/* What is left of one session: spools of one directory. */
struct leftovers {
	struct record_spool *spools[MAX_MACHINES];
	size_t count;
	bool incomplete;
};

struct tdm_timeline *record_load_corrections(const char *dir, const char *name)
{
	char *path = out_dir_path(dir, name, ".corrections");
	struct tdm_timeline *timeline = NULL;

	if (path && tdm_timeline_load(path, &timeline, NULL) != TDM_OK) {
		timeline = NULL;
	}
	free(path);
	return timeline;
}

/* Writes DIR/NAMESUFFIX as a whole or not at all. */
static enum tdm_status write_text(const char *dir, const char *name, const char *suffix,
	const struct tdm_buffer *text, struct tdm_error *err)
{
	char *path = out_dir_path(dir, name, suffix);
	const enum tdm_status status =
		path ? tdm_text_write_file(path, text->bytes, text->size, err)
		     : tdm_fail(err, TDM_ERR_NOMEM, "no memory");

	free(path);
	return status;
}

static bool is_exact(const char *dir, const char *name)
{
	struct tdm_timeline *timeline = record_load_corrections(dir, name);
	const char *method = timeline ? tdm_timeline_get_info(timeline).method : NULL;
	const bool exact = method && strcmp(method, "exact") == 0;

	tdm_timeline_destroy(timeline);
	return exact;
}

/*
 * The log of exchanges that a killed recorder was writing: as far as it goes it is as good as any, and it goes further than the
 * corrections that were saved now and then.
 */
static enum tdm_status finish_exchanges(const char *dir, const char *name, struct tdm_error *err)
{
	char *path = out_dir_path(dir, name, ".exchanges.part");
	struct tdm_exchange_log *log = NULL;
	struct tdm_timeline *timeline = NULL;
	struct tdm_buffer text = { 0 };
	struct tdm_quality quality;
	enum tdm_status status = TDM_OK;

	if (!path || access(path, F_OK) != 0) {
		goto out;
	}
	status = tdm_exchange_log_load(path, &log, err);
	if (status == TDM_OK && tdm_exchange_log_write(log, &text) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for exchanges");
	}
	if (status == TDM_OK) {
		status = write_text(dir, name, ".exchanges", &text, err);
	}
	if (status != TDM_OK) {
		goto out;
	}
	unlink(path);
	text.size = 0;
	/* What KVM told stands in no exchange; and where nothing can be estimated the corrections that are there stay. */
	if (!is_exact(dir, name) && tdm_estimate(log, &timeline, &quality, NULL) == TDM_OK &&
		tdm_timeline_write(timeline, &text) == TDM_OK) {
		status = write_text(dir, name, ".corrections", &text, err);
	}
out:
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	tdm_buffer_release(&text);
	free(path);
	return status;
}

static void open_leftover(struct leftovers *left, const struct cli_command *command,
	const char *dir, const char *entry)
{
	const size_t length = strlen(entry);
	const size_t suffix = strlen(SUFFIX);
	struct tdm_error err = { 0 };

	if (length <= suffix || strcmp(entry + length - suffix, SUFFIX) != 0 ||
		left->count == MAX_MACHINES) {
		return;
	}

	char *name = strndup(entry, length - suffix);
	struct record_spool *spool = name ? record_spool_open(dir, name, &err) : NULL;

	free(name);
	if (spool) {
		left->spools[left->count++] = spool;
	} else {
		TDM_ERROR(&command->log, "%s", err.text);
		left->incomplete = true;
	}
}

static bool is_host(const struct record_spool *spool)
{
	return strcmp(record_spool_name(spool), "host") == 0;
}

/* Which threads ran a guest's CPUs is not known any more; its id and its name are. */
static size_t describe_guests(const struct leftovers *left, struct tdm_guest_info *guests)
{
	size_t count = 0;

	for (size_t i = 0; i < left->count; i++) {
		if (!is_host(left->spools[i])) {
			guests[count++] = (struct tdm_guest_info){
				.name = record_spool_name(left->spools[i]),
				.trace_id = record_spool_ties(left->spools[i])->trace_id,
			};
		}
	}
	return count;
}

static void finish_one(struct leftovers *left, const struct cli_command *command, const char *dir,
	struct record_spool *spool, const struct tdm_guest_info *guests, size_t guest_count)
{
	const char *name = record_spool_name(spool);
	struct tdm_timeline *corrections = NULL;
	struct tdm_error err = { 0 };

	if (!is_host(spool)) {
		if (finish_exchanges(dir, name, &err) != TDM_OK) {
			TDM_ERROR(&command->log, "%s", err.text);
			left->incomplete = true;
		}
		corrections = record_load_corrections(dir, name);
	}

	if (record_spool_finish(spool, guests, is_host(spool) ? guest_count : 0, corrections,
		    &command->log, &err) != TDM_OK) {
		TDM_ERROR(&command->log, "%s", err.text);
		left->incomplete = true;
	} else if (!command->quiet) {
		printf("%s/%s.dat is complete\n", dir, name);
	}
	tdm_timeline_destroy(corrections);
}

int record_finish_left(const struct cli_command *command, const char *dir)
{
	struct leftovers *left = calloc(1, sizeof(*left));
	struct tdm_guest_info *guests = calloc(MAX_MACHINES, sizeof(*guests));
	struct tdm_error err = { 0 };
	DIR *entries = opendir(dir);
	int status = TDM_EXIT_FAILED;

	if (!entries || !left || !guests) {
		tdm_fail_errno(&err, entries ? ENOMEM : errno, "%s", dir);
		status = cli_failed(command, &err);
		goto out;
	}
	for (struct dirent *entry; (entry = readdir(entries));) {
		open_leftover(left, command, dir, entry->d_name);
	}
	if (!left->count && left->incomplete) {
		goto out; /* told */
	}
	if (!left->count) {
		tdm_fail(&err, TDM_ERR_RANGE, "%s: no unfinished recording in it", dir);
		status = cli_failed(command, &err);
		goto out;
	}

	const size_t guest_count = describe_guests(left, guests);

	for (size_t i = 0; i < left->count; i++) {
		finish_one(left, command, dir, left->spools[i], guests, guest_count);
	}
	status = left->incomplete ? TDM_EXIT_INCOMPLETE : TDM_EXIT_DONE;
out:
	for (size_t i = 0; left && i < left->count; i++) {
		record_spool_close(left->spools[i]);
	}
	if (entries) {
		closedir(entries);
	}
	free(left);
	free(guests);
	return status;
}
