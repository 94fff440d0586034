/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the subcommands of tandem share.
 */
#ifndef TANDEM_CLI_H
#define TANDEM_CLI_H

#include <stdbool.h>

/* Exit statuses of every command. */
enum tdm_exit {
	TDM_EXIT_DONE = 0,
	TDM_EXIT_FAILED = 1, /* nothing usable was written */
	TDM_EXIT_USAGE = 2,
	TDM_EXIT_INCOMPLETE =
		3, /* done, but incomplete or a target was missed; stderr has a line for each reason */
};

/* One subcommand: argv[0] is its name. Returns an exit status. */
struct tdm_command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
	bool writes_files; /* what it prints is only about them */
};

/* The subcommands. */
int tdm_estimate_main(int argc, char **argv);
int tdm_info_main(int argc, char **argv);
int tdm_check_ctf_main(int argc, char **argv);
int tdm_convert_main(int argc, char **argv);
int tdm_doctor_main(int argc, char **argv);
int tdm_record_main(int argc, char **argv);
int tdm_syscalls_main(int argc, char **argv);
int tdm_sync_main(int argc, char **argv);
int tdm_view_main(int argc, char **argv);

#endif
