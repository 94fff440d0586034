/* SPDX-License-Identifier: MIT */
#include "tracecmd_arguments.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_KIB = 1 << 22,
	MAX_TEXT = 4096
};

typedef enum tdm_status handler(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err);

static enum tdm_status no_memory(struct tdm_error *err)
{
	return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request");
}

/* Appends an item of size bytes to an array; NULL without memory. */
static void *grow(void **items, size_t *count, size_t size)
{
	char *more = realloc(*items, (*count + 1) * size);

	if (!more) {
		return NULL;
	}
	*items = more;
	memset(more + *count * size, 0, size);
	return more + (*count)++ * size;
}

static struct tdm_tap_setting *add_setting(
	struct tracecmd_wish *wish, const char *file, const char *value, bool append)
{
	struct tdm_tap_setting *setting =
		grow((void **)&wish->settings, &wish->setting_count, sizeof(*setting));

	if (setting) {
		*setting = (struct tdm_tap_setting){ file, value, append };
	}
	return setting;
}

/* Keeps a string that was made here; NULL without memory. */
static const char *keep(struct tracecmd_wish *wish, char *string)
{
	char **place =
		string ? grow((void **)&wish->strings, &wish->string_count, sizeof(*place)) : NULL;

	if (!place) {
		free(string);
		return NULL;
	}
	*place = string;
	return string;
}

static enum tdm_status add_event(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	struct tdm_tap_event *event =
		grow((void **)&wish->events, &wish->event_count, sizeof(*event));

	if (!event) {
		return no_memory(err);
	}
	event->pattern = value;
	event->exclude = wish->excludes;
	return TDM_OK;
}

/* Several of one event have to be true together, as trace-cmd has it. */
static enum tdm_status add_filter(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	struct tdm_tap_event *event =
		wish->event_count ? &wish->events[wish->event_count - 1] : NULL;
	char *both = NULL;

	if (!event) {
		return tdm_fail(err, TDM_ERR_PEER, "\"-f %s\" stands before any -e", value);
	}
	if (event->filter) {
		if (asprintf(&both, "(%s)&&(%s)", event->filter, value) < 0) {
			return no_memory(err);
		}
		value = keep(wish, both);
		if (!value) {
			return no_memory(err);
		}
	}
	event->filter = value;
	return TDM_OK;
}

static enum tdm_status exclude(struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)value;
	(void)err;
	wish->excludes = true;
	return TDM_OK;
}

static enum tdm_status set_clock(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)err;
	wish->clock = value;
	return TDM_OK;
}

static enum tdm_status set_buffer(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	char *end = NULL;
	const unsigned long kib = strtoul(value, &end, 10);

	if (end == value || *end || kib == 0 || kib > MAX_KIB) {
		return tdm_fail(err, TDM_ERR_PEER, "\"-b %s\": wanted 1 to %d KiB", value, MAX_KIB);
	}
	wish->buffer_kib = (uint32_t)kib;
	return TDM_OK;
}

static enum tdm_status set_tracer(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	if (strcmp(value, "nop") == 0) {
		return TDM_OK;
	}
	/* Others measure, stop the machine for a while or own its one snapshot. */
	if (strcmp(value, "function") != 0 && strcmp(value, "function_graph") != 0) {
		return tdm_fail(err, TDM_ERR_PEER,
			"tracer \"%s\" is not served: wanted function or function_graph", value);
	}
	wish->tracer = value;
	return TDM_OK;
}

static enum tdm_status add_function_file(
	struct tracecmd_wish *wish, const char *file, const char *value, struct tdm_error *err)
{
	/* A colon would make it a command: "schedule:traceoff". */
	if (strchr(value, ':') && strncmp(value, ":mod:", 5) != 0) {
		return tdm_fail(
			err, TDM_ERR_PEER, "function \"%s\": commands are not served", value);
	}
	return add_setting(wish, file, value, true) ? TDM_OK : no_memory(err);
}

static enum tdm_status add_function(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	return add_function_file(wish, "set_ftrace_filter", value, err);
}

static enum tdm_status add_not_function(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	return add_function_file(wish, "set_ftrace_notrace", value, err);
}

static enum tdm_status add_graph_function(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	return add_function_file(wish, "set_graph_function", value, err);
}

static enum tdm_status set_stacktrace(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)value;
	return add_setting(wish, "options/stacktrace", "1", false) ? TDM_OK : no_memory(err);
}

static enum tdm_status set_function_stack(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)value;
	return add_setting(wish, "options/func_stack_trace", "1", false) ? TDM_OK : no_memory(err);
}

/* Options that change what an instance records, and nothing outside it. */
static enum tdm_status set_option(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	static const char *const known[] = { "overwrite", "stacktrace", "userstacktrace",
		"event-fork", "function-fork", "record-cmd", "record-tgid", "irq-info", "markers",
		"func_stack_trace", "funcgraph-*", "hash-ptr", "sym-*" };
	const bool off = strncmp(value, "no", 2) == 0;
	const char *name = value + (off ? 2 : 0);
	char *file = NULL;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strchr(name, '/') || fnmatch(known[i], name, 0) != 0) {
			continue;
		}
		if (asprintf(&file, "options/%s", name) < 0 || !keep(wish, file)) {
			return no_memory(err);
		}
		return add_setting(wish, file, off ? "0" : "1", false) ? TDM_OK : no_memory(err);
	}
	return tdm_fail(err, TDM_ERR_PEER, "trace option \"%s\" is not served", value);
}

static enum tdm_status set_cpumask(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	if (strcmp(value, "-1") == 0) {
		return TDM_OK;
	}
	if (!*value || value[strspn(value, "0123456789abcdefABCDEF,")]) {
		return tdm_fail(err, TDM_ERR_PEER, "\"-M %s\" is no mask of CPUs", value);
	}
	return add_setting(wish, "tracing_cpumask", value, false) ? TDM_OK : no_memory(err);
}

static enum tdm_status set_depth(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	if (!*value || value[strspn(value, "0123456789")]) {
		return tdm_fail(err, TDM_ERR_PEER, "\"--max-graph-depth %s\" is no number", value);
	}
	return add_setting(wish, "max_graph_depth", value, false) ? TDM_OK : no_memory(err);
}

static enum tdm_status set_version(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	if (strcmp(value, "6") != 0 && strcmp(value, "7") != 0) {
		return tdm_fail(err, TDM_ERR_PEER, "file version \"%s\": wanted 6 or 7", value);
	}
	wish->file_version = (unsigned int)(value[0] - '0');
	return TDM_OK;
}

static enum tdm_status add_pids(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	while (*value) {
		char *end = NULL;
		const long pid = strtol(value, &end, 10);
		int32_t *place;

		if (end == value || (*end && *end != ',') || pid <= 0 || pid > INT32_MAX) {
			return tdm_fail(err, TDM_ERR_PEER, "\"-P %s\" is no process id", value);
		}
		place = grow((void **)&wish->pids, &wish->pid_count, sizeof(*place));
		if (!place) {
			return no_memory(err);
		}
		*place = (int32_t)pid;
		value = *end ? end + 1 : end;
	}
	return TDM_OK;
}

static enum tdm_status follow(struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)value;
	(void)err;
	wish->follow_children = true;
	return TDM_OK;
}

static enum tdm_status allow_misses(
	struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)value;
	(void)err;
	wish->may_miss = true;
	return TDM_OK;
}

/* The host's own business, or of no meaning for an instance. */
static enum tdm_status pass(struct tracecmd_wish *wish, const char *value, struct tdm_error *err)
{
	(void)wish;
	(void)value;
	(void)err;
	return TDM_OK;
}

static const struct option_rule {
	char letter;
	const char *word;
	bool has_value;
	handler *handle;
} rules[] = {
	{ 'e', NULL, true, add_event },
	{ 'f', NULL, true, add_filter },
	{ 'v', NULL, false, exclude },
	{ 'C', NULL, true, set_clock },
	{ 'b', NULL, true, set_buffer },
	{ 'p', NULL, true, set_tracer },
	{ 'l', NULL, true, add_function },
	{ 'n', NULL, true, add_not_function },
	{ 'g', NULL, true, add_graph_function },
	{ 'T', NULL, false, set_stacktrace },
	{ 'O', NULL, true, set_option },
	{ 'M', NULL, true, set_cpumask },
	{ 'P', NULL, true, add_pids },
	{ 'c', NULL, false, follow },
	{ 'i', NULL, false, allow_misses },
	{ 0, "func-stack", false, set_function_stack },
	{ 0, "max-graph-depth", true, set_depth },
	{ 0, "file-version", true, set_version },
	/* Passed over. */
	{ 'a', NULL, false, pass },
	{ 'd', NULL, false, pass },
	{ 'D', NULL, false, pass },
	{ 'k', NULL, false, pass },
	{ 'q', "quiet", false, pass },
	{ 't', NULL, false, pass },
	{ 's', NULL, true, pass },
	{ 'r', NULL, true, pass },
	{ 'm', NULL, true, pass },
	{ 0, "date", false, pass },
	{ 0, "no-filter", false, pass },
	{ 0, "nosplice", false, pass },
	{ 0, "nofifos", false, pass },
	{ 0, "poll", false, pass },
	{ 0, "proc-map", false, pass },
	{ 0, "cmdlines-size", true, pass },
	{ 0, "compression", true, pass },
	{ 0, "tsync-interval", true, pass },
	{ 0, "ts-offset", true, pass },
};

static const struct option_rule *find_rule(const char *argument)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (argument[1] == '-') {
			const size_t length = strcspn(argument + 2, "=");

			if (rules[i].word && strlen(rules[i].word) == length &&
				memcmp(argument + 2, rules[i].word, length) == 0) {
				return &rules[i];
			}
		} else if (rules[i].letter && rules[i].letter == argument[1]) {
			return &rules[i];
		}
	}
	return NULL;
}

/* What follows the option in its own argument: "-esched", "--max-graph-depth=3"; NULL = nothing. */
static const char *attached_value(const char *argument)
{
	const char *equals = strchr(argument, '=');

	if (argument[1] == '-') {
		return equals ? equals + 1 : NULL;
	}
	return argument[2] ? argument + 2 : NULL;
}

static enum tdm_status parse_one(const char *const *arguments, size_t count, size_t *at,
	struct tracecmd_wish *wish, struct tdm_error *err)
{
	const char *argument = arguments[(*at)++];
	const struct option_rule *rule =
		argument[0] == '-' && argument[1] ? find_rule(argument) : NULL;
	const char *value = rule ? attached_value(argument) : NULL;

	if (!rule || (value && !rule->has_value)) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the host asks for \"%.100s\", which this agent does not serve", argument);
	}
	if (rule->has_value && !value) {
		value = *at < count ? arguments[(*at)++] : NULL;
	}
	if (rule->has_value && (!value || strlen(value) > MAX_TEXT)) {
		return tdm_fail(err, TDM_ERR_PEER,
			"the value of the host's option \"%.100s\" is missing or over %d bytes",
			argument, MAX_TEXT);
	}
	return rule->handle(wish, value, err);
}

enum tdm_status tracecmd_wish_parse(const char *const *arguments, size_t count,
	struct tracecmd_wish *wish, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	*wish = (struct tracecmd_wish){ .clock = "local", .file_version = 7 };
	for (size_t at = 0; at < count && status == TDM_OK;) {
		status = parse_one(arguments, count, &at, wish, err);
	}
	/* Behind the functions that it is to trace: else it would trace all of them for a moment. */
	if (status == TDM_OK && wish->tracer &&
		!add_setting(wish, "current_tracer", wish->tracer, false)) {
		status = no_memory(err);
	}
	if (status == TDM_OK && !wish->event_count && !wish->tracer) {
		status = tdm_fail(err, TDM_ERR_PEER, "the host asks for no event and no tracer");
	}
	return status;
}

void tracecmd_wish_release(struct tracecmd_wish *wish)
{
	for (size_t i = 0; i < wish->string_count; i++) {
		free(wish->strings[i]);
	}
	free(wish->strings);
	free(wish->events);
	free(wish->settings);
	free(wish->pids);
}
