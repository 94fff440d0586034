/* SPDX-License-Identifier: MIT */
/*
 * view_live.h - tandem:// inputs of tandem view: the machines of a recording that runs.
 */
#ifndef CLI_VIEW_LIVE_H
#define CLI_VIEW_LIVE_H

#include "view_inputs.h"

/* URLs that were made; the inputs point to them. */
struct view_live_urls {
	char **items;
	size_t count;
};

/**
 * Replaces each input "tandem://ADDRESS/NAME" with NAME "*" by one for each machine of that recording, and names those that
 * have no name by their machine.
 *
 * @param urls  Zero-initialised; must live as long as the inputs, then view_live_release().
 * @retval TDM_ERR_IO, TDM_ERR_PEER  The recorder does not answer, or wants a secret.
 */
enum tdm_status view_live_expand(
	struct view_options *options, struct view_live_urls *urls, struct tdm_error *err);
void view_live_release(struct view_live_urls *urls);

/** The address of the corrections service beside a tandem:// input: "tcp:HOST:PORT" or "unix:PATH". */
enum tdm_status view_live_service(const char *url, char *text, size_t room, struct tdm_error *err);

#endif
