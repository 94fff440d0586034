/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/schema.h>

#define HEAD                                                                           \
	"name: sample\nID: 42\nformat:\n"                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static struct tdm_schema *schema;

static int set_up(void **state)
{
	(void)state;
	schema = tdm_schema_create(false, 8);
	return schema ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tdm_schema_destroy(schema);
	return 0;
}

static const struct tdm_event_class *parse(const char *text)
{
	struct tdm_error err;

	assert_int_equal(tdm_schema_add(schema, "test", text, strlen(text), &err), TDM_OK);
	return tdm_schema_at(schema, tdm_schema_count(schema) - 1);
}

/* One field after the common ones. */
static const struct tdm_field *parse_one(const char *line)
{
	char text[2048];
	static unsigned int id = 100;

	snprintf(text, sizeof(text), "name: one\nID: %u\nformat:\n%s%s\nprint fmt: \"\"\n", id++,
		strstr(HEAD, "\tfield"), line);

	const struct tdm_event_class *event_class = parse(text);

	assert_null(event_class->fault);
	assert_int_equal(event_class->common_count, 4);
	assert_int_equal(event_class->field_count, 5);
	return &event_class->fields[4];
}

static void check(const struct tdm_field *field, enum tdm_field_kind kind, bool is_array,
	uint32_t element_bytes, uint32_t element_count)
{
	assert_int_equal(field->kind, kind);
	assert_int_equal(field->is_array, is_array);
	assert_int_equal(field->element_bytes, element_bytes);
	assert_int_equal(field->element_count, element_count);
}

static void integers_of_every_width_keep_their_sign(void **state)
{
	(void)state;
	check(parse_one("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"), TDM_FIELD_SIGNED, false,
		4, 1);
	check(parse_one("\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"), TDM_FIELD_UNSIGNED,
		false, 1, 1);
	check(parse_one("\tfield:long a;\toffset:8;\tsize:8;\tsigned:1;\n"), TDM_FIELD_SIGNED,
		false, 8, 1);
	check(parse_one("\tfield:u24 a;\toffset:8;\tsize:3;\tsigned:1;\n"), TDM_FIELD_SIGNED, false,
		3, 1);
	check(parse_one("\tfield:enum x a;\toffset:8;\tsize:4;\tsigned:0;\n"), TDM_FIELD_UNSIGNED,
		false, 4, 1);
	check(parse_one("\tfield:char a;\toffset:8;\tsize:1;\tsigned:0;\n"), TDM_FIELD_UNSIGNED,
		false, 1, 1);
	check(parse_one("\tfield:xfs_ino_t a;\toffset:8;\tsize:8;\tsigned:0;\n"),
		TDM_FIELD_UNSIGNED, false, 8, 1);
}

static void bool_pointer_and_wide_integer_are_told_apart(void **state)
{
	(void)state;
	check(parse_one("\tfield:bool a;\toffset:8;\tsize:1;\tsigned:0;\n"), TDM_FIELD_BOOL, false,
		1, 1);
	check(parse_one("\tfield:_Bool a;\toffset:8;\tsize:1;\tsigned:0;\n"), TDM_FIELD_BOOL, false,
		1, 1);
	check(parse_one("\tfield:const char *const * a;\toffset:8;\tsize:8;\tsigned:0;\n"),
		TDM_FIELD_POINTER, false, 8, 1);
	check(parse_one("\tfield:void *a;\toffset:8;\tsize:4;\tsigned:0;\n"), TDM_FIELD_POINTER,
		false, 4, 1);
	check(parse_one("\tfield:struct cpumask * a;\toffset:8;\tsize:8;\tsigned:0;\n"),
		TDM_FIELD_POINTER, false, 8, 1);
	check(parse_one("\tfield:unsigned __int128 a;\toffset:16;\tsize:16;\tsigned:0;\n"),
		TDM_FIELD_WIDE, false, 16, 1);

	const struct tdm_field *function =
		parse_one("\tfield:int (*fn)(struct x *, int);\toffset:8;\tsize:8;\tsigned:0;\n");

	assert_string_equal(function->name, "fn");
	check(function, TDM_FIELD_POINTER, false, 8, 1);
}

static void char_arrays_are_text_and_byte_arrays_are_numbers(void **state)
{
	(void)state;
	check(parse_one("\tfield:char a[16];\toffset:8;\tsize:16;\tsigned:0;\n"), TDM_FIELD_TEXT,
		true, 1, 16);
	check(parse_one("\tfield:char a[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:0;\n"),
		TDM_FIELD_TEXT, true, 1, 16);
	check(parse_one("\tfield:u8 a[16];\toffset:8;\tsize:16;\tsigned:0;\n"), TDM_FIELD_UNSIGNED,
		true, 1, 16);
	check(parse_one("\tfield:unsigned char a[6];\toffset:8;\tsize:6;\tsigned:0;\n"),
		TDM_FIELD_UNSIGNED, true, 1, 6);
	check(parse_one("\tfield:char a[2][8];\toffset:8;\tsize:16;\tsigned:0;\n"), TDM_FIELD_TEXT,
		true, 1, 16);
}

static void arrays_have_elements_of_their_size(void **state)
{
	(void)state;
	check(parse_one("\tfield:unsigned long a[6];\toffset:8;\tsize:48;\tsigned:0;\n"),
		TDM_FIELD_UNSIGNED, true, 8, 6);
	check(parse_one("\tfield:long a[N_ITEMS];\toffset:8;\tsize:24;\tsigned:1;\n"),
		TDM_FIELD_SIGNED, true, 8, 3);
	check(parse_one("\tfield:u16[4] a;\toffset:8;\tsize:8;\tsigned:0;\n"), TDM_FIELD_UNSIGNED,
		true, 2, 4);
	check(parse_one("\tfield:void * a[4];\toffset:8;\tsize:32;\tsigned:0;\n"),
		TDM_FIELD_POINTER, true, 8, 4);
	/* A structure is its bytes. */
	check(parse_one("\tfield:struct in6_addr a;\toffset:8;\tsize:16;\tsigned:0;\n"),
		TDM_FIELD_UNSIGNED, true, 1, 16);
	check(parse_one("\tfield:struct x a[2];\toffset:8;\tsize:48;\tsigned:0;\n"),
		TDM_FIELD_UNSIGNED, true, 1, 48);
}

static void locators_and_trailing_arrays_leave_the_count_to_the_record(void **state)
{
	const struct tdm_field *field =
		parse_one("\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:1;\n");

	(void)state;
	assert_int_equal(field->place, TDM_PLACE_DATA_LOC);
	assert_string_equal(field->name, "name");
	assert_string_equal(field->type_name, "char");
	check(field, TDM_FIELD_TEXT, true, 1, 0);
	field = parse_one("\tfield:__rel_loc u64[] list;\toffset:8;\tsize:4;\tsigned:0;\n");
	assert_int_equal(field->place, TDM_PLACE_REL_LOC);
	check(field, TDM_FIELD_UNSIGNED, true, 8, 0);
	field = parse_one("\tfield:__data_loc cpumask_t cpus;\toffset:8;\tsize:4;\tsigned:0;\n");
	check(field, TDM_FIELD_CPUMASK, true, 8, 0);
	field = parse_one("\tfield:char buf[];\toffset:8;\tsize:0;\tsigned:0;\n");
	assert_int_equal(field->place, TDM_PLACE_TRAILING);
	check(field, TDM_FIELD_TEXT, true, 1, 0);
	field = parse_one("\tfield:unsigned long caller[];\toffset:8;\tsize:0;\tsigned:0;\n");
	check(field, TDM_FIELD_UNSIGNED, true, 8, 0);
}

static void a_kernel_stack_goes_on_to_the_end_of_its_record(void **state)
{
	static const char text[] =
		"name: kernel_stack\nID: 4\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		"\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
	uint8_t record[16 + 3 * 8 + 4] = { 0 };
	struct tdm_span span;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_schema_add(schema, "ftrace", text, strlen(text), &err), TDM_OK);

	const struct tdm_field *caller =
		tdm_event_class_field(tdm_schema_find(schema, 4), "caller");

	assert_true(tdm_field_span(caller, record, sizeof(record), false, &span));
	assert_int_equal(span.size_bytes, 3 * 8);
}

static void extra_common_fields_are_common_fields(void **state)
{
	static const char text[] =
		"name: other\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned char common_migrate_disable;\toffset:12;\tsize:1;\tsigned:0;\n"
		"\n\tfield:u64 x;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: broken \" ((\n";
	const struct tdm_event_class *event_class = parse(text);

	(void)state;
	assert_int_equal(event_class->common_count, 3);
	assert_int_equal(event_class->field_count, 4);
	assert_int_equal(event_class->pid_offset, 8);
	assert_int_equal(event_class->fixed_bytes, 24);
	assert_null(event_class->fault);
}

static void a_name_that_comes_twice_or_is_a_keyword_gets_a_suffix(void **state)
{
	const struct tdm_event_class *event_class =
		parse(HEAD "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
			   "\tfield:int a;\toffset:12;\tsize:4;\tsigned:1;\n"
			   "\tfield:int a_2;\toffset:16;\tsize:4;\tsigned:1;\n"
			   "\tfield:int common_pid;\toffset:20;\tsize:4;\tsigned:1;\n"
			   "\tfield:int void;\toffset:24;\tsize:4;\tsigned:1;\n");

	(void)state;
	assert_int_equal(event_class->field_count, 9);
	assert_string_equal(event_class->fields[5].name, "a");
	for (uint32_t i = 0; i < event_class->field_count; i++) {
		assert_string_not_equal(event_class->fields[i].unique_name, "void");
		for (uint32_t k = 0; k < i; k++) {
			assert_string_not_equal(event_class->fields[i].unique_name,
				event_class->fields[k].unique_name);
		}
	}
	assert_string_equal(event_class->fields[4].unique_name, "a");
	assert_string_equal(event_class->fields[6].unique_name, "a_2");
}

static void a_bad_field_loses_its_event_alone_and_names_the_line(void **state)
{
	const struct tdm_event_class *event_class =
		parse(HEAD "\tfield:int good;\toffset:8;\tsize:4;\tsigned:1;\n"
			   "\tfield:int bad;\toffset:x;\tsize:4;\tsigned:1;\n");

	(void)state;
	assert_non_null(event_class->fault);
	assert_non_null(strstr(event_class->fault, "line 10"));
	assert_non_null(strstr(event_class->fault, "bad"));
	assert_string_equal(event_class->name, "sample");
	assert_null(parse(
		"name: next\nID: 43\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n")
			    ->fault);
}

static void a_field_that_ends_past_64_kib_is_a_fault(void **state)
{
	(void)state;
	assert_non_null(
		parse(HEAD "\tfield:char a[99999];\toffset:8;\tsize:99999;\tsigned:0;\n")->fault);
	assert_non_null(parse(
		"name: x\nID: 44\nformat:\n\tfield:u64 a;\toffset:65530;\tsize:8;\tsigned:0;\n")
				->fault);
}

static void a_text_without_id_is_refused_and_an_id_is_given_once(void **state)
{
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_schema_add(schema, "t", "name: a\nID: x\n", 14, &err), TDM_ERR_FORMAT);
	assert_int_equal(
		tdm_schema_add(schema, "t", "name: a\nID: 65536\n", 18, &err), TDM_ERR_FORMAT);
	assert_int_equal(tdm_schema_add(schema, "t", "", 0, &err), TDM_ERR_FORMAT);
	parse(HEAD);
	/* The same text again is no fault, another text is. */
	assert_int_equal(tdm_schema_add(schema, "t", HEAD, strlen(HEAD), &err), TDM_OK);
	assert_int_equal(
		tdm_schema_add(schema, "t", HEAD " ", strlen(HEAD) + 1, &err), TDM_ERR_FORMAT);
	assert_non_null(strstr(err.text, "42"));
	assert_int_equal(tdm_schema_count(schema), 1);
}

static void every_cut_of_a_format_is_survived(void **state)
{
	static const char text[] = HEAD
		"\tfield:__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:int (*fn)(int);\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"%s\"\n";

	(void)state;
	for (size_t size = 0; size < sizeof(text); size++) {
		struct tdm_schema *own = tdm_schema_create(false, 8);
		/* Exactly so large that a sanitizer sees a read behind it. */
		char *cut = malloc(size + 1);
		struct tdm_error err;

		memcpy(cut, text, size);
		cut = realloc(cut, size ? size : 1);
		(void)tdm_schema_add(own, "test", cut, size, &err);
		free(cut);
		tdm_schema_destroy(own);
	}
}

static void a_locator_that_points_outside_the_record_gives_no_bytes(void **state)
{
	const struct tdm_field *field =
		parse_one("\tfield:__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:1;\n");
	uint8_t record[32] = { 0 };
	struct tdm_span span;

	(void)state;
	record[8] = 16;
	record[10] = 16;
	assert_true(tdm_field_span(field, record, sizeof(record), false, &span));
	assert_ptr_equal(span.bytes, record + 16);
	assert_int_equal(span.size_bytes, 16);
	record[10] = 17;
	assert_false(tdm_field_span(field, record, sizeof(record), false, &span));
	assert_int_equal(span.size_bytes, 0);
	record[9] = 0xff;
	record[10] = 1;
	assert_false(tdm_field_span(field, record, sizeof(record), false, &span));
	assert_false(tdm_field_span(field, record, 10, false, &span));
}

static void a_relative_locator_counts_from_its_own_end(void **state)
{
	const struct tdm_field *field =
		parse_one("\tfield:__rel_loc u16[] a;\toffset:8;\tsize:4;\tsigned:0;\n");
	/* Big endian: offset 4, length 6. */
	const uint8_t record[24] = { [9] = 6, [11] = 4 };
	struct tdm_span span;

	(void)state;
	assert_true(tdm_field_span(field, record, sizeof(record), true, &span));
	assert_ptr_equal(span.bytes, record + 16);
	assert_int_equal(span.size_bytes, 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(integers_of_every_width_keep_their_sign),
		TEST(bool_pointer_and_wide_integer_are_told_apart),
		TEST(char_arrays_are_text_and_byte_arrays_are_numbers),
		TEST(arrays_have_elements_of_their_size),
		TEST(locators_and_trailing_arrays_leave_the_count_to_the_record),
		TEST(a_kernel_stack_goes_on_to_the_end_of_its_record),
		TEST(extra_common_fields_are_common_fields),
		TEST(a_name_that_comes_twice_or_is_a_keyword_gets_a_suffix),
		TEST(a_bad_field_loses_its_event_alone_and_names_the_line),
		TEST(a_field_that_ends_past_64_kib_is_a_fault),
		TEST(a_text_without_id_is_refused_and_an_id_is_given_once),
		TEST(every_cut_of_a_format_is_survived),
		TEST(a_locator_that_points_outside_the_record_gives_no_bytes),
		TEST(a_relative_locator_counts_from_its_own_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
