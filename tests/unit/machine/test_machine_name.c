/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <string.h>
#include <tandem/machines.h>

static void users_names_are_letters_digits_and_underscores_first(void **state)
{
	char long_name[TDM_MACHINE_NAME_MAX + 2];

	(void)state;
	assert_true(tdm_machine_name_is_valid("web"));
	assert_true(tdm_machine_name_is_valid("host"));
	assert_true(tdm_machine_name_is_valid("_w.e-b1"));
	assert_true(tdm_machine_name_is_valid("3"));
	assert_false(tdm_machine_name_is_valid(""));
	assert_false(tdm_machine_name_is_valid(".."));
	assert_false(tdm_machine_name_is_valid("-web"));
	assert_false(tdm_machine_name_is_valid("a/b"));
	assert_false(tdm_machine_name_is_valid("a b"));
	assert_false(tdm_machine_name_is_valid("\xc3\xa9"));
	memset(long_name, 'x', sizeof(long_name));
	long_name[TDM_MACHINE_NAME_MAX] = '\0';
	assert_true(tdm_machine_name_is_valid(long_name));
	long_name[TDM_MACHINE_NAME_MAX] = 'x';
	long_name[TDM_MACHINE_NAME_MAX + 1] = '\0';
	assert_false(tdm_machine_name_is_valid(long_name));
}

static void names_out_of_files_never_leave_a_folder(void **state)
{
	static const struct {
		const char *name, *clean;
	} cases[] = {
		{ "../../etc/passwd", "_._.._etc_passwd" },
		{ "", "guest" },
		{ "host", "host_" },
		{ "a b", "a_b" },
		{ ".", "_" },
		{ "web-1.example", "web-1.example" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char clean[TDM_MACHINE_NAME_MAX + 1];

		tdm_machine_name_clean(cases[i].name, clean);
		assert_true(tdm_machine_name_is_valid(clean));
		assert_null(strchr(clean, '/'));
		assert_string_equal(clean, cases[i].clean);
	}
}

static void a_long_name_is_cut(void **state)
{
	char name[200];
	char clean[TDM_MACHINE_NAME_MAX + 1];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	tdm_machine_name_clean(name, clean);
	assert_int_equal(strlen(clean), TDM_MACHINE_NAME_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_names_are_letters_digits_and_underscores_first),
		cmocka_unit_test(names_out_of_files_never_leave_a_folder),
		cmocka_unit_test(a_long_name_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
