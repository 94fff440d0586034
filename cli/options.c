/* SPDX-License-Identifier: MIT */
#include "options.h"
#include "tandem_version.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/nearest.h>
#include <tandem/utf8.h>
#include <unistd.h>

static void write_line(void *user, enum tdm_log_level level, const char *line)
{
	static const char *const words[] = {
		[TDM_LOG_ERROR] = "error: ",
		[TDM_LOG_WARNING] = "warning: ",
		[TDM_LOG_INFO] = "",
		[TDM_LOG_DEBUG] = "debug: ",
	};
	const struct cli_command *const command = user;

	fprintf(stderr, "tandem %s: %s%s\n", command->name, words[level], line);
}

void cli_put_visible(FILE *out, const char *text)
{
	struct tdm_buffer shown = { 0 };

	if (tdm_utf8_append_visible(&shown, (const uint8_t *)text, strlen(text)) == TDM_OK &&
		shown.size) {
		fwrite(shown.bytes, 1, shown.size, out);
	}
	tdm_buffer_release(&shown);
}

void cli_command_init(struct cli_command *command, const char *name, const char *help)
{
	memset(command, 0, sizeof(*command));
	command->name = name;
	command->help = help;
	command->log.max_level = TDM_LOG_INFO;
	command->log.write = write_line;
	command->log.user = command;
}

int cli_next_option(const struct cli_command *command, int argc, char **argv, const char *letters,
	const struct option *options)
{
	struct tdm_nearest nearest;

	optopt = 0;

	const int value = getopt_long(argc, argv, letters, options, NULL);

	if (value == '?' && optopt == 0 &&
		*tdm_nearest_option_text(&nearest, argv[optind - 1], options)) {
		fprintf(stderr, "tandem %s: unknown option%s\n", command->name, nearest.text);
	}
	return value;
}

int cli_common_option(struct cli_command *command, int value)
{
	switch (value) {
	case 'h':
	case CLI_OPT_HELP:
		fputs(command->help, stdout);
		return cli_end_output(command, TDM_EXIT_DONE);
	case CLI_OPT_VERSION:
		puts("tandem " TDM_VERSION);
		return cli_end_output(command, TDM_EXIT_DONE);
	case 'q':
	case CLI_OPT_QUIET:
		command->quiet = true;
		command->log.max_level = TDM_LOG_ERROR;
		return -1;
	default:
		/* getopt_long() has told what is wrong. */
		fprintf(stderr, "\"tandem %s --help\" tells the options.\n", command->name);
		return TDM_EXIT_USAGE;
	}
}

int cli_usage_fault(const struct cli_command *command, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tdm_utf8_make_visible(text, sizeof(text));
	fprintf(stderr, "tandem %s: %s\n\"tandem %s --help\" tells the options.\n", command->name,
		text, command->name);
	return TDM_EXIT_USAGE;
}

int cli_failed(const struct cli_command *command, const struct tdm_error *err)
{
	fprintf(stderr, "tandem %s: error: %s\n", command->name, err->text);
	return TDM_EXIT_FAILED;
}

int cli_end_output(const struct cli_command *command, int exit_status)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "tandem %s: error: cannot write to the standard output: %s\n",
			command->name, strerror(errno));
		return TDM_EXIT_FAILED;
	}
	return exit_status;
}

void cli_parse_input(const char *argument, char name_room[TDM_MACHINE_NAME_MAX + 1],
	struct tdm_machine_input *input)
{
	const char *const equals = strchr(argument, '=');
	const size_t name_bytes = equals ? (size_t)(equals - argument) : 0;

	input->name = NULL;
	input->path = argument;
	name_room[0] = '\0';
	if (name_bytes == 0 || name_bytes > TDM_MACHINE_NAME_MAX) {
		return;
	}
	memcpy(name_room, argument, name_bytes);
	name_room[name_bytes] = '\0';
	/* "run=3.dat" may be a file's whole name. */
	if (!tdm_machine_name_is_valid(name_room) ||
		(access(argument, F_OK) == 0 && access(equals + 1, F_OK) != 0)) {
		name_room[0] = '\0';
		return;
	}
	input->name = name_room;
	input->path = equals + 1;
}

bool cli_named_add(struct cli_named_list *list, const char *argument)
{
	struct cli_named *const items =
		realloc(list->items, (list->count + 1) * sizeof(*list->items));

	if (!items) {
		return false;
	}
	list->items = items;
	items[list->count] = (struct cli_named){ .text = NULL };

	struct tdm_machine_input input;

	cli_parse_input(argument, items[list->count].name, &input);
	items[list->count].text = input.path;
	list->count++;
	return true;
}

int cli_named_path_add(
	const struct cli_command *command, struct cli_named_list *list, const char *argument)
{
	const char *const equals = strchr(argument, '=');
	const char *const slash = strchr(argument, '/');

	if (!cli_named_add(list, argument)) {
		return cli_failed(command, &(struct tdm_error){ .text = "no memory" });
	}
	if (!*list->items[list->count - 1].text) {
		return cli_usage_fault(command, "\"%s\": no file is named", argument);
	}
	/* "./a=b.dat" and "data/a=b.dat" are paths; and so is all that exists. */
	if (!equals || *list->items[list->count - 1].name || (slash && slash < equals) ||
		access(argument, F_OK) == 0) {
		return -1;
	}
	return cli_usage_fault(command,
		"\"%s\": \"%.*s\" is no name for a machine: letters, digits, \"_\", and not first \".\" or \"-\", at most %d",
		argument, (int)(equals - argument), argument, TDM_MACHINE_NAME_MAX);
}

void cli_named_release(struct cli_named_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].owned_text);
	}
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

/* 10, or 16 behind "0x"; 0: strtoll() would take more than a number (blanks, a sign, octal digits by a leading zero). */
static int base_of(const char *digits)
{
	if (*digits < '0' || *digits > '9') {
		return 0;
	}
	return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

bool cli_parse_int(const char *text, int64_t *number)
{
	const int base = base_of(text + (*text == '-' || *text == '+'));
	char *end;

	errno = 0;
	*number = base ? strtoll(text, &end, base) : 0;
	return base && errno == 0 && end != text && *end == '\0';
}

bool cli_parse_uint(const char *text, uint64_t *number)
{
	const int base = base_of(text);
	char *end;

	errno = 0;
	*number = base ? strtoull(text, &end, base) : 0;
	return base && errno == 0 && end != text && *end == '\0';
}
