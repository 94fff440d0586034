/* SPDX-License-Identifier: MIT */
/*
 * ctf_views.h - which views of Trace Compass have the events that they need.
 *
 * The table is the one in docs/trace-compass.md.
 */
#ifndef TANDEM_CTF_VIEWS_H
#define TANDEM_CTF_VIEWS_H

#include "ctf_check.h"

enum {
	TDM_CTF_LACKS_BYTES = 256
};

/** The bits, for tdm_ctf_checked.seen, of an event by its name; 0 where no view asks for it. */
uint64_t tdm_ctf_views_event(const char *name);

/**
 * Tells of each view of a kernel trace, in the order of the table, what it lacks; nothing of any other trace.
 *
 * @param checked  All traces that are looked at together: a guest's views need its host's events too.
 * @param lacks    "" where the view has all; else events, with the names of traces where they are to come from another one.
 */
void tdm_ctf_views(const struct tdm_ctf_checked *checked, size_t count, size_t index,
	void (*tell)(void *user, const char *view, const char *lacks), void *user);

#endif
