/* SPDX-License-Identifier: MIT */
/*
 * report.h - what the plugin tells the user: causes of babeltrace2's current error, and log lines.
 */
#ifndef PLUGIN_REPORT_H
#define PLUGIN_REPORT_H

#include "compat.h"
#include <tandem/log.h>
#include <tandem/status.h>

/* Writes log lines to the standard error stream, as babeltrace2's own components do, down to the component's level. */
struct report {
	const char *class_name; /* e.g. "source.tandem.tracedat" */
	struct tdm_log log;     /* give its address to the library; lives as long as this */
};

/** @p level is the component's or query's logging level. @p class_name is kept. */
void report_init(struct report *report, const char *class_name, bt_logging_level level);

/* Each appends the text of @p err as a cause, so that the user sees it under babeltrace2's own line. */
void report_component_cause(bt_self_component *component, const struct tdm_error *err);
void report_iterator_cause(bt_self_message_iterator *iterator, const struct tdm_error *err);
void report_class_cause(bt_self_component_class *component_class, const struct tdm_error *err);

#endif
