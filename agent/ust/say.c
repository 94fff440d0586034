/* SPDX-License-Identifier: MIT */
/*
 * One line for people: on the log that "tandem syscalls" reads when TANDEM_SYSCALLS_LOG names it, so
 * that the program's own output stays its own, else on stderr.
 */
#include "hook_priv.h"
#include <asm/unistd.h>
#include <fcntl.h>
#include <string.h>

static char log_path[512];

void tdm_say_setup(char **environment)
{
	static const char name[] = "TANDEM_SYSCALLS_LOG=";

	for (char **at = environment; at && *at; at++) {
		if (strncmp(*at, name, sizeof(name) - 1) == 0 &&
			strlen(*at) - sizeof(name) + 1 < sizeof(log_path)) {
			strcpy(log_path, *at + sizeof(name) - 1);
		}
	}
}

static size_t append(char *line, size_t at, size_t room, const char *text)
{
	while (*text && at + 2 < room) {
		line[at++] = *text == '\n' ? ' ' : *text;
		text++;
	}
	return at;
}

static void put_line(const char *line, size_t length)
{
	long fd = 2;

	/* Its sandbox may end a program that opens a file, and one that was recorded must end as it does untraced. */
	if (tdm_process.is_sandboxed) {
		return;
	}
	if (log_path[0]) {
		fd = tdm_raw(__NR_openat, AT_FDCWD, (long)(intptr_t)log_path,
			O_WRONLY | O_APPEND | O_CLOEXEC, 0, 0, 0);
	}
	if (fd < 0) {
		return; /* the log's reader is gone: nobody is told, and the program is not disturbed */
	}
	tdm_raw(__NR_write, fd, (long)(intptr_t)line, (long)length, 0, 0, 0);
	if (fd != 2) {
		tdm_raw(__NR_close, fd, 0, 0, 0, 0, 0);
	}
}

void tdm_say(const char *what, const char *about, const char *why)
{
	char line[1024];
	size_t length = append(line, 0, sizeof(line), "tandem: ");

	length = append(line, length, sizeof(line), what);
	if (about) {
		length = append(line, length, sizeof(line), about);
	}
	if (why) {
		length = append(line, length, sizeof(line), ": ");
		length = append(line, length, sizeof(line), why);
	}
	line[length++] = '\n';
	put_line(line, length);
}

static size_t append_number(char *line, size_t at, size_t room, uint64_t number)
{
	char digits[24];
	size_t count = sizeof(digits) - 1;

	digits[count] = '\0';
	do {
		digits[--count] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	at = append(line, at, room, " ");
	return append(line, at, room, digits + count);
}

void tdm_say_start(int32_t pid, uint64_t image_id, const char *name)
{
	char line[256];
	size_t length;

	if (!log_path[0]) {
		return;
	}
	length = append(line, 0, sizeof(line), "@start");
	length = append_number(line, length, sizeof(line), (uint64_t)pid);
	length = append_number(line, length, sizeof(line), image_id);
	length = append(line, length, sizeof(line), " ");
	length = append(line, length, sizeof(line), name);
	line[length++] = '\n';
	put_line(line, length);
}

void tdm_say_end(int32_t pid, uint64_t image_id, const struct tdm_call_counts *counts)
{
	const uint64_t numbers[] = { (uint64_t)pid, image_id, counts->calls, counts->entries,
		counts->exits, counts->no_exit, counts->missed, counts->not_chosen, counts->notes };
	char line[256];
	size_t length;

	if (!log_path[0]) {
		return;
	}
	length = append(line, 0, sizeof(line), "@end");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		length = append_number(line, length, sizeof(line), numbers[i]);
	}
	line[length++] = '\n';
	put_line(line, length);
}
