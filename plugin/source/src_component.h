/* SPDX-License-Identifier: MIT */
/*
 * src_component.h - what every source of the plugin is: machines, their streams as ports, and iterators over them.
 *
 * A source class gives a struct src_kind and thin methods (src_tracedat.c); the rest is common.
 */
#ifndef SRC_COMPONENT_H
#define SRC_COMPONENT_H

#include "compat.h"
#include "ir/ir_class.h"
#include "params.h"
#include "report.h"
#include <tandem/machines.h>

struct src_component;

/* What one source class is, apart from the others. */
struct src_kind {
	const char *class_name; /* e.g. "source.tandem.tracedat" */
	enum tdm_trace_format format;
	const char *group;  /* inputs of one command end in one component under it */
	double weight;      /* of the answer to babeltrace.support-info */
	const char *scheme; /* of URLs that it takes instead of paths; NULL: none */
	bool takes_folders; /* a folder can be an input */
	const struct param_rule *rules;
	size_t rule_count;
	/* How its machines are opened, where not from files; may keep something in component->connection. */
	enum tdm_status (*open)(
		struct src_component *component, const bt_value *params, struct tdm_error *err);
	void (*close)(void *connection);
};

/* One machine of a component. */
struct src_machine {
	const struct tdm_machine *machine;
	struct ir_trace *trace;
	size_t faults_told;
	uint64_t records, delivered, lost, losses_uncounted,
		unreadable_pages; /* of iterators that have ended */
	uint64_t clamped, out_of_range;
	bool told;
};

/* One stream of a machine: its port's user data. */
struct src_port {
	struct src_component *component;
	struct src_machine *machine;
	size_t stream_index; /* in the trace */
	char name[256];
	bt_stream *stream; /* made with the component */
};

struct src_component {
	const struct src_kind *kind;
	struct report report;
	struct tdm_machines *machines;
	uint64_t
		bias_ns; /* added to clock values, taken back by the clocks' offsets; whole seconds */
	size_t unopened; /* inputs that could not be opened: told, and a failure once the others are delivered */
	struct src_machine *members; /* as many as machines */
	size_t member_count;
	struct src_port *ports;
	size_t port_count;
	size_t iterators_open; /* made and not yet at their end */
	void *connection;      /* of a live source; NULL for files */
};

/* Methods. The kind is given where babeltrace2 does not know the component yet. */

bt_component_class_initialize_method_status src_initialize(
	const struct src_kind *kind, bt_self_component_source *self, const bt_value *params);
void src_finalize(bt_self_component_source *self);
bt_component_class_query_method_status src_query(const struct src_kind *kind,
	bt_self_component_class_source *self_class, const char *object, const bt_value *params,
	bt_logging_level level, const bt_value **result);
bt_component_class_get_supported_mip_versions_method_status src_mip_versions(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions);

/* The two methods that must know the kind: src_NAME_initialize() and src_NAME_query(), as babeltrace2 wants them. */
#define SRC_KIND_METHODS(name, kind)                                                             \
	bt_component_class_initialize_method_status src_##name##_initialize(                     \
		bt_self_component_source *self,                                                  \
		bt_self_component_source_configuration *configuration, const bt_value *params,   \
		void *data)                                                                      \
	{                                                                                        \
		(void)configuration;                                                             \
		(void)data;                                                                      \
		return src_initialize(&(kind), self, params);                                    \
	}                                                                                        \
	bt_component_class_query_method_status src_##name##_query(                               \
		bt_self_component_class_source *self_class, bt_private_query_executor *executor, \
		const char *object, const bt_value *params, void *data, const bt_value **result) \
	{                                                                                        \
		(void)data;                                                                      \
		return src_query(&(kind), self_class, object, params,                            \
			bt_query_executor_get_logging_level(                                     \
				bt_private_query_executor_as_query_executor_const(executor)),    \
			result);                                                                 \
	}

bt_message_iterator_class_initialize_method_status src_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *configuration,
	bt_self_component_port_output *port);
void src_iterator_finalize(bt_self_message_iterator *self);
bt_message_iterator_class_next_method_status src_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count);
bt_message_iterator_class_seek_beginning_method_status src_iterator_seek_beginning(
	bt_self_message_iterator *self);
bt_message_iterator_class_can_seek_beginning_method_status src_iterator_can_seek_beginning(
	bt_self_message_iterator *self, bt_bool *can_seek);

/* Shared by initialize and the trace-infos query. */

/** Checks the parameters and opens the machines that they name. */
enum tdm_status src_open_machines(const struct src_kind *kind, const bt_value *params,
	const struct tdm_log *log, struct tdm_machines **machines, size_t *unopened,
	struct tdm_error *err);

/** Whether a stream's buffer is wanted by the "buffers" parameter. */
bool src_buffer_is_wanted(
	const bt_value *params, const struct tdm_trace_info *info, size_t buffer_index);

/** The name of a stream and its port: MACHINE/BUFFER/cpuN. */
void src_stream_name(
	const struct tdm_machine *machine, size_t stream_index, char *name, size_t room);

/** A record's time as a clock value: never below 0, never beyond what babeltrace2 can express; 0 where it would be. */
static inline uint64_t src_clock_value(uint64_t time_ns, uint64_t bias_ns)
{
	return time_ns + bias_ns > INT64_MAX ? 0 : time_ns + bias_ns;
}

/** What the clock values of all machines get added, so that those before the clock's origin can be told. */
enum tdm_status src_find_bias(
	const struct tdm_machines *machines, uint64_t *bias_ns, struct tdm_error *err);

/**
 * Tells what could not be delivered, once for each fault and each input.
 * @return Whether data of any input was unreadable.
 */
bool src_tell_losses(struct src_component *component);

#endif
