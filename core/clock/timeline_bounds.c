/* SPDX-License-Identifier: MIT */
#include "order.h"
#include <stdlib.h>
#include <tandem/timeline.h>

bool tdm_timeline_bounds(const struct tdm_timeline *timeline, uint64_t *median, uint64_t *worst)
{
	const struct tdm_timeline_info info = tdm_timeline_get_info(timeline);
	uint64_t *bounds = malloc((info.knot_count + 1) * sizeof(*bounds));
	size_t count = 0;

	*median = 0;
	*worst = 0;
	for (size_t s = 0; bounds && s < info.segment_count; s++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(timeline, s);

		for (size_t i = 0; i < segment.knot_count; i++) {
			const struct tdm_knot *knot = &segment.knots[i];

			if (!tdm_timeline_is_in_doubt(timeline, knot->guest)) {
				bounds[count++] = (knot->minus + knot->plus) / 2;
			}
		}
	}
	if (count) {
		qsort(bounds, count, sizeof(*bounds), compare_u64);
		*median = bounds[count / 2];
		*worst = bounds[count - 1];
	}
	free(bounds);
	return count > 0;
}
