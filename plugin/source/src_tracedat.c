/* SPDX-License-Identifier: MIT */
/*
 * src_tracedat.c - source.tandem.tracedat: trace.dat files of trace-cmd, a host's and its guests' together.
 */
#include "src_tracedat.h"
#include "src_component.h"

static const char *const name_choices[] = { "lttng", "ftrace", NULL };
static const char *const unrelated_choices[] = { "warn", "fail", NULL };

static const struct param_rule rules[] = {
	{ "inputs", PARAM_TEXT | PARAM_TEXTS, true, 0, 0, NULL },
	{ "machines", PARAM_TEXT | PARAM_TEXTS, false, 0, 0, NULL },
	{ "corrections", PARAM_TEXT | PARAM_TEXT_MAP, false, 0, 0, NULL },
	{ "names", PARAM_TEXT, false, 0, 0, name_choices },
	{ "symbols", PARAM_BOOL, false, 0, 0, NULL },
	{ "print", PARAM_BOOL, false, 0, 0, NULL },
	{ "clock-offset-ns", PARAM_INT, false, 0, 0, NULL },
	{ "clock-hz", PARAM_INT, false, 1, INT64_C(1000000000000), NULL },
	{ "on-unrelated", PARAM_TEXT, false, 0, 0, unrelated_choices },
	{ "buffers", PARAM_TEXT | PARAM_TEXTS, false, 0, 0, NULL },
};

static const struct src_kind tracedat = {
	.class_name = "source.tandem.tracedat",
	.format = TDM_FORMAT_TRACEDAT,
	.group = "tandem-tracedat",
	.weight = 0.8,
	.rules = rules,
	.rule_count = sizeof(rules) / sizeof(rules[0]),
};

SRC_KIND_METHODS(tracedat, tracedat)
