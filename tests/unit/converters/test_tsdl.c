/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <ctf_walk.h>
#include <stdio.h>
#include <string.h>
#include <tsdl.h>

static const char *const wanted[] = { "id", "value", NULL };

static enum tdm_status parse(
	const char *text, struct tsdl_metadata *metadata, struct tdm_error *err)
{
	return tsdl_parse("metadata", (const uint8_t *)text, strlen(text), wanted, metadata, err);
}

static void blocks_and_types_are_understood(void **state)
{
	static const char text[] =
		"/* CTF 1.8 */\n"
		"typealias integer { size = 16; align = 8; signed = true; } := my short;\n"
		"typealias integer { size = 8; align = 8; } := uint8_t;\n"
		"trace { major = 1; minor = 8; byte_order = be; packet.header := struct { uint8_t uuid[16]; }; };\n"
		"env { hostname = \"a\\\"b\"; number = -5; };\n"
		"clock { name = c; freq = 1000; offset_s = 3; offset = 0x10; };\n"
		"stream { id = 2; event.header := struct { uint8_t id; } align(32); };\n"
		"event { name = \"x:y\"; id = 7; stream_id = 2; fields := struct {\n"
		"  uint8_t _n; uint8_t _list[_n]; string _s; enum : uint8_t { A = 1, B = 2 ... 5 } _e;\n"
		"  variant <_e> { uint8_t A; string B; } _v; uint8_t grid[2][3]; }; };\n";
	struct tsdl_metadata metadata;
	struct tdm_error err = { 0 };

	(void)state;
	/* "my short" is no alias of C words: only the first word names it, so this text is refused... */
	assert_int_equal(parse(text, &metadata, &err), TDM_ERR_FORMAT);
	tsdl_release(&metadata);
	/* ... and without it accepted. */
	assert_int_equal(
		parse(strstr(text, "typealias integer { size = 8"), &metadata, &err), TDM_OK);
	assert_true(metadata.is_big_endian);
	assert_string_equal(tsdl_find_env(&metadata, "hostname")->text, "a\"b");
	assert_int_equal(tsdl_find_env(&metadata, "number")->number, -5);
	assert_int_equal(metadata.clocks[0].freq_hz, 1000);
	assert_int_equal(metadata.clocks[0].offset, 16);
	assert_int_equal(metadata.streams[0].event_header->align_bits, 32);
	assert_string_equal(metadata.events[0].name, "x:y");
	assert_int_equal(metadata.events[0].fields->field_count, 6);
	assert_int_equal(tsdl_find_field(metadata.events[0].fields, "grid")->type->length, 2);
	assert_true(tsdl_find_field(metadata.events[0].fields, "n")->is_referenced);
	tsdl_release(&metadata);
}

static void a_fault_names_its_line_and_what_was_wanted(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "trace {\n major 1; };", "metadata:2: read 1, wanted" },
		{ "typealias integer { size = 65; } := a;", "1 to 64 bits" },
		{ "typealias integer { align = 3; size = 8; } := a;", "power of two" },
		{ "event { fields := struct { nothing x; }; };", "declared" },
		{ "event { name = \"open", "metadata:1" },
		{ "stream { id = 99999999999999999999; };", "metadata:1" },
		{ "\x01", "metadata:1: read '?'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tsdl_metadata metadata;
		struct tdm_error err = { 0 };

		assert_int_equal(parse(cases[i].text, &metadata, &err), TDM_ERR_FORMAT);
		assert_non_null(strstr(err.text, cases[i].says));
		tsdl_release(&metadata);
	}
}

static void types_without_end_are_refused(void **state)
{
	static char text[200000];
	struct tsdl_metadata metadata;
	struct tdm_error err = { 0 };
	size_t used = (size_t)sprintf(text, "event { fields := ");

	(void)state;
	while (used + 64 < sizeof(text)) {
		used += (size_t)sprintf(text + used, "struct { ");
	}
	assert_int_equal(parse(text, &metadata, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "less deep"));
	tsdl_release(&metadata);
}

static void bits_are_walked_in_either_byte_order(void **state)
{
	static const char text[] =
		"trace { byte_order = %s; };\n"
		"event { name = e; id = 1; fields := struct { integer { size = 5; align = 1; } id;\n"
		"  integer { size = 27; align = 1; } value; }; };\n";
	static const uint8_t little[] = { 0x21, 0, 0, 0 }; /* id 1, value 1 */
	static const uint8_t big[] = { 0x08, 0, 0, 1 };

	(void)state;
	for (int is_big = 0; is_big < 2; is_big++) {
		struct tsdl_metadata metadata;
		struct tdm_error err = { 0 };
		struct ctf_walk walk = { .bytes = is_big ? big : little, .end_bits = 32 };
		uint64_t value = 0;
		char full[512];

		snprintf(full, sizeof(full), text, is_big ? "be" : "le");
		assert_int_equal(parse(full, &metadata, &err), TDM_OK);
		assert_true(ctf_walk_over(&walk, metadata.events[0].fields));
		assert_true(ctf_walk_find(&walk, "id", &value));
		assert_int_equal(value, 1);
		assert_true(ctf_walk_find(&walk, "value", &value));
		assert_int_equal(value, 1);
		assert_false(ctf_walk_over(&walk, metadata.events[0].fields));
		assert_non_null(walk.fault);
		tsdl_release(&metadata);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_and_types_are_understood),
		cmocka_unit_test(a_fault_names_its_line_and_what_was_wanted),
		cmocka_unit_test(types_without_end_are_refused),
		cmocka_unit_test(bits_are_walked_in_either_byte_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
