/* SPDX-License-Identifier: MIT */
#include "agent_options.h"
#include "tandem_version.h"
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/nearest.h>
#include <tandem/socket.h>

enum {
	DEFAULT_MAX_BUFFER_KIB = 8192,
	TRACECMD_PORT = 823, /* of trace-cmd's own agent */
	EXIT_USAGE = 2,
	OPT_ALLOW = 256,
	OPT_KEEP_PRIVILEGES,
	OPT_MAX_BUFFER,
	OPT_TRACE_CMD,
	OPT_VERSION
};

static const char help[] =
	"Usage: tandem-agent [OPTION]...\n"
	"Answers time exchanges for a tracing host, so that its traces and this machine's share one timeline.\n\n"
	"  -l, --listen ADDR       tcp:ADDRESS[:PORT], tcp:[IPV6][:PORT], vsock:any[:PORT] or unix:PATH;\n"
	"                          may be repeated; port 8990. Default: vsock and the loopback addresses\n"
	"  -s, --secret-file FILE  who connects must prove this secret; needed for any other TCP address\n"
	"      --allow GLOB        events that may be recorded, e.g. \"sched:*\"; may be repeated.\n"
	"                          Without it the agent records nothing\n"
	"      --max-buffer-kib N  ring buffer of each CPU that a recording may have (default: 8192)\n"
	"      --trace-cmd [ADDR]  also serve \"trace-cmd record -A\", at ADDR or a port (default 823). Its protocol\n"
	"                          has no secret: without ADDR only the host over vsock and root over\n"
	"                          loopback are served\n"
	"      --keep-privileges   do not give up capabilities after the start\n"
	"  -q, --quiet             say errors only\n"
	"  -h, --help              this text\n"
	"      --version           the version\n\n"
	"Example: tandem-agent --listen tcp:10.0.0.5 --secret-file /etc/tandem/secret\n";

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "secret-file", required_argument, NULL, 's' },
	{ "allow", required_argument, NULL, OPT_ALLOW },
	{ "keep-privileges", no_argument, NULL, OPT_KEEP_PRIVILEGES },
	{ "max-buffer-kib", required_argument, NULL, OPT_MAX_BUFFER },
	{ "trace-cmd", optional_argument, NULL, OPT_TRACE_CMD },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int usage_fault(const char *text)
{
	fprintf(stderr, "tandem-agent: %s; \"tandem-agent --help\" tells more\n", text);
	return EXIT_USAGE;
}

static int print(const char *text)
{
	if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "tandem-agent: error: cannot write to the standard output: %s\n",
			strerror(errno));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static int add_listen(struct agent_options *options, const char *text, bool is_default)
{
	struct tdm_error err;
	struct agent_listen *listen = &options->listen[options->listen_count];

	if (options->listen_count == AGENT_LISTEN_MAX) {
		return usage_fault("too many addresses");
	}
	if (tdm_address_parse(text, TDM_ADDRESS_LISTEN, &listen->address, &err) != TDM_OK) {
		return usage_fault(err.text);
	}
	listen->is_default = is_default;
	options->listen_count++;
	return -1;
}

/* NULL and a port alone: vsock and the loopback addresses. */
static int add_tracecmd(struct agent_options *options, const char *text)
{
	static const char *const defaults[] = { "vsock:any", "tcp:127.0.0.1", "tcp:[::1]" };
	const unsigned int first = options->listen_count;
	const bool is_port = !text || text[strspn(text, "0123456789")] == '\0';
	const unsigned long port = text && is_port ? strtoul(text, NULL, 10) : TRACECMD_PORT;
	int status = -1;

	if (port == 0 || port > 65535) {
		return usage_fault("--trace-cmd: wanted an address or a port from 1 to 65535");
	}
	if (!is_port) {
		status = add_listen(options, text, false);
	}
	for (size_t i = 0; is_port && status < 0 && i < sizeof(defaults) / sizeof(defaults[0]);
		i++) {
		status = add_listen(options, defaults[i], true);
	}
	for (unsigned int i = first; i < options->listen_count; i++) {
		struct agent_listen *listen = &options->listen[i];

		if (listen->address.kind == TDM_ADDRESS_UNIX) {
			return usage_fault("--trace-cmd: trace-cmd speaks TCP and vsock only");
		}
		listen->is_tracecmd = true;
		if (!listen->address.has_port) {
			listen->address.port = (uint32_t)port;
		}
	}
	return status;
}

/* Whoever can reach an address from outside must be kept out by a secret. */
static int check_trust(const struct agent_options *options)
{
	for (unsigned int i = 0; i < options->listen_count; i++) {
		const struct tdm_address *address = &options->listen[i].address;
		char text[320], line[450];

		/* Where trace-cmd is served outside it was asked for in so many words. */
		if (address->kind == TDM_ADDRESS_TCP && !options->listen[i].is_tracecmd &&
			!tdm_address_is_local(address) && !options->secret.is_set) {
			tdm_address_print(address, text, sizeof(text));
			snprintf(line, sizeof(line),
				"%s can be reached from other machines: --secret-file is needed",
				text);
			return usage_fault(line);
		}
	}
	return -1;
}

static bool parse_buffer(const char *text, uint32_t *kib)
{
	char *end = NULL;
	const unsigned long value = strtoul(text, &end, 10);

	*kib = (uint32_t)value;
	/* strtoul() takes blanks and signs too. */
	return *text >= '0' && *text <= '9' && !*end && value >= 8 && value <= 1UL << 22;
}

/* getopt_long() has told what is wrong. @param unknown  Where it is that there is no such option; else NULL. */
static int refuse_option(const char *unknown)
{
	struct tdm_nearest nearest;
	char text[sizeof(nearest.text) + 60];

	snprintf(text, sizeof(text), "unknown option, or one without its value%s",
		tdm_nearest_option_text(&nearest, unknown, long_options));
	return usage_fault(text);
}

int agent_options_parse(struct agent_options *options, int argc, char **argv)
{
	const char *secret_file = NULL, *tracecmd;
	bool has_listen = false;
	int status = -1;
	int letter;

	memset(options, 0, sizeof(*options));
	options->max_buffer_kib = DEFAULT_MAX_BUFFER_KIB;
	optopt = 0;
	while (status < 0 &&
		(letter = getopt_long(argc, argv, "l:s:qh", long_options, NULL)) != -1) {
		switch (letter) {
		case 'l':
			has_listen = true;
			status = add_listen(options, optarg, false);
			break;
		case 's':
			secret_file = optarg;
			break;
		case OPT_ALLOW:
			if (options->allow_count == AGENT_ALLOW_MAX) {
				return usage_fault("too many --allow");
			}
			options->allow[options->allow_count++] = optarg;
			break;
		case OPT_MAX_BUFFER:
			if (!parse_buffer(optarg, &options->max_buffer_kib)) {
				return usage_fault("--max-buffer-kib: wanted 8 to 4194304");
			}
			break;
		case OPT_TRACE_CMD:
			/* An address in the next argument, too: no other argument is taken. */
			tracecmd = optarg;
			if (!tracecmd && optind < argc && argv[optind][0] != '-') {
				tracecmd = argv[optind++];
			}
			status = add_tracecmd(options, tracecmd);
			break;
		case OPT_KEEP_PRIVILEGES:
			options->keep_privileges = true;
			break;
		case 'q':
			options->quiet = true;
			break;
		case 'h':
			return print(help);
		case OPT_VERSION:
			return print("tandem-agent " TDM_VERSION "\n");
		default:
			return refuse_option(optopt == 0 ? argv[optind - 1] : NULL);
		}
	}
	if (status < 0 && optind < argc) {
		status = usage_fault("no arguments are wanted");
	}
	if (status < 0 && !has_listen) {
		add_listen(options, "vsock:any", true);
		add_listen(options, "tcp:127.0.0.1", true);
		add_listen(options, "tcp:[::1]", true);
	}
	if (status < 0 && secret_file) {
		struct tdm_error err;

		if (tdm_secret_load(secret_file, &options->secret, &err) != TDM_OK) {
			fprintf(stderr, "tandem-agent: %s\n", err.text);
			return EXIT_FAILURE;
		}
	}
	return status < 0 ? check_trust(options) : status;
}

bool agent_options_allow(const struct agent_options *options, const char *system, const char *event)
{
	char name[256];

	snprintf(name, sizeof(name), "%s:%s", system, event);
	for (unsigned int i = 0; i < options->allow_count; i++) {
		const char *glob = options->allow[i];

		if (fnmatch(glob, name, 0) == 0 ||
			(!strchr(glob, ':') &&
				(fnmatch(glob, system, 0) == 0 || fnmatch(glob, event, 0) == 0))) {
			return true;
		}
	}
	return false;
}
