/* SPDX-License-Identifier: MIT */
/*
 * rich_class.c - field classes of every kind, with every kind of link.
 */
#include "rich_priv.h"
#include <string.h>

bt_value *rich_attributes(const char *what)
{
	bt_value *map = bt_value_map_create();

	CHECK(bt_value_map_insert_string_entry(map, "of", what) == 0);
	CHECK(bt_value_map_insert_signed_integer_entry(map, "length", (int64_t)strlen(what)) == 0);
	return map;
}

void rich_append(bt_field_class *structure, const char *name, bt_field_class *member)
{
	bt_value *map = rich_attributes(name);

	bt_field_class_set_user_attributes(member, map);
	CHECK(bt_field_class_structure_append_member(structure, name, member) == 0);
	bt_field_class_structure_member_set_user_attributes(
		bt_field_class_structure_borrow_member_by_index(
			structure, bt_field_class_structure_get_member_count(structure) - 1),
		map);
	bt_field_class_put_ref(member);
	bt_value_put_ref(map);
}

bt_field_class *rich_number(bt_trace_class *tc, uint64_t bits, int base)
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

bt_field_class *rich_unsigned_enumeration(bt_trace_class *tc)
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

#if TANDEM_HAVE_BT_2_1
static bt_field_location *location(bt_trace_class *tc, const struct target *to)
{
	return bt_field_location_create(
		tc, (bt_field_location_scope)to->scope, to->items, to->count);
}
#endif

bt_field_class *rich_dynamic_array(
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
bt_field_class *rich_option(struct rich *rich, bt_trace_class *tc, int kind,
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
	bt_field_class *inner[3] = { rich_number(tc, 16, 16), bt_field_class_string_create(tc),
		bt_field_class_structure_create(tc) };
	bt_field_class *fc = NULL;

	rich_append(inner[2], "deep", rich_number(tc, 64, 2));
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
		bt_value *map = rich_attributes("an option");

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
	bt_field_class *hinted = rich_number(tc, 8, 10);

	CHECK(bt_field_class_bit_array_add_flag(flags, "some bits", bits) == 0);
	bt_integer_range_set_unsigned_put_ref(bits);
	rich_append(payload, "flags", flags);
	CHECK(bt_field_class_blob_set_media_type(blob, "image/tiff") == 0);
	rich_append(payload, "blob", blob);
	rich_append(payload, "free_blob",
		bt_field_class_blob_dynamic_without_length_field_location_create(tc));
	rich_append(payload, "linked_blob",
		bt_field_class_blob_dynamic_with_length_field_location_create(tc, place));
	bt_field_location_put_ref(place);
	bt_field_class_integer_set_field_value_hints(
		hinted, BT_FIELD_CLASS_INTEGER_FIELD_VALUE_HINT_SMALL);
	rich_append(payload, "hinted", hinted);
}
#endif

bt_field_class *rich_last_member(bt_field_class *structure)
{
	return bt_field_class_structure_member_borrow_field_class(
		bt_field_class_structure_borrow_member_by_index(
			structure, bt_field_class_structure_get_member_count(structure) - 1));
}

bt_field_class *rich_make_payload(struct rich *rich, bt_trace_class *tc, struct scopes *scopes)
{
	bt_field_class *payload = bt_field_class_structure_create(tc);
	bt_field_class *nested = bt_field_class_structure_create(tc);

	rich_append(payload, "bool", bt_field_class_bool_create(tc));
	rich_append(payload, "bits", bt_field_class_bit_array_create(tc, 9));
	rich_append(payload, "u8", rich_number(tc, 8, 8));
	rich_append(payload, "u64", rich_number(tc, 64, 16));
	rich_append(payload, "i64", bt_field_class_integer_signed_create(tc));
	rich_append(payload, "uenum", rich_unsigned_enumeration(tc));
	rich_append(payload, "ienum", signed_enumeration(tc));
	rich_append(payload, "single", bt_field_class_real_single_precision_create(tc));
	rich_append(payload, "double", bt_field_class_real_double_precision_create(tc));
	rich_append(payload, "string", bt_field_class_string_create(tc));
	rich_append(payload, "empty", bt_field_class_structure_create(tc));

	bt_field_class *element = rich_number(tc, 8, 10);

	rich_append(payload, "fixed", bt_field_class_array_static_create(tc, element, 3));
	bt_field_class_put_ref(element);
	rich_append(payload, "free",
		rich_dynamic_array(rich, tc, bt_field_class_string_create(tc), NULL));
	/* A link inside a structure that is still being built. */
	rich_append(nested, "len", rich_number(tc, 32, 10));

	const struct target inner = { rich_last_member(nested), PAYLOAD, { "nested", "len" }, 2 };

	rich_append(nested, "linked",
		rich_dynamic_array(rich, tc, bt_field_class_integer_signed_create(tc), &inner));
	rich_append(payload, "nested", nested);
	rich_append(payload, "by_packet",
		rich_dynamic_array(rich, tc, rich_number(tc, 8, 16), &scopes->packet_length));
	rich_append(payload, "option", rich_option(rich, tc, 0, NULL, false));
	rich_append(payload, "option_bool", rich_option(rich, tc, 1, &scopes->flag, true));
	rich_append(payload, "option_bool2", rich_option(rich, tc, 1, &scopes->flag, false));
	rich_append(
		payload, "option_u", rich_option(rich, tc, 2, &scopes->unsigned_selector, false));
	rich_append(payload, "option_i", rich_option(rich, tc, 3, &scopes->signed_selector, false));
	rich_append(payload, "variant", variant(rich, tc, 0, NULL));
	rich_append(payload, "variant_u", variant(rich, tc, 2, &scopes->unsigned_selector));
	rich_append(payload, "variant_i", variant(rich, tc, 3, &scopes->signed_selector));
#if TANDEM_HAVE_BT_2_1
	if (rich->mip > 0) {
		append_version_1(tc, payload, &scopes->packet_length);
	}
#endif
	return payload;
}
