/* SPDX-License-Identifier: MIT */
/*
 * src_live.h - the methods of source.tandem.live that are its own.
 */
#ifndef SRC_LIVE_H
#define SRC_LIVE_H

#include "compat.h"

bt_component_class_initialize_method_status src_live_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *configuration, const bt_value *params, void *data);
bt_component_class_query_method_status src_live_query(bt_self_component_class_source *self_class,
	bt_private_query_executor *executor, const char *object, const bt_value *params, void *data,
	const bt_value **result);

#endif
