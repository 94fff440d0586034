/* SPDX-License-Identifier: MIT */
/*
 * trace_event_json.h - machines with their records as part of a trace-event file.
 */
#ifndef TANDEM_TRACE_EVENT_JSON_H
#define TANDEM_TRACE_EVENT_JSON_H

#include "convert_trace.h"
#include "json_events.h"

/**
 * Writes all machines into a file that was begun. Options and reports as of tdm_convert_run(); nothing is made up.
 * @retval TDM_END  Stopped by options->stop.
 */
enum tdm_status tdm_convert_put_json(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_json_file *json, struct tdm_convert_report *reports, struct tdm_error *err);

#endif
