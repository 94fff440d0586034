/* SPDX-License-Identifier: MIT */
/*
 * causality_read.h - from babeltrace2's messages to what the causality model wants to know.
 */
#ifndef CLI_CAUSALITY_READ_H
#define CLI_CAUSALITY_READ_H

#include "causality_model.h"
#include <babeltrace2/babeltrace.h>

/* Event classes that were seen, by their address: names are compared once a class. */
struct causality_classes {
	struct causality_class {
		const bt_event_class *key;
		int kind;
	} * slots; /* owned */

	size_t room, count;
};

struct causality_reader {
	struct causality *model;
	struct causality_classes classes;
	const char *machine; /* only traces of this name; NULL = all */
	bool is_host;
	uint64_t events; /* taken so far */
};

/** Takes one message; @p user is a struct causality_reader. False without memory. */
bool causality_read(void *user, const bt_message *message);

void causality_reader_release(struct causality_reader *reader);

#endif
