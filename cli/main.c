/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "tandem_version.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tandem/nearest.h>
#include <tandem/process.h>

/* In the order of --help. */
static const struct tdm_command commands[] = {
	{ "record", "record this machine and its guests", tdm_record_main, true },
	{ "view", "print host and guests on one timeline", tdm_view_main, false },
	{ "info", "tell what is in traces and how well their clocks are known", tdm_info_main,
		false },
	{ "convert", "convert traces to CTF for Trace Compass, or to JSON", tdm_convert_main,
		true },
	{ "estimate", "estimate the relation of two clocks from their exchanges", tdm_estimate_main,
		true },
	{ "check-ctf", "lint CTF traces for Trace Compass", tdm_check_ctf_main, false },
	{ "syscalls", "record a program's system calls through LTTng-UST, without root",
		tdm_syscalls_main, false },
	{ "sync", "learn how guests' clocks run against this machine's", tdm_sync_main, true },
	{ "doctor", "tell what works on this machine, and the remedy for what does not",
		tdm_doctor_main, false },
	{ NULL, NULL, NULL, false },
};

static void print_help(FILE *out)
{
	fputs("Usage: tandem COMMAND [OPTION]... [ARGUMENT]...\n"
	      "Brings the traces of a host and its guests on one timeline.\n\n"
	      "Commands:\n",
		out);
	for (const struct tdm_command *command = commands; command->name; command++) {
		fprintf(out, "  %-10s %s\n", command->name, command->summary);
	}
	fputs("\nOptions:\n"
	      "  --help     this text; \"tandem COMMAND --help\" (or \"tandem help COMMAND\") for a command's own\n"
	      "  --version  the version\n\n"
	      "Example: tandem info trace.dat trace-guest.dat\n",
		out);
}

static int refuse(const char *word)
{
	struct tdm_nearest nearest;

	tdm_nearest_begin(&nearest, word, strlen(word));
	for (const struct tdm_command *command = commands; command->name; command++) {
		tdm_nearest_try(&nearest, command->name);
	}
	fprintf(stderr, "tandem: unknown command \"%s\"%s \"tandem --help\" lists the commands\n",
		word, *tdm_nearest_text(&nearest) ? nearest.text : ";");
	return TDM_EXIT_USAGE;
}

/* What was printed and left to be written at the end. A command that looked at it itself has failed already. */
static int end_output(const char *name, int status, int failed)
{
	if (fflush(stdout) != 0 && status == TDM_EXIT_DONE) {
		fprintf(stderr, "%s: error: cannot write to the standard output: %s\n", name,
			strerror(errno));
		return failed;
	}
	return status;
}

int main(int argc, char **argv)
{
	static char name[64];
	static char option[] = "--help";

	tdm_process_prepare();
	if (argc < 2) {
		print_help(stderr);
		return TDM_EXIT_USAGE;
	}

	/* "tandem help view", as other programs have it. */
	char *words[] = { argv[0], argc > 2 ? argv[2] : option, option, NULL };

	if (strcmp(argv[1], "help") == 0) {
		argc = argc > 2 ? 3 : 2;
		argv = words;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return end_output("tandem", TDM_EXIT_DONE, TDM_EXIT_FAILED);
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("tandem " TDM_VERSION);
		return end_output("tandem", TDM_EXIT_DONE, TDM_EXIT_FAILED);
	}
	for (const struct tdm_command *command = commands; command->name; command++) {
		if (strcmp(argv[1], command->name) == 0) {
			/* getopt_long() begins its messages with it. */
			snprintf(name, sizeof(name), "tandem %s", command->name);
			argv[1] = name;
			return end_output(name, command->run(argc - 1, argv + 1),
				command->writes_files ? TDM_EXIT_INCOMPLETE : TDM_EXIT_FAILED);
		}
	}
	return refuse(argv[1]);
}
