/* SPDX-License-Identifier: MIT */
/*
 * timeline.h - the relation of a guest's clock to its host's, as a corrections file tells it, and its application.
 *
 * Formats: "tandem-corrections 1". An offset is host minus guest everywhere. Integer arithmetic only.
 */
#ifndef TANDEM_TIMELINE_H
#define TANDEM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/reading.h>
#include <tandem/status.h>

enum tdm_segment_kind {
	TDM_SEGMENT_START,
	TDM_SEGMENT_STEP,
	TDM_SEGMENT_EPOCH,
	TDM_SEGMENT_RATE
};

/* At guest reading guest the host clock showed host; the truth lies in [host - minus, host + plus]. */
struct tdm_knot {
	uint64_t guest, host;
	uint64_t minus, plus;
};

/* Limits of a file; what is above them is refused. */
enum {
	TDM_TIMELINE_MAX_KNOTS = 1 << 20,
	TDM_TIMELINE_MAX_SEGMENTS = 1 << 12,
	TDM_TIMELINE_MAX_CPUS = 1 << 13,
};

struct tdm_timeline; /* opaque; readers may share it between threads while nobody adds to it */

/* What a corrections file says of itself. Strings live as long as the timeline; NULL = not said. */
struct tdm_timeline_info {
	const char *host_uuid, *host_clock;
	const char *guest_uuid, *guest_clock;
	uint64_t host_unit_hz, guest_unit_hz; /* 1000000000 where not said */
	bool has_epoch;
	int64_t epoch_offset_ns; /* host trace clock + this = Unix time */
	uint64_t epoch_width_ns;
	const char *made, *method, *stamps; /* made: the time alone */
	bool has_counts;                    /* the four below were said */
	uint64_t samples, used, bogus, lost;
	uint64_t rate_ppb; /* 100 where not said */
	size_t segment_count, knot_count, doubt_count, cpu_count;
	bool complete; /* "end" was seen */
	bool ambiguous; /* an epoch begins below readings of an earlier one: some readings were shown twice */
};

/**
 * Reads a corrections file.
 *
 * @param timeline  Receives it, owned by the caller.
 * @retval TDM_ERR_FORMAT  Not such a file, cut short, or inconsistent; @p err names file and line.
 * @retval TDM_ERR_UNSUPPORTED  A version that is not ours.
 */
enum tdm_status tdm_timeline_load(
	const char *path, struct tdm_timeline **timeline, struct tdm_error *err);

/** The same from memory; @p name stands for the file in messages. */
enum tdm_status tdm_timeline_parse(const char *name, const char *text, size_t text_bytes,
	struct tdm_timeline **timeline, struct tdm_error *err);

/**
 * A timeline of one constant offset with slope 1, known to +-@p bound (0 = exact): host = guest + offset.
 * @return Owned by the caller; NULL without memory.
 */
struct tdm_timeline *tdm_timeline_from_offset(int64_t offset, uint64_t bound);

/** An empty timeline to be fed or built; it applies nothing until its first knot. NULL without memory. */
struct tdm_timeline *tdm_timeline_create(void);

/**
 * Takes one line of a corrections stream (without newline): as in the file, but "segment KIND FROM 0" opens a
 * segment and "k" lines follow as they come. Knots are only ever appended: one that lies before the last is refused.
 *
 * The first line must be the format's first line. "wait" and unknown records are passed over. Readers in other threads
 * must be kept out during the call.
 *
 * @retval TDM_END         The line was "end"; nothing more is taken.
 * @retval TDM_ERR_FORMAT  The line breaks the format; the timeline stays as it was.
 */
enum tdm_status tdm_timeline_feed_line(
	struct tdm_timeline *timeline, const char *line, struct tdm_error *err);

/*
 * Building one by hand. Each call checks as the parser does: TDM_ERR_RANGE leaves the timeline as it was.
 */

/** Says what the timeline is; strings are copied, counts of segments, knots, doubts and CPUs are not looked at. */
enum tdm_status tdm_timeline_set_info(
	struct tdm_timeline *timeline, const struct tdm_timeline_info *info, struct tdm_error *err);
enum tdm_status tdm_timeline_add_segment(struct tdm_timeline *timeline, enum tdm_segment_kind kind,
	uint64_t from, struct tdm_error *err);
enum tdm_status tdm_timeline_add_knot(
	struct tdm_timeline *timeline, const struct tdm_knot *knot, struct tdm_error *err);
enum tdm_status tdm_timeline_add_doubt(
	struct tdm_timeline *timeline, uint64_t from, uint64_t to, struct tdm_error *err);
enum tdm_status tdm_timeline_add_cpu(struct tdm_timeline *timeline, uint32_t cpu, int64_t ticks,
	uint64_t bound, struct tdm_error *err);

/**
 * Appends the text of the file, "end" included. The same timeline gives the same bytes.
 * @retval TDM_ERR_NOMEM  Text is missing at the end of @p out.
 */
enum tdm_status tdm_timeline_write(const struct tdm_timeline *timeline, struct tdm_buffer *out);

void tdm_timeline_destroy(struct tdm_timeline *timeline);

struct tdm_timeline_info tdm_timeline_get_info(const struct tdm_timeline *timeline);

/* Where the last lookup was; zero-initialise, one a stream. Makes lookup O(1) for streams in order. */
struct tdm_timeline_hint {
	uint32_t piece;
};

/**
 * Host reading, in host units, for a guest reading: exact floor of the line between the knots around it.
 *
 * Outside the knots the end interval goes on (a lone knot: at the nominal rate of the two clocks); what would lie
 * before 0 or after 2^64 - 1 is held there. Pure for a finished timeline; monotone inside a segment. An empty
 * timeline gives the reading back. Takes a few ns, never allocates.
 *
 * @param cpu    CPU the stamp was made on; its own offset ("cpu" line) is added first. UINT32_MAX = none.
 * @param hint   Kept up to date; may be NULL.
 */
uint64_t tdm_timeline_apply(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	struct tdm_timeline_hint *hint);

/** A host reading in nanoseconds, by the host's unit-hz; floor. */
uint64_t tdm_timeline_host_ns(const struct tdm_timeline *timeline, uint64_t host);

/**
 * How well tdm_timeline_apply() knows it: the truth lies in [result - minus, result + plus], host units.
 *
 * Inside the knots their bounds are interpolated; outside they grow by dt * (2 rho + width / span), from a lone
 * knot by 500 ppm (unless the rate was said to be exact). A CPU's own bound is
 * added. In a doubt range it also covers what the segments on both sides of it say. UINT64_MAX = not known at all.
 */
void tdm_timeline_bound(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	uint64_t *minus, uint64_t *plus);

/**
 * Guest reading for a host reading: the least guest reading that maps to at least @p host.
 * @retval TDM_ERR_RANGE  The host reading lies in a jump or outside all that can be mapped; @p guest receives the edge
 *                        of the next segment (or of the readings).
 */
enum tdm_status tdm_timeline_invert(
	const struct tdm_timeline *timeline, uint64_t host, uint64_t *guest);

/** Range of guest readings with knots around them; false for an empty timeline. */
bool tdm_timeline_range(
	const struct tdm_timeline *timeline, uint64_t *first_guest, uint64_t *last_guest);

/** True where one segment of slope exactly 1 is all there is and no CPU has an offset of its own. */
bool tdm_timeline_is_constant(const struct tdm_timeline *timeline, int64_t *offset);

/* Access for reports: segment @p index in order, and its knots. */
struct tdm_segment_info {
	enum tdm_segment_kind kind;
	uint64_t from;
	const struct tdm_knot *knots;
	size_t knot_count;
};

struct tdm_segment_info tdm_timeline_segment(const struct tdm_timeline *timeline, size_t index);

/** "start", "step", "epoch" or "rate". */
const char *tdm_segment_kind_name(enum tdm_segment_kind kind);

/** Doubt range @p index: the break is somewhere in [from, to], guest readings. */
void tdm_timeline_doubt(
	const struct tdm_timeline *timeline, size_t index, uint64_t *from, uint64_t *to);

/** Does a guest reading lie in a doubt range? Looks at all of them. */
bool tdm_timeline_is_in_doubt(const struct tdm_timeline *timeline, uint64_t guest);

/**
 * Half of minus + plus at the knots outside doubt ranges: the middle one and the worst, host units.
 *
 * @return False, and 0 for both, where there is no such knot, or no memory.
 */
bool tdm_timeline_bounds(const struct tdm_timeline *timeline, uint64_t *median, uint64_t *worst);

/** Offset of a CPU, added to its stamps before anything else; false where it has none of its own. */
bool tdm_timeline_cpu(
	const struct tdm_timeline *timeline, uint32_t cpu, int64_t *ticks, uint64_t *bound);

/* One sample of a trace-cmd TIME_SHIFT option: offset is added to guest stamps around time. */
struct tdm_shift_sample {
	int64_t time, offset;
};

/**
 * Turns the timeline of one CPU into TIME_SHIFT samples (flags = interpolate, scaling 1, fraction 0) that trace-cmd
 * evaluates to within 2 units of tdm_timeline_apply() for every stamp in [first, last].
 *
 * Spacing times change of offset stays below 2^62 between neighbours, and neither is ever 0: trace-cmd computes in 64 bits
 * and drops zeros. Outside [first, last] it extrapolates, with no such promise.
 *
 * @param samples  Receives at most @p room of them, times strictly increasing.
 * @retval TDM_ERR_RANGE  The timeline is empty, an offset does not fit, or more than @p room are needed.
 */
enum tdm_status tdm_timeline_to_shift(const struct tdm_timeline *timeline, uint32_t cpu,
	uint64_t first, uint64_t last, struct tdm_shift_sample *samples, size_t room, size_t *count,
	struct tdm_error *err);

#endif
