/* SPDX-License-Identifier: MIT */
/*
 * bench_sync.c - what it takes to synchronise with a guest, and how near the truth one gets; beside trace-cmd's scheme.
 *
 * Both ends are on this machine and read one clock: the true offset is 0.
 */
#include "responder_thread.h"
#include "tsc_check.h"
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tandem/estimate.h>
#include <tandem/requester.h>

enum {
	RUNS = 15,
	CPUS = 32,
	PROBES = 339, /* of trace-cmd, each CPU and round */
	NAGLE_PROBES = 10,
	DATAGRAMS = 20000
};

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[count / 2];
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0) {
		CPU_SET(cpu, &set);
	} else {
		for (int i = 0; i < CPU_SETSIZE; i++) {
			CPU_SET(i, &set);
		}
	}
	sched_setaffinity(0, sizeof(set), &set);
}

static double ms_since(uint64_t began_ns)
{
	return (double)(tdm_now_ns() - began_ns) / 1e6;
}

/* One connection to a responder in a thread of this process. */
struct ends {
	struct responder_thread server;
	struct tdm_local_clock clock;
	struct tdm_requester *requester;
};

static void connect_ends(struct ends *ends, int server_cpu, bool datagrams, bool with_secret)
{
	struct tdm_error err = { 0 };

	memset(ends, 0, sizeof(*ends));
	ends->server.cpu = server_cpu;
	ends->server.secret.is_set = with_secret;
	if (!responder_thread_start(&ends->server, "tcp:127.0.0.1:0") ||
		tdm_local_clock_init(&ends->clock, "mono_raw", NULL, &err) != TDM_OK) {
		exit(1);
	}

	const struct tdm_requester_options options = { .address = ends->server.address,
		.secret = &ends->server.secret,
		.clock = "mono_raw",
		.local = &ends->clock,
		.datagrams = datagrams };

	ends->server.clock = "mono_raw";
	ends->requester = tdm_requester_create(&options, &err);
	if (!ends->requester) {
		fprintf(stderr, "bench_sync: %s\n", err.text);
		exit(1);
	}
}

static void release(struct ends *ends)
{
	tdm_requester_destroy(ends->requester);
	responder_thread_stop(&ends->server);
	tdm_local_clock_release(&ends->clock);
}

static double burst_ms(struct ends *ends, uint32_t count, uint32_t pipeline)
{
	const struct tdm_burst_plan plan = {
		.count = count, .pipeline = pipeline, .max_ms = TDM_BURST_MAX_MS
	};
	struct tdm_burst_result result;
	struct tdm_error err;
	const uint64_t began_ns = tdm_now_ns();

	if (tdm_requester_burst(ends->requester, &plan, &result, &err) != TDM_OK ||
		result.sample_count < count) {
		fprintf(stderr, "bench_sync: %zu of %u exchanges\n", result.sample_count, count);
	}
	return ms_since(began_ns);
}

/* trace-cmd's scheme: a message is written in two pieces, each CPU has a round of its own. */

struct rival {
	int fd;
	uint32_t count;
};

static void write_two(int fd)
{
	static const char message[36];

	if (write(fd, message, 32) != 32 || write(fd, message + 32, 4) != 4) {
		exit(1);
	}
}

static void read_whole(int fd)
{
	char message[36];

	for (size_t at = 0; at < sizeof(message);) {
		const ssize_t got = read(fd, message + at, sizeof(message) - at);

		if (got <= 0) {
			exit(1);
		}
		at += (size_t)got;
	}
}

static void *rival_echo(void *user)
{
	const struct rival *rival = user;

	for (uint32_t i = 0; i < rival->count; i++) {
		read_whole(rival->fd);
		tdm_clock_read(TDM_CLOCK_RAW);
		write_two(rival->fd);
	}
	return NULL;
}

/* So many probes; ms for each, those of TCP's quick beginning left out. */
static double rival_ms(bool no_delay, uint32_t count, uint32_t skip)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	const int on = no_delay;
	pthread_t thread;

	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
		exit(1);
	}

	const int near_end = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(near_end, (struct sockaddr *)&at, sizeof(at)) != 0) {
		exit(1);
	}

	struct rival rival = { accept(listener, NULL, NULL), count + skip };
	uint64_t began_ns = 0;

	setsockopt(near_end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(rival.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	pthread_create(&thread, NULL, rival_echo, &rival);
	for (uint32_t i = 0; i < count + skip; i++) {
		if (i == skip) {
			began_ns = tdm_now_ns();
		}
		tdm_clock_read(TDM_CLOCK_RAW);
		write_two(near_end);
		read_whole(near_end);
		tdm_clock_read(TDM_CLOCK_RAW);
	}

	const double ms = ms_since(began_ns);

	pthread_join(thread, NULL);
	close(near_end);
	close(rival.fd);
	close(listener);
	return ms / count;
}

static void bench_time(void)
{
	double burst[RUNS], sealed[RUNS], guest[RUNS], check[RUNS];
	struct tsc_check_result results[CPUS];
	struct ends ends;

	connect_ends(&ends, -1, false, false);
	burst_ms(&ends, 340, 1);
	for (int i = 0; i < RUNS; i++) {
		const uint64_t began_ns = tdm_now_ns();

		burst[i] = burst_ms(&ends, 340, 1);

		/* 31 other vCPUs: each pair is checked on the CPUs that there are. */
		const uint64_t check_ns = tdm_now_ns();

		for (int cpu = 1; cpu < CPUS; cpu++) {
			uint32_t from = 0;

			tsc_check_some(results, CPUS, &from, 1000);
		}
		check[i] = ms_since(check_ns);
		guest[i] = ms_since(began_ns);
	}

	/* As tandem sync would ask so many guests for the first time: a burst each. */
	double one_by_one = 0, pipelined = 0;

	for (int i = 0; i < CPUS; i++) {
		one_by_one += burst_ms(&ends, TDM_BURST_START_COUNT, 1);
	}
	for (int i = 0; i < CPUS; i++) {
		pipelined += burst_ms(&ends, TDM_BURST_START_COUNT, 16);
	}

	release(&ends);
	connect_ends(&ends, -1, false, true);
	for (int i = 0; i < RUNS; i++) {
		sealed[i] = burst_ms(&ends, 340, 1);
	}
	release(&ends);

	const double quick = rival_ms(true, PROBES, 20);
	const double delayed = rival_ms(false, NAGLE_PROBES, 20);
	const double rival_guest = quick * PROBES * CPUS;
	const double guest_ms = median(guest, RUNS);

	printf("340 exchanges, loopback TCP: %.1f ms (goal 30, loaded 250); with proven senders %.1f ms\n",
		median(burst, RUNS), median(sealed, RUNS));
	printf("guest of 32 vCPUs: %.1f ms (goal 100, loaded 400), of it CPU checks %.1f ms\n",
		guest_ms, median(check, RUNS));
	printf("trace-cmd's scheme, 32 x 339 probes, TCP_NODELAY: %.0f ms; ratio %.1f\n",
		rival_guest, rival_guest / guest_ms);
	printf("trace-cmd's scheme with Nagle: %.0f s, scaled up from %d probes of %.1f ms; ratio %.0f\n",
		delayed * PROBES * CPUS / 1000, NAGLE_PROBES, delayed,
		delayed * PROBES * CPUS / guest_ms);
	printf("10880 exchanges, %d bursts of %d: %.0f ms one by one (goal 800), %.0f ms pipelined by 16 (goal 200)\n",
		CPUS, TDM_BURST_START_COUNT, one_by_one, pipelined);
}

/* Errors of one way to estimate. */
struct errors {
	double ours[RUNS], mean[RUNS], fastest[RUNS], bound[RUNS], ideal[RUNS];
};

static void estimate(
	const struct tdm_burst_result *result, struct errors *errors, int run, bool stamps)
{
	struct tdm_exchange_log *log = tdm_exchange_log_create();
	struct tdm_timeline *timeline = NULL;
	struct tdm_exchange_log_info info = { .host_unit_hz = 1000000000,
		.guest_unit_hz = 1000000000,
		.host_clock = stamps ? "real" : "mono_raw",
		.guest_clock = stamps ? "real" : "mono_raw",
		.rate_ppb = 100 };
	struct tdm_error err;
	double sum = 0, least = 1e18, quickest = 0, lower = -1e18, upper = 1e18;
	uint64_t minus, plus;
	size_t count = 0;

	tdm_exchange_log_set_info(log, &info, &err);
	for (size_t i = 0; i < result->sample_count; i++) {
		const struct tdm_exchange_sample *s = &result->samples[i];
		const struct tdm_exchange_record record = { .seq = s->sequence,
			.trace = stamps ? (struct tdm_exchange){ s->k1_ns, s->k2_ns, s->k3_ns,
						  s->k4_ns }
					: (struct tdm_exchange){ s->h1, s->g2, s->g3, s->h4 } };
		const struct tdm_exchange *x = &record.trace;

		if (stamps && !(s->flags & TDM_SAMPLE_STAMPED)) {
			continue;
		}

		const double forward = (double)(int64_t)(x->guest_got - x->host_sent);
		const double backward = (double)(int64_t)(x->host_got - x->guest_sent);

		tdm_exchange_log_add(log, &record);
		sum += (backward - forward) / 2;
		lower = -forward > lower ? -forward : lower;
		upper = backward < upper ? backward : upper;
		if (forward + backward < least) {
			least = forward + backward;
			quickest = (backward - forward) / 2;
		}
		count++;
	}
	errors->mean[run] = count ? __builtin_fabs(sum / (double)count) : 1e9;
	errors->fastest[run] = __builtin_fabs(quickest);
	errors->ideal[run] = (upper - lower) / 2;
	if (tdm_estimate(log, &timeline, NULL, &err) != TDM_OK) {
		fprintf(stderr, "bench_sync: %s\n", err.text);
		exit(1);
	}

	uint64_t first, last;

	tdm_timeline_range(timeline, &first, &last);

	const uint64_t guest = first + (last - first) / 2;
	const double error =
		(double)(int64_t)(tdm_timeline_apply(timeline, guest, UINT32_MAX, NULL) - guest);

	tdm_timeline_bound(timeline, guest, UINT32_MAX, &minus, &plus);
	errors->ours[run] = __builtin_fabs(error);
	errors->bound[run] = (double)(minus + plus) / 2;
	if (error > (double)minus || -error > (double)plus) {
		printf("BOUND BROKEN: %.0f, -%llu +%llu\n", error, (unsigned long long)minus,
			(unsigned long long)plus);
		exit(1);
	}
	tdm_timeline_destroy(timeline);
	tdm_exchange_log_destroy(log);
}

static void bench_error(const char *what, uint32_t count, int near_cpu, int far_cpu, bool stamps,
	bool datagrams, const char *goal)
{
	struct errors errors;
	struct ends ends;

	pin(near_cpu);
	connect_ends(&ends, far_cpu, datagrams, false);
	for (int i = 0; i < RUNS; i++) {
		const struct tdm_burst_plan plan = {
			.count = count, .stamps = stamps, .max_ms = TDM_BURST_MAX_MS
		};
		struct tdm_burst_result result;
		struct tdm_error err;

		if (tdm_requester_burst(ends.requester, &plan, &result, &err) != TDM_OK ||
			result.sample_count == 0 || (stamps && !result.has_stamps)) {
			fprintf(stderr, "bench_sync: no burst\n");
			exit(1);
		}
		estimate(&result, &errors, i, stamps);
		usleep(stamps ? 1050000 : 20000);
	}
	release(&ends);
	pin(-1);

	const double ours = median(errors.ours, RUNS);
	const double mean = median(errors.mean, RUNS);

	printf("estimate, %s: median %.0f ns, worst %.0f ns (%s), bound %.0f ns, %.2f of the fastest ways;\n"
	       "    on the same samples mean of all (Perfetto's) %.0f ns, ratio %.1f; fastest probe (trace-cmd's) %.0f ns\n",
		what, ours, errors.ours[RUNS - 1], goal, median(errors.bound, RUNS),
		median(errors.bound, RUNS) / median(errors.ideal, RUNS), mean,
		mean / (ours > 1 ? ours : 1), median(errors.fastest, RUNS));
}

/* ns for each datagram to an innocent socket, sent and received. */
static double datagram_ns(int from, int to, const struct sockaddr_in *at)
{
	char bytes[64] = { 0 };
	const uint64_t began_ns = tdm_now_ns();

	for (int i = 0; i < DATAGRAMS; i++) {
		if (sendto(from, bytes, sizeof(bytes), 0, (const struct sockaddr *)at,
			    sizeof(*at)) < 0 ||
			recv(to, bytes, sizeof(bytes), 0) < 0) {
			exit(1);
		}
	}
	return (double)(tdm_now_ns() - began_ns) / DATAGRAMS;
}

static void bench_stamping(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	const int to = socket(AF_INET, SOCK_DGRAM, 0);
	const int from = socket(AF_INET, SOCK_DGRAM, 0);
	const int other = socket(AF_INET, SOCK_DGRAM, 0);
	double on[RUNS], off[RUNS];

	pin(0);
	if (bind(to, (struct sockaddr *)&at, sizeof(at)) != 0 ||
		getsockname(to, (struct sockaddr *)&at, &size) != 0) {
		exit(1);
	}
	for (int i = 0; i < RUNS; i++) {
		for (int is_on = 0; is_on < 2; is_on++) {
			const unsigned int flags = is_on ? SOF_TIMESTAMPING_RX_SOFTWARE : 0;

			setsockopt(other, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
			usleep(20000);
			*(is_on ? &on[i] : &off[i]) = datagram_ns(from, to, &at);
		}
		const unsigned int none = 0;

		setsockopt(other, SOL_SOCKET, SO_TIMESTAMPING, &none, sizeof(none));
	}
	pin(-1);

	const double off_ns = median(off, RUNS);
	const double on_ns = median(on, RUNS);

	printf("a datagram to a socket without stamps: %.0f ns, while another one has receive stamps: %.0f ns (%+.0f ns, ratio %.3f)\n",
		off_ns, on_ns, on_ns - off_ns, on_ns / off_ns);
}

int main(void)
{
	const bool two = sysconf(_SC_NPROCESSORS_ONLN) > 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	bench_time();
	bench_error("both ends on one CPU", 340, 0, 0, false, false, "goal 50, 250");
	if (two) {
		bench_error("ends on two CPUs", 340, 0, 1, false, false, "goal 800, 5000");
		bench_error("ends on two CPUs, 1000 exchanges", 1000, 0, 1, false, false,
			"goal 1000 worst");
	}
	bench_error("kernel stamps, UDP", 340, 0, two ? 1 : 0, true, true, "goal 60 worst");
	bench_error("kernel stamps, TCP", 340, 0, two ? 1 : 0, true, false, "goal 300 worst");
	bench_stamping();
	return 0;
}
