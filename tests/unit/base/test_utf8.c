/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <tandem/utf8.h>

static const char *shown(struct tdm_buffer *buffer, const char *bytes, size_t size)
{
	buffer->size = 0;
	assert_int_equal(tdm_utf8_append_shown(buffer, (const uint8_t *)bytes, size), TDM_OK);
	assert_int_equal(tdm_buffer_append(buffer, "", 1), TDM_OK);
	return (const char *)buffer->bytes;
}

static void valid_text_stays_as_it_is(void **state)
{
	static const char text[] = "swapper/0 \xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa7\n";
	struct tdm_buffer buffer = { 0 };

	(void)state;
	assert_true(tdm_utf8_is_valid((const uint8_t *)text, sizeof(text) - 1));
	assert_string_equal(shown(&buffer, text, sizeof(text) - 1), text);
	tdm_buffer_release(&buffer);
}

static void each_byte_of_no_valid_sequence_is_shown_in_hexadecimal(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *shown;
	} cases[] = {
		{ "a\xff z", 4, "a\\xff z" },
		{ "\xc3", 1, "\\xc3" },                            /* cut short */
		{ "\xc0\xaf", 2, "\\xc0\\xaf" },                   /* overlong */
		{ "\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf" },          /* overlong */
		{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },          /* surrogate */
		{ "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
		{ "\xe2\x82zzzzzzz", 9, "\\xe2\\x82zzzzzzz" },
	};
	struct tdm_buffer buffer = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(tdm_utf8_is_valid((const uint8_t *)cases[i].bytes, cases[i].size));
		assert_string_equal(shown(&buffer, cases[i].bytes, cases[i].size), cases[i].shown);
	}
	tdm_buffer_release(&buffer);
}

static void nothing_visible_breaks_a_line_or_speaks_to_a_terminal(void **state)
{
	static const char text[] = "a b\n\x1b[31m\t\x7f\xc2\x9b\xc2\xa0\xff\xc3\xbc";
	struct tdm_buffer buffer = { 0 };

	(void)state;
	assert_int_equal(
		tdm_utf8_append_visible(&buffer, (const uint8_t *)text, sizeof(text) - 1), TDM_OK);
	assert_int_equal(tdm_buffer_append(&buffer, "", 1), TDM_OK);
	assert_string_equal((const char *)buffer.bytes,
		"a b\\x0a\\x1b[31m\\x09\\x7f\\xc2\\x9b\xc2\xa0\\xff\xc3\xbc");
	tdm_buffer_release(&buffer);
}

static void text_ends_at_its_nul_or_with_its_array(void **state)
{
	(void)state;
	assert_int_equal(tdm_text_length((const uint8_t *)"ab\0cd", 5), 2);
	assert_int_equal(tdm_text_length((const uint8_t *)"abcde", 5), 5);
	assert_int_equal(tdm_text_length(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_text_stays_as_it_is),
		cmocka_unit_test(each_byte_of_no_valid_sequence_is_shown_in_hexadecimal),
		cmocka_unit_test(nothing_visible_breaks_a_line_or_speaks_to_a_terminal),
		cmocka_unit_test(text_ends_at_its_nul_or_with_its_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
