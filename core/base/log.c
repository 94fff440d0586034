/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <tandem/log.h>
#include <tandem/utf8.h>

void tdm_log_write(const struct tdm_log *log, enum tdm_log_level level, const char *format, ...)
{
	if (!log || !log->write || level > log->max_level) {
		return;
	}

	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	tdm_utf8_make_visible(line, sizeof(line));
	log->write(log->user, level, line);
}
