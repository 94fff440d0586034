/* SPDX-License-Identifier: MIT */
#include "ctf_events.h"
#include <stdlib.h>
#include <string.h>
#include <tandem/cursor.h>

enum {
	IDS_MAX = 1 << 20,
	STEPS_MAX = 4096 /* of one event class; more are walked type by type */
};

enum step_kind {
	STEP_SKIP,   /* whole bytes, from a byte on */
	STEP_STRING, /* to its NUL */
	STEP_FIELD,  /* anything else */
	STEP_TYPE
};

struct step {
	enum step_kind kind;
	uint64_t skip_bits;
	const struct tsdl_field *field;
	const struct tsdl_type *type;
};

struct tdm_ctf_event_plan {
	size_t step_count;
	struct step steps[];
};

/* ---- plans ---- */

struct draft {
	struct step steps[STEPS_MAX];
	size_t count;
	bool is_full;
};

static void add_step(struct draft *draft, struct step step)
{
	struct step *const last = draft->count ? &draft->steps[draft->count - 1] : NULL;

	if (step.kind == STEP_SKIP && last && last->kind == STEP_SKIP) {
		last->skip_bits += step.skip_bits;
	} else if (draft->count < STEPS_MAX) {
		draft->steps[draft->count++] = step;
	} else {
		draft->is_full = true;
	}
}

/* Bits of a type that needs no look at its bytes: numbers of whole bytes that stand at any byte. 0: there is none such. */
static uint64_t plain_bits(const struct tsdl_type *type)
{
	uint64_t bits = 0;

	switch (type->kind) {
	case TSDL_INTEGER:
	case TSDL_ENUM:
	case TSDL_FLOAT:
		return type->align_bits == 8 && type->size_bits % 8 == 0 && !type->has_clock
			       ? type->size_bits
			       : 0;
	case TSDL_ARRAY:
		bits = type->length < (1u << 20) ? plain_bits(type->element) : 0;
		return bits * type->length;
	default:
		return 0;
	}
}

static void add_type(struct draft *draft, const struct tsdl_type *type)
{
	if (type->kind != TSDL_STRUCT || type->align_bits > 8) {
		add_step(draft, (struct step){ .kind = STEP_TYPE, .type = type });
		return;
	}
	if (type->align_bits == 8) {
		add_step(draft, (struct step){ .kind = STEP_SKIP });
	}
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct tsdl_field *const field = &type->fields[i];
		const uint64_t bits = field->is_referenced ? 0 : plain_bits(field->type);

		if (bits) {
			add_step(draft, (struct step){ .kind = STEP_SKIP, .skip_bits = bits });
		} else if (field->type->kind == TSDL_STRING) {
			add_step(draft, (struct step){ .kind = STEP_STRING });
		} else {
			add_step(draft, (struct step){ .kind = STEP_FIELD, .field = field });
		}
	}
}

static struct tdm_ctf_event_plan *plan_event(
	const struct tsdl_stream *stream, const struct tsdl_event *event, struct draft *draft)
{
	const struct tsdl_type *const parts[] = { stream->event_context, event->context,
		event->fields };
	struct tdm_ctf_event_plan *plan;

	draft->count = 0;
	draft->is_full = false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i]) {
			add_type(draft, parts[i]);
		}
	}
	if (draft->is_full) {
		draft->count = 0;
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			if (parts[i]) {
				add_step(draft,
					(struct step){ .kind = STEP_TYPE, .type = parts[i] });
			}
		}
	}
	plan = malloc(sizeof(*plan) + draft->count * sizeof(struct step));
	if (plan) {
		plan->step_count = draft->count;
		memcpy(plan->steps, draft->steps, draft->count * sizeof(struct step));
	}
	return plan;
}

/* "struct { enum : uintN { compact, extended } id; variant <id> { struct { stamp } compact; struct { u32 id; u64 stamp } extended } }" */
static void find_short_header(struct tdm_ctf_events *events)
{
	const struct tsdl_type *const header = events->stream->event_header;
	const struct tsdl_type *const id =
		header && header->kind == TSDL_STRUCT && header->field_count == 2
			? header->fields[0].type
			: NULL;
	const struct tsdl_type *const variant = id ? header->fields[1].type : NULL;

	if (!variant || header->align_bits > 8 || id->kind != TSDL_ENUM || id->is_signed ||
		id->is_big_endian || id->align_bits > 8 || id->mapping_count != 2 ||
		variant->kind != TSDL_VARIANT || variant->field_count != 2 || id->size_bits > 16 ||
		!id->mappings[0].label || !id->mappings[1].label) {
		return;
	}

	const uint64_t escape = (UINT64_C(1) << id->size_bits) - 1;
	const struct tsdl_type *const small = variant->fields[0].type;
	const struct tsdl_type *const large = variant->fields[1].type;
	const char *const small_name = variant->fields[0].name;
	const char *const large_name = variant->fields[1].name;

	if (strcmp(small_name + (*small_name == '_'), id->mappings[0].label) != 0 ||
		strcmp(large_name + (*large_name == '_'), id->mappings[1].label) != 0 ||
		id->mappings[0].low != 0 || (uint64_t)id->mappings[0].high != escape - 1 ||
		(uint64_t)id->mappings[1].low != escape ||
		(uint64_t)id->mappings[1].high != escape || small->kind != TSDL_STRUCT ||
		small->field_count != 1 || small->align_bits > 8 || large->kind != TSDL_STRUCT ||
		large->field_count != 2 || large->align_bits > 8) {
		return;
	}

	const struct tsdl_type *const stamp = small->fields[0].type;
	const struct tsdl_type *const long_id = large->fields[0].type;
	const struct tsdl_type *const long_stamp = large->fields[1].type;
	const bool fits_small =
		stamp->kind == TSDL_INTEGER && stamp->has_clock && !stamp->is_big_endian &&
		!stamp->is_signed && (id->size_bits + stamp->size_bits) % 8 == 0 &&
		id->size_bits + stamp->size_bits <= 64 && id->size_bits % stamp->align_bits == 0 &&
		small->align_bits <= stamp->align_bits;
	const bool fits_large = long_id->kind == TSDL_INTEGER && long_id->size_bits == 32 &&
				long_id->align_bits == 8 && !long_id->is_big_endian &&
				long_stamp->kind == TSDL_INTEGER && long_stamp->size_bits == 64 &&
				long_stamp->align_bits == 8 && long_stamp->has_clock &&
				!long_stamp->is_big_endian;

	events->is_short_header = fits_small && fits_large;
	events->id_bits = id->size_bits;
	events->stamp_bits = stamp->size_bits;
}

enum tdm_status tdm_ctf_events_plan(const struct tsdl_metadata *metadata,
	const struct tsdl_stream *stream, struct tdm_ctf_events *events)
{
	struct draft *const draft = malloc(sizeof(*draft));
	enum tdm_status status = draft ? TDM_OK : TDM_ERR_NOMEM;

	*events = (struct tdm_ctf_events){ .stream = stream };
	find_short_header(events);
	for (size_t i = 0; i < metadata->event_count && status == TDM_OK; i++) {
		const struct tsdl_event *const event = &metadata->events[i];

		if (event->stream_id != stream->id || event->id >= IDS_MAX) {
			continue;
		}
		if (event->id >= events->by_id_count) {
			const size_t room = (event->id | 63u) + 1u;
			struct tdm_ctf_event_plan **const grown =
				realloc(events->by_id, room * sizeof(*grown));

			if (!grown) {
				status = TDM_ERR_NOMEM;
				break;
			}
			memset(grown + events->by_id_count, 0,
				(room - events->by_id_count) * sizeof(*grown));
			events->by_id = grown;
			events->by_id_count = room;
		}
		if (!events->by_id[event->id]) {
			events->by_id[event->id] = plan_event(stream, event, draft);
			status = events->by_id[event->id] ? TDM_OK : TDM_ERR_NOMEM;
		}
	}
	free(draft);
	return status;
}

void tdm_ctf_events_release(struct tdm_ctf_events *events)
{
	for (size_t i = 0; i < events->by_id_count; i++) {
		free(events->by_id[i]);
	}
	free(events->by_id);
	*events = (struct tdm_ctf_events){ 0 };
}

/* ---- passing ---- */

static bool pass_short_header(
	const struct tdm_ctf_events *events, struct ctf_walk *walk, uint64_t *id)
{
	const uint32_t escape = (1u << events->id_bits) - 1;
	const uint32_t short_bits = events->id_bits + events->stamp_bits;
	uint64_t word = 0;

	walk->at_bits = (walk->at_bits + 7) & ~UINT64_C(7);
	if (walk->at_bits > walk->end_bits || walk->end_bits - walk->at_bits < short_bits) {
		walk->fault = "an event's header passes the end of the content";
		return false;
	}

	const uint8_t *const at = walk->bytes + walk->at_bits / 8;

	for (uint32_t i = 0; i < short_bits / 8; i++) {
		word |= (uint64_t)at[i] << (8 * i);
	}
	*id = word & escape;
	if (*id != escape) {
		ctf_walk_clock(walk, word >> events->id_bits, events->stamp_bits);
		walk->at_bits += short_bits;
		return true;
	}

	const uint32_t id_bytes = (events->id_bits + 7) / 8;

	if ((walk->end_bits - walk->at_bits) / 8 < id_bytes + 12u) {
		walk->fault = "an event's header passes the end of the content";
		return false;
	}
	*id = tdm_load_u32(at + id_bytes, false);
	walk->clock = tdm_load_u64(at + id_bytes + 4, false);
	walk->at_bits += 8 * (id_bytes + UINT64_C(12));
	return true;
}

static bool pass_header(const struct tdm_ctf_events *events, struct ctf_walk *walk, uint64_t *id)
{
	*id = 0;
	if (events->is_short_header) {
		return pass_short_header(events, walk, id);
	}
	if (!events->stream->event_header) {
		return true;
	}
	if (!ctf_walk_over(walk, events->stream->event_header)) {
		return false;
	}
	(void)ctf_walk_find(walk, "id", id);
	return true;
}

static bool pass_step(struct ctf_walk *walk, const struct step *step)
{
	const uint8_t *nul;

	switch (step->kind) {
	case STEP_SKIP:
		walk->at_bits = (walk->at_bits + 7) & ~UINT64_C(7);
		if (walk->at_bits > walk->end_bits ||
			step->skip_bits > walk->end_bits - walk->at_bits) {
			walk->fault = "a number passes the end of the content";
			return false;
		}
		walk->at_bits += step->skip_bits;
		return true;
	case STEP_STRING:
		walk->at_bits = (walk->at_bits + 7) & ~UINT64_C(7);
		nul = walk->at_bits < walk->end_bits ? memchr(walk->bytes + walk->at_bits / 8, 0,
							       (walk->end_bits - walk->at_bits) / 8)
						     : NULL;
		if (!nul) {
			walk->fault = "a text without an end";
			return false;
		}
		walk->at_bits = (uint64_t)(nul + 1 - walk->bytes) * 8;
		return true;
	case STEP_FIELD:
		return ctf_walk_field(walk, step->field);
	case STEP_TYPE:
		break;
	}
	return ctf_walk_over(walk, step->type);
}

static bool pass_event(const struct tdm_ctf_events *events, struct ctf_walk *walk)
{
	const uint64_t start = walk->at_bits;
	const struct tdm_ctf_event_plan *plan;
	uint64_t id;

	if (!pass_header(events, walk, &id)) {
		return false;
	}
	plan = id < events->by_id_count ? events->by_id[id] : NULL;
	if (!plan) {
		walk->fault = "an event whose id is in no metadata";
		return false;
	}
	for (size_t i = 0; i < plan->step_count; i++) {
		if (!pass_step(walk, &plan->steps[i])) {
			return false;
		}
	}
	if (walk->at_bits == start) {
		walk->fault = "an event without a bit";
		return false;
	}
	return true;
}

void tdm_ctf_events_pass(const struct tdm_ctf_events *events, struct ctf_walk *walk,
	uint64_t until_bits, uint64_t begin, uint64_t end, uint64_t limit,
	struct tdm_ctf_passed *passed)
{
	const uint32_t kept = walk->value_count;
	struct tdm_ctf_passed in_time; /* up to the last event that is not later than the end */

	*passed = (struct tdm_ctf_passed){ .good_bits = walk->at_bits, .last = begin };
	in_time = *passed;
	while (walk->at_bits < until_bits) {
		walk->fault = NULL;
		walk->steps = 0;
		walk->value_count = kept;
		if (!pass_event(events, walk)) {
			passed->fault = walk->fault ? walk->fault : "an event that makes no sense";
			return;
		}
		if (walk->clock < passed->last) {
			*passed = in_time;
			passed->fault = "a time that goes back";
			return;
		}
		if (walk->clock > limit) {
			passed->fault = "a time behind the packet's";
			return;
		}
		if (passed->count++ == 0) {
			passed->first = walk->clock;
		}
		passed->last = walk->clock;
		passed->good_bits = walk->at_bits;
		if (passed->last <= end) {
			in_time = *passed;
		}
	}
}
