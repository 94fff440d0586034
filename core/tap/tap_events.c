/* SPDX-License-Identifier: MIT */
#include "tap_priv.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/nearest.h>

enum {
	LIST_MAX_BYTES = 16 << 20,
	PATTERN_MAX_BYTES = 256,
	LEFT_OUT_MAX_BYTES = 32 << 10 /* it has to fit into a frame */
};

/* "sched:sched_switch" against "sched", "sched:*", "sched_sw*": a word without colon is a system or an event. */
static bool matches(const char *pattern, const char *system, const char *event)
{
	const char *colon = strpbrk(pattern, ":/");

	if (!colon) {
		return strcmp(pattern, "all") == 0 || fnmatch(pattern, system, 0) == 0 ||
		       fnmatch(pattern, event, 0) == 0;
	}

	char head[PATTERN_MAX_BYTES];

	snprintf(head, sizeof(head), "%.*s", (int)(colon - pattern), pattern);
	return fnmatch(head, system, 0) == 0 && (!colon[1] || fnmatch(colon + 1, event, 0) == 0);
}

static enum tdm_status remember_system(struct tdm_tap *tap, const char *system)
{
	for (size_t i = 0; i < tap->system_count; i++) {
		if (strcmp(tap->systems[i], system) == 0) {
			return TDM_OK;
		}
	}

	char **systems = realloc(tap->systems, (tap->system_count + 1) * sizeof(*systems));

	if (!systems) {
		return TDM_ERR_NOMEM;
	}
	tap->systems = systems;
	systems[tap->system_count] = strdup(system);
	if (!systems[tap->system_count]) {
		return TDM_ERR_NOMEM;
	}
	tap->system_count++;
	return TDM_OK;
}

/* A refused filter's file shows it, the place and the kernel's reason: "parse_error: ..." on its last line. */
static enum tdm_status tell_refused_filter(const struct tdm_tap *tap, const char *name,
	const char *system, const char *event, struct tdm_error *err)
{
	static const char mark[] = "parse_error: ";
	struct tdm_buffer text = { 0 };
	const char *reason = NULL;

	if (tracefs_read(tap->path, name, 65536, &text, NULL) == TDM_OK &&
		tdm_buffer_append(&text, "", 1) == TDM_OK) {
		reason = strstr((const char *)text.bytes, mark);
	}
	if (reason) {
		reason += strlen(mark);
		(void)tdm_fail(err, TDM_ERR_RANGE, "%.*s", (int)strcspn(reason, "\n"), reason);
	}
	tdm_buffer_release(&text);
	return tdm_error_prefix(err, "the filter of %s:%s is refused", system, event);
}

static enum tdm_status enable_one(struct tdm_tap *tap, const struct tdm_tap_event *wanted,
	const char *system, const char *event, struct tdm_error *err)
{
	char name[600];

	if (wanted->exclude) {
		snprintf(name, sizeof(name), "events/%s/%s/enable", system, event);
		return tracefs_write(tap->path, name, "0", false, err);
	}
	if (wanted->filter) {
		snprintf(name, sizeof(name), "events/%s/%s/filter", system, event);

		const enum tdm_status status =
			tracefs_write(tap->path, name, wanted->filter, false, err);

		if (status != TDM_OK) {
			return tell_refused_filter(tap, name, system, event, err);
		}
	}
	snprintf(name, sizeof(name), "events/%s/%s/enable", system, event);

	const enum tdm_status status = tracefs_write(tap->path, name, "1", false, err);

	if (status != TDM_OK) {
		return status;
	}
	if (remember_system(tap, system) != TDM_OK) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for event systems");
	}
	return TDM_OK;
}

static enum tdm_status tell_no_match(const char *pattern, const char *list, struct tdm_error *err)
{
	const bool is_whole = strpbrk(pattern, ":/");
	struct tdm_nearest nearest;

	tdm_nearest_begin(&nearest, pattern, strlen(pattern));
	for (const char *line = list; *line;) {
		const char *const end = strchrnul(line, '\n');
		const char *const colon = memchr(line, ':', (size_t)(end - line));
		char name[2 * PATTERN_MAX_BYTES];

		snprintf(name, sizeof(name), "%.*s", (int)(end - line), line);
		if (colon && is_whole) {
			tdm_nearest_try(&nearest, name);
		} else if (colon && strchr(name, ':')) {
			tdm_nearest_try(&nearest, strchr(name, ':') + 1);
			*strchr(name, ':') = '\0';
			tdm_nearest_try(&nearest, name);
		}
		line = *end ? end + 1 : end;
	}
	return tdm_fail(err, TDM_ERR_RANGE,
		"no event matches \"%s\" (see available_events of tracefs)%s", pattern,
		tdm_nearest_text(&nearest));
}

/* Only what is said of it: nothing fails for want of memory. */
static void note_left_out(struct tdm_tap *tap, const char *key, const char *pattern)
{
	if (tap->left_out.size < LEFT_OUT_MAX_BYTES) {
		(void)tdm_buffer_printf(&tap->left_out, "%s %s\n", key, pattern);
	}
}

/* Enables each event of the list "system:event\n..." that the pattern names. list is written to. */
static enum tdm_status enable_pattern(struct tdm_tap *tap, const struct tdm_tap_options *options,
	const struct tdm_tap_event *wanted, const char *list, struct tdm_error *err)
{
	size_t enabled = 0, refused = 0, forbidden = 0;
	struct tdm_error first_refusal = { 0 };

	for (const char *line = list; *line;) {
		const char *end = strchrnul(line, '\n');
		char system[PATTERN_MAX_BYTES], event[PATTERN_MAX_BYTES];
		const char *colon = memchr(line, ':', (size_t)(end - line));

		if (colon) {
			snprintf(system, sizeof(system), "%.*s", (int)(colon - line), line);
			snprintf(event, sizeof(event), "%.*s", (int)(end - colon - 1), colon + 1);
			if (strcmp(system, "ftrace") != 0 &&
				matches(wanted->pattern, system, event)) {
				struct tdm_error refusal = { 0 };

				if (options->allow && !wanted->exclude &&
					!options->allow(options->allow_user, system, event)) {
					forbidden++;
				} else if (enable_one(tap, wanted, system, event, &refusal) ==
					   TDM_OK) {
					enabled++;
				} else if (refused++ == 0) {
					first_refusal = refusal;
				}
			}
		}
		line = *end ? end + 1 : end;
	}
	if (enabled) {
		if (forbidden) {
			TDM_WARNING(tap->log,
				"Some events of \"%s\" are not allowed here: count=%zu",
				wanted->pattern, forbidden);
			note_left_out(tap, TDM_TAP_PARTLY_ALLOWED, wanted->pattern);
		}
		if (refused) {
			TDM_WARNING(tap->log,
				"Some events of \"%s\" were refused: count=%zu, first=\"%s\"",
				wanted->pattern, refused, first_refusal.text);
		}
		return TDM_OK;
	}
	if (refused) {
		return tdm_fail(err, TDM_ERR_RANGE, "%s", first_refusal.text);
	}
	if (options->may_miss && forbidden) {
		TDM_WARNING(tap->log, "Left out, no event of it is allowed here: pattern=\"%s\"",
			wanted->pattern);
		note_left_out(tap, TDM_TAP_NOT_ALLOWED, wanted->pattern);
		return TDM_END;
	}
	if (options->may_miss) {
		TDM_INFO(tap->log, "No event here matches: pattern=\"%s\"", wanted->pattern);
		note_left_out(tap, TDM_TAP_NO_MATCH, wanted->pattern);
		return TDM_END;
	}
	if (forbidden) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"\"%s\" is not allowed to be recorded on that machine: see the agent's --allow",
			wanted->pattern);
	}
	return tell_no_match(wanted->pattern, list, err);
}

enum tdm_status enable_events(
	struct tdm_tap *tap, const struct tdm_tap_options *options, struct tdm_error *err)
{
	struct tdm_buffer list = { 0 };
	enum tdm_status status =
		tracefs_read(tap->path, "available_events", LIST_MAX_BYTES, &list, err);

	if (status != TDM_OK) {
		/* An instance of an older kernel has no list of its own. */
		const char *root = tdm_tap_find_tracefs(err);

		list.size = 0;
		status = root ? tracefs_read(root, "available_events", LIST_MAX_BYTES, &list, err)
			      : TDM_ERR_IO;
	}
	if (status == TDM_OK && tdm_buffer_append(&list, "", 1) != TDM_OK) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for the list of events");
	}
	size_t matched = 0;

	for (size_t i = 0; i < options->event_count && status == TDM_OK; i++) {
		status = strlen(options->events[i].pattern) < PATTERN_MAX_BYTES
				 ? enable_pattern(tap, options, &options->events[i],
					   (const char *)list.bytes, err)
				 : tdm_fail(err, TDM_ERR_RANGE, "event pattern of over %d bytes",
					   PATTERN_MAX_BYTES);
		matched += status == TDM_OK;
		status = status == TDM_END ? TDM_OK : status;
	}
	if (status == TDM_OK && options->event_count && !matched) {
		status = tdm_fail(err, TDM_ERR_RANGE,
			"none of the %zu event patterns matches an event that may be recorded there (see the agent's --allow)",
			options->event_count);
	}
	tdm_buffer_release(&list);
	return status;
}
