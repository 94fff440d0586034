/* SPDX-License-Identifier: MIT */
/*
 * src_perf.h - the methods of source.tandem.perf that know its parameters.
 */
#ifndef SRC_PERF_H
#define SRC_PERF_H

#include "compat.h"

bt_component_class_initialize_method_status src_perf_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *configuration, const bt_value *params, void *data);
bt_component_class_query_method_status src_perf_query(bt_self_component_class_source *self_class,
	bt_private_query_executor *executor, const char *object, const bt_value *params, void *data,
	const bt_value **result);

#endif
