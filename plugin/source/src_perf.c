/* SPDX-License-Identifier: MIT */
/*
 * src_perf.c - source.tandem.perf: perf.data files, pipe output and directories of "perf record".
 */
#include "src_perf.h"
#include "src_component.h"

static const char *const name_choices[] = { "lttng", "ftrace", NULL };
static const char *const unrelated_choices[] = { "warn", "fail", NULL };

static const struct param_rule rules[] = {
	{ "inputs", PARAM_TEXT | PARAM_TEXTS, true, 0, 0, NULL },
	{ "machines", PARAM_TEXT | PARAM_TEXTS, false, 0, 0, NULL },
	{ "corrections", PARAM_TEXT | PARAM_TEXT_MAP, false, 0, 0, NULL },
	{ "names", PARAM_TEXT, false, 0, 0, name_choices },
	{ "clock-offset-ns", PARAM_INT, false, 0, 0, NULL },
	{ "on-unrelated", PARAM_TEXT, false, 0, 0, unrelated_choices },
};

static const struct src_kind perf = {
	.class_name = "source.tandem.perf",
	.format = TDM_FORMAT_PERF,
	.group = "tandem-perf",
	.weight = 0.8,
	.takes_folders = true, /* "perf record --threads" */
	.rules = rules,
	.rule_count = sizeof(rules) / sizeof(rules[0]),
};

SRC_KIND_METHODS(perf, perf)
