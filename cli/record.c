/* SPDX-License-Identifier: MIT */
#include "attach.h"
#include "out_dir.h"
#include "record_clocks.h"
#include "record_finish.h"
#include "record_guests.h"
#include "record_host.h"
#include "record_options.h"
#include "record_serve.h"
#include "run_command.h"
#include "sync_serve.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char help[] =
	"Usage: tandem record [OPTION]... [--] [COMMAND [ARGUMENT]...]\n"
	"Records the events of this machine and of its guests, with their clocks, until COMMAND ends or Ctrl-C.\n\n"
	"  -o, --output DIR      where the files go (default: tandem- and the local time)\n"
	"  -e, --event EVENT     system, event, system:event or glob; may be repeated (default: sched)\n"
	"  -f, --filter FILTER   filter of the -e before it, in the kernel's syntax\n"
	"  -C, --clock CLOCK     trace clock of all machines (default: mono; with guests x86-tsc where KVM\n"
	"                        tells its relation to each of them, else mono_raw, which no daemon steers)\n"
	"  -g, --guest NAME[=ADDR] also this guest, by its agent: tcp:HOST[:PORT], vsock:CID[:PORT], unix:PATH,\n"
	"                        vm:NAME[:PORT] (the vsock of the guest that libvirt or QEMU calls so; without\n"
	"                        ADDR vm:NAME), trace-cmd:HOST[:PORT]; may be repeated.\n"
	"                        -e and -f behind it are this guest's; without any it records the host's\n"
	"                        events, as far as it has and allows them\n"
	"      --guest-pid PID   process that runs the guest of the --guest before it (default: looked for)\n"
	"      --secret-file FILE  secret that the agents want proven\n"
	"      --plain-data      do not encrypt a guest's events over TCP\n"
	"      --stamps user|kernel  stamps of time exchanges (default: user)\n"
	"      --target-bound NS exit with 3 where a guest's clock is known less well\n"
	"  -b, --buffer-kib N    ring buffer of each CPU in KiB (default: 4096)\n"
	"      --serve ADDR      serve viewers (tandem view tandem://ADDR/*) and the guests' corrections\n"
	"      --attach lttng:SESSION  begin and end with this session of LTTng; the clock is its (mono), the\n"
	"                        files go beside its own\n"
	"      --clocks-only     no events, only the guests' clocks, as tandem sync\n"
	"      --pid PID         only this task of the host; may be repeated; ends with the last of them\n"
	"  -c, --follow          with --pid or COMMAND: only it and what it forks\n"
	"      --time SECONDS    end after this time\n"
	"      --size-mib N      end once so many MiB were recorded\n"
	"      --no-kallsyms     leave out the kernel's symbols (smaller files, no function names)\n"
	"      --force           overwrite files of an earlier recording in DIR\n"
	"      --finish DIR      complete the files that a killed recorder left in DIR\n"
	"  -q, --quiet           errors only\n"
	"  -h, --help, --version\n\n"
	"Example: tandem record -e sched -e kvm --guest web=tcp:10.0.0.5 --secret-file secret -- ./benchmark\n";

enum {
	MIB = 1 << 20
};

/* Everything of one run. */
struct session {
	struct cli_command command;
	struct record_options options;
	struct run_command run;
	struct attach *attach;
	char *dir;
	struct record_clock clock;
	struct record_ties ties; /* of the host */
	struct record_spool *spool;
	struct record_host *host;
	struct record_guests *guests;
	struct tdm_secret secret; /* of the service */
	struct sync_serve *service;
	struct record_serve *viewers;
	bool incomplete;
};

static uint64_t random_id(void)
{
	uint64_t id = 0;

	while (id == 0) {
		if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
			id = (uint64_t)time(NULL);
		}
	}
	return id;
}

static void take_viewer(void *user, struct tdm_link *link, const char *who, bool may_view,
	const struct tdm_open *open)
{
	record_serve_take(user, link, who, may_view, open);
}

/* The service, before the guests: it gets what becomes known of their clocks from the first burst on. */
static enum tdm_status open_service(struct session *session, struct tdm_error *err)
{
	const struct record_options *options = &session->options;
	const char **names = calloc(options->guest_count + 1, sizeof(*names));
	struct tdm_address address;
	char text[320];
	enum tdm_status status =
		tdm_address_parse(options->serve, TDM_ADDRESS_LISTEN, &address, err);

	if (status == TDM_OK && options->secret_file) {
		status = tdm_secret_load(options->secret_file, &session->secret, err);
	}
	session->viewers = record_serve_create(&session->command.log);
	if (status == TDM_OK && (!names || !session->viewers)) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for the service");
	}
	for (size_t i = 0; status == TDM_OK && i < options->guest_count; i++) {
		names[i] = options->guests[i].name;
	}
	if (status == TDM_OK) {
		session->service = sync_serve_create(&address, names, options->guest_count,
			&session->secret, &session->command.log, err);
		status = session->service ? TDM_OK : err->status;
	}
	if (status == TDM_OK) {
		tdm_address_print(&address, text, sizeof(text));
		TDM_INFO(&session->command.log, "Serving: address=\"%s\"", text);
	}
	free(names);
	return status;
}

/* All machines are prepared: viewers may come. */
static enum tdm_status open_to_viewers(struct session *session, struct tdm_error *err)
{
	enum tdm_status status = record_serve_add(session->viewers, session->spool, err);

	for (size_t i = 0; status == TDM_OK; i++) {
		struct record_spool *spool = record_guests_spool(session->guests, i);

		if (!spool) {
			break;
		}
		status = record_serve_add(session->viewers, spool, err);
	}
	if (status == TDM_OK) {
		sync_serve_set_streams(session->service, take_viewer, session->viewers);
	}
	return status;
}

/* Ids and clock that all machines of the session share; the clock where the user named none, from what is known of the guests. */
static enum tdm_status choose_ties(struct session *session, struct tdm_error *err)
{
	const struct record_guests_options options = {
		.record = &session->options,
		.dir = session->dir,
		.clock = session->options.clock,
		.host_ties = &session->ties,
		.log = &session->command.log,
		.interrupt_fd = session->run.interrupt_fd,
	};
	const enum tdm_status status = record_guests_create(&options, &session->guests, err);

	if (status != TDM_OK) {
		return status;
	}
	session->clock.name = session->options.clock;
	if (!session->clock.name && session->attach) {
		session->clock.name = "mono";
		snprintf(session->clock.reason, sizeof(session->clock.reason), "LTTng's");
		record_guests_set_clock(session->guests, session->clock.name);
	} else if (!session->clock.name) {
		record_guests_choose_clock(session->guests, &session->clock);
	}
	session->ties.trace_id = random_id();
	session->ties.host_trace_id = session->ties.trace_id;
	if (strcmp(session->clock.name, "x86-tsc") == 0) {
		session->ties.has_tsc2nsec =
			tdm_tap_tsc_scale(&session->ties.tsc_mult, &session->ties.tsc_shift);
	}
	return TDM_OK;
}

/* Whether the host's files may be written is known before anything of the guests' is. */
static enum tdm_status make_spool(struct session *session, struct tdm_error *err)
{
	const struct record_options *options = &session->options;
	char *path = out_dir_path(session->dir, "host", ".dat");
	enum tdm_status status =
		path ? out_dir_check_free(path, options->force, err) : TDM_ERR_NOMEM;

	free(path);
	if (status != TDM_OK) {
		return status;
	}
	session->spool =
		record_spool_create(session->dir, "host", &session->ties, options->force, err);
	return session->spool ? TDM_OK : err->status;
}

static enum tdm_status prepare_host(struct session *session, struct tdm_error *err)
{
	const struct record_options *options = &session->options;
	const struct tdm_tap_options tap_options = {
		.label = "host",
		.events = options->events.items,
		.event_count = options->events.count,
		.clock = session->clock.name,
		.buffer_kib = options->buffer_kib,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.follow_children = options->follow_children,
	};

	return record_host_create(&tap_options, options->kallsyms, options->serve != NULL,
		session->spool, &session->command.log, &session->host, err);
}

static bool has_begun(void *user)
{
	const struct session *session = user;

	return attach_get_state(session->attach) != ATTACH_WAITING;
}

/* Everything stands ready; the other tracer's session begins it. */
static enum tdm_status wait_for_session(struct session *session, struct tdm_error *err)
{
	TDM_INFO(&session->command.log, "Ready: waits for LTTng session \"%s\" to start",
		attach_name(session->attach));
	run_command_wait(&session->run, UINT64_MAX, has_begun, session);
	return attach_get_state(session->attach) == ATTACH_RUNNING
		       ? TDM_OK
		       : tdm_fail(err, TDM_ERR_PEER, "LTTng session \"%s\" did not start",
				 attach_name(session->attach));
}

/* The command stands before its exec until everything records. */
static enum tdm_status start(struct session *session, struct tdm_error *err)
{
	struct record_options *options = &session->options;
	enum tdm_status status = session->attach ? wait_for_session(session, err) : TDM_OK;

	if (status == TDM_OK && options->command) {
		status = run_command_fork(&session->run, options->command, err);
	}
	if (status == TDM_OK && options->command && options->follow_children) {
		status = record_host_add_pid(session->host, session->run.pid, err);
	}
	if (status == TDM_OK) {
		status = record_host_start(session->host, err);
	}
	if (status == TDM_OK) {
		status = record_guests_start(session->guests, err);
	}
	if (status == TDM_OK && options->command) {
		status = run_command_release(&session->run, options->command[0], err);
	}
	return status;
}

/* True once there is no point in going on. */
static bool must_end(void *user)
{
	struct session *session = user;
	const struct record_options *options = &session->options;
	const uint64_t limit_mib = options->size_limit_mib;

	return (options->pid_count && !options->command &&
		       record_host_tasks_ended(session->host)) ||
	       record_host_failed(session->host, NULL) ||
	       (session->attach && attach_get_state(session->attach) == ATTACH_ENDED) ||
	       (limit_mib &&
		       (record_host_bytes(session->host) + record_guests_bytes(session->guests)) /
				       MIB >=
			       limit_mib);
}

static void wait_for_end(struct session *session)
{
	const uint64_t limit_s = session->options.time_limit_s;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);

	const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;

	run_command_wait(&session->run, limit_s ? now_ns + limit_s * 1000000000 : UINT64_MAX,
		must_end, session);
}

static void tell(const struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void tell(const struct session *session, const char *format, ...)
{
	va_list args;

	if (session->command.quiet) {
		return;
	}
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

/* A reason for exit status 3, on stderr. */
static void incomplete(struct session *session, const char *text)
{
	fprintf(stderr, "tandem record: %s\n", text);
	session->incomplete = true;
}

static enum tdm_status stop(struct session *session, struct tdm_error *err)
{
	struct tdm_error reason = { 0 };
	enum tdm_status status = record_host_stop(session->host, err);

	if (record_host_failed(session->host, &reason)) {
		incomplete(session, reason.text);
	}
	if (session->viewers) {
		record_serve_end(session->viewers);
	}
	session->incomplete |= !record_guests_finish(session->guests, session->command.quiet);
	if (status == TDM_OK) {
		size_t guest_count = 0;
		const struct tdm_guest_info *guests =
			record_guests_ties(session->guests, &guest_count);

		status = record_spool_finish(
			session->spool, guests, guest_count, NULL, &session->command.log, err);
	}
	return status;
}

static void summarise(struct session *session, uint64_t recorded_bytes)
{
	const struct record_host_counts counts = record_host_get_counts(session->host);
	const uint64_t lost = counts.overrun_events + counts.dropped_events;

	tell(session, "%s/host.dat: %" PRIu64 " KiB of events recorded", session->dir,
		recorded_bytes / 1024);
	if (lost) {
		tell(session, ", %" PRIu64 " events lost because a buffer was full (see -b)", lost);
		session->incomplete = true;
	}
	tell(session, "\n");
	if (!session->options.clock && session->options.guest_count) {
		tell(session, "clock: %s (%s)\n", session->clock.name, session->clock.reason);
	}
	if (lost) {
		char text[128];

		snprintf(text, sizeof(text),
			"host: %" PRIu64 " events lost, the ring buffers were full", lost);
		incomplete(session, text);
	}
}

static int record(struct session *session)
{
	struct tdm_error err = { 0 };
	enum tdm_status status = run_command_init(&session->run, &err);

	if (status == TDM_OK && session->options.attach) {
		session->attach = attach_create(session->options.attach, &err);
		status = session->attach ? TDM_OK : err.status;
	}
	if (status == TDM_OK) {
		session->dir = out_dir_create_beside(session->options.dir,
			session->attach ? attach_path(session->attach) : NULL, &err);
		status = session->dir ? choose_ties(session, &err) : err.status;
	}
	if (status == TDM_OK) {
		status = make_spool(session, &err);
	}
	if (status == TDM_OK) {
		if (session->options.serve) {
			status = open_service(session, &err);
		}
		/* The guests' clocks are asked while the host gets ready. */
		if (status == TDM_OK) {
			status =
				record_guests_start_clocks(session->guests, session->service, &err);
		}
		if (status == TDM_OK) {
			status = prepare_host(session, &err);
		}
		if (status == TDM_OK) {
			status = record_guests_prepare(session->guests, &err);
		}
		if (status == TDM_OK && run_command_is_interrupted(&session->run)) {
			status = tdm_fail(&err, TDM_AGAIN, "interrupted: nothing was recorded");
		}
		if (status == TDM_OK && session->options.serve) {
			status = open_to_viewers(session, &err);
		}
		if (status != TDM_OK) {
			record_guests_discard(session->guests);
			record_spool_remove(session->spool);
		}
	}
	if (status == TDM_OK) {
		status = start(session, &err);
		if (status == TDM_OK) {
			wait_for_end(session);
			status = stop(session, &err);
		} else {
			record_guests_discard(session->guests);
			record_spool_remove(session->spool);
		}
	}
	if (status != TDM_OK) {
		return cli_failed(&session->command, &err);
	}
	summarise(session, record_host_bytes(session->host));
	if (run_command_exit_status(&session->run) != 0) {
		tell(session, "\"%s\" ended with status %d\n", session->options.command[0],
			run_command_exit_status(&session->run));
	}
	return session->incomplete ? TDM_EXIT_INCOMPLETE : TDM_EXIT_DONE;
}

int tdm_record_main(int argc, char **argv)
{
	struct session session = { .run = RUN_COMMAND_NONE };
	int status;

	cli_command_init(&session.command, "record", help);
	status = record_options_parse(&session.options, &session.command, argc, argv);
	if (status == -1 && session.options.finish_dir) {
		status = record_finish_left(&session.command, session.options.finish_dir);
	} else if (status == -1 && session.options.clocks_only) {
		status = record_clocks_only(&session.options, session.command.quiet);
	} else if (status == -1) {
		status = record(&session);
	}
	run_command_release_all(&session.run);
	sync_serve_destroy(session.service);
	record_serve_destroy(session.viewers);
	record_guests_destroy(session.guests);
	attach_destroy(session.attach);
	record_host_destroy(session.host);
	record_spool_close(session.spool);
	record_options_release(&session.options);
	free(session.dir);
	return status;
}
