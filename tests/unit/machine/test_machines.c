/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/machines.h>

#define HOST    TEST_DATA_DIR "/kvm/kvm-two-guests.dat"
#define GUEST_A TEST_DATA_DIR "/kvm/kvm-two-guests-l2.dat"
#define GUEST_B TEST_DATA_DIR "/kvm/kvm-two-guests-l2b.dat"
#define ALONE   TEST_DATA_DIR "/pairs/mono-nosync-guestrole.dat"

struct lines {
	unsigned int warnings;
	char last[1024];
};

static void take_line(void *user, enum tdm_log_level level, const char *line)
{
	struct lines *const lines = user;

	if (level == TDM_LOG_WARNING) {
		lines->warnings++;
		snprintf(lines->last, sizeof(lines->last), "%s", line);
	}
}

/* Opens inputs and expects a machine for each. */
static struct tdm_machines *open_all(const struct tdm_machine_input *inputs, size_t count,
	const struct tdm_machines_options *options, struct tdm_log *log, struct lines *lines)
{
	struct tdm_machines *machines = NULL;
	struct tdm_error err = { TDM_OK, "" };

	memset(lines, 0, sizeof(*lines));
	*log = (struct tdm_log){ TDM_LOG_WARNING, take_line, lines };
	assert_int_equal(tdm_machines_open(inputs, count, options, log, &machines, &err), TDM_OK);
	assert_int_equal(tdm_machines_count(machines), count);
	return machines;
}

static void the_host_is_found_in_any_order(void **state)
{
	static const char *const paths[][3] = {
		{ HOST, GUEST_A, GUEST_B },
		{ GUEST_A, HOST, GUEST_B },
		{ GUEST_B, GUEST_A, HOST },
	};
	const struct tdm_machines_options options = { 0 };

	(void)state;
	for (size_t order = 0; order < 3; order++) {
		const struct tdm_machine_input inputs[] = { { NULL, paths[order][0] },
			{ NULL, paths[order][1] }, { NULL, paths[order][2] } };
		struct lines lines;
		struct tdm_log log;
		struct tdm_machines *const machines = open_all(inputs, 3, &options, &log, &lines);
		size_t host = 3;

		for (size_t i = 0; i < 3; i++) {
			if (tdm_machines_at(machines, i)->is_host) {
				host = i;
			}
		}
		assert_string_equal(tdm_machines_at(machines, host)->path, HOST);
		assert_string_equal(tdm_machines_at(machines, host)->name, "host");
		for (size_t i = 0; i < 3; i++) {
			const struct tdm_machine *const machine = tdm_machines_at(machines, i);

			assert_int_equal(machine->reference, host);
			assert_int_equal(machine->tie, i == host ? TDM_TIE_SELF : TDM_TIE_SHIFT);
		}
		assert_int_equal(lines.warnings, 0);
		tdm_machines_close(machines);
	}
}

static void users_names_win_and_equal_ones_are_numbered(void **state)
{
	const struct tdm_machine_input inputs[] = { { "host", GUEST_A }, { "web", HOST },
		{ "web", GUEST_B } };
	const struct tdm_machines_options options = { 0 };
	struct lines lines;
	struct tdm_log log;
	struct tdm_machines *const machines = open_all(inputs, 3, &options, &log, &lines);

	(void)state;
	assert_string_equal(tdm_machines_at(machines, 0)->name, "host");
	assert_true(tdm_machines_at(machines, 0)->is_host);
	assert_string_equal(tdm_machines_at(machines, 1)->name, "web");
	assert_string_equal(tdm_machines_at(machines, 2)->name, "web-2");
	tdm_machines_close(machines);
}

static void each_machine_has_a_clock_uuid_of_its_own_that_stays(void **state)
{
	const struct tdm_machine_input inputs[] = { { NULL, HOST }, { NULL, GUEST_A },
		{ NULL, HOST } };
	const struct tdm_machines_options options = { 0 };
	struct lines lines;
	struct tdm_log log;
	struct tdm_machines *const machines = open_all(inputs, 3, &options, &log, &lines);

	(void)state;
	assert_memory_not_equal(tdm_machines_at(machines, 0)->clock_uuid,
		tdm_machines_at(machines, 1)->clock_uuid, 16);
	/* The same file again is the same machine. */
	assert_memory_equal(tdm_machines_at(machines, 0)->clock_uuid,
		tdm_machines_at(machines, 2)->clock_uuid, 16);
	assert_int_equal(tdm_machines_at(machines, 2)->tie, TDM_TIE_SAME);
	tdm_machines_close(machines);
}

static void unrelated_inputs_are_told_once_or_refused(void **state)
{
	const struct tdm_machine_input inputs[] = { { NULL, HOST }, { "a", ALONE },
		{ "b", TEST_DATA_DIR "/single/v7-gap.dat" } };
	struct tdm_machines_options options = { 0 };
	struct tdm_error err = { TDM_OK, "" };
	struct tdm_machines *machines;
	struct lines lines;
	struct tdm_log log;

	(void)state;
	machines = open_all(inputs, 3, &options, &log, &lines);
	assert_int_equal(lines.warnings, 1);
	assert_non_null(strstr(lines.last, "\"a\""));
	assert_non_null(strstr(lines.last, "\"b\""));
	tdm_machines_close(machines);
	options.refuse_unrelated = true;
	assert_int_equal(
		tdm_machines_open(inputs, 3, &options, NULL, &machines, &err), TDM_ERR_RANGE);
	assert_non_null(strstr(err.text, "nothing relates"));
}

static void an_input_that_cannot_be_opened_stops_or_is_passed_over(void **state)
{
	const struct tdm_machine_input inputs[] = { { NULL, "/nonexistent/trace.dat" },
		{ NULL, HOST } };
	struct tdm_machines_options options = { 0 };
	struct tdm_error err = { TDM_OK, "" };
	struct tdm_machines *machines = NULL;
	struct lines lines;
	struct tdm_log log;

	(void)state;
	assert_int_not_equal(tdm_machines_open(inputs, 2, &options, NULL, &machines, &err), TDM_OK);
	assert_non_null(strstr(err.text, "/nonexistent/trace.dat"));
	options.keep_going = true;
	machines = open_all(inputs, 2, &options, &log, &lines);
	assert_null(tdm_machines_at(machines, 0)->trace);
	assert_true(tdm_machines_at(machines, 1)->is_host);
	tdm_machines_close(machines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_is_found_in_any_order),
		cmocka_unit_test(users_names_win_and_equal_ones_are_numbered),
		cmocka_unit_test(each_machine_has_a_clock_uuid_of_its_own_that_stays),
		cmocka_unit_test(unrelated_inputs_are_told_once_or_refused),
		cmocka_unit_test(an_input_that_cannot_be_opened_stops_or_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
