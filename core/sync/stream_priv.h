/* SPDX-License-Identifier: MIT */
/*
 * stream_priv.h - what stream.c and page_link.c share.
 */
#ifndef STREAM_PRIV_H
#define STREAM_PRIV_H

#include <tandem/page_seal.h>
#include <tandem/stream.h>

struct tdm_stream {
	struct tdm_address address;
	struct tdm_link_options link_options;
	uint32_t timeout_ms;
	struct tdm_link *link;
	struct tdm_stream_facts info;
	char token[TDM_VALUE_MAX + 1];
	struct tdm_buffer left_out; /* lines of tdm_tap_left_out() */
};

#endif
