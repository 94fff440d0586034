/* SPDX-License-Identifier: MIT */
/*
 * chain.h - whether one rate, give or take rho, explains windows, and which rates do.
 */
#ifndef TANDEM_CHAIN_H
#define TANDEM_CHAIN_H

#include "estimate_priv.h"

struct vertex {
	double x, y;
};

/*
 * What is known of a stretch's rate while windows are added to its right end.
 *
 * Between two windows the average slope of y is at least (lower_j - upper_i) / (x_j - x_i) and at most
 * (upper_j - lower_i) / (x_j - x_i). The extremes over all i lie on convex chains: only the lower chain of the upper
 * points and the upper chain of the lower points are kept, and the tangent is found by bisection.
 */
struct chain {
	struct vertex *uppers; /* lower convex chain */
	struct vertex *lowers; /* upper convex chain */
	size_t upper_count, lower_count;
	double slope_low, slope_high; /* all average slopes lie between */
	double x;                     /* right end of what was added */
	double rho;
};

/* Statements of a window as a chain sees them: mirrored where it runs to the left, narrowed where asked. */
struct view {
	struct vertex lower, upper;
};

struct view view_of(const struct window *window, bool mirrored, bool narrowed);

/** Room for so many windows; whoever inits it releases it, also where this fails. False without memory. */
bool chain_init(struct chain *chain, const struct estimate *est, size_t room, bool mirrored);

/** Forgets all windows; @p center is that of the rates that are possible. */
void chain_reset(struct chain *chain, double center);
void chain_release(struct chain *chain);

/** The chain's slopes as they would be with this window. False where no rate within rho of a constant is left. */
bool chain_try(
	const struct chain *chain, const struct view *view, double *slope_low, double *slope_high);

/** Adds a window at the right end; one that overlaps the last says nothing and is passed over. */
void chain_push(struct chain *chain, const struct view *view);

#endif
