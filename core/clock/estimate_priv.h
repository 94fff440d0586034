/* SPDX-License-Identifier: MIT */
/*
 * estimate_priv.h - what the steps of an estimate hand to each other.
 *
 * Inside an estimate times are doubles in ns relative to the first exchange: x is guest time at the nominal rate, y is
 * host time less x. Both stay small, so a double keeps far below 1 ns; readings become doubles in select.c and
 * knots become readings in knots.c, in 128 bits.
 */
#ifndef TANDEM_ESTIMATE_PRIV_H
#define TANDEM_ESTIMATE_PRIV_H

#include "order.h"
#include <tandem/estimate.h>
#include <tandem/wide.h>

enum {
	WINDOW_SAMPLES = 64, /* the most exchanges of a burst that are looked at together */
};

/* No oscillator that a daemon slews by all it may (500 ppm) is further from the nominal rate than this. */
#define RATE_CAP 750e-6

/* Windows that lie nearer to each other than this are one burst. */
#define BURST_REACH_NS 50e6

/* One exchange as two statements: the relation is not below lower at x_lower, nor above upper at x_upper. */
struct sample {
	struct tdm_exchange stamps;
	double x_lower, lower;
	double x_upper, upper;
	double slack; /* by how much both were relaxed: widths of what the stamps went through */
	bool bound_only;
	bool believed;
};

/* Up to WINDOW_SAMPLES exchanges of one burst. */
struct window {
	size_t first, count; /* samples */
	uint32_t believed;
	uint32_t epoch; /* marks of the guest that lie before it */
	uint32_t run;   /* windows of one run lie in the order of guest readings and of host time */
	double x;       /* its middle */
	double x_lower, lower, x_upper, upper; /* the tightest statement of each direction */
	double shrink; /* by how much each may be narrowed and still be expected to hold */
	bool has_z;
	double z, variance; /* measured relation at x; variance is infinite for nothing measured */
	/* Results. */
	double y;                 /* estimate */
	double own_low, own_high; /* what its own burst says */
	double low, high;         /* bound */
};

/*
 * What few exchanges said against all around them: a lie, or a step that was undone before it was seen again. The
 * estimate passes over it, the bound covers it.
 */
struct dissent {
	uint32_t run;
	bool is_told;        /* as a doubt range */
	double x, low, high; /* what all of it says */
	double least, most;  /* what any of it says: a jump may lie between them, few as they are */
	double end;          /* of what said it */
	double from, to;     /* where it may have been so: between the windows beside it */
};

/* Windows [first, first + count) share one rate, give or take rho. */
struct stretch {
	size_t first, count;
	size_t sure_first,
		sure_count; /* those that certainly do: not in a range where the break may be */
	enum tdm_segment_kind kind; /* of the break before it */
	bool has_mark;
	double mark;                    /* x at which the guest saw the break */
	bool is_rated;                  /* its windows tell a rate */
	double rate_low, rate_high;     /* limits of the momentary rate */
	double slope_first, slope_last; /* of the estimate at its ends */
	/* The break before it: where it must be by the bound, and where it is by the estimate, in x. */
	double doubt_from, doubt_to;
	double told_from, told_to;
	bool is_overlap; /* guest readings went back: both stretches hold some of them */
	bool is_bend;    /* the lines meet: the rate changed and nothing else */
	double change;   /* from here on this stretch is used */
	double ceiling; /* host time (x + y) that the stretch before does not pass, nor this one undercut */
};

struct estimate {
	const struct tdm_exchange_log *log;
	bool is_live;               /* the session goes on: more is to come behind its last burst */
	uint64_t host_hz, guest_hz; /* as the log says */
	/* x in host units = guest distance * num / den. */
	uint64_t num, den;
	double host_unit_ns;
	double rate_center; /* of the cap: 0, or what was measured where the nominal rate is none */
	double rate_guess;  /* typical slope of y between bursts */
	double rho;
	uint64_t guest_ref, host_ref;
	double slope; /* typical slope of y, for looking at one burst */
	size_t rate_pairs,
		off_pairs; /* neighbouring bursts, and those whose exchanges rule the nominal rate out */
	struct sample *samples;
	size_t sample_count;
	struct window *windows;
	size_t window_count;
	struct stretch *stretches;
	size_t stretch_count, stretch_room;
	bool is_unsteady; /* breaks are frequent */
	struct dissent *dissents;
	size_t dissent_count, dissent_room;
	struct tdm_epoch_record *epochs; /* sorted */
	size_t epoch_count;
	double usual_width; /* of a window's tightest statements: a low quantile */
	double round_trip_low, round_trip_middle;
	struct tdm_quality quality;
};

/* select.c */

/** Orders and cleans the log's exchanges and puts them in windows. TDM_ERR_RANGE where none is left. */
enum tdm_status select_samples(struct estimate *est, struct tdm_error *err);

/* stamps.c */

/**
 * Kernel stamps as readings of the trace clocks, where they can be believed.
 * @param slack_ns  Receives by how much a statement made of them may be off.
 */
bool stamps_from_kernel(const struct tdm_exchange_log_info *info,
	const struct tdm_exchange_record *record, struct tdm_exchange *stamps, uint64_t *slack_ns);

/* place.c: between readings and x, y. */

tdm_i128 place_distance(uint64_t to, uint64_t from);

/** Places a sample's statements. */
void place_sample(const struct estimate *est, struct sample *sample);

/** The host time of a guest reading and its y, in host units; may lie outside 64 bits. */
tdm_i128 place_host(const struct estimate *est, uint64_t guest, double y);

/** Guest reading nearest to an x, held inside the readings that a file may have. */
uint64_t place_guest(const struct estimate *est, double x);

/** y of a host reading at a guest reading. */
double place_y(const struct estimate *est, uint64_t guest, uint64_t host);

/** x of a guest reading. */
double place_x(const struct estimate *est, uint64_t guest);

/* window.c */

/** Lets each window's samples vote; windows without a majority are taken out. False where none is left. */
bool window_vote(struct estimate *est);

/** Measures each window anew from its believed samples; windows without any are taken out. False without memory. */
bool window_measure(struct estimate *est);

/* epoch.c */

/** Orders the windows, and numbers the runs between steps back of the guest's clock and its marks. False without memory. */
bool epoch_order(struct estimate *est);

/* segment.c */

/** Finds the breaks; windows that contradict all around them are taken out. */
enum tdm_status segment_windows(struct estimate *est, struct tdm_error *err);

/** Keeps as dissents what was outvoted at the ends of runs. False without memory. */
bool segment_hear_ends(struct estimate *est);

/** Finds out whether breaks are so frequent that a line through few bursts may be one by chance. */
void segment_judge(struct estimate *est);

/** Limits of the momentary rate that the windows of a stretch allow. */
void segment_rates(const struct estimate *est, struct stretch *stretch);

/* dissent.c */

/** Keeps what a window says that is passed over. False without memory. */
bool dissent_add(struct estimate *est, const struct window *window);
bool dissent_add_sample(struct estimate *est, const struct window *window,
	const struct sample *sample, bool is_told);

/** Orders the dissents and finds out between which windows they lie. */
void dissent_place(struct estimate *est);

/** @return How many dissents of a run lie in [from, to]; @p first receives the number of the first. */
size_t dissent_between(
	const struct estimate *est, uint32_t run, double from, double to, size_t *first);

/** Widens a bound at x by what these dissents say; how the clock ran beside them nobody knows. */
void dissent_cover(const struct estimate *est, double x, size_t first, size_t count, double *low,
	double *high);

/* fit.c */

/** Estimates y at each window of a stretch. False without memory. */
bool fit_stretch(struct estimate *est, struct stretch *stretch);

/** Takes out samples that travelled faster than can be; their windows are not measured anew. False without memory. */
bool fit_disbelieve(struct estimate *est, struct stretch *stretch);

/* bound.c */

/** Bounds each window by what its own burst says. False without memory. */
bool bound_bursts(struct estimate *est);

/** Adds to each window's bound what the bursts beside it would say, had the clock jumped unseen between them. */
void bound_beside(struct estimate *est);

/** The bound that a stretch gives at any x. */
void bound_at(const struct estimate *est, const struct stretch *stretch, double x, double *low,
	double *high);

/** The estimate of a stretch at any x. */
double bound_estimate_at(const struct estimate *est, const struct stretch *stretch, double x);

/** Finds where each break may be, by the bound. */
void bound_breaks(struct estimate *est);

/* change.c */

/** Gives the windows around each break to the stretch that explains them, and says where the estimate changes over. */
void change_place(struct estimate *est);
void change_meet(struct estimate *est);

/* points.c: knots while they are still numbers. */

struct point {
	uint64_t guest;
	double x, y;
	double minus, plus; /* ns */
};

struct points {
	struct point *at;
	size_t count, room;
	bool failed;
	double ripple; /* what neighbours may be off a line for being whole units of a coarse clock; 0 = fine */
};

/** Adds a point behind the last one; one that is not behind it is passed over. low and high in y. */
void points_add(struct points *points, const struct estimate *est, uint64_t guest, double y,
	double low, double high);

/** Leaves out points that the line through their neighbours tells as well. */
void points_thin(struct points *points);

/** Adds a segment with these knots. */
enum tdm_status points_put(const struct estimate *est, enum tdm_segment_kind kind, uint64_t from,
	const struct points *points, struct tdm_timeline *timeline, struct tdm_error *err);

/* knots.c */

/** Adds segments, knots and doubt ranges to an empty timeline; without thinning there is a knot for each window. */
enum tdm_status knots_emit(
	struct estimate *est, bool thin, struct tdm_timeline *timeline, struct tdm_error *err);

#endif
