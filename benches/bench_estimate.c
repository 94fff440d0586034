/* SPDX-License-Identifier: MIT */
/*
 * bench_estimate - what an estimate of 30 000 exchanges costs, and how far off it is beside two rivals on the same samples:
 * Perfetto's mean of snapshots (one constant offset) and trace-cmd's fastest probe of each burst, joined by lines.
 *
 * The clocks are made up, so the truth is known. CPU time, medians. Usage: bench_estimate
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <tandem/estimate.h>
#include <time.h>

enum {
	BURSTS = 940,
	BURST = 32,
	EXCHANGES = BURSTS * BURST,
	ROUNDS = 9,
	POINTS = 4000
};

#define S UINT64_C(1000000000)

static uint64_t seed = 88172645463325252;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(double mean)
{
	return -mean * log(uniform());
}

/* A path of two lengths (an idle CPU wakes the short or the long way), jitter, and load now and then. */
struct path {
	double base, jitter, short_odds, load;
};

static double travel(const struct path *path, bool loaded)
{
	double time = path->base + exponential(path->jitter);

	if (uniform() < path->short_odds) {
		time -= path->base * 0.6;
	}
	if (uniform() < 0.05) {
		time += exponential(20000);
	}
	return loaded ? time + exponential(path->load) : time;
}

/* The guest's clock: 9 ppm fast, wandering by 30 ppb every ten minutes. */
static double guest_of(double host)
{
	return host * (1 + 9e-6) + 2865.0 * sin(host / 95.5e9);
}

struct rival {
	const char *name;
	double worst, median;
};

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;

	return (left > right) - (left < right);
}

static void score(struct rival *rival, double *errors, size_t count)
{
	qsort(errors, count, sizeof(*errors), compare);
	rival->median = errors[count / 2];
	rival->worst = errors[count - 1];
}

static struct tdm_exchange_record *record_session(const struct path *there, const struct path *back)
{
	struct tdm_exchange_record *records = calloc(EXCHANGES, sizeof(*records));

	if (!records) {
		exit(1);
	}
	for (uint64_t b = 0; b < BURSTS; b++) {
		double host = 1e9 * (double)(b + 1);
		const bool loaded = b % 45 < 12;

		for (uint64_t i = 0; i < BURST; i++) {
			const double got = host + travel(there, loaded);
			const double sent = got + 700;
			const double done = sent + travel(back, false);

			records[b * BURST + i] = (struct tdm_exchange_record){ .seq = b * BURST + i,
				.trace = { 100 * S + (uint64_t)host,
					5000 * S + (uint64_t)guest_of(got),
					5000 * S + (uint64_t)guest_of(sent),
					100 * S + (uint64_t)done } };
			host = done + 20000;
		}
	}
	return records;
}

static double middle_offset(const struct tdm_exchange *ex)
{
	return ((double)(int64_t)(ex->host_sent - ex->guest_got) +
		       (double)(int64_t)(ex->host_got - ex->guest_sent)) /
	       2;
}

/* The fastest exchange of a burst: when, and what offset it says. */
static void fastest(const struct tdm_exchange_record *burst, double *guest, double *offset)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < BURST; i++) {
		const struct tdm_exchange *ex = &burst[i].trace;
		const uint64_t trip =
			ex->host_got - ex->host_sent - (ex->guest_sent - ex->guest_got);

		if (trip < least) {
			least = trip;
			*guest = (double)(ex->guest_got - 5000 * S);
			*offset = middle_offset(ex);
		}
	}
}

static void run(const char *name, const struct path *there, const struct path *back)
{
	struct tdm_exchange_record *records = record_session(there, back);
	struct tdm_exchange_log *log = tdm_exchange_log_create();
	struct rival rivals[] = { { .name = "tandem" }, { .name = "fastest probe" },
		{ .name = "mean of snapshots" } };
	double(*errors)[POINTS] = calloc(3, sizeof(*errors));
	struct tdm_timeline *timeline = NULL;
	struct tdm_quality quality;
	struct tdm_error err;
	double mean = 0;
	size_t outside = 0;

	if (!log || !errors) {
		exit(1);
	}
	for (size_t i = 0; i < EXCHANGES; i++) {
		if (tdm_exchange_log_add(log, &records[i]) != TDM_OK) {
			exit(1);
		}
		mean += middle_offset(&records[i].trace) / EXCHANGES;
	}
	if (tdm_estimate(log, &timeline, &quality, &err) != TDM_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (size_t i = 0; i < POINTS; i++) {
		const double host = 1e9 + (BURSTS - 1) * 1e9 * (double)i / POINTS;
		const uint64_t guest = 5000 * S + (uint64_t)guest_of(host);
		const double truth = host + 100e9 - (double)(guest - 5000 * S);
		size_t burst = (size_t)(host / 1e9) - 1;
		double at[2] = { 0 };
		double offset[2] = { 0 };
		uint64_t minus;
		uint64_t plus;

		burst = burst + 1 < BURSTS ? burst : BURSTS - 2;
		fastest(&records[burst * BURST], &at[0], &offset[0]);
		fastest(&records[(burst + 1) * BURST], &at[1], &offset[1]);

		const double said =
			(double)(tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL) - 100 * S);
		const double line = offset[0] + (offset[1] - offset[0]) *
							((double)(guest - 5000 * S) - at[0]) /
							(at[1] - at[0]);

		tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
		outside += host < said - (double)minus - 2 || host > said + (double)plus + 2;
		errors[0][i] = fabs(said - host);
		errors[1][i] = fabs(line + 4900e9 - (truth - 100e9));
		errors[2][i] = fabs(mean + 4900e9 - (truth - 100e9));
	}
	printf("%s:\n", name);
	for (size_t r = 0; r < 3; r++) {
		score(&rivals[r], errors[r], POINTS);
	}
	for (size_t r = 0; r < 3; r++) {
		printf("  %-18s error %.0f ns at the median (%.1f times ours), %.0f ns at worst\n",
			rivals[r].name, rivals[r].median,
			rivals[r].median / fmax(rivals[0].median, 1), rivals[r].worst);
	}
	printf("  bound +-%.0f ns, truth outside it at %zu of %d points\n",
		(double)quality.median_bound, outside, POINTS);
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
	free(records);
	free(errors);
}

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void run_cost(const struct path *there, const struct path *back)
{
	struct tdm_exchange_record *records = record_session(there, back);
	struct tdm_exchange_log *log = tdm_exchange_log_create();
	double times[ROUNDS];
	struct rusage before;
	struct rusage after;

	for (size_t i = 0; i < EXCHANGES; i++) {
		tdm_exchange_log_add(log, &records[i]);
	}
	free(records);
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < ROUNDS; i++) {
		struct tdm_timeline *timeline = NULL;
		const double start = cpu_ms();

		if (tdm_estimate(log, &timeline, NULL, NULL) != TDM_OK) {
			exit(1);
		}
		times[i] = cpu_ms() - start;
		tdm_timeline_destroy(timeline);
	}
	getrusage(RUSAGE_SELF, &after);
	qsort(times, ROUNDS, sizeof(*times), compare);
	printf("%d exchanges: %.1f ms (goal: below 50 ms), %.1f MiB on top of the log (goal: 10 MiB)\n",
		EXCHANGES, times[ROUNDS / 2], (double)(after.ru_maxrss - before.ru_maxrss) / 1024);
	tdm_exchange_log_destroy(log);
}

int main(void)
{
	const struct path user = { 9000, 1200, 0, 300000 };
	const struct path wake_there = { 20000, 2500, .02, 300000 };
	const struct path wake_back = { 20000, 2500, .004, 300000 };
	const struct path kernel = { 310, 110, 0, 10000 };

	run_cost(&user, &user);
	run("stamps of user space", &user, &user);
	run("idle CPUs that wake two ways", &wake_there, &wake_back);
	run("stamps of the kernel", &kernel, &kernel);
	return 0;
}
