/* SPDX-License-Identifier: MIT */
/*
 * tandem syscalls: one command around LTTng and the provider of system calls.
 */
#include "out_dir.h"
#include "run_command.h"
#include "syscalls_priv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OPT_ATTACH = CLI_OPT_OWN,
	OPT_COMPLETE,
	OPT_EACH,
	OPT_FORCE,
	OPT_LIVE,
	OPT_MODE,
	OPT_PROCNAME,
	OPT_REPORT
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{ "output", required_argument, NULL, 'o' },
	{ "profile", required_argument, NULL, 'p' },
	{ "filter", required_argument, NULL, 'f' },
	{ "attach-session", required_argument, NULL, OPT_ATTACH },
	{ "complete", no_argument, NULL, OPT_COMPLETE },
	{ "each-process", no_argument, NULL, OPT_EACH },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "live", required_argument, NULL, OPT_LIVE },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "procname", no_argument, NULL, OPT_PROCNAME },
	{ "report", required_argument, NULL, OPT_REPORT },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: tandem syscalls [OPTION]... -- COMMAND [ARGUMENT]...\n"
	"Records every system call of COMMAND and its children through LTTng-UST: no root, no kernel\n"
	"module. The exit status is the command's.\n\n"
	"  -o, --output DIR           LTTng's output directory (default: tandem- and the time)\n"
	"      --force                DIR may have something in it\n"
	"  -p, --profile NAME         tandem-syscalls (default), tandem-syscalls-small for little shared\n"
	"                             memory, tandem-syscalls-flight (the last 8 MiB of each CPU),\n"
	"                             tandem-syscalls-wakeup (a bad example), or a path to a session file\n"
	"  -f, --filter LIST          only these calls: names, %file, %desc, %network, %process, %memory,\n"
	"                             %signal, with commas; ! before the list: all others\n"
	"      --attach-session NAME  into a session of yours, which is left alone\n"
	"      --live URL             to a relay daemon, e.g. net://localhost\n"
	"      --complete             also calls outside libc (about 3 us each): Syscall User Dispatch\n"
	"      --mode MODE            auto (default), patch or wrap (only calls through libc's symbols)\n"
	"      --procname             the process's name with each event (costs about 150 ns a call)\n"
	"      --each-process         counts for each process at the end\n"
	"      --report DIR           only tell what a trace of DIR has and lacks\n"
	"  -q, --quiet                errors and losses only\n"
	"  -h, --help                 this text\n"
	"      --version              the version\n\n"
	"Example: tandem syscalls -o trace -- make\n"
	"         babeltrace2 trace\n"
	"         tandem convert -o out --as-kernel trace    # a kernel trace for Trace Compass\n";

struct options {
	const char *dir;
	const char *profile;
	const char *attach;
	const char *live;
	const char *report;
	struct syscalls_choice choice;
	bool force, complete, each_process, procname, wrap, mode_given;
	char **command;
};

static int parse_own(struct options *options, struct cli_command *command, int value)
{
	struct tdm_error err;

	switch (value) {
	case 'o':
		options->dir = optarg;
		return -1;
	case 'p':
		options->profile = optarg;
		return -1;
	case 'f':
		if (syscalls_choice_parse(optarg, &options->choice, &err) != TDM_OK) {
			return cli_usage_fault(command, "--filter: %s", err.text);
		}
		return -1;
	case OPT_ATTACH:
		options->attach = optarg;
		return -1;
	case OPT_COMPLETE:
		options->complete = true;
		return -1;
	case OPT_EACH:
		options->each_process = true;
		return -1;
	case OPT_FORCE:
		options->force = true;
		return -1;
	case OPT_LIVE:
		options->live = optarg;
		return -1;
	case OPT_MODE:
		if (strcmp(optarg, "auto") != 0 && strcmp(optarg, "patch") != 0 &&
			strcmp(optarg, "wrap") != 0) {
			return cli_usage_fault(
				command, "--mode \"%s\" is none of auto, patch, wrap", optarg);
		}
		options->wrap = strcmp(optarg, "wrap") == 0;
		options->mode_given = strcmp(optarg, "auto") != 0;
		return -1;
	case OPT_PROCNAME:
		options->procname = true;
		return -1;
	case OPT_REPORT:
		options->report = optarg;
		return -1;
	default:
		return cli_common_option(command, value);
	}
}

static int parse(struct options *options, struct cli_command *command, int argc, char **argv)
{
	int value;

	/* "+": the command's own options are its own, also without "--". */
	while ((value = cli_next_option(command, argc, argv,
			"+" CLI_COMMON_LETTERS "o:p:f:", long_options)) != -1) {
		const int status = parse_own(options, command, value);

		if (status >= 0) {
			return status;
		}
	}
	options->command = argv + optind;
	if (options->report) {
		return *options->command ? cli_usage_fault(command, "--report takes no command")
					 : -1;
	}
	if (!*options->command) {
		return cli_usage_fault(command, "a command is missing");
	}
	if (options->attach && (options->live || options->dir || options->profile)) {
		return cli_usage_fault(command,
			"a session of your own has its own output and profile: --attach-session "
			"goes without --live, -o and --profile");
	}
	if (options->live && options->dir) {
		return cli_usage_fault(command, "--live sends the trace away: it goes without -o");
	}
	return -1;
}

/* A folder of ours for sockets, logs and the session file; gone at the end. */
static enum tdm_status make_scratch(char scratch[PATH_MAX], struct tdm_error *err)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	/* A socket's path has 108 bytes: a long TMPDIR would not do. */
	if (!base || strlen(base) > 50 || access(base, W_OK) != 0) {
		base = "/tmp";
	}
	snprintf(scratch, PATH_MAX, "%s/tandem-syscalls-XXXXXX", base);
	if (!mkdtemp(scratch)) {
		return tdm_fail_errno(err, errno, "a folder in \"%s\"", base);
	}
	return TDM_OK;
}

static void remove_tree(const char *path)
{
	char *roots[] = { (char *)(uintptr_t)path, NULL };
	FTS *tree = *path ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *entry;

	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_DP) {
			rmdir(entry->fts_accpath);
		} else if (entry->fts_info != FTS_D) {
			unlink(entry->fts_accpath);
		}
	}
	if (tree) {
		fts_close(tree);
	}
}

static enum tdm_status make_output(
	const struct options *options, char **dir, char url[PATH_MAX + 16], struct tdm_error *err)
{
	char absolute[PATH_MAX];
	DIR *folder;
	bool is_empty = true;

	if (options->live) {
		snprintf(url, PATH_MAX + 16, "%s", options->live);
		return TDM_OK;
	}
	*dir = out_dir_create(options->dir, err);
	if (!*dir) {
		return err->status;
	}
	folder = opendir(*dir);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		is_empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	}
	if (folder) {
		closedir(folder);
	}
	if (!is_empty && !options->force) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"output directory \"%s\" has something in it: take another one, or --force",
			*dir);
	}
	if (!realpath(*dir, absolute)) {
		return tdm_fail_errno(err, errno, "output directory \"%s\"", *dir);
	}
	snprintf(url, PATH_MAX + 16, "file://%s", absolute);
	return TDM_OK;
}

static bool put_in_front(const char *name, const char *text, const char *separator)
{
	const char *old = getenv(name);
	char *joined = NULL;
	bool done;

	if (!old || !*old) {
		return setenv(name, text, 1) == 0;
	}
	if (asprintf(&joined, "%s%s%s", text, separator, old) < 0) {
		return false;
	}
	done = setenv(name, joined, 1) == 0;
	free(joined);
	return done;
}

/* What the provider and lttng-ust are told by the environment. */
static enum tdm_status prepare_environment(const struct options *options,
	const struct syscalls_parts *parts, const char *log_path, unsigned int level,
	struct tdm_error *err)
{
	char numbers[8 * 17] = "";
	char level_text[12];
	char sites_path[PATH_MAX + 32];
	bool done = put_in_front("LD_PRELOAD", parts->preload, ":");

	snprintf(sites_path, sizeof(sites_path), "%s.sites", log_path);

	/* Without it every exec of a traced program lists its objects: 4 ms, and calls that are not its own. */
	done &= setenv("LTTNG_UST_WITHOUT_BADDR_STATEDUMP", "1", 0) == 0;
	/* LTTng's 3 s are too few on a busy machine: a program that goes on before would lose its beginning. */
	done &= setenv("LTTNG_UST_REGISTER_TIMEOUT", "20000", 0) == 0;
	done &= setenv("TANDEM_SYSCALLS_LOG", log_path, 1) == 0;
	done &= setenv("TANDEM_SYSCALLS_SITES", sites_path, 1) == 0;
	snprintf(level_text, sizeof(level_text), "%u", level);
	done &= setenv("TANDEM_SYSCALLS_LEVEL", level_text, 1) == 0;
	/* A program built with AddressSanitizer would not start with an object loaded before its runtime. */
	done &= put_in_front("ASAN_OPTIONS", "verify_asan_link_order=0", ":");
	if (!options->choice.all) {
		for (size_t i = 0; i < 8; i++) {
			snprintf(numbers + i * 16, 17, "%016" PRIx64, options->choice.numbers[i]);
		}
		done &= setenv("TANDEM_SYSCALLS_CALLS", numbers, 1) == 0;
	}
	if (options->complete) {
		done &= setenv("TANDEM_SYSCALLS_COMPLETE", "1", 1) == 0;
	}
	return done ? TDM_OK : tdm_fail_errno(err, errno, "setting the environment");
}

/* The lines of the log that were not said yet, each once. */
static void tell_log(const struct cli_command *command, const char *log_path)
{
	FILE *in = fopen(log_path, "re");
	char line[1100];
	char seen[64][160];
	size_t seen_count = 0;

	while (in && fgets(line, sizeof(line), in)) {
		bool is_new = true;

		if (line[0] == '@') {
			continue; /* counts, for the report */
		}
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < seen_count && is_new; i++) {
			is_new = strncmp(seen[i], line, sizeof(seen[i]) - 1) != 0;
		}
		if (is_new) {
			if (seen_count < 64) {
				snprintf(seen[seen_count++], sizeof(seen[0]), "%.159s", line);
			}
			TDM_WARNING(&command->log, "%s",
				strncmp(line, "tandem: ", 8) == 0 ? line + 8 : line);
		}
	}
	if (in) {
		fclose(in);
	}
}

static int report(struct cli_command *command, const struct options *options, const char *dir,
	const char *log_path, FILE *out)
{
	struct syscalls_report found;
	struct tdm_error err;

	if (syscalls_report_read(dir, log_path, &found, &err) != TDM_OK) {
		syscalls_report_release(&found);
		return cli_failed(command, &err);
	}
	if (!log_path && found.trace_count == 0) {
		/* Right behind a recording it may be so: no program could be followed. */
		tdm_fail(&err, TDM_ERR_FORMAT,
			access(dir, F_OK) == 0
				? "%s: no trace there (no file \"metadata\" in it or below it)"
				: "%s: no trace there: no such directory",
			dir);
		syscalls_report_release(&found);
		return cli_failed(command, &err);
	}

	found.all_chosen = options->choice.all && log_path;

	const bool is_complete = syscalls_report_is_complete(&found);

	if (!command->quiet || !is_complete) {
		syscalls_report_print(&found, options->each_process, out);
	}
	syscalls_report_release(&found);
	return is_complete ? TDM_EXIT_DONE : TDM_EXIT_INCOMPLETE;
}

/* Can code be changed on this machine, in a process like the command's? Asked of a small one. */
static bool can_patch(const struct syscalls_parts *parts)
{
	static const char *const trial[] = { "/proc/self/exe", "--version", NULL };
	char *environment[4] = { NULL };
	char preload[PATH_MAX + 16];
	char answer[256] = "";
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return true;
	}
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", parts->preload);
	environment[0] = preload;
	environment[1] = (char *)(uintptr_t) "TANDEM_SYSCALLS_TRIAL=1";

	const pid_t pid = fork();

	if (pid == 0) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		execve(trial[0], (char **)(uintptr_t)trial, environment);
		_exit(127);
	}
	close(ends[1]);
	if (pid > 0) {
		size_t length = 0;

		for (ssize_t got;
			length + 1 < sizeof(answer) &&
			(got = read(ends[0], answer + length, sizeof(answer) - 1 - length)) > 0;) {
			length += (size_t)got;
		}
		waitpid(pid, NULL, 0);
	}
	close(ends[0]);
	return strstr(answer, "cannot be changed") == NULL;
}

struct job {
	struct options options;
	struct syscalls_parts parts;
	struct syscalls_profile profile;
	struct syscalls_session session;
	struct run_command run;
	char scratch[PATH_MAX];
	char log_path[PATH_MAX + 16];
	char *dir;
};

static enum tdm_status load_session(struct job *job, const char *url, struct tdm_error *err)
{
	char file[PATH_MAX + 16];
	FILE *out;
	enum tdm_status status;

	snprintf(file, sizeof(file), "%s/session.lttng", job->scratch);
	out = fopen(file, "we");
	if (!out) {
		return tdm_fail_errno(err, errno, "\"%s\"", file);
	}
	status = syscalls_profile_write(&job->profile, &job->options.choice, job->session.level,
		job->options.procname, job->options.live != NULL, out, err);
	fclose(out);
	return status == TDM_OK
		       ? syscalls_session_load(&job->session, file, &job->profile, url, err)
		       : status;
}

/* Loads the session under a level of its own in the daemon, then starts it. */
static enum tdm_status start_alone(
	struct job *job, const char *url, const struct tdm_log *log, struct tdm_error *err)
{
	enum {
		TRIES = 8,
		PAUSE_MS = 40
	};

	enum tdm_status status = TDM_OK;

	for (unsigned int i = 1; status == TDM_OK; i++) {
		syscalls_session_choose_level(&job->session);
		status = load_session(job, url, err);
		if (status != TDM_OK || !syscalls_session_shares_level(&job->session)) {
			break;
		}
		if (i == TRIES) {
			TDM_WARNING(log,
				"Too many runs at once in this session daemon: the trace may have calls of another one too");
			break;
		}
		syscalls_session_discard(&job->session);
		/* The other one may go out of the way as well: not in step. */
		usleep((useconds_t)(getpid() % 16 + 1) * i * PAUSE_MS * 1000 / 16);
	}
	return status == TDM_OK ? syscalls_session_start(&job->session, err) : status;
}

static enum tdm_status start_session(
	struct job *job, const struct tdm_log *log, struct tdm_error *err)
{
	char url[PATH_MAX + 16] = "";
	enum tdm_status status;

	status = syscalls_profile_read(&job->parts,
		job->options.profile ? job->options.profile : "tandem-syscalls", &job->profile,
		err);
	if (status != TDM_OK) {
		return status;
	}
	if (job->options.live && job->profile.is_snapshot) {
		return tdm_fail(err, TDM_ERR_RANGE, "a flight recorder has nothing to send live");
	}
	status = syscalls_check_shm(&job->profile, log, err);
	if (status != TDM_OK) {
		return status;
	}
	status = make_output(&job->options, &job->dir, url, err);
	if (status != TDM_OK) {
		return status;
	}
	status = syscalls_daemon_need(&job->session, job->scratch, log, err);
	return status == TDM_OK ? start_alone(job, url, log, err) : status;
}

static enum tdm_status prepare(struct job *job, const struct tdm_log *log, struct tdm_error *err)
{
	enum tdm_status status = syscalls_find_parts(job->options.wrap, &job->parts, err);

	if (status == TDM_OK && !job->options.mode_given && !can_patch(&job->parts)) {
		TDM_WARNING(log,
			"Code cannot be changed here: only calls through libc's own symbols are seen");
		status = syscalls_find_parts(true, &job->parts, err);
	}
	if (status == TDM_OK) {
		status = make_scratch(job->scratch, err);
	}
	if (status != TDM_OK) {
		return status;
	}
	snprintf(job->log_path, sizeof(job->log_path), "%s/provider.log", job->scratch);

	FILE *log_file = fopen(job->log_path, "we");

	if (log_file) {
		fclose(log_file);
	}
	status = job->options.attach ? syscalls_session_check(job->options.attach, err)
				     : start_session(job, log, err);
	if (status == TDM_OK) {
		status = prepare_environment(&job->options, &job->parts, job->log_path,
			job->options.attach ? SYSCALLS_LEVEL_OF_OTHERS : job->session.level, err);
	}
	return status;
}

static void tell_where(struct cli_command *command, const struct job *job)
{
	if (command->quiet) {
		return;
	}
	if (job->options.attach) {
		fprintf(stderr,
			"tandem syscalls: recorded into session \"%s\"; what is lost: lttng stop %s, then "
			"tandem syscalls --report ITS-DIRECTORY\n",
			job->options.attach, job->options.attach);
	} else if (job->options.live) {
		fprintf(stderr,
			"tandem syscalls: sent to %s; what is lost is in the trace that the relay daemon "
			"wrote\n",
			job->options.live);
	} else {
		fprintf(stderr, "tandem syscalls: the trace is in %s\n", job->dir);
	}
}

/* How a viewer finds a live session: its name is ours, so nobody else can know it. */
static void tell_viewer(const struct cli_command *command, const struct job *job)
{
	const char *host = job->options.live ? strstr(job->options.live, "://") : NULL;
	char name[256] = "";
	size_t length;

	if (!host || command->quiet || gethostname(name, sizeof(name) - 1) != 0) {
		return;
	}
	host += 3;
	length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
	fprintf(stderr,
		"tandem syscalls: to watch: babeltrace2 --input-format=lttng-live net://%.*s/host/%s/%s "
		"(add the relay daemon's live port where it is not 5344)\n",
		(int)length, host, name, job->session.name);
}

static int run(struct job *job, struct cli_command *command)
{
	struct tdm_error err;
	int status = TDM_EXIT_FAILED;
	bool is_whole = true;

	if (run_command_init(&job->run, &err) != TDM_OK ||
		prepare(job, &command->log, &err) != TDM_OK ||
		run_command_fork(&job->run, job->options.command, &err) != TDM_OK) {
		return cli_failed(command, &err);
	}
	tell_viewer(command, job);
	syscalls_tell_unfollowed(job->options.command[0], &command->log);
	if (run_command_release(&job->run, job->options.command[0], &err) != TDM_OK) {
		cli_failed(command, &err);
		return 127; /* as shells say it */
	}
	unsetenv("LD_PRELOAD");
	run_command_wait(&job->run, UINT64_MAX, NULL, NULL);
	status = run_command_exit_status(&job->run);
	if (!job->options.attach && syscalls_session_stop(&job->session, &err) != TDM_OK) {
		cli_failed(command, &err);
		is_whole = false;
	}
	tell_log(command, job->log_path);
	tell_where(command, job);
	if (job->dir) {
		report(command, &job->options, job->dir, job->log_path, stderr);
	}
	if (!is_whole) {
		TDM_ERROR(&command->log,
			"THE TRACE IS INCOMPLETE: the session did not end as it should, so more is missing than is counted");
	}
	return status;
}

int tdm_syscalls_main(int argc, char **argv)
{
	static struct job job = { .options.choice.all = true, .session.keeper_fd = -1 };
	struct cli_command command;
	struct tdm_error err;
	int status;

	cli_command_init(&command, "syscalls", help);
	status = parse(&job.options, &command, argc, argv);
	if (status >= 0) {
		return status;
	}
	if (job.options.report) {
		return report(&command, &job.options, job.options.report, NULL, stdout);
	}
	status = run(&job, &command);
	run_command_release_all(&job.run);
	if (job.session.created) {
		syscalls_session_stop(&job.session, &err);
	}
	syscalls_daemon_stop(&job.session);
	syscalls_profile_release(&job.profile);
	remove_tree(job.scratch);
	free(job.dir);
	return status;
}
