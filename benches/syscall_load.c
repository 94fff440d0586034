/* SPDX-License-Identifier: MIT */
/*
 * syscall_load.c - so many system calls of a few kinds, and the CPU time that one takes. usage: syscall_load CALLS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	const long calls = argc > 1 ? atol(argv[1]) : 0;
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const double began_ns = cpu_ns();

	for (long i = 0; i < calls; i++) {
		switch (i % 4) {
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
	printf("ns %.1f\n", calls ? (cpu_ns() - began_ns) / (double)calls : 0.0);
	return 0;
}
