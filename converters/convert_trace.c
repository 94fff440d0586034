/* SPDX-License-Identifier: MIT */
/*
 * convert_trace.c - the course of a conversion: plan each machine, copy its CPUs in parallel, then what is known last.
 */
#include "convert_priv.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRESS_MS 200

/* All CPUs of all machines, and the threads that take them in turn. */
struct crew {
	struct tdm_cpu_job *jobs;
	size_t job_count;
	_Atomic size_t next, done;
	_Atomic uint64_t event_count;
	_Atomic int failed;
	pthread_mutex_t lock;
	pthread_cond_t ended; /* a job ended */
};

void tdm_convert_report_release(struct tdm_convert_report *report)
{
	free(report->path);
	*report = (struct tdm_convert_report){ 0 };
}

static void *work(void *user)
{
	struct crew *const crew = user;

	for (;;) {
		const size_t at = atomic_fetch_add(&crew->next, 1);

		if (at >= crew->job_count) {
			return NULL;
		}
		if (!atomic_load(&crew->failed)) {
			tdm_cpu_job_run(&crew->jobs[at]);
		} else {
			crew->jobs[at].status = TDM_END;
		}
		if (crew->jobs[at].status != TDM_OK) {
			atomic_store(&crew->failed, 1);
		}
		pthread_mutex_lock(&crew->lock);
		atomic_fetch_add(&crew->done, 1);
		pthread_cond_signal(&crew->ended);
		pthread_mutex_unlock(&crew->lock);
	}
}

static unsigned int core_count(void)
{
	const long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count < 1 ? 1 : count > 256 ? 256 : (unsigned int)count;
}

/* Runs the jobs; this thread tells the progress. */
static enum tdm_status run_crew(
	struct crew *crew, const struct tdm_convert_options *options, struct tdm_error *err)
{
	const size_t wanted = options->thread_count ? options->thread_count : core_count();
	const size_t count = wanted < crew->job_count ? wanted : crew->job_count;
	pthread_t *const threads = calloc(count + 1, sizeof(*threads));
	size_t started = 0;
	size_t done = 0;

	if (!threads) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for threads");
	}
	while (started < count && pthread_create(&threads[started], NULL, work, crew) == 0) {
		started++;
	}
	if (started == 0) {
		work(crew);
	}
	pthread_mutex_lock(&crew->lock);
	while (started && done < crew->job_count) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PROGRESS_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&crew->ended, &crew->lock, &until);
		done = atomic_load(&crew->done);
		if (options->progress) {
			options->progress(options->user, atomic_load(&crew->event_count), done,
				crew->job_count);
		}
	}
	pthread_mutex_unlock(&crew->lock);
	for (size_t i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
	}
	free(threads);
	for (size_t i = 0; i < crew->job_count; i++) {
		const struct tdm_cpu_job *const job = &crew->jobs[i];

		if (job->status != TDM_OK && job->status != TDM_END) {
			if (err) {
				*err = job->error;
				err->status = job->status;
			}
			return job->status;
		}
	}
	return atomic_load(&crew->failed) ? TDM_END : TDM_OK;
}

/* Adds the jobs of one machine, one for each CPU that has a stream. */
static void add_jobs(struct crew *crew, struct tdm_convert_machine *conversion)
{
	const struct tdm_trace_info *const info = conversion->info;
	const size_t first = crew->job_count;

	for (size_t i = 0; i < info->stream_count; i++) {
		const uint32_t cpu = info->streams[i].cpu;
		struct tdm_cpu_job *job = NULL;

		if (!tdm_selection_has_cpu(&conversion->options->selection, cpu)) {
			continue;
		}
		for (size_t j = first; j < crew->job_count && !job; j++) {
			job = crew->jobs[j].cpu == cpu ? &crew->jobs[j] : NULL;
		}
		if (!job) {
			job = &crew->jobs[crew->job_count++];
			job->conversion = conversion;
			job->cpu = cpu;
			job->stream.fd = -1;
			job->event_counter = &crew->event_count;
			job->failed = &crew->failed;
		}
		job->data_bytes += info->streams[i].data_bytes;
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct tdm_cpu_job *const x = a;
	const struct tdm_cpu_job *const y = b;

	if (x->data_bytes != y->data_bytes) {
		return x->data_bytes > y->data_bytes ? -1 : 1;
	}
	if (x->conversion->index != y->conversion->index) {
		return x->conversion->index < y->conversion->index ? -1 : 1;
	}
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* The job of a machine whose file starts with the state dump: its lowest CPU, of those with events if asked. */
static struct tdm_cpu_job *head_job(
	struct crew *crew, const struct tdm_convert_machine *conversion, bool with_events)
{
	struct tdm_cpu_job *head = NULL;

	for (size_t i = 0; i < crew->job_count; i++) {
		struct tdm_cpu_job *const job = &crew->jobs[i];

		if (job->conversion == conversion && (!head || job->cpu < head->cpu) &&
			(with_events ? job->events + job->synthetic > 0 : job->data_bytes > 0)) {
			head = job;
		}
	}
	return head;
}

static void add_results(struct crew *crew, struct tdm_convert_machine *conversion)
{
	struct tdm_convert_report *const report = conversion->report;
	const enum tdm_tie tie = conversion->machine->tie;

	report->bound_ns =
		conversion->machine->corrections || tie == TDM_TIE_SELF || tie == TDM_TIE_SAME ? 0
											       : -1;
	for (size_t i = 0; i < crew->job_count; i++) {
		const struct tdm_cpu_job *const job = &crew->jobs[i];

		if (job->conversion != conversion) {
			continue;
		}
		report->records += job->records;
		report->events += job->events;
		report->synthetic += job->synthetic;
		report->left_out += job->left_out;
		report->lost += job->lost;
		report->lost_unknown += job->lost_unknown;
		report->unreadable_pages += job->unreadable_pages;
		report->unreadable_bytes += job->unreadable_bytes;
		report->unconverted += job->unconverted;
		report->bad_fields += job->bad_fields;
		report->clamped += job->clamped;
		report->out_of_range += job->out_of_range;
		if (conversion->machine->corrections && (int64_t)job->bound_ns > report->bound_ns) {
			report->bound_ns = (int64_t)job->bound_ns;
		}
		report->cpu_count += job->events + job->synthetic > 0;
		if (job->events) {
			tdm_selection_note_cpu(&conversion->options->selection, job->cpu);
		}
	}
	tdm_convert_machine_note_used(conversion);
}

/* What is known when all CPUs are done: the state dump, the metadata. */
static enum tdm_status finish_machine(
	struct crew *crew, struct tdm_convert_machine *conversion, struct tdm_error *err)
{
	struct tdm_cpu_job *const head = head_job(crew, conversion, true);
	enum tdm_status status = TDM_OK;

	for (size_t i = 0; i < conversion->sync_count; i++) {
		conversion->made_up_used[TDM_MADE_VMSYNC_GH_HOST] |= conversion->syncs[i].is_set;
	}
	if (conversion->options->synthetic && head) {
		for (size_t i = 0; i < crew->job_count && status == TDM_OK; i++) {
			if (crew->jobs[i].conversion == conversion) {
				status = tdm_task_census_merge(
					&conversion->census, &crew->jobs[i].census);
			}
		}
		if (status == TDM_OK) {
			status = tdm_put_state_dump(conversion, head, err);
		} else {
			tdm_fail(err, status, "no memory for the state dump");
		}
	}
	return status == TDM_OK ? tdm_convert_machine_write_metadata(conversion, err) : status;
}

enum tdm_status tdm_plan_machines(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_convert_report *reports, struct tdm_convert_machine *conversions,
	struct tdm_error *err)
{
	const size_t count = tdm_machines_count(machines);

	for (size_t i = 0; i < count; i++) {
		conversions[i].dir.lock_fd = -1;
	}
	for (size_t i = 0; i < count; i++) {
		struct tdm_convert_machine *const conversion = &conversions[i];
		const struct tdm_machine *const machine = tdm_machines_at(machines, i);
		enum tdm_status status;

		conversion->index = i;
		conversion->machine = machine;
		conversion->trace = machine->trace;
		conversion->info = tdm_trace_get_info(machine->trace);
		conversion->schema = tdm_trace_get_schema(machine->trace);
		conversion->options = options;
		conversion->log = log;
		conversion->report = &reports[i];
		conversion->dir.lock_fd = -1;
		reports[i].machine = machine;
		status = tdm_convert_machine_plan(conversion, err);
		if (status == TDM_OK) {
			status = tdm_machine_find_start(machine, &conversion->start, err);
		}
		if (status != TDM_OK) {
			return status;
		}
	}
	tdm_convert_machine_set_bias(conversions, count);
	return TDM_OK;
}

static enum tdm_status copy_machines(struct crew *crew, struct tdm_convert_machine *conversions,
	size_t count, const struct tdm_convert_options *options, struct tdm_error *err)
{
	enum tdm_status status = TDM_OK;
	size_t stream_count = 0;

	for (size_t i = 0; i < count; i++) {
		stream_count += conversions[i].info->stream_count;
	}
	crew->jobs = calloc(stream_count + 1, sizeof(*crew->jobs));
	if (!crew->jobs) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu streams", stream_count);
	}
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		status = tdm_ctf_dir_begin(&conversions[i].dir, options->out_dir,
			conversions[i].machine->name, options->force, err);
		add_jobs(crew, &conversions[i]);
		if (options->synthetic && head_job(crew, &conversions[i], false)) {
			head_job(crew, &conversions[i], false)->head_bytes =
				tdm_state_dump_estimate(&conversions[i]);
		}
	}
	if (status != TDM_OK) {
		return status;
	}
	qsort(crew->jobs, crew->job_count, sizeof(*crew->jobs), longest_first);
	status = run_crew(crew, options, err);
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		add_results(crew, &conversions[i]);
		status = finish_machine(crew, &conversions[i], err);
		conversions[i].report->synthetic = 0;
		for (size_t j = 0; j < crew->job_count; j++) {
			if (crew->jobs[j].conversion == &conversions[i]) {
				conversions[i].report->synthetic += crew->jobs[j].synthetic;
			}
		}
	}
	if (status == TDM_OK && options->stop && *options->stop) {
		return TDM_END;
	}
	for (size_t i = 0; i < count && status == TDM_OK; i++) {
		status = tdm_ctf_dir_commit(&conversions[i].dir, err);
		conversions[i].report->path =
			status == TDM_OK ? strdup(conversions[i].dir.final_path) : NULL;
	}
	return status;
}

enum tdm_status tdm_convert_run(struct tdm_machines *machines,
	const struct tdm_convert_options *options, const struct tdm_log *log,
	struct tdm_convert_report *reports, struct tdm_error *err)
{
	const size_t count = tdm_machines_count(machines);
	struct tdm_convert_machine *const conversions = calloc(count + 1, sizeof(*conversions));
	struct crew crew = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
	enum tdm_status status;

	memset(reports, 0, count * sizeof(*reports));
	if (!conversions) {
		return tdm_fail(err, TDM_ERR_NOMEM, "no memory for %zu machines", count);
	}
	status = tdm_plan_machines(machines, options, log, reports, conversions, err);
	if (status == TDM_OK && options->synthetic) {
		status = tdm_find_vcpus(conversions, count, err);
		if (status == TDM_OK) {
			status = tdm_plan_sync_pairs(conversions, count, err);
		}
	}
	if (status == TDM_OK) {
		status = copy_machines(&crew, conversions, count, options, err);
	}
	for (size_t i = 0; i < count; i++) {
		if (status == TDM_OK) {
			tdm_convert_machine_say_problems(&conversions[i]);
		}
	}
	for (size_t i = 0; i < crew.job_count; i++) {
		tdm_cpu_job_release(&crew.jobs[i]);
	}
	free(crew.jobs);
	pthread_mutex_destroy(&crew.lock);
	pthread_cond_destroy(&crew.ended);
	for (size_t i = 0; i < count; i++) {
		tdm_convert_machine_release(&conversions[i]);
	}
	free(conversions);
	return status;
}
