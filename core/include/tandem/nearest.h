/* SPDX-License-Identifier: MIT */
/*
 * nearest.h - "did you mean": which of the words that are known a mistyped one is nearest to.
 */
#ifndef TANDEM_NEAREST_H
#define TANDEM_NEAREST_H

#include <getopt.h>
#include <stddef.h>

enum {
	TDM_NEAREST_BYTES = 64 /* longer words are nobody's neighbour */
};

/* A search; no memory of its own. */
struct tdm_nearest {
	char word[TDM_NEAREST_BYTES]; /* as typed; "" where it cannot be looked up */
	char found[TDM_NEAREST_BYTES];
	size_t distance; /* of found: letters left out, added, changed, or swapped with their neighbour */
	char text[TDM_NEAREST_BYTES + 24];
};

/** Begins a search for @p bytes bytes at @p word. A pattern ("*", "?", "[") has no neighbours. */
void tdm_nearest_begin(struct tdm_nearest *nearest, const char *word, size_t bytes);

/** Looks at a known word; of equally near ones the first stays. NULL is passed over. */
void tdm_nearest_try(struct tdm_nearest *nearest, const char *known);

/**
 * @return Text to follow a message, "; did you mean \"WORD\"?", or "" where no known word is near, or one is the word
 *         itself. Lives as long as @p nearest.
 */
const char *tdm_nearest_text(struct tdm_nearest *nearest);

/**
 * The same, with "--", for an argument that getopt_long() refused, by the names of a table of options. "" also where the
 * argument is no long option, or begins several: these are listed already.
 */
const char *tdm_nearest_option_text(
	struct tdm_nearest *nearest, const char *argument, const struct option *options);

#endif
