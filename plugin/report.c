/* SPDX-License-Identifier: MIT */
#include "report.h"
#include <stdio.h>

static void write_line(void *user, enum tdm_log_level level, const char *line)
{
	static const char *const words[] = {
		[TDM_LOG_ERROR] = "error",
		[TDM_LOG_WARNING] = "warning",
		[TDM_LOG_INFO] = "info",
		[TDM_LOG_DEBUG] = "debug",
	};
	const struct report *const report = user;

	fprintf(stderr, "%s: %s: %s\n", report->class_name, words[level], line);
}

void report_init(struct report *report, const char *class_name, bt_logging_level level)
{
	report->class_name = class_name;
	report->log.user = report;
	report->log.write = write_line;
	if (level <= BT_LOGGING_LEVEL_DEBUG) {
		report->log.max_level = TDM_LOG_DEBUG;
	} else if (level <= BT_LOGGING_LEVEL_INFO) {
		report->log.max_level = TDM_LOG_INFO;
	} else if (level <= BT_LOGGING_LEVEL_WARNING) {
		report->log.max_level = TDM_LOG_WARNING;
	} else if (level <= BT_LOGGING_LEVEL_FATAL) {
		report->log.max_level = TDM_LOG_ERROR;
	} else {
		report->log.write = NULL;
	}
}

void report_component_cause(bt_self_component *component, const struct tdm_error *err)
{
	(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(component, "%s", err->text);
}

void report_iterator_cause(bt_self_message_iterator *iterator, const struct tdm_error *err)
{
	(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_MESSAGE_ITERATOR(iterator, "%s", err->text);
}

void report_class_cause(bt_self_component_class *component_class, const struct tdm_error *err)
{
	(void)BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT_CLASS(
		component_class, "%s", err->text);
}
