/* SPDX-License-Identifier: MIT */
/*
 * syscall_load.c - so many system calls of a few kinds, the CPU time that one takes, and what processes of a name used
 * meanwhile: of a recorder, without its start and its end.
 *
 * usage: syscall_load CALLS [NAME]     prints "ns OWN OTHERS", nanoseconds a call
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int read_text(const char *path, char *text, size_t room)
{
	FILE *file = fopen(path, "re");
	const size_t size = file ? fread(text, 1, room - 1, file) : 0;

	text[size] = '\0';
	if (file) {
		fclose(file);
	}
	return size > 0;
}

/* All threads of a process, exactly: the ticks of its stat file are too coarse. */
static double tasks_ns(const char *pid)
{
	char path[600], text[128];
	double sum_ns = 0;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);

	DIR *list = opendir(path);

	for (struct dirent *entry; list && (entry = readdir(list));) {
		snprintf(
			path, sizeof(path), "/proc/%.20s/task/%.20s/schedstat", pid, entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) &&
			read_text(path, text, sizeof(text))) {
			sum_ns += strtod(text, NULL);
		}
	}
	if (list) {
		closedir(list);
	}
	return sum_ns;
}

static double others_ns(const char *name)
{
	DIR *list = name ? opendir("/proc") : NULL;
	char path[600], text[128];
	double sum_ns = 0;

	for (struct dirent *entry; list && (entry = readdir(list));) {
		snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) &&
			read_text(path, text, sizeof(text)) &&
			strncmp(text, name, strlen(name)) == 0) {
			sum_ns += tasks_ns(entry->d_name);
		}
	}
	if (list) {
		closedir(list);
	}
	return sum_ns;
}

static void call(long number, int null)
{
	switch (number % 4) {
	case 0:
		syscall(SYS_getuid);
		break;
	case 1:
		(void)!write(null, "x", 1);
		break;
	case 2:
		lseek(null, 0, SEEK_SET);
		break;
	default:
		syscall(SYS_getppid);
		break;
	}
}

int main(int argc, char **argv)
{
	const long calls = argc > 1 ? atol(argv[1]) : 0;
	const char *name = argc > 2 ? argv[2] : NULL;
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const double others_began_ns = others_ns(name);
	const double began_ns = cpu_ns();

	for (long i = 0; i < calls; i++) {
		call(i, null);
	}

	const double own_ns = cpu_ns() - began_ns;

	/* What lies in the rings below the mark that wakes the recorder is its work too: it looks there a few times a second. */
	usleep(400000);
	printf("ns %.1f %.1f\n", calls ? own_ns / (double)calls : 0.0,
		calls ? (others_ns(name) - others_began_ns) / (double)calls : 0.0);
	return 0;
}
