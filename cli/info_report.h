/* SPDX-License-Identifier: MIT */
/*
 * info_report.h - what "tandem info" found, as text for people and as JSON.
 */
#ifndef CLI_INFO_REPORT_H
#define CLI_INFO_REPORT_H

#include "info_scan.h"
#include "json_writer.h"
#include <stdio.h>

/** Writes one machine as text. @p machines resolves its reference. */
void info_text_machine(
	FILE *out, const struct info_machine *scanned, const struct tdm_machines *machines);

/** Writes one machine as a JSON object, an item of an array. */
void info_json_machine(struct json_writer *json, const struct info_machine *scanned,
	const struct tdm_machines *machines);

#endif
