/* SPDX-License-Identifier: MIT */
#include "clock_report.h"
#include "options.h"
#include <inttypes.h>
#include <stdlib.h>
#include <tandem/estimate.h>
#include <tandem/text.h>

static const char help[] =
	"Usage: tandem estimate [OPTION]... IN.exchanges OUT.corrections\n"
	"Estimates the relation of two clocks from their exchanges. The same input gives the same bytes.\n"
	"\n"
	"Options:\n"
	"      --json             the report as JSON\n"
	"      --target-bound NS  exit with 3 where the median bound is wider\n"
	"  -q, --quiet            no report\n"
	"  -h, --help             this text\n"
	"      --version          the version\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 done but the log was damaged or the target missed.\n"
	"\n"
	"Example: tandem estimate guest.exchanges guest.corrections\n";

enum {
	OPT_JSON = CLI_OPT_OWN,
	OPT_TARGET
};

static const struct option options[] = {
	CLI_COMMON_OPTIONS,
	{ "json", no_argument, NULL, OPT_JSON },
	{ "target-bound", required_argument, NULL, OPT_TARGET },
	{ NULL, 0, NULL, 0 },
};

/* What the user should know; each is a line of its own. */
static int warn(const struct cli_command *command, const struct tdm_exchange_log *log,
	const struct tdm_quality *quality, const char *path)
{
	const struct tdm_exchange_log_faults *faults = tdm_exchange_log_get_faults(log);
	int result = TDM_EXIT_DONE;

	if (faults->cut_short) {
		TDM_ERROR(&command->log,
			"%s: cut short, \"end\" is missing: taken as far as it goes", path);
		result = TDM_EXIT_INCOMPLETE;
	}
	if (faults->bad_lines) {
		TDM_ERROR(&command->log, "%s; %" PRIu64 " such lines were passed over",
			faults->first.text, faults->bad_lines);
		result = TDM_EXIT_INCOMPLETE;
	}
	if (faults->orphans) {
		TDM_WARNING(&command->log,
			"%s: %" PRIu64 " r and t records belong to no exchange, or to several",
			path, faults->orphans);
	}
	if (quality->stalled) {
		TDM_WARNING(&command->log,
			"%s: round trips take 40 ms and more: the peer lacks TCP_NODELAY", path);
	}
	if (quality->noisy) {
		TDM_WARNING(&command->log,
			"%s: noisy: the guest was kept from answering, the bound is wide", path);
	}
	if (quality->grade == TDM_GRADE_WEAK) {
		TDM_WARNING(&command->log,
			"%s: weak: one burst gives an offset and no rate; the bound grows with distance",
			path);
	}
	if (quality->ambiguous) {
		TDM_WARNING(&command->log,
			"%s: ambiguous: the guest's clock went back, some readings were shown twice",
			path);
	}
	return result;
}

static int run(
	struct cli_command *command, const char *in, const char *out, bool json, uint64_t target_ns)
{
	struct tdm_exchange_log *log = NULL;
	struct tdm_timeline *timeline = NULL;
	struct tdm_buffer text = { 0 };
	struct tdm_quality quality;
	struct tdm_error err;
	int result;

	if (tdm_exchange_log_load(in, &log, &err) != TDM_OK) {
		result = cli_failed(command, &err);
		goto out;
	}
	if (tdm_estimate(log, &timeline, &quality, &err) != TDM_OK) {
		tdm_error_prefix(&err, "%s", in);
		if (json && !command->quiet) {
			cli_report_estimate_json(stdout, in, &quality, NULL);
			fputc('\n', stdout);
		}
		result = cli_failed(command, &err);
		goto out;
	}
	if (tdm_timeline_write(timeline, &text) != TDM_OK) {
		tdm_fail(&err, TDM_ERR_NOMEM, "%s: no memory for its text", out);
		result = cli_failed(command, &err);
		goto out;
	}
	if (tdm_text_write_file(out, text.bytes, text.size, &err) != TDM_OK) {
		result = cli_failed(command, &err);
		goto out;
	}
	result = warn(command, log, &quality, in);

	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	const double bound_ns = (double)quality.median_bound * 1e9 / (double)info.host_unit_hz;

	if (target_ns && bound_ns > (double)target_ns) {
		TDM_ERROR(&command->log,
			"%s: median bound is %.0f ns, the target is %" PRIu64 " ns", in, bound_ns,
			target_ns);
		result = TDM_EXIT_INCOMPLETE;
	}
	if (json && !command->quiet) {
		cli_report_estimate_json(stdout, in, &quality, timeline);
		fputc('\n', stdout);
	} else if (!command->quiet) {
		cli_report_estimate(stdout, in, &quality, timeline);
	}
out:
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	tdm_buffer_release(&text);
	return result;
}

int tdm_estimate_main(int argc, char **argv)
{
	struct cli_command command;
	bool json = false;
	uint64_t target_ns = 0;

	cli_command_init(&command, "estimate", help);
	for (;;) {
		const int value =
			cli_next_option(&command, argc, argv, CLI_COMMON_LETTERS, options);

		if (value == -1) {
			break;
		}
		if (value == OPT_JSON) {
			json = true;
		} else if (value == OPT_TARGET) {
			if (!cli_parse_uint(optarg, &target_ns) || !target_ns) {
				return cli_usage_fault(
					&command, "--target-bound wants ns, not \"%s\"", optarg);
			}
		} else {
			const int status = cli_common_option(&command, value);

			if (status != -1) {
				return status;
			}
		}
	}
	if (argc - optind != 2) {
		return cli_usage_fault(&command, "wanted IN.exchanges and OUT.corrections");
	}
	return run(&command, argv[optind], argv[optind + 1], json, target_ns);
}
