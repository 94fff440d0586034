/* SPDX-License-Identifier: MIT */
/*
 * clock_plot.h - a picture of how well two clocks are known: offset, samples, bound, doubt ranges and steps, as SVG.
 */
#ifndef CLI_CLOCK_PLOT_H
#define CLI_CLOCK_PLOT_H

#include <tandem/exchange.h>
#include <tandem/timeline.h>

/**
 * Draws a relation into an SVG file that needs nothing else and follows the reader's light or dark scheme.
 *
 * @param path      The file; appears when it is complete.
 * @param name      What is drawn, for its heading. Borrowed.
 * @param timeline  The relation, with one knot at least. Borrowed.
 * @param log       Exchanges to draw as dots; NULL for none. Borrowed.
 * @retval TDM_ERR_IO     The file cannot be written.
 * @retval TDM_ERR_NOMEM  No memory for the picture.
 */
enum tdm_status clock_plot_write(const char *path, const char *name,
	const struct tdm_timeline *timeline, const struct tdm_exchange_log *log,
	struct tdm_error *err);

#endif
