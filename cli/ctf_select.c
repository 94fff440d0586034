/* SPDX-License-Identifier: MIT */
#include "ctf_select.h"
#include "ctf_event.h"
#include "ctf_state_dump.h"
#include <stdlib.h>
#include <string.h>

/* ---- events ---- */

/* As the tracer calls it, and without the provider's name in front of it. */
static size_t names_of(const bt_event *event, const char *names[2])
{
	const char *const name = bt_event_class_get_name(bt_event_borrow_class_const(event));
	const char *const colon = name ? strchr(name, ':') : NULL;

	names[0] = name ? name : "";
	names[1] = colon ? colon + 1 : names[0];
	return 2;
}

static bool is_in_interval(const struct tdm_convert_selection *selection, const bt_message *message)
{
	const bt_clock_snapshot *snapshot;
	int64_t time_ns = 0;

	if (!selection->has_begin && !selection->has_end) {
		return true;
	}
	if (!bt_message_event_borrow_stream_class_default_clock_class_const(message)) {
		return false; /* nobody knows when it was */
	}
	snapshot = bt_message_event_borrow_default_clock_snapshot_const(message);
	return bt_clock_snapshot_get_ns_from_origin(snapshot, &time_ns) ==
		       BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK &&
	       (!selection->has_begin || time_ns >= selection->begin_ns) &&
	       (!selection->has_end || time_ns <= selection->end_ns);
}

bool ctf_select_has(const struct ctf_select *select, const bt_message *message)
{
	const struct tdm_convert_selection *const selection = select->selection;
	const bt_event *const event = bt_message_event_borrow_event_const(message);
	const char *names[2];
	const size_t name_count = names_of(event, names);
	const uint32_t cpu = selection->cpu_range_count ? ctf_event_cpu(event) : 0;

	select->counts->in++;
	if (select->threads) {
		ctf_threads_see(select->threads, message);
		if (strncmp(names[0], "tandem:", 7) == 0 &&
			strncmp(names[0], "tandem:syscall_", 15) != 0) {
			return false;
		}
	}
	if (!tdm_selection_has_event(selection, names, name_count)) {
		tdm_selection_near_event(selection, names, name_count);
		return false;
	}
	if (!tdm_selection_has_cpu(selection, cpu) || !is_in_interval(selection, message)) {
		return false;
	}
	tdm_selection_note_event(selection, names, name_count);
	tdm_selection_note_cpu(selection, cpu);
	select->counts->out++;
	return true;
}

/* ---- the filter ---- */

struct iterator {
	const struct ctf_select *select;
	bt_message_iterator *upstream;
};

static bt_component_class_initialize_method_status make_component(bt_self_component_filter *self,
	bt_self_component_filter_configuration *configuration, const bt_value *params, void *data)
{
	(void)configuration;
	(void)params;
	bt_self_component_set_data(bt_self_component_filter_as_self_component(self), data);
	return bt_self_component_filter_add_input_port(self, "in", NULL, NULL) ==
				       BT_SELF_COMPONENT_ADD_PORT_STATUS_OK &&
			       bt_self_component_filter_add_output_port(self, "out", NULL, NULL) ==
				       BT_SELF_COMPONENT_ADD_PORT_STATUS_OK
		       ? BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK
		       : BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
}

static bt_message_iterator_class_initialize_method_status make_iterator(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *configuration,
	bt_self_component_port_output *port)
{
	bt_self_component *const component = bt_self_message_iterator_borrow_component(self);
	struct iterator *const it = calloc(1, sizeof(*it));

	(void)configuration;
	(void)port;
	if (!it) {
		return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
	}
	it->select = bt_self_component_get_data(component);

	const bt_message_iterator_create_from_message_iterator_status status =
		bt_message_iterator_create_from_message_iterator(self,
			bt_self_component_filter_borrow_input_port_by_index(
				(bt_self_component_filter *)component, 0),
			&it->upstream);

	if (status != BT_MESSAGE_ITERATOR_CREATE_FROM_MESSAGE_ITERATOR_STATUS_OK) {
		free(it);
		return (bt_message_iterator_class_initialize_method_status)status;
	}
	bt_self_message_iterator_set_data(self, it);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static void end_iterator(bt_self_message_iterator *self)
{
	struct iterator *const it = bt_self_message_iterator_get_data(self);

	bt_message_iterator_put_ref(it->upstream);
	free(it);
}

/* The values of the two enumerations are the same by design. */
static bt_message_iterator_class_next_method_status next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct iterator *const it = bt_self_message_iterator_get_data(self);

	for (;;) {
		bt_message_array_const got;
		uint64_t got_count = 0;
		uint64_t kept = 0;
		const bt_message_iterator_next_status status =
			bt_message_iterator_next(it->upstream, &got, &got_count);

		if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
			return (bt_message_iterator_class_next_method_status)status;
		}
		/* No iterator of the library gives more than another can take: one array size serves all. */
		for (uint64_t i = 0; i < got_count && i < capacity; i++) {
			if (bt_message_get_type(got[i]) != BT_MESSAGE_TYPE_EVENT ||
				ctf_select_has(it->select, got[i])) {
				messages[kept++] = got[i];
			} else {
				bt_message_put_ref(got[i]);
			}
		}
		if (kept) {
			*count = kept;
			return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
		}
	}
}

const bt_component_class_filter *ctf_select_class(void)
{
	bt_message_iterator_class *const iterators = bt_message_iterator_class_create(next);
	bt_component_class_filter *filters = NULL;

	if (iterators &&
		bt_message_iterator_class_set_initialize_method(iterators, make_iterator) ==
			BT_MESSAGE_ITERATOR_CLASS_SET_METHOD_STATUS_OK &&
		bt_message_iterator_class_set_finalize_method(iterators, end_iterator) ==
			BT_MESSAGE_ITERATOR_CLASS_SET_METHOD_STATUS_OK) {
		filters = bt_component_class_filter_create("select", iterators);
	}
	bt_message_iterator_class_put_ref(iterators);
	if (filters && bt_component_class_filter_set_initialize_method(filters, make_component) !=
			       BT_COMPONENT_CLASS_SET_METHOD_STATUS_OK) {
		bt_component_class_filter_put_ref(filters);
		filters = NULL;
	}
	return filters;
}
