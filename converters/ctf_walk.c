/* SPDX-License-Identifier: MIT */
#include "ctf_walk.h"
#include <string.h>

enum {
	DEPTH_MAX = 96
};

#define STEPS_MAX (UINT64_C(1) << 24)

static bool fail(struct ctf_walk *walk, const char *fault)
{
	walk->fault = fault;
	return false;
}

static bool align(struct ctf_walk *walk, uint32_t align_bits)
{
	const uint64_t mask = (uint64_t)align_bits - 1;

	if (align_bits > 1) {
		walk->at_bits = (walk->at_bits + mask) & ~mask;
	}
	return walk->at_bits <= walk->end_bits ||
	       fail(walk, "alignment passes the end of the content");
}

/* Bits of an integer: in little-endian traces the first bit is the lowest of its byte, in big-endian ones the highest. */
static uint64_t load_bits(
	const uint8_t *bytes, uint64_t at_bits, uint32_t size_bits, bool big_endian)
{
	uint64_t value = 0;

	if ((at_bits & 7) == 0 && (size_bits & 7) == 0) {
		const uint8_t *const at = bytes + at_bits / 8;
		const uint32_t count = size_bits / 8;

		for (uint32_t i = 0; i < count; i++) {
			value = value << 8 | at[big_endian ? i : count - 1 - i];
		}
		return value;
	}
	for (uint32_t i = 0; i < size_bits; i++) {
		const uint64_t bit_at = at_bits + i;
		const uint8_t byte = bytes[bit_at / 8];

		if (big_endian) {
			value = value << 1 | ((byte >> (7 - (bit_at & 7))) & 1u);
		} else {
			value |= (uint64_t)((byte >> (bit_at & 7)) & 1u) << i;
		}
	}
	return value;
}

/* A time stamp of fewer bits than 64 counts on from the last one. */
void ctf_walk_clock(struct ctf_walk *walk, uint64_t value, uint32_t size_bits)
{
	if (size_bits < 64) {
		const uint64_t span = UINT64_C(1) << size_bits;
		const uint64_t low = walk->clock & (span - 1);

		value = (walk->clock - low) + value + (value < low ? span : 0);
	}
	walk->clock = value;
}

static bool over_integer(struct ctf_walk *walk, const struct tsdl_type *type, uint64_t *value)
{
	if (!align(walk, type->align_bits)) {
		return false;
	}
	if (type->size_bits > walk->end_bits - walk->at_bits) {
		return fail(walk, "a number passes the end of the content");
	}
	*value = load_bits(walk->bytes, walk->at_bits, type->size_bits, type->is_big_endian);
	walk->at_bits += type->size_bits;
	if (type->is_signed && type->size_bits < 64 && (*value >> (type->size_bits - 1)) & 1) {
		*value |= ~UINT64_C(0) << type->size_bits;
	}
	if (type->has_clock) {
		ctf_walk_clock(walk, *value, type->size_bits);
	}
	return true;
}

static bool keep(
	struct ctf_walk *walk, const char *name, const struct tsdl_type *type, uint64_t value)
{
	if (walk->value_count == CTF_WALK_VALUES_MAX) {
		/* Elements of an array have the same names again and again: the newest counts. */
		for (uint32_t i = walk->value_count; i-- > 0;) {
			if (strcmp(walk->values[i].name, name) == 0) {
				walk->values[i].value = value;
				walk->values[i].type = type;
				return true;
			}
		}
		return fail(walk, "too many lengths and selectors in one event");
	}
	walk->values[walk->value_count++] = (struct ctf_walk_value){ name, value, type };
	return true;
}

static const struct ctf_walk_value *find_value(const struct ctf_walk *walk, const char *name)
{
	for (uint32_t i = walk->value_count; i-- > 0;) {
		const char *const own = walk->values[i].name;

		if (strcmp(own, name) == 0 || (own[0] == '_' && strcmp(own + 1, name) == 0)) {
			return &walk->values[i];
		}
	}
	return NULL;
}

bool ctf_walk_find(const struct ctf_walk *walk, const char *name, uint64_t *value)
{
	const struct ctf_walk_value *const found = find_value(walk, name);

	*value = found ? found->value : 0;
	return found != NULL;
}

static bool over_string(struct ctf_walk *walk)
{
	const uint8_t *nul = NULL;

	if (!align(walk, 8)) {
		return false;
	}
	nul = memchr(walk->bytes + walk->at_bits / 8, 0, (walk->end_bits - walk->at_bits) / 8);
	if (!nul) {
		return fail(walk, "a text without an end");
	}
	walk->at_bits = (uint64_t)(nul + 1 - walk->bytes) * 8;
	return true;
}

static bool over_elements(struct ctf_walk *walk, const struct tsdl_type *element, uint64_t count)
{
	if (!align(walk, element->align_bits)) {
		return false;
	}
	/* Numbers that lie close are passed as one. */
	if (element->kind == TSDL_INTEGER && element->size_bits % element->align_bits == 0) {
		if (count > (walk->end_bits - walk->at_bits) / element->size_bits) {
			return fail(walk, "an array passes the end of the content");
		}
		walk->at_bits += count * element->size_bits;
		return true;
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t before = walk->at_bits;

		if (++walk->steps > STEPS_MAX) {
			return fail(walk, "an array of too many elements");
		}
		if (!ctf_walk_over(walk, element)) {
			return false;
		}
		if (walk->at_bits == before) {
			return true; /* of no bits, as all the others are then */
		}
	}
	return true;
}

static bool over_variant(struct ctf_walk *walk, const struct tsdl_type *type)
{
	const struct ctf_walk_value *const selector =
		type->reference ? find_value(walk, type->reference) : NULL;
	const struct tsdl_type *const selected = selector ? selector->type : NULL;

	if (!selected || selected->kind != TSDL_ENUM) {
		return fail(walk, "a variant whose selector is no enumeration before it");
	}
	for (uint32_t i = 0; i < selected->mapping_count; i++) {
		const struct tsdl_mapping *const mapping = &selected->mappings[i];
		const bool fits = selected->is_signed
					  ? (int64_t)selector->value >= mapping->low &&
						    (int64_t)selector->value <= mapping->high
					  : selector->value >= (uint64_t)mapping->low &&
						    selector->value <= (uint64_t)mapping->high;

		for (uint32_t j = 0; fits && mapping->label && j < type->field_count; j++) {
			const char *const option = type->fields[j].name;

			if (strcmp(option, mapping->label) == 0 ||
				(option[0] == '_' && strcmp(option + 1, mapping->label) == 0) ||
				(mapping->label[0] == '_' &&
					strcmp(option, mapping->label + 1) == 0)) {
				return ctf_walk_over(walk, type->fields[j].type);
			}
		}
	}
	return fail(walk, "a selector without an option");
}

bool ctf_walk_field(struct ctf_walk *walk, const struct tsdl_field *field)
{
	uint64_t value = 0;

	if (field->type->kind != TSDL_INTEGER && field->type->kind != TSDL_ENUM) {
		return ctf_walk_over(walk, field->type);
	}
	return over_integer(walk, field->type, &value) &&
	       (!field->is_referenced || keep(walk, field->name, field->type, value));
}

static bool over_struct(struct ctf_walk *walk, const struct tsdl_type *type)
{
	if (!align(walk, type->align_bits)) {
		return false;
	}
	for (uint32_t i = 0; i < type->field_count; i++) {
		if (!ctf_walk_field(walk, &type->fields[i])) {
			return false;
		}
	}
	return true;
}

static bool over_any(struct ctf_walk *walk, const struct tsdl_type *type)
{
	uint64_t value = 0;

	switch (type->kind) {
	case TSDL_INTEGER:
	case TSDL_ENUM:
		return over_integer(walk, type, &value);
	case TSDL_FLOAT:
		if (!align(walk, type->align_bits)) {
			return false;
		}
		if (type->size_bits > walk->end_bits - walk->at_bits) {
			return fail(walk, "a number passes the end of the content");
		}
		walk->at_bits += type->size_bits;
		return true;
	case TSDL_STRING:
		return over_string(walk);
	case TSDL_STRUCT:
		return over_struct(walk, type);
	case TSDL_ARRAY:
		return over_elements(walk, type->element, type->length);
	case TSDL_SEQUENCE:
		if (!ctf_walk_find(walk, type->reference, &value)) {
			return fail(walk, "a sequence whose length is no field before it");
		}
		return over_elements(walk, type->element, value);
	case TSDL_VARIANT:
		return over_variant(walk, type);
	}
	return fail(walk, "a type that is unknown");
}

bool ctf_walk_over(struct ctf_walk *walk, const struct tsdl_type *type)
{
	bool good;

	if (walk->depth >= DEPTH_MAX) {
		return fail(walk, "types that are too deep");
	}
	walk->depth++;
	good = over_any(walk, type);
	walk->depth--;
	return good;
}
