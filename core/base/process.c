/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <tandem/process.h>
#include <unistd.h>

void tdm_process_prepare(void)
{
	int fd;

	/* For reading only: writing there fails as on a closed one. */
	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO) {
		close(fd);
	}
	signal(SIGXFSZ, SIG_IGN);
}
