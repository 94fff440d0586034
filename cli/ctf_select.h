/* SPDX-License-Identifier: MIT */
/*
 * ctf_select.h - a filter of a babeltrace2 graph that lets only chosen events pass.
 */
#ifndef TANDEM_CLI_CTF_SELECT_H
#define TANDEM_CLI_CTF_SELECT_H

#include <babeltrace2/babeltrace.h>
#include <selection.h>

/* Events that came and that passed. */
struct convert_ctf_counts {
	uint64_t in, out;
};

struct ctf_threads;

struct ctf_select {
	const struct tdm_convert_selection *selection;
	struct convert_ctf_counts *counts;
	/* Of system calls that tandem recorded in user space, shown as the kernel's: what the recorder says of itself is left
	 * out, and the threads are learned. NULL: it is no such trace. */
	struct ctf_threads *threads;
};

/** Whether the event of a message is chosen; both are counted. */
bool ctf_select_has(const struct ctf_select *select, const bt_message *message);

/** The filter's class, whose data is a struct ctf_select that outlives the graph. NULL without memory. */
const bt_component_class_filter *ctf_select_class(void);

#endif
