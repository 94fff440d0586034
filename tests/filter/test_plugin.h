/* SPDX-License-Identifier: MIT */
/*
 * test_plugin.h - component classes that only tests use: source.tandemtest.rich and filter.tandemtest.check.
 */
#ifndef TESTS_TEST_PLUGIN_H
#define TESTS_TEST_PLUGIN_H

#include "compat.h"
#include <stdbool.h>

bt_component_class_get_supported_mip_versions_method_status rich_supported_mip(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions);
bt_component_class_initialize_method_status rich_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *config, const bt_value *params, void *data);
bt_message_iterator_class_initialize_method_status rich_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port);
bt_message_iterator_class_next_method_status rich_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count);
bt_message_iterator_class_seek_beginning_method_status rich_iterator_seek(
	bt_self_message_iterator *self);
void rich_iterator_finalize(bt_self_message_iterator *self);

bt_component_class_get_supported_mip_versions_method_status check_supported_mip(
	bt_self_component_class_filter *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions);
bt_component_class_initialize_method_status check_initialize(bt_self_component_filter *self,
	bt_self_component_filter_configuration *config, const bt_value *params, void *data);
bt_message_iterator_class_initialize_method_status check_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port);
bt_message_iterator_class_next_method_status check_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count);
void check_iterator_finalize(bt_self_message_iterator *self);

#endif
