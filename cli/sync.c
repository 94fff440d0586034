/* SPDX-License-Identifier: MIT */
#include "attach.h"
#include "cli.h"
#include "guest_address.h"
#include "options.h"
#include "out_dir.h"
#include "run_command.h"
#include "sync_guest.h"
#include "sync_report.h"
#include "sync_serve.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: tandem sync --guest NAME=ADDR... [OPTION]... [-- COMMAND [ARGUMENT]...]\n"
	"Learns how the clocks of guests run against this machine's, until COMMAND ends or Ctrl-C.\n\n"
	"  -g, --guest NAME[=ADDR]  a guest and its agent: tcp:HOST[:PORT], vsock:CID[:PORT], unix:PATH, vm:NAME[:PORT]\n"
	"                           (the vsock of the guest that libvirt or QEMU calls so; without ADDR vm:NAME);\n"
	"                           may be repeated\n"
	"      --attach lttng:SESSION  end with this session of LTTng; files go beside its own\n"
	"  -o, --output DIR         where NAME.exchanges and NAME.corrections go (default: tandem- and the time)\n"
	"  -C, --clock CLOCK        the traces' clock, by ftrace's name (default: mono, which LTTng uses too)\n"
	"      --serve ADDR         serve the corrections while they grow (tcp:, unix: or vsock: address)\n"
	"      --stamps user|kernel where stamps are made (default: user; kernel: below the scheduler, TCP and UDP)\n"
	"      --secret-file FILE   the secret that agents and readers share\n"
	"      --target-bound NS    stop bursts once the bound is so small; exit 3 where it is not reached\n"
	"      --need-guests        run COMMAND only where all guests answer at the start; else status 1\n"
	"      --no-kvm             do not ask KVM for the exact relation of x86-tsc\n"
	"      --force              overwrite files of an earlier run in DIR\n"
	"  -q, --quiet              errors only\n"
	"  -h, --help, --version\n\n"
	"Example: tandem sync --guest web=vsock:3 -o trace -- lttng-session.sh\n";

enum {
	OPT_SERVE = CLI_OPT_OWN,
	OPT_STAMPS,
	OPT_SECRET_FILE,
	OPT_TARGET_BOUND,
	OPT_NEED_GUESTS,
	OPT_NO_KVM,
	OPT_FORCE,
	OPT_ATTACH,
	PROGRESS_MS = 1000
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{ "guest", required_argument, NULL, 'g' },
	{ "output", required_argument, NULL, 'o' },
	{ "clock", required_argument, NULL, 'C' },
	{ "serve", required_argument, NULL, OPT_SERVE },
	{ "stamps", required_argument, NULL, OPT_STAMPS },
	{ "secret-file", required_argument, NULL, OPT_SECRET_FILE },
	{ "target-bound", required_argument, NULL, OPT_TARGET_BOUND },
	{ "need-guests", no_argument, NULL, OPT_NEED_GUESTS },
	{ "no-kvm", no_argument, NULL, OPT_NO_KVM },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "attach", required_argument, NULL, OPT_ATTACH },
	{ NULL, 0, NULL, 0 },
};

struct session;

/* A guest's place, for the lines that it publishes. */
struct slot {
	struct session *session;
	size_t index;
	struct tdm_address address;
	struct sync_guest *guest;
	struct sync_outcome outcome;
};

struct session {
	struct cli_command command;
	struct cli_named_list guests;
	const char *wanted_dir, *clock, *secret_file, *attach_to;
	struct attach *attach;
	char **child;
	bool kernel_stamps, need_guests, no_kvm, force, has_serve;
	uint64_t target_bound_ns;
	struct tdm_address serve_address;
	struct tdm_secret secret;

	struct run_command run;
	char *dir;
	struct vmm_list vmms;
	struct slot *slots;
	struct sync_serve *serve;
	sem_t gate;
	uint64_t began_ns, progress_ns;
	bool shows;
};

static int parse_option(struct session *session, int value)
{
	struct cli_command *command = &session->command;
	struct tdm_error err;

	switch (value) {
	case 'g':
		return cli_named_add(&session->guests, optarg) ? -1 : TDM_EXIT_FAILED;
	case 'o':
		session->wanted_dir = optarg;
		return -1;
	case 'C':
		session->clock = optarg;
		return -1;
	case OPT_SERVE:
		session->has_serve = true;
		return tdm_address_parse(
			       optarg, TDM_ADDRESS_LISTEN, &session->serve_address, &err) == TDM_OK
			       ? -1
			       : cli_usage_fault(command, "--serve: %s", err.text);
	case OPT_STAMPS:
		session->kernel_stamps = strcmp(optarg, "kernel") == 0;
		return session->kernel_stamps || strcmp(optarg, "user") == 0
			       ? -1
			       : cli_usage_fault(
					 command, "--stamps \"%s\": wanted user or kernel", optarg);
	case OPT_SECRET_FILE:
		session->secret_file = optarg;
		return -1;
	case OPT_TARGET_BOUND:
		return cli_parse_uint(optarg, &session->target_bound_ns) &&
				       session->target_bound_ns > 0
			       ? -1
			       : cli_usage_fault(command,
					 "--target-bound \"%s\": wanted nanoseconds", optarg);
	case OPT_NEED_GUESTS:
		session->need_guests = true;
		return -1;
	case OPT_NO_KVM:
		session->no_kvm = true;
		return -1;
	case OPT_FORCE:
		session->force = true;
		return -1;
	case OPT_ATTACH:
		session->attach_to = optarg;
		return -1;
	default:
		return cli_common_option(command, value);
	}
}

static int check_guests(struct session *session)
{
	struct cli_command *command = &session->command;

	if (session->guests.count == 0) {
		return cli_usage_fault(command, "no --guest NAME=ADDR is given");
	}
	for (size_t i = 0; i < session->guests.count; i++) {
		struct cli_named *guest = &session->guests.items[i];

		struct tdm_address address;
		struct tdm_error err;

		guest_name_alone(guest);

		if (!*guest->name || strcmp(guest->name, "host") == 0) {
			return cli_usage_fault(command,
				"--guest \"%s\": wanted NAME or NAME=ADDR, NAME not \"host\"",
				guest->text);
		}
		if (*guest->text && strncmp(guest->text, "vm:", 3) != 0 &&
			tdm_address_parse(guest->text, TDM_ADDRESS_CONNECT, &address, &err) !=
				TDM_OK) {
			return cli_usage_fault(command, "--guest %s: %s", guest->name, err.text);
		}
		for (size_t k = 0; k < i; k++) {
			if (strcmp(guest->name, session->guests.items[k].name) == 0) {
				return cli_usage_fault(
					command, "guest \"%s\" is named twice", guest->name);
			}
		}
	}
	return -1;
}

static int parse(struct session *session, int argc, char **argv)
{
	enum tdm_clock clock;
	struct tdm_error err;

	session->clock = "mono";
	for (int value; (value = cli_next_option(&session->command, argc, argv,
				 "+" CLI_COMMON_LETTERS "g:o:C:", long_options)) != -1;) {
		const int status = parse_option(session, value);

		if (status != -1) {
			return status;
		}
	}
	if (optind < argc) {
		session->child = argv + optind;
	}
	if (tdm_clock_by_name(session->clock, &clock, &err) != TDM_OK) {
		return cli_usage_fault(&session->command, "-C: %s", err.text);
	}
	return check_guests(session);
}

static void publish(void *user, const char *text, size_t text_bytes)
{
	const struct slot *slot = user;

	if (slot->session->serve) {
		sync_serve_lines(slot->session->serve, slot->index, text, text_bytes);
	}
}

/* Nothing that is there is overwritten unasked: looked at for all before the first file is made. */
static enum tdm_status check_files(struct session *session, struct tdm_error *err)
{
	static const char *const suffixes[] = { ".exchanges", ".corrections" };
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < session->guests.count && status == TDM_OK; i++) {
		for (size_t k = 0; k < 2 && status == TDM_OK; k++) {
			char *path = out_dir_path(
				session->dir, session->guests.items[i].name, suffixes[k]);

			status = path ? out_dir_check_free(path, session->force, err)
				      : tdm_fail(err, TDM_ERR_NOMEM, "no memory");
			free(path);
		}
	}
	return status;
}

static enum tdm_status find_guests(struct session *session, struct tdm_error *err)
{
	session->slots = calloc(session->guests.count, sizeof(*session->slots));
	if (!session->slots) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the guests");
	}
	vmm_list_read(NULL, &session->vmms);
	for (size_t i = 0; i < session->guests.count; i++) {
		const struct cli_named *named = &session->guests.items[i];
		struct tdm_address *address = &session->slots[i].address;
		enum guest_agent agent;

		if (guest_address_parse(named->name, named->text, &session->vmms, address, &agent,
			    err) != TDM_OK ||
			tdm_address_resolve(address, err) != TDM_OK) {
			return tdm_error_prefix(err, "guest %s", named->name);
		}
	}
	return TDM_OK;
}

static enum tdm_status make_guests(struct session *session, struct tdm_error *err)
{
	for (size_t i = 0; i < session->guests.count; i++) {
		struct slot *slot = &session->slots[i];
		struct sync_guest_options options = { .name = session->guests.items[i].name,
			.address = slot->address,
			.clock = session->clock,
			.kernel_stamps = session->kernel_stamps,
			.use_kvm = !session->no_kvm,
			.secret = &session->secret,
			.dir = session->dir,
			.target_bound_ns = session->target_bound_ns,
			.log = &session->command.log,
			.lines = session->has_serve ? publish : NULL,
			.user = slot,
			.gate = &session->gate,
			.interrupt_fd = session->run.interrupt_fd };

		slot->session = session;
		slot->index = i;
		slot->guest = sync_guest_create(&options, err);
		if (!slot->guest) {
			return err->status;
		}
	}
	return TDM_OK;
}

static enum tdm_status start_service(struct session *session, struct tdm_error *err)
{
	const char **names = calloc(session->guests.count, sizeof(*names));
	char text[320];

	if (!names) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for the service");
	}
	for (size_t i = 0; i < session->guests.count; i++) {
		names[i] = session->guests.items[i].name;
	}
	session->serve = sync_serve_create(&session->serve_address, names, session->guests.count,
		&session->secret, &session->command.log, err);
	free(names);
	if (!session->serve) {
		return err->status;
	}
	tdm_address_print(&session->serve_address, text, sizeof(text));
	TDM_INFO(&session->command.log, "Serving corrections: address=\"%s\"", text);
	return TDM_OK;
}

/* What becomes of a guest whose start failed, said once. */
static void tell_start(const struct session *session, size_t index, const struct tdm_error *why)
{
	const char *name = session->guests.items[index].name;

	if (session->need_guests || sync_guest_gave_up(session->slots[index].guest)) {
		fprintf(stderr, "tandem sync: guest %s: %s\n", name, why->text);
	} else {
		TDM_WARNING(&session->command.log, "guest %s: %s; %strying again", name, why->text,
			session->child ? "the command runs, " : "");
	}
}

/*
 * Starts all and waits for their first bursts. What a command does is worth more than the corrections of a guest that is not
 * up yet: it runs, and the guest is tried again. But where every guest refuses for good, nothing could come of the run.
 */
static enum tdm_status start_guests(struct session *session, struct tdm_error *err)
{
	const size_t count = session->guests.count;
	size_t failed = 0, gave_up = 0;

	for (size_t i = 0; i < count; i++) {
		const enum tdm_status status = sync_guest_start(session->slots[i].guest, err);

		if (status != TDM_OK) {
			return status;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct tdm_error why;

		if (sync_guest_await(session->slots[i].guest, &why) == TDM_OK) {
			continue;
		}
		if (run_command_is_interrupted(&session->run)) {
			return TDM_OK; /* what there is of the guests is ended in good order */
		}
		failed++;
		gave_up += sync_guest_gave_up(session->slots[i].guest);
		*err = why;
		tdm_error_prefix(err, "guest %s", session->guests.items[i].name);
		if (count > 1 || !(session->need_guests || gave_up)) {
			tell_start(session, i, &why);
		}
	}
	if (session->need_guests && failed > 0 && count > 1) {
		return tdm_fail(err, TDM_ERR_PEER,
			"%zu of %zu guests did not answer: nothing was run", failed, count);
	}
	if (gave_up == count && count > 1) {
		return tdm_fail(err, TDM_ERR_PEER, "all guests refuse: nothing was run");
	}
	return (session->need_guests && failed > 0) || gave_up == count ? err->status : TDM_OK;
}

static void show_progress(struct session *session)
{
	const uint64_t now_ns = tdm_now_ns();
	uint64_t worst = 0;

	if (now_ns < session->progress_ns) {
		return;
	}
	session->progress_ns = now_ns + (uint64_t)PROGRESS_MS * 1000000;
	for (size_t i = 0; i < session->guests.count; i++) {
		const uint64_t bound = sync_guest_bound(session->slots[i].guest);

		worst = bound > worst ? bound : worst;
	}
	fprintf(stderr, "\r%zu guest%s, %" PRIu64 " s, bound +-%" PRIu64 ".%" PRIu64 " us   ",
		session->guests.count, session->guests.count == 1 ? "" : "s",
		(now_ns - session->began_ns) / 1000000000, worst / 1000, worst % 1000 / 100);
}

/* Called ten times a second. */
static bool must_end(void *user)
{
	struct session *session = user;

	if (session->shows) {
		show_progress(session);
	}
	return session->attach && attach_get_state(session->attach) == ATTACH_ENDED;
}

static void run_session(struct session *session)
{
	session->shows = !session->command.quiet && isatty(STDERR_FILENO);
	session->began_ns = tdm_now_ns();
	session->progress_ns = session->began_ns + (uint64_t)PROGRESS_MS * 1000000;
	/* Ten wakeups a second would be a good part of what a session costs. */
	run_command_wait(&session->run, UINT64_MAX,
		session->shows || session->attach ? must_end : NULL, session);
	if (session->shows) {
		fputs("\r\033[K", stderr);
	}
	if (session->run.pid > 0 && run_command_exit_status(&session->run) != 0) {
		TDM_INFO(&session->command.log, "\"%s\" ended with status %d", session->child[0],
			run_command_exit_status(&session->run));
	}
}

/* All end at the same time; then each tells. @return The exit status. */
static int end_guests(struct session *session)
{
	size_t usable = 0;
	int status = TDM_EXIT_DONE;

	for (size_t i = 0; i < session->guests.count; i++) {
		sync_guest_stop(session->slots[i].guest);
	}
	for (size_t i = 0; i < session->guests.count; i++) {
		struct slot *slot = &session->slots[i];

		sync_guest_join(slot->guest, &slot->outcome);

		const int own = sync_report(&session->command, session->guests.items[i].name,
			session->dir, session->target_bound_ns, &slot->outcome);

		usable += own != TDM_EXIT_FAILED;
		if (own != TDM_EXIT_DONE) {
			status = TDM_EXIT_INCOMPLETE;
		}
	}
	return usable ? status : TDM_EXIT_FAILED;
}

static enum tdm_status prepare(struct session *session, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	if (session->secret_file) {
		status = tdm_secret_load(session->secret_file, &session->secret, err);
	}
	/* Before Ctrl-C is ours: a name server that does not answer takes its time. */
	if (status == TDM_OK) {
		status = find_guests(session, err);
	}
	if (status == TDM_OK) {
		status = run_command_init(&session->run, err);
	}
	if (status == TDM_OK && session->attach_to) {
		session->attach = attach_create(session->attach_to, err);
		status = session->attach ? TDM_OK : err->status;
	}
	if (status == TDM_OK) {
		session->dir = out_dir_create_beside(session->wanted_dir,
			session->attach ? attach_path(session->attach) : NULL, err);
		status = session->dir ? check_files(session, err) : err->status;
	}
	if (status == TDM_OK) {
		const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

		/* Half of the CPUs: each burst keeps one awake here, and on one machine another at the other end. */
		sem_init(&session->gate, 0, cpus > 2 ? (unsigned int)cpus / 2 : 1);
		status = make_guests(session, err);
	}
	if (status == TDM_OK && session->has_serve) {
		status = start_service(session, err);
	}
	return status;
}

static int run_all(struct session *session)
{
	struct tdm_error err = { 0 };
	enum tdm_status status = prepare(session, &err);

	if (status == TDM_OK) {
		status = start_guests(session, &err);
	}
	if (status == TDM_OK && session->child && !run_command_is_interrupted(&session->run)) {
		status = run_command_fork(&session->run, session->child, &err);
		if (status == TDM_OK) {
			status = run_command_release(&session->run, session->child[0], &err);
		}
	}
	if (status != TDM_OK) {
		return cli_failed(&session->command, &err);
	}
	run_session(session);
	return end_guests(session);
}

int tdm_sync_main(int argc, char **argv)
{
	static struct session session = { .run = RUN_COMMAND_NONE };

	cli_command_init(&session.command, "sync", help);

	int status = parse(&session, argc, argv);

	if (status == -1) {
		status = run_all(&session);
		for (size_t i = 0; session.slots && i < session.guests.count; i++) {
			sync_guest_destroy(session.slots[i].guest);
		}
		sync_serve_destroy(session.serve);
		run_command_release_all(&session.run);
	}
	free(session.slots);
	free(session.dir);
	tdm_secret_clear(&session.secret);
	vmm_list_release(&session.vmms);
	attach_destroy(session.attach);
	cli_named_release(&session.guests);
	return status;
}
