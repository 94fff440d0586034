/* SPDX-License-Identifier: MIT */
/*
 * ir_event.c - a record's bytes become the fields of an event, by the plan of its class.
 */
#include "ir_class.h"
#include "ir_sample.h"
#include <string.h>
#include <tandem/cursor.h>
#include <tandem/utf8.h>

static void set_text(
	struct ir_trace *trace, bt_field *field, const uint8_t *bytes, uint32_t size_bytes)
{
	const size_t length = tdm_text_length(bytes, size_bytes);

	if (length == 0) {
		/* Clearing alone leaves the bytes of the text before for those who look for its NUL (2.0). */
		bt_field_string_set_value(field, "");
		return;
	}
	if (tdm_utf8_is_valid(bytes, length)) {
		if (length < size_bytes) {
			bt_field_string_set_value(field, (const char *)bytes);
		} else {
			bt_field_string_clear(field);
			bt_field_string_append_with_length(field, (const char *)bytes, length);
		}
		return;
	}
	trace->scratch.size = 0;
	bt_field_string_clear(field);
	if (tdm_utf8_append_shown(&trace->scratch, bytes, length) == TDM_OK) {
		bt_field_string_append_with_length(
			field, (const char *)trace->scratch.bytes, trace->scratch.size);
	}
}

static void set_elements(const struct ir_trace *trace, const struct ir_member *member,
	bt_field *array, const uint8_t *bytes, uint64_t count)
{
	const uint32_t step = member->element_bytes;
	/* The halves of 16-byte integers of a big-endian kernel stand in the other order. */
	const uint64_t swap = member->field->kind == TDM_FIELD_WIDE && trace->big_endian ? 1 : 0;

	for (uint64_t i = 0; i < count; i++) {
		bt_field *const element =
			bt_field_array_borrow_element_field_by_index(array, i ^ swap);

		if (member->is_signed) {
			bt_field_integer_signed_set_value(
				element, tdm_load_int(bytes + i * step, step, trace->big_endian));
		} else {
			bt_field_integer_unsigned_set_value(
				element, tdm_load_uint(bytes + i * step, step, trace->big_endian));
		}
	}
}

static void set_array_span(struct ir_trace *trace, const struct ir_member *member,
	bt_field *structure, bt_field *array, const struct tdm_span *span)
{
	uint64_t count = span->size_bytes / member->element_bytes;

	if (member->field->kind == TDM_FIELD_WIDE) {
		count &= ~UINT64_C(1);
	}
	bt_field_integer_unsigned_set_value(
		bt_field_structure_borrow_member_field_by_index(structure, member->index - 1),
		count);
	if (bt_field_array_dynamic_set_length(array, count) !=
		BT_FIELD_DYNAMIC_ARRAY_SET_LENGTH_STATUS_OK) {
		bt_current_thread_clear_error();
		return;
	}
	set_elements(trace, member, array, span->bytes, count);
}

static void set_span(struct ir_trace *trace, const struct ir_member *member, bt_field *structure,
	bt_field *field, const uint8_t *payload, uint32_t payload_bytes)
{
	struct tdm_span span = { NULL, 0 };

	if (!tdm_field_span(member->field, payload, payload_bytes, trace->big_endian, &span)) {
		trace->bad_places++;
		span.size_bytes = 0;
	}
	if (member->op == IR_TEXT_SPAN) {
		set_text(trace, field, span.bytes, span.size_bytes);
	} else {
		set_array_span(trace, member, structure, field, &span);
	}
}

static void set_rwbs(struct ir_trace *trace, const struct ir_member *member, bt_field *field,
	const uint8_t *payload, uint32_t payload_bytes)
{
	struct tdm_span span = { NULL, 0 };

	if (!tdm_field_span(member->field, payload, payload_bytes, trace->big_endian, &span)) {
		trace->bad_places++;
		span.size_bytes = 0;
	}
	bt_field_integer_unsigned_set_value(field, tdm_names_rwbs(span.bytes, span.size_bytes));
}

/* 100 less, in as many bits as the field has: that is what its class holds. */
static void set_prio(const struct ir_trace *trace, const struct ir_member *member, bt_field *field,
	const uint8_t *at)
{
	const unsigned int unused_bits = 64 - 8 * member->size_bytes;
	const uint64_t shifted = (tdm_load_uint(at, member->size_bytes, trace->big_endian) - 100)
				 << unused_bits;

	if (member->is_signed) {
		bt_field_integer_signed_set_value(field, (int64_t)shifted >> unused_bits);
	} else {
		bt_field_integer_unsigned_set_value(field, shifted >> unused_bits);
	}
}

static void set_printk(
	struct ir_trace *trace, const struct ir_member *member, bt_field *field, const uint8_t *at)
{
	const uint64_t address = tdm_load_uint(at, member->size_bytes, trace->big_endian);
	const char *const format = tdm_trace_printk_format(trace->machine->trace, address);

	if (format) {
		set_text(trace, field, (const uint8_t *)format, (uint32_t)strlen(format) + 1);
		return;
	}

	struct tdm_buffer text = { 0 };

	if (tdm_buffer_printf(&text, "0x%llx", (unsigned long long)address) == TDM_OK) {
		set_text(trace, field, text.bytes, (uint32_t)text.size);
	}
	tdm_buffer_release(&text);
}

/* One load of a size that is known when this is compiled. */
#define SET(type, is)                                            \
	do {                                                     \
		type value;                                      \
                                                                 \
		memcpy(&value, at, sizeof(value));               \
		bt_field_integer_##is##_set_value(field, value); \
	} while (0)

static inline void set_member(struct ir_trace *trace, const struct ir_member *member,
	bt_field *structure, const uint8_t *payload, uint32_t payload_bytes)
{
	bt_field *const field =
		bt_field_structure_borrow_member_field_by_index(structure, member->index);
	const uint8_t *const at = payload + member->offset_bytes;

	switch (member->op) {
	case IR_U8:
		SET(uint8_t, unsigned);
		break;
	case IR_U16:
		SET(uint16_t, unsigned);
		break;
	case IR_U32:
		SET(uint32_t, unsigned);
		break;
	case IR_U64:
		SET(uint64_t, unsigned);
		break;
	case IR_S8:
		SET(int8_t, signed);
		break;
	case IR_S16:
		SET(int16_t, signed);
		break;
	case IR_S32:
		SET(int32_t, signed);
		break;
	case IR_S64:
		SET(int64_t, signed);
		break;
	case IR_UINT:
		bt_field_integer_unsigned_set_value(
			field, tdm_load_uint(at, member->size_bytes, trace->big_endian));
		break;
	case IR_SINT:
		bt_field_integer_signed_set_value(
			field, tdm_load_int(at, member->size_bytes, trace->big_endian));
		break;
	case IR_TEXT:
		set_text(trace, field, at, member->size_bytes);
		break;
	case IR_ARRAY:
		set_elements(trace, member, field, at, member->element_count);
		break;
	case IR_TEXT_SPAN:
	case IR_ARRAY_SPAN:
		set_span(trace, member, structure, field, payload, payload_bytes);
		break;
	case IR_PRIO:
		set_prio(trace, member, field, at);
		break;
	case IR_RWBS:
		set_rwbs(trace, member, field, payload, payload_bytes);
		break;
	case IR_PRINTK:
		set_printk(trace, member, field, at);
		break;
	case IR_ZERO:
		if (member->is_signed) {
			bt_field_integer_signed_set_value(field, 0);
		} else {
			bt_field_integer_unsigned_set_value(field, 0);
		}
		break;
	}
}

void ir_event_print(struct ir_trace *trace, const struct ir_record_plan *plan, bt_event *event,
	const struct tdm_slot *slot, uint32_t cpu)
{
	bt_field *const field = bt_field_structure_borrow_member_field_by_index(
		bt_event_borrow_specific_context_field(event), 0);
	size_t size_bytes = 0;
	const char *const text = tdm_print_text_of(trace->print, plan->shown->source, slot->payload,
		slot->payload_bytes, cpu, slot->time_ns, &size_bytes);

	set_text(trace, field, (const uint8_t *)text, text ? (uint32_t)size_bytes : 0);
}

void ir_event_fill(struct ir_trace *trace, const struct ir_record_plan *plan, bt_event *event,
	const struct tdm_slot *slot, int32_t tid, const char *procname, size_t procname_bytes)
{
	const uint8_t *const payload = slot->payload;
	const uint32_t payload_bytes = slot->payload_bytes;
	bt_field *const context = bt_event_borrow_common_context_field(event);

	bt_field_integer_signed_set_value(
		bt_field_structure_borrow_member_field_by_index(context, IR_CONTEXT_TID), tid);
	set_text(trace,
		bt_field_structure_borrow_member_field_by_index(context, IR_CONTEXT_PROCNAME),
		(const uint8_t *)procname, (uint32_t)procname_bytes);
	for (uint32_t i = 0; i < plan->context_count; i++) {
		set_member(trace, &plan->context[i], context, payload, payload_bytes);
	}
	if (trace->has_samples) {
		ir_sample_fill(trace, context, slot->sample);
	}
	if (plan->member_count > 0) {
		bt_field *const fields = bt_event_borrow_payload_field(event);

		for (uint32_t i = 0; i < plan->member_count; i++) {
			set_member(trace, &plan->members[i], fields, payload, payload_bytes);
		}
	}
}
