/* SPDX-License-Identifier: MIT */
#include "info_clock.h"
#include "clock_plot.h"
#include "clock_report.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char exchanges_magic[] = "tandem-exchanges ";
static const char corrections_magic[] = "tandem-corrections ";

/* What is drawn: of each kind the first that could be read. */
struct drawn {
	struct tdm_exchange_log *log;
	struct tdm_timeline *timeline;
	bool is_given; /* the timeline is a file of its own, not the log's estimate */
	const char *name;
};

static bool begins_with(const char *path, const char *magic)
{
	char start[32] = "";
	struct stat about;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		return false;
	}

	const ssize_t got = fstat(fd, &about) == 0 && S_ISREG(about.st_mode)
				    ? read(fd, start, sizeof(start) - 1)
				    : -1;

	close(fd);
	return got > 0 && strncmp(start, magic, strlen(magic)) == 0;
}

bool info_clock_is_one(const char *path)
{
	return begins_with(path, exchanges_magic) || begins_with(path, corrections_magic);
}

static const char *shown_name(const struct cli_named *file)
{
	return *file->name ? file->name : file->text;
}

static int report_log(const struct cli_command *command, const struct cli_named *file, bool json,
	struct drawn *drawn)
{
	struct tdm_exchange_log *log = NULL;
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality = { 0 };
	struct tdm_error err;
	int status = TDM_EXIT_DONE;

	if (tdm_exchange_log_load(file->text, &log, &err) != TDM_OK) {
		return cli_failed(command, &err);
	}

	const struct tdm_exchange_log_faults *faults = tdm_exchange_log_get_faults(log);

	if (faults->bad_lines || faults->cut_short) {
		TDM_ERROR(&command->log, "%s: %s",
			faults->bad_lines ? faults->first.text : file->text,
			faults->cut_short ? "cut short, \"end\" is missing"
					  : "lines were passed over");
		status = TDM_EXIT_INCOMPLETE;
	}
	if (tdm_estimate(log, &timeline, &quality, &err) != TDM_OK) {
		TDM_ERROR(&command->log, "%s: %s", file->text, err.text);
		status = TDM_EXIT_INCOMPLETE;
	}
	if (json) {
		cli_report_estimate_json(stdout, shown_name(file), &quality, timeline);
	} else if (timeline) {
		cli_report_estimate(stdout, shown_name(file), &quality, timeline);
	} else {
		fprintf(stdout, "%s: unsynced, %llu exchanges, none can be used\n",
			shown_name(file), (unsigned long long)quality.samples);
	}
	if (!drawn->log) {
		drawn->log = log;
		log = NULL;
		drawn->name = shown_name(file);
		if (!drawn->is_given) {
			drawn->timeline = timeline;
			timeline = NULL;
		}
	}
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	return status;
}

static int report_corrections(const struct cli_command *command, const struct cli_named *file,
	bool json, struct drawn *drawn)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_error err;

	if (tdm_timeline_load(file->text, &timeline, &err) != TDM_OK) {
		return cli_failed(command, &err);
	}
	if (json) {
		cli_report_timeline_json(stdout, shown_name(file), timeline);
	} else {
		cli_report_timeline(stdout, shown_name(file), timeline);
	}
	if (!drawn->is_given) {
		tdm_timeline_destroy(drawn->timeline);
		drawn->timeline = timeline;
		drawn->is_given = true;
		drawn->name = shown_name(file);
	} else {
		tdm_timeline_destroy(timeline);
	}
	return TDM_EXIT_DONE;
}

int info_clock_report(const struct cli_command *command, const struct cli_named_list *files,
	bool json, const char *plot)
{
	struct drawn drawn = { 0 };
	size_t good = 0;
	size_t written = 0;
	int result = TDM_EXIT_DONE;

	for (size_t i = 0; i < files->count; i++) {
		const struct cli_named *file = &files->items[i];
		const bool is_log = begins_with(file->text, exchanges_magic);

		/* What cannot be read has no item, and so no comma. */
		if (json && written) {
			fputs(",\n", stdout);
		}

		const int status = is_log ? report_log(command, file, json, &drawn)
					  : report_corrections(command, file, json, &drawn);

		if (status == TDM_EXIT_FAILED && json) {
			fputs("{\"name\":", stdout);
			cli_json_string(stdout, shown_name(file));
			fputs(",\"kind\":\"unreadable\"}", stdout);
		}
		written++;
		good += status != TDM_EXIT_FAILED;
		if (status != TDM_EXIT_DONE) {
			result = TDM_EXIT_INCOMPLETE;
		}
	}
	if (good && plot) {
		struct tdm_error err;
		enum tdm_status status = TDM_OK;

		if (!drawn.timeline) {
			status = tdm_fail(&err, TDM_ERR_RANGE,
				"%s: not drawn: no relation of the clocks is known", plot);
		} else {
			status =
				clock_plot_write(plot, drawn.name, drawn.timeline, drawn.log, &err);
		}
		if (status != TDM_OK) {
			TDM_ERROR(&command->log, "%s", err.text);
			result = TDM_EXIT_INCOMPLETE;
		}
	}
	tdm_timeline_destroy(drawn.timeline);
	tdm_exchange_log_destroy(drawn.log);
	return good ? result : TDM_EXIT_FAILED;
}
