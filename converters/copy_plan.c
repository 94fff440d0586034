/* SPDX-License-Identifier: MIT */
#include "copy_plan.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/utf8.h>

/* No record is longer than a ring-buffer page: a class that wants more has no records that fit. */
#define RECORD_BYTES_MAX (1u << 20)

unsigned int tdm_copy_length_bytes(const struct tdm_field *field)
{
	return field->place == TDM_PLACE_TRAILING ? 4 : 2;
}

bool tdm_copy_is_list(const struct tdm_shown_field *shown)
{
	return shown->field.place != TDM_PLACE_FIXED && shown->field.kind != TDM_FIELD_TEXT &&
	       shown->conversion != TDM_CONVERT_RWBS;
}

static bool is_fixed_run(const struct tdm_shown_class *shown_class,
	const struct tdm_shown_field *shown, bool big_endian)
{
	const struct tdm_field *const field = &shown->field;

	return field->place == TDM_PLACE_FIXED && !tdm_shown_is_printk(shown_class, shown) &&
	       shown->conversion == TDM_CONVERT_NONE && field->kind != TDM_FIELD_TEXT &&
	       !(field->kind == TDM_FIELD_WIDE && big_endian);
}

static struct tdm_copy_step make_step(const struct tdm_shown_class *shown_class,
	const struct tdm_shown_field *shown, bool big_endian)
{
	const struct tdm_field *const field = &shown->field;
	struct tdm_copy_step step = {
		.kind = TDM_COPY_RUN,
		.from_bytes = field->offset_bytes,
		.size_bytes = field->size_bytes,
		.field = field,
	};

	if (tdm_shown_is_printk(shown_class, shown)) {
		step.kind = TDM_COPY_PRINTK;
	} else if (shown->conversion == TDM_CONVERT_RWBS) {
		step.kind = TDM_COPY_RWBS;
	} else if (shown->conversion == TDM_CONVERT_PRIO) {
		step.kind = field->size_bytes == 4 ? TDM_COPY_PRIO4 : TDM_COPY_PRIO;
	} else if (field->kind == TDM_FIELD_TEXT) {
		step.kind = field->place == TDM_PLACE_FIXED && field->size_bytes == 16
				    ? TDM_COPY_COMM
				    : TDM_COPY_TEXT;
	} else if (field->place != TDM_PLACE_FIXED) {
		step.kind = TDM_COPY_LIST;
	} else if (!is_fixed_run(shown_class, shown, big_endian)) {
		step.kind = TDM_COPY_WIDE;
	}
	return step;
}

enum tdm_status tdm_copy_plan_make(
	const struct tdm_shown_class *shown, bool big_endian, struct tdm_copy_plan *plan)
{
	*plan = (struct tdm_copy_plan){ .shown = shown };
	plan->steps = calloc(shown->field_count + 1u, sizeof(*plan->steps));
	if (!plan->steps) {
		return TDM_ERR_NOMEM;
	}
	for (uint32_t i = 0; i < shown->field_count; i++) {
		const struct tdm_shown_field *const field = &shown->fields[i];
		const uint64_t end = (uint64_t)field->field.offset_bytes + field->field.size_bytes;
		struct tdm_copy_step *const last =
			plan->step_count ? &plan->steps[plan->step_count - 1] : NULL;

		if (field->field.place != TDM_PLACE_TRAILING && end > plan->least_bytes) {
			plan->least_bytes = end < RECORD_BYTES_MAX ? (uint32_t)end : UINT32_MAX;
		}
		if (is_fixed_run(shown, field, big_endian) && last && last->kind == TDM_COPY_RUN &&
			last->from_bytes + last->size_bytes == field->field.offset_bytes) {
			last->size_bytes += field->field.size_bytes;
		} else {
			plan->steps[plan->step_count++] = make_step(shown, field, big_endian);
		}
	}
	if (shown->source->fixed_bytes > plan->least_bytes) {
		plan->least_bytes = shown->source->fixed_bytes;
	}
	for (uint32_t i = 0; i < plan->step_count; i++) {
		struct tdm_copy_step *const step = &plan->steps[i];

		plan->most_bytes += step->size_bytes + 4u;
		if (step->kind == TDM_COPY_RUN && step->size_bytes == 4) {
			step->kind = TDM_COPY_4;
		} else if (step->kind == TDM_COPY_RUN && step->size_bytes == 8) {
			step->kind = TDM_COPY_8;
		} else if (step->kind == TDM_COPY_RUN && step->size_bytes % 8 == 0 &&
			   step->size_bytes <= 64) {
			step->kind = TDM_COPY_WORDS;
		}
	}
	return TDM_OK;
}

void tdm_copy_plan_release(struct tdm_copy_plan *plan)
{
	free(plan->steps);
	*plan = (struct tdm_copy_plan){ 0 };
}

uint8_t *tdm_copy_text(struct tdm_copy_state *state, const uint8_t *text, size_t text_bytes,
	uint8_t *out, const uint8_t *limit)
{
	const size_t length = text_bytes ? tdm_text_length(text, text_bytes) : 0;

	if ((size_t)(limit - out) <= length) {
		return NULL;
	}
	if (tdm_utf8_is_valid(text, length)) {
		if (length) {
			memcpy(out, text, length);
		}
		out[length] = '\0';
		return out + length + 1;
	}
	state->scratch.size = 0;
	if (tdm_utf8_append_shown(&state->scratch, text, length) != TDM_OK ||
		(size_t)(limit - out) <= state->scratch.size) {
		return NULL;
	}
	memcpy(out, state->scratch.bytes, state->scratch.size);
	out[state->scratch.size] = '\0';
	return out + state->scratch.size + 1;
}

uint8_t *tdm_copy_comm_slowly(
	struct tdm_copy_state *state, const uint8_t *text, uint8_t *out, const uint8_t *limit)
{
	return tdm_copy_text(state, text, 16, out, limit);
}

static void store_uint(uint8_t *out, uint64_t value, size_t size_bytes, bool big_endian)
{
	for (size_t i = 0; i < size_bytes; i++) {
		out[big_endian ? size_bytes - 1 - i : i] = (uint8_t)(value >> (8 * i));
	}
}

static void swap_halves(uint8_t *out, const uint8_t *from, size_t size_bytes)
{
	for (size_t i = 0; i + 16 <= size_bytes; i += 16) {
		memcpy(out + i, from + i + 8, 8);
		memcpy(out + i + 8, from + i, 8);
	}
}

/* Bytes of the field in the record, empty (and counted) where a locator is wrong. */
static struct tdm_span span_of(const struct tdm_copy_step *step, struct tdm_copy_state *state,
	const uint8_t *payload, uint32_t payload_bytes)
{
	struct tdm_span span = { 0 };

	if (!tdm_field_span(step->field, payload, payload_bytes, state->big_endian, &span)) {
		state->bad_locators++;
		span = (struct tdm_span){ 0 };
	}
	return span;
}

static uint8_t *copy_list(const struct tdm_copy_step *step, struct tdm_copy_state *state,
	struct tdm_span span, uint8_t *out, const uint8_t *limit)
{
	const struct tdm_field *const field = step->field;
	const unsigned int length_bytes = tdm_copy_length_bytes(field);
	const bool wide = field->kind == TDM_FIELD_WIDE;
	const uint32_t element_bytes = wide ? 16 : field->element_bytes;
	const uint32_t count = element_bytes ? span.size_bytes / element_bytes : 0;
	const uint32_t size_bytes = count * element_bytes;

	if ((size_t)(limit - out) < (size_t)length_bytes + size_bytes) {
		return NULL;
	}
	store_uint(out, wide ? count * 2u : count, length_bytes, state->big_endian);
	out += length_bytes;
	if (wide && state->big_endian) {
		swap_halves(out, span.bytes, size_bytes);
	} else if (size_bytes) {
		memcpy(out, span.bytes, size_bytes);
	}
	return out + size_bytes;
}

static uint8_t *copy_printk(const struct tdm_copy_step *step, struct tdm_copy_state *state,
	const uint8_t *from, uint8_t *out, const uint8_t *limit)
{
	const uint64_t address = tdm_load_uint(from, step->size_bytes, state->big_endian);
	const char *const format = tdm_trace_printk_format(state->trace, address);
	char text[24];

	if (!format) {
		snprintf(text, sizeof(text), "0x%" PRIx64, address);
	}
	return tdm_copy_text(state, (const uint8_t *)(format ? format : text),
		strlen(format ? format : text), out, limit);
}

uint8_t *tdm_copy_step(const struct tdm_copy_step *step, struct tdm_copy_state *state,
	const uint8_t *payload, uint32_t payload_bytes, uint8_t *out, const uint8_t *limit)
{
	const uint8_t *const from = payload + step->from_bytes;
	struct tdm_span span = { 0 };

	switch (step->kind) {
	case TDM_COPY_PRIO:
		store_uint(out, tdm_load_uint(from, step->size_bytes, state->big_endian) - 100u,
			step->size_bytes, state->big_endian);
		return out + step->size_bytes;
	case TDM_COPY_WIDE:
		swap_halves(out, from, step->size_bytes);
		return out + step->size_bytes;
	case TDM_COPY_TEXT:
		span = span_of(step, state, payload, payload_bytes);
		return tdm_copy_text(state, span.bytes, span.size_bytes, out, limit);
	case TDM_COPY_LIST:
		return copy_list(
			step, state, span_of(step, state, payload, payload_bytes), out, limit);
	case TDM_COPY_RWBS:
		span = span_of(step, state, payload, payload_bytes);
		store_uint(out, tdm_names_rwbs(span.bytes, span.size_bytes), 4, state->big_endian);
		return out + 4;
	case TDM_COPY_PRINTK:
		return copy_printk(step, state, from, out, limit);
	case TDM_COPY_4:
	case TDM_COPY_8:
	case TDM_COPY_WORDS:
	case TDM_COPY_RUN:
	case TDM_COPY_PRIO4:
	case TDM_COPY_COMM:
		break; /* tdm_copy_plan_run() does these itself */
	}
	return NULL;
}
