/* SPDX-License-Identifier: MIT */
#include "sync/burst_priv.h"
#include "tdm_cmocka.h"
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tandem/socket.h>
#include <unistd.h>

static void a_burst_leaves_the_thread_as_it_found_it(void **state)
{
	struct tdm_burst_mode mode = { 0 };
	cpu_set_t before, within, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int i = 0; i < 3; i++) {
		tdm_burst_enter(&mode, 340);
		assert_int_equal(sched_getaffinity(0, sizeof(within), &within), 0);
		assert_int_equal(CPU_COUNT(&within), 1);
		assert_int_equal(sched_getscheduler(0), mode.is_ahead ? SCHED_FIFO : SCHED_OTHER);
		tdm_burst_leave(&mode);
		assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
		assert_true(CPU_EQUAL(&before, &after));
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	}
}

/* In a process of its own: 0 where what was wanted holds. */
static int in_child(int (*look)(void))
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		_exit(look());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* As the agent runs: no capability, but the limit that it kept; in and out again, more than once. */
static int look_by_limit(void)
{
	const struct rlimit limit = { .rlim_cur = 1, .rlim_max = 1 };
	struct tdm_burst_mode mode = { 0 };

	if (setrlimit(RLIMIT_RTPRIO, &limit) != 0 ||
		syscall(SYS_setresuid, 65534, 65534, 65534) != 0) {
		return 77;
	}
	for (int i = 0; i < 2; i++) {
		struct sched_param param;

		tdm_burst_enter(&mode, 10);
		if (!mode.is_ahead) {
			/* A machine that gives groups no real time. */
			return 77;
		}
		if (sched_getscheduler(0) != SCHED_FIFO || sched_getparam(0, &param) != 0 ||
			param.sched_priority != 1) {
			return 1;
		}
		tdm_burst_leave(&mode);
		if (sched_getscheduler(0) != SCHED_OTHER) {
			return 2;
		}
	}
	return 0;
}

static int look_without_permission(void)
{
	const struct rlimit none = { 0, 0 };
	struct tdm_burst_mode mode = { 0 };

	if (setrlimit(RLIMIT_RTPRIO, &none) != 0 ||
		syscall(SYS_setresuid, 65534, 65534, 65534) != 0) {
		return 77;
	}
	tdm_burst_enter(&mode, 10);
	if (mode.is_ahead || sched_getscheduler(0) != SCHED_OTHER) {
		return 1;
	}
	tdm_burst_leave(&mode);
	return 0;
}

/* Somebody's own policy is not replaced, and not lost. */
static int look_at_own_policy(void)
{
	const struct sched_param none = { .sched_priority = 0 };
	struct tdm_burst_mode mode = { 0 };

	if (sched_setscheduler(0, SCHED_BATCH, &none) != 0) {
		return 77;
	}
	tdm_burst_enter(&mode, 10);
	if (mode.is_ahead || sched_getscheduler(0) != SCHED_BATCH) {
		return 1;
	}
	tdm_burst_leave(&mode);
	return sched_getscheduler(0) == SCHED_BATCH ? 0 : 2;
}

static void real_time_needs_no_more_than_its_limit(void **state)
{
	(void)state;

	const int found = in_child(look_by_limit);

	assert_true(found == 0 || found == 77);
}

static void without_permission_a_burst_goes_on_without(void **state)
{
	(void)state;

	const int found = in_child(look_without_permission);

	assert_true(found == 0 || found == 77);
}

static void a_policy_of_ones_own_stays(void **state)
{
	(void)state;

	const int found = in_child(look_at_own_policy);

	assert_true(found == 0 || found == 77);
}

static void a_burst_is_awake_for_as_long_as_its_exchanges_may_take(void **state)
{
	struct tdm_burst_mode mode = { 0 };
	uint64_t awake_ns = 0;

	(void)state;
	tdm_burst_enter(&mode, 10);
	/* Waits of 10 us each, all of them awake. */
	while (tdm_burst_wait_begins(&mode) && tdm_burst_spin(&mode, 10000)) {
		awake_ns += 10000;
		assert_true(awake_ns <= 10 * TDM_SPIN_EACH_NS);
	}
	assert_int_equal(awake_ns + 10000, 10 * TDM_SPIN_EACH_NS);
	tdm_burst_leave(&mode);
	tdm_burst_enter(&mode, 1000000);
	assert_int_equal(mode.spin_left_ns, TDM_SPIN_BURST_NS);
	tdm_burst_leave(&mode);
}

/* A wait that is longer than one may be awake for: true where it began awake. */
static bool wait_in_vain(struct tdm_burst_mode *mode)
{
	if (!tdm_burst_wait_begins(mode)) {
		return false;
	}
	assert_true(tdm_burst_spin(mode, TDM_SPIN_WAIT_NS));
	assert_false(tdm_burst_spin(mode, 1));
	return true;
}

static void long_waits_in_a_row_end_being_awake(void **state)
{
	struct tdm_burst_mode mode = { 0 };

	(void)state;
	tdm_burst_enter(&mode, 1000000);
	/* One long wait, or some, say nothing: the other end may have been late. */
	for (int i = 0; i < TDM_SPIN_IN_VAIN_MAX - 1; i++) {
		assert_true(wait_in_vain(&mode));
	}
	assert_true(tdm_burst_wait_begins(&mode));
	assert_true(tdm_burst_spin(&mode, 5000));
	/* So many, without a short one between them, do. */
	for (int i = 0; i < TDM_SPIN_IN_VAIN_MAX; i++) {
		assert_true(wait_in_vain(&mode));
	}
	assert_false(wait_in_vain(&mode));
	assert_false(tdm_burst_wait_begins(&mode));
	tdm_burst_leave(&mode);
}

static void few_exchanges_rest_behind_waits_in_vain(void **state)
{
	struct tdm_burst_mode mode = { 0 };

	(void)state;
	/* One long wait is no reason. */
	tdm_burst_enter(&mode, 36);
	assert_true(wait_in_vain(&mode));
	assert_true(tdm_burst_wait_begins(&mode));
	tdm_burst_leave(&mode);
	tdm_burst_enter(&mode, 36);
	assert_true(wait_in_vain(&mode));
	assert_true(wait_in_vain(&mode));
	tdm_burst_leave(&mode);
	for (int i = 0; i < TDM_SPIN_REST_BURSTS; i++) {
		tdm_burst_enter(&mode, 36);
		assert_false(tdm_burst_wait_begins(&mode));
		tdm_burst_leave(&mode);
		/* The bursts of beginning and end are worth a try of their own. */
		if (i == 3) {
			tdm_burst_enter(&mode, 340);
			assert_true(tdm_burst_wait_begins(&mode));
			tdm_burst_leave(&mode);
			i++;
		}
	}
	tdm_burst_enter(&mode, 36);
	assert_true(tdm_burst_wait_begins(&mode));
	tdm_burst_leave(&mode);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_leaves_the_thread_as_it_found_it),
		cmocka_unit_test(real_time_needs_no_more_than_its_limit),
		cmocka_unit_test(without_permission_a_burst_goes_on_without),
		cmocka_unit_test(a_policy_of_ones_own_stays),
		cmocka_unit_test(a_burst_is_awake_for_as_long_as_its_exchanges_may_take),
		cmocka_unit_test(long_waits_in_a_row_end_being_awake),
		cmocka_unit_test(few_exchanges_rest_behind_waits_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
