/* SPDX-License-Identifier: MIT */
#include "agent_clock.h"
#include "tdm_cmocka.h"
#include "tsc_check.h"
#include <tandem/socket.h>
#include <unistd.h>

static void clocks_that_run_quietly_have_neither_suspends_nor_steps(void **state)
{
	struct agent_clock clock;
	uint32_t suspends, steps;

	(void)state;
	agent_clock_init(&clock);
	for (int i = 0; i < 2000; i++) {
		agent_clock_look(&clock, &suspends, &steps);
		assert_int_equal(suspends, 0);
		assert_int_equal(steps, 0);
	}
	agent_clock_release(&clock);
}

static void a_suspend_is_counted_once(void **state)
{
	struct agent_clock clock;
	uint32_t suspends, steps;

	(void)state;
	agent_clock_init(&clock);
	/* As if BOOTTIME had gained 2 s on MONOTONIC since. */
	clock.boot_less_mono -= 2000000000;
	agent_clock_look(&clock, &suspends, &steps);
	assert_int_equal(suspends, 1);
	agent_clock_look(&clock, &suspends, &steps);
	assert_int_equal(suspends, 1);
	assert_int_equal(steps, 0);
	agent_clock_release(&clock);
}

static void a_step_of_the_wall_clock_is_counted_in_either_direction(void **state)
{
	struct agent_clock clock;
	uint32_t suspends, steps;

	(void)state;
	agent_clock_init(&clock);
	clock.real_less_mono -= 1000000;
	agent_clock_look(&clock, &suspends, &steps);
	assert_int_equal(steps, 1);
	clock.real_less_mono += 5000000;
	agent_clock_look(&clock, &suspends, &steps);
	assert_int_equal(steps, 2);
	assert_int_equal(suspends, 0);
	agent_clock_release(&clock);
}

static void steps_are_an_epoch_only_for_clocks_that_show_them(void **state)
{
	(void)state;
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_MONO, 1, 5, 0), 1);
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_TSC, 1, 5, 2), 3);
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_REAL, 1, 5, 1), 7);
	assert_int_equal(agent_clock_epoch(TDM_CLOCK_TAI, 0, 5, 0), 5);
}

static void the_notice_of_a_step_never_fires_by_itself(void **state)
{
	struct agent_clock clock;

	(void)state;
	agent_clock_init(&clock);
	assert_int_equal(
		tdm_socket_wait(clock.step_fd, TDM_WAIT_READ, -1, tdm_deadline_ns(20)), TDM_AGAIN);
	agent_clock_release(&clock);
}

static void kernel_stamps_go_on_once_a_second_at_most(void **state)
{
	struct agent_clock clock;

	(void)state;
	agent_clock_init(&clock);
	assert_true(agent_clock_may_stamp(&clock));
	assert_false(agent_clock_may_stamp(&clock));
	clock.stamps_last_ns -= 1000000000;
	assert_true(agent_clock_may_stamp(&clock));
	agent_clock_release(&clock);
}

static void cpus_of_one_machine_agree_and_the_thread_is_where_it_was(void **state)
{
	struct tsc_check_result results[64];
	cpu_set_t before, after;
	uint32_t from = 0;

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);

	/* No time at all: nothing is measured, and the next call begins where this one stopped. */
	assert_int_equal(tsc_check_some(results, 64, &from, 0), 0);
	if (CPU_COUNT(&before) > 1 && tdm_clock_read(TDM_CLOCK_TSC) != 0) {
		assert_true(from > 0 && from != UINT32_MAX && CPU_ISSET(from, &before));
	}

	const uint32_t first = from;
	size_t count = tsc_check_some(results, 1, &from, 10000);

	assert_true(count == 0 || results[0].cpu >= first);
	while (from != UINT32_MAX && count < 64) {
		count += tsc_check_some(&results[count], 64 - count, &from, 10000);
	}
	for (size_t i = 1; i < count; i++) {
		assert_true(results[i].cpu > results[i - 1].cpu);
	}

	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	/* A CPU that does not get to run in time is left out. */
	assert_true(count < (size_t)CPU_COUNT(&before) || count == 0);
	for (size_t i = 0; i < count; i++) {
		assert_false(results[i].is_off);
		assert_true(
			(uint64_t)(results[i].ticks < 0 ? -results[i].ticks : results[i].ticks) <=
			results[i].bound);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_that_run_quietly_have_neither_suspends_nor_steps),
		cmocka_unit_test(a_suspend_is_counted_once),
		cmocka_unit_test(a_step_of_the_wall_clock_is_counted_in_either_direction),
		cmocka_unit_test(steps_are_an_epoch_only_for_clocks_that_show_them),
		cmocka_unit_test(the_notice_of_a_step_never_fires_by_itself),
		cmocka_unit_test(kernel_stamps_go_on_once_a_second_at_most),
		cmocka_unit_test(cpus_of_one_machine_agree_and_the_thread_is_where_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
