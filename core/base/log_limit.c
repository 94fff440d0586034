/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <tandem/log.h>
#include <time.h>

enum {
	WINDOW_S = 10,
	LINES = 10
};

void tdm_log_limit_init(struct tdm_log_limit *limit)
{
	*limit = (struct tdm_log_limit){ .line_count = 0 };
	pthread_mutex_init(&limit->lock, NULL);
}

void tdm_log_limit_release(struct tdm_log_limit *limit)
{
	pthread_mutex_destroy(&limit->lock);
}

/* Counts a line in; true where it may be said. hidden receives how many were not, once the window is over. */
static bool count_line(struct tdm_log_limit *limit, unsigned int *hidden)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&limit->lock);
	*hidden = 0;
	if (now.tv_sec - limit->window_s >= WINDOW_S) {
		*hidden = limit->line_count > LINES ? limit->line_count - LINES : 0;
		limit->window_s = now.tv_sec;
		limit->line_count = 0;
	}

	const bool may = limit->line_count++ < LINES;

	pthread_mutex_unlock(&limit->lock);
	return may;
}

void tdm_log_limited(
	struct tdm_log_limit *limit, const struct tdm_log *log, const char *format, ...)
{
	unsigned int hidden;
	const bool may = count_line(limit, &hidden);
	char line[1024];
	va_list args;

	if (hidden) {
		TDM_WARNING(log, "More peers failed and are not listed: count=%u", hidden);
	}
	if (may) {
		va_start(args, format);
		vsnprintf(line, sizeof(line), format, args);
		va_end(args);
		TDM_WARNING(log, "%s", line);
	}
}
