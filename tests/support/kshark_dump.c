/* SPDX-License-Identifier: MIT */
/*
 * kshark_dump.c - the entries of a host's and its guests' files as KernelShark's library loads them.
 *
 * usage: kshark-dump HOST.dat GUEST.dat...
 * Prints "guest ID NAME VCPUS" for each guest that it maps to the host, then "STREAM CPU TIME EVENT-ID PID" for each entry,
 * times in ns with their shifts applied.
 */
#include <inttypes.h>
#include <kernelshark/libkshark-tepdata.h>
#include <kernelshark/libkshark.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct kshark_context *context = NULL;
	struct kshark_host_guest_map *map = NULL;

	if (argc < 2 || !kshark_instance(&context)) {
		fprintf(stderr, "usage: kshark-dump HOST.dat GUEST.dat...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		if (kshark_open(context, argv[i]) < 0) {
			fprintf(stderr, "kshark-dump: %s cannot be opened\n", argv[i]);
			return 1;
		}
	}

	const int guest_count = argc > 2 ? kshark_tracecmd_get_hostguest_mapping(&map) : 0;

	for (int i = 0; i < guest_count; i++) {
		printf("guest %d %s %d\n", map[i].guest_id, map[i].guest_name, map[i].vcpu_count);
	}
	for (int stream = 0; stream < argc - 1; stream++) {
		struct kshark_entry **entries = NULL;
		const ssize_t count = kshark_load_entries(context, stream, &entries);

		if (count < 0) {
			fprintf(stderr, "kshark-dump: %s cannot be loaded\n", argv[stream + 1]);
			return 1;
		}
		for (ssize_t i = 0; i < count; i++) {
			printf("%d %d %" PRId64 " %d %d\n", stream, entries[i]->cpu, entries[i]->ts,
				entries[i]->event_id, entries[i]->pid);
			free(entries[i]);
		}
		free(entries);
	}
	kshark_close_all(context);
	kshark_free(context);
	return 0;
}
