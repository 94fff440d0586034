/* SPDX-License-Identifier: MIT */
/*
 * clock_report.h - how well two clocks are known, in words and as JSON.
 */
#ifndef CLI_CLOCK_REPORT_H
#define CLI_CLOCK_REPORT_H

#include <stdio.h>
#include <tandem/estimate.h>

/** The report of an estimate, in words. @p name says whose clock it is. */
void cli_report_estimate(FILE *out, const char *name, const struct tdm_quality *quality,
	const struct tdm_timeline *timeline);

/** The same as one JSON object without a newline behind it; @p timeline may be NULL (grade unsynced). */
void cli_report_estimate_json(FILE *out, const char *name, const struct tdm_quality *quality,
	const struct tdm_timeline *timeline);

/** What a corrections file says, in words. */
void cli_report_timeline(FILE *out, const char *name, const struct tdm_timeline *timeline);

/** The same as one JSON object. */
void cli_report_timeline_json(FILE *out, const char *name, const struct tdm_timeline *timeline);

/** tdm_timeline_bounds() in words: "+-X at the median knot, +-Y at worst". */
void cli_timeline_bound_text(const struct tdm_timeline *timeline, char *text, size_t room);

/** A JSON string with its quotes; NULL gives null. */
void cli_json_string(FILE *out, const char *text);

#endif
