/* SPDX-License-Identifier: MIT */
#include "repeat.h"
#include <inttypes.h>
#include <stdlib.h>
#include <tandem/estimate.h>

enum {
	MAX_FRAC_BITS = 62
};

/* The line host = ((guest - offset) << frac) / ratio, through two points of it that both lie on whole ticks. */
static bool find_knots(const struct tdm_tsc_relation *vcpu, struct tdm_knot knots[2])
{
	const tdm_i128 one = (tdm_i128)1 << (vcpu->ratio ? vcpu->frac_bits : 0);
	const tdm_i128 ratio = vcpu->ratio ? (tdm_i128)vcpu->ratio : 1;
	const tdm_i128 limit = (tdm_i128)TDM_READING_MAX;
	const tdm_i128 offset = vcpu->offset;
	/* Point k is (offset + k * ratio, k * 2^frac). */
	const tdm_i128 first = offset < 0 ? (-offset + ratio - 1) / ratio : 0;
	const tdm_i128 by_guest = (limit - offset) / ratio;
	const tdm_i128 by_host = limit / one;
	const tdm_i128 last = by_guest < by_host ? by_guest : by_host;

	if (offset > limit || last <= first) {
		return false;
	}

	/* guest = (host * ratio) >> frac forgets less than one guest tick. */
	const tdm_i128 rounding = (one + ratio - 1) / ratio;

	for (size_t i = 0; i < 2; i++) {
		const tdm_i128 k = i ? last : first;

		knots[i] = (struct tdm_knot){ .guest = (uint64_t)(offset + k * ratio),
			.host = (uint64_t)(k * one),
			.minus = 1,
			.plus = (uint64_t)rounding };
	}
	return rounding <= limit;
}

/* The vCPU whose relation the others' are told against: the one of the least number. */
static const struct tdm_tsc_relation *reference_of(const struct tdm_tsc_span *span)
{
	const struct tdm_tsc_relation *reference = &span->vcpus[0];

	for (size_t i = 1; i < span->vcpu_count; i++) {
		reference = span->vcpus[i].vcpu < reference->vcpu ? &span->vcpus[i] : reference;
	}
	return reference;
}

static enum tdm_status check_rates(const struct tdm_tsc_span *span, struct tdm_error *err)
{
	const struct tdm_tsc_relation *const vcpus = span->vcpus;

	if (!span->vcpu_count) {
		return tdm_fail(err, TDM_ERR_RANGE, "no vCPU to take the TSC offset from");
	}
	for (size_t i = 0; i < span->vcpu_count; i++) {
		if (vcpus[i].ratio != vcpus[0].ratio ||
			(vcpus[0].ratio && vcpus[i].frac_bits != vcpus[0].frac_bits)) {
			return tdm_fail(err, TDM_ERR_UNSUPPORTED,
				"vCPU %" PRIu32 " and %" PRIu32 " run at different TSC rates",
				vcpus[0].vcpu, vcpus[i].vcpu);
		}
	}
	return TDM_OK;
}

/* An empty timeline that says what it is. */
static struct tdm_timeline *make_timeline(
	const struct tdm_timeline_info *info, struct tdm_error *err)
{
	struct tdm_timeline_info said = *info;
	struct tdm_timeline *const made = tdm_timeline_create();

	if (!made) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");
		return NULL;
	}
	said.host_unit_hz = said.host_unit_hz ? said.host_unit_hz : 1000000000;
	said.guest_unit_hz = said.guest_unit_hz ? said.guest_unit_hz : 1000000000;
	said.method = "exact";
	said.rate_ppb = 0;
	if (tdm_timeline_set_info(made, &said, err) != TDM_OK) {
		tdm_timeline_destroy(made);
		return NULL;
	}
	return made;
}

/* The line of one span alone, known to @p more units less than it could be. */
static enum tdm_status put_line(struct tdm_timeline *timeline,
	const struct tdm_tsc_relation *reference, uint64_t more, struct tdm_error *err)
{
	struct tdm_knot knots[2];

	if (reference->frac_bits > MAX_FRAC_BITS || reference->ratio > TDM_READING_MAX ||
		!find_knots(reference, knots)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"TSC offset %" PRId64 ", ratio %" PRIu64
			" with %u fraction bits fit no reading",
			reference->offset, reference->ratio, reference->frac_bits);
	}

	enum tdm_status status = tdm_timeline_add_segment(timeline, TDM_SEGMENT_START, 0, err);

	for (size_t i = 0; status == TDM_OK && i < 2; i++) {
		knots[i].minus += more;
		knots[i].plus += more;
		status = tdm_timeline_add_knot(timeline, &knots[i], err);
	}
	return status;
}

/* What the vCPU with this number adds to come to the reference; false where the span has no such vCPU. */
static bool find_ticks(const struct tdm_tsc_span *span, const struct tdm_tsc_relation *reference,
	uint32_t vcpu, tdm_i128 *ticks)
{
	for (size_t i = 0; i < span->vcpu_count; i++) {
		if (span->vcpus[i].vcpu == vcpu) {
			*ticks = (tdm_i128)reference->offset - span->vcpus[i].offset;
			return true;
		}
	}
	return false;
}

/* vCPUs that differ from the reference; those that an earlier span has told are held against it. */
static enum tdm_status put_cpus(struct tdm_timeline *timeline, const struct tdm_tsc_span *spans,
	size_t at, struct tdm_error *err)
{
	const struct tdm_tsc_relation *const reference = reference_of(&spans[at]);
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < spans[at].vcpu_count && status == TDM_OK; i++) {
		const uint32_t vcpu = spans[at].vcpus[i].vcpu;
		tdm_i128 ticks = 0;
		tdm_i128 before = 0;
		bool is_told = false;

		find_ticks(&spans[at], reference, vcpu, &ticks);
		for (size_t s = 0; s < at && !is_told; s++) {
			is_told = find_ticks(&spans[s], reference_of(&spans[s]), vcpu, &before);
		}
		if (is_told && before != ticks) {
			status = tdm_fail(err, TDM_ERR_UNSUPPORTED,
				"the TSC offset of vCPU %" PRIu32 " against the others' changed",
				vcpu);
		} else if (ticks > INT64_MAX || ticks < -INT64_MAX) {
			status = tdm_fail(err, TDM_ERR_RANGE,
				"the TSC offset of vCPU %" PRIu32 " is too far from the others",
				vcpu);
		} else if (ticks && !is_told) {
			status = tdm_timeline_add_cpu(timeline, vcpu, (int64_t)ticks, 0, err);
		}
	}
	return status;
}

/* What the guest's TSC shows at a host reading, held inside what a file may have. */
static uint64_t guest_at(const struct tdm_tsc_relation *vcpu, uint64_t host)
{
	const tdm_i128 scaled =
		vcpu->ratio ? ((tdm_i128)host * (tdm_i128)vcpu->ratio) >> vcpu->frac_bits
			    : (tdm_i128)host;
	const tdm_i128 guest = scaled + vcpu->offset;

	return guest < 0                           ? 0
	       : guest > (tdm_i128)TDM_READING_MAX ? TDM_READING_MAX
						   : (uint64_t)guest;
}

/* Each span with the readings that it may have shown: from the look before its first to the one behind its last. */
static enum tdm_status put_runs(struct tdm_timeline *timeline, const struct tdm_timeline_info *info,
	const struct tdm_tsc_span *spans, size_t count, struct tdm_error *err)
{
	struct repeat_run *const runs = calloc(count, sizeof(*runs));
	enum tdm_status status =
		runs ? TDM_OK : tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");

	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		const struct tdm_tsc_relation *const reference = reference_of(&spans[i]);

		runs[i].timeline = make_timeline(info, err);
		if (!runs[i].timeline) {
			status = TDM_ERR_NOMEM;
			break;
		}
		/* Its knots will not lie on whole ticks of both clocks. */
		status = put_line(runs[i].timeline, reference, reference->ratio ? 1 : 0, err);
		runs[i].kind = TDM_SEGMENT_STEP;
		runs[i].from = i ? guest_at(reference, spans[i - 1].host_until) : 0;
		runs[i].until = i + 1 < count ? guest_at(reference, spans[i + 1].host_from) + 1
					      : TDM_READING_MAX;
		if (status == TDM_OK && runs[i].from >= runs[i].until) {
			status = tdm_fail(err, TDM_ERR_RANGE,
				"a TSC offset of %" PRId64 " at that time fits no reading",
				reference->offset);
		}
	}
	if (status == TDM_OK) {
		status = repeat_merge(runs, count, timeline, err);
	}
	for (size_t i = 0; runs && i < count; i++) {
		tdm_timeline_destroy(runs[i].timeline);
	}
	free(runs);
	return status;
}

enum tdm_status tdm_timeline_from_tsc_spans(const struct tdm_timeline_info *info,
	const struct tdm_tsc_span *spans, size_t span_count, struct tdm_timeline **timeline,
	struct tdm_error *err)
{
	*timeline = NULL;
	if (span_count == 0 || span_count > REPEAT_MAX_RUNS) {
		return tdm_fail(err, TDM_ERR_RANGE, "%zu TSC relations, wanted 1 to %d", span_count,
			REPEAT_MAX_RUNS);
	}

	struct tdm_timeline *const made = make_timeline(info, err);
	enum tdm_status status = made ? TDM_OK : TDM_ERR_NOMEM;

	for (size_t i = 0; i < span_count && status == TDM_OK; i++) {
		status = check_rates(&spans[i], err);
		if (status == TDM_OK) {
			status = put_cpus(made, spans, i, err);
		}
	}
	if (status == TDM_OK) {
		status = span_count > 1 ? put_runs(made, info, spans, span_count, err)
					: put_line(made, reference_of(&spans[0]), 0, err);
	}
	if (status != TDM_OK) {
		tdm_timeline_destroy(made);
		return status;
	}
	*timeline = made;
	return TDM_OK;
}

enum tdm_status tdm_timeline_from_tsc(const struct tdm_timeline_info *info,
	const struct tdm_tsc_relation *vcpus, size_t vcpu_count, struct tdm_timeline **timeline,
	struct tdm_error *err)
{
	const struct tdm_tsc_span span = { .vcpus = vcpus, .vcpu_count = vcpu_count };

	return tdm_timeline_from_tsc_spans(info, &span, 1, timeline, err);
}

/* By how much the exact reading lies outside the measured bound. */
static uint64_t outside(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint32_t cpu, uint64_t guest)
{
	uint64_t minus;
	uint64_t plus;
	uint64_t fewer = 0;
	uint64_t more = 0;
	const tdm_i128 host = tdm_timeline_apply(exact, guest, cpu, NULL);
	const tdm_i128 held = tdm_timeline_apply(measured, guest, UINT32_MAX, NULL);

	if (tdm_timeline_is_in_doubt(exact, guest)) {
		tdm_timeline_bound(exact, guest, cpu, &fewer, &more);
	}
	tdm_timeline_bound(measured, guest, UINT32_MAX, &minus, &plus);
	if (host + (tdm_i128)more < held - (tdm_i128)minus) {
		return (uint64_t)(held - (tdm_i128)minus - host - (tdm_i128)more);
	}
	return host - (tdm_i128)fewer > held + (tdm_i128)plus
		       ? (uint64_t)(host - (tdm_i128)fewer - held - (tdm_i128)plus)
		       : 0;
}

bool tdm_timeline_agrees(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint32_t cpu, uint64_t *worst)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(measured);

	*worst = 0;
	for (size_t s = 0; s < info.segment_count; s++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(measured, s);

		for (size_t i = 0; i < segment.knot_count; i++) {
			const uint64_t at = segment.knots[i].guest;
			uint64_t off = outside(exact, measured, cpu, at);

			*worst = off > *worst ? off : *worst;
			if (i + 1 < segment.knot_count) {
				off = outside(exact, measured, cpu,
					at + (segment.knots[i + 1].guest - at) / 2);
				*worst = off > *worst ? off : *worst;
			}
		}
	}
	return *worst == 0;
}
