/* SPDX-License-Identifier: MIT */
#include "record_tracecmd.h"
#include "out_dir.h"
#include "run_command.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <tandem/clocks.h>
#include <tandem/socket.h>
#include <tandem/text.h>
#include <unistd.h>

enum {
	TIMEOUT_MS = 30000,
	POLL_MS = 500,
	DRAIN_MS = 60000,
	END_SERIES = 3, /* at the start and at the end; each gives one usable reading */
	SERIES_PERIOD_MS = 5000,
	DEFAULT_BUFFER_KIB = 4096, /* as ours */
	BLOCK_BYTES = 1 << 18
};

struct record_tracecmd {
	struct record_tracecmd_options options;
	enum tdm_clock clock;
	struct tdm_tracecmd *session;
	struct record_spool *spool;
	struct tdm_exchange_log *log;
	uint64_t sequence;
	int *page_fds; /* -1 once a CPU is done */
	uint32_t cpu_count;
	struct pollfd *polls;
	pthread_t page_thread, sync_thread;
	bool pages_run, sync_runs;
	int stop_fd; /* eventfd: readable once the stop was asked for */
	atomic_bool stopping;
	_Atomic uint64_t bytes;
	struct tdm_error failure; /* of the page thread; read after it was joined */
	uint8_t *block;
};

static uint64_t read_clock(void *user)
{
	const struct record_tracecmd *guest = user;

	return tdm_clock_read(guest->clock);
}

/* One series; its best probe becomes an exchange, bounded by its neighbours. */
static enum tdm_status run_series(struct record_tracecmd *guest, struct tdm_error *err)
{
	struct tdm_tracecmd_series *series = malloc(sizeof(*series));
	enum tdm_status status =
		series ? tdm_tracecmd_sync(guest->session, 0, read_clock, guest, series, err)
		       : tdm_fail(err, TDM_ERR_NOMEM, "no memory for probes");

	if (status == TDM_OK && series->has_best) {
		const uint64_t mid = (uint64_t)series->guest_mid;
		const struct tdm_exchange_record record = {
			.seq = guest->sequence,
			.trace = {
				.host_sent = series->host_least,
				.guest_got = mid,
				.guest_sent = mid,
				.host_got = series->host_most,
			},
		};

		if (tdm_exchange_log_add(guest->log, &record) != TDM_OK) {
			status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for exchanges");
		}
	}
	guest->sequence++;
	free(series);
	return status;
}

static enum tdm_status run_some_series(
	struct record_tracecmd *guest, unsigned int count, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;

	for (unsigned int i = 0; i < count && status == TDM_OK; i++) {
		status = run_series(guest, err);
	}
	return status;
}

/* What "trace-cmd record" would have been told. Pointers into the options. */
static const char **make_arguments(
	const struct record_tracecmd_options *options, char *buffer_kib, size_t *count)
{
	const char **arguments = calloc(options->events->count * 4 + 4, sizeof(*arguments));

	*count = 0;
	if (!arguments) {
		return NULL;
	}
	arguments[(*count)++] = "-C";
	arguments[(*count)++] = options->clock;
	arguments[(*count)++] = "-b";
	arguments[(*count)++] = buffer_kib;
	for (size_t i = 0; i < options->events->count; i++) {
		arguments[(*count)++] = "-e";
		arguments[(*count)++] = options->events->items[i].pattern;
		if (options->events->items[i].filter) {
			arguments[(*count)++] = "-f";
			arguments[(*count)++] = options->events->items[i].filter;
		}
	}
	return arguments;
}

static enum tdm_status open_session(struct record_tracecmd *guest, struct tdm_error *err)
{
	const struct record_tracecmd_options *options = &guest->options;
	char buffer_kib[16];
	size_t count = 0;

	/* Left alone, that agent records into the 7 KiB that a kernel begins with. */
	snprintf(buffer_kib, sizeof(buffer_kib), "%" PRIu32,
		options->buffer_kib ? options->buffer_kib : DEFAULT_BUFFER_KIB);

	const char **arguments = make_arguments(options, buffer_kib, &count);

	if (!arguments) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a request");
	}

	const struct tdm_tracecmd_options session_options = {
		.address = options->address,
		.trace_id = options->host_ties->trace_id,
		.arguments = arguments,
		.argument_count = count,
		.sync = guest->clock != TDM_CLOCK_MARKER,
		.timeout_ms = TIMEOUT_MS,
		.stop_fd = options->interrupt_fd,
	};

	guest->session = tdm_tracecmd_open(&session_options, options->log, err);
	free(arguments);
	return guest->session ? TDM_OK : err->status;
}

static enum tdm_status prepare_spool(struct record_tracecmd *guest, struct tdm_error *err)
{
	const struct tdm_tracecmd_info info = tdm_tracecmd_get_info(guest->session);
	struct record_ties ties = *guest->options.host_ties;
	struct tdm_buffer texts = { 0 };
	enum tdm_status status = tdm_tracecmd_receive_texts(guest->session, &texts, err);

	ties.trace_id = info.trace_id;
	ties.host_trace_id = guest->options.host_ties->trace_id;
	if (status == TDM_OK) {
		guest->spool = record_spool_create(
			guest->options.dir, guest->options.name, &ties, guest->options.force, err);
		status = guest->spool ? TDM_OK : err->status;
	}
	if (status == TDM_OK) {
		status = record_spool_set_cpus(guest->spool, info.cpu_count, err);
	}
	if (status == TDM_OK) {
		status = record_spool_save_prefix(guest->spool, &texts, err);
	}
	tdm_buffer_release(&texts);
	return status;
}

static enum tdm_status connect_pages(struct record_tracecmd *guest, struct tdm_error *err)
{
	guest->cpu_count = tdm_tracecmd_get_info(guest->session).cpu_count;
	guest->page_fds = malloc(guest->cpu_count * sizeof(*guest->page_fds));
	guest->polls = calloc(guest->cpu_count, sizeof(*guest->polls));
	guest->block = malloc(BLOCK_BYTES);
	if (!guest->page_fds || !guest->polls || !guest->block) {
		guest->cpu_count = 0;
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for pages");
	}
	for (uint32_t cpu = 0; cpu < guest->cpu_count; cpu++) {
		guest->page_fds[cpu] = -1;
	}

	enum tdm_status status = TDM_OK;

	for (uint32_t cpu = 0; cpu < guest->cpu_count && status == TDM_OK; cpu++) {
		status =
			tdm_tracecmd_connect_pages(guest->session, cpu, &guest->page_fds[cpu], err);
	}
	return status;
}

enum tdm_status record_tracecmd_create(const struct record_tracecmd_options *options,
	struct record_tracecmd **guest, struct tdm_error *err)
{
	struct record_tracecmd *made = calloc(1, sizeof(*made));
	enum tdm_status status = TDM_OK;

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a guest");
	}
	made->options = *options;
	made->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	made->log = tdm_exchange_log_create();
	if (!made->log) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "no memory for exchanges");
	}
	if (status == TDM_OK) {
		status = tdm_clock_by_name(options->clock, &made->clock, err);
	}
	if (status == TDM_OK) {
		status = open_session(made, err);
	}
	/* The agent waits for one before it does anything else; the others of the start come while it records. */
	if (status == TDM_OK && tdm_tracecmd_get_info(made->session).syncs) {
		status = run_series(made, err);
	}
	if (status == TDM_OK) {
		status = prepare_spool(made, err);
	}
	if (status == TDM_OK) {
		status = connect_pages(made, err);
	}
	if (status != TDM_OK) {
		if (made->spool) {
			record_spool_remove(made->spool);
		}
		record_tracecmd_destroy(made);
		return tdm_error_prefix(err, "guest \"%s\"", options->name);
	}
	*guest = made;
	return TDM_OK;
}

static void note_failure(struct record_tracecmd *guest, const struct tdm_error *err)
{
	if (guest->failure.status == TDM_OK) {
		guest->failure = *err;
	}
}

static enum tdm_status write_block(
	struct record_tracecmd *guest, uint32_t cpu, size_t count, struct tdm_error *err)
{
	const int fd = record_spool_fd(guest->spool, cpu);

	for (size_t written = 0; written < count;) {
		const ssize_t done = write(fd, guest->block + written, count - written);

		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return tdm_fail_errno(err, done < 0 ? errno : ENOSPC,
				"writing pages of guest CPU %" PRIu32, cpu);
		}
		written += (size_t)done;
	}
	guest->bytes += count;
	return TDM_OK;
}

/* What one CPU's connection has; closes it when it is done. */
static void receive_pages(struct record_tracecmd *guest, uint32_t cpu)
{
	struct tdm_error err = { 0 };
	size_t got = 0;
	enum tdm_status status =
		tdm_socket_receive(guest->page_fds[cpu], guest->block, BLOCK_BYTES, &got, &err);

	if (status == TDM_OK) {
		status = write_block(guest, cpu, got, &err);
	}
	if (status == TDM_OK || status == TDM_AGAIN) {
		return;
	}
	if (status == TDM_END && !guest->stopping) {
		status = tdm_fail(&err, TDM_ERR_PEER,
			"the agent closed the pages of CPU %" PRIu32 " while it was recorded", cpu);
	}
	if (status != TDM_END) {
		note_failure(guest, &err);
	}
	close(guest->page_fds[cpu]);
	guest->page_fds[cpu] = -1;
}

static unsigned int fill_polls(struct record_tracecmd *guest)
{
	unsigned int count = 0;

	for (uint32_t cpu = 0; cpu < guest->cpu_count; cpu++) {
		guest->polls[cpu] = (struct pollfd){ .fd = guest->page_fds[cpu], .events = POLLIN };
		count += guest->page_fds[cpu] >= 0;
	}
	return count;
}

static void *run_pages(void *user)
{
	struct record_tracecmd *guest = user;
	unsigned int silent_ms = 0;
	bool is_given_up = false;

	while (fill_polls(guest) && silent_ms < DRAIN_MS && !is_given_up) {
		const int ready = poll(guest->polls, guest->cpu_count, POLL_MS);

		silent_ms = ready > 0 || !guest->stopping ? 0 : silent_ms + POLL_MS;
		for (uint32_t cpu = 0; ready > 0 && cpu < guest->cpu_count; cpu++) {
			if (guest->page_fds[cpu] >= 0 && guest->polls[cpu].revents) {
				receive_pages(guest, cpu);
			}
		}
		is_given_up = silent_ms && run_command_interrupt_waits(guest->options.interrupt_fd);
	}
	if (is_given_up) {
		struct tdm_error err;

		tdm_fail(&err, TDM_ERR_PEER, "interrupted: its last pages were not waited for");
		note_failure(guest, &err);
	} else if (silent_ms >= DRAIN_MS) {
		struct tdm_error err;

		tdm_fail(&err, TDM_ERR_PEER, "the agent sent no pages for %d s after the stop",
			DRAIN_MS / 1000);
		note_failure(guest, &err);
	}
	return NULL;
}

/* Probes now and then, and the last ones once the stop was asked for: the agent answers while it flushes. */
static void *run_sync(void *user)
{
	struct record_tracecmd *guest = user;
	struct pollfd stop = { .fd = guest->stop_fd, .events = POLLIN };
	struct tdm_error err = { 0 };
	enum tdm_status status = run_some_series(guest, END_SERIES - 1, &err);

	while (status == TDM_OK && !guest->stopping) {
		if (poll(&stop, 1, SERIES_PERIOD_MS) == 0) {
			status = run_series(guest, &err);
		}
	}
	if (status == TDM_OK) {
		status = run_some_series(guest, END_SERIES, &err);
	}
	if (status != TDM_OK) {
		TDM_WARNING(guest->options.log, "guest \"%s\": probes ended: %s",
			guest->options.name, err.text);
	}
	return NULL;
}

enum tdm_status record_tracecmd_start(struct record_tracecmd *guest, struct tdm_error *err)
{
	int failure = pthread_create(&guest->page_thread, NULL, run_pages, guest);

	guest->pages_run = failure == 0;
	if (!failure && tdm_tracecmd_get_info(guest->session).syncs) {
		failure = pthread_create(&guest->sync_thread, NULL, run_sync, guest);
		guest->sync_runs = failure == 0;
	}
	return failure ? tdm_fail_errno(err, failure, "starting a thread for guest \"%s\"",
				 guest->options.name)
		       : TDM_OK;
}

void record_tracecmd_ask_stop(struct record_tracecmd *guest)
{
	const uint64_t one = 1;
	struct tdm_error err;

	guest->stopping = true;
	if (tdm_tracecmd_stop(guest->session, &err) != TDM_OK) {
		TDM_WARNING(guest->options.log, "guest \"%s\": %s", guest->options.name, err.text);
	}
	(void)!write(guest->stop_fd, &one, sizeof(one));
}

static void join(struct record_tracecmd *guest)
{
	if (guest->sync_runs) {
		pthread_join(guest->sync_thread, NULL);
		guest->sync_runs = false;
	}
	if (guest->pages_run) {
		pthread_join(guest->page_thread, NULL);
		guest->pages_run = false;
	}
}

/* A text under DIR/NAMESUFFIX, as a whole or not at all. */
static bool write_text(
	const struct record_tracecmd *guest, const char *suffix, const struct tdm_buffer *text)
{
	char *path = out_dir_path(guest->options.dir, guest->options.name, suffix);
	const bool done =
		path && tdm_text_write_file(path, text->bytes, text->size, NULL) == TDM_OK;

	free(path);
	return done;
}

static void write_clock(struct record_tracecmd *guest, struct record_tracecmd_result *result)
{
	const bool is_tsc = guest->clock == TDM_CLOCK_TSC;
	const struct tdm_exchange_log_info info = {
		.host_clock = guest->options.clock,
		.guest_clock = guest->options.clock,
		.host_unit_hz = is_tsc ? 0 : 1000000000,
		.guest_unit_hz = is_tsc ? 0 : 1000000000,
		.rate_ppb = 100,
	};
	struct tdm_timeline *timeline = NULL;
	struct tdm_buffer text = { 0 };
	struct tdm_error err = { 0 };

	if (!is_tsc) {
		tdm_exchange_log_set_info(guest->log, &info, NULL);
	}
	if (tdm_exchange_log_write(guest->log, &text) != TDM_OK ||
		!write_text(guest, ".exchanges", &text)) {
		TDM_WARNING(guest->options.log, "guest \"%s\": the exchanges cannot be written",
			guest->options.name);
	}
	text.size = 0;
	if (tdm_estimate(guest->log, &timeline, &result->quality, &err) != TDM_OK) {
		TDM_WARNING(guest->options.log, "guest \"%s\": %s", guest->options.name, err.text);
	} else {
		result->has_clock = tdm_timeline_write(timeline, &text) == TDM_OK &&
				    write_text(guest, ".corrections", &text);
	}
	tdm_timeline_destroy(timeline);
	tdm_buffer_release(&text);
}

struct record_tracecmd_result record_tracecmd_wait(struct record_tracecmd *guest)
{
	struct record_tracecmd_result result = { 0 };
	struct tdm_error err = { 0 };

	join(guest);
	if (guest->failure.status == TDM_OK &&
		tdm_tracecmd_finish(guest->session, &err) != TDM_OK) {
		note_failure(guest, &err);
	}
	if (guest->sequence) {
		write_clock(guest, &result);
	}
	result.failure = guest->failure;
	result.received_bytes = guest->bytes;
	return result;
}

uint64_t record_tracecmd_bytes(const struct record_tracecmd *guest)
{
	return guest->bytes;
}

struct record_spool *record_tracecmd_spool(struct record_tracecmd *guest)
{
	return guest->spool;
}

void record_tracecmd_destroy(struct record_tracecmd *guest)
{
	if (!guest) {
		return;
	}
	if (guest->pages_run || guest->sync_runs) {
		record_tracecmd_ask_stop(guest);
		join(guest);
	}
	for (uint32_t cpu = 0; cpu < guest->cpu_count; cpu++) {
		if (guest->page_fds[cpu] >= 0) {
			close(guest->page_fds[cpu]);
		}
	}
	tdm_tracecmd_destroy(guest->session);
	tdm_exchange_log_destroy(guest->log);
	record_spool_close(guest->spool);
	if (guest->stop_fd >= 0) {
		close(guest->stop_fd);
	}
	free(guest->page_fds);
	free(guest->polls);
	free(guest->block);
	free(guest);
}
