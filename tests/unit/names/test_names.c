/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/names.h>

static void block_flags_become_lttngs(void **state)
{
	static const struct {
		const char *text;
		uint32_t flags;
	} cases[] = {
		{ "W", 1 },
		{ "R", 4 },
		{ "RA", 4 | 8 },
		{ "WS", 1 | 32 },
		{ "WSM", 1 | 32 | 64 },
		{ "D", 2 },
		{ "DE", 2 | 128 },
		{ "F", 256 },
		{ "FN", 1024 },
		{ "FF", 1024 | 256 }, /* a flush operation behind the preflush flag */
		{ "FWFS", 1024 | 1 | 512 | 32 },
		{ "WFS", 1 | 512 | 32 },
		{ "N", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			tdm_names_rwbs((const uint8_t *)cases[i].text, strlen(cases[i].text)),
			cases[i].flags);
	}
	assert_int_equal(tdm_names_rwbs(NULL, 0), 0);
	assert_int_equal(tdm_names_rwbs((const uint8_t *)"W\0RRRR", 6), 1);
}

static void a_call_has_the_number_of_its_machine(void **state)
{
	(void)state;
	assert_string_equal(tdm_names_syscall("x86_64", 0), "read");
	assert_string_equal(tdm_names_syscall("x86_64", 5), "newfstat");
	assert_string_equal(tdm_names_syscall("x86_64", 462), "mseal");
	assert_string_equal(tdm_names_syscall("aarch64", 63), "read");
	assert_string_equal(tdm_names_syscall("aarch64", 80), "newfstat");
	assert_string_equal(tdm_names_syscall("i386", 3), "read");
	assert_string_equal(tdm_names_syscall("i386", 24), "getuid16");
	assert_string_equal(tdm_names_syscall("i386", 199), "getuid");
	assert_null(tdm_names_syscall("x86_64", 400));
	assert_null(tdm_names_syscall("x86_64", UINT64_MAX));
	assert_null(tdm_names_syscall("riscv64", 0));
}

static void arguments_are_found_by_name(void **state)
{
	(void)state;
	assert_string_equal(tdm_names_syscall_arguments("openat"), "ddfd pfilename dflags umode");
	assert_string_equal(tdm_names_syscall_arguments("getpid"), "");
	assert_null(tdm_names_syscall_arguments("no_such_call"));
	assert_null(tdm_names_syscall_arguments(""));
}

static struct tdm_schema *make_schema(const char *system, const char *name, const char *fields)
{
	struct tdm_schema *const schema = tdm_schema_create(false, 8);
	struct tdm_error err = { 0 };
	char text[1024];

	snprintf(text, sizeof(text),
		"name: %s\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n%s\nprint fmt: \"\"\n",
		name, fields);
	assert_non_null(schema);
	assert_int_equal(tdm_schema_add(schema, system, text, strlen(text), &err), TDM_OK);
	return schema;
}

static void a_style_decides_what_is_shown(void **state)
{
	struct tdm_schema *const schema = make_schema("sched", "sched_wakeup",
		"\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:int prio;\toffset:12;\tsize:4;\tsigned:1;\n");
	struct tdm_names *const lttng = tdm_names_create(schema, TDM_NAMES_LTTNG, "x86_64");
	struct tdm_names *const ftrace = tdm_names_create(schema, TDM_NAMES_FTRACE, "x86_64");

	(void)state;
	assert_int_equal(tdm_names_count(lttng), 1);
	assert_string_equal(tdm_names_at(lttng, 0)->fields[0].field.name, "tid");
	assert_int_equal(tdm_names_at(lttng, 0)->fields[1].conversion, TDM_CONVERT_PRIO);
	assert_string_equal(tdm_names_at(ftrace, 0)->fields[0].field.name, "pid");
	assert_int_equal(tdm_names_at(ftrace, 0)->fields[1].conversion, TDM_CONVERT_NONE);
	tdm_names_destroy(lttng);
	tdm_names_destroy(ftrace);
	tdm_schema_destroy(schema);
}

static void a_rename_that_would_clash_is_left_out(void **state)
{
	struct tdm_schema *const schema = make_schema("sched", "sched_odd",
		"\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:pid_t tid;\toffset:12;\tsize:4;\tsigned:1;\n");
	struct tdm_names *const names = tdm_names_create(schema, TDM_NAMES_LTTNG, "x86_64");

	(void)state;
	assert_string_equal(tdm_names_at(names, 0)->fields[0].field.name, "pid");
	assert_string_equal(tdm_names_at(names, 0)->fields[1].field.name, "tid");
	tdm_names_destroy(names);
	tdm_schema_destroy(schema);
}

static void kvm_is_x86s_but_on_arm(void **state)
{
	struct tdm_schema *const schema = make_schema("kvm", "kvm_entry",
		"\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n");
	struct tdm_names *const x86 = tdm_names_create(schema, TDM_NAMES_LTTNG, "x86_64");
	struct tdm_names *const arm = tdm_names_create(schema, TDM_NAMES_LTTNG, "aarch64");

	(void)state;
	assert_string_equal(tdm_names_at(x86, 0)->name, "kvm_x86_entry");
	assert_string_equal(tdm_names_at(arm, 0)->name, "kvm_entry");
	tdm_names_destroy(x86);
	tdm_names_destroy(arm);
	tdm_schema_destroy(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_flags_become_lttngs),
		cmocka_unit_test(a_call_has_the_number_of_its_machine),
		cmocka_unit_test(arguments_are_found_by_name),
		cmocka_unit_test(a_style_decides_what_is_shown),
		cmocka_unit_test(a_rename_that_would_clash_is_left_out),
		cmocka_unit_test(kvm_is_x86s_but_on_arm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
