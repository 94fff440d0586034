/* SPDX-License-Identifier: MIT */
/*
 * privilege.h - giving up what an agent does not need once it listens.
 */
#ifndef AGENT_PRIVILEGE_H
#define AGENT_PRIVILEGE_H

#include <tandem/status.h>

/** Raises the limit of open files to what is allowed: idle strangers must not use up what a host needs. */
void privilege_raise_file_limit(void);

/** Allows the lowest real-time priority, for bursts of exchanges, beyond privilege_drop(). Where that is not permitted, so be it. */
void privilege_keep_bursts_ahead(void);

/**
 * Gives up all capabilities for good, and the chance to gain any by exec. Files that belong to the user, tracefs for
 * root among them, stay reachable; everybody else's files, raw sockets, modules, other processes do not.
 *
 * @retval TDM_ERR_IO  The kernel refused.
 */
enum tdm_status privilege_drop(struct tdm_error *err);

#endif
