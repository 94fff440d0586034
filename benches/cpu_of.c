/* SPDX-License-Identifier: MIT */
/*
 * cpu_of.c - CPU time of a command and of all its children that it waited for. usage: cpu_of COMMAND [ARGUMENT]...
 * Prints "cpu SECONDS" on stderr behind whatever the command says.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status = 0;
	const pid_t pid = argc > 1 ? fork() : -1;

	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || getrusage(RUSAGE_CHILDREN, &usage) != 0) {
		perror("cpu_of");
		return 1;
	}
	fprintf(stderr, "cpu %ld.%06ld\n",
		usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
			(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000000,
		(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) % 1000000);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
