/* SPDX-License-Identifier: MIT */
/* A whole perf.data file, of file or pipe mode. */
#include "visit_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return visit_bytes(data, size);
}
