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
#include <tandem/log.h>
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

struct tdm_timeline; /* opaque; immutable but for tdm_timeline_feed_line() */

/* What a corrections file says of itself. Strings live as long as the timeline; NULL = not said. */
struct tdm_timeline_info {
	const char *host_uuid, *host_clock;
	const char *guest_uuid, *guest_clock;
	uint64_t host_unit_hz, guest_unit_hz; /* 1000000000 where not said */
	bool has_epoch;
	int64_t epoch_offset_ns; /* host trace clock + this = Unix time */
	uint64_t epoch_width_ns;
	const char *made, *method, *stamps;
	uint64_t samples, used, bogus, lost;
	uint64_t rate_ppb;
	size_t segment_count, knot_count, doubt_count, cpu_count;
	bool complete; /* "end" was seen */
};

/**
 * Reads a corrections file.
 *
 * @param timeline  Receives it, owned by the caller.
 * @retval TDM_ERR_FORMAT  Not such a file, cut short, or inconsistent; @p err names file and line.
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

/** An empty timeline to be fed line by line (live); it applies nothing until its first knot. */
struct tdm_timeline *tdm_timeline_create(void);

/**
 * Takes one line of a corrections stream (without newline): as in the file, but "segment KIND FROM 0" opens a
 * segment and "k" lines follow as they come. Knots are only ever appended: one that lies before the last is refused.
 */
enum tdm_status tdm_timeline_feed_line(
	struct tdm_timeline *timeline, const char *line, struct tdm_error *err);

void tdm_timeline_destroy(struct tdm_timeline *timeline);

struct tdm_timeline_info tdm_timeline_get_info(const struct tdm_timeline *timeline);

/* Where the last lookup was; zero-initialise, one a stream. Makes lookup O(1) for streams in order. */
struct tdm_timeline_hint {
	uint32_t segment, knot;
};

/**
 * Host reading for a guest reading: exact floor of the line between the knots around it, 128-bit products.
 * Pure for a finished timeline; monotone inside a segment.
 *
 * @param cpu    CPU the stamp was made on; its own offset ("cpu" line) is added first. UINT32_MAX = none.
 * @param hint   Kept up to date; may be NULL.
 */
uint64_t tdm_timeline_apply(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	struct tdm_timeline_hint *hint);

/** How well tdm_timeline_apply() knows it: the truth lies in [result - minus, result + plus]. Doubt ranges included. */
void tdm_timeline_bound(const struct tdm_timeline *timeline, uint64_t guest, uint32_t cpu,
	uint64_t *minus, uint64_t *plus);

/**
 * Guest reading for a host reading: the least guest reading that maps to at least @p host.
 * @retval TDM_ERR_RANGE  The host reading lies in a jump; @p guest receives the segment's edge.
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

/** Doubt range @p index: the break is somewhere in [from, to], guest readings. */
void tdm_timeline_doubt(
	const struct tdm_timeline *timeline, size_t index, uint64_t *from, uint64_t *to);

#endif
