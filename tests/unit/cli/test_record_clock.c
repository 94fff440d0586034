/* SPDX-License-Identifier: MIT */
#include "record_clock.h"
#include <string.h>
#include <tdm_cmocka.h>

static struct tdm_tsc_relation relation = { .vcpu = 0, .offset = -5 };
static const struct kvm_tsc_vm vms[] = {
	{ .name = "100-12", .vcpus = &relation, .vcpu_count = 1 },
	{ .name = "1000-12", .vcpus = &relation, .vcpu_count = 1 },
	{ .name = "300-9", .vcpus = NULL, .vcpu_count = 0 },
};
static const struct vmm web = { .pid = 100 }, db = { .pid = 1000 }, lone = { .pid = 10 },
			empty = { .pid = 300 };

static const char *choose(
	const struct record_clock_guest *guests, size_t count, bool scales, const char *reason)
{
	static struct record_clock choice;

	record_clock_choose(guests, count, vms, 3, scales, &choice);
	if (!strstr(choice.reason, reason)) {
		fail_msg("\"%s\" lacks \"%s\"", choice.reason, reason);
	}
	return choice.name;
}

static void the_tsc_is_taken_where_kvm_knows_every_guest(void **state)
{
	const struct record_clock_guest guests[] = { { "web", &web, false }, { "db", &db, false } };

	(void)state;
	assert_string_equal(choose(guests, 1, true, "the guest"), "x86-tsc");
	assert_string_equal(choose(guests, 2, true, "each guest"), "x86-tsc");
	assert_string_equal(choose(guests, 2, false, "ns of ticks"), "mono_raw");
}

static void one_guest_that_cannot_share_it_decides_for_all(void **state)
{
	const struct record_clock_guest unknown[] = { { "web", &web, false },
		{ "x", NULL, false } };
	const struct record_clock_guest no_kvm[] = { { "web", &web, false },
		{ "l", &lone, false } };
	const struct record_clock_guest no_vcpu[] = { { "e", &empty, false } };
	const struct record_clock_guest tracecmd[] = { { "t", &web, true } };

	(void)state;
	assert_string_equal(choose(unknown, 2, true, "\"x\""), "mono_raw");
	assert_string_equal(choose(no_kvm, 2, true, "\"l\""), "mono_raw");
	assert_string_equal(choose(no_vcpu, 1, true, "tsc-offset"), "mono_raw");
	assert_string_equal(choose(tracecmd, 1, true, "trace-cmd"), "mono_raw");
}

static void a_machine_alone_has_the_clock_of_other_tracers(void **state)
{
	(void)state;
	assert_string_equal(choose(NULL, 0, true, "alone"), "mono");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tsc_is_taken_where_kvm_knows_every_guest),
		cmocka_unit_test(one_guest_that_cannot_share_it_decides_for_all),
		cmocka_unit_test(a_machine_alone_has_the_clock_of_other_tracers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
