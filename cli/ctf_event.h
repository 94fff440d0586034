/* SPDX-License-Identifier: MIT */
/*
 * ctf_event.h - fields of an event that babeltrace2 delivers.
 */
#ifndef TANDEM_CLI_CTF_EVENT_H
#define TANDEM_CLI_CTF_EVENT_H

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>

/** A member of a structure; NULL where there is none, or no structure. */
const bt_field *ctf_member(const bt_field *structure, const char *name);
/** An integer field of either sign, large unsigned ones wrapped. False where it is none. */
bool ctf_number(const bt_field *field, int64_t *number);

/** The CPU of an event, by its packet; UINT32_MAX where that does not tell. */
uint32_t ctf_event_cpu(const bt_event *event);

#endif
