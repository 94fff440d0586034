/* SPDX-License-Identifier: MIT */
/*
 * text_sink.h - sink.tandem.text: one line an event, told apart by machine.
 */
#ifndef TEXT_SINK_H
#define TEXT_SINK_H

#include "compat.h"

bt_component_class_initialize_method_status text_sink_initialize(bt_self_component_sink *self,
	bt_self_component_sink_configuration *configuration, const bt_value *params, void *data);
void text_sink_finalize(bt_self_component_sink *self);
bt_component_class_sink_graph_is_configured_method_status text_sink_graph_is_configured(
	bt_self_component_sink *self);
bt_component_class_sink_consume_method_status text_sink_consume(bt_self_component_sink *self);
bt_component_class_get_supported_mip_versions_method_status text_sink_mip_versions(
	bt_self_component_class_sink *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions);

#endif
