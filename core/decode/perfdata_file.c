/* SPDX-License-Identifier: MIT */
#include "trace_priv.h"

enum tdm_status perfdata_open(const char *path, const struct tdm_stamp_options *options,
	const struct tdm_log *log, struct tdm_trace **trace, struct tdm_error *err)
{
	(void)options;
	(void)log;
	(void)trace;
	return tdm_fail(err, TDM_ERR_UNSUPPORTED, "%s: perf.data is not read yet", path);
}
