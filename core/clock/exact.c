/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <tandem/estimate.h>
#include <tandem/wide.h>

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

enum tdm_status tdm_timeline_from_tsc(const struct tdm_timeline_info *info,
	const struct tdm_tsc_relation *vcpus, size_t vcpu_count, struct tdm_timeline **timeline,
	struct tdm_error *err)
{
	const struct tdm_tsc_relation *reference = &vcpus[0];
	struct tdm_timeline_info said = *info;
	struct tdm_knot knots[2];

	*timeline = NULL;
	if (!vcpu_count) {
		return tdm_fail(err, TDM_ERR_RANGE, "no vCPU to take the TSC offset from");
	}
	for (size_t i = 0; i < vcpu_count; i++) {
		if (vcpus[i].ratio != vcpus[0].ratio ||
			(vcpus[0].ratio && vcpus[i].frac_bits != vcpus[0].frac_bits)) {
			return tdm_fail(err, TDM_ERR_UNSUPPORTED,
				"vCPU %" PRIu32 " and %" PRIu32 " run at different TSC rates",
				vcpus[0].vcpu, vcpus[i].vcpu);
		}
		reference = vcpus[i].vcpu < reference->vcpu ? &vcpus[i] : reference;
	}
	if (reference->frac_bits > MAX_FRAC_BITS || reference->ratio > TDM_READING_MAX ||
		!find_knots(reference, knots)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"TSC offset %" PRId64 ", ratio %" PRIu64
			" with %u fraction bits fit no reading",
			reference->offset, reference->ratio, reference->frac_bits);
	}

	struct tdm_timeline *made = tdm_timeline_create();

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");
	}
	said.host_unit_hz = said.host_unit_hz ? said.host_unit_hz : 1000000000;
	said.guest_unit_hz = said.guest_unit_hz ? said.guest_unit_hz : 1000000000;
	said.method = "exact";
	said.rate_ppb = 0;

	enum tdm_status status = tdm_timeline_set_info(made, &said, err);

	if (status == TDM_OK) {
		status = tdm_timeline_add_segment(made, TDM_SEGMENT_START, 0, err);
	}
	for (size_t i = 0; status == TDM_OK && i < 2; i++) {
		status = tdm_timeline_add_knot(made, &knots[i], err);
	}
	for (size_t i = 0; status == TDM_OK && i < vcpu_count; i++) {
		int64_t ticks;

		if (__builtin_sub_overflow(reference->offset, vcpus[i].offset, &ticks)) {
			status = tdm_fail(err, TDM_ERR_RANGE,
				"the TSC offset of vCPU %" PRIu32 " is too far from the others",
				vcpus[i].vcpu);
		} else if (ticks) {
			status = tdm_timeline_add_cpu(made, vcpus[i].vcpu, ticks, 0, err);
		}
	}
	if (status != TDM_OK) {
		tdm_timeline_destroy(made);
		return status;
	}
	*timeline = made;
	return TDM_OK;
}

/* By how much the exact reading lies outside the measured bound. */
static uint64_t outside(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint32_t cpu, uint64_t guest)
{
	uint64_t minus;
	uint64_t plus;
	const tdm_i128 host = tdm_timeline_apply(exact, guest, cpu, NULL);
	const tdm_i128 held = tdm_timeline_apply(measured, guest, UINT32_MAX, NULL);

	tdm_timeline_bound(measured, guest, UINT32_MAX, &minus, &plus);
	if (host < held - (tdm_i128)minus) {
		return (uint64_t)(held - (tdm_i128)minus - host);
	}
	return host > held + (tdm_i128)plus ? (uint64_t)(host - held - (tdm_i128)plus) : 0;
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
