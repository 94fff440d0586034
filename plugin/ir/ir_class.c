/* SPDX-License-Identifier: MIT */
/*
 * ir_class.c - the plan of an event class, and the field classes that go with it.
 */
#include "ir_class.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/task_names.h>

/* Ids above this come from no kernel (common_type has 16 bits); perf numbers its events below it too. */
#define MAX_EVENT_ID 65535

/* What is being made for one event class. */
struct build {
	struct ir_trace *trace;
	struct ir_record_plan *plan;
	bt_field_class *payload;
	uint32_t next_index;
};

static bool name_is_taken(const void *payload, const char *name)
{
	return bt_field_class_structure_borrow_member_by_name_const(payload, name) != NULL;
}

/* Takes the field class; the member's index is build->next_index before the call. */
static bool append_member(struct build *build, const char *name, bt_field_class *member)
{
	const bool done =
		member && bt_field_class_structure_append_member(build->payload, name, member) ==
				  BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK;

	bt_field_class_put_ref(member);
	build->next_index += done;
	return done;
}

static bool is_signed(const struct tdm_field *field)
{
	return field->kind == TDM_FIELD_SIGNED;
}

static bt_field_class *element_class(
	const struct build *build, const struct tdm_field *field, uint32_t size_bytes)
{
	bt_field_class *const made =
		is_signed(field)
			? bt_field_class_integer_signed_create(build->trace->trace_class)
			: bt_field_class_integer_unsigned_create(build->trace->trace_class);

	if (made) {
		bt_field_class_integer_set_field_value_range(made, 8 * (uint64_t)size_bytes);
		if (field->kind == TDM_FIELD_POINTER || field->kind == TDM_FIELD_CPUMASK) {
			bt_field_class_integer_set_preferred_display_base(
				made, BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL);
		}
	}
	return made;
}

static enum ir_op integer_op(const struct ir_trace *trace, uint32_t size_bytes, bool sign)
{
	const bool native = trace->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);

	if (size_bytes == 1) {
		return sign ? IR_S8 : IR_U8;
	}
	if (native && size_bytes == 2) {
		return sign ? IR_S16 : IR_U16;
	}
	if (native && size_bytes == 4) {
		return sign ? IR_S32 : IR_U32;
	}
	if (native && size_bytes == 8) {
		return sign ? IR_S64 : IR_U64;
	}
	return sign ? IR_SINT : IR_UINT;
}

static bool plan_text(struct build *build, const struct tdm_field *field, const char *name,
	struct ir_member *member)
{
	member->op = field->place == TDM_PLACE_FIXED ? IR_TEXT : IR_TEXT_SPAN;
	member->size_bytes = field->size_bytes;
	return append_member(build, name, bt_field_class_string_create(build->trace->trace_class));
}

/* A 16-byte integer is two of 8, the low half first. */
static void element_layout(const struct tdm_field *field, struct ir_member *member)
{
	const uint32_t parts = field->kind == TDM_FIELD_WIDE ? field->element_bytes / 8 : 1;

	member->element_bytes = field->kind == TDM_FIELD_WIDE ? 8 : field->element_bytes;
	member->element_count = (field->is_array ? field->element_count : 1) * parts;
	member->size_bytes = member->element_bytes * member->element_count;
}

static bool plan_fixed_array(struct build *build, const struct tdm_field *field, const char *name,
	struct ir_member *member)
{
	member->op = IR_ARRAY;
	element_layout(field, member);

	bt_field_class *const element = element_class(build, field, member->element_bytes);
	bt_field_class *const array =
		element ? bt_field_class_array_static_create(
				  build->trace->trace_class, element, member->element_count)
			: NULL;

	bt_field_class_put_ref(element);
	return append_member(build, name, array);
}

bt_field_class *ir_dynamic_array_class(const struct ir_trace *trace, bt_field_class *element,
	bt_field_class *length, const char *length_name, bool in_payload)
{
	(void)length_name;
	(void)in_payload;
#if TANDEM_HAVE_BT_2_1
	if (trace->mip_version >= 1) {
		bt_field_location *const location = bt_field_location_create(trace->trace_class,
			in_payload ? BT_FIELD_LOCATION_SCOPE_EVENT_PAYLOAD
				   : BT_FIELD_LOCATION_SCOPE_EVENT_COMMON_CONTEXT,
			&length_name, 1);
		bt_field_class *const array =
			location ? bt_field_class_array_dynamic_with_length_field_location_create(
					   trace->trace_class, element, location)
				 : NULL;

		bt_field_location_put_ref(location);
		return array;
	}
#endif
	return bt_field_class_array_dynamic_create(trace->trace_class, element, length);
}

/*
 * As LTTng does, the length is a member of its own, "_NAME_length": without one sink.ctf.fs makes up another member, and
 * what is read back would differ from what was written.
 */
static bool plan_dynamic_array(struct build *build, const struct tdm_field *field, const char *name,
	struct ir_member *member)
{
	char length_name[TDM_MEMBER_NAME_BYTES];
	bt_field_class *const length =
		bt_field_class_integer_unsigned_create(build->trace->trace_class);

	if (!length) {
		return false;
	}
	tdm_member_name("_", name, "_length", name_is_taken, build->payload, length_name);
	bt_field_class_integer_set_field_value_range(length, 32);
	bt_field_class_get_ref(length);
	if (!append_member(build, length_name, length)) {
		bt_field_class_put_ref(length);
		return false;
	}
	member->op = IR_ARRAY_SPAN;
	element_layout(field, member);
	member->index = build->next_index;

	bt_field_class *const element = element_class(build, field, member->element_bytes);
	bt_field_class *const array =
		element ? ir_dynamic_array_class(build->trace, element, length, length_name, true)
			: NULL;

	bt_field_class_put_ref(element);
	bt_field_class_put_ref(length);
	return append_member(build, name, array);
}

static bool plan_integer(struct build *build, const struct tdm_field *field, const char *name,
	struct ir_member *member)
{
	bt_field_class *const named = ir_enumeration_class(build->trace, build->plan->shown, field);

	member->op = integer_op(build->trace, field->element_bytes, is_signed(field));
	member->size_bytes = field->element_bytes;
	return append_member(
		build, name, named ? named : element_class(build, field, field->element_bytes));
}

/* The text of an event stands apart from its fields, in the specific context. */
static bool plan_print(struct build *build)
{
	if (!build->trace->options.print || !build->trace->print) {
		return true;
	}

	bt_field_class *const context = bt_field_class_structure_create(build->trace->trace_class);
	bt_field_class *const text = bt_field_class_string_create(build->trace->trace_class);
	const bool done = context && text &&
			  bt_field_class_structure_append_member(context, "print", text) ==
				  BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK &&
			  bt_event_class_set_specific_context_field_class(build->plan->event_class,
				  context) == BT_EVENT_CLASS_SET_FIELD_CLASS_STATUS_OK;

	bt_field_class_put_ref(text);
	bt_field_class_put_ref(context);
	build->plan->has_print = done;
	return done;
}

static bool plan_converted(struct build *build, const struct tdm_shown_field *shown,
	const char *name, struct ir_member *member)
{
	bt_field_class *class = NULL;

	member->size_bytes = shown->field.size_bytes;
	if (shown->conversion == TDM_CONVERT_RWBS) {
		member->op = IR_RWBS;
		class = bt_field_class_integer_unsigned_create(build->trace->trace_class);
		if (class) {
			bt_field_class_integer_set_field_value_range(class, 32);
		}
		return append_member(build, name, class);
	}
	member->op = IR_PRIO;
	return append_member(
		build, name, element_class(build, &shown->field, shown->field.element_bytes));
}

static bool plan_field(
	struct build *build, const struct tdm_shown_field *shown, struct ir_member *member)
{
	const struct tdm_field *const field = &shown->field;
	char name[TDM_MEMBER_NAME_BYTES];

	*member = (struct ir_member){
		.index = build->next_index,
		.offset_bytes = field->offset_bytes,
		.is_signed = is_signed(field),
		.field = field,
	};
	tdm_member_name("", field->unique_name, "", name_is_taken, build->payload, name);
	if (shown->conversion != TDM_CONVERT_NONE) {
		return plan_converted(build, shown, name, member);
	}
	if (tdm_shown_is_printk(build->plan->shown, shown)) {
		member->op = IR_PRINTK;
		member->size_bytes = field->size_bytes;
		return append_member(
			build, name, bt_field_class_string_create(build->trace->trace_class));
	}
	if (field->kind == TDM_FIELD_TEXT) {
		return plan_text(build, field, name, member);
	}
	if (field->place != TDM_PLACE_FIXED) {
		return plan_dynamic_array(build, field, name, member);
	}
	if (field->is_array || field->kind == TDM_FIELD_WIDE) {
		return plan_fixed_array(build, field, name, member);
	}
	return plan_integer(build, field, name, member);
}

static bool plan_payload(struct build *build)
{
	const struct tdm_shown_class *const shown = build->plan->shown;

	build->payload = bt_field_class_structure_create(build->trace->trace_class);
	build->plan->members = calloc(shown->field_count + 1, sizeof(*build->plan->members));
	if (!build->payload || !build->plan->members) {
		return false;
	}
	for (uint32_t i = 0; i < shown->field_count; i++) {
		if (!plan_field(build, &shown->fields[i], &build->plan->members[i])) {
			return false;
		}
	}
	build->plan->member_count = shown->field_count;
	return bt_event_class_set_payload_field_class(build->plan->event_class, build->payload) ==
	       BT_EVENT_CLASS_SET_FIELD_CLASS_STATUS_OK;
}

/* The common context is one for all classes of the stream class; a field that this one lacks is 0. */
static bool plan_context(struct build *build)
{
	const struct ir_trace *const trace = build->trace;
	const struct tdm_event_class *const class = build->plan->shown->source;

	build->plan->context = calloc(trace->common_count + 1, sizeof(*build->plan->context));
	if (!build->plan->context) {
		return false;
	}
	build->plan->context_count = trace->common_count;
	for (uint32_t i = 0; i < trace->common_count; i++) {
		const struct tdm_common_field *const common = &trace->commons[i];
		const struct tdm_field *const found = tdm_common_field_of(class, common);
		struct ir_member *const member = &build->plan->context[i];

		*member = (struct ir_member){
			.op = IR_ZERO,
			.index = IR_CONTEXT_COMMON + i,
			.is_signed = is_signed(common->field),
		};
		if (found) {
			member->op = integer_op(trace, found->size_bytes, member->is_signed);
			member->offset_bytes = found->offset_bytes;
			member->size_bytes = found->size_bytes;
			member->field = found;
		}
	}
	return true;
}

static struct ir_record_plan *make_plan(
	struct ir_trace *trace, struct ir_stream_class *class, const struct tdm_shown_class *shown)
{
	struct build build = { .trace = trace, .plan = calloc(1, sizeof(*build.plan)) };
	struct tdm_task_lesson lessons[2];
	bool done = false;

	if (!build.plan) {
		return NULL;
	}
	build.plan->shown = shown;
	build.plan->least_bytes = shown->source->fixed_bytes;
	build.plan->pid_offset = shown->source->pid_offset;
	build.plan->teaches = tdm_task_lessons(shown->source, lessons) > 0;
	build.plan->event_class = bt_event_class_create_with_id(class->stream_class, shown->index);
	done = build.plan->event_class &&
	       bt_event_class_set_name(build.plan->event_class, shown->name) ==
		       BT_EVENT_CLASS_SET_NAME_STATUS_OK &&
	       plan_payload(&build) && plan_context(&build) && plan_print(&build);
	bt_field_class_put_ref(build.payload);
	/* The stream class keeps its event classes alive. */
	bt_event_class_put_ref(build.plan->event_class);
	if (!done) {
		/* The plan stays: its stream class has the id now, and it cannot be given twice. */
		bt_current_thread_clear_error();
		build.plan->event_class = NULL;
	}
	return build.plan;
}

/* The plan of a shown class, made at its first record. */
static struct ir_record_plan *plan_of_shown(
	struct ir_trace *trace, struct ir_stream_class *class, const struct tdm_shown_class *shown)
{
	if (shown->index >= class->plan_count) {
		const uint32_t count = (uint32_t)tdm_names_count(trace->names);
		struct ir_record_plan **const plans = realloc(class->plans, count * sizeof(*plans));

		if (!plans) {
			return NULL;
		}
		memset(plans + class->plan_count, 0, (count - class->plan_count) * sizeof(*plans));
		class->plans = plans;
		class->plan_count = count;
	}
	if (!class->plans[shown->index]) {
		class->plans[shown->index] = make_plan(trace, class, shown);
	}
	return class->plans[shown->index];
}

static struct ir_record_choice *choice_of(struct ir_trace *trace, struct ir_stream_class *class,
	uint32_t event_id, const struct tdm_event_class *schema_class)
{
	uint32_t count = class->choice_count ? class->choice_count : 512;

	while (count <= event_id) {
		count *= 2;
	}
	if (count != class->choice_count) {
		struct ir_record_choice *const choices =
			realloc(class->choices, count * sizeof(*choices));

		if (!choices) {
			return NULL;
		}
		memset(choices + class->choice_count, 0,
			(count - class->choice_count) * sizeof(*choices));
		class->choices = choices;
		class->choice_count = count;
	}

	struct ir_record_choice *const choice = &class->choices[event_id];

	if (!choice->known) {
		choice->known = true;
		choice->names = tdm_names_get_choice(trace->names, schema_class);
	}
	return choice;
}

static const struct tdm_shown_class *choose(const struct ir_trace *trace,
	const struct tdm_names_choice *names, const uint8_t *payload, uint32_t payload_bytes)
{
	if (!names->by_number || names->offset_bytes > payload_bytes ||
		names->size_bytes > payload_bytes - names->offset_bytes) {
		return names->fallback;
	}

	const int64_t number =
		tdm_load_int(payload + names->offset_bytes, names->size_bytes, trace->big_endian);

	if (number < 0 || (uint64_t)number >= names->table_count || !names->by[number]) {
		return names->fallback;
	}
	return names->by[number];
}

const struct ir_record_plan *ir_record_plan_find(struct ir_trace *trace,
	struct ir_stream_class *stream_class, uint32_t event_id, const uint8_t *payload,
	uint32_t payload_bytes)
{
	struct ir_record_choice *choice = NULL;

	/* A record by number comes here each time; what it needs is there already. */
	if (event_id < stream_class->choice_count && stream_class->choices[event_id].known) {
		choice = &stream_class->choices[event_id];
	} else {
		const struct tdm_event_class *const schema_class =
			tdm_schema_find(trace->schema, event_id);

		if (!schema_class || event_id > MAX_EVENT_ID) {
			ir_trace_refuse(
				trace, event_id, NULL, "their event id has no format in the input");
			return NULL;
		}
		if (schema_class->fault) {
			ir_trace_refuse(trace, event_id, schema_class->name, schema_class->fault);
			return NULL;
		}
		choice = choice_of(trace, stream_class, event_id, schema_class);
	}

	const struct tdm_shown_class *const shown =
		choice ? choose(trace, &choice->names, payload, payload_bytes) : NULL;
	struct ir_record_plan *const plan =
		shown ? plan_of_shown(trace, stream_class, shown) : NULL;

	if (!plan || !plan->event_class) {
		ir_trace_refuse(trace, event_id, shown ? shown->name : NULL,
			"babeltrace2 does not take their event class");
		return NULL;
	}
	if (!choice->names.by_number) {
		choice->only = plan;
	}
	return plan;
}
