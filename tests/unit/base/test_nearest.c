/* SPDX-License-Identifier: MIT */
#include "tdm_cmocka.h"
#include <stdio.h>
#include <string.h>
#include <tandem/nearest.h>

static const char *const known[] = { "sched", "kvm", "sched_switch", "sched_waking", "irq", NULL };

static void assert_meant(const char *word, const char *meant)
{
	struct tdm_nearest nearest;
	char wanted[100] = "";

	if (meant) {
		snprintf(wanted, sizeof(wanted), "; did you mean \"%s\"?", meant);
	}
	tdm_nearest_begin(&nearest, word, strlen(word));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		tdm_nearest_try(&nearest, known[i]);
	}
	assert_string_equal(tdm_nearest_text(&nearest), wanted);
}

static void a_letter_more_less_other_or_swapped_is_near(void **state)
{
	(void)state;
	assert_meant("shced", "sched");
	assert_meant("sced", "sched");
	assert_meant("schedd", "sched");
	assert_meant("schad", "sched");
	assert_meant("kvn", "kvm");
	assert_meant("sched_swich", "sched_switch");
	assert_meant("sched_waked", "sched_waking");
}

static void what_is_far_known_or_a_pattern_has_no_neighbour(void **state)
{
	char longest[200];

	(void)state;
	assert_meant("network", NULL);
	assert_meant("k", NULL);
	assert_meant("", NULL);
	assert_meant("sched", NULL);
	assert_meant("shced*", NULL);
	memset(longest, 's', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_meant(longest, NULL);
}

static void only_the_bytes_given_are_the_word(void **state)
{
	struct tdm_nearest nearest;
	char longest[200];

	(void)state;
	tdm_nearest_begin(&nearest, "opne,read", 4);
	tdm_nearest_try(&nearest, "open");
	assert_string_equal(tdm_nearest_text(&nearest), "; did you mean \"open\"?");
	/* Words at the limit of what is looked at. */
	memset(longest, 'a', sizeof(longest));
	longest[TDM_NEAREST_BYTES - 1] = '\0';
	tdm_nearest_begin(&nearest, longest, TDM_NEAREST_BYTES - 1);
	longest[0] = 'b';
	tdm_nearest_try(&nearest, longest);
	assert_non_null(strstr(tdm_nearest_text(&nearest), longest));
	longest[TDM_NEAREST_BYTES - 1] = 'a';
	longest[TDM_NEAREST_BYTES] = '\0';
	tdm_nearest_begin(&nearest, "ab", 2);
	tdm_nearest_try(&nearest, longest);
	assert_string_equal(tdm_nearest_text(&nearest), "");
}

static void an_option_is_looked_up_by_its_name(void **state)
{
	static const struct option options[] = { { "corrections", 1, NULL, 'c' },
		{ "begin", 1, NULL, 'b' }, { "buffer", 1, NULL, 'u' }, { NULL, 0, NULL, 0 } };
	struct tdm_nearest nearest;

	(void)state;
	assert_string_equal(tdm_nearest_option_text(&nearest, "--corections=web=x", options),
		"; did you mean \"--corrections\"?");
	assert_string_equal(tdm_nearest_option_text(&nearest, "--b", options), "");
	assert_string_equal(tdm_nearest_option_text(&nearest, "--", options), "");
	assert_string_equal(tdm_nearest_option_text(&nearest, "-begim", options), "");
	assert_string_equal(tdm_nearest_option_text(&nearest, NULL, options), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_more_less_other_or_swapped_is_near),
		cmocka_unit_test(what_is_far_known_or_a_pattern_has_no_neighbour),
		cmocka_unit_test(an_option_is_looked_up_by_its_name),
		cmocka_unit_test(only_the_bytes_given_are_the_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
