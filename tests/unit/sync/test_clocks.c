/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <string.h>
#include <tandem/clocks.h>
#include <tandem/local_clock.h>

static void every_clock_of_ftrace_has_its_kind(void **state)
{
	static const struct {
		const char *name;
		enum tdm_clock clock, raw;
	} cases[] = { { "mono", TDM_CLOCK_MONO, TDM_CLOCK_RAW },
		{ "mono_raw", TDM_CLOCK_RAW, TDM_CLOCK_RAW },
		{ "boot", TDM_CLOCK_BOOT, TDM_CLOCK_RAW }, { "tai", TDM_CLOCK_TAI, TDM_CLOCK_RAW },
		{ "local", TDM_CLOCK_MARKER, TDM_CLOCK_RAW },
		{ "global", TDM_CLOCK_MARKER, TDM_CLOCK_RAW },
		{ "perf", TDM_CLOCK_MARKER, TDM_CLOCK_RAW },
		{ "uptime", TDM_CLOCK_MARKER, TDM_CLOCK_RAW } };
	enum tdm_clock clock;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(tdm_clock_by_name(cases[i].name, &clock, NULL), TDM_OK);
		assert_int_equal(clock, cases[i].clock);
		assert_int_equal(tdm_clock_raw_of(clock), cases[i].raw);
	}
}

static void what_is_no_clock_is_refused_with_the_reason(void **state)
{
	enum tdm_clock clock;
	struct tdm_error err;

	(void)state;
	assert_int_equal(tdm_clock_by_name("counter", &clock, &err), TDM_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "does not tell time"));
	assert_int_equal(tdm_clock_by_name("mono ", &clock, &err), TDM_ERR_UNSUPPORTED);
}

static void a_sandwich_holds_what_was_read_between(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		const uint64_t before = tdm_clock_read(TDM_CLOCK_MONO);
		const struct tdm_sandwich sandwich =
			tdm_clock_sandwich(TDM_CLOCK_MONO, TDM_CLOCK_MONO);
		const uint64_t after = tdm_clock_read(TDM_CLOCK_MONO);
		const uint64_t apart = sandwich.inner > sandwich.outer
					       ? sandwich.inner - sandwich.outer
					       : sandwich.outer - sandwich.inner;

		/* One clock in itself: they lie within half the width of one another, and within the call. */
		assert_true(apart <= sandwich.width / 2 + 1);
		assert_true(sandwich.inner >= before && sandwich.inner <= after);
	}
}

static void a_raw_clock_needs_no_relation_to_itself(void **state)
{
	struct tdm_local_clock clock;
	struct tdm_sandwich sandwich;

	(void)state;
	assert_int_equal(tdm_local_clock_init(&clock, "mono_raw", NULL, NULL), TDM_OK);
	assert_int_equal(tdm_local_clock_sample(&clock, &sandwich, NULL), TDM_AGAIN);

	const struct tdm_reading at = tdm_local_clock_arrival(&clock);

	assert_true(at.raw == at.trace && at.raw > 0);
	tdm_local_clock_release(&clock);
}

static void the_tsc_runs_at_the_frequency_that_is_told(void **state)
{
#if defined(__x86_64__)
	const uint64_t hz = tdm_clock_tsc_hz();
	const struct timespec pause = { .tv_nsec = 20000000 };
	const struct tdm_sandwich first = tdm_clock_sandwich(TDM_CLOCK_RAW, TDM_CLOCK_TSC);

	nanosleep(&pause, NULL);

	const struct tdm_sandwich second = tdm_clock_sandwich(TDM_CLOCK_RAW, TDM_CLOCK_TSC);
	const double measured =
		(double)(second.inner - first.inner) * 1e9 / (double)(second.outer - first.outer);

	assert_true(measured > (double)hz * 0.999 && measured < (double)hz * 1.001);
#endif
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_clock_of_ftrace_has_its_kind),
		cmocka_unit_test(what_is_no_clock_is_refused_with_the_reason),
		cmocka_unit_test(a_sandwich_holds_what_was_read_between),
		cmocka_unit_test(a_raw_clock_needs_no_relation_to_itself),
		cmocka_unit_test(the_tsc_runs_at_the_frequency_that_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
