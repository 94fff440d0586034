/* SPDX-License-Identifier: MIT */
#include "vmm_threads.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	COMMAND_LINE_BYTES = 1 << 16
};

/* Reads a file of /proc; NULs become blanks. */
static size_t read_proc(const char *path, char *text, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;

	while (fd >= 0 && size + 1 < room) {
		const ssize_t got = read(fd, text + size, room - 1 - size);

		if (got <= 0) {
			break;
		}
		size += (size_t)got;
	}
	if (fd >= 0) {
		close(fd);
	}
	for (size_t i = 0; i < size; i++) {
		text[i] = text[i] ? text[i] : ' ';
	}
	text[size] = '\0';
	return size;
}

/* True where word stands in text with nothing of a longer word around it. */
static bool has_word(const char *text, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++) {
		const char after = at[length];

		if (after == '\0' || strchr(" ,\n", after)) {
			return true;
		}
	}
	return false;
}

/* 2: the command line names the guest's address; 1: its name; 0: neither. */
static unsigned int fits(
	const char *command_line, const char *name, const struct tdm_address *address)
{
	char word[320];

	if (address->kind == TDM_ADDRESS_VSOCK) {
		snprintf(word, sizeof(word), "guest-cid=%u", address->cid);
		if (has_word(command_line, word)) {
			return 2;
		}
		snprintf(word, sizeof(word), "cid=%u", address->cid);
		return has_word(command_line, word) ? 2 : 0;
	}
	if (address->kind == TDM_ADDRESS_TCP) {
		/* "hostfwd=tcp:127.0.0.1:5000-:8990": up to the dash it is where we connect to. */
		snprintf(word, sizeof(word), ":%u-", address->port);
		if (strstr(command_line, "hostfwd=tcp:") && strstr(command_line, word)) {
			return 2;
		}
	}
	snprintf(word, sizeof(word), "guest=%s", name);
	if (has_word(command_line, word)) {
		return 1;
	}
	snprintf(word, sizeof(word), "-name %s", name);
	if (has_word(command_line, word)) {
		return 1;
	}
	/* Firecracker. */
	snprintf(word, sizeof(word), "--id %s", name);
	return has_word(command_line, word) ? 1 : 0;
}

/* The vCPU that a thread's name is of: "CPU 0/KVM", "CPU 0/TCG", "fc_vcpu 0", "vcpu0". */
static bool vcpu_of(const char *thread_name, unsigned int *vcpu)
{
	return sscanf(thread_name, "CPU %u/", vcpu) == 1 ||
	       sscanf(thread_name, "fc_vcpu %u", vcpu) == 1 ||
	       sscanf(thread_name, "vcpu%u", vcpu) == 1;
}

static size_t find_threads(int pid, struct tdm_vcpu *vcpus, size_t vcpu_count)
{
	char path[300], thread_name[64];
	size_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);

	DIR *dir = opendir(path);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		unsigned int vcpu;

		if (!isdigit((unsigned char)entry->d_name[0])) {
			continue;
		}
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, entry->d_name);
		if (read_proc(path, thread_name, sizeof(thread_name)) &&
			vcpu_of(thread_name, &vcpu) && vcpu < vcpu_count) {
			vcpus[vcpu].host_tid = atoi(entry->d_name);
			found++;
		}
	}
	if (dir) {
		closedir(dir);
	}
	return found;
}

int vmm_threads_find(const char *name, const struct tdm_address *address, struct tdm_vcpu *vcpus,
	size_t vcpu_count)
{
	char *command_line = malloc(COMMAND_LINE_BYTES);
	DIR *dir = command_line ? opendir("/proc") : NULL;
	unsigned int best = 0;
	int best_pid = -1;

	for (size_t i = 0; i < vcpu_count; i++) {
		vcpus[i] = (struct tdm_vcpu){ .vcpu = (uint32_t)i, .host_tid = -1 };
	}
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		const int pid = atoi(entry->d_name);
		char path[64];

		if (pid <= 0 || pid == getpid()) {
			continue;
		}
		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		if (!read_proc(path, command_line, COMMAND_LINE_BYTES)) {
			continue;
		}

		const unsigned int fit = fits(command_line, name, address);

		if (fit == 0 || fit < best) {
			continue;
		}
		/* Two that fit equally well: a wrong map would be worse than none. A process without vCPUs is no VMM. */
		struct tdm_vcpu probe[1] = { { .host_tid = -1 } };

		if (!find_threads(pid, probe, 1)) {
			continue;
		}
		best_pid = fit == best ? -1 : pid;
		best = fit;
	}
	if (dir) {
		closedir(dir);
	}
	free(command_line);
	if (best_pid > 0) {
		find_threads(best_pid, vcpus, vcpu_count);
	}
	return best_pid;
}
