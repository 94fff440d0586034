/* SPDX-License-Identifier: MIT */
/*
 * sample_context.h - what a sample of perf tells beside its record, at the end of the event context.
 */
#ifndef TANDEM_SAMPLE_CONTEXT_H
#define TANDEM_SAMPLE_CONTEXT_H

#include "ctf_packet.h"
#include <tandem/cursor.h>
#include <tandem/trace.h>

/* Members behind the common fields: pid, guest, and the call chain (its length, then addresses). */
enum {
	TDM_SAMPLE_MEMBERS = 3,
	TDM_SAMPLE_BYTES = 4 + 1 + 4 /* without addresses */
};

/** Bytes that tdm_put_sample() writes at most. */
static inline size_t tdm_sample_bytes(const struct tdm_sample *sample)
{
	return TDM_SAMPLE_BYTES + (sample ? 8 * (size_t)sample->callchain_count : 0);
}

/** Writes the members, in the byte order of the trace. @p sample NULL: as unknown. @return Their end. */
static inline uint8_t *tdm_put_sample(
	const struct tdm_sample *sample, bool has_callchains, bool big_endian, uint8_t *out)
{
	const uint32_t count = sample ? sample->callchain_count : 0;

	out = tdm_ctf_put_u32(out, (uint32_t)(sample ? sample->pid : -1), big_endian);
	*out++ = sample && sample->in_guest;
	if (!has_callchains) {
		return out;
	}
	out = tdm_ctf_put_u32(out, count, big_endian);
	for (uint32_t i = 0; i < count; i++) {
		tdm_store_u64(out, sample->callchain[i], big_endian);
		out += 8;
	}
	return out;
}

#endif
