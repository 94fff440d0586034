/* SPDX-License-Identifier: MIT */
#include "syscalls_priv.h"
#include <inttypes.h>
#include <tandem/utf8.h>

struct sums {
	uint64_t calls, sent, no_exit, missed, not_chosen, notes;
	uint64_t unreported; /* images without a report: killed, or still running */
};

static struct sums sum(const struct syscalls_report *report)
{
	struct sums sums = { 0 };

	for (size_t i = 0; i < report->process_count; i++) {
		const struct syscalls_process *process = &report->processes[i];

		sums.calls += process->calls;
		sums.sent += process->sent;
		sums.no_exit += process->no_exit;
		sums.missed += process->missed;
		sums.not_chosen += process->not_chosen;
		sums.notes += process->notes;
		sums.unreported += process->images - process->reports;
	}
	return sums;
}

/*
 * Events that are neither in the trace nor in LTTng's discarded count: a packet tells what was discarded
 * before it, and after a ring that was full to the end comes no packet. Known where every program has told
 * its counts and nothing was overwritten.
 */
static uint64_t untold(const struct syscalls_report *report, const struct sums *sums)
{
	const uint64_t told =
		report->entries + report->exits + report->notes + report->discarded_events;

	if (sums->unreported || report->discarded_packets || report->discarded_unknown ||
		sums->sent < told) {
		return 0;
	}
	return sums->sent - told;
}

bool syscalls_report_is_complete(const struct syscalls_report *report)
{
	const struct sums sums = sum(report);

	return !report->discarded_events && !report->discarded_packets &&
	       !report->discarded_unknown && !sums.missed &&
	       !(report->all_chosen && sums.not_chosen);
}

static void print_process(const struct syscalls_process *process, FILE *out)
{
	char name[4 * sizeof(process->name)];

	snprintf(name, sizeof(name), "%s", process->name);
	tdm_utf8_make_visible(name, sizeof(name));
	fprintf(out, "  %8" PRId64 "  %-16s %12" PRIu64 " events", process->vpid, name,
		process->events);
	if (process->reports < process->images) {
		fprintf(out, ", killed or still running: its own counts are not known");
	} else if (process->sent > process->events) {
		fprintf(out, ", %" PRIu64 " discarded", process->sent - process->events);
	}
	if (process->reports) {
		fprintf(out, ", %" PRIu64 " calls, %" PRIu64 " without an exit by nature",
			process->calls, process->no_exit);
	}
	if (process->missed) {
		fprintf(out, ", %" PRIu64 " not recorded", process->missed);
	}
	fputc('\n', out);
}

void syscalls_report_print(const struct syscalls_report *report, bool each_process, FILE *out)
{
	const struct sums sums = sum(report);
	const uint64_t events = report->entries + report->exits;
	const uint64_t tail = untold(report, &sums);
	const uint64_t discarded = report->discarded_events + tail;

	fprintf(out,
		"%" PRIu64 " system calls: %" PRIu64 " events (%" PRIu64 " entry, %" PRIu64
		" exit), %zu processes\n",
		sums.calls > sums.not_chosen ? sums.calls - sums.not_chosen : report->entries,
		events, report->entries, report->exits, report->process_count);
	fprintf(out,
		"lost: %" PRIu64 " events discarded by LTTng%s, %" PRIu64
		" packets overwritten, %" PRIu64 " calls not recorded by the provider\n",
		discarded, report->discarded_unknown ? " and more that it did not count" : "",
		report->discarded_packets, sums.missed);
	if (tail) {
		fprintf(out,
			"      of them %" PRIu64
			" at the end, which no packet tells: known from the programs' own counts\n",
			tail);
	}
	if (report->all_chosen && sums.not_chosen) {
		fprintf(out,
			"lost: %" PRIu64
			" calls made while LTTng did not record the program (not registered yet, or its "
			"daemon gone)\n",
			sums.not_chosen);
	}
	if (sums.unreported) {
		fprintf(out,
			"%" PRIu64
			" programs were killed or are still running: their own counts are not known\n",
			sums.unreported);
	} else if (!report->discarded_packets && !report->discarded_unknown) {
		/* The identity that makes the loss exact: handed over = in the trace + discarded. */
		const uint64_t in_trace = events + report->notes;

		fprintf(out,
			"check: %" PRIu64 " events + %" PRIu64 " discarded = %" PRIu64
			" sent = 2 x %" PRIu64 " calls - %" PRIu64
			" without an exit by nature + %" PRIu64 " of the provider's own%s\n",
			in_trace, discarded, sums.sent, (sums.sent - sums.notes + sums.no_exit) / 2,
			sums.no_exit, sums.notes,
			in_trace + discarded == sums.sent ? "" : ": DOES NOT ADD UP");
	}
	for (size_t i = 0; each_process && i < report->process_count; i++) {
		print_process(&report->processes[i], out);
	}
}
