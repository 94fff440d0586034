/* SPDX-License-Identifier: MIT */
#include "vmm_find.h"
#include "vmm_libvirt.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	COMMAND_LINE_BYTES = 1 << 17,
	STATUS_BYTES = 4 << 20,
	PATH_BYTES = 600
};

static const char *place_or(const char *place, const char *usual)
{
	return place ? place : usual;
}

static const char *proc_of(const struct vmm_places *places)
{
	return place_or(places ? places->proc : NULL, "/proc");
}

/* Reads a file, at most room - 1 bytes, and ends it with a NUL. 0: not there, or empty. */
static size_t read_file(const char *path, char *text, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
	text[size] = '\0';
	return size;
}

/* "key=VALUE" as an item of a list with commas: its value's length, 0 where there is none. */
static size_t item(const char *list, const char *key, const char **value)
{
	const size_t length = strlen(key);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, key, length) == 0 && at[length] == '=') {
			*value = at + length + 1;
			return strcspn(*value, ",");
		}
	}
	return 0;
}

static void set_name(struct vmm *vmm, const char *name, size_t size)
{
	snprintf(vmm->name, sizeof(vmm->name), "%.*s",
		(int)(size > VMM_NAME_MAX ? VMM_NAME_MAX : size), name);
}

static void set_cid(struct vmm *vmm, const char *text)
{
	const unsigned long cid = strtoul(text, NULL, 10);

	/* 0 to 2 are no guest's. */
	if (cid > 2 && cid < UINT32_MAX) {
		vmm->cid = (uint32_t)cid;
	}
}

static void add_forward(struct vmm *vmm, const char *text)
{
	const unsigned long port = strtoul(text, NULL, 10);
	uint32_t *forwards =
		port > 0 && port < 65536
			? realloc(vmm->forwards, (vmm->forward_count + 1) * sizeof(*forwards))
			: NULL;

	if (forwards) {
		vmm->forwards = forwards;
		forwards[vmm->forward_count++] = (uint32_t)port;
	}
}

/* "hostfwd=tcp:127.0.0.1:5000-:8990": up to the dash it is where we connect to. May stand several times. */
static void take_forwards(struct vmm *vmm, const char *list)
{
	static const char key[] = "hostfwd=tcp:";

	for (const char *at = list; (at = strstr(at, key));) {
		const char *host = at + sizeof(key) - 1;
		const char *port = strchr(host, ':');

		if (port && port < host + strcspn(host, "-,")) {
			add_forward(vmm, port + 1);
		}
		at = host;
	}
}

/* "\"guest-cid\":3": devices as JSON, libvirt's way. */
static void take_json_cid(struct vmm *vmm, const char *text)
{
	const char *at = strstr(text, "\"guest-cid\"");

	if (at) {
		at += strlen("\"guest-cid\"");
		set_cid(vmm, at + strspn(at, ": \t\""));
	}
}

static void take_qemu(struct vmm *vmm, const char *option, const char *value)
{
	const char *text = NULL;

	if (strcmp(option, "name") == 0) {
		const size_t size = item(value, "guest", &text);

		set_name(vmm, size ? text : value, size ? size : strcspn(value, ","));
	} else if (strcmp(option, "device") == 0) {
		if (item(value, "guest-cid", &text)) {
			set_cid(vmm, text);
		}
		take_json_cid(vmm, value);
	} else if (strcmp(option, "netdev") == 0 || strcmp(option, "nic") == 0 ||
		   strcmp(option, "net") == 0) {
		take_forwards(vmm, value);
	}
}

static void take_firecracker(struct vmm *vmm, const char *option, const char *value)
{
	vmm->has_host_socket = true;
	if (strcmp(option, "id") == 0) {
		set_name(vmm, value, strlen(value));
	}
}

static void take_cloud_hypervisor(struct vmm *vmm, const char *option, const char *value)
{
	const char *text = NULL;

	vmm->has_host_socket = true;
	if (strcmp(option, "vsock") == 0 && item(value, "cid", &text)) {
		set_cid(vmm, text);
	} else if (strcmp(option, "api-socket") == 0) {
		/* It has no name of its own: "/run/web.sock" or "path=/run/web.sock" is called web. */
		const char *path = item(value, "path", &text) ? text : value;
		const size_t size = strcspn(path, ",");
		const char *base = memrchr(path, '/', size);

		base = base ? base + 1 : path;
		set_name(vmm, base, strcspn(base, ".,"));
	}
}

static const struct vmm_rule {
	const char *program; /* the beginning of its file name */
	void (*take)(struct vmm *vmm, const char *option, const char *value);
} rules[] = {
	{ "qemu", take_qemu },
	{ "kvm", take_qemu },
	{ "firecracker", take_firecracker },
	{ "cloud-hypervisor", take_cloud_hypervisor },
};

static const struct vmm_rule *find_rule(const char *program)
{
	const char *base = strrchr(program, '/');

	base = base ? base + 1 : program;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (strncmp(base, rules[i].program, strlen(rules[i].program)) == 0) {
			return &rules[i];
		}
	}
	return NULL;
}

/* A command line: strings with a NUL behind each. "-name X", "--name X" and "--name=X" are one. */
static bool parse_command_line(const char *text, size_t size, struct vmm *vmm)
{
	const struct vmm_rule *rule = find_rule(text);
	const char *end = text + size;

	if (!rule) {
		return false;
	}
	for (const char *at = text + strlen(text) + 1; at < end; at += strlen(at) + 1) {
		const char *option = at + strspn(at, "-");
		const char *equals = strchr(option, '=');
		const char *next = at + strlen(at) + 1;
		char name[64];

		if (option == at) {
			continue;
		}
		snprintf(name, sizeof(name), "%.*s",
			(int)(equals ? equals - option : (ptrdiff_t)strlen(option)), option);
		if (equals || next < end) {
			rule->take(vmm, name, equals ? equals + 1 : next);
		}
	}
	return true;
}

static struct vmm *append(struct vmm_list *list, const struct vmm *vmm)
{
	struct vmm *items = realloc(list->items, (list->count + 1) * sizeof(*items));

	if (!items) {
		free(vmm->forwards);
		free(vmm->vcpus);
		return NULL;
	}
	list->items = items;
	items[list->count] = *vmm;
	return &items[list->count++];
}

static void read_processes(const char *proc, struct vmm_list *list)
{
	char *text = malloc(COMMAND_LINE_BYTES);
	DIR *dir = text ? opendir(proc) : NULL;

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[PATH_BYTES];
		struct vmm vmm = { .pid = atoi(entry->d_name) };

		if (!isdigit((unsigned char)entry->d_name[0]) || vmm.pid == getpid()) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%.20s/cmdline", proc, entry->d_name);

		const size_t size = read_file(path, text, COMMAND_LINE_BYTES);

		if (size && parse_command_line(text, size, &vmm)) {
			append(list, &vmm);
		}
	}
	if (dir) {
		closedir(dir);
	}
	free(text);
}

/* libvirt knows better than a command line; a file whose process has gone is a leftover. */
static void merge_libvirt(struct vmm_list *list, struct vmm *told)
{
	for (size_t i = 0; i < list->count; i++) {
		struct vmm *vmm = &list->items[i];

		if (vmm->pid == told->pid) {
			free(vmm->vcpus);
			vmm->vcpus = told->vcpus;
			vmm->vcpu_count = told->vcpu_count;
			vmm->cid = told->cid ? told->cid : vmm->cid;
			if (*told->name) {
				memcpy(vmm->name, told->name, sizeof(vmm->name));
			}
			return;
		}
	}
	free(told->vcpus);
}

static void read_libvirt(const char *folder, struct vmm_list *list)
{
	DIR *dir = opendir(folder);
	char *text = dir ? malloc(STATUS_BYTES) : NULL;

	for (struct dirent *entry; text && (entry = readdir(dir));) {
		const char *suffix = strrchr(entry->d_name, '.');
		char path[PATH_BYTES];
		struct vmm told;

		if (!suffix || strcmp(suffix, ".xml") != 0 ||
			snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
				(int)sizeof(path)) {
			continue;
		}
		if (read_file(path, text, STATUS_BYTES) && vmm_libvirt_parse(text, &told)) {
			merge_libvirt(list, &told);
		}
	}
	free(text);
	if (dir) {
		closedir(dir);
	}
}

void vmm_list_read(const struct vmm_places *places, struct vmm_list *list)
{
	*list = (struct vmm_list){ 0 };
	read_processes(proc_of(places), list);
	if (list->count) {
		read_libvirt(place_or(places ? places->libvirt : NULL, "/run/libvirt/qemu"), list);
	}
}

void vmm_list_release(struct vmm_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].forwards);
		free(list->items[i].vcpus);
	}
	free(list->items);
	*list = (struct vmm_list){ 0 };
}

/* 2: it is at that address; 1: it has that name; 0: neither. */
static unsigned int fits(const struct vmm *vmm, const char *name, const struct tdm_address *address)
{
	if (address && address->kind == TDM_ADDRESS_VSOCK && vmm->cid) {
		/* A CID says it for certain, one way or the other. */
		return vmm->cid == address->cid && !vmm->has_host_socket ? 2 : 0;
	}
	for (size_t i = 0; address && address->kind == TDM_ADDRESS_TCP && i < vmm->forward_count;
		i++) {
		if (vmm->forwards[i] == address->port) {
			return 2;
		}
	}
	return *vmm->name && strcmp(vmm->name, name) == 0 ? 1 : 0;
}

const struct vmm *vmm_list_match(
	const struct vmm_list *list, const char *name, const struct tdm_address *address)
{
	const struct vmm *found = NULL;
	unsigned int best = 0;

	for (size_t i = 0; i < list->count; i++) {
		const unsigned int fit = fits(&list->items[i], name, address);

		if (fit && fit >= best) {
			found = fit == best ? NULL : &list->items[i];
			best = fit;
		}
	}
	return found;
}

const struct vmm *vmm_list_by_pid(const struct vmm_list *list, int pid)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].pid == pid) {
			return &list->items[i];
		}
	}
	return NULL;
}
