/* SPDX-License-Identifier: MIT */
/*
 * estimate.h - from exchanges to a timeline: the best single value, and beside it a bound that holds.
 *
 * Both are pure functions of the exchanges: the same records in any order give the same timeline to the byte.
 */
#ifndef TANDEM_ESTIMATE_H
#define TANDEM_ESTIMATE_H

#include <tandem/exchange.h>
#include <tandem/timeline.h>

enum tdm_grade {
	TDM_GRADE_UNSYNCED, /* no usable exchange */
	TDM_GRADE_WEAK,     /* one burst: an offset, no rate; the bound grows with distance */
	TDM_GRADE_BOUNDED,  /* exchanges over a socket */
	TDM_GRADE_EXACT,    /* the relation was read, not measured */
};

/** "unsynced", "weak", "bounded" or "exact". */
const char *tdm_grade_name(enum tdm_grade grade);

/* How good an estimate is. Times in host units. */
struct tdm_quality {
	enum tdm_grade grade;
	uint64_t samples, used,
		lost; /* exchanges in the log, believed, and missing by their sequence numbers */
	uint64_t
		bad_stamps; /* a reading is 0, negative or above 2^62, or a clock ran backwards inside an exchange */
	uint64_t duplicates;   /* the same exchange twice */
	uint64_t outvoted;     /* contradicts most of its burst */
	uint64_t unbelievable; /* travelled at less than half the usual best time */
	uint64_t stray; /* in bursts that contradict all around them, or stopped on the way */
	uint64_t kernel_used, kernel_dropped; /* kernel stamps taken and refused */
	uint64_t median_bound,
		worst_bound; /* half of minus + plus, at the knots before thinning, outside doubt */
	uint64_t median_spread,
		worst_spread; /* one-way spread of a burst: 10th percentile less the least */
	uint64_t forward_least,
		backward_least; /* least one-way times by the estimate: host to guest, guest to host */
	uint64_t median_round_trip;
	uint64_t doubt;       /* guest units in doubt ranges, all together */
	int64_t rate_ppb;     /* host against nominal guest rate, of the longest segment */
	uint64_t assumed_ppb; /* that the rate was taken to stay within */
	uint64_t windows;     /* bursts used */
	bool composed;        /* through raw clocks */
	bool noisy;           /* the guest was starved: 90th percentile over 50 times the 10th */
	bool stalled;         /* round trips come in steps of 40 ms: a peer lacks TCP_NODELAY */
	bool ambiguous;       /* guest readings were shown twice */
};

/**
 * Estimates the relation of a log's clocks.
 *
 * An allowance below 100 ppb is for clocks of one oscillator; exchanges that contradict it get 100.
 *
 * @param timeline  Receives it, owned by the caller; thinned to the knots that are needed.
 * @param quality   Receives how good it is; also for TDM_ERR_RANGE. May be NULL.
 * @retval TDM_ERR_RANGE  Not one exchange can be used (grade unsynced): no timeline.
 */
enum tdm_status tdm_estimate(const struct tdm_exchange_log *log, struct tdm_timeline **timeline,
	struct tdm_quality *quality, struct tdm_error *err);

/*
 * The same while a session runs. It sees the last bursts only, so that each update costs the same, and never
 * takes back what it said: later knots extend earlier ones.
 */
struct tdm_estimator; /* opaque */

/** @param info  Clocks, units and rate allowance; copied. NULL without memory. */
struct tdm_estimator *tdm_estimator_create(const struct tdm_exchange_log_info *info);
void tdm_estimator_destroy(struct tdm_estimator *estimator);

/* Exchanges, local reads and epochs as they come. TDM_ERR_NOMEM as tdm_exchange_log_add(). */
enum tdm_status tdm_estimator_add(
	struct tdm_estimator *estimator, const struct tdm_exchange_record *record);
enum tdm_status tdm_estimator_add_local(
	struct tdm_estimator *estimator, const struct tdm_local_record *record);
enum tdm_status tdm_estimator_add_epoch(
	struct tdm_estimator *estimator, const struct tdm_epoch_record *record);

/**
 * Takes up what was added, after each burst.
 *
 * @param lines  Receives, behind what it holds, the lines that became final: header lines first, then "segment KIND FROM 0",
 *               "k" and "doubt" lines, each ended by a newline. They are never changed later.
 */
enum tdm_status tdm_estimator_update(
	struct tdm_estimator *estimator, struct tdm_buffer *lines, struct tdm_error *err);

/** The last update of a session: as tdm_estimator_update(), but a jump in the last burst need not wait for another one to agree. */
enum tdm_status tdm_estimator_finish(
	struct tdm_estimator *estimator, struct tdm_buffer *lines, struct tdm_error *err);

/** The last update as a session sees it: how good the relation is now. */
void tdm_estimator_quality(const struct tdm_estimator *estimator, struct tdm_quality *quality);

/* What KVM tells of one vCPU: guest = ((host * ratio) >> frac_bits) + offset, all in TSC ticks. */
struct tdm_tsc_relation {
	uint32_t vcpu;
	int64_t offset;
	uint64_t ratio;         /* 0 = no scaling */
	unsigned int frac_bits; /* of ratio: 48 on Intel, 32 on AMD */
};

/**
 * The exact timeline of a guest whose traces, like the host's, are stamped from the TSC. vCPU 0 (or the first) is the
 * reference; others that differ get "cpu" lines.
 *
 * @retval TDM_ERR_RANGE        No vCPU, or numbers that fit no reading.
 * @retval TDM_ERR_UNSUPPORTED  vCPUs with different ratios.
 */
enum tdm_status tdm_timeline_from_tsc(const struct tdm_timeline_info *info,
	const struct tdm_tsc_relation *vcpus, size_t vcpu_count, struct tdm_timeline **timeline,
	struct tdm_error *err);

/* The same relation in all looks between two host readings. */
struct tdm_tsc_span {
	const struct tdm_tsc_relation *vcpus; /* borrowed for the call */
	size_t vcpu_count;
	uint64_t
		host_from; /* TSC behind the first look that saw it: the change to it came earlier */
	uint64_t host_until; /* TSC before the last one: the change from it came later */
};

/**
 * As tdm_timeline_from_tsc(), where KVM's numbers changed meanwhile (a migration, a write to the TSC): a segment for each span.
 *
 * A change happened at some time between the looks around it. Readings that only one side of it can have shown are exact; those
 * of both are covered by the bound and in doubt.
 *
 * @param spans  In the order of time; the first holds from the beginning, the last to the end.
 * @retval TDM_ERR_UNSUPPORTED  vCPUs with different ratios, or whose differences changed.
 */
enum tdm_status tdm_timeline_from_tsc_spans(const struct tdm_timeline_info *info,
	const struct tdm_tsc_span *spans, size_t span_count, struct tdm_timeline **timeline,
	struct tdm_error *err);

/**
 * Asks whether a measured timeline allows an exact one: at each knot of @p measured and in its middle intervals, the exact reading lies
 * inside the measured bound; where the exact one is in doubt, any reading that it allows does.
 *
 * @param worst  Receives by how many host units it lies outside at worst; 0 where it agrees.
 */
bool tdm_timeline_agrees(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint32_t cpu, uint64_t *worst);

#endif
