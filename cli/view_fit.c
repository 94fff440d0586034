/* SPDX-License-Identifier: MIT */
#include "view_fit.h"
#include "clock/flt_host_clock.h"
#include <tandem/clock_identity.h>

static struct tdm_trace *open_file(const struct view_input *input)
{
	const struct tdm_stamp_options how = { .raw = false };
	struct tdm_trace *trace = NULL;
	struct tdm_error fault;

	/* What is wrong with it is said by whoever reads it. */
	if (!input || (input->kind != VIEW_TRACEDAT && input->kind != VIEW_PERF) ||
		tdm_trace_open(input->path, &how, NULL, &trace, &fault) != TDM_OK) {
		return NULL;
	}
	return trace;
}

/* Whether a timeline may be of the clock of a CTF input; true where that cannot be told. */
static bool ctf_fits(const struct tdm_timeline *timeline, enum tdm_side side,
	const struct view_input *input, char why[TDM_MISFIT_BYTES])
{
	const struct tdm_timeline_info said = tdm_timeline_get_info(timeline);
	struct flt_host_clock clock;
	struct tdm_error fault;

	why[0] = '\0';
	return !input || input->kind != VIEW_CTF ||
	       flt_host_clock_epoch(input->path,
		       side == TDM_SIDE_HOST ? said.host_uuid : said.guest_uuid, &clock,
		       &fault) != TDM_OK ||
	       tdm_clock_identity_fits(timeline, side, clock.uid, clock.name, why);
}

static const struct view_input *host_of(const struct view_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		if (inputs->items[i].is_host) {
			return &inputs->items[i];
		}
	}
	return NULL;
}

static bool fits(const struct view_inputs *inputs, const struct view_input *input,
	const struct tdm_timeline *timeline, char why[TDM_MISFIT_BYTES])
{
	const struct view_input *const host = host_of(inputs);
	struct tdm_trace *const host_trace = open_file(host);
	struct tdm_trace *const trace = open_file(input);
	const struct tdm_trace_info *const host_info =
		host_trace ? tdm_trace_get_info(host_trace) : NULL;
	bool is_its = ctf_fits(timeline, TDM_SIDE_GUEST, input, why) &&
		      ctf_fits(timeline, TDM_SIDE_HOST, host, why);

	if (is_its && trace) {
		is_its = tdm_machine_corrections_fit(
			timeline, tdm_trace_get_info(trace), host_info, why);
	} else if (is_its && host_info) {
		is_its = tdm_clock_identity_fits(
			timeline, TDM_SIDE_HOST, NULL, host_info->clock, why);
	}
	tdm_trace_close(trace);
	tdm_trace_close(host_trace);
	return is_its;
}

bool view_fit_found(
	const struct view_inputs *inputs, const struct view_input *input, const struct tdm_log *log)
{
	struct tdm_timeline *timeline = NULL;
	char why[TDM_MISFIT_BYTES];
	struct tdm_error fault;
	bool is_its;

	if (tdm_timeline_load(input->corrections, &timeline, &fault) != TDM_OK) {
		TDM_WARNING(log, "%s: so it is not used for \"%s\"", fault.text, input->name);
		return false;
	}
	is_its = fits(inputs, input, timeline, why);
	if (!is_its) {
		TDM_WARNING(log, "%s is not used for \"%s\", though --corrections %s=%s would: %s",
			input->corrections, input->name, input->name, input->corrections, why);
	}
	tdm_timeline_destroy(timeline);
	return is_its;
}

void view_fit_tell(const struct view_inputs *inputs, const struct view_input *input,
	const struct tdm_timeline *timeline, const struct tdm_log *log)
{
	char why[TDM_MISFIT_BYTES];

	if (!fits(inputs, input, timeline, why)) {
		TDM_WARNING(log, "%s may not be for \"%s\", its events may be at wrong times: %s",
			input->corrections, input->name, why);
	}
}
