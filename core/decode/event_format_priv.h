/* SPDX-License-Identifier: MIT */
/*
 * event_format_priv.h - the text of events/SYSTEM/EVENT/format becomes an event class.
 */
#ifndef TANDEM_EVENT_FORMAT_PRIV_H
#define TANDEM_EVENT_FORMAT_PRIV_H

#include <tandem/arena.h>
#include <tandem/schema.h>

/**
 * Parses one text. Bounded by @p text_bytes; what comes from "print fmt" on is not looked at.
 *
 * @param out  Receives the class, its memory from @p arena; system and text are left to the caller. Where a field
 *             cannot be understood out->fault says why, and the fields are those before it.
 * @retval TDM_ERR_FORMAT  Not even a name and an ID.
 */
enum tdm_status event_format_parse(struct tdm_arena *arena, const char *text, size_t text_bytes,
	unsigned int long_bytes, struct tdm_event_class *out, struct tdm_error *err);

#endif
