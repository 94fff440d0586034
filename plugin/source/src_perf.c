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

bt_component_class_initialize_method_status src_perf_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *configuration, const bt_value *params, void *data)
{
	(void)configuration;
	(void)data;
	return src_initialize(&perf, self, params);
}

bt_component_class_query_method_status src_perf_query(bt_self_component_class_source *self_class,
	bt_private_query_executor *executor, const char *object, const bt_value *params, void *data,
	const bt_value **result)
{
	(void)data;
	return src_query(&perf, self_class, object, params,
		bt_query_executor_get_logging_level(
			bt_private_query_executor_as_query_executor_const(executor)),
		result);
}

bt_component_class_get_supported_mip_versions_method_status src_perf_mip_versions(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class;
	(void)params;
	(void)data;
	(void)level;
	return src_mip_versions(versions);
}
