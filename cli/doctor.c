/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "cli.h"
#include "guest_address.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/clocks.h>

static const char help[] =
	"Usage: tandem doctor [OPTION]...\n"
	"Looks at this machine and tells what of Tandem works here, one line a check, with the remedy where something\n"
	"does not. It changes nothing.\n\n"
	"  -g, --guest [NAME=]ADDR  also a guest, by its agent: is it reached, how quick, how well is its clock known;\n"
	"                           tcp:HOST[:PORT], vsock:CID[:PORT], unix:PATH, or NAME alone for a guest of this\n"
	"                           machine that is called so; may be repeated\n"
	"  -C, --clock CLOCK        the clock that guests are asked for (default: mono_raw, as tandem record)\n"
	"      --secret-file FILE   the secret that the agents want proven\n"
	"      --root DIR           look at DIR/proc, DIR/sys and DIR/dev instead of this machine's own\n"
	"      --json               the same as JSON\n"
	"  -q, --quiet              only what does not work\n"
	"  -h, --help               this text\n"
	"      --version            the version\n\n"
	"Exit status: 0 recording, reading and all guests that were named work, 1 failed, 2 usage, 3 a line says \"bad\".\n\n"
	"Example: tandem doctor --guest web=tcp:10.0.0.5 --secret-file secret\n";

enum {
	OPT_SECRET_FILE = CLI_OPT_OWN,
	OPT_ROOT,
	OPT_JSON
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{ "guest", required_argument, NULL, 'g' },
	{ "clock", required_argument, NULL, 'C' },
	{ "secret-file", required_argument, NULL, OPT_SECRET_FILE },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

struct choice {
	struct cli_named_list guests;
	const char *clock, *secret_file;
	bool json;
};

void doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
	const char *remedy, const char *format, ...)
{
	struct doctor_finding *const findings =
		realloc(doctor->findings, (doctor->finding_count + 1) * sizeof(*doctor->findings));
	va_list args;

	if (!findings) {
		doctor->lacks_memory = true;
		return;
	}
	doctor->findings = findings;

	struct doctor_finding *finding = &findings[doctor->finding_count++];

	memset(finding, 0, sizeof(*finding));
	finding->level = level;
	finding->check = check;
	snprintf(finding->subject, sizeof(finding->subject), "%s",
		doctor->subject ? doctor->subject : "");
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
}

const char *doctor_path(const struct doctor *doctor, const char *path, char room[PATH_MAX])
{
	/* A path that was cut short is not there, and is told as that. */
	return snprintf(room, PATH_MAX, "%s%s", doctor->root, path) < PATH_MAX ? room : "";
}

int doctor_read(const struct doctor *doctor, const char *path, char *text, size_t room)
{
	char where[PATH_MAX];
	FILE *const file = fopen(doctor_path(doctor, path, where), "re");

	*text = '\0';
	if (!file) {
		return errno;
	}

	const size_t got = fread(text, 1, room - 1, file);
	const int failure = ferror(file) ? EIO : 0;

	fclose(file);
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return failure;
}

static int parse_option(struct doctor *doctor, struct choice *choice, int value)
{
	switch (value) {
	case 'g':
		return cli_named_add(&choice->guests, optarg) ? -1 : TDM_EXIT_FAILED;
	case 'C':
		choice->clock = optarg;
		return -1;
	case OPT_SECRET_FILE:
		choice->secret_file = optarg;
		return -1;
	case OPT_ROOT:
		doctor->root = strcmp(optarg, "/") == 0 ? "" : optarg;
		return -1;
	case OPT_JSON:
		choice->json = true;
		return -1;
	default:
		return cli_common_option(&doctor->command, value);
	}
}

static int parse(struct doctor *doctor, struct choice *choice, int argc, char **argv)
{
	struct tdm_error err;
	enum tdm_clock clock;

	choice->clock = "mono_raw";
	for (int value; (value = cli_next_option(&doctor->command, argc, argv,
				 CLI_COMMON_LETTERS "g:C:", long_options)) != -1;) {
		const int status = parse_option(doctor, choice, value);

		if (status != -1) {
			return status;
		}
	}
	if (optind < argc) {
		return cli_usage_fault(
			&doctor->command, "\"%s\": no argument is wanted", argv[optind]);
	}
	if (tdm_clock_by_name(choice->clock, &clock, &err) != TDM_OK) {
		return cli_usage_fault(&doctor->command, "-C: %s", err.text);
	}
	for (size_t i = 0; i < choice->guests.count; i++) {
		struct cli_named *const guest = &choice->guests.items[i];
		struct tdm_address address;

		guest_name_alone(guest);
		if (*guest->text && strncmp(guest->text, "vm:", 3) != 0 &&
			tdm_address_parse(guest->text, TDM_ADDRESS_CONNECT, &address, &err) !=
				TDM_OK) {
			return cli_usage_fault(&doctor->command, "--guest: %s", err.text);
		}
	}
	return -1;
}

static void check_guests(
	struct doctor *doctor, const struct choice *choice, const struct tdm_secret *secret)
{
	struct vmm_list vmms;

	vmm_list_read(NULL, &vmms);
	for (size_t i = 0; i < choice->guests.count; i++) {
		const struct cli_named *guest = &choice->guests.items[i];
		const char *name = *guest->name ? guest->name : guest->text;
		struct tdm_address address;
		enum guest_agent agent;
		struct tdm_error err;

		doctor->subject = name;
		if (guest_address_parse(guest->name, guest->text, &vmms, &address, &agent, &err) !=
				TDM_OK ||
			tdm_address_resolve(&address, &err) != TDM_OK) {
			doctor_say(doctor, DOCTOR_BAD, "guest", "check the guest's address", "%s",
				err.text);
		} else {
			doctor_guest(doctor, &address, choice->clock, secret);
		}
		doctor->subject = NULL;
	}
	vmm_list_release(&vmms);
}

int tdm_doctor_main(int argc, char **argv)
{
	struct doctor doctor = { .root = "" };
	struct choice choice = { .clock = NULL };
	struct tdm_secret secret = { .is_set = false };
	struct tdm_error err;

	cli_command_init(&doctor.command, "doctor", help);

	int status = parse(&doctor, &choice, argc, argv);

	if (status == -1 && choice.secret_file &&
		tdm_secret_load(choice.secret_file, &secret, &err) != TDM_OK) {
		status = cli_failed(&doctor.command, &err);
	}
	if (status == -1) {
		doctor_tracer(&doctor);
		doctor_machine(&doctor);
		doctor_tools(&doctor);
		check_guests(&doctor, &choice, choice.secret_file ? &secret : NULL);
		status = TDM_EXIT_DONE;
		for (size_t i = 0; i < doctor.finding_count; i++) {
			status = doctor.findings[i].level == DOCTOR_BAD ? (int)TDM_EXIT_INCOMPLETE
									: status;
		}
		if (doctor.lacks_memory) {
			fputs("tandem doctor: error: no memory for all findings\n", stderr);
			status = TDM_EXIT_FAILED;
		}
		if (choice.json) {
			doctor_print_json(&doctor, stdout);
		} else {
			doctor_print_text(&doctor, stdout);
		}
		status = cli_end_output(&doctor.command, status);
	}
	tdm_secret_clear(&secret);
	free(doctor.findings);
	cli_named_release(&choice.guests);
	return status;
}
