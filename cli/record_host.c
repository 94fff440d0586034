/* SPDX-License-Identifier: MIT */
#include "record_host.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/clocks.h>
#include <unistd.h>

enum {
	MAX_WORKERS = 16,
	LIVE_MS = 100,
	POLL_MS = 200, /* rings are also looked at this often, full or not */
	WRITE_TIMEOUT_MS = 30000
};

/* One thread and the CPUs that are its own: cpu, cpu + workers, ... */
struct worker {
	struct record_host *host;
	unsigned int index;
	pthread_t thread;
	bool runs;
	struct pollfd *polls;
	void *page; /* for live */
};

struct record_host {
	struct tdm_tap *tap;
	struct record_spool *spool;
	bool live;
	enum tdm_clock clock;
	const struct tdm_log *log;
	struct tdm_trace_meta meta;
	struct tdm_ring **rings; /* NULL for a CPU that is offline */
	uint32_t cpu_count;
	unsigned int worker_count;
	struct worker workers[MAX_WORKERS];
	atomic_bool stopping;
	_Atomic uint64_t bytes;
	pthread_mutex_t failure_lock;
	struct tdm_error failure; /* the first one; status TDM_OK while there is none */
	struct record_host_counts counts;
};

static void note_failure(struct record_host *host, const struct tdm_error *err)
{
	pthread_mutex_lock(&host->failure_lock);
	if (host->failure.status == TDM_OK) {
		host->failure = *err;
	}
	pthread_mutex_unlock(&host->failure_lock);
}

/* Moves the full pages of a CPU; false once its spool refuses them. */
static bool move_full_pages(struct record_host *host, uint32_t cpu)
{
	struct tdm_error err = { 0 };
	uint64_t moved_bytes = 0;
	const enum tdm_status status = tdm_ring_move(host->rings[cpu],
		record_spool_fd(host->spool, cpu), WRITE_TIMEOUT_MS, &moved_bytes, &err);

	atomic_fetch_add(&host->bytes, moved_bytes);
	if (status != TDM_OK) {
		note_failure(host, &err);
	}
	return status == TDM_OK;
}

static enum tdm_status write_page(
	struct record_host *host, uint32_t cpu, const void *page, struct tdm_error *err)
{
	const uint32_t page_bytes = tdm_tap_page_bytes(host->tap);
	ssize_t done;

	do {
		done = write(record_spool_fd(host->spool, cpu), page, page_bytes);
	} while (done < 0 && errno == EINTR);
	if (done != (ssize_t)page_bytes) {
		return tdm_fail_errno(err, done < 0 ? errno : ENOSPC,
			"pages of CPU %" PRIu32 " of the host", cpu);
	}
	atomic_fetch_add(&host->bytes, page_bytes);
	return TDM_OK;
}

/* The pages that are not full. */
static enum tdm_status drain_ring(
	struct record_host *host, uint32_t cpu, void *page, struct tdm_error *err)
{
	enum tdm_status status;

	while ((status = tdm_ring_read(host->rings[cpu], page, err)) == TDM_OK) {
		status = write_page(host, cpu, page, err);
		if (status != TDM_OK) {
			return status;
		}
	}
	return status == TDM_AGAIN ? TDM_OK : status;
}

/* For viewers: everything up to now, and that it is everything. */
static bool move_up_to_now(struct record_host *host, uint32_t cpu, void *page)
{
	const uint64_t now = tdm_clock_read(host->clock);
	struct tdm_error err = { 0 };
	enum tdm_status status = drain_ring(host, cpu, page, &err);

	if (status == TDM_OK && now) {
		tdm_ring_empty_page(host->rings[cpu], page, now);
		status = write_page(host, cpu, page, &err);
	}
	if (status != TDM_OK) {
		note_failure(host, &err);
	}
	return status == TDM_OK;
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	struct record_host *host = worker->host;
	unsigned int count = 0;

	for (uint32_t cpu = worker->index; cpu < host->cpu_count; cpu += host->worker_count) {
		if (host->rings[cpu]) {
			worker->polls[count++] =
				(struct pollfd){ .fd = tdm_ring_poll_fd(host->rings[cpu]),
					.events = POLLIN };
		}
	}
	while (!atomic_load(&host->stopping)) {
		/* Woken by the kernel when a ring is half full, never for each event; else by the clock. */
		poll(worker->polls, count, host->live ? LIVE_MS : POLL_MS);
		for (uint32_t cpu = worker->index; cpu < host->cpu_count;
			cpu += host->worker_count) {
			if (host->rings[cpu] &&
				(!move_full_pages(host, cpu) ||
					(host->live && !move_up_to_now(host, cpu, worker->page)))) {
				return NULL;
			}
		}
	}
	return NULL;
}

static enum tdm_status open_rings(struct record_host *host, struct tdm_error *err)
{
	uint32_t opened = 0;

	host->cpu_count = tdm_tap_cpu_count(host->tap);
	host->rings = calloc(host->cpu_count ? host->cpu_count : 1, sizeof(*host->rings));
	if (!host->rings) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for rings");
	}
	for (uint32_t cpu = 0; cpu < host->cpu_count; cpu++) {
		host->rings[cpu] = tdm_ring_open(host->tap, cpu, err);
		opened += host->rings[cpu] != NULL;
	}
	return opened ? TDM_OK : TDM_ERR_IO;
}

static enum tdm_status make_workers(struct record_host *host, struct tdm_error *err)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int count = online < 1 ? 1 : (unsigned int)online;

	count = count > MAX_WORKERS ? MAX_WORKERS : count;
	count = count > host->cpu_count ? host->cpu_count : count;
	host->worker_count = count;
	for (unsigned int i = 0; i < count; i++) {
		host->workers[i] = (struct worker){
			.host = host,
			.index = i,
			.polls = calloc(host->cpu_count / count + 1, sizeof(struct pollfd)),
			.page = malloc(tdm_tap_page_bytes(host->tap)),
		};
		if (!host->workers[i].polls || !host->workers[i].page) {
			return tdm_fail(err, TDM_ERR_NOMEM, "no memory for recording threads");
		}
	}
	return TDM_OK;
}

enum tdm_status record_host_create(const struct tdm_tap_options *options, bool kallsyms, bool live,
	struct record_spool *spool, const struct tdm_log *log, struct record_host **host,
	struct tdm_error *err)
{
	struct record_host *made = calloc(1, sizeof(*made));

	if (!made) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for a recorder");
	}
	made->spool = spool;
	made->live = live;
	if (tdm_clock_by_name(options->clock, &made->clock, NULL) != TDM_OK) {
		made->clock = TDM_CLOCK_MARKER;
	}
	made->log = log;
	pthread_mutex_init(&made->failure_lock, NULL);

	enum tdm_status status = tdm_tap_create(options, log, &made->tap, err);

	if (status == TDM_OK) {
		status = tdm_tap_collect(made->tap, kallsyms, &made->meta, err);
	}
	/* Also now, though it is only complete at the end: for --finish after we were killed. */
	if (status == TDM_OK) {
		status = tdm_tap_collect_end(made->tap, &made->meta, err);
	}
	if (status == TDM_OK) {
		status = open_rings(made, err);
	}
	if (status == TDM_OK) {
		status = make_workers(made, err);
	}
	if (status == TDM_OK) {
		status = record_spool_set_cpus(spool, made->cpu_count, err);
	}
	if (status == TDM_OK) {
		status = record_spool_save_meta(spool, &made->meta, err);
	}
	if (status != TDM_OK) {
		record_host_destroy(made);
		return status;
	}
	*host = made;
	return TDM_OK;
}

enum tdm_status record_host_start(struct record_host *host, struct tdm_error *err)
{
	for (unsigned int i = 0; i < host->worker_count; i++) {
		struct worker *worker = &host->workers[i];
		const int failure = pthread_create(&worker->thread, NULL, run_worker, worker);

		if (failure) {
			return tdm_fail_errno(err, failure, "starting a recording thread");
		}
		worker->runs = true;
	}
	return tdm_tap_start(host->tap, err);
}

enum tdm_status record_host_add_pid(struct record_host *host, int32_t pid, struct tdm_error *err)
{
	return tdm_tap_add_pid(host->tap, pid, err);
}

bool record_host_tasks_ended(const struct record_host *host)
{
	return tdm_tap_tasks_ended(host->tap);
}

uint64_t record_host_bytes(const struct record_host *host)
{
	return atomic_load(&host->bytes);
}

bool record_host_failed(struct record_host *host, struct tdm_error *err)
{
	pthread_mutex_lock(&host->failure_lock);

	const bool failed = host->failure.status != TDM_OK;

	if (failed && err) {
		*err = host->failure;
	}
	pthread_mutex_unlock(&host->failure_lock);
	return failed;
}

static void sum_counts(struct record_host *host)
{
	for (uint32_t cpu = 0; cpu < host->cpu_count; cpu++) {
		struct tdm_tap_stats stats = { 0 };

		if (tdm_tap_get_stats(host->tap, cpu, &stats, NULL) == TDM_OK) {
			host->counts.overrun_events += stats.overrun_events;
			host->counts.dropped_events += stats.dropped_events;
		}
	}
}

enum tdm_status record_host_stop(struct record_host *host, struct tdm_error *err)
{
	void *page = malloc(tdm_tap_page_bytes(host->tap));
	enum tdm_status status = tdm_tap_stop(host->tap, err);

	atomic_store(&host->stopping, true);
	for (unsigned int i = 0; i < host->worker_count; i++) {
		if (host->workers[i].runs) {
			pthread_join(host->workers[i].thread, NULL);
			host->workers[i].runs = false;
		}
	}
	for (uint32_t cpu = 0; cpu < host->cpu_count; cpu++) {
		struct tdm_error reason = { 0 };

		if (!host->rings[cpu] || record_host_failed(host, NULL) || !page) {
			continue;
		}
		if (!move_full_pages(host, cpu)) {
			continue;
		}
		if (drain_ring(host, cpu, page, &reason) != TDM_OK) {
			note_failure(host, &reason);
		}
	}
	free(page);
	sum_counts(host);
	if (status == TDM_OK) {
		status = tdm_tap_collect_end(host->tap, &host->meta, err);
	}
	if (status == TDM_OK) {
		status = record_spool_save_meta(host->spool, &host->meta, err);
	}
	return status;
}

struct record_host_counts record_host_get_counts(const struct record_host *host)
{
	return host->counts;
}

void record_host_destroy(struct record_host *host)
{
	if (!host) {
		return;
	}
	atomic_store(&host->stopping, true);
	for (unsigned int i = 0; i < host->worker_count; i++) {
		if (host->workers[i].runs) {
			pthread_join(host->workers[i].thread, NULL);
		}
		free(host->workers[i].polls);
		free(host->workers[i].page);
	}
	for (uint32_t cpu = 0; host->rings && cpu < host->cpu_count; cpu++) {
		tdm_ring_close(host->rings[cpu]);
	}
	free(host->rings);
	tdm_tap_destroy(host->tap);
	tdm_trace_meta_release(&host->meta);
	pthread_mutex_destroy(&host->failure_lock);
	free(host);
}
