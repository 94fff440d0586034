/* SPDX-License-Identifier: MIT */
#include "perfdata_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ATTR_LEAST_BYTES = 64,
	ATTR_AT_CONFIG = 8,
	ATTR_AT_SAMPLE_TYPE = 24,
	ATTR_AT_READ_FORMAT = 32,
	ATTR_AT_FLAGS = 40,
	ATTR_AT_CLOCKID = 92,
	FLAG_SAMPLE_ID_ALL = 18,
	FLAG_USE_CLOCKID = 25,
	MAX_IDS = 1 << 20,
	TRACEPOINT_ID_MAX = 65535
};

/*
 * The flags are a C bit-field: on a big-endian machine the first one is the most significant bit of the first byte.
 * So the bytes keep their order and the bits inside each are reversed.
 */
static uint64_t read_flags(const uint8_t *at, bool big_endian)
{
	uint64_t flags = 0;

	for (unsigned int i = 0; i < 8; i++) {
		uint8_t byte = at[i];

		if (big_endian) {
			byte = (uint8_t)((byte & 0xf0) >> 4 | (byte & 0x0f) << 4);
			byte = (uint8_t)((byte & 0xcc) >> 2 | (byte & 0x33) << 2);
			byte = (uint8_t)((byte & 0xaa) >> 1 | (byte & 0x55) << 1);
		}
		flags |= (uint64_t)byte << 8 * i;
	}
	return flags;
}

static int32_t place(uint64_t sample_type, uint64_t bit, uint32_t *at)
{
	if (!(sample_type & bit)) {
		return PERF_ABSENT;
	}

	const int32_t here = (int32_t)*at;

	*at += 8;
	return here;
}

static uint32_t place_back(uint64_t sample_type, uint64_t bit, uint32_t *from_end)
{
	if (!(sample_type & bit)) {
		return 0;
	}
	*from_end += 8;
	return *from_end;
}

static void lay_out(struct perfdata_attr *attr)
{
	const uint64_t type = attr->sample_type;
	struct perfdata_layout *layout = &attr->layout;
	uint32_t at = PERF_RECORD_HEADER_BYTES;

	layout->id = place(type, PERF_HAS_IDENTIFIER, &at);
	layout->ip = place(type, PERF_HAS_IP, &at);
	layout->tid = place(type, PERF_HAS_TID, &at);
	layout->time_at = place(type, PERF_HAS_TIME, &at);
	layout->addr = place(type, PERF_HAS_ADDR, &at);

	const int32_t id = place(type, PERF_HAS_ID, &at);

	if (layout->id == PERF_ABSENT) {
		layout->id = id;
	}
	place(type, PERF_HAS_STREAM_ID, &at);
	layout->cpu = place(type, PERF_HAS_CPU, &at);
	layout->period = place(type, PERF_HAS_PERIOD, &at);
	layout->fixed_end = at;

	if (!(attr->flags >> FLAG_SAMPLE_ID_ALL & 1)) {
		return;
	}

	uint32_t back = 0;

	layout->trailer_id = place_back(type, PERF_HAS_IDENTIFIER, &back);
	layout->trailer_cpu = place_back(type, PERF_HAS_CPU, &back);
	place_back(type, PERF_HAS_STREAM_ID, &back);

	const uint32_t trailer_id = place_back(type, PERF_HAS_ID, &back);

	if (!layout->trailer_id) {
		layout->trailer_id = trailer_id;
	}
	layout->trailer_time = place_back(type, PERF_HAS_TIME, &back);
	layout->trailer_tid = place_back(type, PERF_HAS_TID, &back);
	layout->trailer_bytes = back;
}

enum tdm_status perfdata_attr_add(struct perfdata *pd, struct tdm_cursor *in, size_t bytes,
	size_t *index, struct tdm_error *err)
{
	const uint64_t at = tdm_cursor_offset(in);

	if (pd->attr_count >= PERF_MAX_ATTRS) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s at 0x%" PRIx64 ": more than %d attributes", pd->path, at,
			PERF_MAX_ATTRS);
	}

	struct tdm_cursor part = tdm_cursor_take(in, bytes);

	if (part.failed || bytes < ATTR_LEAST_BYTES) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s at 0x%" PRIx64 ": attribute of %zu bytes, wanted at least %d", pd->path,
			at, bytes, ATTR_LEAST_BYTES);
	}

	const uint8_t *body = part.bytes;
	const uint32_t said_bytes = tdm_load_u32(body + 4, pd->big_endian);
	/* What the attribute says of its size bounds what in the entry is its own; 0 is the oldest size. */
	size_t own_bytes = said_bytes < ATTR_LEAST_BYTES ? ATTR_LEAST_BYTES : said_bytes;

	if (own_bytes > bytes) {
		own_bytes = bytes;
	}

	struct perfdata_attr *attrs = realloc(pd->attrs, (pd->attr_count + 1) * sizeof(*pd->attrs));

	if (!attrs) {
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for its attributes", pd->path);
	}
	pd->attrs = attrs;

	struct perfdata_attr *attr = &attrs[pd->attr_count];

	*attr = (struct perfdata_attr){
		.type = tdm_load_u32(body, pd->big_endian),
		.config = tdm_load_u64(body + ATTR_AT_CONFIG, pd->big_endian),
		.sample_type = tdm_load_u64(body + ATTR_AT_SAMPLE_TYPE, pd->big_endian),
		.read_format = tdm_load_u64(body + ATTR_AT_READ_FORMAT, pd->big_endian),
		.flags = read_flags(body + ATTR_AT_FLAGS, pd->big_endian),
		.clockid = PERF_ABSENT,
	};
	if (attr->flags >> FLAG_USE_CLOCKID & 1 && own_bytes >= ATTR_AT_CLOCKID + 4) {
		attr->clockid = (int32_t)tdm_load_u32(body + ATTR_AT_CLOCKID, pd->big_endian);
	}
	lay_out(attr);
	*index = pd->attr_count++;
	return TDM_OK;
}

static size_t id_slot(uint64_t id, size_t slot_count)
{
	return (size_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (slot_count - 1);
}

struct perfdata_id *perfdata_ids_find(const struct perfdata_ids *ids, uint64_t id)
{
	if (!ids->slot_count) {
		return NULL;
	}
	for (size_t at = id_slot(id, ids->slot_count); ids->slots[at].in_use;
		at = (at + 1) & (ids->slot_count - 1)) {
		if (ids->slots[at].id == id) {
			return &ids->slots[at];
		}
	}
	return NULL;
}

static bool ids_grow(struct perfdata_ids *ids)
{
	const size_t slot_count = ids->slot_count ? ids->slot_count * 2 : 64;
	struct perfdata_id *slots = calloc(slot_count, sizeof(*slots));

	if (!slots) {
		return false;
	}
	for (size_t i = 0; i < ids->slot_count; i++) {
		if (!ids->slots[i].in_use) {
			continue;
		}

		size_t at = id_slot(ids->slots[i].id, slot_count);

		while (slots[at].in_use) {
			at = (at + 1) & (slot_count - 1);
		}
		slots[at] = ids->slots[i];
	}
	free(ids->slots);
	ids->slots = slots;
	ids->slot_count = slot_count;
	return true;
}

enum tdm_status perfdata_ids_add(struct perfdata *pd, struct tdm_cursor *in, uint64_t count,
	size_t attr_index, struct tdm_error *err)
{
	struct perfdata_ids *ids = &pd->ids;

	if (count > tdm_cursor_left(in) / 8) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s at 0x%" PRIx64 ": %" PRIu64 " event ids pass the end of their section",
			pd->path, tdm_cursor_offset(in), count);
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t id = tdm_cursor_u64(in);
		struct perfdata_id *known = perfdata_ids_find(ids, id);

		if (known) {
			/* Pipe mode and EVENT_DESC repeat what is known: the first one stays. */
			continue;
		}
		if (ids->used >= MAX_IDS) {
			return tdm_fail(err, TDM_ERR_UNSUPPORTED, "%s: more than %d event ids",
				pd->path, MAX_IDS);
		}
		if (ids->used * 2 >= ids->slot_count && !ids_grow(ids)) {
			return tdm_fail(
				err, TDM_ERR_NOMEM, "%s: no memory for its event ids", pd->path);
		}

		size_t at = id_slot(id, ids->slot_count);

		while (ids->slots[at].in_use) {
			at = (at + 1) & (ids->slot_count - 1);
		}
		ids->slots[at] = (struct perfdata_id){ .id = id,
			.attr_index = (uint32_t)attr_index,
			.cpu = UINT32_MAX,
			.in_use = true };
		ids->used++;
	}
	return TDM_OK;
}

void perfdata_id_index(struct perfdata *pd, struct tdm_cursor *in)
{
	const uint64_t count = tdm_cursor_u64(in);

	if (count > tdm_cursor_left(in) / 32) {
		trace_fault(
			&pd->trace, 0, "an ID_INDEX of %" PRIu64 " entries passes its end", count);
		return;
	}

	struct tdm_cursor machines = *in;

	tdm_cursor_skip(&machines, count * 32);

	const bool has_machines = tdm_cursor_left(&machines) >= count * 16;

	for (uint64_t i = 0; i < count; i++) {
		struct perfdata_id *id = perfdata_ids_find(&pd->ids, tdm_cursor_u64(in));

		tdm_cursor_skip(in, 8);

		const uint64_t cpu = tdm_cursor_u64(in);

		tdm_cursor_skip(in, 8);

		const uint64_t machine_pid = has_machines ? tdm_cursor_u64(&machines) : 0;

		if (has_machines) {
			tdm_cursor_skip(&machines, 8);
		}
		if (id) {
			id->cpu = cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX;
			id->of_guest = machine_pid != 0 && machine_pid != UINT64_MAX;
		}
	}
}

/* Puts a class for the samples of an attribute into the schema; NULL where that fails. */
static const struct tdm_event_class *make_class(
	struct perfdata *pd, uint32_t id, const char *system, const char *name, const char *fields)
{
	struct tdm_buffer text = { 0 };
	struct tdm_error ignored;
	const struct tdm_event_class *made = NULL;

	if (tdm_buffer_printf(&text,
		    "name: %s\nID: %" PRIu32 "\nformat:\n"
		    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n%s\nprint fmt: \"\"\n",
		    name, id, fields) == TDM_OK &&
		tdm_schema_add(pd->trace.schema, system, (const char *)text.bytes, text.size,
			&ignored) == TDM_OK) {
		made = tdm_schema_find(pd->trace.schema, id);
	}
	tdm_buffer_release(&text);
	return made;
}

/* What a format text cannot carry in a name (blanks, bytes that are no ASCII) becomes '_'. */
static void make_word(char *text, const char *otherwise, size_t room)
{
	if (!*text) {
		snprintf(text, room, "%s", otherwise);
	}
	for (char *at = text; *at; at++) {
		if (*at <= ' ' || *at > '~') {
			*at = '_';
		}
	}
}

/* The name as the user wrote it, as system and event. */
static void split_name(const struct perfdata_attr *attr, char *system, char *name, size_t room,
	const char *otherwise)
{
	const char *whole = attr->name ? attr->name : otherwise;
	const char *colon = attr->type == PERF_ATTR_TRACEPOINT ? strchr(whole, ':') : NULL;

	snprintf(system, room, "%.*s", colon ? (int)(colon - whole) : 4, colon ? whole : "perf");
	snprintf(name, room, "%s", colon ? colon + 1 : whole);
	make_word(system, "perf", room);
	make_word(name, otherwise, room);
}

/*
 * Every sample is delivered as a record of a class. The kernel's own record is there for tracepoints; counters have
 * none, so that one is made of what the sample says. A tracepoint whose format text is missing (the recorder was
 * killed before it wrote them) gives its bytes undecoded.
 */
static void give_class(struct perfdata *pd, struct perfdata_attr *attr, uint32_t *free_id)
{
	char system[128], name[128], fallback[40];

	if (attr->type == PERF_ATTR_TRACEPOINT && attr->sample_type & PERF_HAS_RAW) {
		attr->checks_config = true;
		if (attr->config > TRACEPOINT_ID_MAX ||
			tdm_schema_find(pd->trace.schema, (uint32_t)attr->config)) {
			return;
		}
		snprintf(fallback, sizeof(fallback), "tracepoint_%" PRIu64, attr->config);
		split_name(attr, system, name, sizeof(name), fallback);
		if (make_class(pd, (uint32_t)attr->config, system, name,
			    "\tfield:u8 data[];\toffset:8;\tsize:0;\tsigned:0;\n")) {
			trace_fault(&pd->trace, attr->config,
				"no format text for tracepoint %" PRIu64
				" (%s): its records are shown as bytes",
				attr->config, name);
		}
		return;
	}
	if (attr->type == 1 && attr->config == 9) {
		return; /* "dummy" only carries side-band records */
	}

	char fields[256];
	size_t used = 0;
	uint32_t at = 8;

	attr->has_made_addr = attr->layout.addr != PERF_ABSENT;
	attr->has_made_period = attr->layout.period != PERF_ABSENT;
	used += (size_t)snprintf(fields, sizeof(fields),
		"\tfield:void * ip;\toffset:%" PRIu32 ";\tsize:8;\tsigned:0;\n", at);
	if (attr->has_made_addr) {
		at += 8;
		used += (size_t)snprintf(fields + used, sizeof(fields) - used,
			"\tfield:void * addr;\toffset:%" PRIu32 ";\tsize:8;\tsigned:0;\n", at);
	}
	if (attr->has_made_period) {
		at += 8;
		snprintf(fields + used, sizeof(fields) - used,
			"\tfield:u64 period;\toffset:%" PRIu32 ";\tsize:8;\tsigned:0;\n", at);
	}
	snprintf(
		fallback, sizeof(fallback), "event_%" PRIu32 "_%" PRIu64, attr->type, attr->config);
	split_name(attr, system, name, sizeof(name), fallback);
	while (*free_id && tdm_schema_find(pd->trace.schema, *free_id)) {
		(*free_id)--;
	}
	if (*free_id) {
		attr->made_class = make_class(pd, *free_id, system, name, fields);
	}
	if (!attr->made_class) {
		trace_fault(&pd->trace, 0,
			"event %.60s: no class can be made for its samples, which are left out",
			name);
	}
}

static bool same_place(const struct perfdata_layout *a, const struct perfdata_layout *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

enum tdm_status perfdata_attrs_settle(struct perfdata *pd, struct tdm_error *err)
{
	if (!pd->attr_count) {
		return tdm_fail(err, TDM_ERR_FORMAT,
			"%s: no event attribute, so no sample can be read", pd->path);
	}

	const struct perfdata_attr *first = &pd->attrs[0];
	size_t with_id = 0;
	bool same_id = true, same_trailer = true;
	uint32_t free_id = TRACEPOINT_ID_MAX;

	pd->is_uniform = true;
	for (size_t i = 0; i < pd->attr_count; i++) {
		struct perfdata_attr *attr = &pd->attrs[i];

		pd->has_chains |= !!(attr->sample_type & PERF_HAS_CALLCHAIN);
		with_id += attr->layout.id != PERF_ABSENT;
		same_id &= attr->layout.id == first->layout.id;
		same_trailer &= attr->layout.trailer_id == first->layout.trailer_id;
		pd->is_uniform &= same_place(&attr->layout, &first->layout) &&
				  attr->sample_type == first->sample_type;
		if (attr->clockid != first->clockid) {
			trace_fault(&pd->trace, 0,
				"events use different clocks (%d and %d): their order is not known",
				first->clockid, attr->clockid);
		}
		give_class(pd, attr, &free_id);
		attr->is_plain =
			!attr->made_class && attr->layout.tid >= 0 &&
			(attr->sample_type & (PERF_HAS_RAW | PERF_HAS_READ | PERF_HAS_CALLCHAIN)) ==
				PERF_HAS_RAW;
	}
	pd->has_plain_items =
		pd->is_uniform && first->layout.cpu >= 0 && first->layout.time_at >= 0;
	pd->sole_attr = 0;
	for (size_t i = 0; i < pd->attr_count && pd->attr_count > 1; i++) {
		if (pd->attrs[i].type == PERF_ATTR_TRACEPOINT) {
			pd->sole_attr = i;
			break;
		}
	}
	if (with_id && (with_id != pd->attr_count || !same_id) && pd->attr_count > 1) {
		return tdm_fail(err, TDM_ERR_UNSUPPORTED,
			"%s: its attributes disagree about where a sample's id lies, so samples cannot be told "
			"apart; record with \"--sample-identifier\"",
			pd->path);
	}
	/* With a single attribute an id that the file does not list is no reason to lose the sample. */
	pd->has_id = with_id && pd->attr_count > 1;
	pd->id_at = first->layout.id;
	pd->trailer_id = same_trailer ? first->layout.trailer_id : 0;
	return TDM_OK;
}

void perfdata_attrs_release(struct perfdata *pd)
{
	for (size_t i = 0; i < pd->attr_count; i++) {
		free(pd->attrs[i].name);
	}
	free(pd->attrs);
	free(pd->ids.slots);
}

static const struct perfdata_attr *attr_of_id(const struct perfdata *pd, const uint8_t *record,
	uint32_t size, uint32_t at, const struct perfdata_id **id)
{
	if (at < PERF_RECORD_HEADER_BYTES || size < 8 || at > size - 8) {
		return NULL;
	}

	const struct perfdata_id *found =
		perfdata_ids_find(&pd->ids, tdm_load_u64(record + at, pd->big_endian));

	if (id) {
		*id = found;
	}
	return found ? &pd->attrs[found->attr_index] : NULL;
}

const struct perfdata_attr *perfdata_attr_of_sample(const struct perfdata *pd,
	const uint8_t *record, uint32_t size, const struct perfdata_id **id)
{
	if (pd->has_id) {
		return attr_of_id(pd, record, size, (uint32_t)pd->id_at, id);
	}

	const struct perfdata_attr *sole = &pd->attrs[pd->sole_attr];

	if (id && sole->layout.id != PERF_ABSENT) {
		attr_of_id(pd, record, size, (uint32_t)sole->layout.id, id);
	}
	return sole;
}

const struct perfdata_attr *perfdata_attr_of_other(const struct perfdata *pd, const uint8_t *record,
	uint32_t size, const struct perfdata_id **id)
{
	if (pd->has_id) {
		if (!pd->trailer_id || size < pd->trailer_id) {
			return NULL;
		}
		return attr_of_id(pd, record, size, size - pd->trailer_id, id);
	}
	return &pd->attrs[pd->sole_attr];
}
