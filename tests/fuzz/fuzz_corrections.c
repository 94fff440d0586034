/* SPDX-License-Identifier: MIT */
/* A corrections file of any bytes: it is read or refused; what was read never goes back inside a segment's knots. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <tandem/timeline.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply_around(
	const struct tdm_timeline *timeline, const struct tdm_segment_info *segment)
{
	struct tdm_timeline_hint hint = { 0 };

	for (size_t i = 0; i < segment->knot_count; i++) {
		const uint64_t guest = segment->knots[i].guest;
		uint64_t minus, plus, back;

		(void)tdm_timeline_apply(timeline, guest - (guest > 0), 0, &hint);
		(void)tdm_timeline_apply(timeline, guest + 1, UINT32_MAX, &hint);
		tdm_timeline_bound(timeline, guest, 0, &minus, &plus);
		(void)tdm_timeline_invert(timeline, segment->knots[i].host, &back);
		if (i && segment->knots[i].host < segment->knots[i - 1].host) {
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tdm_timeline *timeline = NULL;
	struct tdm_timeline *again = NULL;
	struct tdm_buffer text = { 0 };
	struct tdm_error err;

	if (tdm_timeline_parse("fuzz", (const char *)data, size, &timeline, &err) != TDM_OK) {
		return 0;
	}

	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);

	for (size_t i = 0; i < info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, i);

		apply_around(timeline, &segment);
	}
	if (tdm_timeline_write(timeline, &text) == TDM_OK &&
		tdm_timeline_parse("again", (const char *)text.bytes, text.size, &again, &err) !=
			TDM_OK) {
		abort();
	}
	tdm_timeline_destroy(again);
	tdm_buffer_release(&text);
	tdm_timeline_destroy(timeline);
	return 0;
}
