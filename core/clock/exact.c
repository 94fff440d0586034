/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>
#include <tandem/buffer.h>
#include <tandem/estimate.h>
#include <tandem/wide.h>

enum {
	UNSCALED_BITS = 48,
	SPAN_BITS =
		60 /* of host ticks between the two knots: rounding at their ends is below a tick in between */
};

/* guest = ((host * ratio) >> frac_bits) + offset, as KVM programs it; modulo nothing: 128 bits hold it. */
static tdm_i128 guest_of(const struct tdm_tsc_relation *vcpu, uint64_t host)
{
	const uint64_t ratio = vcpu->ratio ? vcpu->ratio : UINT64_C(1) << UNSCALED_BITS;
	const unsigned int bits = vcpu->ratio ? vcpu->frac_bits : UNSCALED_BITS;

	return (tdm_i128)(((tdm_u128)host * ratio) >> bits) + vcpu->offset;
}

/* The least host reading at which the guest's is at least 1: guests that started after their host have a past without one. */
static bool first_host(const struct tdm_tsc_relation *vcpu, uint64_t *host)
{
	uint64_t low = 1, high = TDM_READING_MAX;

	if (guest_of(vcpu, high) < 1) {
		return false;
	}
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (guest_of(vcpu, middle) >= 1) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	*host = low;
	return true;
}

static enum tdm_status put_header(struct tdm_buffer *text, const struct tdm_timeline_info *info)
{
	const struct tdm_timeline_info *i = info;
	enum tdm_status status = tdm_buffer_printf(text,
		"tandem-corrections 1\nhost %s clock %s unit-hz %" PRIu64
		"\nguest %s clock %s unit-hz %" PRIu64 "\n",
		i->host_uuid ? i->host_uuid : "-", i->host_clock ? i->host_clock : "x86-tsc",
		i->host_unit_hz ? i->host_unit_hz : UINT64_C(1000000000),
		i->guest_uuid ? i->guest_uuid : "-", i->guest_clock ? i->guest_clock : "x86-tsc",
		i->guest_unit_hz ? i->guest_unit_hz : UINT64_C(1000000000));

	if (status == TDM_OK && i->has_epoch) {
		status = tdm_buffer_printf(text, "epoch host %" PRId64 " %" PRIu64 "\n",
			i->epoch_offset_ns, i->epoch_width_ns);
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(text,
			"made %s samples %" PRIu64 " used %" PRIu64 " bogus %" PRIu64
			" lost %" PRIu64 "\nmethod exact\nassume rate-ppb 0\n",
			i->made ? i->made : "-", i->samples, i->used, i->bogus, i->lost);
	}
	return status;
}

static enum tdm_status put_line(
	struct tdm_buffer *text, const struct tdm_tsc_relation *vcpu, struct tdm_error *err)
{
	uint64_t host[2];

	if (!first_host(vcpu, &host[0]) || host[0] > TDM_READING_MAX - (UINT64_C(1) << SPAN_BITS)) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"TSC offset %" PRId64 " of vCPU %" PRIu32 " fits no reading", vcpu->offset,
			vcpu->vcpu);
	}
	host[1] = host[0] + (UINT64_C(1) << SPAN_BITS);
	/* A guest that runs faster reaches the end of readings sooner. */
	while (guest_of(vcpu, host[1]) >= (tdm_i128)TDM_READING_MAX) {
		host[1] = host[0] + (host[1] - host[0]) / 2;
	}

	const uint64_t guest[2] = { (uint64_t)guest_of(vcpu, host[0]),
		(uint64_t)guest_of(vcpu, host[1]) };

	return tdm_buffer_printf(text,
		"segment start %" PRIu64 " 2\nk %" PRIu64 " %" PRIu64 " 1 1\nk %" PRIu64 " %" PRIu64
		" 1 1\n",
		guest[0], guest[0], host[0], guest[1], host[1]);
}

enum tdm_status tdm_timeline_from_tsc(const struct tdm_timeline_info *info,
	const struct tdm_tsc_relation *vcpus, size_t vcpu_count, struct tdm_timeline **timeline,
	struct tdm_error *err)
{
	struct tdm_buffer text = { 0 };
	enum tdm_status status;

	if (vcpu_count == 0) {
		return tdm_fail(err, TDM_ERR_RANGE, "no vCPU has a TSC offset");
	}

	const struct tdm_tsc_relation *reference = &vcpus[0];

	for (size_t i = 0; i < vcpu_count; i++) {
		if (vcpus[i].frac_bits >= 64) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"TSC ratio of vCPU %" PRIu32 " has %u fraction bits", vcpus[i].vcpu,
				vcpus[i].frac_bits);
		}
		if (vcpus[i].ratio != reference->ratio ||
			vcpus[i].frac_bits != reference->frac_bits) {
			return tdm_fail(err, TDM_ERR_UNSUPPORTED,
				"vCPUs %" PRIu32 " and %" PRIu32 " have different TSC ratios",
				reference->vcpu, vcpus[i].vcpu);
		}
		reference = vcpus[i].vcpu < reference->vcpu ? &vcpus[i] : reference;
	}
	status = put_header(&text, info);
	if (status == TDM_OK) {
		status = put_line(&text, reference, err);
	}
	for (size_t i = 0; i < vcpu_count && status == TDM_OK; i++) {
		if (vcpus[i].offset != reference->offset) {
			status = tdm_buffer_printf(&text, "cpu %" PRIu32 " %" PRId64 " 0\n",
				vcpus[i].vcpu, reference->offset - vcpus[i].offset);
		}
	}
	if (status == TDM_OK) {
		status = tdm_buffer_printf(&text, "end\n");
	}
	if (status == TDM_OK) {
		status = tdm_timeline_parse(
			"KVM", (const char *)text.bytes, text.size, timeline, err);
	} else if (status == TDM_ERR_NOMEM) {
		tdm_fail(err, TDM_ERR_NOMEM, "no memory for a timeline");
	}
	tdm_buffer_release(&text);
	return status;
}

/* By how much the exact reading lies outside the measured bound at one guest reading. */
static uint64_t outside_at(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint64_t guest, uint32_t cpu)
{
	const uint64_t truth = tdm_timeline_apply(exact, guest, cpu, NULL);
	const uint64_t host = tdm_timeline_apply(measured, guest, cpu, NULL);
	uint64_t minus, plus;

	tdm_timeline_bound(measured, guest, cpu, &minus, &plus);
	/* One tick is what the exact one rounds to. */
	if (truth + minus + 1 < host) {
		return host - truth - minus;
	}
	return truth > host + plus + 1 ? truth - host - plus : 0;
}

bool tdm_timeline_agrees(const struct tdm_timeline *exact, const struct tdm_timeline *measured,
	uint32_t cpu, uint64_t *worst)
{
	const size_t segments = tdm_timeline_get_info(measured).segment_count;

	*worst = 0;
	for (size_t i = 0; i < segments; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(measured, i);

		for (size_t k = 0; k < segment.knot_count; k++) {
			const uint64_t guest = segment.knots[k].guest;
			const uint64_t next =
				k + 1 < segment.knot_count ? segment.knots[k + 1].guest : guest;
			const uint64_t at[] = { guest, guest + (next - guest) / 2 };

			for (size_t j = 0; j < 2; j++) {
				const uint64_t outside = outside_at(exact, measured, at[j], cpu);

				*worst = outside > *worst ? outside : *worst;
			}
		}
	}
	return *worst == 0;
}
