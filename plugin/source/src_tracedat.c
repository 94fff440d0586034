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

bt_component_class_initialize_method_status src_tracedat_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *configuration, const bt_value *params, void *data)
{
	(void)configuration;
	(void)data;
	return src_initialize(&tracedat, self, params);
}

bt_component_class_query_method_status src_tracedat_query(
	bt_self_component_class_source *self_class, bt_private_query_executor *executor,
	const char *object, const bt_value *params, void *data, const bt_value **result)
{
	(void)data;
	return src_query(&tracedat, self_class, object, params,
		bt_query_executor_get_logging_level(
			bt_private_query_executor_as_query_executor_const(executor)),
		result);
}

bt_component_class_get_supported_mip_versions_method_status src_tracedat_mip_versions(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class;
	(void)params;
	(void)data;
	(void)level;
	return src_mip_versions(versions);
}
