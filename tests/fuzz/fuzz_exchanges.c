/* SPDX-License-Identifier: MIT */
/* An exchange log of any bytes: it is read or refused, and what was read is estimated and written again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <tandem/estimate.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tdm_exchange_log *log = NULL;
	struct tdm_timeline *timeline = NULL;
	struct tdm_buffer text = { 0 };
	struct tdm_quality quality;
	struct tdm_error err;

	if (tdm_exchange_log_parse("fuzz", (const char *)data, size, &log, &err) != TDM_OK) {
		return 0;
	}
	if (tdm_estimate(log, &timeline, &quality, &err) == TDM_OK) {
		struct tdm_timeline *again = NULL;

		/* What the estimator writes, every reader takes. */
		if (tdm_timeline_write(timeline, &text) == TDM_OK &&
			tdm_timeline_parse("again", (const char *)text.bytes, text.size, &again,
				&err) != TDM_OK) {
			abort();
		}
		tdm_timeline_destroy(again);
	}
	text.size = 0;
	(void)tdm_exchange_log_write(log, &text);
	tdm_buffer_release(&text);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	return 0;
}
