/* SPDX-License-Identifier: MIT */
/*
 * log.h - where the library writes what is no fault: a sink given by the caller, never stderr by itself.
 */
#ifndef TANDEM_LOG_H
#define TANDEM_LOG_H

#include <pthread.h>
#include <stdbool.h>

enum tdm_log_level {
	TDM_LOG_ERROR,   /* the operation fails */
	TDM_LOG_WARNING, /* odd but handled; the user should know */
	TDM_LOG_INFO,    /* life cycle, for users; rare */
	TDM_LOG_DEBUG,   /* for developers; at most once a packet */
};

/* A log sink. Zero-initialised it is silent. Borrowed by whatever it is given to: it must outlive that. */
struct tdm_log {
	enum tdm_log_level max_level;
	/* Receives one line without newline, "Sentence: key=value, ...". */
	void (*write)(void *user, enum tdm_log_level level, const char *line);
	void *user;
};

/** Formats a line and gives it to the sink if the level is wanted. @p log may be NULL. */
void tdm_log_write(const struct tdm_log *log, enum tdm_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define TDM_ERROR(log, ...)   tdm_log_write((log), TDM_LOG_ERROR, __VA_ARGS__)
#define TDM_WARNING(log, ...) tdm_log_write((log), TDM_LOG_WARNING, __VA_ARGS__)
#define TDM_INFO(log, ...)    tdm_log_write((log), TDM_LOG_INFO, __VA_ARGS__)
#define TDM_DEBUG(log, ...)   tdm_log_write((log), TDM_LOG_DEBUG, __VA_ARGS__)

/* Faults of strangers, who could fill the log: ten lines in ten seconds, then how many more there were. */
struct tdm_log_limit {
	pthread_mutex_t lock;
	long window_s; /* CLOCK_MONOTONIC, when it began */
	unsigned int line_count;
};

void tdm_log_limit_init(struct tdm_log_limit *limit);
void tdm_log_limit_release(struct tdm_log_limit *limit);

/** A warning, unless there were too many of late. Thread-safe. */
void tdm_log_limited(struct tdm_log_limit *limit, const struct tdm_log *log, const char *format,
	...) __attribute__((format(printf, 3, 4)));

#endif
