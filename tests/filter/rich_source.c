/* SPDX-License-Identifier: MIT */
/*
 * rich_source.c - source.tandemtest.rich: traces that hold everything babeltrace2's trace IR can say.
 *
 * Every field class kind, option and variant with each kind of selector, links into each scope, stream snapshots known
 * and unknown, each combination of packet and discarded-item flags, streams without a clock, sparse ids. No recorded
 * trace has all that. With protocol version 1 also what only that has.
 */
#include "test_plugin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 4,
	STREAMS = 5
};

struct rich {
	bt_self_component *self;
	uint64_t mip;
	bt_message *messages[512];
	size_t count;
	size_t at;
};

#define CHECK(expression)                                                           \
	do {                                                                        \
		if (!(expression)) {                                                \
			fprintf(stderr, "rich_source: line %d failed\n", __LINE__); \
			abort();                                                    \
		}                                                                   \
	} while (0)

/* ---- classes ---- */

static bt_value *attributes(const char *what)
{
	bt_value *map = bt_value_map_create();

	CHECK(bt_value_map_insert_string_entry(map, "of", what) == 0);
	CHECK(bt_value_map_insert_signed_integer_entry(map, "length", (int64_t)strlen(what)) == 0);
	return map;
}

static void append(bt_field_class *structure, const char *name, bt_field_class *member)
{
	bt_value *map = attributes(name);

	bt_field_class_set_user_attributes(member, map);
	CHECK(bt_field_class_structure_append_member(structure, name, member) == 0);
	bt_field_class_structure_member_set_user_attributes(
		bt_field_class_structure_borrow_member_by_index(
			structure, bt_field_class_structure_get_member_count(structure) - 1),
		map);
	bt_field_class_put_ref(member);
	bt_value_put_ref(map);
}

static bt_field_class *number(bt_trace_class *tc, uint64_t bits, int base)
{
	bt_field_class *fc = bt_field_class_integer_unsigned_create(tc);

	bt_field_class_integer_set_field_value_range(fc, bits);
	bt_field_class_integer_set_preferred_display_base(
		fc, (bt_field_class_integer_preferred_display_base)base);
	return fc;
}

static bt_integer_range_set_unsigned *unsigned_ranges(
	uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	bt_integer_range_set_unsigned *set = bt_integer_range_set_unsigned_create();

	CHECK(bt_integer_range_set_unsigned_add_range(set, a, b) == 0);
	CHECK(bt_integer_range_set_unsigned_add_range(set, c, d) == 0);
	return set;
}

static bt_integer_range_set_signed *signed_ranges(int64_t a, int64_t b)
{
	bt_integer_range_set_signed *set = bt_integer_range_set_signed_create();

	CHECK(bt_integer_range_set_signed_add_range(set, a, b) == 0);
	return set;
}

static bt_field_class *unsigned_enumeration(bt_trace_class *tc)
{
	bt_field_class *fc = bt_field_class_enumeration_unsigned_create(tc);
	bt_integer_range_set_unsigned *low = unsigned_ranges(0, 1, 7, 9);
	bt_integer_range_set_unsigned *high = unsigned_ranges(2, 3, 9, UINT64_MAX);

	CHECK(bt_field_class_enumeration_unsigned_add_mapping(fc, "low", low) == 0);
	CHECK(bt_field_class_enumeration_unsigned_add_mapping(fc, "and high", high) == 0);
	bt_integer_range_set_unsigned_put_ref(low);
	bt_integer_range_set_unsigned_put_ref(high);
	return fc;
}

static bt_field_class *signed_enumeration(bt_trace_class *tc)
{
	bt_field_class *fc = bt_field_class_enumeration_signed_create(tc);
	bt_integer_range_set_signed *below = signed_ranges(INT64_MIN, -1);
	bt_integer_range_set_signed *above = signed_ranges(0, 5);

	CHECK(bt_field_class_enumeration_signed_add_mapping(fc, "below", below) == 0);
	CHECK(bt_field_class_enumeration_signed_add_mapping(fc, "above", above) == 0);
	bt_integer_range_set_signed_put_ref(below);
	bt_integer_range_set_signed_put_ref(above);
	bt_field_class_integer_set_field_value_range(fc, 32);
	return fc;
}

/* A link: protocol version 0 wants the class, 1 a place. */
struct target {
	bt_field_class *fc; /* borrowed */
	int scope;          /* of bt_field_location_scope */
	const char *items[3];
	uint64_t count;
};

#if TANDEM_HAVE_BT_2_1
static bt_field_location *location(bt_trace_class *tc, const struct target *to)
{
	return bt_field_location_create(
		tc, (bt_field_location_scope)to->scope, to->items, to->count);
}
#endif

static bt_field_class *dynamic_array(
	struct rich *rich, bt_trace_class *tc, bt_field_class *element, const struct target *length)
{
	bt_field_class *fc = NULL;

	if (rich->mip == 0) {
		fc = bt_field_class_array_dynamic_create(tc, element, length ? length->fc : NULL);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0 && !length) {
		fc = bt_field_class_array_dynamic_without_length_field_location_create(tc, element);
	} else if (rich->mip > 0) {
		bt_field_location *place = location(tc, length);

		fc = bt_field_class_array_dynamic_with_length_field_location_create(
			tc, element, place);
		bt_field_location_put_ref(place);
	}
#endif
	bt_field_class_put_ref(element);
	CHECK(fc);
	return fc;
}

/* kind: 0 without a selector, 1 bool, 2 unsigned, 3 signed. */
static bt_field_class *option(struct rich *rich, bt_trace_class *tc, int kind,
	const struct target *selector, bool reversed)
{
	bt_field_class *content = bt_field_class_string_create(tc);
	bt_integer_range_set_unsigned *u = unsigned_ranges(1, 1, 3, 3);
	bt_integer_range_set_signed *s = signed_ranges(-9, -1);
	bt_field_class *fc = NULL;

	if (rich->mip == 0) {
		fc = kind == 0   ? bt_field_class_option_without_selector_create(tc, content)
		     : kind == 1 ? bt_field_class_option_with_selector_field_bool_create(
					   tc, content, selector->fc)
		     : kind == 2
			     ? bt_field_class_option_with_selector_field_integer_unsigned_create(
				       tc, content, selector->fc, u)
			     : bt_field_class_option_with_selector_field_integer_signed_create(
				       tc, content, selector->fc, s);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		bt_field_location *place = kind ? location(tc, selector) : NULL;

		fc = kind == 0 ? bt_field_class_option_without_selector_field_location_create(
					 tc, content)
		     : kind == 1 ? bt_field_class_option_with_selector_field_location_bool_create(
					   tc, content, place)
		     : kind == 2
			     ? bt_field_class_option_with_selector_field_location_integer_unsigned_create(
				       tc, content, place, u)
			     : bt_field_class_option_with_selector_field_location_integer_signed_create(
				       tc, content, place, s);
		bt_field_location_put_ref(place);
	}
#endif
	CHECK(fc);
	if (kind == 1) {
		bt_field_class_option_with_selector_field_bool_set_selector_is_reversed(
			fc, reversed ? BT_TRUE : BT_FALSE);
	}
	bt_field_class_put_ref(content);
	bt_integer_range_set_unsigned_put_ref(u);
	bt_integer_range_set_signed_put_ref(s);
	return fc;
}

/* kind as above, less 1. Options: a number, a string, a structure with a number. */
static bt_field_class *variant(
	struct rich *rich, bt_trace_class *tc, int kind, const struct target *selector)
{
	const char *names[3] = { "first", "second one", rich->mip > 0 ? NULL : "third" };
	bt_field_class *inner[3] = { number(tc, 16, 16), bt_field_class_string_create(tc),
		bt_field_class_structure_create(tc) };
	bt_field_class *fc = NULL;

	append(inner[2], "deep", number(tc, 64, 2));
	if (rich->mip == 0) {
		fc = bt_field_class_variant_create(tc, kind ? selector->fc : NULL);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		bt_field_location *place = kind ? location(tc, selector) : NULL;

		fc = kind == 0 ? bt_field_class_variant_without_selector_field_location_create(tc)
		     : kind == 2
			     ? bt_field_class_variant_with_selector_field_location_integer_unsigned_create(
				       tc, place)
			     : bt_field_class_variant_with_selector_field_location_integer_signed_create(
				       tc, place);
		bt_field_location_put_ref(place);
	}
#endif
	CHECK(fc);
	for (uint64_t i = 0; i < 3; i++) {
		bt_integer_range_set_unsigned *u = unsigned_ranges(i, i, i + 10, i + 10);
		bt_integer_range_set_signed *s = signed_ranges((int64_t)i - 1, (int64_t)i - 1);
		bt_value *map = attributes("an option");

		CHECK((kind == 0 ? (int)bt_field_class_variant_without_selector_append_option(
					   fc, names[i], inner[i])
			      : kind == 2
				      ? (int)bt_field_class_variant_with_selector_field_integer_unsigned_append_option(
						fc, names[i], inner[i], u)
				      : (int)bt_field_class_variant_with_selector_field_integer_signed_append_option(
						fc, names[i], inner[i], s)) == 0);
		bt_field_class_variant_option_set_user_attributes(
			bt_field_class_variant_borrow_option_by_index(fc, i), map);
		bt_value_put_ref(map);
		bt_integer_range_set_unsigned_put_ref(u);
		bt_integer_range_set_signed_put_ref(s);
		bt_field_class_put_ref(inner[i]);
	}
	return fc;
}

#if TANDEM_HAVE_BT_2_1
static void append_version_1(
	bt_trace_class *tc, bt_field_class *payload, const struct target *length)
{
	bt_field_class *flags = bt_field_class_bit_array_create(tc, 16);
	bt_field_class *blob = bt_field_class_blob_static_create(tc, 5);
	bt_integer_range_set_unsigned *bits = unsigned_ranges(0, 2, 5, 5);
	bt_field_location *place = location(tc, length);
	bt_field_class *hinted = number(tc, 8, 10);

	CHECK(bt_field_class_bit_array_add_flag(flags, "some bits", bits) == 0);
	bt_integer_range_set_unsigned_put_ref(bits);
	append(payload, "flags", flags);
	CHECK(bt_field_class_blob_set_media_type(blob, "image/tiff") == 0);
	append(payload, "blob", blob);
	append(payload, "free_blob",
		bt_field_class_blob_dynamic_without_length_field_location_create(tc));
	append(payload, "linked_blob",
		bt_field_class_blob_dynamic_with_length_field_location_create(tc, place));
	bt_field_location_put_ref(place);
	bt_field_class_integer_set_field_value_hints(
		hinted, BT_FIELD_CLASS_INTEGER_FIELD_VALUE_HINT_SMALL);
	append(payload, "hinted", hinted);
}
#endif

enum {
	PACKET,
	COMMON,
	SPECIFIC,
	PAYLOAD
}; /* in the order of bt_field_location_scope */

static bt_field_class *last_member(bt_field_class *structure)
{
	return bt_field_class_structure_member_borrow_field_class(
		bt_field_class_structure_borrow_member_by_index(
			structure, bt_field_class_structure_get_member_count(structure) - 1));
}

/* The classes that links of one event class lead to. */
struct scopes {
	struct target packet_length, flag, unsigned_selector, signed_selector;
};

static bt_field_class *make_payload(struct rich *rich, bt_trace_class *tc, struct scopes *scopes)
{
	bt_field_class *payload = bt_field_class_structure_create(tc);
	bt_field_class *nested = bt_field_class_structure_create(tc);

	append(payload, "bool", bt_field_class_bool_create(tc));
	append(payload, "bits", bt_field_class_bit_array_create(tc, 9));
	append(payload, "u8", number(tc, 8, 8));
	append(payload, "u64", number(tc, 64, 16));
	append(payload, "i64", bt_field_class_integer_signed_create(tc));
	append(payload, "uenum", unsigned_enumeration(tc));
	append(payload, "ienum", signed_enumeration(tc));
	append(payload, "single", bt_field_class_real_single_precision_create(tc));
	append(payload, "double", bt_field_class_real_double_precision_create(tc));
	append(payload, "string", bt_field_class_string_create(tc));
	append(payload, "empty", bt_field_class_structure_create(tc));

	bt_field_class *element = number(tc, 8, 10);

	append(payload, "fixed", bt_field_class_array_static_create(tc, element, 3));
	bt_field_class_put_ref(element);
	append(payload, "free", dynamic_array(rich, tc, bt_field_class_string_create(tc), NULL));
	/* A link inside a structure that is still being built. */
	append(nested, "len", number(tc, 32, 10));

	const struct target inner = { last_member(nested), PAYLOAD, { "nested", "len" }, 2 };

	append(nested, "linked",
		dynamic_array(rich, tc, bt_field_class_integer_signed_create(tc), &inner));
	append(payload, "nested", nested);
	append(payload, "by_packet",
		dynamic_array(rich, tc, number(tc, 8, 16), &scopes->packet_length));
	append(payload, "option", option(rich, tc, 0, NULL, false));
	append(payload, "option_bool", option(rich, tc, 1, &scopes->flag, true));
	append(payload, "option_bool2", option(rich, tc, 1, &scopes->flag, false));
	append(payload, "option_u", option(rich, tc, 2, &scopes->unsigned_selector, false));
	append(payload, "option_i", option(rich, tc, 3, &scopes->signed_selector, false));
	append(payload, "variant", variant(rich, tc, 0, NULL));
	append(payload, "variant_u", variant(rich, tc, 2, &scopes->unsigned_selector));
	append(payload, "variant_i", variant(rich, tc, 3, &scopes->signed_selector));
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		append_version_1(tc, payload, &scopes->packet_length);
	}
#endif
	return payload;
}

/* ---- fields ---- */

/* Fills a field with values that depend on the round, so that recycled fields with old content would show. */
static void fill(bt_field *field, unsigned int round, const char *name, uint64_t links)
{
	const bt_field_class *fc = bt_field_borrow_class_const(field);
	const bt_field_class_type type = bt_field_class_get_type(fc);
	char text[64];

	snprintf(text, sizeof(text), "%s-%u%s", name, round, round == 2 ? " \xc3\xa4\"\n" : "");
	if (type == BT_FIELD_CLASS_TYPE_BOOL) {
		bt_field_bool_set_value(field, round % 2 ? BT_TRUE : BT_FALSE);
	} else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY) {
		bt_field_bit_array_set_value_as_integer(field, 0x15a >> round);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
		const bool wide = bt_field_class_integer_get_field_value_range(fc) == 64;

		bt_field_integer_unsigned_set_value(
			field, strcmp(name, "u64") == 0 && wide ? UINT64_MAX - round : links);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
		bt_field_integer_signed_set_value(field,
			strcmp(name, "i64") == 0 ? INT64_MIN + (int64_t)round : (int64_t)links - 1);
	} else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
		bt_field_real_single_precision_set_value(field, 0.1f + (float)round);
	} else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
		bt_field_real_double_precision_set_value(field, -1e300 / (round + 1));
	} else if (type == BT_FIELD_CLASS_TYPE_STRING) {
		CHECK(bt_field_string_set_value(field, round == 1 ? "" : text) == 0);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY)) {
		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_DYNAMIC_ARRAY)) {
			CHECK(bt_field_array_dynamic_set_length(field, links) == 0);
		}
		for (uint64_t i = 0; i < bt_field_array_get_length(field); i++) {
			fill(bt_field_array_borrow_element_field_by_index(field, i), round,
				"element", i + links);
		}
	} else if (type == BT_FIELD_CLASS_TYPE_STRUCTURE) {
		for (uint64_t i = 0; i < bt_field_class_structure_get_member_count(fc); i++) {
			fill(bt_field_structure_borrow_member_field_by_index(field, i), round,
				bt_field_class_structure_member_get_name(
					bt_field_class_structure_borrow_member_by_index_const(
						fc, i)),
				links);
		}
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		const bool has = strcmp(name, "option_bool") == 0 ? round % 2 == 0
				 : strcmp(name, "option_u") == 0  ? links == 1 || links == 3
				 : strcmp(name, "option_i") == 0  ? false
								  : round % 2 == 1;

		bt_field_option_set_has_field(field, has ? BT_TRUE : BT_FALSE);
		if (has) {
			fill(bt_field_option_borrow_field(field), round, name, links);
		}
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT)) {
		CHECK(bt_field_variant_select_option_by_index(field, links % 3) == 0);
		fill(bt_field_variant_borrow_selected_option_field(field), round, name, links);
	}
#if TANDEM_HAVE_BT_2_1
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_BLOB)) {
		if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_DYNAMIC_BLOB)) {
			CHECK(bt_field_blob_dynamic_set_length(field, links) == 0);
		}
		for (uint64_t i = 0; i < bt_field_blob_get_length(field); i++) {
			bt_field_blob_get_data(field)[i] = (uint8_t)(round * 16 + i);
		}
	}
#endif
	else {
		CHECK(false);
	}
}

/* ---- traces ---- */

static bt_clock_class *make_clock(struct rich *rich, uint64_t hz)
{
	static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	bt_clock_class *clock = bt_clock_class_create(rich->self);
	bt_value *map = attributes("a clock");

	bt_clock_class_set_frequency(clock, hz);
	CHECK(bt_clock_class_set_name(clock, "rich clock") == 0);
	CHECK(bt_clock_class_set_description(clock, "ticks, \"quoted\"") == 0);
	bt_clock_class_set_offset(clock, 1700000000, 123);
	bt_clock_class_set_precision(clock, 7);
	bt_clock_class_set_user_attributes(clock, map);
	bt_value_put_ref(map);
	if (rich->mip == 0) {
		bt_clock_class_set_uuid(clock, uuid);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_clock_class_set_namespace(clock, "tandem.test") == 0);
		CHECK(bt_clock_class_set_uid(clock, "clock-1") == 0);
		bt_clock_class_set_accuracy(clock, 3);
	}
#endif
	return clock;
}

struct made_class {
	bt_stream_class *stream_class;
	bt_event_class *events[2];
	bool packets, begin, end, discarded_events, discarded_packets, timed_events, timed_packets,
		clock;
};

static void make_event_class(struct rich *rich, bt_trace_class *tc, struct made_class *made,
	int which, struct scopes *scopes)
{
	/* Sparse ids. */
	bt_event_class *ec = bt_event_class_create_with_id(made->stream_class, which ? 100000 : 3);
	bt_value *map = attributes("an event class");
	bt_field_class *specific = bt_field_class_structure_create(tc);
	bt_field_class *payload = make_payload(rich, tc, scopes);

	CHECK(bt_event_class_set_name(ec, which ? "second:event" : "an event, quoted \"x\"") == 0);
	if (!which) {
		bt_event_class_set_log_level(ec, BT_EVENT_CLASS_LOG_LEVEL_DEBUG_FUNCTION);
		CHECK(bt_event_class_set_emf_uri(ec, "http://example.org/emf?x=1") == 0);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_event_class_set_namespace(ec, "tandem.events") == 0);
		CHECK(bt_event_class_set_uid(ec, which ? "e-2" : "e-1") == 0);
	}
#endif
	append(specific, "len", number(tc, 16, 10));
	append(specific, "own",
		dynamic_array(rich, tc, bt_field_class_real_double_precision_create(tc),
			&(struct target){ last_member(specific), SPECIFIC, { "len" }, 1 }));
	append(specific, "by_common", option(rich, tc, 1, &scopes->flag, false));
	bt_event_class_set_user_attributes(ec, map);
	CHECK(bt_event_class_set_specific_context_field_class(ec, specific) == 0);
	CHECK(bt_event_class_set_payload_field_class(ec, payload) == 0);
	bt_value_put_ref(map);
	bt_field_class_put_ref(specific);
	bt_field_class_put_ref(payload);
	made->events[which] = ec;
}

static void make_stream_class(struct rich *rich, bt_trace_class *tc, struct made_class *made,
	uint64_t id, bt_clock_class *clock)
{
	bt_stream_class *sc = bt_stream_class_create_with_id(tc, id);
	bt_value *map = attributes("a stream class");
	bt_field_class *packet = bt_field_class_structure_create(tc);
	bt_field_class *common = bt_field_class_structure_create(tc);
	struct scopes scopes = { .packet_length = { NULL, PACKET, { "len" }, 1 } };

	made->stream_class = sc;
	CHECK(bt_stream_class_set_name(sc, "a stream class") == 0);
	bt_stream_class_set_user_attributes(sc, map);
	bt_value_put_ref(map);
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_stream_class_set_namespace(sc, "tandem.streams") == 0);
		CHECK(bt_stream_class_set_uid(sc, "s-1") == 0);
	}
#endif
	if (made->clock) {
		CHECK(bt_stream_class_set_default_clock_class(sc, clock) == 0);
	}
	bt_stream_class_set_supports_packets(sc, made->packets, made->begin, made->end);
	if (made->packets) {
		bt_stream_class_set_supports_discarded_packets(
			sc, made->discarded_packets, made->timed_packets);
	}
	bt_stream_class_set_supports_discarded_events(
		sc, made->discarded_events, made->timed_events);
	bt_stream_class_set_assigns_automatic_event_class_id(sc, BT_FALSE);
	bt_stream_class_set_assigns_automatic_stream_id(sc, BT_FALSE);
	append(common, "flag", bt_field_class_bool_create(tc));
	scopes.flag = (struct target){ last_member(common), COMMON, { "flag" }, 1 };
	append(common, "unsigned", unsigned_enumeration(tc));
	scopes.unsigned_selector =
		(struct target){ last_member(common), COMMON, { "unsigned" }, 1 };
	append(common, "signed", bt_field_class_integer_signed_create(tc));
	scopes.signed_selector = (struct target){ last_member(common), COMMON, { "signed" }, 1 };
	if (made->packets) {
		append(packet, "cpu_id", number(tc, 32, 10));
		append(packet, "len", number(tc, 8, 10));
		scopes.packet_length.fc = last_member(packet);
		CHECK(bt_stream_class_set_packet_context_field_class(sc, packet) == 0);
	} else {
		append(common, "len", number(tc, 8, 10));
		scopes.packet_length = (struct target){ last_member(common), COMMON, { "len" }, 1 };
	}
	CHECK(bt_stream_class_set_event_common_context_field_class(sc, common) == 0);
	bt_field_class_put_ref(packet);
	bt_field_class_put_ref(common);
	make_event_class(rich, tc, made, 0, &scopes);
	make_event_class(rich, tc, made, 1, &scopes);
}

static bt_trace *make_trace(struct rich *rich, bt_trace_class *tc)
{
	static const uint8_t uuid[16] = { 0xff, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0 };
	bt_trace *trace = bt_trace_create(tc);
	bt_value *map = attributes("a trace");

	CHECK(bt_trace_set_name(trace, "rich") == 0);
	if (rich->mip == 0) {
		bt_trace_set_uuid(trace, uuid);
	}
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		CHECK(bt_trace_set_namespace(trace, "tandem.traces") == 0);
		CHECK(bt_trace_set_uid(trace, "t-1") == 0);
	}
#endif
	CHECK(bt_trace_set_environment_entry_string(trace, "zeta", "a \"string\"") == 0);
	CHECK(bt_trace_set_environment_entry_integer(trace, "alpha", INT64_MIN) == 0);
	CHECK(bt_trace_set_environment_entry_string(trace, "hostname", "") == 0);
	bt_trace_set_user_attributes(trace, map);
	bt_value_put_ref(map);
	return trace;
}

/* ---- messages ---- */

static void add(struct rich *rich, bt_message *message)
{
	CHECK(message && rich->count < sizeof(rich->messages) / sizeof(rich->messages[0]));
	rich->messages[rich->count++] = message;
}

static void add_event(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_stream *stream, bt_packet *packet, unsigned int round, uint64_t time)
{
	const bt_event_class *ec = made->events[round % 2];
	bt_message *message = NULL;

	if (packet) {
		message = made->clock
				  ? bt_message_event_create_with_packet_and_default_clock_snapshot(
					    it, ec, packet, time)
				  : bt_message_event_create_with_packet(it, ec, packet);
	} else {
		message = made->clock ? bt_message_event_create_with_default_clock_snapshot(
						it, ec, stream, time)
				      : bt_message_event_create(it, ec, stream);
	}
	CHECK(message);

	bt_event *event = bt_message_event_borrow_event(message);

	fill(bt_event_borrow_common_context_field(event), round, "common", round);
	fill(bt_event_borrow_specific_context_field(event), round, "specific", round);
	fill(bt_event_borrow_payload_field(event), round, "payload", round);
	add(rich, message);
}

static void add_losses(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_stream *stream, uint64_t from, uint64_t to, bool counted)
{
	if (made->discarded_events) {
		bt_message *message =
			made->timed_events
				? bt_message_discarded_events_create_with_default_clock_snapshots(
					  it, stream, from, to)
				: bt_message_discarded_events_create(it, stream);

		if (counted) {
			bt_message_discarded_events_set_count(message, 42);
		}
		add(rich, message);
	}
	if (made->packets && made->discarded_packets) {
		bt_message *message =
			made->timed_packets
				? bt_message_discarded_packets_create_with_default_clock_snapshots(
					  it, stream, from, to)
				: bt_message_discarded_packets_create(it, stream);

		if (counted) {
			bt_message_discarded_packets_set_count(message, 3);
		}
		add(rich, message);
	}
}

static void add_stream(bt_self_message_iterator *it, struct rich *rich, struct made_class *made,
	bt_trace *trace, uint64_t id, uint64_t *now, bt_clock_class *clock)
{
	bt_stream *stream = bt_stream_create_with_id(made->stream_class, trace, id);
	bt_message *message = NULL;
	bt_value *map = attributes("a stream");

	CHECK(stream && bt_stream_set_name(stream, id ? "stream name" : "zero") == 0);
	bt_stream_set_user_attributes(stream, map);
	bt_value_put_ref(map);
	message = bt_message_stream_beginning_create(it, stream);
	if (made->clock && id % 2) {
		bt_message_stream_beginning_set_default_clock_snapshot(message, *now);
	}
	add(rich, message);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		bt_packet *packet = NULL;

		if (made->packets) {
			packet = bt_packet_create(stream);
			fill(bt_packet_borrow_context_field(packet), round, "packet", round);
			add(rich,
				made->begin
					? bt_message_packet_beginning_create_with_default_clock_snapshot(
						  it, packet, *now)
					: bt_message_packet_beginning_create(it, packet));
		}
		*now += 10 + round;
		add_event(it, rich, made, stream, packet, round, *now);
		add_event(it, rich, made, stream, packet, round, *now);
		*now += 5;
		if (packet) {
			add(rich,
				made->end
					? bt_message_packet_end_create_with_default_clock_snapshot(
						  it, packet, *now)
					: bt_message_packet_end_create(it, packet));
		}
		bt_packet_put_ref(packet);
		add_losses(it, rich, made, stream, *now, *now + 100, round % 2);
		*now += 100;
	}
	if (clock) {
		add(rich, bt_message_message_iterator_inactivity_create(it, clock, *now));
	}
	message = bt_message_stream_end_create(it, stream);
	if (made->clock && id % 2) {
		bt_message_stream_end_set_default_clock_snapshot(message, *now);
	}
	add(rich, message);
	bt_stream_put_ref(stream);
}

static void produce(bt_self_message_iterator *it, struct rich *rich, uint64_t hz)
{
	struct made_class classes[STREAMS] = {
		{ .packets = true,
			.begin = true,
			.end = true,
			.discarded_events = true,
			.timed_events = true,
			.discarded_packets = true,
			.timed_packets = true,
			.clock = true },
		{ .discarded_events = true, .clock = true },
		{ .packets = true, .begin = true, .discarded_packets = true, .clock = true },
		{ .packets = true,
			.end = true,
			.discarded_events = true,
			.discarded_packets = true,
			.timed_packets = true,
			.clock = true },
		{ .packets = true, .discarded_events = true, .discarded_packets = true },
	};
	bt_clock_class *clock = make_clock(rich, hz);
	bt_trace_class *tc = bt_trace_class_create(rich->self);
	bt_value *map = attributes("a trace class");
	uint64_t now = 1000;

	bt_trace_class_set_assigns_automatic_stream_class_id(tc, BT_FALSE);
	bt_trace_class_set_user_attributes(tc, map);
	bt_value_put_ref(map);
	/* A clock may be seen before any stream. */
	add(rich, bt_message_message_iterator_inactivity_create(it, clock, now));
	for (unsigned int i = 0; i < STREAMS; i++) {
		make_stream_class(rich, tc, &classes[i], 7 + i * 11, clock);
	}
	bt_trace *trace = make_trace(rich, tc);

	for (unsigned int i = 0; i < STREAMS; i++) {
		add_stream(it, rich, &classes[i], trace, 10 + i, &now, i == 1 ? clock : NULL);
		/* A second stream of the class, its id far away. */
		add_stream(it, rich, &classes[i], trace, UINT64_MAX - i, &now, NULL);
	}
	for (unsigned int i = 0; i < STREAMS; i++) {
		bt_event_class_put_ref(classes[i].events[0]);
		bt_event_class_put_ref(classes[i].events[1]);
		bt_stream_class_put_ref(classes[i].stream_class);
	}
	bt_trace_put_ref(trace);
	bt_trace_class_put_ref(tc);
	bt_clock_class_put_ref(clock);
}

/* ---- methods ---- */

bt_component_class_get_supported_mip_versions_method_status rich_supported_mip(
	bt_self_component_class_source *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
	(void)self_class, (void)params, (void)data, (void)level;
	return (bt_component_class_get_supported_mip_versions_method_status)
		bt_integer_range_set_unsigned_add_range(versions, 0, TANDEM_MIP_MAX);
}

bt_component_class_initialize_method_status rich_initialize(bt_self_component_source *self,
	bt_self_component_source_configuration *config, const bt_value *params, void *data)
{
	(void)config, (void)params, (void)data;
	return (bt_component_class_initialize_method_status)
		bt_self_component_source_add_output_port(self, "out", NULL, NULL);
}

bt_message_iterator_class_initialize_method_status rich_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port)
{
	struct rich *rich = calloc(1, sizeof(*rich));

	(void)port;
	rich->self = bt_self_message_iterator_borrow_component(self);
	rich->mip = bt_self_component_get_graph_mip_version(rich->self);
	produce(self, rich, 1000000000);
	bt_self_message_iterator_configuration_set_can_seek_forward(config, BT_TRUE);
	bt_self_message_iterator_set_data(self, rich);
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

bt_message_iterator_class_next_method_status rich_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	if (rich->at == rich->count) {
		return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
	}
	for (*count = 0; *count < capacity && rich->at < rich->count; rich->at++) {
		bt_message_get_ref(rich->messages[rich->at]);
		messages[(*count)++] = rich->messages[rich->at];
	}
	return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK;
}

bt_message_iterator_class_seek_beginning_method_status rich_iterator_seek(
	bt_self_message_iterator *self)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	rich->at = 0;
	return BT_MESSAGE_ITERATOR_CLASS_SEEK_BEGINNING_METHOD_STATUS_OK;
}

void rich_iterator_finalize(bt_self_message_iterator *self)
{
	struct rich *rich = bt_self_message_iterator_get_data(self);

	while (rich->count) {
		bt_message_put_ref(rich->messages[--rich->count]);
	}
	free(rich);
}
