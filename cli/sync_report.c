/* SPDX-License-Identifier: MIT */
#include "sync_report.h"
#include <inttypes.h>
#include <stdio.h>
#include <tandem/wide.h>

/* "812 ns", "6.1 us", "1.250 ms". */
static void print_time(char *text, size_t room, uint64_t ns)
{
	if (ns < 1000) {
		snprintf(text, room, "%" PRIu64 " ns", ns);
	} else if (ns < 1000000) {
		snprintf(text, room, "%" PRIu64 ".%" PRIu64 " us", ns / 1000, ns % 1000 / 100);
	} else {
		snprintf(text, room, "%" PRIu64 ".%03" PRIu64 " ms", ns / 1000000,
			ns % 1000000 / 1000);
	}
}

uint64_t sync_report_ns(const struct sync_outcome *outcome, uint64_t units)
{
	const uint64_t hz = outcome->host_unit_hz ? outcome->host_unit_hz : 1000000000;

	return (uint64_t)((tdm_u128)units * 1000000000 / hz);
}

static void print_quality(const struct cli_command *command, const char *name, const char *dir,
	const struct sync_outcome *outcome)
{
	const struct tdm_quality *quality = &outcome->quality;
	char median[32], worst[32], spread[32], worst_spread[32], doubt[32];

	print_time(median, sizeof(median), sync_report_ns(outcome, quality->median_bound));
	print_time(worst, sizeof(worst), sync_report_ns(outcome, quality->worst_bound));
	print_time(spread, sizeof(spread), sync_report_ns(outcome, quality->median_spread));
	print_time(
		worst_spread, sizeof(worst_spread), sync_report_ns(outcome, quality->worst_spread));
	printf("%s: %s, bound +-%s (worst +-%s), spread %s (worst %s), rate %+" PRId64
	       " ppb, taken to stay within %" PRIu64 "\n",
		name, tdm_grade_name(quality->grade), median, worst, spread, worst_spread,
		quality->rate_ppb, quality->grade == TDM_GRADE_EXACT ? 0 : quality->assumed_ppb);
	printf("%s: %" PRIu64 " of %" PRIu64 " exchanges used, %" PRIu64 " lost, %" PRIu64
	       " bogus, %zu segment%s%s\n",
		name, quality->used, quality->samples, outcome->lost,
		quality->bad_stamps + quality->outvoted + quality->unbelievable + quality->stray,
		outcome->segments, outcome->segments == 1 ? "" : "s",
		quality->composed ? ", through raw clocks" : "");
	if (outcome->segments > 1) {
		print_time(doubt, sizeof(doubt),
			(uint64_t)((tdm_u128)quality->doubt * 1000000000 /
				   (outcome->guest_unit_hz ? outcome->guest_unit_hz : 1000000000)));
		printf("%s: %s; %s in doubt\n", name, outcome->breaks_text, doubt);
	}
	if (outcome->breaks > 0) {
		printf("%s: it did not answer for a while %" PRIu32 " time%s\n", name,
			outcome->breaks, outcome->breaks == 1 ? "" : "s");
	}
	if (outcome->pairs > 0) {
		printf("%s: %" PRIu64
		       " of them readings of this host's clock by the guest, through KVM\n",
			name, outcome->pairs);
	}
	if (!command->quiet) {
		printf("%s: %s/%s.corrections, %s/%s.exchanges\n", name, dir, name, dir, name);
	}
}

/* Says one reason, also with --quiet. */
static int incomplete(const struct cli_command *command, const char *name, const char *reason)
{
	fprintf(stderr, "tandem %s: %s: %s\n", command->name, name, reason);
	return TDM_EXIT_INCOMPLETE;
}

static int report_kvm(
	const struct cli_command *command, const char *name, const struct sync_outcome *outcome)
{
	char text[160], time[32];

	switch (outcome->kvm) {
	case SYNC_KVM_USED:
		return TDM_EXIT_DONE;
	case SYNC_KVM_NONE:
		if (outcome->kvm_ended > 0 && !command->quiet) {
			fprintf(stderr,
				"tandem %s: %s: %" PRIu32
				" VM%s of this machine ended meanwhile: exchanges are in the file\n",
				command->name, name, outcome->kvm_ended,
				outcome->kvm_ended == 1 ? "" : "s");
		}
		return TDM_EXIT_DONE;
	case SYNC_KVM_AMBIGUOUS:
		return incomplete(command, name,
			"several VMs of this machine fit the exchanges: KVM's offsets are not used");
	case SYNC_KVM_DIFFERS:
		print_time(time, sizeof(time), sync_report_ns(outcome, outcome->kvm_differ));
		snprintf(text, sizeof(text),
			"KVM's tsc-offset contradicts the exchanges by %s beyond their bound: it is not used",
			time);
		return incomplete(command, name, text);
	}
	return TDM_EXIT_DONE;
}

int sync_report(const struct cli_command *command, const char *name, const char *dir,
	uint64_t target_bound_ns, const struct sync_outcome *outcome)
{
	const struct tdm_quality *quality = &outcome->quality;
	int status = TDM_EXIT_DONE;
	char text[160], worst[32], target[32];

	if (outcome->status != TDM_OK) {
		fprintf(stderr, "tandem %s: %s: %s\n", command->name, name, outcome->err.text);
		return outcome->has_files ? TDM_EXIT_INCOMPLETE : TDM_EXIT_FAILED;
	}
	print_quality(command, name, dir, outcome);
	status |= report_kvm(command, name, outcome);
	if (outcome->is_unstable) {
		status |= incomplete(command, name, "tsc-unstable: its CPUs' TSCs drift apart");
	}
	if (outcome->lacks_stamps) {
		status |= incomplete(command, name,
			"kernel stamps could not be had on this connection: user stamps were taken");
	}
	if (outcome->lacks_end) {
		snprintf(text, sizeof(text), "the last burst failed: %.100s", outcome->err.text);
		status |= incomplete(command, name, text);
	}
	if (quality->grade < TDM_GRADE_BOUNDED) {
		status |= incomplete(command, name, "weak: too few bursts to know the rate");
	}
	if (quality->ambiguous) {
		status |= incomplete(
			command, name, "ambiguous: its clock showed some readings twice");
	}
	if (quality->noisy && !command->quiet) {
		fprintf(stderr, "tandem %s: %s: noisy: the guest was often kept from running\n",
			command->name, name);
	}
	if (target_bound_ns && sync_report_ns(outcome, quality->worst_bound) > target_bound_ns) {
		print_time(worst, sizeof(worst), sync_report_ns(outcome, quality->worst_bound));
		print_time(target, sizeof(target), target_bound_ns);
		snprintf(text, sizeof(text), "bound +-%s misses the target of +-%s", worst, target);
		status |= incomplete(command, name, text);
	}
	return status;
}
